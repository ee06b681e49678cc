/* SPDX-License-Identifier: MIT */
/* Split rocFFT's kernel cache: a database per GPU, or an object per kernel. */
#ifndef PACKER_LIBRARY_ROCFFT_KERNEL_CACHE_H
#define PACKER_LIBRARY_ROCFFT_KERNEL_CACHE_H

#include "core/base/file.h"
#include "library.h"

/* A file made from a kernel cache, and the objects of it to store. */
struct cache_file {
	struct kp_outfile file; /* temporary: never published */
	char *disk;             /* to open it, until cache_files_fini */
	char *key;              /* the path by which it is ordered among files */
	const char *cache;      /* path of the cache; borrowed */
	int64_t *hip_versions;  /* per object, if objects are rows; else NULL */
	struct library_object *objects;
	size_t n_objects;
};

struct cache_files {
	struct cache_file *items;
	size_t count, cap;
	char called[440]; /* the name in error messages for any of their files */
};

void cache_files_fini(struct cache_files *parts);

/* Whether PATH has the name of a rocFFT kernel cache, and a directory where one is
 * expected.  ARCH: the canonical target ID in the name; "" for the cache of all GPUs. */
bool kernel_cache_named(const char *path, char arch[KP_TARGET_TEXT_MAX]);

/*
 * Add a database for each arch of the kernel cache DISK (PATH in the tree), in bytewise
 * order of arches.  Its path is rocfft_kernel_cache_<arch>.db next to PATH; it has the
 * same schema, that arch's rows in their order, and is one object.  The file is made in
 * the directory TMP.  Equal input gives equal bytes.
 * Adds nothing for a database without a table cache_v1, or without rows in it.
 * INVALID_FORMAT: damaged, or rows that belong to no GPU.  The caller must finish PARTS
 * in any case.
 */
kpack_error_t kernel_cache_split(const char *disk, const char *path, const char *tmp,
				 struct cache_files *parts, struct kpackx_error *why);

/*
 * Add one part with the code of all rows.  Each row is an object with the key
 * fft/<arch>/<length>/<precision>/<kernel_name> and no path.  If rows differ only in
 * columns that are not part of the key (hip_version, generator_sum), the first of all
 * PARTS keeps that key, and the next ones get <kernel_name>@<hip_version>,
 * <kernel_name>@<hip_version>.2 ..., in the table's order.
 * Rows that a part has already are not added again.
 * Errors and databases without rows are as in kernel_cache_split; INVALID_FORMAT also: a
 * row without a name or code, or with other code than a part has for it.
 */
kpack_error_t kernel_cache_rows(const char *disk, const char *path, const char *tmp,
				struct cache_files *parts, struct kpackx_error *why);

#endif
