/* SPDX-License-Identifier: MIT */
#include "selection.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/base/bounds.h"
#include "core/base/sink.h"
#include "core/format/strip.h"
#include "core/format/ccob.h"
#include "core/format/bundle.h"
#include "core/restore/recipe.h"

/* Where a container is written: to memory that has room for it, or to a file from OFFSET on. */
struct dest {
	uint8_t *memory; /* NULL: the file */
	struct kp_outfile *file;
	uint64_t offset;
};

/* Where compilers align the objects of bundles. */
enum { WRAP_ALIGN = 4096 };

/* A bundle that is written without some images. */
struct rest {
	struct kp_source payload;
	const struct kp_image *images;
	struct kp_bundle_row *rows;   /* where they will be */
	size_t *numbers;              /* of the images of the rows */
	struct kp_stripped *stripped; /* per row; no work: the object stays as it is */
	size_t n;
	bool changed; /* something is left out or stripped */
	uint64_t size;
};

/* ---- debugging information ---- */

/* Plan OBJECT without debugging information; *OUT stays zeroed if it stays as it is. */
static kpack_error_t strip_object(const struct kp_selection *selection,
				  const struct kp_source *object, bool written,
				  struct kp_stripped *out, struct kpackx_error *why)
{
	uint8_t bytes[20];
	struct kpackx_error fault;
	struct kp_span head;
	bool keep = false;
	kpack_error_t err;

	KP_TRY(kp_source_head(object, 0, bytes, sizeof(bytes), &head, why));
	if (!kp_format_code_object.probe(head))
		return KPACK_SUCCESS;
	err = kp_strip_plan(object, KP_STRIP_DEBUG, out, &fault);
	if (err == KPACK_ERROR_NOT_IMPLEMENTED || err == KPACK_ERROR_INVALID_FORMAT)
		return KPACK_SUCCESS;
	if (err && why)
		*why = fault;
	if (!err && selection->strips)
		err = selection->strips(selection->arg, object, written, &keep, why);
	if (err || keep)
		kp_stripped_fini(out);
	return err;
}

static int by_offset(const void *a, const void *b)
{
	const struct kp_bundle_row *x = *(struct kp_bundle_row *const *)a,
				   *y = *(struct kp_bundle_row *const *)b;

	return KP_ORDER(x->offset, y->offset);
}

/* Whether two objects share bytes, so that neither can become shorter. */
static kpack_error_t find_overlap(const struct rest *rest, bool *overlap,
				  struct kpackx_error *why)
{
	const struct kp_bundle_row **sorted = calloc(rest->n + 1, sizeof(*sorted));
	size_t n = 0;

	if (!sorted)
		return kp_fail_memory(why, rest->n * sizeof(*sorted), "a bundle");
	for (size_t i = 0; i < rest->n; i++)
		if (rest->rows[i].size)
			sorted[n++] = &rest->rows[i];
	qsort(sorted, n, sizeof(*sorted), by_offset);
	*overlap = false;
	for (size_t i = 1; i < n; i++)
		*overlap |=
			sorted[i]->offset - sorted[i - 1]->offset < sorted[i - 1]->size;
	free(sorted);
	return KPACK_SUCCESS;
}

static kpack_error_t strip_rows(struct rest *rest, const struct kp_selection *selection,
				bool written, struct kpackx_error *why)
{
	bool overlap = false;

	KP_TRY(find_overlap(rest, &overlap, why));
	for (size_t i = 0; i < rest->n && !overlap; i++) {
		const struct kp_image *image = &rest->images[rest->numbers[i]];
		struct kp_source object;

		if (image->host ||
		    !kp_source_sub(&rest->payload, image->offset, image->size, &object))
			continue;
		KP_TRY(strip_object(selection, &object, written, &rest->stripped[i],
				    why));
		if (!rest->stripped[i].work)
			continue;
		rest->rows[i].size = rest->stripped[i].size;
		rest->changed = true;
	}
	return KPACK_SUCCESS;
}

/* ---- the rest of a bundle ---- */

