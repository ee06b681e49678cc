/* SPDX-License-Identifier: MIT */
/* The order in which objects are written: that of their entries that are taken (kp_rank). */
#include <stdlib.h>
#include "packer/cli/xalloc.h"
#include "merge_internal.h"

static int by_rank(const void *a, const void *b, void *arg)
{
	const struct kp_rank *ranks = arg;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int c = kp_rank_compare(&ranks[x], &ranks[y]);

	return c ? c : KP_ORDER(x, y);
}

void merge_order(struct merge_plan *p)
{
	struct kp_rank *ranks = xcalloc(p->n_objects, sizeof(*ranks));

	for (size_t i = 0; i < p->n_items; i++) {
		const struct merge_item *item = &p->items[i];
		struct merge_object *o = &p->objects[item->object];
		struct kp_entry_info info;
		struct kp_rank r;

		if (item->dropped)
			continue;
		p->stats.entries++;
		if (o->item == MERGE_NONE)
			o->item = (uint32_t)i;
		merge_item_entry(p, item, &info, NULL);
		r = kp_rank_of(info.key, info.arch,
			       kp_archive_meta_raw(p->sources[item->source].archive,
						   item->entry));
		if (kp_rank_compare(&r, &ranks[item->object]) < 0)
			ranks[item->object] = r;
	}
	p->order = xcalloc(p->n_objects, sizeof(*p->order));
	for (size_t i = 0; i < p->n_objects; i++)
		if (ranks[i].named)
			p->order[p->n_order++] = (uint32_t)i;
	if (p->n_order)
		qsort_r(p->order, p->n_order, sizeof(*p->order), by_rank, ranks);
	for (size_t i = 0; i < p->n_order; i++)
		p->objects[p->order[i]].position = (uint32_t)i;
	free(ranks);
}
