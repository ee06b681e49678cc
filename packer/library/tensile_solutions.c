/* SPDX-License-Identifier: MIT */
#include "tensile_solutions.h"
#include "core/base/msgpack_read.h"

#include <zlib.h>

/* Bytes decoded from a compressed file: as many as the head of a plain file has. */
enum { DECODED_MAX = 512 };

/*
 * Read the length of an array whose elements may lie beyond the end of the bytes.  The
 * cursor cannot read it, because it rejects such lengths.
 */
static bool array_length(const struct kp_mp *c, uint64_t *length)
{
	size_t left = (size_t)(c->end - c->pos);
	const uint8_t *p = c->pos;

	if (left && (*p & 0xf0) == 0x90)
		*length = *p & 0x0f;
	else if (left >= 3 && *p == 0xdc)
		*length = (uint64_t)p[1] << 8 | p[2];
	else if (left >= 5 && *p == 0xdd)
		*length = (uint64_t)p[1] << 24 | (uint64_t)p[2] << 16 |
			  (uint64_t)p[3] << 8 | p[4];
	else
		return false;
	return true;
}

bool solutions_count(struct kp_span head, uint64_t *count)
{
	struct kp_mp c = kp_mp_over(head);
	uint32_t pairs;

	for (kp_mp_map(&c, &pairs); !c.fault && pairs; pairs--) {
		struct kp_span key;

		if (kp_mp_peek(&c) != KP_MP_STR) {
			kp_mp_skip(&c);
			kp_mp_skip(&c);
			continue;
		}
		if (!kp_mp_str(&c, &key))
			return false;
		if (kp_span_is(key, "solutions"))
			return array_length(&c, count);
		if (kp_span_is(key, "solutions_index")) {
			bool counted = array_length(&c, count);

			*count /= 3;
			return counted;
		}
		kp_mp_skip(&c);
	}
	return false;
}

bool solutions_count_zlib(struct kp_span head, uint64_t *count)
{
	uint8_t decoded[DECODED_MAX];
	z_stream z = {
		.next_in = (Bytef *)head.data,
		.avail_in = (uInt)head.size,
		.next_out = decoded,
		.avail_out = sizeof(decoded),
	};
	struct kp_span out = {decoded, 0};

	if (head.size > UINT32_MAX || inflateInit(&z) != Z_OK)
		return false;
	inflate(&z, Z_SYNC_FLUSH); /* its output is used, whatever it returns */
	out.size = sizeof(decoded) - z.avail_out;
	inflateEnd(&z);
	return solutions_count(out, count);
}
