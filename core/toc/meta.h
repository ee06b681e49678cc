/* SPDX-License-Identifier: MIT */
/* The metadata of an entry: the fields that readers of archives use. */
#ifndef KP_CORE_TOC_META_H
#define KP_CORE_TOC_META_H

#include "core/base/span.h"

/* The known fields of an entry's metadata; absent fields are zero. */
struct kp_meta {
	struct kp_span path;   /* of the file in its tree; data NULL: absent */
	struct kp_span target; /* bundle entry ID */
	bool has_xxh3;
	uint8_t xxh3
		[16];   /* XXH3-128 of the decoded bytes, canonical (big-endian) order */
	uint32_t mode;  /* permission bits of the packed file */
	uint64_t chunk; /* decoded bytes per frame of a chunked entry; 0: one frame */
};

/* Parse MAP, as stored; the first of equal keys counts.  An empty span: no metadata. */
void kp_meta_parse(struct kp_span map, struct kp_meta *out);

#endif
