/* SPDX-License-Identifier: MIT */
/*
 * Writing containers again with less in them.  A bundle is planned first: which rows stay, and which
 * of their objects become shorter; then it is written, plain or compressed, or only counted.
 *
 *	bundle         rows go, objects are stripped; it stays plain, or becomes compressed
 *	ccob           the same, compressed again in the form that it has
 *	code object    stripped; as a file of a library that reads bundles, also made one
 *	all other      copied
 *
 * kp_selection_changes stops at the first container that changes and encodes nothing.  Only counting
 * encodes too, because the size of a compressed bundle is not known before.
 */
#include "selection.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "core/base/order.h"
#include "core/base/sink.h"
#include "core/format/bundle.h"
#include "core/format/ccob.h"
#include "core/format/strip.h"
#include "core/restore/recipe.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"

/* Where compilers align the objects of bundles. */
enum { WRAP_ALIGN = 4096 };

/* Of write_encoded: the compressed form is wanted, however large it is. */
#define ANY_SIZE UINT64_MAX

/* The containers that are written one after the other, and what is done with them. */
struct selecting {
	const struct kp_fatbin *fat;
	const struct kp_selection *selection;
	struct kp_outfile *out; /* NULL: nothing is written */
	bool measured;          /* the sizes are wanted, also without OUT */
	uint64_t offset;        /* where the container goes */
	uint64_t size;          /* of the container that was written */
	bool changes;           /* it is another one */
};

/* A row of a bundle that is written, and the object in it. */
struct rest_row {
	struct kp_source object;
	struct kp_stripped stripped; /* no work: the object stays as it is */
};

/* A bundle that is written without some images. */
struct rest {
	struct kp_bundle_row *rows; /* where they will be */
	struct rest_row *objects;   /* per row */
	size_t n;
	bool changed; /* something is left out or stripped */
	uint64_t size;
};

static void rest_fini(struct rest *rest)
{
	for (size_t i = 0; i < rest->n; i++)
		kp_stripped_fini(&rest->objects[i].stripped);
	free(rest->rows);
	free(rest->objects);
}

/* Plan OBJECT without debugging information; *OUT stays zeroed if it stays as it is. */
static kpack_error_t strip_object(const struct selecting *s,
				  const struct kp_source *object, struct kp_stripped *out,
				  struct kpackx_error *why)
{
	const struct kp_selection *selection = s->selection;
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
		err = selection->strips(selection->arg, object, s->out != NULL, &keep,
					why);
	if (err || keep)
		kp_stripped_fini(out);
	return err;
}

/* ---- the rest of a bundle ---- */

/* Plan what stays of C, a bundle that was decoded to PAYLOAD. */
static kpack_error_t plan_rest(const struct selecting *s, const struct kp_container *c,
			       const struct kp_source *payload, struct rest *rest,
			       struct kpackx_error *why)
{
	KP_AUTO_FREE struct kp_bundle_row *sorted = xcalloc(c->n_images, sizeof(*sorted));
	bool overlap = !s->selection->strip;
	uint64_t end = 0;

	rest->rows = xcalloc(c->n_images, sizeof(*rest->rows));
	rest->objects = xcalloc(c->n_images, sizeof(*rest->objects));
	for (size_t i = c->first_image; i < c->first_image + c->n_images; i++) {
		const struct kp_image *image = &s->fat->containers.images[i];

		rest->changed |= s->selection->gone[i];
		if (s->selection->gone[i])
			continue;
		if (image->size && !kp_source_sub(payload, image->offset, image->size,
						  &rest->objects[rest->n].object))
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "a code object passes the end");
		rest->rows[rest->n++] =
			(struct kp_bundle_row){kp_span_str(image->id ? image->id : ""),
					       image->offset, image->size};
	}
	/* objects that share bytes cannot become shorter; their ends fit into the payload */
	if (rest->n)
		memcpy(sorted, rest->rows, rest->n * sizeof(*sorted));
	kp_sort(sorted, rest->n, KP_BY_NUMBER(struct kp_bundle_row, offset));
	for (size_t i = 0; i < rest->n; i++) {
		if (!sorted[i].size)
			continue;
		overlap |= sorted[i].offset < end;
		end = sorted[i].offset + sorted[i].size;
	}
	for (size_t i = c->first_image, row = 0; row < rest->n && !overlap; i++) {
		struct rest_row *o = &rest->objects[row];

		if (s->selection->gone[i])
			continue;
		if (o->object.size && !s->fat->containers.images[i].host)
			KP_TRY(strip_object(s, &o->object, &o->stripped, why));
		if (o->stripped.work) {
			rest->rows[row].size = o->stripped.size;
			rest->changed = true;
		}
		row++;
	}
	return kp_bundle_move_together(rest->rows, rest->n, &rest->size, why);
}

