/* SPDX-License-Identifier: MIT */
/* The metadata map of an entry, written. */
#ifndef KP_CORE_WRITER_METADATA_H
#define KP_CORE_WRITER_METADATA_H

#include "core/archive/archive.h"
#include "core/base/errors.h"

/* Is NAME one of the fields of struct kp_meta? */
bool kp_metadata_is_field(const char *name);

/* What is said besides. */
struct kp_metadata_more {
	const struct kpackx_text *texts;
	size_t n_texts;
	struct kp_span pairs; /* names and values, as MessagePack */
	size_t n_pairs;
};

/*
 * Write what META has - spans without an address and zeros are left out - and then MORE,
 * which may be NULL, as one MessagePack map, which the caller frees.
 */
kpack_error_t kp_metadata_write(const struct kp_meta *meta,
				const struct kp_metadata_more *more, uint8_t **map,
				size_t *size, struct kpackx_error *why);

#endif
