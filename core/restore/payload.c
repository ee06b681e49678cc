/* SPDX-License-Identifier: MIT */
#include "payload.h"
#include <inttypes.h>
#include <stdlib.h>
#include "core/base/bounds.h"
#include "core/base/text.h"
#include "core/base/hash.h"

/* ---- offsets of images ---- */

static bool is_there(const struct kp_layout_payload *p, size_t i)
{
	const struct kp_layout_image *image = &p->layout->images[i];

	return image->host || image->size == 0 || p->source->have[i];
}

static void take_images(struct kp_layout_payload *p)
{
	const struct kp_layout_container *c = p->container;

	for (size_t i = c->first_image; i < c->first_image + c->n_images; i++) {
		const struct kp_layout_image *image = &p->layout->images[i];

		if (!is_there(p, i))
			continue;
		p->images[p->n_rows] = i;
		p->rows[p->n_rows++] =
			(struct kp_bundle_row){kp_span_str(image->id ? image->id : ""),
					       image->offset, image->size};
	}
}

kpack_error_t kp_layout_payload_init(struct kp_layout_payload *p,
				     const struct kp_layout *layout,
				     const struct kp_layout_source *source, size_t c,
				     struct kpackx_error *why)
{
	const struct kp_layout_container *container = &layout->containers[c];
	size_t n = container->n_images;
	kpack_error_t err = KPACK_SUCCESS;

	*p = (struct kp_layout_payload){
		.layout = layout,
		.container = container,
		.source = source,
		.rows = calloc(n + 1, sizeof(*p->rows)),
		.images = calloc(n + 1, sizeof(*p->images)),
		.size = container->payload_size,
	};
	if (!p->rows || !p->images) {
		kp_layout_payload_fini(p);
		return kp_fail_memory(why, n * sizeof(*p->rows), "a bundle");
	}
	take_images(p);
	p->whole = p->n_rows == n;
	if (container->format == &kp_format_code_object)
		p->size = p->whole ? p->size : 0;
	else if (!p->whole)
		err = kp_bundle_move_together(p->rows, p->n_rows, &p->size, why);
	if (err)
		kp_layout_payload_fini(p);
	return err;
}

void kp_layout_payload_fini(struct kp_layout_payload *p)
{
	free(p->rows);
	free(p->images);
	*p = (struct kp_layout_payload){0};
}

/* ---- its bytes ---- */

static kpack_error_t check_room(const struct kp_layout_sink *s, uint64_t off,
				uint64_t size, struct kpackx_error *why)
{
	if (kp_range_ok(s->room, off, size))
		return KPACK_SUCCESS;
	return kp_fail(why, KPACK_ERROR_INVALID_METADATA,
		       "layout: %" PRIu64 " bytes at %" PRIu64
		       " pass the end at %" PRIu64,
		       size, off, s->room);
}

kpack_error_t kp_layout_put(const struct kp_layout_sink *s, uint64_t off,
			    const void *data, size_t size, struct kpackx_error *why)
{
	KP_TRY(check_room(s, off, size, why));
	if (!s->memory)
		return kp_outfile_pwrite(s->file, s->offset + off, data, size, why);
	if (size)
		memcpy(s->memory + off, data, size);
	return KPACK_SUCCESS;
}

kpack_error_t kp_layout_put_header(const struct kp_layout_sink *s,
				   const struct kp_bundle_row *rows, size_t n,
				   struct kpackx_error *why)
{
	size_t size = (size_t)kp_bundle_header_size(rows, n);
	uint8_t *header = malloc(size);
	kpack_error_t err;

	if (!header)
		return kp_fail_memory(why, size, "a bundle header");
	kp_bundle_header_write(rows, n, header);
	err = kp_layout_put(s, 0, header, size, why);
	free(header);
	return err;
}

