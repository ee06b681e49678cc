/* SPDX-License-Identifier: MIT */
/* Read a wheel's .dist-info directory. */
#ifndef PACKER_WHEEL_FILE_DIST_INFO_H
#define PACKER_WHEEL_FILE_DIST_INFO_H

#include "metadata_text.h"
#include "wheel_in.h"
#include "wheel_name.h"
#include "tags.h"

struct dist_info {
	char *dir;                        /* "torch-2.0.dist-info" */
	char *metadata_file, *wheel_file; /* texts of METADATA and WHEEL */
	struct metadata_text metadata, wheel;
	char *name, *version;             /* as METADATA spells them */
	char tag_fault[WHEEL_TAGS_FAULT]; /* not "": the file name has different tags */
};

/*
 * Find the only top-level directory *.dist-info among PATHS.  The caller frees *DIR.
 * INVALID_FORMAT: there are none or several.
 */
kpack_error_t dist_info_find(const char *const *paths, size_t count, char **dir,
			     struct kpackx_error *why);

/*
 * Read the .dist-info of W, and compare it with FILE_NAME unless that is NULL.  The
 * caller calls dist_info_fini even after an error.
 * INVALID_FORMAT: not exactly one .dist-info; METADATA or WHEEL missing or malformed; no
 * Name, Version, Wheel-Version or Tag; a Wheel-Version other than 1.x; METADATA
 * contradicts the directory's or the file's name.
 */
kpack_error_t dist_info_read(const struct wheel_in *w, struct wheel_reader *r,
			     const struct wheel_name *file_name, struct dist_info *out,
			     struct kpackx_error *why);

/* The files METADATA and WHEEL, on the heap. */
struct dist_info_texts {
	char *metadata, *wheel;
	size_t metadata_size, wheel_size;
};

/*
 * As dist_info_read, from the TEXTS of the directory DIR.  OUT takes them; they are freed
 * even on failure.
 */
kpack_error_t dist_info_parse(const char *dir, const struct dist_info_texts *texts,
			      const struct wheel_name *file_name, struct dist_info *out,
			      struct kpackx_error *why);
void dist_info_fini(struct dist_info *info); /* accepts a zeroed one */

/* DIR + "/" + FILE; the caller frees it. */
char *dist_info_path(const struct dist_info *info, const char *file);

#endif
