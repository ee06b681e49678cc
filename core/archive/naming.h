/* SPDX-License-Identifier: MIT */
/*
 * Names: of archives and the directories they stand in, and of single entries: what file
 * names a key, an arch and a type give.
 */
#ifndef KP_CORE_ARCHIVE_NAMING_H
#define KP_CORE_ARCHIVE_NAMING_H

#include <stdbool.h>
#include "core/base/span.h"

/* The end of an archive's file name. */
#define KP_ARCHIVE_SUFFIX ".kpack"
/* The directory of a tree's archives, at its root. */
#define KP_ARCHIVES_DIR ".kpack"
/* The directory of a mount in which it says what it knows about itself. */
#define KP_CONTROL_NAME ".kpackfs"
/* The directory of a mount that has the entries by their keys. */
#define KP_TOC_NAME "toc"

/*
 * Is NAME, without directories, an archive's?  A name that begins with a dot is not: files
 * that are being written have such names.
 */
bool kp_is_archive_name(const char *name);

/* A key "lib/x.so#12" is binary "lib/x.so", index 12; a key without "#n" has index 0. */
struct kp_key {
	struct kp_span binary;
	uint32_t index;
};

struct kp_key kp_key_split(struct kp_span key);

/*
 * The file name of an entry in its binary's directory under toc/:
 * "<arch>.<type>", "<arch>#<n>.<type>".  false: it is no file name.
 */
bool kp_toc_file_name(struct kp_span arch, uint32_t index, struct kp_span type,
		      char out[256], size_t *size);

/*
 * The path that the paper's layouts give an entry with the paper's key:
 *   rocblas/<arch>/<k>    rocblas/library/<arch>/<k>.co
 *   hipblaslt/<arch>/<k>  hipblaslt/library/TensileLibrary/<arch>/<k>.co
 *   aotriton/<arch>/<op>  aotriton/kernels/<arch>/<op>.hsaco
 * false: another key, or longer than OUT.
 */
bool kp_legacy_path(struct kp_span key, struct kp_span arch, char *out, size_t cap,
		    size_t *size);

/* Is PATH toc or .kpackfs, or below one of them?  No entry may ask for such a path. */
bool kp_path_reserved(struct kp_span path);

#endif
