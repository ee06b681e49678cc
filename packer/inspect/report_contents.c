/* SPDX-License-Identifier: MIT */
#include "report_contents.h"
#include <stdio.h>
#include <stdlib.h>
#include "packer/archives/content.h"
#include "packer/cli/xalloc.h"
#include "packer/archives/operands.h"
#include "core/writer/store.h"
#include "report_text.h"

/*
 * The most bytes to decode for comparison: all of ROCm has 30 GB, but a hostile archive
 * can state any number of gigabytes.
 */
#define COMPARE_MAX (UINT64_C(256) << 30)

/* --- hashes ------------------------------------------------------------------------- */

static kpack_error_t hash_piece(const void *data, size_t size, void *arg,
				struct kpackx_error *why)
{
	(void)why;
	kp_hasher_add(arg, data, size);
	return KPACK_SUCCESS;
}

static kpack_error_t hash_object(const struct kpack_archive *a, struct page_object *o,
				 struct kpackx_error *why)
{
	struct kp_hasher *hash;
	struct kp_hash value;
	kpack_error_t err;

	KP_TRY(kp_archive_check_size(a, o->entry, why));
	hash = kp_hasher_new();
	if (!hash)
		xalloc_fail(0);
	err = archive_decode(a, o->entry, hash_piece, hash, why);
	value = kp_hasher_value(hash);
	kp_hasher_free(hash);
	if (err)
		return err;
	memcpy(o->hash, value.bytes, sizeof(o->hash));
	o->hashed = true;
	return KPACK_SUCCESS;
}

static void report_unread(struct page_input *in, const struct page_object *o,
			  const struct kpackx_error *why)
{
	const struct page_archive *from = &in->archives[o->archive];
	struct kp_entry_info e;
	char *key, *text;

	kp_archive_entry(from->archive, o->entry, &e);
	key = page_shortened(e.key, SIZE_MAX);
	text = xasprintf("%s: %s", key, why->text);
	page_input_fault(in, from->name, text);
	free(text);
	free(key);
}

/* Hash the N objects in ORDER, which have one size, unless there is only one. */
static void hash_run(struct page_figures *f, struct page_input *in, const uint32_t *order,
		     size_t n, struct progress *progress)
{
	for (size_t i = 0; i < n && n > 1; i++) {
		struct page_object *o = &f->objects[order[i]];
		struct kpackx_error why = {0};

		if (o->hashed || progress->done > COMPARE_MAX)
			continue;
		if (hash_object(in->archives[o->archive].archive, o, &why))
			report_unread(in, o, &why);
		progress_add(progress, o->size);
	}
}

static void take_hashes(struct page_figures *f, const struct page_input *in)
{
	for (size_t i = 0; i < f->n_objects; i++) {
		struct page_object *o = &f->objects[i];
		struct kp_meta meta;

		if (o->size == 0) { /* empty objects are equal */
			o->hashed = true;
			continue;
		}
		kp_archive_meta(in->archives[o->archive].archive, o->entry, &meta);
		o->hashed = meta.has_xxh3;
		memcpy(o->hash, meta.xxh3, sizeof(o->hash));
	}
}

static int by_size(const void *pa, const void *pb, void *arg)
{
	const struct page_object *objects = arg;
	uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;

	if (objects[a].size != objects[b].size)
		return KP_ORDER(objects[a].size, objects[b].size);
	return KP_ORDER(a, b);
}

static void hash_all(struct page_figures *f, struct page_input *in, uint32_t *order,
		     bool wanted)
{
	struct progress progress;
	uint64_t bytes = 0;
	size_t from = 0;

	take_hashes(f, in);
	for (size_t i = 0; i < f->n_objects; i++)
		page_add(&bytes, f->objects[i].hashed ? 0 : f->objects[i].size);
	qsort_r(order, f->n_objects, sizeof(*order), by_size, f->objects);
	progress_begin(&progress, "comparing", bytes, wanted && bytes);
	for (size_t i = 1; i <= f->n_objects; i++) {
		if (i < f->n_objects &&
		    f->objects[order[i]].size == f->objects[order[from]].size)
			continue;
		hash_run(f, in, order + from, i - from, &progress);
		from = i;
	}
	progress_end(&progress);
	if (progress.done > COMPARE_MAX)
		page_input_fault(in, in->archives[0].name,
				 "too many bytes without hashes: some duplicates may be "
				 "missing");
}

/* --- contents ----------------------------------------------------------------------- */

/* Objects without a hash are the only ones of their size, or could not be read. */
static int by_content(const struct page_object *a, const struct page_object *b)
{
	if (a->size != b->size)
		return KP_ORDER(a->size, b->size);
	if (a->hashed != b->hashed)
		return a->hashed - b->hashed;
	return memcmp(a->hash, b->hash, sizeof(a->hash));
}

static int by_content_then_order(const void *pa, const void *pb, void *arg)
{
	const struct page_object *objects = arg;
	uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;
	int c = by_content(&objects[a], &objects[b]);

	return c ? c : KP_ORDER(a, b);
}

static bool same_content(const struct page_object *a, const struct page_object *b)
{
	return a->hashed && by_content(a, b) == 0;
}

static int by_saving(const void *pa, const void *pb)
{
	const struct page_twice *a = pa, *b = pb;

	if (a->saving != b->saving)
		return KP_ORDER(b->saving, a->saving);
	return KP_ORDER(a->first, b->first);
}

static void find_twice(struct page_figures *f, uint32_t *order)
{
	f->twice = xcalloc(f->n_objects, sizeof(*f->twice));
	qsort_r(order, f->n_objects, sizeof(*order), by_content_then_order, f->objects);
	for (size_t i = 0; i < f->n_objects; i++) {
		struct page_object *o = &f->objects[order[i]];
		struct page_twice *t = &f->twice[f->n_contents ? f->n_contents - 1 : 0];

		if (i && same_content(&f->objects[order[i - 1]], o)) {
			t->copies++;
			page_add(&t->saving, o->stored);
			page_add(&f->saving, o->stored);
		} else {
			f->twice[f->n_contents++] = (struct page_twice){order[i], 1, 0};
		}
		o->content = f->n_contents - 1;
	}
	for (size_t i = 0; i < f->n_contents; i++)
		if (f->twice[i].copies > 1)
			f->twice[f->n_twice++] = f->twice[i];
	qsort(f->twice, f->n_twice, sizeof(*f->twice), by_saving);
}

static int by_stored(const void *pa, const void *pb, void *arg)
{
	const struct page_object *objects = arg;
	uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;

	if (objects[a].stored != objects[b].stored)
		return KP_ORDER(objects[b].stored, objects[a].stored);
	return KP_ORDER(a, b);
}

void page_contents(struct page_figures *f, struct page_input *in, bool progress)
{
	f->largest = xmalloc(f->n_objects * sizeof(*f->largest));
	for (size_t i = 0; i < f->n_objects; i++)
		f->largest[i] = (uint32_t)i;
	hash_all(f, in, f->largest, progress);
	find_twice(f, f->largest);
	qsort_r(f->largest, f->n_objects, sizeof(*f->largest), by_stored, f->objects);
}
