/* SPDX-License-Identifier: MIT */
/*
 * Whether a changed bit has made another type of the type of an entry's code.  The table of
 * contents has no hash, so that this shows only in the code.
 */
#ifndef PACKER_ARCHIVES_CONTENT_TYPE_H
#define PACKER_ARCHIVES_CONTENT_TYPE_H

#include "core/archive/archive.h"
#include "core/format/format.h"

/* Zeros: nothing was decoded yet. */
struct content_head {
	uint8_t bytes[KP_HEAD_SIZE];
	size_t size;
};

/* For archive_decode; ARG is the head. */
kpack_error_t content_head_add(const void *data, size_t size, void *arg,
			       struct kpackx_error *why);

/*
 * INVALID_METADATA: the bytes are code of a known format, and one flipped bit makes TYPE of a
 * type of such code: the format's, or "hsaco" or "co", as other writers call all code.  Other
 * types are correct: writers choose them, and the pieces of kpack thin --keep are "bin".
 */
kpack_error_t content_head_check(const struct content_head *head, struct kp_span type,
				 struct kpackx_error *why);

#endif
