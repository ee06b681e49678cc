/* SPDX-License-Identifier: MIT */
/*
 * rocFFT's kernel names: words separated by '_' that describe the generated kernel,
 * "fft_rtc_fwd_len100_factors_10_10_wgs_64_tpt_10_dim1_sp_ip_CI_unitstride_sbrr_dirReg".
 */
#ifndef PACKER_LIBRARY_ROCFFT_KERNEL_NAME_H
#define PACKER_LIBRARY_ROCFFT_KERNEL_NAME_H

#include "facts.h"

/* Limit of factors of one length: 2^63 has 63, real lengths have up to eight. */
#define KERNEL_NAME_FACTORS_MAX 64

struct kernel_name {
	char length[48];       /* "100", "64x64"; "any" if the name states none */
	const char *precision; /* "single", "double", "half", or "any" */
	/* NULL: not stated */
	const char *direction; /* "fwd", "back" */
	const char *placement; /* "ip", "op" */
	const char *scheme;    /* "sbrr", "sbcc", "sbrc", "sbcr" */
	/* of the length, and of the second length of two-dimensional kernels */
	uint64_t factors[2][KERNEL_NAME_FACTORS_MAX];
	size_t n_factors[2];
	uint64_t batch; /* 0: not stated */
};

/* Parse NAME; unknown words are skipped. */
void kernel_name_parse(struct kp_span name, struct kernel_name *out);

/* Add length, precision, factors, factors2, batch, scheme, placement, direction. */
void kernel_name_facts(const struct kernel_name *name, struct facts *facts);

/* Add LENGTH as a number if it is one, else as text. */
void kernel_name_length_fact(struct kp_span length, struct facts *facts);

/*
 * NAME as the last component of a key, on the heap.  Characters that a component cannot
 * hold ('/', control bytes, invalid UTF-8), '%', and the '@' and '#' that have a meaning
 * in keys become %XX.
 */
char *kernel_name_component(struct kp_span name);

#endif
