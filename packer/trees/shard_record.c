/* SPDX-License-Identifier: MIT */
#include "shard_record.h"
#include <stdlib.h>
#include "core/base/bounds.h"
#include "core/base/scheme.h"
#include "packer/cli/xalloc.h"
#include "core/target/target.h"
#include "core/base/text.h"

struct parser {
	struct kp_mp c;
	struct shard_record *out;
	bool open;     /* a binary began, its events go on */
	bool object;   /* an entry may follow */
	uint32_t last; /* ordinal of the object */
};

/* --- values -------------------------------------------------------------------------- */

static bool get_bytes(struct kp_mp *c, struct kp_span *out)
{
	struct kp_mp_value v;

	if (!kp_mp_next(c, &v))
		return false;
	if (v.type != KP_MP_BIN)
		return kp_mp_fault(c, "expected bytes");
	*out = v.span;
	return true;
}

static bool get_number(struct kp_mp *c, uint64_t max, uint64_t *out)
{
	if (!kp_mp_uint(c, out))
		return false;
	return *out <= max || kp_mp_fault(c, "a number is too large");
}

static bool get_hash(struct kp_mp *c, uint8_t out[16])
{
	struct kp_span s = {0};

	if (!get_bytes(c, &s))
		return false;
	if (s.size != 16)
		return kp_mp_fault(c, "a hash is not 16 bytes long");
	memcpy(out, s.data, 16);
	return true;
}

/* Text on the heap, of at most MAX bytes, without a NUL. */
static bool get_text(struct kp_mp *c, size_t max, char **out)
{
	struct kp_span s = {0};

	if (!get_bytes(c, &s))
		return false;
	if (s.size > max || memchr(s.data, 0, s.size))
		return kp_mp_fault(c, "a text is too long, or has a NUL");
	*out = xstrndup((const char *)s.data, s.size);
	return true;
}

/* As get_text, into OUT, and not empty. */
static bool get_name(struct kp_mp *c, char out[SHARD_NAME_MAX + 1])
{
	struct kp_span s = {0};

	if (!get_bytes(c, &s))
		return false;
	if (s.size == 0 || s.size > SHARD_NAME_MAX || memchr(s.data, 0, s.size))
		return kp_mp_fault(c, "a name is empty, too long, or has a NUL");
	memcpy(out, s.data, s.size);
	out[s.size] = 0;
	return true;
}

static bool get_path(struct kp_mp *c, bool empty, char **out)
{
	if (!get_text(c, KP_NAME_MAX, out))
		return false;
	return (empty && !**out) || kp_path_inside(*out) ||
	       kp_mp_fault(c, "a path leads out of the part");
}

/* --- the head ------------------------------------------------------------------------ */

static bool get_families(struct kp_mp *c, struct families *out)
{
	uint32_t n;

	if (!kp_mp_array(c, &n))
		return false;
	for (uint32_t i = 0; i < n; i++) {
		struct kp_span name;
		char *text, *equals;
		bool ok;

		if (!get_text(c, KP_NAME_MAX, &text))
			return false;
		equals = strchrnul(text, '=');
		name = (struct kp_span){(uint8_t *)text, (size_t)(equals - text)};
		ok = *equals && !families_add(out, name, equals + 1, NULL);
		free(text);
		if (!ok)
			return kp_mp_fault(c, "a family is not NAME=ARCH,...");
	}
	return true;
}

static bool get_rest(struct kp_mp *c, struct shard_record *out)
{
	uint64_t index, count, archives_only, scheme, level;

	if (!get_text(c, SHARD_NAME_MAX, &out->version) ||
	    !get_number(c, SHARDS_MAX, &index) || !get_number(c, SHARDS_MAX, &count) ||
	    !get_number(c, 1, &archives_only) ||
	    !get_number(c, KP_COMPRESSION_ZSTD_SHARED, &scheme) ||
	    !get_number(c, KP_LEVEL_MAX, &level) ||
	    !get_number(c, UINT64_MAX, &out->volume_size) ||
	    !get_text(c, SHARD_NAME_MAX, &out->group) ||
	    !get_text(c, SIZE_MAX, &out->options) || !get_hash(c, out->plan) ||
	    !get_families(c, &out->families))
		return false;
	out->shard = (struct shard){(unsigned)index, (unsigned)count};
	out->archives_only = archives_only;
	out->scheme = (kpack_compression_t)scheme;
	out->level = (int)level;
	if (index == 0 || index > count || out->volume_size == 0)
		return kp_mp_fault(c, "the shard or the volume size is not valid");
	return kp_component_ok(kp_span_str(out->group)) ||
	       kp_mp_fault(c, "the group gives no file name");
}