static kpack_error_t check_object(const struct kp_layout_image *image, size_t i,
				  const void *data, struct kpackx_error *why)
{
	struct kp_hash have = kp_hash_of(data, (size_t)image->size);
	char arch[2 * KP_TARGET_TEXT_MAX];

	if (!image->has_xxh3 || memcmp(have.bytes, image->xxh3, sizeof(image->xxh3)) == 0)
		return KPACK_SUCCESS;
	return kp_fail(why, KPACK_ERROR_INVALID_METADATA,
		       "layout: image %zu %s: not the object that was packed", i,
		       kp_text_escape(kp_span_str(image->arch), arch, sizeof(arch)));
}

static kpack_error_t read_object(const struct kp_layout_payload *p, size_t i, void *buf,
				 struct kpackx_error *why)
{
	KP_TRY(p->source->read(p->source->arg, i, buf, why));
	return check_object(&p->layout->images[i], i, buf, why);
}

/* Write an object: read it directly into the sink's memory, or through a buffer. */
static kpack_error_t put_object(const struct kp_layout_payload *p, size_t i,
				const struct kp_layout_sink *s, uint64_t off,
				struct kpackx_error *why)
{
	uint64_t size = p->layout->images[i].size;
	kpack_error_t err;
	uint8_t *buf;

	KP_TRY(check_room(s, off, size, why));
	if (s->memory)
		return read_object(p, i, s->memory + off, why);
	buf = malloc((size_t)size);
	if (!buf)
		return kp_fail_memory(why, size, "a code object");
	err = read_object(p, i, buf, why);
	if (!err)
		err = kp_layout_put(s, off, buf, (size_t)size, why);
	free(buf);
	return err;
}

/* Write the bytes between entries; if an image is missing, they have no place. */
static kpack_error_t put_pieces(const struct kp_layout_payload *p,
				const struct kp_layout_sink *s, struct kpackx_error *why)
{
	for (size_t i = 0; p->whole && i < p->container->n_pieces; i++) {
		const struct kp_layout_piece *piece =
			&p->layout->heap->pieces[p->container->first_piece + i];

		KP_TRY(kp_layout_put(s, piece->offset, piece->bytes.data,
				     piece->bytes.size, why));
	}
	return KPACK_SUCCESS;
}

static kpack_error_t put_images(const struct kp_layout_payload *p,
				const struct kp_layout_sink *s, struct kpackx_error *why)
{
	for (size_t k = 0; k < p->n_rows; k++) {
		const struct kp_layout_image *image = &p->layout->images[p->images[k]];

		if (image->size == 0)
			continue;
		if (image->host)
			KP_TRY(kp_layout_put(s, p->rows[k].offset, image->bytes,
					     (size_t)image->size, why));
		else
			KP_TRY(put_object(p, p->images[k], s, p->rows[k].offset, why));
	}
	return KPACK_SUCCESS;
}

static kpack_error_t put_all(const struct kp_layout_payload *p,
			     const struct kp_layout_sink *s, struct kpackx_error *why)
{
	if (p->container->format != &kp_format_code_object)
		KP_TRY(kp_layout_put_header(s, p->rows, p->n_rows, why));
	KP_TRY(put_pieces(p, s, why));
	return put_images(p, s, why);
}

kpack_error_t kp_layout_payload_build(const struct kp_layout_payload *p, uint8_t **out,
				      struct kpackx_error *why)
{
	struct kp_layout_sink s = {.memory = calloc(1, (size_t)p->size), .room = p->size};
	kpack_error_t err;

	if (!s.memory)
		return kp_fail_memory(why, p->size, "a bundle");
	err = put_all(p, &s, why);
	if (err)
		free(s.memory);
	else
		*out = s.memory;
	return err;
}

kpack_error_t kp_layout_payload_write(const struct kp_layout_payload *p,
				      struct kp_outfile *out, uint64_t offset,
				      struct kpackx_error *why)
{
	const struct kp_layout_sink s = {.file = out, .offset = offset, .room = p->size};

	return put_all(p, &s, why);
}
