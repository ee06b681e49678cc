/* SPDX-License-Identifier: MIT */
/* The metadata map of an entry, written. */
#ifndef KP_METADATA_H
#define KP_METADATA_H

#include "archive.h"
#include "error.h"

/* Is NAME one of the fields of struct kp_meta? */
bool kp_metadata_is_field(const char *name);

/*
 * Write what META has - spans without an address and zeros are left out - and then the
 * TEXTS as one MessagePack map, which the caller frees.
 */
kpack_error_t kp_metadata_write(const struct kp_meta *meta,
				const struct kpackx_text *texts, size_t n_texts,
				uint8_t **map, size_t *size, struct kpackx_error *why);

#endif
