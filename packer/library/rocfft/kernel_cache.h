/* SPDX-License-Identifier: MIT */
/* rocFFT's kernel cache taken apart: a database per GPU, an object per kernel. */
#ifndef PACKER_LIBRARY_ROCFFT_KERNEL_CACHE_H
#define PACKER_LIBRARY_ROCFFT_KERNEL_CACHE_H

#include "core/base/file.h"
#include "packer/library/library.h"

/* A file that was made of a kernel cache, and what of it is to be stored. */
struct cache_part {
	struct kp_outfile file; /* temporary: never published */
	char *disk;             /* to open it, until cache_parts_fini */
	char *key;              /* the path that stands for it in the order of files */
	const char *cache;      /* path of the cache; borrowed */
	int64_t *hip_versions;  /* of objects that are rows; else NULL */
	struct library_object *objects;
	size_t n_objects;
};

struct cache_parts {
	struct cache_part *items;
	size_t count, cap;
	char called[440]; /* any of their files, in errors */
};

void cache_parts_fini(struct cache_parts *parts);

/* Is PATH called as rocFFT's kernel cache is, and stands where one does?  ARCH: the canonical
 * target ID in the name, "" when it is the one for all GPUs. */
bool kernel_cache_named(const char *path, char arch[KP_TARGET_TEXT_MAX]);

/*
 * Add for each arch of the kernel cache DISK (PATH in the tree), in bytewise order, the database
 * rocfft_kernel_cache_<arch>.db beside PATH: the same schema, that arch's rows in
 * their order, one object, made in the directory TMP.  Equal input gives equal bytes.
 * Nothing is added for a database that has no table cache_v1, or no rows in it.
 * INVALID_FORMAT: damaged, or rows that belong to no GPU; NOT_IMPLEMENTED: built without
 * SQLite.  PARTS is to be finished in any case.
 */
kpack_error_t kernel_cache_split(const char *disk, const char *path, const char *tmp,
				 struct cache_parts *parts, struct kpackx_error *why);

/*
 * Add one part: the code of all rows, an object and key
 * fft/<arch>/<length>/<precision>/<kernel_name> for each, and no path.  Rows that differ
 * only in what the key does not tell (hip_version, generator_sum) follow the first of all
 * PARTS as <kernel_name>@<hip_version>, <kernel_name>@<hip_version>.2 ..., in the table's order.
 * Rows that a part has already are not added again.
 * Errors, and what has no rows, as above; INVALID_FORMAT also: a row without a name or code, or
 * with other code than a part has for it.
 */
kpack_error_t kernel_cache_rows(const char *disk, const char *path, const char *tmp,
				struct cache_parts *parts, struct kpackx_error *why);

#endif
