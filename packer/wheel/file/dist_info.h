/* SPDX-License-Identifier: MIT */
/* What a wheel says of itself in its .dist-info directory. */
#ifndef PACKER_WHEEL_FILE_DIST_INFO_H
#define PACKER_WHEEL_FILE_DIST_INFO_H

#include "packer/wheel/metadata/text.h"
#include "in.h"
#include "packer/wheel/metadata/name.h"
#include "packer/wheel/metadata/tags.h"

struct dist_info {
	char *dir;                        /* "torch-2.0.dist-info" */
	char *metadata_file, *wheel_file; /* their texts */
	struct metadata_text metadata, wheel;
	char *name, *version;             /* as METADATA spells them */
	char tag_fault[WHEEL_TAGS_FAULT]; /* unless "": the file's name has other tags */
};

/*
 * The one directory *.dist-info at the top among PATHS.  The caller frees *DIR.
 * INVALID_FORMAT: there are none or several.
 */
kpack_error_t dist_info_find(const char *const *paths, size_t count, char **dir,
			     struct kpackx_error *why);

/*
 * Read that of W, and compare it with FILE_NAME unless that is NULL.
 * INVALID_FORMAT: not exactly one directory, METADATA or WHEEL missing or malformed, no Name,
 * Version, Wheel-Version or Tag, a Wheel-Version that is not 1.x, or W is another wheel than
 * its directory or its file's name say.  Freed by dist_info_fini in any case.
 */
kpack_error_t dist_info_read(const struct wheel_in *w, struct wheel_reader *r,
			     const struct wheel_name *file_name, struct dist_info *out,
			     struct kpackx_error *why);

/*
 * The same from texts in memory, which are taken (heap, freed also on failure), as DIR.
 */
kpack_error_t dist_info_parse(const char *dir, char *metadata, size_t metadata_size,
			      char *wheel, size_t wheel_size,
			      const struct wheel_name *file_name, struct dist_info *out,
			      struct kpackx_error *why);
void dist_info_fini(struct dist_info *info); /* a zeroed one is fine */

/* DIR + "/" + FILE on the heap; NULL: out of memory. */
char *dist_info_path(const struct dist_info *info, const char *file);

#endif
