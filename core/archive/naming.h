/* SPDX-License-Identifier: MIT */
/* Names of archives and their directories, the file names of entries, and finding archives. */
#ifndef KP_CORE_ARCHIVE_NAMING_H
#define KP_CORE_ARCHIVE_NAMING_H

#include <stdbool.h>
#include "core/base/errors.h"
#include "core/base/path.h"
#include "core/base/span.h"

/* The suffix of an archive's file name. */
#define KP_ARCHIVE_SUFFIX ".kpack"
/* The directory for a tree's archives, in the tree's root. */
#define KP_ARCHIVES_DIR ".kpack"
/* The directory of a mount that describes the mount itself. */
#define KP_CONTROL_NAME ".kpackfs"
/* The directory of a mount that lists the entries by their keys. */
#define KP_TOC_NAME "toc"
/* The directory of a mount that has the code of each binary as bundles, if asked for. */
#define KP_BUNDLES_NAME "hipfb"

/* Bytes of NAME before ".kpack"; 0: NAME has another ending, or nothing before it. */
size_t kp_archive_stem(struct kp_span name);

/*
 * Whether PATH's last component is the name of an archive.  A name that begins with a
 * dot is not: unfinished files have such names.
 */
bool kp_is_archive_name(const char *path);
/*
 * Whether the path is that of an archive in an install tree's directory KP_ARCHIVES_DIR.
 * Libraries open archives in other directories by their paths.
 */
bool kp_is_archive_of_tree(const char *path);

/*
 * "GROUP[.VOLUME]STEM.kpack" on the heap, or NULL; volume 1 has no number.  STEM is "_" and an
 * architecture, or "-" and a family.
 */
char *kp_archive_file_name(const char *group, unsigned volume, const char *stem);

/*
 * The reverse, for an archive of GROUP: its volume and its stem, which points into NAME.
 * false: NAME is no archive's of GROUP.
 */
bool kp_archive_name_split(const char *name, const char *group, unsigned *volume,
			   struct kp_span *stem);

/* A key "lib/x.so#12" is binary "lib/x.so", index 12; a key without "#n" has index 0. */
struct kp_key {
	struct kp_span binary;
	uint32_t index;
};

struct kp_key kp_key_split(struct kp_span key);

/*
 * The file name of an entry in its binary's directory under toc/:
 * "<arch>.<type>", "<arch>#<n>.<type>".  false: the result is not a valid file name.
 */
bool kp_toc_file_name(struct kp_span arch, uint32_t index, struct kp_span type,
		      char out[256], size_t *size);

/*
 * The path of an entry whose key has a form of kpack's design paper, in the paper's
 * layouts:
 *   rocblas/<arch>/<k>    rocblas/library/<arch>/<k>.co
 *   hipblaslt/<arch>/<k>  hipblaslt/library/TensileLibrary/<arch>/<k>.co
 *   aotriton/<arch>/<op>  aotriton/kernels/<arch>/<op>.hsaco
 * false: KEY has another form, or the path needs more than CAP bytes.
 */
bool kp_legacy_path(struct kp_span key, struct kp_span arch, char *out, size_t cap,
		    size_t *size);

/*
 * Whether PATH is toc or .kpackfs, or below one of them; no entry may have such a path.
 */
bool kp_path_reserved(struct kp_span path);

/*
 * The archives of a source: SOURCE itself if it is a file, else every archive name in the
 * directory (kp_is_archive_name), sorted bytewise.  The caller frees each string and the
 * array.  A directory without archives is a success.
 */
kpack_error_t kp_archives_find(const char *source, char ***paths, size_t *count,
			       struct kpackx_error *why);
/* As kp_archives_find, for the source open at FD, which stays open. */
kpack_error_t kp_archives_find_at(int fd, const char *source, char ***paths,
				  size_t *count, struct kpackx_error *why);

#endif
