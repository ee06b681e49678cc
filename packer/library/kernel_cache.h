/* SPDX-License-Identifier: MIT */
/* rocFFT's kernel cache taken apart: a database per GPU, an object per kernel. */
#ifndef KERNEL_CACHE_H
#define KERNEL_CACHE_H

#include "library.h"

/* A file that was made of a kernel cache, and what of it is to be stored. */
struct cache_part {
	char *disk; /* a temporary file, removed by cache_parts_fini */
	char *key;  /* the path that stands for it in the order of files */
	struct library_object *objects;
	size_t n_objects;
};

struct cache_parts {
	struct cache_part *items;
	size_t count, cap;
};

void cache_parts_fini(struct cache_parts *parts);

/*
 * Add for each arch of the kernel cache DISK (PATH in the tree) the database
 * rocfft_kernel_cache_<arch>.db beside PATH: the same schema, that arch's rows, one object,
 * made in the directory TMP.  NOT_IMPLEMENTED: built without SQLite.
 */
kpack_error_t kernel_cache_split(const char *disk, const char *path, const char *tmp,
				 struct cache_parts *parts, struct kpackx_error *why);

/*
 * Add one part: the code of all rows, an object and key
 * fft/<arch>/<length>/<precision>/<kernel_name> for each, and no path.
 */
kpack_error_t kernel_cache_rows(const char *disk, const char *path, const char *tmp,
				struct cache_parts *parts, struct kpackx_error *why);

#endif
