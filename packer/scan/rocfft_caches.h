/* SPDX-License-Identifier: MIT */
/* Store rocFFT's kernel caches as databases of single GPUs, and as single kernels. */
#ifndef PACKER_PACK_SCAN_ROCFFT_CACHES_H
#define PACKER_PACK_SCAN_ROCFFT_CACHES_H

#include "packer/library/rocfft.h"
#include "scan.h"

/*
 * DATABASES: store a database per GPU instead of every kernel cache among the databases
 * of SCAN that is for all GPUs.  ROWS: also store the single kernels of every kernel
 * cache.  PARTS, which is zeroed, must outlive the scan.  Errors name the file.
 */
kpack_error_t rocfft_caches_split(struct scan *scan, bool databases, bool rows,
				  struct cache_files *parts, struct kpackx_error *why);

/*
 * Whether PATH, which is not stored, is a kernel cache that SCAN stores in the other
 * form: the whole cache where SCAN splits it, or the cache of one GPU where SCAN keeps it
 * whole.
 */
bool caches_in_other_form(const struct scan *scan, struct kp_span path);

#endif
