/* SPDX-License-Identifier: MIT */
#include "report_figures.h"
#include <stdlib.h>
#include "packer/cli/xalloc.h"
#include "core/base/msgpack_read.h"
#include "report_contents.h"
#include "core/target/target.h"

void page_add(uint64_t *sum, uint64_t value)
{
	if (__builtin_add_overflow(*sum, value, sum))
		*sum = UINT64_MAX;
}

/* --- entries ------------------------------------------------------------------------ */

/*
 * Read "library" and "role" of the metadata MAP into ITEM; of equal keys the first
 * counts.
 */
static void read_database(struct kp_span map, struct page_item *item)
{
	struct kp_mp c = kp_mp_over(map);
	uint32_t n;
	struct kp_span library = {0}, role = {0}, key;

	if (!map.size || !kp_mp_map(&c, &n))
		return;
	while (n-- && kp_mp_str(&c, &key)) {
		struct kp_span *out = kp_span_is(key, "library") ? &library
				      : kp_span_is(key, "role")  ? &role
								 : NULL;

		if (out && !out->data && kp_mp_peek(&c) == KP_MP_STR)
			kp_mp_str(&c, out);
		else
			kp_mp_skip(&c);
	}
	if (!library.size)
		return;
	item->library = library;
	item->role = role;
	item->database = true;
}

/*
 * KEY without "#n", and without the "@kind" that distinguishes two objects of a bundle.
 */
static struct kp_span binary_of(struct kp_span key)
{
	const uint8_t *hash = memrchr(key.data, '#', key.size);
	struct kp_span name = hash ? kp_span_head(key, (size_t)(hash - key.data)) : key;
	const uint8_t *at = hash ? memrchr(name.data, '@', name.size) : NULL;

	return at ? kp_span_head(name, (size_t)(at - name.data)) : name;
}

/* Count ENTRY of archive A; FIRST is the number of the object of A's ordinal 0. */
static void take_entry(struct page_figures *f, const struct kpack_archive *a,
		       uint32_t archive, size_t entry, size_t first)
{
	struct page_item *item = &f->items[f->n_items++];
	struct kp_entry_info e;
	struct page_object *o;

	kp_archive_entry(a, entry, &e);
	*item = (struct page_item){
		.library = binary_of(e.key),
		.arch = e.arch,
		.size = e.size,
		.object = (uint32_t)(first + e.ordinal),
	};
	read_database(kp_archive_meta_raw(a, entry), item);
	o = &f->objects[item->object];
	page_add(&f->decoded, e.size);
	if (o->entries++) {
		f->shared++;
		page_add(&f->saved, e.stored);
		return;
	}
	item->stored = e.stored;
	item->first = true;
	page_add(&f->stored, e.stored);
	*o = (struct page_object){
		.archive = archive,
		.entry = (uint32_t)entry,
		.entries = 1,
		.size = e.size,
		.stored = e.stored,
	};
}

/* Drop the objects of ordinals that no entry refers to. */
static void drop_unused(struct page_figures *f)
{
	uint32_t *numbers = xmalloc(f->n_objects * sizeof(*numbers));
	size_t n = 0;

	for (size_t i = 0; i < f->n_objects; i++) {
		numbers[i] = (uint32_t)n;
		if (f->objects[i].entries)
			f->objects[n++] = f->objects[i];
	}
	for (size_t i = 0; i < f->n_items; i++)
		f->items[i].object = numbers[f->items[i].object];
	f->n_objects = n;
	free(numbers);
}

static kpack_error_t take_entries(struct page_figures *f, const struct page_input *in,
				  struct kpackx_error *why)
{
	size_t n_items = 0, n_objects = 0, first = 0;

	for (size_t i = 0; i < in->count; i++) {
		n_items += kp_archive_entry_count(in->archives[i].archive);
		n_objects += kp_archive_ordinal_count(in->archives[i].archive);
	}
	if (n_items > UINT32_MAX || n_objects > UINT32_MAX)
		return kp_fail_memory(why, n_items, "entries");
	f->items = xcalloc(n_items, sizeof(*f->items));
	f->objects = xcalloc(n_objects, sizeof(*f->objects));
	f->n_objects = n_objects;
	for (size_t i = 0; i < in->count; i++) {
		const struct kpack_archive *a = in->archives[i].archive;

		for (size_t e = 0; e < kp_archive_entry_count(a); e++)
			take_entry(f, a, (uint32_t)i, e, first);
		first += kp_archive_ordinal_count(a);
	}
	drop_unused(f);
	return KPACK_SUCCESS;
}

