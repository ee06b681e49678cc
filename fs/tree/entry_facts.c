/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "entry_facts.h"
#include "core/base/bounds.h"

/* One entry, and room for a hash in digits. */
struct subject {
	const struct kpack_archive *archive;
	struct kp_entry_info info;
	struct kp_meta meta;
	struct kp_span metadata;
	char hash[33];
};

enum kind { NONE, TEXT, NUMBER, PACKED };

/* TEXT and PACKED (MessagePack) have a span. */
struct value {
	enum kind kind;
	struct kp_span span;
	uint64_t number;
};

static struct value text(struct kp_span span)
{
	return (struct value){TEXT, span, 0};
}

static struct value number(uint64_t n)
{
	return (struct value){NUMBER, {0}, n};
}

static struct value archive_of(struct subject *s)
{
	return text(kp_span_str(kp_archive_path(s->archive)));
}

static struct value key_of(struct subject *s)
{
	return text(s->info.key);
}

static struct value arch_of(struct subject *s)
{
	return text(s->info.arch);
}

static struct value type_of(struct subject *s)
{
	return text(s->info.type);
}

static struct value ordinal_of(struct subject *s)
{
	return number(s->info.ordinal);
}

static struct value size_of(struct subject *s)
{
	return number(s->info.size);
}

static struct value compressed_size_of(struct subject *s)
{
	return number(s->info.stored);
}

static struct value scheme_of(struct subject *s)
{
	return text(kp_span_str(kp_archive_scheme(s->archive)));
}

static struct value chunk_of(struct subject *s)
{
	return s->meta.chunk ? number(s->meta.chunk) : (struct value){0};
}

static struct value xxh3_of(struct subject *s)
{
	if (!s->meta.has_xxh3)
		return (struct value){0};
	for (size_t i = 0; i < sizeof(s->meta.xxh3); i++)
		snprintf(s->hash + 2 * i, 3, "%02x", s->meta.xxh3[i]);
	return text(kp_span_str(s->hash));
}

static struct value metadata_of(struct subject *s)
{
	return (struct value){s->metadata.size ? PACKED : NONE, s->metadata, 0};
}

static const struct {
	const char *name;
	struct value (*get)(struct subject *s);
} facts[] = {
	{"archive", archive_of},
	{"key", key_of},
	{"arch", arch_of},
	{"type", type_of},
	{"ordinal", ordinal_of},
	{"size", size_of},
	{"compressed_size", compressed_size_of},
	{"scheme", scheme_of},
	{"chunk", chunk_of},
	{"xxh3", xxh3_of},
	{"metadata", metadata_of},
};

#define N_FACTS (sizeof(facts) / sizeof(*facts))

static void read_subject(struct subject *s, const struct kpack_archive *a, size_t entry)
{
	s->archive = a;
	kp_archive_entry(a, entry, &s->info);
	kp_archive_meta(a, entry, &s->meta);
	s->metadata = kp_archive_meta_raw(a, entry);
}

const char *facts_name(size_t position)
{
	return position < N_FACTS ? facts[position].name : NULL;
}

/* Convert MessagePack to JSON on the heap; NULL: the JSON is too large, or no memory. */
static char *json_new(struct kp_span packed)
{
	struct kp_mp c = kp_mp_over(packed);
	struct kp_span json;
	struct kp_json j;
	char *out = NULL;

	kp_json_init(&j, KP_JSON_MAX);
	kp_json_value(&j, &c);
	if (!kp_json_finish(&j, &json, NULL))
		out = strndup((const char *)json.data, json.size);
	kp_json_fini(&j);
	return out;
}

static void put_packed(struct kp_json *j, struct kp_span packed)
{
	char *json = json_new(packed);

	kp_json_raw(j, json ? json : "null");
	free(json);
}

static void put_value(struct kp_json *j, const struct value *v)
{
	switch (v->kind) {
	case NONE:
		kp_json_raw(j, "null");
		break;
	case TEXT:
		kp_json_string(j, v->span);
		break;
	case NUMBER:
		kp_json_uint(j, v->number);
		break;
	case PACKED:
		put_packed(j, v->span);
		break;
	}
}

void facts_put(struct kp_json *j, const struct kpack_archive *a, size_t entry)
{
	struct subject s;

	read_subject(&s, a, entry);
	for (size_t i = 0; i < N_FACTS; i++) {
		struct value v = facts[i].get(&s);

		kp_json_raw(j, i ? ",\"" : "\"");
		kp_json_raw(j, facts[i].name);
		kp_json_raw(j, "\":");
		put_value(j, &v);
	}
}

char *facts_text(const struct kpack_archive *a, size_t entry, size_t position)
{
	struct subject s;
	struct value v;
	char *out = NULL;

	read_subject(&s, a, entry);
	v = facts[position].get(&s);
	if (v.kind == TEXT)
		return strndup((const char *)v.span.data, v.span.size);
	if (v.kind == PACKED)
		return json_new(v.span);
	if (v.kind == NUMBER && asprintf(&out, "%" PRIu64, v.number) < 0)
		return NULL;
	return out;
}
