/* SPDX-License-Identifier: MIT */
/* Names of files in a MessagePack file whose shape does not matter. */
#ifndef PACKER_CLOSURE_MSGPACK_NAMES_H
#define PACKER_CLOSURE_MSGPACK_NAMES_H

#include "core/base/errors.h"
#include "core/base/span.h"

/* Spans point into the bytes that were read. */
struct msgpack_names {
	struct kp_span *items;
	size_t count, cap;
};

/*
 * Every string that is the value of a key KEY, at any depth; with NULL, every string that
 * is no key.  What follows the first value is not looked at.  OUT must be finished in
 * any case.  MSGPACK_PARSE_FAILED: no map, or not a whole one; OUT_OF_MEMORY.
 */
kpack_error_t msgpack_names_read(struct kp_span bytes, const char *key,
				 struct msgpack_names *out, struct kpackx_error *why);
void msgpack_names_fini(struct msgpack_names *names);

#endif
