/* SPDX-License-Identifier: MIT */
#include "selection.h"
#include <inttypes.h>
#include <stdlib.h>
#include "core/base/bounds.h"
#include "payload.h"

/* Bytes to copy at a time. */
enum { PIECE = 1 << 20 };

/* A bundle that is written without some images. */
struct rest {
	const struct kp_image *images;
	struct kp_bundle_row *rows; /* where they will be */
	size_t *numbers;            /* of the images of the rows */
	size_t n;
	uint64_t size;
};

/* ---- the rest of a bundle ---- */

static kpack_error_t rest_init(struct rest *rest, const struct kp_containers *list,
			       const struct kp_container *c, const bool *gone,
			       struct kpackx_error *why)
{
	*rest = (struct rest){
		.images = list->images,
		.rows = calloc(c->n_images + 1, sizeof(*rest->rows)),
		.numbers = calloc(c->n_images + 1, sizeof(*rest->numbers)),
	};
	if (!rest->rows || !rest->numbers)
		return kp_fail_memory(why, c->n_images * sizeof(*rest->rows), "a bundle");
	for (size_t i = c->first_image; i < c->first_image + c->n_images; i++) {
		const struct kp_image *image = &list->images[i];

		if (gone[i])
			continue;
		rest->numbers[rest->n] = i;
		rest->rows[rest->n++] =
			(struct kp_bundle_row){kp_span_str(image->id ? image->id : ""),
					       image->offset, image->size};
	}
	return kp_bundle_move_together(rest->rows, rest->n, &rest->size, why);
}

static void rest_fini(struct rest *rest)
{
	free(rest->rows);
	free(rest->numbers);
}

/* Copy SIZE bytes at FROM of SRC to OFF of the sink. */
static kpack_error_t put_copy(const struct kp_layout_sink *s, uint64_t off,
			      const struct kp_source *src, uint64_t from, uint64_t size,
			      struct kpackx_error *why)
{
	kpack_error_t err = KPACK_SUCCESS;
	uint8_t *buf;
	size_t n;

	if (s->memory)
		return kp_source_read(src, from, s->memory + off, (size_t)size, why);
	if (src->fd >= 0)
		return kp_outfile_copy(s->file, s->offset + off, src->fd,
				       src->offset + from, size, why);
	buf = malloc(PIECE);
	if (!buf)
		return kp_fail_memory(why, PIECE, "a code object");
	for (; size && !err; size -= n, from += n, off += n) {
		n = size < PIECE ? (size_t)size : PIECE;
		err = kp_source_read(src, from, buf, n, why);
		if (!err)
			err = kp_layout_put(s, off, buf, n, why);
	}
	free(buf);
	return err;
}

/* Write the rest of the bundle whose payload is SRC. */
static kpack_error_t rest_write(const struct rest *rest, const struct kp_source *src,
				const struct kp_layout_sink *s, struct kpackx_error *why)
{
	KP_TRY(kp_layout_put_header(s, rest->rows, rest->n, why));
	for (size_t i = 0; i < rest->n; i++) {
		const struct kp_image *image = &rest->images[rest->numbers[i]];

		if (image->size)
			KP_TRY(put_copy(s, rest->rows[i].offset, src, image->offset,
					image->size, why));
	}
	return KPACK_SUCCESS;
}

/* ---- containers ---- */

/* Encode the rest of container C, which is compressed. */
static kpack_error_t encode_rest(const struct kp_fatbin *fat,
				 const struct kp_container *c, const struct rest *rest,
				 uint8_t **out, size_t *size, struct kpackx_error *why)
{
	struct kp_layout_sink s = {.memory = calloc(1, (size_t)rest->size + 1),
				   .room = rest->size};
	struct kp_span bytes = {s.memory, (size_t)rest->size};
	struct kp_payload payload = {0};
	struct kp_ccob_form form;
	kpack_error_t err;

	if (!s.memory)
		return kp_fail_memory(why, rest->size, "a bundle");
	err = kp_container_load(&fat->source, c, &payload, why);
	if (!err)
		err = rest_write(rest, &payload.source, &s, why);
	kp_payload_fini(&payload);
	if (!err)
		err = kp_ccob_form_read(&fat->source, c, &form, why);
	if (!err) {
		form.hash = kp_ccob_hash(bytes);
		err = kp_ccob_encode(&form, bytes, out, size, why);
	}
	free(s.memory);
	return err;
}

