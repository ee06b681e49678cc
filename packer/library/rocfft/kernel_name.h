/* SPDX-License-Identifier: MIT */
/*
 * rocFFT's names of kernels: words separated by '_' that say what was generated,
 * "fft_rtc_fwd_len100_factors_10_10_wgs_64_tpt_10_dim1_sp_ip_CI_unitstride_sbrr_dirReg".
 */
#ifndef PACKER_LIBRARY_ROCFFT_KERNEL_NAME_H
#define PACKER_LIBRARY_ROCFFT_KERNEL_NAME_H

#include "packer/library/facts.h"

/* Factors of one length: 2^63 has 63, real ones have up to eight. */
#define KERNEL_NAME_FACTORS_MAX 64

struct kernel_name {
	char length[48];       /* "100", "64x64"; "any" when the name tells none */
	const char *precision; /* "single", "double", "half", or "any" */
	/* NULL: not told */
	const char *direction; /* "fwd", "back" */
	const char *placement; /* "ip", "op" */
	const char *scheme;    /* "sbrr", "sbcc", "sbrc", "sbcr" */
	/* of the length, and of the second of two */
	uint64_t factors[2][KERNEL_NAME_FACTORS_MAX];
	size_t n_factors[2];
	uint64_t batch; /* 0: not told */
};

/* What NAME tells; words that are not known are passed over. */
void kernel_name_parse(struct kp_span name, struct kernel_name *out);

/* Add length, precision, factors, factors2, batch, scheme, placement, direction. */
void kernel_name_facts(const struct kernel_name *name, struct facts *facts);

/* Add LENGTH as a number, where it is one, else as text. */
void kernel_name_length_fact(struct kp_span length, struct facts *facts);

/*
 * NAME as the last component of a key, on the heap: what cannot stand there ('/', control
 * bytes, what is no UTF-8), '%', and the '@' and '#' of keys as %XX.  NULL: out of memory.
 */
char *kernel_name_component(struct kp_span name);

#endif
