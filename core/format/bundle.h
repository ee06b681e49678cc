/* SPDX-License-Identifier: MIT */
/*
 * The header of a plain offload bundle, for the two formats it begins: a
 * bundle in a file, and what a compressed bundle decodes to.
 */
#ifndef KP_BUNDLE_H
#define KP_BUNDLE_H

#include "format.h"

#define KP_BUNDLE_HEADER_MIN 32

/*
 * Append bytes [have, want) of the bundle at BUF + have.  WANT is never above the size
 * given to kp_bundle_list and only grows.
 */
typedef kpack_error_t kp_bundle_more_fn(void *arg, uint8_t *buf, size_t have, size_t want,
					struct kpackx_error *why);

/*
 * List the entries of a bundle of which SIZE bytes exist, fetching its header and little
 * more through MORE.  END becomes the end of the last entry, or of the header.
 * INVALID_FORMAT: counts, lengths or ranges that do not fit into SIZE bytes.
 */
kpack_error_t kp_bundle_list(kp_bundle_more_fn *more, void *arg, uint64_t size,
			     struct kp_container *c, struct kp_containers *list,
			     uint64_t *end, struct kpackx_error *why);

bool kp_bundle_probe(struct kp_span head);

#endif