static kpack_error_t rest_init(struct rest *rest, const struct kp_fatbin *fat,
			       const struct kp_container *c,
			       const struct kp_selection *selection, bool written,
			       struct kpackx_error *why)
{
	rest->images = fat->containers.images;
	rest->rows = calloc(c->n_images + 1, sizeof(*rest->rows));
	rest->numbers = calloc(c->n_images + 1, sizeof(*rest->numbers));
	rest->stripped = calloc(c->n_images + 1, sizeof(*rest->stripped));
	if (!rest->rows || !rest->numbers || !rest->stripped)
		return kp_fail_memory(why, c->n_images * sizeof(*rest->rows), "a bundle");
	for (size_t i = c->first_image; i < c->first_image + c->n_images; i++) {
		const struct kp_image *image = &rest->images[i];

		rest->changed |= selection->gone[i];
		if (selection->gone[i])
			continue;
		rest->numbers[rest->n] = i;
		rest->rows[rest->n++] =
			(struct kp_bundle_row){kp_span_str(image->id ? image->id : ""),
					       image->offset, image->size};
	}
	if (selection->strip)
		KP_TRY(strip_rows(rest, selection, written, why));
	return kp_bundle_move_together(rest->rows, rest->n, &rest->size, why);
}

static void rest_fini(struct rest *rest)
{
	for (size_t i = 0; rest->stripped && i < rest->n; i++)
		kp_stripped_fini(&rest->stripped[i]);
	free(rest->stripped);
	free(rest->rows);
	free(rest->numbers);
}

/* Copy SIZE bytes at FROM of SRC to OFF of the sink. */
static kpack_error_t put_copy(const struct dest *s, uint64_t off,
			      const struct kp_source *src, uint64_t from, uint64_t size,
			      struct kpackx_error *why)
{
	struct kp_sink sink = {.out = s->file, .size = s->offset + off};
	struct kp_source part;

	if (s->memory)
		return kp_source_read(src, from, s->memory + off, (size_t)size, why);
	if (!kp_source_sub(src, from, size, &part))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "a code object or container passes the end");
	return kp_sink_copy(&sink, &part, why);
}

static kpack_error_t put_object(const struct rest *rest, size_t row, const struct dest *s,
				struct kpackx_error *why)
{
	const struct kp_image *image = &rest->images[rest->numbers[row]];
	const struct kp_stripped *stripped = &rest->stripped[row];
	uint64_t to = rest->rows[row].offset;
	struct kp_source object;

	if (!image->size)
		return KPACK_SUCCESS;
	if (!stripped->work)
		return put_copy(s, to, &rest->payload, image->offset, image->size, why);
	if (!kp_source_sub(&rest->payload, image->offset, image->size, &object))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "a code object passes the end");
	return s->memory ? kp_stripped_read(stripped, &object, s->memory + to, why)
			 : kp_stripped_write(stripped, &object, s->file, s->offset + to,
					     why);
}

/* Write the rest of a bundle. */
static kpack_error_t rest_write(const struct rest *rest, const struct dest *s,
				struct kpackx_error *why)
{
	size_t size = (size_t)kp_bundle_header_size(rest->rows, rest->n);
	uint8_t *header = s->memory ? s->memory : malloc(size);
	kpack_error_t err = KPACK_SUCCESS;

	if (!header)
		return kp_fail_memory(why, size, "a bundle header");
	kp_bundle_header_write(rest->rows, rest->n, header);
	if (!s->memory) {
		err = kp_outfile_pwrite(s->file, s->offset, header, size, why);
		free(header);
	}
	KP_TRY(err);
	for (size_t i = 0; i < rest->n; i++)
		KP_TRY(put_object(rest, i, s, why));
	return KPACK_SUCCESS;
}

/* ---- containers ---- */

/* Encode REST as FORM says; the form's hash is set. */
static kpack_error_t encode_rest(const struct rest *rest, struct kp_ccob_form form,
				 uint8_t **out, size_t *size, struct kpackx_error *why)
{
	struct dest s = {.memory = calloc(1, (size_t)rest->size + 1)};
	struct kp_span bytes = {s.memory, (size_t)rest->size};
	kpack_error_t err;

	if (!s.memory)
		return kp_fail_memory(why, rest->size, "a bundle");
	err = rest_write(rest, &s, why);
	if (!err) {
		form.hash = kp_ccob_hash(bytes);
		err = kp_ccob_encode(&form, bytes, out, size, why);
	}
	free(s.memory);
	return err;
}

/*
 * Write REST compressed.  If that has LIMIT bytes or more, or its size does not fit into the
 * header, nothing is written, and *SIZE becomes 0; REQUIRED: neither is looked at.
 */
