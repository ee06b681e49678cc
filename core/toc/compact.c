/* SPDX-License-Identifier: MIT */
#include "compact.h"
#include <stdlib.h>
#include "core/base/alloc.h"
#include "core/base/msgpack_read.h"

/* The bytes that stay, and how many there are so far. */
struct copy {
	struct kp_toc *toc;
	uint8_t *bytes;
	size_t size;
};

/* Returns where S stands now. */
static uint32_t put(struct copy *c, struct kp_span s)
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

static void move(struct copy *c, struct kp_span *s)
{
	if (s->data)
		s->data = c->bytes + put(c, *s);
}

static struct kp_span meta_of(const struct kp_toc *toc, const struct kp_toc_entry *e)
{
	struct kp_span rest = {toc->bytes + e->meta, toc->used - e->meta};
	struct kp_mp c = kp_mp_over(rest);

	kp_mp_skip(&c); /* was read before: a whole map */
	return (struct kp_span){rest.data, kp_mp_offset(&c)};
}

/* Where KEY stands in the metadata MAP of its entry as its first field, the path; 0: nowhere. */
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
		struct kp_span map;
		uint32_t in_map;

		if (!e->meta)
			continue;
		map = meta_of(toc, e);
		in_map = found ? 0 : path_in(map, key);
		e->meta = put(c, map);
		if (in_map)
			found = e->meta + in_map;
	}
	b->key = found;
	if (found)
		return;
	b->key = put(c, key);
	put_end(c);
}

static void move_all(struct copy *c)
{
	struct kp_toc *toc = c->toc;

	put_end(c); /* no map begins at 0: that is none */
	for (size_t i = 0; i < toc->n_binaries; i++)
		move_binary(c, i);
	for (size_t i = 0; i < toc->n_arches; i++) {
		move(c, &toc->arches[i]);
		put_end(c);
	}
	move(c, &toc->group);
	move(c, &toc->family);
	move(c, &toc->frame_index);
}

static void rebase(struct kp_span *s, const uint8_t *from, const uint8_t *to)
{
	if (s->data)
		s->data = to + (s->data - from);
}

/* Take over the bytes, in a block of their size. */
static void finish(struct copy *c)
{
	struct kp_toc *toc = c->toc;

	free(toc->bytes);
	toc->bytes = kp_large_trim(c->bytes, c->size);
	toc->size = toc->used = c->size;
	free(toc->more.runs);
	free(toc->entries_more.runs);
	toc->more = toc->entries_more = (struct kp_toc_more){0};
	for (size_t i = 0; i < toc->n_arches; i++)
		rebase(&toc->arches[i], c->bytes, toc->bytes);
	rebase(&toc->group, c->bytes, toc->bytes);
	rebase(&toc->family, c->bytes, toc->bytes);
	rebase(&toc->frame_index, c->bytes, toc->bytes);
}

void kp_toc_compact(struct kp_toc *toc)
{
	struct copy c = {.toc = toc};

	if (toc->faults.counted)
		return;
	/* A string's NUL takes the place of a head; but for the last, and the first byte. */
	c.bytes = kp_large_alloc(toc->used + 2);
	if (!c.bytes)
		return;
	move_all(&c);
	finish(&c);
}
