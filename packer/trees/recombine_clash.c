/* SPDX-License-Identifier: MIT */
/*
 * Find entries with the same key and GPU but different bytes in two archives of one
 * output directory: it would be undefined which of them a program gets.  Each prefix has
 * its own directory of archives.
 */
#include <stdlib.h>
#include "core/base/path.h"
#include "packer/archives/content.h"
#include "recombine_internal.h"

struct place {
	struct kp_entry_info info;
	const struct recombine_item *item;
	size_t entry;
};

static struct kp_span directory_of(const struct place *p)
{
	return kp_path_directory(p->item->file->path);
}

static int by_key(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	int order = kp_span_cmp(directory_of(x), directory_of(y));

	if (!order)
		order = kp_span_cmp(x->info.key, y->info.key);
	if (!order)
		order = kp_span_cmp(x->info.arch, y->info.arch);
	if (order || x->item == y->item)
		return order;
	return x->item < y->item ? -1 : 1;
}

static bool same_place(const struct place *a, const struct place *b)
{
	return kp_span_eq(directory_of(a), directory_of(b)) &&
	       kp_span_eq(a->info.key, b->info.key) &&
	       kp_span_eq(a->info.arch, b->info.arch);
}

static kpack_error_t compare_places(struct recombine_component *c, const struct place *a,
				    const struct place *b, size_t *reported,
				    struct kpackx_error *why)
{
	bool same;
	char p[512], q[512];

	KP_TRY(content_hash_same(a->item->archive, a->entry, b->item->archive, b->entry,
				 &same, why));
	if (same || (*reported)++)
		return KPACK_SUCCESS;
	(c->args->config->error_on_duplicate ? recombine_fault : recombine_note)(
		c, "%s and %s: different code for %.*s %.*s", recombine_shown(a->item, p),
		recombine_shown(b->item, q), (int)a->info.key.size,
		(const char *)a->info.key.data, (int)a->info.arch.size,
		(const char *)a->info.arch.data);
	return KPACK_SUCCESS;
}

static size_t count_entries(const struct recombine_component *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n_items; i++)
		if (c->items[i].chosen && c->items[i].archive)
			n += kp_archive_entry_count(c->items[i].archive);
	return n;
}

static void list_entries(const struct recombine_component *c, struct place *places)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n_items; i++) {
		const struct recombine_item *item = &c->items[i];

		if (!item->chosen || !item->archive)
			continue;
		for (size_t e = 0; e < kp_archive_entry_count(item->archive); e++, n++) {
			places[n].item = item;
			places[n].entry = e;
			kp_archive_entry(item->archive, e, &places[n].info);
		}
	}
}

kpack_error_t recombine_clashes(struct recombine_component *c, struct kpackx_error *why)
{
	size_t n = count_entries(c), reported = 0;
	struct place *places = calloc(n + 1, sizeof(*places));
	kpack_error_t err = KPACK_SUCCESS;

	if (!places)
		return kp_fail_memory(why, n * sizeof(*places), "entries");
	list_entries(c, places);
	if (n)
		qsort(places, n, sizeof(*places), by_key);
	for (size_t i = 1; i < n && !err; i++)
		if (same_place(&places[i - 1], &places[i]))
			err = compare_places(c, &places[i - 1], &places[i], &reported,
					     why);
	if (reported > 1 && c->args->config->error_on_duplicate)
		recombine_fault(c, "%zu more such clashes", reported - 1);
	free(places);
	return err;
}
