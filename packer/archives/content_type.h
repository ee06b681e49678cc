/* SPDX-License-Identifier: MIT */
/*
 * Whether the code of an entry is what its type says.  The table of contents has no hash, so
 * that a damaged type shows only in the code.
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
 * INVALID_METADATA: the bytes are code of a known format, and TYPE is no type of code of that
 * format.  "hsaco" and "co" always are: other writers call all code so.
 */
kpack_error_t content_head_check(const struct content_head *head, struct kp_span type,
				 struct kpackx_error *why);

#endif
