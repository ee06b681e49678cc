/* SPDX-License-Identifier: MIT */
/*
 * Counting goes from the entries outwards: all entries of all archives become one array, with
 * a number for each stored object.  Sums sort that array by the fields that make a row, and
 * add up neighbours.  Objects with the same decoded bytes get one content number; a family's
 * archive has each content of its members once.  Sizes that archives state cannot be trusted,
 * so sums do not wrap.
 *
 *	entries   -> rows by architecture, by library, by both, by database and role
 *	objects   -> the largest; hashes make contents of them, and those the duplicates
 *	contents  -> what an archive for a family of GPUs would have, which needs each once
 *	filter    -> what its GPUs keep, and what that frees
 *
 * An object without a hash is decoded only if another has its size: nothing else can be equal to it.
 * Every order has a last key that is unique, because the page must not depend on the C library's sort.
 */
#include "report.h"
#include <stdio.h>
#include <stdlib.h>
#include "core/archive/entry.h"
#include "core/base/hash.h"
#include "core/base/msgpack_read.h"
#include "core/base/order.h"
#include "core/base/text.h"
#include "packer/archives/content.h"
#include "packer/archives/operands.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "packer/gpu/names.h"

/*
 * The most bytes to decode for comparison: all of ROCm has 30 GB, but a hostile archive
 * can state any number of gigabytes.
 */
#define COMPARE_MAX (UINT64_C(256) << 30)

static void add_bytes(uint64_t *sum, uint64_t value)
{
	if (__builtin_add_overflow(*sum, value, sum))
		*sum = UINT64_MAX;
}

/* ---- entries ---- */

/*
 * Name ENTRY after the binary that KEY is of, without "#n" and without the "@kind" that
 * distinguishes two objects of a bundle; or after the library and the role that the metadata
 * MAP states, in which the first of equal keys counts.
 */
static void name_entry(struct report_entry *entry, struct kp_span key, struct kp_span map)
{
	const uint8_t *end = memrchr(key.data, '#', key.size);
	struct kp_span name = end ? kp_span_head(key, (size_t)(end - key.data)) : key;
	struct kp_span library = {0}, role = {0}, field;
	struct kp_mp c = kp_mp_over(map);
	uint32_t n;

	end = end ? memrchr(name.data, '@', name.size) : NULL;
	entry->library = end ? kp_span_head(name, (size_t)(end - name.data)) : name;
	if (!map.size || !kp_mp_map(&c, &n))
		return;
	while (n-- && kp_mp_str(&c, &field)) {
		struct kp_span *out = kp_span_is(field, "library") ? &library
				      : kp_span_is(field, "role")  ? &role
								   : NULL;

		if (out && !out->data && kp_mp_peek(&c) == KP_MP_STR)
			kp_mp_str(&c, out);
		else
			kp_mp_skip(&c);
	}
	if (library.size) {
		entry->library = library;
		entry->role = role;
		entry->database = true;
	}
}

static kpack_error_t read_entries(struct report_figures *f, const struct report_input *in,
				  struct kpackx_error *why)
{
	size_t n_entries = 0, n_objects = 0, first = 0, used = 0;
	KP_AUTO_FREE uint32_t *numbers = NULL;

