/* SPDX-License-Identifier: MIT */
/* rocFFT's kernel caches as databases of single GPUs, and as single kernels. */
#ifndef PACKER_PACK_SCAN_ROCFFT_CACHES_H
#define PACKER_PACK_SCAN_ROCFFT_CACHES_H

#include "packer/library/rocfft/kernel_cache.h"
#include "scan.h"

/*
 * Of every kernel cache among the databases of SCAN that is for all GPUs, store instead a
 * database for each (DATABASES); of every kernel cache, store also the single kernels (ROWS).
 * PARTS, which is zeroed, must outlive the scan.  What went wrong names its file.
 */
kpack_error_t rocfft_caches_split(struct scan *scan, bool databases, bool rows,
				  struct cache_parts *parts, struct kpackx_error *why);

/*
 * Is PATH, which is not stored, a kernel cache that SCAN stores in the other form: the whole
 * one where it is split, or one of a GPU where it is whole?
 */
bool caches_in_other_form(const struct scan *scan, struct kp_span path);

#endif
