/* SPDX-License-Identifier: MIT */
/*
 * A swap leaves a shift for each directory whose names moved: the new number of each old
 * number.  A position of an old edition goes through the shifts of all swaps since.
 */
#include <stdlib.h>
#include "dir_positions.h"

/*
 * The low INDEX_BITS of a position are the number of the name, the bits above are the
 * edition, modulo EDITIONS.
 */
#define INDEX_BITS 40
#define EDITIONS (UINT64_C(1) << 20)
/* Names whose moves are remembered, in all swaps together. */
#define NAMES_MAX (1 << 20)

/* The moves of the names of one directory in one swap. */
struct shift {
	struct shift *next;
	uint64_t edition; /* number of the edition before the swap */
	uint64_t dir;     /* inode number of the directory */
	uint32_t count;
	uint32_t to[]; /* the new number of each name, and of the end */
};

static struct kp_span name_text(const struct edition *e, uint32_t name)
{
	return kp_view_name(e->view, name).text;
}

struct shift *shift_new(const struct edition *from, struct tree_node a,
			const struct edition *to, struct tree_node b)
{
	const struct kp_view_dir *old = kp_view_dir(from->view, a.index);
	const struct kp_view_dir *new = kp_view_dir(to->view, b.index);
	struct shift *s = malloc(sizeof(*s) + (old->count + 1) * sizeof(*s->to));
	bool moved = false;
	uint32_t k = 0;

	if (!s)
		return NULL;
	*s = (struct shift){.dir = a.ino, .count = old->count};
	for (uint32_t i = 0; i < old->count; i++) {
		while (k < new->count && kp_span_cmp(name_text(to, new->first + k),
						     name_text(from, old->first + i)) < 0)
			k++;
		s->to[i] = k;
		moved = moved || k != i;
	}
	s->to[old->count] = new->count;
	if (moved || new->count != old->count)
		return s;
	free(s);
	return NULL;
}

struct shift *shift_joined(struct shift *s, struct shift *list)
{
	if (!s)
		return list;
	s->next = list;
	return s;
}

static void shifts_free(struct shift *list)
{
	struct shift *next;

	for (; list; list = next) {
		next = list->next;
		free(list);
	}
}

/* Forget the oldest shifts, as far as all together have more than NAMES_MAX names. */
static void trim_swaps(struct dir_positions *p)
{
	struct shift **at = &p->first;

	p->count = 0;
	while (*at && (p->count + (*at)->count <= NAMES_MAX || at == &p->first)) {
		p->count += (*at)->count;
		at = &(*at)->next;
	}
	shifts_free(*at);
	*at = NULL;
}

void dir_positions_advance(struct dir_positions *p, struct shift *list)
{
	struct shift **end = &list;

	for (; *end; end = &(*end)->next)
		(*end)->edition = p->edition;
	*end = p->first;
	p->first = list;
	p->edition++;
	trim_swaps(p);
}

uint64_t dir_positions_encode(const struct dir_positions *p, uint64_t index)
{
	return p->edition % EDITIONS << INDEX_BITS | index;
}

static uint64_t moved_index(const struct dir_positions *p, uint64_t edition, uint64_t dir,
			    uint64_t index)
{
	for (const struct shift *s = p->first; s; s = s->next)
		if (s->edition == edition && s->dir == dir)
			return s->to[index < s->count ? index : s->count];
	return index;
}

uint64_t dir_positions_find(const struct dir_positions *p, uint64_t dir,
			    uint64_t position)
{
	uint64_t index = position & ((UINT64_C(1) << INDEX_BITS) - 1);
	uint64_t age = (p->edition - (position >> INDEX_BITS)) % EDITIONS;

	/* A list search is enough: the list is short, and empty until something
	 * changes. */
	if (!p->first || age > p->edition)
		return index;
	for (; age; age--)
		index = moved_index(p, p->edition - age, dir, index);
	return index;
}

void dir_positions_fini(struct dir_positions *p)
{
	shifts_free(p->first);
	*p = (struct dir_positions){0};
}
