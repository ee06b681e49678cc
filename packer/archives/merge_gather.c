/* SPDX-License-Identifier: MIT */
/* Gather the entries of the sources of a merge, and the objects that they name. */
#include <stdlib.h>
#include "core/base/bounds.h"
#include "packer/cli/xalloc.h"
#include "merge_internal.h"

/* An entry, to be sorted by its object. */
struct ordered {
	uint32_t ordinal, entry;
};

static int by_ordinal(const void *a, const void *b)
{
	const struct ordered *x = a, *y = b;

	if (x->ordinal != y->ordinal)
		return KP_ORDER(x->ordinal, y->ordinal);
	return KP_ORDER(x->entry, y->entry);
}

static kpack_error_t add_object(struct merge_plan *p, size_t source, uint32_t ordinal,
				struct kpackx_error *why)
{
	struct merge_object *o;

	xgrow(&p->objects, p->n_objects, &p->objects_cap, sizeof(*p->objects));
	o = &p->objects[p->n_objects];
	*o = (struct merge_object){
		.source = (uint32_t)source,
		.ordinal = ordinal,
		.item = MERGE_NONE,
		.same = (uint32_t)p->n_objects,
	};
	p->n_objects++;
	if (kp_archive_shared(p->sources[source].archive)) {
		o->stored.fd = -1;
		return KPACK_SUCCESS;
	}
	return kp_archive_ordinal_source(p->sources[source].archive, ordinal, &o->stored,
					 why);
}

/* Describe an object by its entries; those of one object agree if they are right. */
static void describe_object(struct merge_plan *p, struct merge_object *o,
			    const struct merge_item *item, bool first)
{
	struct kp_entry_info info;
	struct kp_meta meta;

	merge_item_entry(p, item, &info, &meta);
	if (first) {
		if (o->stored.fd < 0)
			o->stored.size = info.stored;
		o->size = info.size;
		o->chunk = meta.chunk;
	}
	if (!o->hashed && meta.has_xxh3) {
		memcpy(o->hash, meta.xxh3, sizeof(o->hash));
		o->hashed = true;
	}
}

static kpack_error_t add_item(struct merge_plan *p, size_t source, uint32_t entry,
			      bool first, struct kpackx_error *why)
{
	struct merge_item *item;

	if (p->n_items >= UINT32_MAX / 2)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "more than %u entries in all", UINT32_MAX / 2);
	xgrow(&p->items, p->n_items, &p->items_cap, sizeof(*p->items));
	item = &p->items[p->n_items++];
	*item = (struct merge_item){(uint32_t)source, entry, (uint32_t)p->n_objects - 1,
				    false};
	describe_object(p, &p->objects[item->object], item, first);
	return KPACK_SUCCESS;
}

static bool takes_entry(const struct merge_plan *p, size_t source,
			const struct kp_entry_info *info)
{
	return !p->options.takes || p->options.takes(p->options.takes_arg, source, info);
}

/* Add those of the N entries of one object that are taken. */
static kpack_error_t add_entries(struct merge_plan *p, size_t source,
				 const struct ordered *list, size_t n,
				 struct kpackx_error *why)
{
	const struct kpack_archive *a = p->sources[source].archive;
	size_t taken = 0;

	for (size_t i = 0; i < n; i++) {
		struct kp_entry_info info;

		kp_archive_entry(a, list[i].entry, &info);
		if (!takes_entry(p, source, &info))
			continue;
		if (taken == 0)
			KP_TRY(add_object(p, source, list[i].ordinal, why));
		KP_TRY(add_item(p, source, list[i].entry, taken == 0, why));
		taken++;
	}
	return KPACK_SUCCESS;
}

static kpack_error_t add_ordered(struct merge_plan *p, size_t source,
				 const struct ordered *list, size_t n,
				 struct kpackx_error *why)
{
	uint64_t named = 0;

	for (size_t i = 0, run; i < n; i += run) {
		for (run = 1; i + run < n && list[i + run].ordinal == list[i].ordinal;)
			run++;
		KP_TRY(add_entries(p, source, list + i, run, why));
		named++;
	}
	p->stats.unused += kp_archive_ordinal_count(p->sources[source].archive) - named;
	return KPACK_SUCCESS;
}

static kpack_error_t gather_source(struct merge_plan *p, size_t source,
				   struct kpackx_error *why)
{
	const struct kpack_archive *a = p->sources[source].archive;
	size_t n = kp_archive_entry_count(a);
	struct ordered *list = xmalloc(n * sizeof(*list));
	kpack_error_t err;

	for (size_t i = 0; i < n; i++) {
		struct kp_entry_info info;

		kp_archive_entry(a, i, &info);
		list[i] = (struct ordered){info.ordinal, (uint32_t)i};
	}
	if (n)
		qsort(list, n, sizeof(*list), by_ordinal);
	err = add_ordered(p, source, list, n, why);
	free(list);
	return err ? kp_fail_prefix(why, err, "%s", merge_source_name(p, source)) : err;
}

kpack_error_t merge_gather(struct merge_plan *p, struct kpackx_error *why)
{
	p->first_item = xcalloc(p->n_sources + 1, sizeof(*p->first_item));
	p->first_object = xcalloc(p->n_sources + 1, sizeof(*p->first_object));
	for (size_t i = 0; i < p->n_sources; i++) {
		KP_TRY(gather_source(p, i, why));
		p->first_item[i + 1] = p->n_items;
		p->first_object[i + 1] = p->n_objects;
	}
	return KPACK_SUCCESS;
}
