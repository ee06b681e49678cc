/* SPDX-License-Identifier: MIT */
/*
 * A host binary; if it is converted, with its marker and its layout.  Writing another in its place,
 * which appears whole, with the old attributes, or not.
 */
#ifndef PACKER_ARCHIVES_BINARY_H
#define PACKER_ARCHIVES_BINARY_H

#include <sys/stat.h>
#include "core/host/convert.h"
#include "core/restore/recipe.h"
#include "packer/files/below.h"
#include "packer/files/target.h"

struct binary {
	const char *path; /* as given */
	int fd;
	struct stat st;
	uint64_t size;
	struct kp_fatbin fat;
	bool drop_signature; /* set by the caller: what is written of it has none */

	/* kind CONVERTED, after binary_read_marker */
	struct kp_marker marker;
	/* after binary_read_layout */
	bool has_layout;
	struct kp_recipe layout;
};

/* Open PATH, which is borrowed, and find out its kind.  Any kind is a success. */
kpack_error_t binary_open(const char *path, struct binary *out, struct kpackx_error *why);
void binary_close(struct binary *b); /* does nothing if fd is -1 */

/*
 * Read the marker of a converted binary, and find its layout.  INVALID_FORMAT,
 * INVALID_METADATA, and all errors of kp_fatbin_check_marker and kp_marker_parse.
 */
kpack_error_t binary_read_marker(struct binary *b, struct kpackx_error *why);

/*
 * After binary_read_marker: read the layout, if the binary has one.
 * INVALID_METADATA: the layout is that of another binary.
 */
kpack_error_t binary_read_layout(struct binary *b, struct kpackx_error *why);

/*
 * Write B, which is converted, to OUT with another MARKER (kp_marker_write).  Its recipe follows
 * what moves in the file; one that cannot be read stays as it is.  Errors of kp_convert_set.
 */
kpack_error_t binary_set_marker(const struct binary *b, struct kp_span marker,
				struct kp_outfile *out, struct kpackx_error *why);

/* The index that a wrapper asks for, of which the runtime uses 32 bits. */
uint32_t binary_index(const struct binary *b, size_t wrapper);

/*
 * Why the device code of B, in which binary_open found none, can only be copied; *OUT NULL:
 * it has none.  Static.  Errors of kp_fatbin_nest: it has some, which is damaged.
 */
kpack_error_t binary_unlisted(const struct binary *b, const char **out,
			      struct kpackx_error *why);

/* The kind in words: "converted", "fat" ... */
const char *binary_kind(const struct binary *b);

/* --- rewriting --- */

struct rewrite {
	const struct binary *from;
	bool in_place;
	struct below_target to; /* the place of the new file */
	struct kp_outfile out;  /* the caller writes it */
};

/*
 * Begin to write PATH from FROM, which must stay open until the end.  An existing file
 * will be replaced, also FROM's own file; if PATH is a symbolic link, the file it leads
 * to is replaced.  IO_ERROR (also if PATH exists and is no regular file), FILE_NOT_FOUND,
 * OUT_OF_MEMORY.
 */
kpack_error_t rewrite_open(struct rewrite *r, const struct binary *from, const char *path,
			   struct kpackx_error *why);

/*
 * Give the new file FROM's attributes and its name.  IO_ERROR: FROM was changed
 * meanwhile; or FROM's own file is replaced and the owner cannot be kept.
 * NOT_IMPLEMENTED: FROM's own file is replaced and has other hard links, which would keep
 * the old content.
 */
kpack_error_t rewrite_publish(struct rewrite *r, struct kpackx_error *why);

/*
 * Clean up; without rewrite_publish, nothing was changed.  R may be zeroed, or its open
 * may have failed.
 */
void rewrite_close(struct rewrite *r);

/* --- markers from options --- */

/* Replace the name, or add a path; the strings are copied. */
void marker_set_name(struct kp_marker *marker, const char *name);
void marker_add_path(struct kp_marker *marker, const char *path);

#endif
