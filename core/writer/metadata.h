/* SPDX-License-Identifier: MIT */
/* Writing the metadata map of an entry. */
#ifndef KP_CORE_WRITER_METADATA_H
#define KP_CORE_WRITER_METADATA_H

#include "core/archive/archive.h"
#include "core/base/errors.h"

/* Whether NAME is the name of a field of struct kp_meta. */
bool kp_metadata_is_field(const char *name);

/* Further pairs of a metadata map. */
struct kp_metadata_more {
	const struct kpackx_text *texts;
	size_t n_texts;
	struct kp_span pairs; /* names and values, as MessagePack */
	size_t n_pairs;
};

/*
 * Write the fields of META - spans without an address and zeros are omitted - and then
 * MORE, which may be NULL, as one MessagePack map.  The caller frees *MAP.
 * OUT_OF_MEMORY.
 */
kpack_error_t kp_metadata_write(const struct kp_meta *meta,
				const struct kp_metadata_more *more, uint8_t **map,
				size_t *size, struct kpackx_error *why);

#endif
