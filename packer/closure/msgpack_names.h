/* SPDX-License-Identifier: MIT */
/* Names of files in a MessagePack file whose shape does not matter. */
#ifndef PACKED_NAMES_H
#define PACKED_NAMES_H

#include "core/base/errors.h"
#include "core/base/span.h"

/* Spans point into the bytes that were read. */
struct packed_names {
	struct kp_span *items;
	size_t count, cap;
};

/*
 * Every string that is the value of a key KEY, at any depth; with NULL, every string that
 * is no key.  What follows the first value is not looked at.  OUT must be finished in
 * any case.  MSGPACK_PARSE_FAILED: no map, or not a whole one; OUT_OF_MEMORY.
 */
kpack_error_t packed_names_read(struct kp_span bytes, const char *key,
				struct packed_names *out, struct kpackx_error *why);
void packed_names_fini(struct packed_names *names);

#endif
