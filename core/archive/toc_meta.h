/* SPDX-License-Identifier: MIT */
/* The metadata of an entry: the fields that readers of archives use. */
#ifndef KP_CORE_TOC_META_H
#define KP_CORE_TOC_META_H

#include "core/base/span.h"

struct kp_mp;
struct kp_toc;
struct kp_toc_entry;

/* The known fields of an entry's metadata; absent fields are zero. */
struct kp_meta {
	struct kp_span path;   /* of the file in its tree; data NULL: absent */
	struct kp_span target; /* bundle entry ID */
	bool has_xxh3;
	uint8_t xxh3
		[16];   /* XXH3-128 of the decoded bytes, canonical (big-endian) order */
	uint32_t mode;  /* permission bits of the packed file */
	uint64_t chunk; /* decoded bytes per part of a chunked entry; 0: not chunked */
};

/* The fields that decoding needs, which are found without parsing the map. */
struct kp_decoding_facts {
	uint64_t chunk; /* as in kp_meta; 0 for schemes whose objects are no frames */
	const uint8_t *xxh3; /* 16 bytes, borrowed from the table; NULL: absent */
};

/* Where a map has these fields: offsets in the map of their values; 0: absent. */
struct kp_decoding_places {
	uint32_t chunk, xxh3;
};

/* As kp_mp_skip, for a metadata map; also finds the fields that decoding needs. */
bool kp_meta_scan(struct kp_mp *c, struct kp_decoding_places *out);

/* The fields of E.  The first of equal keys counts, and a value of another type is absent. */
void kp_toc_meta(const struct kp_toc *toc, const struct kp_toc_entry *e,
		 struct kp_meta *out);
struct kp_decoding_facts kp_toc_decoding_facts(const struct kp_toc *toc,
					       const struct kp_toc_entry *e);

#endif
