/* SPDX-License-Identifier: MIT */
/*
 * rocFFT's databases, which are SQLite's.  A kernel cache has the table cache_v1(kernel_name,
 * arch, hip_version, generator_sum, code, timestamp), with the code of kernels for any GPUs:
 * rocfft_cache.c.  A database of kernel paths has the table kernels(arch, length, precision,
 * kernel_path), with any further columns, and a row for each code object next to it: rocfft.c.
 */
#ifndef PACKER_LIBRARY_ROCFFT_H
#define PACKER_LIBRARY_ROCFFT_H

#include "library.h"
#include "file_tree.h"
#include "sqlite.h"

/* --- kernel caches ---------------------------------------------------------------------- */

/*
 * Whether PATH has the name of a rocFFT kernel cache, and a directory where one is
 * expected.  ARCH: the canonical target ID in the name; "" for the cache of all GPUs.
 */
bool kernel_cache_named(const char *path, char arch[KP_TARGET_TEXT_MAX]);

/*
 * Whether F has a table cache_v1 with rocFFT's columns: then add to OUT what its rows say.  NAMED
 * is the GPU in its name, or "".  INVALID_FORMAT: damaged, or far too many architectures.
 */
kpack_error_t kernel_cache_describe(struct sqlite_file *f, const char *named, bool *is,
				    struct library_object *out, struct kpackx_error *why);

/* Whether TEXT is the target ID of a GPU.  CANONICAL gets its canonical form. */
bool cache_arch_ok(struct kp_span text, char canonical[KP_TARGET_TEXT_MAX]);

/*
 * Describe the kernel NAME for the GPU ARCH in O: its facts, which are length, precision, factors,
 * factors2, batch, scheme, placement and direction, and the key
 * fft/<arch>/<length>/<precision>/<name>.  In the key, characters that a component cannot
 * hold ('/', control bytes, invalid UTF-8), '%', and the '@' and '#' that have a meaning
 * there become %XX.
 */
void kernel_name_describe(struct library_object *o, const char *arch,
			  struct kp_span name);
/* Add LENGTH as a number if it is one, else as text. */
void kernel_name_length_fact(struct kp_span length, struct facts *facts);

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
 * Add one part with the code of all rows.  Each row is an object with the key of its name
 * and no path.  If rows differ only in columns that are not part of the key (hip_version,
 * generator_sum), the first of all PARTS keeps that key, and the next ones get
 * <kernel_name>@<hip_version>, <kernel_name>@<hip_version>.2 ..., in the table's order.
 * Rows that a part has already are not added again.
 * Errors and databases without rows are as in kernel_cache_split; INVALID_FORMAT also: a
 * row without a name or code, or with other code than a part has for it.
 */
kpack_error_t kernel_cache_rows(const char *disk, const char *path, const char *tmp,
				struct cache_files *parts, struct kpackx_error *why);

/* --- kernel paths ----------------------------------------------------------------------- */

struct kernel_path {
	uint64_t row; /* counted from 1 */
	/* As text, empty for NULL; valid as long as the row */
	struct kp_span arch, length, precision, path;
	bool exists;
	size_t file;         /* if it exists: its number in the tree */
	struct facts *facts; /* length, precision, factors, batch; USE may take them */
};

typedef void kernel_path_use(void *arg, struct kernel_path *path);

/*
 * Call USE for each row of the database FILE of TREE, in order; never, if it has no such
 * table.  Paths are resolved as kernel_path_find does.
 * INVALID_FORMAT: damaged; whatever USE returns.
 */
kpack_error_t kernel_paths_each(const struct file_tree *tree, size_t file,
				kernel_path_use *use, void *arg,
				struct kpackx_error *why);
/*
 * Find the file that PATH, in a row of the database DATABASE, names.  PATH is tried in
 * the database's directory, then from the root; of an absolute path, the longest end that
 * exists in the tree is taken.  Files outside the tree are never found.  false: no such
 * file.
 */
bool kernel_path_find(const struct file_tree *tree, const char *database,
		      struct kp_span path, size_t *file);

#endif