	for (size_t i = 0; i < in->count; i++) {
		n_entries += kp_archive_entry_count(in->archives[i].archive);
		n_objects += kp_archive_ordinal_count(in->archives[i].archive);
	}
	if (n_entries > UINT32_MAX || n_objects > UINT32_MAX)
		return kp_fail_memory(why, n_entries, "entries");
	f->entries = xcalloc(n_entries, sizeof(*f->entries));
	f->objects = xcalloc(n_objects, sizeof(*f->objects));
	for (size_t i = 0; i < in->count; i++) {
		const struct kpack_archive *a = in->archives[i].archive;

		for (size_t at = 0; at < kp_archive_entry_count(a); at++) {
			struct report_entry *entry = &f->entries[f->n_entries++];
			struct report_object *o;
			struct kp_entry_info e;

			kp_archive_entry(a, at, &e);
			o = &f->objects[first + e.ordinal];
			*entry = (struct report_entry){
				.arch = e.arch,
				.size = e.size,
				.object = (uint32_t)(first + e.ordinal),
				.first = o->entries == 0};
			name_entry(entry, e.key, kp_archive_meta_raw(a, at));
			add_bytes(&f->decoded, e.size);
			if (o->entries++) {
				f->shared++;
				add_bytes(&f->saved, e.stored);
				continue;
			}
			entry->stored = e.stored;
			add_bytes(&f->stored, e.stored);
			*o = (struct report_object){.archive = (uint32_t)i,
						    .entry = (uint32_t)at,
						    .entries = 1,
						    .size = e.size,
						    .stored = e.stored};
		}
		first += kp_archive_ordinal_count(a);
	}
	/* ordinals that no entry refers to are no objects */
	numbers = xmalloc(n_objects * sizeof(*numbers));
	for (size_t i = 0; i < n_objects; i++) {
		numbers[i] = (uint32_t)used;
		if (f->objects[i].entries)
			f->objects[used++] = f->objects[i];
	}
	for (size_t i = 0; i < f->n_entries; i++)
		f->entries[i].object = numbers[f->entries[i].object];
	f->n_objects = used;
	return KPACK_SUCCESS;
}

/* ---- contents ---- */

/* Objects without a hash are the only ones of their size, or could not be read. */
static int compare_contents(const struct report_object *a, const struct report_object *b)
{
	if (a->size != b->size)
		return KP_ORDER(a->size, b->size);
	if (a->hashed != b->hashed)
		return a->hashed - b->hashed;
	return memcmp(a->hash, b->hash, sizeof(a->hash));
}

/* Equal objects stand in order of their archives. */
static int by_content(const void *pa, const void *pb)
{
	const struct report_object *const *a = pa, *const *b = pb;
	int order = compare_contents(*a, *b);

	return order ? order : KP_ORDER(*a, *b);
}

/* The larger number first, else as THEN says. */
static int descending(uint64_t a, uint64_t b, int then)
{
	return a != b ? KP_ORDER(b, a) : then;
}

static int by_stored_bytes(const void *pa, const void *pb)
{
	const struct report_object *a = *(const struct report_object *const *)pa,
				   *b = *(const struct report_object *const *)pb;

	return descending(a->stored, b->stored, KP_ORDER(a, b));
}

static int by_duplicate_saving(const void *pa, const void *pb)
{
	const struct report_duplicate *a = pa, *b = pb;

	return descending(a->saving, b->saving, KP_ORDER(a->first, b->first));
}

/*
 * Give objects with the same bytes one number.  What has the size of another object and states no hash
 * is decoded; what cannot be decoded is a fault, and equal to nothing.
 */
