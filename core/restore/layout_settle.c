/* SPDX-License-Identifier: MIT */
#include "layout_settle.h"
#include <string.h>
#include "core/base/bounds.h"

struct settling {
	struct kp_layout *l;
	struct kp_layout_container *now; /* the current container */
	uint64_t end;                    /* of the previous container */
	struct kpackx_error *why;
};

/* Fail with a fault of the current container. */
static kpack_error_t fail_container(struct settling *s, const char *reason)
{
	return kp_fail(s->why, KPACK_ERROR_INVALID_METADATA, "layout: container %zu: %s",
		       (size_t)(s->now - s->l->containers), reason);
}

/* Turn gaps into offsets.  Returns the end of the last entry. */
static uint64_t place_images(struct settling *s, uint64_t header_size)
{
	struct kp_layout_image *image = s->l->images + s->now->first_image;
	uint64_t end = header_size;

	for (size_t i = 0; i < s->now->n_images; i++, image++) {
		image->offset += kp_layout_expected(end);
		end = image->offset + image->size;
	}
	return end;
}

static kpack_error_t check_images(struct settling *s, uint64_t header_size)
{
	const struct kp_layout_image *image = s->l->images + s->now->first_image;

	for (size_t i = 0; i < s->now->n_images; i++, image++) {
		if (image->size &&
		    (image->offset < header_size ||
		     !kp_range_ok(s->now->payload_size, image->offset, image->size)))
			return fail_container(s, "an entry lies outside it");
	}
	return KPACK_SUCCESS;
}

static kpack_error_t check_pieces(struct settling *s, uint64_t header_size)
{
	for (size_t i = 0; i < s->now->n_pieces; i++) {
		const struct kp_layout_piece *piece =
			&s->l->heap->pieces[s->now->first_piece + i];

		if (piece->offset < header_size ||
		    !kp_range_ok(s->now->payload_size, piece->offset, piece->bytes.size))
			return fail_container(s, "bytes lie outside it");
	}
	return KPACK_SUCCESS;
}

/* Entries of bundles have IDs; a bare code object has none. */
static kpack_error_t check_named(struct settling *s)
{
	const struct kp_layout_image *image = s->l->images + s->now->first_image;
	bool bare = s->now->format == &kp_format_code_object;

	for (size_t i = 0; i < s->now->n_images; i++) {
		if (bare != !image[i].id)
			return fail_container(s, "a bundle entry without an ID, or a "
						 "code object with one");
	}
	return KPACK_SUCCESS;
}

static kpack_error_t check_bare(struct settling *s)
{
	const struct kp_layout_image *image = s->l->images + s->now->first_image;
	bool bare = s->now->format == &kp_format_code_object;

	if (bare && (s->now->n_images != 1 || image->host || image->offset != 0 ||
		     image->size != s->now->size || s->now->n_pieces))
		return fail_container(s, "more than a code object");
	return KPACK_SUCCESS;
}

static kpack_error_t check_compressed(struct settling *s)
{
	const struct kp_layout_container *c = s->now;
	uint64_t ratio =
		c->form.method == KP_CCOB_ZSTD ? KP_ZSTD_RATIO_MAX : KP_ZLIB_RATIO_MAX;

	if (c->size <= kp_ccob_header_size(c->form.version))
		return fail_container(s, "is smaller than its header");
	if (c->payload_size / ratio > c->size)
		return fail_container(s, "cannot stand for that many bytes");
	if ((c->form.version < 3 && c->payload_size > UINT32_MAX) ||
	    (c->form.version == 2 && c->size > UINT32_MAX))
		return fail_container(s, "is larger than its version can state");
	return KPACK_SUCCESS;
}

/* Check the sizes and offsets of the current container. */
static kpack_error_t check_container(struct settling *s, uint64_t header_size)
{
	struct kp_layout_container *c = s->now;

	if (c->format == &kp_format_ccob)
		KP_TRY(check_compressed(s));
	KP_TRY(check_bare(s));
	if (header_size > c->payload_size)
		return fail_container(s, "is smaller than its entries");
	KP_TRY(check_images(s, header_size));
	return check_pieces(s, header_size);
}

static kpack_error_t settle_container(struct settling *s, uint64_t expected)
{
	struct kp_layout_container *c = s->now;
	bool compressed = c->format == &kp_format_ccob;
	uint64_t header_size = 0, end;

	if (compressed != (c->form.version != 0))
		return fail_container(s, "its format and \"ccob\" contradict each other");
	KP_TRY(check_named(s));
	header_size = kp_layout_header_size(s->l, c);
	end = place_images(s, header_size);
	c->offset += expected;
	if (!compressed)
		c->payload_size = c->size += end;
	if (c->size == 0 || c->offset < s->end ||
	    !kp_range_ok(s->l->size, c->offset, c->size))
		return fail_container(
			s, "is empty, passes the end, or overlaps the one before");
	s->end = c->offset + c->size;
	return check_container(s, header_size);
}

static kpack_error_t settle_hashes(struct settling *s, struct kp_span rest)
{
	for (size_t i = 0; i < s->l->n_images; i++) {
		struct kp_layout_image *image = &s->l->images[i];

		if (!image->has_xxh3)
			continue;
		if (rest.size < KP_LAYOUT_HASH)
			return kp_fail(s->why, KPACK_ERROR_INVALID_METADATA,
				       "layout: fewer hashes than objects");
		memcpy(image->xxh3, rest.data, KP_LAYOUT_HASH);
		rest.data += KP_LAYOUT_HASH;
		rest.size -= KP_LAYOUT_HASH;
	}
	return rest.size ? kp_fail(s->why, KPACK_ERROR_INVALID_METADATA,
				   "layout: more hashes than objects")
			 : KPACK_SUCCESS;
}

static kpack_error_t settle_containers(struct settling *s)
{
	uint64_t decoded = 0; /* bytes of all payloads */

	for (size_t i = 0; i < s->l->n_containers; i++) {
		s->now = &s->l->containers[i];
		KP_TRY(settle_container(s, kp_layout_expected(s->end)));
		decoded += s->now->payload_size;
		if (decoded > KP_LAYOUT_SECTION_MAX)
			return fail_container(s, "too many bytes in all");
	}
	return KPACK_SUCCESS;
}

static kpack_error_t check_wrappers(const struct settling *s)
{
	for (size_t i = 0; i < s->l->n_wrappers; i++) {
		if (s->l->wrapper_container[i] >= s->l->n_containers)
			return kp_fail(s->why, KPACK_ERROR_INVALID_METADATA,
				       "layout: wrapper %zu: container %u of %zu", i,
				       s->l->wrapper_container[i], s->l->n_containers);
	}
	return KPACK_SUCCESS;
}

kpack_error_t kp_layout_settle(struct kp_layout *layout, struct kp_span hashes,
			       struct kpackx_error *why)
{
	struct settling s = {.l = layout, .why = why};

	KP_TRY(settle_hashes(&s, hashes));
	KP_TRY(settle_containers(&s));
	KP_TRY(check_wrappers(&s));
	kp_layout_number(layout);
	return KPACK_SUCCESS;
}
