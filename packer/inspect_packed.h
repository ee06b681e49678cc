/* SPDX-License-Identifier: MIT */
/* How a container is compressed, and whether its content is what its hash says. */
#ifndef INSPECT_PACKED_H
#define INSPECT_PACKED_H

#include "format/format.h"

struct inspect_packed {
	bool known; /* it is a compressed bundle and was decoded */
	unsigned version;
	const char *method;
	uint64_t hash;
	bool hash_ok;
};

/*
 * C, whose offset refers to SRC, was decoded to PAYLOAD.  Of formats without a hash nothing is
 * known.  INVALID_FORMAT: the hash is another; OUT is filled all the same.
 */
kpack_error_t inspect_packed_read(const struct kp_source *src,
				  const struct kp_container *c,
				  const struct kp_payload *payload,
				  struct inspect_packed *out, struct kpackx_error *why);

#endif
