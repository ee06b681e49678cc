/* SPDX-License-Identifier: MIT */
/*
 * The extents of all objects: for each object the number of its extents, then for each
 * extent
 *
 *   n << 1      n unique bytes that follow those of the last such extent
 *   n << 1 | 1  n bytes that are elsewhere; then the distance from the end of the last
 *               such extent, in zigzag form
 *
 * All numbers are LEB128.
 */
#include <stdlib.h>
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "shared_internal.h"
#include "block_reach.h"

struct parser {
	struct kp_shared *s;
	const uint8_t *at, *end;
	uint64_t next_unique, next_elsewhere; /* positions */
	struct kp_reach reach;
	size_t objects_cap, extents_cap;
	const char *fault;
};

static bool get_number(struct parser *p, uint64_t *out)
{
	*out = 0;
	for (unsigned shift = 0; p->at < p->end && shift < 63; shift += 7) {
		uint8_t byte = *p->at++;

		*out |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return true;
	}
	p->fault = "a number has no end";
	return false;
}

/* Get an extent; *IS_NEW: its bytes are unique ones that no extent before it had. */
static bool get_extent(struct parser *p, uint64_t *pos, uint64_t *size, bool *is_new)
{
	uint64_t head, distance = 0;

	if (!get_number(p, &head))
		return false;
	*size = head >> 1;
	*is_new = !(head & 1);
	if (!*is_new && !get_number(p, &distance))
		return false;
	/* both have 63 bits at most: a sum that is outside wraps to one that is, too */
	*pos = *is_new ? p->next_unique
		       : p->next_elsewhere + ((distance >> 1) ^ (0 - (distance & 1)));
	if (!*size || !kp_range_ok(p->s->unique_size, *pos, *size)) {
		p->fault = "an extent is empty, or outside the unique bytes";
		return false;
	}
	*(*is_new ? &p->next_unique : &p->next_elsewhere) = *pos + *size;
	return true;
}

/* Where in the file the byte POS is stored, as far as a byte of a block has a place. */
static uint64_t stored_at(const struct kp_shared *s, uint64_t pos)
{
	uint32_t frame = (uint32_t)(pos / s->block_size) + kp_shared_first_block(s);
	uint64_t stored, size;

	if (frame == s->n_frames)
		return s->offsets[frame];
	stored = s->offsets[frame + 1] - s->offsets[frame];
	size = kp_shared_frame_size(s, frame);
	return s->offsets[frame] + (pos % s->block_size) * stored / size;
}

static bool add_extent(struct parser *p, struct kp_shared_object *o)
{
	uint64_t pos, size;
	bool is_new;

	if (!get_extent(p, &pos, &size, &is_new))
		return false;
	if (size > KP_OBJECT_MAX - o->size) {
		p->fault = "an object is too large";
		return false;
	}
	if (!kp_reach_add(&p->reach, o->size, pos, size)) {
		p->fault = "a span is in more than 16 blocks, or more than 4096 extents "
			   "begin in it";
		return false;
	}
	if (!kp_grow(&p->s->extents, p->s->n_extents, &p->extents_cap,
		     sizeof(*p->s->extents)))
		return false;
	p->s->extents[p->s->n_extents++] = (struct kp_extent){o->size, pos};
	o->size += size;
	if (is_new)
		o->stored += stored_at(p->s, pos + size) - stored_at(p->s, pos);
	return true;
}

static bool add_object(struct parser *p)
{
	struct kp_shared_object o = {.first = p->s->n_extents};
	uint64_t n;

	if (p->s->n_objects == KP_SHARED_OBJECTS_MAX) {
		p->fault = "too many objects";
		return false;
	}
	if (!get_number(p, &n))
		return false;
	if (n > (size_t)(p->end - p->at)) {
		p->fault = "more extents than bytes can hold";
		return false;
	}
	kp_reach_begin(&p->reach, p->s->block_size, KP_SHARED_SPAN_BLOCKS);
	for (; n; n--)
		if (!add_extent(p, &o))
			return false;
	/* one more: the sentinel */
	if (!kp_grow(&p->s->objects, (size_t)p->s->n_objects + 1, &p->objects_cap,
		     sizeof(*p->s->objects)))
		return false;
	p->s->objects[p->s->n_objects++] = o;
	return true;
}