/* --- sums --------------------------------------------------------------------------- */

static int by_arch(const void *pa, const void *pb, void *arg)
{
	const struct page_item *items = arg;
	const uint32_t *a = pa, *b = pb;

	return kp_span_cmp(items[*a].arch, items[*b].arch);
}

static int by_library(const void *pa, const void *pb, void *arg)
{
	const struct page_item *a = (const struct page_item *)arg + *(const uint32_t *)pa;
	const struct page_item *b = (const struct page_item *)arg + *(const uint32_t *)pb;
	int c = kp_span_cmp(a->library, b->library);

	return c ? c : a->database - b->database;
}

static int by_cell(const void *pa, const void *pb, void *arg)
{
	int c = by_library(pa, pb, arg);

	return c ? c : by_arch(pa, pb, arg);
}

static int by_role(const void *pa, const void *pb, void *arg)
{
	const struct page_item *items = arg;
	const uint32_t *a = pa, *b = pb;
	int c = by_library(pa, pb, arg);

	return c ? c : kp_span_cmp(items[*a].role, items[*b].role);
}

/* A way to sum up: entries that ORDER finds equal are one row. */
struct tally {
	int (*order)(const void *, const void *, void *);
	size_t name, second; /* offsets of the row's names in an item; 0: it has none */
	bool databases;      /* count only entries of databases */
};

#define AT(member) offsetof(struct page_item, member)

static const struct tally tally_arches = {by_arch, AT(arch), 0, false};
static const struct tally tally_libraries = {by_library, AT(library), 0, false};
static const struct tally tally_cells = {by_cell, AT(library), AT(arch), false};
static const struct tally tally_roles = {by_role, AT(library), AT(role), true};

static struct kp_span name_at(const struct page_item *item, size_t offset)
{
	return *(const struct kp_span *)((const char *)item + offset);
}

static void add_item(struct page_row *row, const struct page_item *item)
{
	row->entries++;
	row->objects += item->first;
	page_add(&row->decoded, item->size);
	page_add(&row->stored, item->stored);
}

static void sum_rows(const struct page_figures *f, const struct tally *t, uint32_t *order,
		     struct page_rows *out)
{
	size_t n = 0, rows = 0;

	for (size_t i = 0; i < f->n_items; i++)
		if (!t->databases || f->items[i].database)
			order[n++] = (uint32_t)i;
	qsort_r(order, n, sizeof(*order), t->order, f->items);
	for (size_t i = 0; i < n; i++)
		rows += i == 0 || t->order(&order[i - 1], &order[i], f->items) != 0;
	out->items = xcalloc(rows, sizeof(*out->items));
	for (size_t i = 0; i < n; i++) {
		const struct page_item *item = &f->items[order[i]];

		if (i == 0 || t->order(&order[i - 1], &order[i], f->items) != 0)
			out->items[out->count++] = (struct page_row){
				.name = name_at(item, t->name),
				.second = t->second ? name_at(item, t->second)
						    : (struct kp_span){0},
				.database = item->database,
			};
		add_item(&out->items[out->count - 1], item);
	}
}

static int by_stored(const void *pa, const void *pb)
{
	const struct page_row *a = pa, *b = pb;
	int c;

	if (a->stored != b->stored)
		return KP_ORDER(b->stored, a->stored);
	c = kp_span_cmp(a->name, b->name);
	if (c == 0)
		c = a->database - b->database;
	return c ? c : kp_span_cmp(a->second, b->second);
}

static void sort_rows(struct page_rows *rows)
{
	if (rows->count)
		qsort(rows->items, rows->count, sizeof(*rows->items), by_stored);
}

