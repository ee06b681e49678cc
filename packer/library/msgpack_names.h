/* SPDX-License-Identifier: MIT */
/* Find names of files in a MessagePack file of any structure. */
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
 * Collect every string that is the value of a key KEY, at any depth; if KEY is NULL,
 * every string that is not a key.  Bytes after the first value are ignored.  The caller
 * must finish OUT in any case.  MSGPACK_PARSE_FAILED: not a map, or cut short.
 */
kpack_error_t msgpack_names_read(struct kp_span bytes, const char *key,
				 struct msgpack_names *out, struct kpackx_error *why);
void msgpack_names_fini(struct msgpack_names *names);

#endif
