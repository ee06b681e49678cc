/* SPDX-License-Identifier: MIT */
/*
 * Where everything goes in a stripped file.  Segments stay in their order; each is placed
 * behind the one before, as its alignment allows, and a segment that begins in another
 * moves with it.  Sections in a segment move with it; other sections follow all
 * segments.  In a file that only keeps debugging information the sections of segments
 * have no bytes, so that segments become as long as the few bytes that they still have.
 */
#include <inttypes.h>
#include <stdlib.h>
#include "strip_work.h"

/* No offset may be so large that sums of several overflow. */
#define OFFSET_MAX (UINT64_C(1) << 56)

static uint64_t align_up(uint64_t pos, uint64_t align, uint64_t skew)
{
	uint64_t a = align ? align : 1;

	skew &= a - 1;
	return ((pos - skew + (a - 1)) & -a) + skew;
}

bool strip_is_inside(const struct kp_section *s, const Elf64_Phdr *p)
{
	uint64_t size = s->size ? s->size : 1;

	if (s->type != SHT_NOBITS)
		return p->p_offset <= s->offset &&
		       p->p_offset + p->p_filesz >= s->offset + size;
	if (!(s->flags & SHF_ALLOC) || !(s->flags & SHF_TLS) != (p->p_type != PT_TLS))
		return false;
	return p->p_vaddr <= s->addr && p->p_vaddr + p->p_memsz >= s->addr + size;
}

/* The order in which segments are placed: a parent before those that begin in it. */
static bool comes_before(const struct strip_work *w, size_t a, size_t b)
{
	const Elf64_Phdr *x = &w->segments[a].in, *y = &w->segments[b].in;

	if (x->p_offset != y->p_offset)
		return x->p_offset < y->p_offset;
	if (x->p_align != y->p_align)
		return x->p_align > y->p_align;
	return a < b;
}

static void find_parent(struct strip_work *w, size_t child)
{
	struct strip_segment *c = &w->segments[child];

	c->parent = NO_SEGMENT;
	for (size_t i = 0; i < w->n_segments; i++) {
		const Elf64_Phdr *p = &w->segments[i].in;

		if (i == child || p->p_offset > c->in.p_offset ||
		    p->p_offset + p->p_filesz <= c->in.p_offset)
			continue;
		if (comes_before(w, i, child) &&
		    (c->parent == NO_SEGMENT || comes_before(w, i, c->parent)))
			c->parent = i;
	}
}

/* The first segment in the file that has the section. */
static size_t segment_of(const struct strip_work *w, const struct kp_section *s)
{
	size_t found = NO_SEGMENT;

	for (size_t i = 0; i < w->n_segments; i++)
		if (strip_is_inside(s, &w->segments[i].in) &&
		    (found == NO_SEGMENT ||
		     w->segments[found].in.p_offset > w->segments[i].in.p_offset))
			found = i;
	return found;
}

void strip_find_parents(struct strip_work *w)
{
	for (size_t i = 0; i < w->n_segments + 2; i++)
		find_parent(w, i);
	for (size_t i = 1; i < w->in.count; i++)
		w->sections[i].segment = segment_of(w, &w->in.items[i]);
}

/* --- the usual case -------------------------------------------------------------------- */

/* Sort the numbers of the segments, and of the two headers, which are few. */
static void order_segments(const struct strip_work *w, size_t *order)
{
	for (size_t i = 0; i < w->n_segments + 2; i++) {
		size_t k = i;

		for (; k > 0 && comes_before(w, i, order[k - 1]); k--)
			order[k] = order[k - 1];
		order[k] = i;
	}
}

static uint64_t place_segments(struct strip_work *w, const size_t *order)
{
	uint64_t pos = 0;

	for (size_t i = 0; i < w->n_segments + 2; i++) {
		struct strip_segment *s = &w->segments[order[i]];

		if (s->parent != NO_SEGMENT)
			s->offset = w->segments[s->parent].offset +
				    (s->in.p_offset - w->segments[s->parent].in.p_offset);
		else
			s->offset = align_up(pos, s->in.p_align, s->in.p_vaddr);
		if (s->offset + s->filesz > pos)
			pos = s->offset + s->filesz;
	}
	return pos;
}

struct placed {
	uint64_t from;
	size_t section;
};

static int by_offset(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;

	if (x->from != y->from)
		return KP_ORDER(x->from, y->from);
	return KP_ORDER(x->section, y->section);
}

/* List the sections that stay, by offset, ALL or only those in no segment. */
static struct placed *list_sections(const struct strip_work *w, bool all, size_t *n)
{
	struct placed *list = malloc((w->in.count + 1) * sizeof(*list));

	*n = 0;
	for (size_t i = 1; list && i < w->in.count; i++)
		if (!w->sections[i].gone && (all || w->sections[i].segment == NO_SEGMENT))
			list[(*n)++] = (struct placed){w->in.items[i].offset, i};
	if (*n)
		qsort(list, *n, sizeof(*list), by_offset);
	return list;
}

static kpack_error_t place_sections(struct strip_work *w, uint64_t *pos,
				    struct kpackx_error *why)
{
	size_t n;
	struct placed *list = list_sections(w, false, &n);

