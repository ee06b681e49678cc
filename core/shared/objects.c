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
#include "internal.h"
#include "reach.h"

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
		p->fault = "an object reaches too many blocks, or has too many extents";
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
	return KPACK_SUCCESS;
}
