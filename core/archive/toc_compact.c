/* SPDX-License-Identifier: MIT */
#include "toc_compact.h"
#include <stdlib.h>
#include "core/base/alloc.h"
#include "core/base/msgpack_read.h"

/* The copy of the bytes to keep, and its size so far. */
struct copy {
	struct kp_toc *toc;
	uint8_t *bytes;
	size_t size;
};

/* Append S; returns its new offset. */
static uint32_t put_span(struct copy *c, struct kp_span s)
{
	uint32_t at = (uint32_t)c->size;

	memcpy(c->bytes + at, s.data, s.size);
	c->size += s.size;
	return at;
}

static void put_end(struct copy *c)
{
	c->bytes[c->size++] = '\0';
}

static void move_span(struct copy *c, struct kp_span *s)
{
	if (s->data)
		s->data = c->bytes + put_span(c, *s);
}

static struct kp_span meta_of(const struct kp_toc *toc, const struct kp_toc_entry *e)
{
	struct kp_span rest = kp_toc_meta_map(toc, e);
	struct kp_mp c = kp_mp_over(rest);

	kp_mp_skip(&c); /* cannot fail: the parser has read this map */
	return (struct kp_span){rest.data, kp_mp_offset(&c)};
}

/*
 * Offset of KEY in its entry's metadata MAP, whose first field is the path; 0: not there.
 */
static uint32_t path_in(struct kp_span map, struct kp_span key)
{
	struct kp_mp c = kp_mp_over(map);
	struct kp_span name, path;
	uint32_t pairs;

	if (!kp_mp_map(&c, &pairs) || pairs == 0 || kp_mp_peek(&c) != KP_MP_STR ||
	    !kp_mp_str(&c, &name) || !kp_span_is(name, "path") ||
	    kp_mp_peek(&c) != KP_MP_STR || !kp_mp_str(&c, &path) ||
	    !kp_span_eq(path, key))
		return 0;
	return (uint32_t)(path.data - map.data);
}

static void move_binary(struct copy *c, size_t binary)
{
	struct kp_toc *toc = c->toc;
	struct kp_toc_binary *b = &toc->binaries[binary];
	struct kp_span key = kp_toc_key(toc, binary);
	uint32_t found = 0;

	for (uint32_t i = b->first; i < b[1].first; i++) {
		struct kp_toc_entry *e = &toc->entries[i];
		size_t notes = 4 * ((size_t)e->meta.has_chunk + e->meta.has_xxh3);
		struct kp_span map;
		uint32_t in_map;

		if (!e->meta.at)
			continue;
		map = meta_of(toc, e);
		in_map = found ? 0 : path_in(map, key);
		put_span(c, (struct kp_span){map.data - notes, notes});
		e->meta.at = put_span(c, map) & KP_META_AT_MAX;
		if (in_map)
			found = e->meta.at + in_map;
	}
	b->key = found;
	if (found)
		return;
	b->key = put_span(c, key);
	put_end(c);
}

static void move_all(struct copy *c)
{
	struct kp_toc *toc = c->toc;

	put_end(c); /* offset 0 means no map, so no map may begin there */
	for (size_t i = 0; i < toc->n_binaries; i++)
		move_binary(c, i);
	for (size_t i = 0; i < toc->n_arches; i++) {
		move_span(c, &toc->arches[i]);
		put_end(c);
	}
	move_span(c, &toc->group);
	move_span(c, &toc->family);
	move_span(c, &toc->frame_index);
	move_span(c, &toc->piece_hashes);
}

static void rebase_span(struct kp_span *s, const uint8_t *from, const uint8_t *to)
{
	if (s->data)
		s->data = to + (s->data - from);
}

/* Replace the table's bytes by the copy, in a block of the copy's size. */
static void finish_copy(struct copy *c)
{
	struct kp_toc *toc = c->toc;

	free(toc->bytes);
	toc->bytes = kp_large_trim(c->bytes, c->size);
	toc->size = toc->used = c->size;
	free(toc->more.runs);
	free(toc->entries_more.runs);
	toc->more = toc->entries_more = (struct kp_toc_more){0};
	for (size_t i = 0; i < toc->n_arches; i++)
		rebase_span(&toc->arches[i], c->bytes, toc->bytes);
	rebase_span(&toc->group, c->bytes, toc->bytes);
	rebase_span(&toc->family, c->bytes, toc->bytes);
	rebase_span(&toc->frame_index, c->bytes, toc->bytes);
	rebase_span(&toc->piece_hashes, c->bytes, toc->bytes);
}

void kp_toc_compact(struct kp_toc *toc)
{
	struct copy c = {.toc = toc};

	if (toc->faults.counted)
		return;
	/* NULs replace the strings' heads; plus the last NUL and the first byte */
	c.bytes = kp_large_alloc(toc->used + 2);
	if (!c.bytes)
		return;
	move_all(&c);
	finish_copy(&c);
}