	if (!list)
		return kp_fail_memory(why, w->in.count * sizeof(*list), "sections");
	for (size_t i = 1; i < w->in.count; i++) {
		struct strip_section *s = &w->sections[i];
		const struct strip_segment *p;

		if (s->segment == NO_SEGMENT)
			continue;
		p = &w->segments[s->segment];
		s->offset = p->offset + (w->in.items[i].offset - p->in.p_offset);
	}
	for (size_t i = 0; i < n && *pos < OFFSET_MAX; i++) {
		struct strip_section *s = &w->sections[list[i].section];

		*pos = s->offset = align_up(*pos, s->align, 0);
		if (s->type != SHT_NOBITS)
			*pos += s->size;
	}
	free(list);
	return KPACK_SUCCESS;
}

/* --- only debugging information ------------------------------------------------------- */

/* The first section, by offset, of a segment; 0: none. */
static size_t first_section(const struct strip_work *w, size_t segment)
{
	size_t first = 0;

	for (size_t i = 1; i < w->in.count; i++)
		if (!w->sections[i].gone &&
		    strip_is_inside(&w->in.items[i], &w->segments[segment].in) &&
		    (!first || w->in.items[i].offset < w->in.items[first].offset))
			first = i;
	return first;
}

/* Place sections in the order of LIST; FIRST has the first section of each segment. */
static uint64_t squeeze_sections(struct strip_work *w, const struct placed *list,
				 size_t n, const size_t *first, uint64_t pos)
{
	for (size_t i = 0; i < n && pos < OFFSET_MAX; i++) {
		size_t number = list[i].section, lead = 0;
		struct strip_section *s = &w->sections[number];

		if (s->segment != NO_SEGMENT &&
		    w->segments[s->segment].in.p_type == PT_LOAD)
			lead = first[s->segment];
		if (lead == number)
			pos = align_up(pos, w->segments[s->segment].in.p_align,
				       w->in.items[number].addr);
		if (s->type == SHT_NOBITS) {
			s->offset = pos;
			continue;
		}
		if (!lead)
			pos = align_up(pos, s->align, 0);
		else if (lead != number)
			pos = w->in.items[number].offset - w->in.items[lead].offset +
			      w->sections[lead].offset;
		s->offset = pos;
		pos += s->size;
	}
	return pos;
}

/* Shorten segment NUMBER to the sections that still have bytes. */
static void squeeze_segment(struct strip_work *w, size_t number, size_t first,
			    uint64_t headers)
{
	struct strip_segment *s = &w->segments[number];
	uint64_t offset = 0, size = 0;

	if (first)
		offset = w->sections[first].offset;
	else if (s->parent != NO_SEGMENT)
		offset = w->segments[s->parent].offset;
	for (size_t i = 1; i < w->in.count; i++) {
		const struct strip_section *x = &w->sections[i];
		uint64_t end = x->offset + (x->type == SHT_NOBITS ? 0 : x->size);

		if (!x->gone && strip_is_inside(&w->in.items[i], &s->in) &&
		    end > offset && end - offset > size)
			size = end - offset;
	}
	/* the headers stay in the segment that has them */
	if (s->offset < headers && headers <= s->offset + s->filesz) {
		size += offset - s->offset;
		offset = s->offset;
		if (headers - offset > size)
			size = headers - offset;
	}
	s->offset = offset;
	s->filesz = size;
}

static uint64_t squeeze_segments(struct strip_work *w, const size_t *order,
				 const size_t *first, uint64_t headers)
{
	uint64_t end = 0;

	for (size_t i = 0; i < w->n_segments + 2; i++) {
		struct strip_segment *s = &w->segments[order[i]];

		if (order[i] >= w->n_segments || s->in.p_type == PT_PHDR)
			continue;
		squeeze_segment(w, order[i], first[order[i]], headers);
		if (s->offset + s->filesz > end)
			end = s->offset + s->filesz;
	}
	return end;
}

static kpack_error_t squeeze_object(struct strip_work *w, const size_t *order,
				    size_t *first, uint64_t *pos,
				    struct kpackx_error *why)
{
	uint64_t headers = sizeof(Elf64_Ehdr) + w->n_segments * sizeof(Elf64_Phdr), end;
	size_t n;
	struct placed *list = list_sections(w, true, &n);

	if (!list)
		return kp_fail_memory(why, w->in.count * sizeof(*list), "sections");
	for (size_t i = 0; i < w->n_segments; i++)
		first[i] = first_section(w, i);
	*pos = squeeze_sections(w, list, n, first, headers);
	free(list);
	end = squeeze_segments(w, order, first, headers);
	if (end > *pos)
		*pos = end;
	return KPACK_SUCCESS;
}

/* --------------------------------------------------------------------------------------- */

kpack_error_t strip_place(struct strip_work *w, struct kpackx_error *why)
{
	size_t *order = calloc(2 * (w->n_segments + 2), sizeof(*order));
	kpack_error_t err;
	uint64_t pos = 0;

	if (!order)
		return kp_fail_memory(why, w->n_segments * sizeof(*order), "segments");
	order_segments(w, order);
	if (w->how == KP_STRIP_DEBUG) {
		pos = place_segments(w, order);
		err = place_sections(w, &pos, why);
	} else {
		err = squeeze_object(w, order, order + w->n_segments + 2, &pos, why);
	}
	free(order);
	if (!err && pos >= OFFSET_MAX)
		err = kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			      "sections of more than %" PRIu64 " bytes in all",
			      OFFSET_MAX);
	w->headers = (pos + 7) & ~UINT64_C(7);
	return err;
}