/* Write REST to MEMORY, which has zeros, or else to OUT at OFFSET. */
static kpack_error_t write_plain(const struct rest *rest, uint8_t *memory,
				 struct kp_outfile *out, uint64_t offset,
				 struct kpackx_error *why)
{
	size_t size = (size_t)kp_bundle_header_size(rest->rows, rest->n);
	KP_AUTO_FREE uint8_t *own = memory ? NULL : xmalloc(size);

	kp_bundle_header_write(rest->rows, rest->n, memory ? memory : own);
	if (!memory)
		KP_TRY(kp_outfile_pwrite(out, offset, own, size, why));
	for (size_t i = 0; i < rest->n; i++) {
		const struct rest_row *o = &rest->objects[i];
		uint64_t to = rest->rows[i].offset;
		struct kp_sink sink = {.out = out, .size = offset + to};

		if (!o->object.size)
			continue;
		if (o->stripped.work)
			KP_TRY(memory ? kp_stripped_read(&o->stripped, &o->object,
							 memory + to, why)
				      : kp_stripped_write(&o->stripped, &o->object, out,
							  offset + to, why));
		else
			KP_TRY(memory ? kp_source_read(&o->object, 0, memory + to,
						       (size_t)o->object.size, why)
				      : kp_sink_copy(&sink, &o->object, why));
	}
	return KPACK_SUCCESS;
}

/*
 * Write REST compressed as FORM says.  If that has LIMIT bytes or more, or its size does not fit
 * into the header, nothing is written, and s->size becomes 0.
 */
static kpack_error_t write_encoded(struct selecting *s, const struct rest *rest,
				   struct kp_ccob_form form, uint64_t limit,
				   struct kpackx_error *why)
{
	KP_AUTO_FREE uint8_t *memory = calloc(1, (size_t)rest->size + 1);
	KP_AUTO_FREE uint8_t *encoded = NULL;
	struct kp_span bytes = {memory, (size_t)rest->size};
	kpack_error_t err;
	size_t n = 0;

	s->size = 0;
	if (!memory)
		return kp_fail_memory(why, rest->size, "a bundle");
	err = write_plain(rest, memory, NULL, 0, why);
	if (!err) {
		form.hash = kp_ccob_hash(bytes);
		err = kp_ccob_encode(&form, bytes, &encoded, &n, why);
	}
	if (err == KPACK_ERROR_NOT_IMPLEMENTED && limit != ANY_SIZE)
		return KPACK_SUCCESS;
	if (err || n >= limit)
		return err;
	s->size = n;
	return s->out ? kp_outfile_pwrite(s->out, s->offset, encoded, n, why)
		      : KPACK_SUCCESS;
}

/* ---- containers ---- */

static kpack_error_t copy_container(struct selecting *s, const struct kp_container *c,
				    struct kpackx_error *why)
{
	struct kp_sink sink = {.out = s->out, .size = s->offset};
	struct kp_source part;

	s->size = c->size;
	if (!s->out)
		return KPACK_SUCCESS;
	if (!kp_source_sub(&s->fat->source, c->offset, c->size, &part))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "a code object or container passes the end");
	return kp_sink_copy(&sink, &part, why);
}

/* Write the bundle C without what goes; what it has compressed stays compressed. */
static kpack_error_t select_bundle(struct selecting *s, const struct kp_container *c,
				   struct kpackx_error *why)
{
	const struct kp_ccob_form *compress =
		c->format == &kp_format_bundle ? s->selection->compress : NULL;
	KP_AUTO(kp_payload) payload = {0};
	struct kp_ccob_form form;
	KP_AUTO(rest) rest = {0};

	KP_TRY(kp_container_load(&s->fat->source, c, &payload, why));
	KP_TRY(plan_rest(s, c, &payload.source, &rest, why));
	s->changes = rest.changed || compress;
	if (!s->measured)
		return KPACK_SUCCESS;
	if (!s->changes)
		return copy_container(s, c, why);
	if (c->format == &kp_format_ccob) {
		KP_TRY(kp_ccob_form_read(&s->fat->source, c, &form, why));
		return write_encoded(s, &rest, form, ANY_SIZE, why);
	}
	s->size = 0;
	if (compress && rest.size <= KP_CCOB_MAX)
		KP_TRY(write_encoded(s, &rest, *compress, rest.size, why));
	if (s->size)
		return KPACK_SUCCESS;
	s->size = rest.size;
	return s->out ? write_plain(&rest, NULL, s->out, s->offset, why) : KPACK_SUCCESS;
}

/*
 * Write the code object C: wrapped, stripped, both, or as it is.  Wrapped it is a compressed bundle, as
 * compilers make them of one object, if that is smaller.
 */
