/* SPDX-License-Identifier: MIT */
/* The rows of rocFFT's kernel cache as objects of their own. */
#ifndef KERNEL_ROWS_H
#define KERNEL_ROWS_H

#include "library.h"
#include "sqlite_file.h"

/* Rows taken from one cache: what one archive can hold. */
#define KERNEL_ROWS_MAX KP_FRAMES_MAX

/* Rows of one key, each of another version or generator: caches of users have a few. */
#define KERNEL_ROWS_SAME_MAX 1000

/*
 * Write the code of all rows of cache_v1 to FILE (CALLED in errors) one after another, and give
 * the objects, on the heap; also after an error, each to be finished.
 */
kpack_error_t kernel_rows_write(struct sqlite_file *f, struct kp_outfile *file,
				const char *called, struct library_object **objects,
				size_t *n_objects, struct kpackx_error *why);

#endif
