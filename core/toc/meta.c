/* SPDX-License-Identifier: MIT */
#include "meta.h"
#include "core/base/msgpack_read.h"

enum { META_PATH, META_TARGET, META_XXH3, META_MODE, META_CHUNK, META_FIELDS };

static const struct {
	const char *name;
	enum kp_mp_type type;
} meta_fields[META_FIELDS] = {
	[META_PATH] = {"path", KP_MP_STR},    [META_TARGET] = {"target", KP_MP_STR},
	[META_XXH3] = {"xxh3", KP_MP_BIN},    [META_MODE] = {"mode", KP_MP_UINT},
	[META_CHUNK] = {"chunk", KP_MP_UINT},
};

static void meta_set(int field, const struct kp_mp_value *v, struct kp_meta *out)
{
	switch (field) {
	case META_PATH:
		out->path = v->span;
		break;
	case META_TARGET:
		out->target = v->span;
		break;
	case META_XXH3:
		out->has_xxh3 = v->span.size == sizeof(out->xxh3);
		if (out->has_xxh3)
			memcpy(out->xxh3, v->span.data, sizeof(out->xxh3));
		break;
	case META_MODE:
		out->mode = (uint32_t)v->num & 07777;
		break;
	case META_CHUNK:
		out->chunk = v->num;
		break;
	}
}

/* The first of equal keys counts, as everywhere in an entry. */
static void meta_field(struct kp_span name, const struct kp_mp_value *v, unsigned *seen,
		       struct kp_meta *out)
{
	for (int i = 0; i < META_FIELDS; i++) {
		if (!kp_span_is(name, meta_fields[i].name))
			continue;
		if (!(*seen & 1u << i) && v->type == meta_fields[i].type)
			meta_set(i, v, out);
		*seen |= 1u << i;
	}
}

void kp_meta_parse(struct kp_span map, struct kp_meta *out)
{
	unsigned seen = 0;
	struct kp_mp c;
	uint32_t pairs;

	*out = (struct kp_meta){0};
	if (map.size == 0)
		return;
	c = kp_mp_over(map);
	if (!kp_mp_map(&c, &pairs))
		return;
	while (pairs--) {
		struct kp_mp_value v;
		struct kp_span name;
		struct kp_mp value;

		if (kp_mp_peek(&c) != KP_MP_STR) {
			if (!kp_mp_skip(&c) || !kp_mp_skip(&c))
				return;
			continue;
		}
		if (!kp_mp_str(&c, &name))
			return;
		value = c;
		if (!kp_mp_skip(&c) || !kp_mp_next(&value, &v))
			return;
		meta_field(name, &v, &seen, out);
	}
}