static void find_contents(struct report_figures *f, struct report_input *in, bool wanted)
{
	struct report_object **order = xmalloc(f->n_objects * sizeof(*order));
	struct report_duplicate *d;
	uint64_t bytes = 0, done = 0;

	for (size_t i = 0; i < f->n_objects; i++) {
		struct report_object *o = order[i] = &f->objects[i];
		struct kp_meta meta;

		if (o->size == 0) { /* empty objects are equal */
			o->hashed = true;
			continue;
		}
		kp_archive_meta(in->archives[o->archive].archive, o->entry, &meta);
		o->hashed = meta.has_xxh3;
		memcpy(o->hash, meta.xxh3, sizeof(o->hash));
	}
	qsort(order, f->n_objects, sizeof(*order), by_content);
	for (size_t i = 0; i < f->n_objects; i++)
		add_bytes(&bytes, order[i]->hashed ? 0 : order[i]->size);
	progress_begin("comparing", bytes, wanted && bytes);
	for (size_t i = 0; i < f->n_objects; i++) {
		struct report_object *o = order[i];
		const struct report_archive *from;
		struct kpackx_error why = {0};
		struct kp_entry_info e;
		struct kp_hash hash;
		char key[1024];
		bool alone = (i == 0 || order[i - 1]->size != o->size) &&
			     (i + 1 == f->n_objects || order[i + 1]->size != o->size);

		if (alone || o->hashed || done > COMPARE_MAX)
			continue;
		from = &in->archives[o->archive];
		o->hashed = !kp_entry_check_size(from->archive, o->entry, &why) &&
			    !content_hash_decoded(from->archive, o->entry, &hash, &why);
		if (o->hashed) {
			memcpy(o->hash, hash.bytes, sizeof(o->hash));
		} else {
			kp_archive_entry(from->archive, o->entry, &e);
			report_input_fault(in, from->name, "%s: %s",
					   kp_text_escape(e.key, key, sizeof(key)),
					   why.text);
		}
		done += o->size;
	}
	progress_end();
	if (done > COMPARE_MAX)
		report_input_fault(in, in->archives[0].name,
				   "too many bytes without hashes: some duplicates may "
				   "be missing");
	qsort(order, f->n_objects, sizeof(*order), by_content);

	f->duplicates = d = xcalloc(f->n_objects, sizeof(*d));
	for (size_t i = 0; i < f->n_objects; i++) {
		struct report_object *o = order[i];

		if (i && o->hashed && compare_contents(order[i - 1], o) == 0) {
			struct report_duplicate *same = &d[f->n_contents - 1];

			same->copies++;
			add_bytes(&same->saving, o->stored);
			add_bytes(&f->saving, o->stored);
		} else {
			d[f->n_contents++] = (struct report_duplicate){o, 1, 0};
		}
		o->content = f->n_contents - 1;
	}
	for (size_t i = 0; i < f->n_contents; i++)
		if (d[i].copies > 1)
			d[f->n_duplicates++] = d[i];
	qsort(d, f->n_duplicates, sizeof(*d), by_duplicate_saving);

	qsort(order, f->n_objects, sizeof(*order), by_stored_bytes);
	f->largest = (const struct report_object **)order;
	for (size_t i = 0; i < f->n_entries; i++)
		f->entries[i].content = f->objects[f->entries[i].object].content;
}

/* ---- sums ---- */

#define ENTRY_BY(kind, field) KP_BY_##kind(struct report_entry, field)

/*
 * Sum up the entries that have equal KEYS, the first of which is the row's name, and the last
 * its second name if it has one.
 */
static void sum_entries(struct report_figures *f, const struct kp_sort_key *keys,
			size_t n_keys, bool only_databases, struct report_rows *out)
{
	const struct report_entry *last = NULL;
	struct kp_sort_key order[4];

	/* further by object, so that the order does not depend on the C library */
	memcpy(order, keys, n_keys * sizeof(*keys));
	order[n_keys] = (struct kp_sort_key)ENTRY_BY(NUMBER, object);
	kp_sort_by(f->entries, f->n_entries, sizeof(*f->entries), order, n_keys + 1);
	out->items = xcalloc(f->n_entries, sizeof(*out->items));
	for (size_t i = 0; i < f->n_entries; i++) {
		const struct report_entry *entry = &f->entries[i];
		struct report_row *sum;

		if (only_databases && !entry->database)
			continue;
		if (!last || kp_compare_by(last, entry, keys, n_keys)) {
			const char *at = (const char *)entry;
			struct report_row *row = &out->items[out->count];

			memcpy(&row->name, at + keys[0].offset, sizeof(row->name));
			if (keys[n_keys - 1].kind == 's' && n_keys > 1)
				memcpy(&row->second, at + keys[n_keys - 1].offset,
				       sizeof(row->second));
			row->database = entry->database;
			row->number = (uint32_t)out->count++;
		}
		sum = &out->items[out->count - 1];
		sum->entries++;
		sum->objects += entry->first;
		add_bytes(&sum->decoded, entry->size);
		add_bytes(&sum->stored, entry->stored);
		last = entry;
	}
}

static int by_row_stored(const void *pa, const void *pb)
{
	const struct report_row *a = pa, *b = pb;

	return descending(a->stored, b->stored, KP_ORDER(a->number, b->number));
}

/* ---- families ---- */

enum family_kind { FEATURES, GENERIC, SUBFAMILY, FAMILY, EVERY_GPU, FAMILY_KINDS };

static const char *const kind_names[FAMILY_KINDS] = {"features", "generic", "sub-family",
						     "family", "all"};

/*
 * The name of the group of a KIND that ARCH is in, which may be put into TEXT; or NULL.  Code
 * that suits every GPU is in no group.
 */