static kpack_error_t parse_head(struct kp_mp *c, struct shard_record *out,
				struct kpackx_error *why)
{
	struct kp_span kind;
	uint64_t version;
	uint32_t n;

	if (!kp_mp_array(c, &n) || !kp_mp_str(c, &kind) ||
	    !kp_span_is(kind, "kpack shard") || !kp_mp_uint(c, &version))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "is no record");
	if (version != SHARD_RECORD_VERSION)
		return kp_fail(why, KPACK_ERROR_UNSUPPORTED_VERSION,
			       "version %llu, this program knows %d",
			       (unsigned long long)version, SHARD_RECORD_VERSION);
	if (n != 13)
		kp_mp_fault(c, "the head has not 13 fields");
	get_rest(c, out);
	return c->fault ? kp_mp_fail(c, "record", why) : KPACK_SUCCESS;
}

/* --- kinds of events ----------------------------------------------------------------- */

static bool get_need(struct kp_mp *c, struct archive_need *need)
{
	char place[SHARD_NAME_MAX + 1];
	uint64_t frames;
	uint32_t n;

	if (!kp_mp_array(c, &n))
		return false;
	if (n != 3)
		return kp_mp_fault(c, "a need has not 3 fields");
	if (!get_name(c, place) || !get_number(c, UINT64_MAX, &need->bytes) ||
	    !get_number(c, UINT32_MAX, &frames))
		return false;
	need->frames = (uint32_t)frames;
	need->place = xstrdup(place);
	return true;
}

static bool get_binary(struct parser *p)
{
	struct shard_record *r = p->out;
	uint64_t number, volume;
	struct shard_binary *b;
	uint32_t n;

	xgrow(&r->binaries, r->n_binaries, &r->binaries_cap, sizeof(*b));
	b = &r->binaries[r->n_binaries++];
	*b = (struct shard_binary){0};
	if (!get_number(&p->c, UINT32_MAX, &number) ||
	    !get_text(&p->c, KP_NAME_MAX, &b->key) ||
	    !get_number(&p->c, UINT32_MAX, &volume) || !kp_mp_array(&p->c, &n))
		return false;
	if (volume == 0 || (r->n_binaries > 1 && number <= b[-1].number))
		return kp_mp_fault(&p->c, "binaries are not in order");
	if (n > KP_STRINGS_MAX)
		return kp_mp_fault(&p->c, "more needs than an archive has names");
	b->number = (uint32_t)number;
	b->volume = (unsigned)volume;
	b->needs = calloc((size_t)n + 1, sizeof(*b->needs));
	for (uint32_t i = 0; b->needs && i < n; i++, b->n_needs++)
		if (!get_need(&p->c, &b->needs[i]))
			return false;
	b->events = (struct kp_span){p->c.pos, 0};
	p->open = true;
	p->object = false;
	return b->needs || kp_mp_fault(&p->c, "out of memory");
}

static bool get_object(struct kp_mp *c, struct shard_event *e)
{
	uint64_t ordinal;

	e->is_entry = false;
	if (!get_name(c, e->place) || !get_hash(c, e->content.hash) ||
	    !get_number(c, KP_CHUNKED_MAX, &e->content.size) ||
	    !get_number(c, KP_CHUNK_MAX, &e->content.chunk) ||
	    !get_number(c, UINT32_MAX, &ordinal))
		return false;
	e->ordinal = (uint32_t)ordinal;
	return true;
}

static bool get_entry(struct kp_mp *c, struct shard_event *e)
{
	e->is_entry = true;
	return get_name(c, e->arch) && get_bytes(c, &e->key) && get_bytes(c, &e->type) &&
	       get_bytes(c, &e->metadata);
}

/* Check an event of the current binary, and count it to its events. */
static bool check_event(struct parser *p, bool entry)
{
	struct shard_event e;

	if (!p->open || (entry && !p->object))
		return kp_mp_fault(&p->c, "an object without a binary, or an entry "
					  "without an object");
	if (!(entry ? get_entry(&p->c, &e) : get_object(&p->c, &e)))
		return false;
	p->object = true;
	p->out->binaries[p->out->n_binaries - 1].events.size =
		(size_t)(p->c.pos - p->out->binaries[p->out->n_binaries - 1].events.data);
	return true;
}

static bool get_converted(struct parser *p)
{
	struct shard_record *r = p->out;
	struct shard_converted *item;
	uint64_t number;

	xgrow(&r->converted, r->n_converted, &r->converted_cap, sizeof(*item));
	item = &r->converted[r->n_converted++];
	*item = (struct shard_converted){0};
	p->open = false;
	if (!get_number(&p->c, UINT32_MAX, &number) ||
	    !get_path(&p->c, false, &item->path))
		return false;
	item->number = (uint32_t)number;
	return r->n_converted == 1 || item[-1].number < number ||
	       kp_mp_fault(&p->c, "converted binaries are not in order");
}

