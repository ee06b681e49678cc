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
	bool of_bundle;
} facts[] = {
	{"archive", archive_of, false},
	{"key", key_of, true},
	{"arch", arch_of, false},
	{"type", type_of, true},
	{"ordinal", ordinal_of, false},
	{"size", size_of, true},
	{"compressed_size", compressed_size_of, false},
	{"scheme", scheme_of, false},
	{"chunk", chunk_of, false},
	{"xxh3", xxh3_of, false},
	{"metadata", metadata_of, false},
};

#define N_FACTS KP_COUNT(facts)

static void read_subject(struct subject *s, const struct kpack_archive *a, size_t entry)
{
	s->archive = a;
	kp_archive_entry(a, entry, &s->info);
	kp_archive_meta(a, entry, &s->meta);
	s->metadata = kp_archive_meta_raw(a, entry);
}

/* A bundle's parts all have its key. */
static void read_bundle(struct subject *s, const struct bundle *b)
{
	const struct origin_entry *first = &b->parts[0].what;

	kp_archive_entry(first->origin->archive, first->entry, &s->info);
	s->info.type = kp_span_str("hipfb");
	s->info.size = b->size;
}

static struct value fact_of_bundle(struct subject *s, size_t position)
{
	return facts[position].of_bundle ? facts[position].get(s) : (struct value){0};
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

static void put_fact(struct kp_json *j, size_t position, const struct value *v)
{
	kp_json_raw(j, position ? ",\"" : "\"");
	kp_json_raw(j, facts[position].name);
	kp_json_raw(j, "\":");
	put_value(j, v);
}

void facts_put(struct kp_json *j, const struct kpack_archive *a, size_t entry)
{
	struct subject s;

	read_subject(&s, a, entry);
	for (size_t i = 0; i < N_FACTS; i++) {
		struct value v = facts[i].get(&s);

		put_fact(j, i, &v);
	}
}

static void put_part(struct kp_json *j, const struct bundle_part *part)
{
	const struct kpack_archive *a = part->what.origin->archive;
	struct kp_entry_info info;

	kp_archive_entry(a, part->what.entry, &info);
	kp_json_raw(j, "{\"archive\":");
	kp_json_string(j, kp_span_str(kp_archive_path(a)));
	kp_json_raw(j, ",\"arch\":");
	kp_json_string(j, info.arch);
	kp_json_raw(j, ",\"offset\":");
	kp_json_uint(j, part->offset);
	kp_json_raw(j, ",\"size\":");
	kp_json_uint(j, part->size);
	kp_json_raw(j, "}");
}

void facts_put_bundle(struct kp_json *j, const struct bundle *b)
{
	struct subject s;

	read_bundle(&s, b);
	for (size_t i = 0; i < N_FACTS; i++) {
		struct value v = fact_of_bundle(&s, i);

		put_fact(j, i, &v);
	}
	kp_json_raw(j, ",\"parts\":[");
	for (uint32_t i = 0; i < b->count; i++) {
		if (i)
			kp_json_raw(j, ",");
		put_part(j, &b->parts[i]);
	}
	kp_json_raw(j, "]");
}

static char *value_text(const struct value *v)
{
	char *out = NULL;

	if (v->kind == TEXT)
		return strndup((const char *)v->span.data, v->span.size);
	if (v->kind == PACKED)
		return json_new(v->span);
	if (v->kind == NUMBER && asprintf(&out, "%" PRIu64, v->number) < 0)
		return NULL;
	return out;
}

char *facts_text(const struct kpack_archive *a, size_t entry, size_t position)
{
	struct subject s;
	struct value v;

	read_subject(&s, a, entry);
	v = facts[position].get(&s);
	return value_text(&v);
}

char *facts_bundle_text(const struct bundle *b, size_t position)
{
	struct subject s;
	struct value v;

	read_bundle(&s, b);
	v = fact_of_bundle(&s, position);
	return value_text(&v);
}