static kpack_error_t write_rest(const struct kp_fatbin *fat, const struct kp_container *c,
				const struct rest *rest, const struct kp_layout_sink *s,
				uint64_t *size, struct kpackx_error *why)
{
	struct kp_source src;
	uint8_t *encoded = NULL;
	size_t n = 0;
	kpack_error_t err;

	if (c->format == &kp_format_bundle) {
		*size = rest->size;
		if (!s->file)
			return KPACK_SUCCESS;
		if (!kp_source_sub(&fat->source, c->offset, c->size, &src))
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "a bundle passes the end");
		return rest_write(rest, &src, s, why);
	}
	err = encode_rest(fat, c, rest, &encoded, &n, why);
	*size = n;
	if (!err && s->file)
		err = kp_layout_put(s, 0, encoded, n, why);
	free(encoded);
	return err;
}

static bool loses_images(const struct kp_fatbin *fat, size_t number, const bool *gone)
{
	const struct kp_container *c = &fat->containers.items[number];

	for (size_t i = c->first_image; i < c->first_image + c->n_images; i++)
		if (gone[i])
			return kp_selection_possible(fat, number);
	return false;
}

static kpack_error_t write_container(const struct kp_fatbin *fat, size_t number,
				     const bool *gone, const struct kp_layout_sink *s,
				     uint64_t *size, struct kpackx_error *why)
{
	const struct kp_container *c = &fat->containers.items[number];
	struct rest rest;
	kpack_error_t err;

	if (!loses_images(fat, number, gone)) {
		*size = c->size;
		return s->file ? put_copy(s, 0, &fat->source, c->offset, c->size, why)
			       : KPACK_SUCCESS;
	}
	err = rest_init(&rest, &fat->containers, c, gone, why);
	if (!err)
		err = write_rest(fat, c, &rest, s, size, why);
	rest_fini(&rest);
	return err ? kp_fail_prefix(why, err, "container %zu", number) : err;
}

bool kp_selection_possible(const struct kp_fatbin *fat, size_t number)
{
	const struct kp_container *c = &fat->containers.items[number];

	return (fat->kind == KP_FATBIN_ELF || fat->kind == KP_FATBIN_BARE) &&
	       c->inside == KP_NOWHERE &&
	       (c->format == &kp_format_bundle || c->format == &kp_format_ccob);
}

kpack_error_t kp_selection_write(const struct kp_fatbin *fat, const bool *gone,
				 struct kp_outfile *out, uint64_t *offsets,
				 uint64_t *size, struct kpackx_error *why)
{
	const struct kp_containers *list = &fat->containers;
	uint64_t all = 0, align, pos = 0, n = 0;

	if (kp_layout_is_too_much(list))
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "device code of more than %" PRIu64 " bytes",
			       KP_LAYOUT_SECTION_MAX);
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i].inside == KP_NOWHERE)
			all |= list->items[i].offset;
	align = kp_bundle_alignment(all);
	for (size_t i = 0; i < list->count; i++) {
		struct kp_layout_sink s = {.file = out, .room = UINT64_MAX};

		if (list->items[i].inside != KP_NOWHERE)
			continue;
		pos = (pos + align - 1) & -align;
		s.offset = offsets[i] = pos;
		KP_TRY(write_container(fat, i, gone, &s, &n, why));
		pos += n;
	}
	*size = pos;
	return KPACK_SUCCESS;
}
