/* SPDX-License-Identifier: MIT */
/* The metadata of an entry: the members that readers of archives act on. */
#ifndef KP_CORE_TOC_META_H
#define KP_CORE_TOC_META_H

#include "core/base/span.h"

/* What an entry's metadata says; absent members are zero. */
struct kp_meta {
	struct kp_span path;   /* where the file stood in its tree; data NULL: not said */
	struct kp_span target; /* bundle entry ID */
	bool has_xxh3;
	uint8_t xxh3
		[16];   /* XXH3-128 of the decoded bytes, canonical (big-endian) order */
	uint32_t mode;  /* permission bits of the packed file */
	uint64_t chunk; /* decoded bytes per frame of a chunked entry; 0: one frame */
};

/* Read MAP, as stored; of equal keys the first counts.  An empty span is no metadata. */
void kp_meta_parse(struct kp_span map, struct kp_meta *out);

#endif
