/* SPDX-License-Identifier: MIT */
/* A container's version, how it is compressed, and whether its content is what its hash says. */
#ifndef PACKER_INSPECT_PACKED_H
#define PACKER_INSPECT_PACKED_H

#include "core/format/format.h"

struct inspect_packed {
	unsigned version;   /* 0: the format has none, or it was not decoded */
	const char *method; /* NULL: not compressed */
	bool has_hash;
	uint64_t hash;
	bool hash_ok;
};

/*
 * C, whose offset refers to SRC, was decoded to PAYLOAD.  Of formats without versions nothing is
 * known.  INVALID_FORMAT: the hash is another; OUT is filled all the same.
 */
kpack_error_t inspect_packed_read(const struct kp_source *src,
				  const struct kp_container *c,
				  const struct kp_payload *payload,
				  struct inspect_packed *out, struct kpackx_error *why);

#endif
