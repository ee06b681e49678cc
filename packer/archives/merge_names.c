/* SPDX-License-Identifier: MIT */
/*
 * Decide which entry stays of those with the same key and architecture in several
 * sources.
 */
#include <stdlib.h>
#include "merge_internal.h"
#include "core/base/hash.h"
#include "core/base/slots.h"
#include "packer/cli/xalloc.h"

/* Items by the hash of their names: per name the one that stays so far. */
struct names {
	struct kp_slots slots;
	uint32_t *hashes; /* per item */
};

/* Returns the slot of the item's name, or the free one where it would go. */
static uint32_t *find_slot(const struct merge_plan *p, struct names *names, uint32_t item)
{
	struct kp_entry_info mine, theirs;
	uint32_t *slot;
	uint64_t seed;

	merge_item_entry(p, &p->items[item], &mine, NULL);
	seed = kp_slot_hash(mine.key.data, mine.key.size, 0);
	names->hashes[item] =
		(uint32_t)kp_slot_hash(mine.arch.data, mine.arch.size, seed);
	slot = kp_slots_first(&names->slots, names->hashes[item]);
	for (; *slot; slot = kp_slots_next(&names->slots, slot)) {
		uint32_t other = *slot - 1;

		if (names->hashes[other] != names->hashes[item])
			continue;
		merge_item_entry(p, &p->items[other], &theirs, NULL);
		if (kp_span_eq(mine.key, theirs.key) &&
		    kp_span_eq(mine.arch, theirs.arch))
			break;
	}
	return slot;
}

static void report_clash(struct merge_plan *p, const struct merge_item *a,
			 const struct merge_item *b, const char *what)
{
	struct merge_clash clash = {.what = what};
	struct kp_entry_info info;

	p->clashes++;
	merge_item_entry(p, a, &info, NULL);
	clash.key = info.key;
	clash.arch = info.arch;
	clash.first = merge_source_name(p, a->source);
	clash.second = merge_source_name(p, b->source);
	if (p->options.clash)
		p->options.clash(p->options.arg, &clash);
}

/* Set *WHAT to what keeps the two from being one entry; NULL: nothing. */
static kpack_error_t find_difference(const struct merge_plan *p,
				     const struct merge_item *a,
				     const struct merge_item *b, const char **what,
				     struct kpackx_error *why)
{
	struct kp_more ma = merge_item_more(p, a), mb = merge_item_more(p, b);
	struct kp_entry_info x, y;
	struct kp_meta mx, my;
	bool same = false;

	*what = NULL;
	merge_item_entry(p, a, &x, &mx);
	merge_item_entry(p, b, &y, &my);
	KP_TRY(merge_same_bytes(p, a, b, &same, why));
	if (!same)
		*what = "other bytes";
	else if (!kp_span_eq(x.type, y.type))
		*what = "another type";
	else if (mx.path.size && my.path.size && !kp_span_eq(mx.path, my.path))
		*what = "another path";
	else if (ma.n_runs && mb.n_runs && !kp_more_same(&ma, &mb))
		*what = "other fields that are not known";
	return KPACK_SUCCESS;
}

/* Returns a measure of how much an entry says besides its bytes. */
static int weigh_facts(const struct merge_plan *p, const struct merge_item *item)
{
	const struct kpack_archive *a = p->sources[item->source].archive;

	return 2 * (merge_item_more(p, item).n_runs > 0) +
	       (kp_archive_meta_raw(a, item->entry).size > 0);
}

/*
 * ITEM has the name of the item in *SLOT, whose source is preferred or came before:
 * decide which of them stays.
 */
static kpack_error_t settle_clash(struct merge_plan *p, uint32_t item, uint32_t *slot,
				  struct kpackx_error *why)
{
	struct merge_item *a = &p->items[*slot - 1], *b = &p->items[item];
	const char *what;

	if (p->sources[a->source].prefer > p->sources[b->source].prefer) {
		b->dropped = true;
		p->stats.settled++;
		return KPACK_SUCCESS;
	}
	KP_TRY(find_difference(p, a, b, &what, why));
	if (what)
		report_clash(p, a, b, what);
	p->stats.duplicates++;
	a->dropped = weigh_facts(p, a) < weigh_facts(p, b);
	b->dropped = !a->dropped;
	if (a->dropped)
		*slot = item + 1;
	return KPACK_SUCCESS;
}

static kpack_error_t add_source(struct merge_plan *p, struct names *names, size_t source,
				struct kpackx_error *why)
{
	for (size_t i = p->first_item[source]; i < p->first_item[source + 1]; i++) {
		uint32_t *slot;

		if (p->items[i].dropped)
			continue;
		slot = find_slot(p, names, (uint32_t)i);
		if (*slot)
			KP_TRY(settle_clash(p, (uint32_t)i, slot, why));
		else
			kp_slots_put(&names->slots, slot, (uint32_t)i);
	}
	return KPACK_SUCCESS;
}

static int by_preference(const void *a, const void *b, void *arg)
{
	const struct merge_plan *p = arg;
	size_t x = *(const size_t *)a, y = *(const size_t *)b;
	unsigned px = p->sources[x].prefer, py = p->sources[y].prefer;

	return px != py ? (px > py ? -1 : 1) : KP_ORDER(x, y);
}

static kpack_error_t add_sources(struct merge_plan *p, struct names *names,
				 struct kpackx_error *why)
{
	size_t *sources = xmalloc(p->n_sources * sizeof(*sources));
	kpack_error_t err = KPACK_SUCCESS;

	for (size_t i = 0; i < p->n_sources; i++)
		sources[i] = i;
	qsort_r(sources, p->n_sources, sizeof(*sources), by_preference, p);
	for (size_t i = 0; i < p->n_sources && !err; i++)
		err = add_source(p, names, sources[i], why);
	free(sources);
	return err;
}

kpack_error_t merge_names(struct merge_plan *p, struct kpackx_error *why)
{
	struct names names = {0};
	kpack_error_t err;

	if (!kp_slots_reserve(&names.slots, p->n_items, NULL, NULL))
		return kp_fail_memory(why, p->n_items * sizeof(uint64_t), "entries");
	names.hashes = xcalloc(p->n_items, sizeof(*names.hashes));
	err = add_sources(p, &names, why);
	free(names.slots.slots);
	free(names.hashes);
	if (!err && p->clashes)
		err = kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			      "%zu entries differ between archives", p->clashes);
	return err;
}
