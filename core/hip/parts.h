/* SPDX-License-Identifier: MIT */
/* The code objects of a wrapper that the GPUs can load, and where they are. */
#ifndef KP_HIP_PARTS_H
#define KP_HIP_PARTS_H

#include "binary.h"

enum { PARTS_MAX = 60 }; /* so that the header of a bundle stays within 4096 bytes */

struct part {
	char arch[KP_TARGET_TEXT_MAX]; /* as in the archive */
	const struct kp_target *gpu;   /* the first that loads it */
	struct kp_lookup_file *file;   /* NULL: every archive's object is damaged */
	size_t entry;
	uint32_t ordinal;
	uint64_t offset, size; /* in the bundle */
};

struct parts {
	struct part list[PARTS_MAX]; /* sorted by their architectures */
	size_t count;
	char *key; /* "lib/libx.so#3" */
};

/*
 * Find the objects of wrapper INDEX; GPUs without any are reported, once for each binary.
 * OUT_OF_MEMORY.  The caller frees OUT with parts_fini on success and on failure.
 */
kpack_error_t parts_find(struct binaries *all, struct binary *b, uint32_t index,
			 struct parts *out, struct kpackx_error *why);
void parts_fini(struct parts *p);

/*
 * Part I could not be decoded, WHY says why: report it, and set the next archive that has
 * the object, or remove the part if there is none.
 */
void parts_replace(struct binary *b, struct parts *p, size_t i,
		   const struct kpackx_error *why);

#endif
