/* SPDX-License-Identifier: MIT */
/* A container's version, its compression, and whether its content matches its hash. */
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
 * Fill OUT for container C in SRC, which was decoded to PAYLOAD.  For formats without
 * versions OUT stays as it is.  INVALID_FORMAT: the hash differs; OUT is filled
 * nevertheless.
 */
kpack_error_t inspect_packed_read(const struct kp_source *src,
				  const struct kp_container *c,
				  const struct kp_payload *payload,
				  struct inspect_packed *out, struct kpackx_error *why);

#endif