static const char *group_of(enum family_kind kind, struct kp_span arch,
			    char text[KP_TARGET_TEXT_MAX])
{
	const struct gpu_subfamily *sub = gpu_subfamily_of(arch);
	struct kp_target t;
	bool is_target = !kp_target_parse(arch, &t, NULL);

	switch (kind) {
	case FEATURES:
		if (!is_target || !t.known)
			return NULL;
		return memcpy(text, t.processor, strlen(t.processor) + 1);
	case GENERIC:
		return is_target ? kp_processor_generic(kp_span_str(t.processor)) : NULL;
	case SUBFAMILY:
		return sub ? sub->name : NULL;
	case FAMILY:
		return sub ? sub->family : NULL;
	default:
		return is_target && !kp_target_neutral(&t) ? "every GPU" : NULL;
	}
}

static int by_family_saving(const void *pa, const void *pb)
{
	const struct report_family *a = pa, *b = pb;

	return descending(a->apart - a->together, b->apart - b->together,
			  strcmp(a->name, b->name));
}

/*
 * The stored bytes of the architecture ROW's contents, without those that MARKS have under
 * MARK already.  The entries are sorted by architecture; FIRST has each one's first.
 */
static uint64_t count_arch(const struct report_figures *f, uint32_t row,
			   const size_t *first, uint32_t *marks, uint32_t mark)
{
	uint32_t number = f->arches.items[row].number;
	uint64_t sum = 0;

	for (size_t i = first[number]; i < first[number + 1]; i++) {
		const struct report_entry *entry = &f->entries[i];

		if (marks[entry->content] == mark)
			continue;
		marks[entry->content] = mark;
		add_bytes(&sum, f->objects[entry->object].stored);
	}
	return sum;
}

/*
 * Find the families of F's architectures, and what one archive for each would have.  Those of one
 * member show nothing, and those with the same members become one.
 */
static void measure_families(struct report_figures *f)
{
	KP_AUTO_FREE size_t *first = xcalloc(f->arches.count + 1, sizeof(*first));
	KP_AUTO_FREE uint32_t *marks = xcalloc(f->n_contents, sizeof(*marks));
	uint32_t mark = 0;
	size_t n = 0;

	for (enum family_kind kind = 0; kind < FAMILY_KINDS; kind++) {
		size_t from = f->n_families;

		for (size_t i = 0; i < f->arches.count; i++) {
			char text[KP_TARGET_TEXT_MAX];
			const char *name = group_of(kind, f->arches.items[i].name, text);
			struct report_family *family = NULL;

			if (!name)
				continue;
			for (size_t k = from; k < f->n_families && !family; k++)
				if (strcmp(f->families[k].name, name) == 0)
					family = &f->families[k];
			if (!family) {
				f->families = xrealloc(f->families,
						       (f->n_families + 1) *
							       sizeof(*f->families));
				family = &f->families[f->n_families++];
				*family =
					(struct report_family){.kind = kind_names[kind]};
				snprintf(family->name, sizeof(family->name), "%s", name);
			}
			family->members =
				xrealloc(family->members,
					 (family->n_members + 1) * sizeof(uint32_t));
			family->members[family->n_members++] = (uint32_t)i;
		}
	}
	/* one of several with the same members gets their names */
	for (size_t i = 0; i < f->n_families; i++) {
		struct report_family *family = &f->families[i], *same = NULL;
		size_t size = family->n_members * sizeof(*family->members);

		for (size_t k = 0; k < n && !same; k++)
			if (f->families[k].n_members == family->n_members &&
			    memcmp(f->families[k].members, family->members, size) == 0)
				same = &f->families[k];
		if (same && strcmp(same->name, family->name) != 0) {
			size_t end = strlen(same->name);

			snprintf(same->name + end, sizeof(same->name) - end, " / %s",
				 family->name);
		}
		if (same || family->n_members < 2)
			free(family->members);
		else
			f->families[n++] = *family;
	}
	f->n_families = n;
	/* apart, each member's archive has its contents; together, each content is there once */
	for (size_t i = 0; i < f->n_entries; i++)
		first[f->entries[i].arch_number + 1] = i + 1;
	for (size_t i = 0; i < f->n_families; i++) {
		struct report_family *family = &f->families[i];

		family->least = UINT64_MAX;
		for (size_t k = 0; k < family->n_members; k++) {
			uint64_t bytes =
				count_arch(f, family->members[k], first, marks, ++mark);

			add_bytes(&family->apart, bytes);
			family->least = bytes < family->least ? bytes : family->least;
			family->most = bytes > family->most ? bytes : family->most;
		}
		mark++;
		for (size_t k = 0; k < family->n_members; k++)
			add_bytes(&family->together,
				  count_arch(f, family->members[k], first, marks, mark));
	}
	if (f->n_families)
		qsort(f->families, f->n_families, sizeof(*f->families), by_family_saving);
}