#define REQUIRED UINT64_MAX
static kpack_error_t write_encoded(const struct rest *rest,
				   const struct kp_ccob_form *form, uint64_t limit,
				   const struct dest *s, uint64_t *size,
				   struct kpackx_error *why)
{
	uint8_t *encoded = NULL;
	size_t n = 0;
	kpack_error_t err = encode_rest(rest, *form, &encoded, &n, why);

	*size = 0;
	if (err == KPACK_ERROR_NOT_IMPLEMENTED && limit != REQUIRED)
		return KPACK_SUCCESS;
	if (!err && n < limit) {
		*size = n;
		if (s->file)
			err = kp_outfile_pwrite(s->file, s->offset, encoded, n, why);
	}
	free(encoded);
	return err;
}

static kpack_error_t write_rest(const struct kp_fatbin *fat, const struct kp_container *c,
				const struct kp_selection *selection,
				const struct rest *rest, const struct dest *s,
				uint64_t *size, struct kpackx_error *why)
{
	struct kp_ccob_form form;

	if (c->format == &kp_format_ccob) {
		KP_TRY(kp_ccob_form_read(&fat->source, c, &form, why));
		return write_encoded(rest, &form, REQUIRED, s, size, why);
	}
	if (selection->compress && rest->size <= KP_CCOB_MAX) {
		KP_TRY(write_encoded(rest, selection->compress, rest->size, s, size,
				     why));
		if (*size)
			return KPACK_SUCCESS;
	}
	*size = rest->size;
	return s->file ? rest_write(rest, s, why) : KPACK_SUCCESS;
}

static bool loses_images(const struct kp_container *c, const bool *gone)
{
	for (size_t i = c->first_image; i < c->first_image + c->n_images; i++)
		if (gone[i])
			return true;
	return false;
}

/* Whether C may change; the images of a compressed bundle must be looked at. */
static bool may_change(const struct kp_container *c, const struct kp_selection *selection)
{
	return selection->strip || loses_images(c, selection->gone) ||
	       (selection->compress && c->format == &kp_format_bundle);
}

static kpack_error_t copy_container(const struct kp_fatbin *fat,
				    const struct kp_container *c, const struct dest *s,
				    uint64_t *size, struct kpackx_error *why)
{
	*size = c->size;
	return s->file ? put_copy(s, 0, &fat->source, c->offset, c->size, why)
		       : KPACK_SUCCESS;
}

/* What is to be done with a container; S and SIZE are NULL: only find CHANGES. */
struct step {
	const struct kp_fatbin *fat;
	const struct kp_selection *selection;
	const struct dest *s;
	uint64_t *size;
	bool changes;
};

/*
 * Write the code object of C's only image as a compressed bundle, as compilers make them of
 * one object.  *SIZE stays 0 if that is not smaller.
 */
static kpack_error_t wrap_object(struct step *step, const struct kp_container *c,
				 const struct kp_source *object,
				 struct kp_stripped *stripped, struct kpackx_error *why)
{
	const struct kp_image *image = &step->fat->containers.images[c->first_image];
	const struct kp_image images[] = {{.host = true}, {.size = object->size}};
	char id[KP_TARGET_TEXT_MAX + 32];
	struct kp_bundle_row rows[] = {
		{kp_span_str("host-x86_64-unknown-linux-gnu-"), 0, 0},
		{.size = stripped->work ? stripped->size : object->size}};
	size_t numbers[] = {0, 1};
	struct kp_stripped none[] = {{0}, *stripped};
	struct rest rest = {.payload = *object,
			    .images = images,
			    .rows = rows,
			    .numbers = numbers,
			    .stripped = none,
			    .n = 2};

	snprintf(id, sizeof(id), "hipv4-amdgcn-amd-amdhsa--%s", image->arch);
	rows[1].id = kp_span_str(id);
	*step->size = 0;
	if (c->n_images != 1 || !*image->arch || object->size > KP_CCOB_MAX ||
	    !kp_bundle_place(rows, 2, WRAP_ALIGN, 0, &rest.size))
		return KPACK_SUCCESS;
	return write_encoded(&rest, step->selection->compress, rows[1].size, step->s,
			     step->size, why);
}

static kpack_error_t put_stripped(const struct step *step, const struct kp_container *c,
				  const struct kp_source *object,
				  const struct kp_stripped *stripped,
				  struct kpackx_error *why)
{
	if (!stripped->work)
		return copy_container(step->fat, c, step->s, step->size, why);
	*step->size = stripped->size;
	return step->s->file ? kp_stripped_write(stripped, object, step->s->file,
						 step->s->offset, why)
			     : KPACK_SUCCESS;
}