static bool get_item(struct parser *p)
{
	struct shard_record *r = p->out;
	struct shard_item *item;
	uint64_t kind;

	xgrow(&r->items, r->n_items, &r->items_cap, sizeof(*item));
	item = &r->items[r->n_items++];
	*item = (struct shard_item){0};
	p->open = false;
	if (!get_number(&p->c, SHARD_KINDS - 1, &kind) ||
	    !get_path(&p->c, kind == SHARD_DIRECTORY, (char **)&item->path) ||
	    !get_number(&p->c, INT64_MAX, &item->size) ||
	    !get_number(&p->c, UINT32_MAX, &item->mode) ||
	    !get_number(&p->c, UINT64_MAX, &item->seconds) ||
	    !get_number(&p->c, 999999999, &item->nanoseconds) ||
	    !get_hash(&p->c, item->hash) || !get_hash(&p->c, item->attributes) ||
	    !get_path(&p->c, true, (char **)&item->first))
		return false;
	item->kind = (enum shard_kind)kind;
	return (item->kind == SHARD_LINK) == (*item->first != 0) ||
	       kp_mp_fault(&p->c, "a link without its first path");
}

static bool get_event(struct parser *p, struct kp_span kind, uint32_t n)
{
	if (kp_span_is(kind, "b") && n == 5)
		return get_binary(p);
	if (kp_span_is(kind, "o") && n == 6)
		return check_event(p, false);
	if (kp_span_is(kind, "e") && n == 5)
		return check_event(p, true);
	if (kp_span_is(kind, "c") && n == 3)
		return get_converted(p);
	if (kp_span_is(kind, "i") && n == 10)
		return get_item(p);
	return kp_mp_fault(&p->c, "an event of no known kind");
}

/* --- all together -------------------------------------------------------------------- */

/*
 * Check the end and the checksum: a record that is cut short or has a changed bit is
 * invalid.
 */
static kpack_error_t check_end(struct parser *p, struct kp_span bytes, size_t end,
			       struct kpackx_error *why)
{
	struct kp_hash sum = kp_hash_of(bytes.data, end);
	uint8_t hash[16];

	if (!get_hash(&p->c, hash))
		return kp_mp_fail(&p->c, "record", why);
	if (p->c.pos != p->c.end || !kp_hash_is(&sum, hash))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "is damaged: its checksum does not match");
	memcpy(p->out->hash, hash, sizeof(hash));
	return KPACK_SUCCESS;
}

static kpack_error_t parse_events(struct parser *p, struct kp_span bytes,
				  struct kpackx_error *why)
{
	for (;;) {
		size_t at = kp_mp_offset(&p->c);
		struct kp_span kind;
		uint32_t n;

		if (!kp_mp_array(&p->c, &n) || !kp_mp_str(&p->c, &kind))
			return kp_mp_fail(&p->c, "record", why);
		if (kp_span_is(kind, "z") && n == 2)
			return check_end(p, bytes, at, why);
		if (!get_event(p, kind, n))
			return kp_mp_fail(&p->c, "record", why);
	}
}

kpack_error_t shard_record_parse(struct kp_span bytes, struct shard_record *out,
				 struct kpackx_error *why)
{
	struct parser p = {.c = kp_mp_over(bytes), .out = out};

	*out = (struct shard_record){0};
	KP_TRY(parse_head(&p.c, out, why));
	return parse_events(&p, bytes, why);
}

static void free_binary(struct shard_binary *b)
{
	for (size_t i = 0; b->needs && i < b->n_needs; i++)
		free((char *)b->needs[i].place);
	free(b->needs);
	free(b->key);
}

void shard_record_fini(struct shard_record *record)
{
	for (size_t i = 0; i < record->n_items; i++) {
		free((char *)record->items[i].path);
		free((char *)record->items[i].first);
	}
	for (size_t i = 0; i < record->n_binaries; i++)
		free_binary(&record->binaries[i]);
	for (size_t i = 0; i < record->n_converted; i++)
		free(record->converted[i].path);
	families_fini(&record->families);
	free(record->items);
	free(record->binaries);
	free(record->converted);
	free(record->version);
	free(record->group);
	free(record->options);
	*record = (struct shard_record){0};
}

bool shard_event_next(struct kp_mp *events, struct shard_event *out)
{
	struct kp_span kind;
	uint32_t n;

	if (events->pos == events->end || !kp_mp_array(events, &n) ||
	    !kp_mp_str(events, &kind))
		return false;
	return kp_span_is(kind, "e") ? get_entry(events, out) : get_object(events, out);
}