kpack_error_t report_figures_open(struct report_input *in, struct arch_filter *filter,
				  bool progress, struct report_figures *out,
				  struct kpackx_error *why)
{
	static const struct kp_sort_key library[] = {ENTRY_BY(SPAN, library),
						     ENTRY_BY(NUMBER, database)},
					cell[] = {ENTRY_BY(SPAN, library),
						  ENTRY_BY(NUMBER, database),
						  ENTRY_BY(SPAN, arch)},
					role[] = {ENTRY_BY(SPAN, library),
						  ENTRY_BY(SPAN, role)},
					arch[] = {ENTRY_BY(SPAN, arch)};
	KP_AUTO_FREE bool *stays = NULL;
	struct report_rows *sorted[] = {&out->arches, &out->libraries, &out->databases};
	uint32_t number = 0;

	*out = (struct report_figures){0};
	KP_TRY(read_entries(out, in, why));
	find_contents(out, in, progress);
	sum_entries(out, library, KP_COUNT(library), false, &out->libraries);
	sum_entries(out, cell, KP_COUNT(cell), false, &out->cells);
	sum_entries(out, role, KP_COUNT(role), true, &out->databases);
	sum_entries(out, arch, KP_COUNT(arch), false, &out->arches);
	for (size_t i = 0; i < out->n_entries; i++) {
		number +=
			i && !kp_span_eq(out->entries[i - 1].arch, out->entries[i].arch);
		out->entries[i].arch_number = number;
	}
	for (size_t i = 0; i < KP_COUNT(sorted); i++)
		qsort(sorted[i]->items, sorted[i]->count, sizeof(*sorted[i]->items),
		      by_row_stored);
	for (size_t i = 0; i < out->libraries.count; i++)
		out->binaries += !out->libraries.items[i].database;
	measure_families(out);
	if (kp_choice_is_all(&filter->chosen))
		return KPACK_SUCCESS;
	/* what the wanted GPUs keep: an object goes if all of its entries go */
	stays = xcalloc(out->n_objects + 1, sizeof(*stays));
	out->gpus = xstrdup("");
	for (size_t i = 0; i < filter->chosen.count; i++) {
		char gpu[KP_TARGET_TEXT_MAX], *longer;

		kp_target_format(&filter->chosen.gpus[i], gpu);
		longer = xasprintf("%s%s%s", out->gpus, i ? ", " : "", gpu);
		free(out->gpus);
		out->gpus = longer;
	}
	for (size_t i = 0; i < out->n_entries; i++) {
		const struct report_entry *entry = &out->entries[i];
		bool goes = arch_filter_drops(filter, entry->arch);
		struct report_row *row = goes ? &out->freed : &out->kept;

		row->entries++;
		add_bytes(&row->decoded, entry->size);
		stays[entry->object] |= !goes;
	}
	for (size_t i = 0; i < out->n_objects; i++) {
		struct report_row *row = stays[i] ? &out->kept : &out->freed;

		row->objects++;
		add_bytes(&row->stored, out->objects[i].stored);
	}
	return KPACK_SUCCESS;
}

void report_figures_close(struct report_figures *f)
{
	for (size_t i = 0; i < f->n_families; i++)
		free(f->families[i].members);
	free(f->families);
	free(f->entries);
	free(f->objects);
	free(f->arches.items);
	free(f->libraries.items);
	free(f->databases.items);
	free(f->cells.items);
	free(f->largest);
	free(f->duplicates);
	free(f->gpus);
	*f = (struct report_figures){0};
}