/* --- bytes of no extent of the first kind ----------------------------------------------- */

/* The bytes of each block that no object has been given yet, and where to look for more. */
struct leftovers {
	uint64_t *bytes;
	uint32_t *next; /* a block from this one on that may have some; N: none */
	uint32_t n;
};

static uint32_t next_with_some(struct leftovers *l, uint32_t block)
{
	uint32_t found = block, after;

	while (found < l->n && !l->bytes[found])
		found = l->next[found];
	for (; block < found; block = after) {
		after = l->next[block];
		l->next[block] = found;
	}
	return found;
}

/* Give bytes of the blocks that an extent is in to its object. */
static uint64_t give_extent(const struct kp_shared *s, struct leftovers *l, uint64_t pos,
			    uint64_t size)
{
	uint32_t last = (uint32_t)((pos + size - 1) / s->block_size);
	uint64_t stored = 0;

	for (uint32_t b = next_with_some(l, (uint32_t)(pos / s->block_size)); b <= last;
	     b = next_with_some(l, b + 1)) {
		struct kp_shared_frame f =
			kp_shared_frame(s, b + kp_shared_first_block(s));
		uint64_t begin = b * s->block_size, end = begin + f.size, n, left;

		if (begin < pos)
			begin = pos;
		if (end > pos + size)
			end = pos + size;
		n = end - begin < l->bytes[b] ? end - begin : l->bytes[b];
		left = l->bytes[b] - n;
		stored += l->bytes[b] * f.stored / f.size - left * f.stored / f.size;
		l->bytes[b] = left;
	}
	return stored;
}

static void give_leftovers(struct kp_shared *s, struct leftovers *l, uint64_t from)
{
	for (uint32_t i = 0; i < l->n; i++) {
		uint64_t begin = i * s->block_size;
		uint64_t size = kp_shared_frame_size(s, i + kp_shared_first_block(s));

		l->next[i] = i + 1;
		l->bytes[i] = begin >= from         ? size
			      : begin + size > from ? begin + size - from
						    : 0;
	}
	for (uint32_t o = 0; o < s->n_objects; o++)
		for (size_t i = 0; i < kp_shared_extent_count(s, o); i++) {
			uint64_t pos, size;

			kp_shared_extent(s, o, i, &pos, &size);
			if (pos + size > from)
				s->objects[o].stored += give_extent(
					s, l, pos < from ? from : pos,
					pos < from ? pos + size - from : size);
		}
}

/*
 * The unique bytes FROM on are of no extent of the first kind, as in archives whose blocks
 * were copied from another one: so much of each block as an object has of it is its part,
 * until all of the block is given away.
 */
static kpack_error_t share_leftovers(struct kp_shared *s, uint64_t from,
				     struct kpackx_error *why)
{
	struct leftovers l = {.n = s->n_frames - kp_shared_first_block(s)};
	bool ok;

	if (from == s->unique_size)
		return KPACK_SUCCESS;
	l.bytes = malloc(l.n * sizeof(*l.bytes));
	l.next = malloc(l.n * sizeof(*l.next));
	ok = l.bytes && l.next;
	if (ok)
		give_leftovers(s, &l, from);
	free(l.bytes);
	free(l.next);
	return ok ? KPACK_SUCCESS : kp_fail_memory(why, l.n * sizeof(*l.bytes), "blocks");
}

kpack_error_t kp_shared_parse_objects(struct kp_shared *s, struct kp_span bytes,
				      struct kpackx_error *why)
{
	struct parser p = {
		.s = s, .at = bytes.data, .end = kp_span_tail(bytes, bytes.size).data};
	bool ok = kp_grow(&s->objects, 0, &p.objects_cap, sizeof(*s->objects));

	while (ok && p.at < p.end)
		ok = add_object(&p);
	if (!ok && !p.fault)
		return kp_fail_memory(why, bytes.size, "objects");
	if (!ok)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "zstd_shared: objects: object %u, before byte %zu: %s",
			       s->n_objects, (size_t)(p.at - bytes.data), p.fault);
	s->objects[s->n_objects] = (struct kp_shared_object){.first = s->n_extents};
	return share_leftovers(s, p.next_unique, why);
}
