/* SPDX-License-Identifier: MIT */
/*
 * The order of objects in the new archive is that of their sources, with one exception.
 * When only some entries of a source are taken, an object that other entries share may be
 * at the place of the first such entry.  If all other objects of the source are in the
 * order in which a packing run writes them (by path, then index), the shared objects are
 * moved to their place in that order.  So splitting a joined archive gives the archives
 * it was joined from.
 */
#include <stdlib.h>
#include "merge_internal.h"
#include "core/archive/naming.h"
#include "packer/cli/xalloc.h"

/* The place of an object in the order of a packing run. */
struct rank {
	struct kp_span path;
	uint32_t index;
	uint32_t object;
	bool known;
};

static int cmp_place(const struct rank *x, const struct rank *y)
{
	int c = kp_span_cmp(x->path, y->path);

	return c ? c : KP_ORDER(x->index, y->index);
}

static int cmp_rank(const void *a, const void *b)
{
	const struct rank *x = a, *y = b;
	int c = cmp_place(x, y);

	return c ? c : KP_ORDER(x->object, y->object);
}

/*
 * Returns the rank of an entry by the file it is from: its path, or its key without
 * "@kind" and "#n".
 */
static struct rank rank_of(const struct merge_plan *p, const struct merge_item *item)
{
	struct kp_entry_info info;
	struct kp_meta meta;
	struct kp_key key;

	merge_item_entry(p, item, &info, &meta);
	key = kp_key_split(info.key);
	return (struct rank){
		.path = meta.path.size ? meta.path : key.binary,
		.index = meta.path.size ? 0 : key.index,
		.object = item->object,
		.known = true,
	};
}

/* Find the first place of each object of the source. */
static void rank_objects(const struct merge_plan *p, size_t source, struct rank *ranks)
{
	size_t first = p->first_object[source];

	for (size_t i = p->first_item[source]; i < p->first_item[source + 1]; i++) {
		struct rank r, *best = &ranks[p->items[i].object - first];

		if (p->items[i].dropped)
			continue;
		r = rank_of(p, &p->items[i]);
		if (!best->known || cmp_rank(&r, best) < 0)
			*best = r;
	}
}

/* Drop the objects that no entry names; returns how many remain. */
static size_t keep_known(struct rank *ranks, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		if (ranks[i].known)
			ranks[kept++] = ranks[i];
	return kept;
}

/* Whether an object is displaced and all others are in the order of a run. */
static bool is_to_be_sorted(const struct merge_plan *p, const struct rank *ranks,
			    size_t n)
{
	const struct rank *last = NULL;
	bool displaced = false;

	for (size_t i = 0; i < n; i++) {
		if (p->objects[ranks[i].object].split) {
			displaced = true;
			continue;
		}
		if (last && cmp_place(last, &ranks[i]) > 0)
			return false;
		last = &ranks[i];
	}
	return displaced;
}

static void order_source(struct merge_plan *p, size_t source)
{
	size_t n = p->first_object[source + 1] - p->first_object[source];
	struct rank *ranks = xcalloc(n, sizeof(*ranks));

	rank_objects(p, source, ranks);
	n = keep_known(ranks, n);
	if (is_to_be_sorted(p, ranks, n))
		qsort(ranks, n, sizeof(*ranks), cmp_rank);
	for (size_t i = 0; i < n; i++)
		p->order[p->n_order++] = ranks[i].object;
	free(ranks);
}

void merge_order(struct merge_plan *p)
{
	for (size_t i = 0; i < p->n_items; i++) {
		struct merge_object *o = &p->objects[p->items[i].object];

		if (p->items[i].dropped)
			continue;
		p->stats.entries++;
		if (o->item == MERGE_NONE)
			o->item = (uint32_t)i;
	}
	p->order = xcalloc(p->n_objects, sizeof(*p->order));
	for (size_t i = 0; i < p->n_sources; i++)
		order_source(p, i);
}
