/* SPDX-License-Identifier: MIT */
/*
 * Facts are kept as the bytes that the TOC gets: pairs of MessagePack, a name and a value, one
 * behind another, without the header of a map.  So facts are joined by appending bytes, are equal
 * if their bytes are, and the number of pairs need not be known before the last one.
 */
#include "facts.h"
#include <msgpack.h>
#include <stdlib.h>
#include "core/base/msgpack_read.h"
#include "core/base/text.h"
#include "packer/cli/xalloc.h"

static int append_bytes(void *data, const char *bytes, size_t size)
{
	struct facts *f = data;

	if (f->cap - f->size < size) {
		f->cap = 2 * f->cap + size + 64;
		f->pairs = xrealloc(f->pairs, f->cap);
	}
	if (size)
		memcpy(f->pairs + f->size, bytes, size);
	f->size += size;
	return 0;
}

static void pack_text(msgpack_packer *pk, struct kp_span text)
{
	msgpack_pack_str_with_body(pk, text.data ? (const void *)text.data : "",
				   text.size);
}

/* Begin a pair: write its name; the caller writes the value. */
static msgpack_packer begin_pair(struct facts *f, const char *name)
{
	msgpack_packer pk;

	msgpack_packer_init(&pk, f, append_bytes);
	pack_text(&pk, kp_span_str(name));
	f->count++;
	return pk;
}

void facts_text(struct facts *f, const char *name, struct kp_span text)
{
	msgpack_packer pk = begin_pair(f, name);

	pack_text(&pk, text);
}

void facts_string(struct facts *f, const char *name, const char *text)
{
	facts_text(f, name, kp_span_str(text));
}

void facts_short(struct facts *f, const char *name, struct kp_span text, size_t most)
{
	if (text.size && text.size <= most && kp_text_ok(text))
		facts_text(f, name, text);
}

void facts_number(struct facts *f, const char *name, uint64_t number)
{
	msgpack_packer pk = begin_pair(f, name);

	msgpack_pack_uint64(&pk, number);
}

void facts_signed(struct facts *f, const char *name, int64_t number)
{
	msgpack_packer pk = begin_pair(f, name);

	msgpack_pack_int64(&pk, number);
}

void facts_flag(struct facts *f, const char *name, bool flag)
{
	msgpack_packer pk = begin_pair(f, name);

	if (flag)
		msgpack_pack_true(&pk);
	else
		msgpack_pack_false(&pk);
}

void facts_bytes(struct facts *f, const char *name, struct kp_span bytes)
{
	msgpack_packer pk = begin_pair(f, name);

	msgpack_pack_bin_with_body(&pk, bytes.data ? (const void *)bytes.data : "",
				   bytes.size);
}

void facts_numbers(struct facts *f, const char *name, const uint64_t *numbers, size_t n)
{
	msgpack_packer pk = begin_pair(f, name);

	msgpack_pack_array(&pk, n);
	for (size_t i = 0; i < n; i++)
		msgpack_pack_uint64(&pk, numbers[i]);
}

void facts_texts(struct facts *f, const char *name, const struct kp_span *texts, size_t n)
{
	msgpack_packer pk = begin_pair(f, name);

	msgpack_pack_array(&pk, n);
	for (size_t i = 0; i < n; i++)
		pack_text(&pk, texts[i]);
}

void facts_map(struct facts *f, const char *name, const struct facts *map)
{
	msgpack_packer pk = begin_pair(f, name);

	msgpack_pack_map(&pk, map->count);
	append_bytes(f, (const char *)map->pairs, map->size);
}

void facts_maps(struct facts *f, const char *name, const struct facts *maps, size_t n)
{
	msgpack_packer pk = begin_pair(f, name);

	msgpack_pack_array(&pk, n);
	for (size_t i = 0; i < n; i++) {
		msgpack_pack_map(&pk, maps[i].count);
		append_bytes(f, (const char *)maps[i].pairs, maps[i].size);
	}
}

void facts_join(struct facts *f, const struct facts *other)
{
	append_bytes(f, (const char *)other->pairs, other->size);
	f->count += other->count;
}

bool facts_has(const struct facts *f, const char *name)
{
	struct kp_mp c = kp_mp_over((struct kp_span){f->pairs, f->size});
	struct kp_span key;

	for (size_t i = 0; i < f->count && kp_mp_str(&c, &key); i++) {
		if (kp_span_is(key, name))
			return true;
		kp_mp_skip(&c);
	}
	return false;
}

void facts_fini(struct facts *f)
{
	free(f->pairs);
	*f = (struct facts){0};
}
