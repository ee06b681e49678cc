/* SPDX-License-Identifier: MIT */
#include "toc_meta.h"
#include "core/base/msgpack_read.h"
#include "toc.h"

/* --- fields for decoding ---------------------------------------------------------- */

/* The offset from MAP of the hash that VALUE begins; 0: it is none. */
static uint32_t hash_place(const uint8_t *map, struct kp_mp value)
{
	struct kp_mp_value v;

	if (!kp_mp_next(&value, &v) || v.type != KP_MP_BIN || v.span.size != 16)
		return 0;
	return (uint32_t)(v.span.data - map);
}

/* The offset from MAP of the number VALUE; 0: it is none, or zero. */
static uint32_t number_place(const uint8_t *map, struct kp_mp value)
{
	uint32_t at = (uint32_t)(value.pos - map);
	struct kp_mp_value v;

	return kp_mp_next(&value, &v) && v.type == KP_MP_UINT && v.num ? at : 0;
}

bool kp_meta_scan(struct kp_mp *c, struct kp_decoding_places *out)
{
	bool xxh3 = false, chunk = false; /* seen */
	const uint8_t *map = c->pos;
	uint32_t pairs;

	*out = (struct kp_decoding_places){0};
	if (!kp_mp_map(c, &pairs))
		return false;
	while (pairs--) {
		struct kp_span name = {0};
		struct kp_mp value;

		if (kp_mp_peek(c) == KP_MP_STR ? !kp_mp_str(c, &name)
					       : !kp_mp_skip_nested(c, 1))
			return false;
		value = *c;
		if (!kp_mp_skip_nested(c, 1))
			return false;
		if (!xxh3 && kp_span_is(name, "xxh3")) {
			out->xxh3 = hash_place(map, value);
			xxh3 = true;
		} else if (!chunk && kp_span_is(name, "chunk")) {
			out->chunk = number_place(map, value);
			chunk = true;
		}
	}
	return true;
}

struct kp_decoding_facts kp_toc_decoding_facts(const struct kp_toc *toc,
					       const struct kp_toc_entry *e)
{
	const uint8_t *map = toc->bytes + e->meta.at, *word = map;
	struct kp_decoding_facts facts = {0};

	if (e->meta.has_xxh3) {
		word -= 4;
		facts.xxh3 = map + kp_le32(word);
	}
	if (e->meta.has_chunk && toc->scheme == KPACK_COMPRESSION_ZSTD_PER_KERNEL) {
		struct kp_mp c = kp_mp_over(kp_toc_meta_map(toc, e));

		c.pos += kp_le32(word - 4);
		kp_mp_uint(&c, &facts.chunk);
	}
	return facts;
}

/* --- all fields ------------------------------------------------------------------- */

/* The fields of the metadata that are read here; the first of equal keys counts. */
enum meta_field { META_PATH, META_TARGET, META_MODE, META_OTHER };

static enum meta_field meta_field_of(struct kp_span name)
{
	if (name.size == 4)
		return kp_span_is(name, "path")   ? META_PATH
		       : kp_span_is(name, "mode") ? META_MODE
						  : META_OTHER;
	return kp_span_is(name, "target") ? META_TARGET : META_OTHER;
}

/* Read the next value, which is one of FIELD.  A value of another type is absent. */
static bool parse_meta_field(struct kp_mp *c, enum meta_field field, struct kp_meta *out)
{
	enum kp_mp_type type = kp_mp_peek(c);
	uint64_t mode;

	if (field == META_MODE && type == KP_MP_UINT) {
		if (!kp_mp_uint(c, &mode))
			return false;
		out->mode = (uint32_t)mode & 07777;
		return true;
	}
	if (field != META_MODE && type == KP_MP_STR)
		return kp_mp_str(c, field == META_PATH ? &out->path : &out->target);
	return kp_mp_skip(c);
}

static void parse_map(struct kp_span map, struct kp_meta *out)
{
	unsigned seen = 1u << META_OTHER;
	struct kp_mp c;
	uint32_t pairs;

	if (map.size == 0)
		return;
	c = kp_mp_over(map);
	if (!kp_mp_map(&c, &pairs))
		return;
	while (pairs--) {
		enum meta_field field;
		struct kp_span name;

		if (kp_mp_peek(&c) != KP_MP_STR) {
			if (!kp_mp_skip(&c) || !kp_mp_skip(&c))
				return;
			continue;
		}
		if (!kp_mp_str(&c, &name))
			return;
		field = meta_field_of(name);
		if (seen & 1u << field ? !kp_mp_skip(&c)
				       : !parse_meta_field(&c, field, out))
			return;
		seen |= 1u << field;
	}
}

void kp_toc_meta(const struct kp_toc *toc, const struct kp_toc_entry *e,
		 struct kp_meta *out)
{
	struct kp_decoding_facts facts = kp_toc_decoding_facts(toc, e);

	*out = (struct kp_meta){.has_xxh3 = facts.xxh3, .chunk = facts.chunk};
	if (facts.xxh3)
		memcpy(out->xxh3, facts.xxh3, sizeof(out->xxh3));
	parse_map(kp_toc_meta_map(toc, e), out);
}