static void sum_all(struct page_figures *f)
{
	uint32_t *order = xmalloc(f->n_items * sizeof(*order));

	sum_rows(f, &tally_arches, order, &f->arches);
	sum_rows(f, &tally_libraries, order, &f->libraries);
	sum_rows(f, &tally_cells, order, &f->cells);
	sum_rows(f, &tally_roles, order, &f->databases);
	free(order);
	sort_rows(&f->arches);
	sort_rows(&f->libraries);
	sort_rows(&f->databases);
}

static void count_names(struct page_figures *f)
{
	struct kp_target t;

	for (size_t i = 0; i < f->libraries.count; i++)
		f->binaries += !f->libraries.items[i].database;
	for (size_t i = 0; i < f->arches.count; i++)
		f->n_gpu_arches += kp_target_parse(f->arches.items[i].name, &t, NULL) ||
				   !kp_target_neutral(&t);
}

/* Give each item the row of its architecture.  PLACES has the rows sorted by name. */
static void number_items(struct page_figures *f, uint32_t *order, const uint32_t *places)
{
	uint32_t row = 0;

	for (size_t i = 0; i < f->n_items; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, f->n_items, sizeof(*order), by_arch, f->items);
	for (size_t i = 0; i < f->n_items; i++) {
		row += i && by_arch(&order[i - 1], &order[i], f->items) != 0;
		f->items[order[i]].arch_row = places[row];
	}
}

static int by_name(const void *pa, const void *pb, void *arg)
{
	const struct page_row *rows = arg;

	return kp_span_cmp(rows[*(const uint32_t *)pa].name,
			   rows[*(const uint32_t *)pb].name);
}

static void number_arches(struct page_figures *f)
{
	uint32_t *order = xmalloc(f->n_items * sizeof(*order));
	uint32_t *places = xmalloc(f->arches.count * sizeof(*places));

	for (size_t i = 0; i < f->arches.count; i++)
		places[i] = (uint32_t)i;
	qsort_r(places, f->arches.count, sizeof(*places), by_name, f->arches.items);
	number_items(f, order, places);
	free(order);
	free(places);
}

/* --- whole -------------------------------------------------------------------------- */

kpack_error_t page_figures_open(struct page_input *in, bool progress,
				struct page_figures *out, struct kpackx_error *why)
{
	*out = (struct page_figures){0};
	KP_TRY(take_entries(out, in, why));
	sum_all(out);
	number_arches(out);
	count_names(out);
	page_contents(out, in, progress);
	return KPACK_SUCCESS;
}

void page_figures_close(struct page_figures *f)
{
	free(f->items);
	free(f->objects);
	free(f->arches.items);
	free(f->libraries.items);
	free(f->databases.items);
	free(f->cells.items);
	free(f->largest);
	free(f->twice);
	*f = (struct page_figures){0};
}

/* --- a choice of GPUs ---------------------------------------------------------------- */

static void count_item(struct page_row *row, const struct page_item *item)
{
	row->entries++;
	page_add(&row->decoded, item->size);
}

static char *gpus_of(const struct kp_choice *chosen)
{
	char *text = xstrdup(""), *longer, gpu[KP_TARGET_TEXT_MAX];

	for (size_t i = 0; i < chosen->count; i++) {
		kp_target_format(&chosen->gpus[i], gpu);
		longer = xasprintf("%s%s%s", text, i ? ", " : "", gpu);
		free(text);
		text = longer;
	}
	return text;
}

void page_choice_open(const struct page_figures *f, struct arch_filter *filter,
		      struct page_choice *out)
{
	bool *stays = xcalloc(f->n_objects + 1, sizeof(*stays));

	*out = (struct page_choice){.gpus = gpus_of(&filter->chosen)};
	for (size_t i = 0; i < f->n_items; i++) {
		const struct page_item *item = &f->items[i];
		bool goes = arch_filter_drops(filter, item->arch);

		count_item(goes ? &out->freed : &out->kept, item);
		stays[item->object] |= !goes;
	}
	for (size_t i = 0; i < f->n_objects; i++) {
		struct page_row *row = stays[i] ? &out->kept : &out->freed;

		row->objects++;
		page_add(&row->stored, f->objects[i].stored);
	}
	free(stays);
}

void page_choice_close(struct page_choice *choice)
{
	free(choice->gpus);
	*choice = (struct page_choice){0};
}
