/* SPDX-License-Identifier: MIT */
/* The rows of rocFFT's kernel cache as objects of their own. */
#ifndef PACKER_LIBRARY_ROCFFT_KERNEL_ROWS_H
#define PACKER_LIBRARY_ROCFFT_KERNEL_ROWS_H

#include "kernel_cache.h"
#include "sqlite_file.h"

/* Limit of rows taken from one cache: as many as one archive can hold. */
#define KERNEL_ROWS_MAX KP_FRAMES_MAX

/*
 * Write the code of all rows of cache_v1 to PART's file (CALLED in errors), one after
 * another, and give PART their objects, also after an error.  Rows that differ only in
 * columns that are not part of the key get equal keys.
 */
kpack_error_t kernel_rows_write(struct sqlite_file *f, const char *called,
				struct cache_file *part, struct kpackx_error *why);

#endif