/* Write the code object C. */
static kpack_error_t step_object(struct step *step, const struct kp_container *c,
				 struct kpackx_error *why)
{
	bool written = step->s && step->s->file;
	bool wrap = step->selection->wrap && step->selection->compress;
	struct kp_stripped stripped = {0};
	kpack_error_t err = KPACK_SUCCESS;
	struct kp_source object;

	if (!kp_source_sub(&step->fat->source, c->offset, c->size, &object))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "a code object passes the end");
	if (step->selection->strip)
		err = strip_object(step->selection, &object, written, &stripped, why);
	step->changes = stripped.work || wrap;
	if (!err && step->s && wrap)
		err = wrap_object(step, c, &object, &stripped, why);
	if (!err && step->s && !(wrap && *step->size))
		err = put_stripped(step, c, &object, &stripped, why);
	kp_stripped_fini(&stripped);
	return err;
}

/* Write the bundle C. */
static kpack_error_t step_bundle(struct step *step, const struct kp_container *c,
				 struct kpackx_error *why)
{
	bool written = step->s && step->s->file;
	struct kp_payload payload = {0};
	struct rest rest = {0};
	kpack_error_t err;

	err = kp_container_load(&step->fat->source, c, &payload, why);
	rest.payload = payload.source;
	if (!err)
		err = rest_init(&rest, step->fat, c, step->selection, written, why);
	step->changes = rest.changed ||
			(step->selection->compress && c->format == &kp_format_bundle);
	if (!err && step->s && step->changes)
		err = write_rest(step->fat, c, step->selection, &rest, step->s,
				 step->size, why);
	else if (!err && step->s)
		err = copy_container(step->fat, c, step->s, step->size, why);
	rest_fini(&rest);
	kp_payload_fini(&payload);
	return err;
}

static kpack_error_t step_container(struct step *step, size_t number,
				    struct kpackx_error *why)
{
	const struct kp_container *c = &step->fat->containers.items[number];
	kpack_error_t err;

	if (kp_selection_possible(step->fat, number) && may_change(c, step->selection))
		err = step_bundle(step, c, why);
	else if (c->format == &kp_format_code_object)
		err = step_object(step, c, why);
	else if (step->s)
		err = copy_container(step->fat, c, step->s, step->size, why);
	else
		err = KPACK_SUCCESS;
	return err ? kp_fail_prefix(why, err, "container %zu", number) : err;
}

bool kp_selection_possible(const struct kp_fatbin *fat, size_t number)
{
	const struct kp_container *c = &fat->containers.items[number];

	return (fat->kind == KP_FATBIN_ELF || fat->kind == KP_FATBIN_BARE) &&
	       c->inside == KP_NOWHERE &&
	       (c->format == &kp_format_bundle || c->format == &kp_format_ccob);
}

kpack_error_t kp_selection_write(const struct kp_fatbin *fat,
				 const struct kp_selection *selection,
				 struct kp_outfile *out, uint64_t *offsets,
				 uint64_t *size, struct kpackx_error *why)
{
	const struct kp_containers *list = &fat->containers;
	uint64_t all = 0, align, pos = 0, n = 0;

	if (kp_recipe_is_too_much(list))
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "device code of more than %" PRIu64 " bytes",
			       KP_LAYOUT_SECTION_MAX);
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i].inside == KP_NOWHERE)
			all |= list->items[i].offset;
	align = kp_bundle_alignment(all);
	for (size_t i = 0; i < list->count; i++) {
		struct dest s = {.file = out};
		struct step step = {
			.fat = fat, .selection = selection, .s = &s, .size = &n};

		if (list->items[i].inside != KP_NOWHERE)
			continue;
		pos = (pos + align - 1) & -align;
		s.offset = offsets[i] = pos;
		KP_TRY(step_container(&step, i, why));
		pos += n;
	}
	*size = pos;
	return KPACK_SUCCESS;
}

kpack_error_t kp_selection_changes(const struct kp_fatbin *fat,
				   const struct kp_selection *selection, bool *changes,
				   struct kpackx_error *why)
{
	const struct kp_containers *list = &fat->containers;

	*changes = false;
	for (size_t i = 0; i < list->count && !*changes; i++) {
		struct step step = {.fat = fat, .selection = selection};

		if (list->items[i].inside != KP_NOWHERE)
			continue;
		KP_TRY(step_container(&step, i, why));
		*changes |= step.changes;
	}
	return KPACK_SUCCESS;
}