static kpack_error_t select_object(struct selecting *s, const struct kp_container *c,
				   struct kpackx_error *why)
{
	const struct kp_image *image = &s->fat->containers.images[c->first_image];
	bool wrap = s->selection->wrap && s->selection->compress;
	char id[KP_TARGET_TEXT_MAX + 32];
	struct kp_bundle_row rows[] = {
		{kp_span_str("host-x86_64-unknown-linux-gnu-"), 0, 0}, {.size = 0}};
	struct rest_row objects[] = {{.object = {.fd = -1}}, {.object = {.fd = -1}}};
	struct rest rest = {.rows = rows, .objects = objects, .n = 2};
	struct kp_source *object = &objects[1].object;
	struct kp_stripped *stripped = &objects[1].stripped;
	kpack_error_t err = KPACK_SUCCESS;

	if (!kp_source_sub(&s->fat->source, c->offset, c->size, object))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "a code object passes the end");
	if (s->selection->strip)
		err = strip_object(s, object, stripped, why);
	s->changes = stripped->work || wrap;
	s->size = 0;
	if (err || !s->measured)
		goto out;
	snprintf(id, sizeof(id), "hipv4-amdgcn-amd-amdhsa--%s", image->arch);
	rows[1].id = kp_span_str(id);
	rows[1].size = stripped->work ? stripped->size : object->size;
	if (wrap && c->n_images == 1 && *image->arch && object->size <= KP_CCOB_MAX &&
	    kp_bundle_place(rows, 2, WRAP_ALIGN, 0, &rest.size))
		err = write_encoded(s, &rest, *s->selection->compress, rows[1].size, why);
	if (!err && !s->size && stripped->work) {
		s->size = stripped->size;
		if (s->out)
			err = kp_stripped_write(stripped, object, s->out, s->offset, why);
	} else if (!err && !s->size) {
		err = copy_container(s, c, why);
	}
out:
	kp_stripped_fini(stripped);
	return err;
}

static kpack_error_t select_container(struct selecting *s, size_t number,
				      struct kpackx_error *why)
{
	const struct kp_container *c = &s->fat->containers.items[number];
	bool may = s->selection->strip ||
		   (s->selection->compress && c->format == &kp_format_bundle);
	kpack_error_t err = KPACK_SUCCESS;
	uint64_t code = 0;

	for (size_t i = c->first_image; i < c->first_image + c->n_images; i++) {
		may |= s->selection->gone[i];
		code += s->fat->containers.images[i].size;
	}
	s->changes = false;
	if (kp_selection_possible(s->fat, number) && may)
		err = select_bundle(s, c, why);
	else if (c->format == &kp_format_code_object)
		err = select_object(s, c, why);
	else if (s->measured)
		err = copy_container(s, c, why);
	if (s->measured)
		progress_add(code);
	return err ? kp_fail_prefix(why, err, "container %zu", number) : err;
}

bool kp_selection_possible(const struct kp_fatbin *fat, size_t number)
{
	const struct kp_container *c = &fat->containers.items[number];

	return (fat->kind == KP_FATBIN_HOST || fat->kind == KP_FATBIN_BARE) &&
	       c->inside == KP_NOWHERE &&
	       (c->format == &kp_format_bundle || c->format == &kp_format_ccob);
}

kpack_error_t kp_selection_write(const struct kp_fatbin *fat,
				 const struct kp_selection *selection,
				 struct kp_outfile *out, uint64_t *offsets,
				 uint64_t *size, struct kpackx_error *why)
{
	const struct kp_containers *list = &fat->containers;
	struct selecting s = {
		.fat = fat, .selection = selection, .out = out, .measured = true};
	uint64_t all = 0, align, pos = 0;

	if (kp_recipe_is_too_much(list))
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "device code of more than %" PRIu64 " bytes",
			       KP_LAYOUT_SECTION_MAX);
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i].inside == KP_NOWHERE)
			all |= list->items[i].offset;
	align = kp_bundle_alignment(all);
	for (size_t i = 0; i < list->count; i++) {
		if (list->items[i].inside != KP_NOWHERE)
			continue;
		pos = (pos + align - 1) & -align;
		s.offset = offsets[i] = pos;
		KP_TRY(select_container(&s, i, why));
		pos += s.size;
	}
	*size = pos;
	return KPACK_SUCCESS;
}

kpack_error_t kp_selection_changes(const struct kp_fatbin *fat,
				   const struct kp_selection *selection, bool *changes,
				   struct kpackx_error *why)
{
	struct selecting s = {.fat = fat, .selection = selection};

	*changes = false;
	for (size_t i = 0; i < fat->containers.count && !*changes; i++) {
		if (fat->containers.items[i].inside != KP_NOWHERE)
			continue;
		KP_TRY(select_container(&s, i, why));
		*changes |= s.changes;
	}
	return KPACK_SUCCESS;
}
