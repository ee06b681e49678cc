/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>
#include "difference.h"
#include "layout_internal.h"
#include "core/base/bounds.h"
#include "core/base/hash.h"

/* Bytes to read at a time for hashing, or for finding bytes that are not zero. */
enum { PIECE = 256 << 10 };

struct maker {
	const struct kp_fatbin *fat;
	const uint8_t (*xxh3)[16];
	const bool *known;
	unsigned how;
	struct kp_layout l;
	uint8_t *buf; /* PIECE */
	struct kp_hasher *hash;
	struct kp_ccob_search search;
	struct kpackx_error *why;
};

/* A part of a payload that an image describes. */
struct range {
	uint64_t begin, end;
};

static kpack_error_t no_memory(const struct maker *m)
{
	return kp_fail_memory(m->why, PIECE, "a layout");
}

/* Get room for SIZE bytes in the layout itself, which the caller fills. */
static kpack_error_t take_room(struct maker *m, uint64_t size, uint8_t **room)
{
	struct kp_layout_heap *heap = m->l.heap;

	if (size > KP_LAYOUT_INLINE_MAX - heap->n_bytes)
		return kp_fail(m->why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "%" PRIu64 " bytes more that are in no code object; the "
			       "layout keeps %d",
			       size, KP_LAYOUT_INLINE_MAX);
	if (!heap->bytes)
		heap->bytes = malloc(KP_LAYOUT_INLINE_MAX);
	if (!heap->bytes)
		return no_memory(m);
	*room = heap->bytes + heap->n_bytes;
	heap->n_bytes += (size_t)size;
	return KPACK_SUCCESS;
}

static kpack_error_t hash_range(struct maker *m, const struct kp_source *src,
				uint64_t off, uint64_t size, uint8_t out[16])
{
	struct kp_hash hash;
	size_t n;

	kp_hasher_reset(m->hash);
	for (; size; size -= n, off += n) {
		n = size < PIECE ? (size_t)size : PIECE;
		KP_TRY(kp_source_read(src, off, m->buf, n, m->why));
		kp_hasher_add(m->hash, m->buf, n);
	}
	hash = kp_hasher_value(m->hash);
	memcpy(out, hash.bytes, sizeof(hash.bytes));
	return KPACK_SUCCESS;
}

/* ---- images ---- */

static kpack_error_t hash_image(struct maker *m, const struct kp_source *payload,
				struct kp_layout_image *image)
{
	uint8_t hash[16];

	KP_TRY(hash_range(m, payload, image->offset, image->size, hash));
	memcpy(image->xxh3, hash, sizeof(image->xxh3));
	return KPACK_SUCCESS;
}

/* Describe the content of an image: bytes of the host, or an object with a hash. */
static kpack_error_t describe_content(struct maker *m, const struct kp_source *payload,
				      size_t i, struct kp_layout_image *image)
{
	uint8_t *room = NULL;

	if (image->size == 0)
		return KPACK_SUCCESS;
	if (image->host) {
		KP_TRY(take_room(m, image->size, &room));
		image->bytes = room;
		return kp_source_read(payload, image->offset, room, (size_t)image->size,
				      m->why);
	}
	if (image->size > KP_OBJECT_MAX)
		return kp_fail(m->why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "a code object of %" PRIu64 " bytes, at most %" PRIu64,
			       image->size, KP_OBJECT_MAX);
	image->has_xxh3 = true;
	if (m->xxh3 && m->known[i])
		memcpy(image->xxh3, m->xxh3[i], sizeof(image->xxh3));
	else if (m->how & KP_LAYOUT_COMPUTE)
		return hash_image(m, payload, image);
	else
		image->has_xxh3 = false;
	return KPACK_SUCCESS;
}

static kpack_error_t describe_images(struct maker *m, const struct kp_container *from,
				     struct kp_layout_container *c,
				     const struct kp_source *payload)
{
	for (size_t i = from->first_image; i < from->first_image + from->n_images; i++) {
		const struct kp_image *old = &m->fat->containers.images[i];
		struct kp_layout_image *image = kp_layout_add_image(&m->l);

		if (!image)
			return no_memory(m);
		c->n_images++;
		image->container = (uint32_t)old->container;
		image->id = old->id;
		image->host = old->host;
		memcpy(image->arch, old->arch, sizeof(image->arch));
		image->offset = old->offset;
		image->size = old->size;
		KP_TRY(describe_content(m, payload, i, image));
	}
	return KPACK_SUCCESS;
}

/* ---- the header of a bundle ---- */

/*
 * Take the offsets of empty entries from the header, which alone has them.  Everything
 * else in the header is known, so that a header written from it must equal the one in the
 * file.
 */
static kpack_error_t compare_header(struct maker *m, struct kp_layout_container *c,
				    const uint8_t *header, uint8_t *again,
				    struct kp_bundle_row *rows, size_t size)
{
	struct kp_layout_image *image = m->l.images + c->first_image;
	const uint8_t *p = header + KP_BUNDLE_HEADER_MIN;

	for (size_t i = 0; i < c->n_images; i++, image++) {
		if (image->size == 0)
			image->offset = kp_le64(p);
		rows[i] = (struct kp_bundle_row){kp_span_str(image->id), image->offset,
						 image->size};
		p += KP_BUNDLE_ROW_SIZE + rows[i].id.size;
	}
	kp_bundle_header_write(rows, c->n_images, again);
	if (memcmp(header, again, size) != 0)
		return kp_fail(m->why, KPACK_ERROR_IO_ERROR, "changed while it was read");
	return KPACK_SUCCESS;
}

static kpack_error_t describe_header(struct maker *m, struct kp_layout_container *c,
				     const struct kp_source *payload)
{
	size_t size = (size_t)kp_layout_header_size(&m->l, c);
	uint8_t *header = malloc(2 * size);
	struct kp_bundle_row *rows = calloc(c->n_images + 1, sizeof(*rows));
	kpack_error_t err;

	if (!header || !rows) {
		free(header);
		free(rows);
		return no_memory(m);
	}
	err = kp_source_read(payload, 0, header, size, m->why);
	if (!err)
		err = compare_header(m, c, header, header + size, rows, size);
	free(header);
	free(rows);
	return err;
}

/* ---- bytes between entries ---- */

static kpack_error_t add_piece(struct maker *m, struct kp_layout_container *c,
			       uint64_t off, struct kp_span bytes)
{
	struct kp_layout_piece *piece;
	uint8_t *room = NULL;

	while (bytes.size && bytes.data[bytes.size - 1] == 0)
		bytes.size--;
	for (; bytes.size && bytes.data[0] == 0; off++)
		bytes = (struct kp_span){bytes.data + 1, bytes.size - 1};
	if (bytes.size == 0)
		return KPACK_SUCCESS;
	KP_TRY(take_room(m, bytes.size + KP_LAYOUT_PIECE_COST, &room));
	memcpy(room, bytes.data, bytes.size);
	piece = kp_layout_add_piece(&m->l);
	if (!piece)
		return no_memory(m);
	*piece = (struct kp_layout_piece){off, {room, bytes.size}};
	c->n_pieces++;
	return KPACK_SUCCESS;
}

static kpack_error_t describe_gap(struct maker *m, struct kp_layout_container *c,
				  const struct kp_source *payload, uint64_t off,
				  uint64_t end)
{
	size_t n;

	for (; off < end; off += n) {
		n = end - off < PIECE ? (size_t)(end - off) : PIECE;
		KP_TRY(kp_source_read(payload, off, m->buf, n, m->why));
		KP_TRY(add_piece(m, c, off, (struct kp_span){m->buf, n}));
	}
	return KPACK_SUCCESS;
}

static int by_begin(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return KP_ORDER(x->begin, y->begin);
}

static kpack_error_t describe_gaps(struct maker *m, struct kp_layout_container *c,
				   const struct kp_source *payload)
{
	const struct kp_layout_image *image = m->l.images + c->first_image;
	struct range *ranges = calloc(c->n_images + 1, sizeof(*ranges));
	uint64_t end = kp_layout_header_size(&m->l, c);
	kpack_error_t err = KPACK_SUCCESS;
	size_t n = 0;

	if (!ranges)
		return no_memory(m);
	for (size_t i = 0; i < c->n_images; i++, image++) {
		if (image->size)
			ranges[n++] = (struct range){image->offset,
						     image->offset + image->size};
	}
	qsort(ranges, n, sizeof(*ranges), by_begin);
	for (size_t i = 0; i < n && !err; i++) {
		err = describe_gap(m, c, payload, end, ranges[i].begin);
		end = ranges[i].end > end ? ranges[i].end : end;
	}
	if (!err)
		err = describe_gap(m, c, payload, end, c->payload_size);
	free(ranges);
	return err;
}

/* ---- how it was compressed ---- */

/* Append a difference as a skippable frame. */
static kpack_error_t add_kept(struct maker *m, struct kp_layout_container *c,
			      struct kp_span difference)
{
	struct kp_layout_heap *heap = m->l.heap;
	size_t size = heap->n_kept + KP_LAYOUT_SKIP_HEADER + difference.size;
	uint8_t *grown;

	if (difference.size > UINT32_MAX)
		return kp_fail(m->why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "%zu bytes are too many to be kept", difference.size);
	grown = realloc(heap->kept, size);
	if (!grown)
		return kp_fail_memory(m->why, size, "kept containers");
	heap->kept = grown;
	grown += heap->n_kept;
	kp_put_le32(grown, KP_LAYOUT_SKIP_MAGIC);
	kp_put_le32(grown + 4, (uint32_t)difference.size);
	memcpy(grown + KP_LAYOUT_SKIP_HEADER, difference.data, difference.size);
	heap->n_kept = size;
	c->kept = difference.size;
	return KPACK_SUCCESS;
}

static kpack_error_t keep_container(struct maker *m, const struct kp_container *from,
				    struct kp_layout_container *c,
				    struct kp_payload *payload)
{
	struct kp_span plain = {0}, original = {NULL, (size_t)from->size};
	uint8_t *bytes = malloc(original.size), *difference = NULL;
	size_t size = 0;
	kpack_error_t err;

	if (!bytes)
		return kp_fail_memory(m->why, from->size, "a container");
	original.data = bytes;
	err = kp_source_read(&m->fat->source, from->offset, bytes, original.size, m->why);
	if (!err)
		err = kp_payload_map(payload, &plain, m->why);
	if (!err)
		err = kp_difference_make(plain, original, &difference, &size, m->why);
	free(bytes);
	if (!err)
		err = add_kept(m, c, (struct kp_span){difference, size});
	free(difference);
	return err;
}

/*
 * The level may be a guess, and restoring may be done with another zstd; the hash shows
 * then whether the result has the same bytes.
 */
static kpack_error_t describe_form(struct maker *m, const struct kp_container *from,
				   struct kp_layout_container *c,
				   struct kp_payload *payload)
{
	const struct kp_source *src = &m->fat->source;

	KP_TRY(kp_ccob_form_read(src, from, &c->form, m->why));
	KP_TRY(kp_ccob_find_level(src, from, payload, &m->search, &c->form, m->why));
	if (c->form.level == 0)
		return KPACK_SUCCESS;
	if (m->how & KP_LAYOUT_KEEP)
		KP_TRY(keep_container(m, from, c, payload));
	return hash_range(m, src, from->offset, from->size, c->xxh3);
}

/* ---- containers ---- */

static kpack_error_t describe_payload(struct maker *m, const struct kp_container *from,
				      struct kp_layout_container *c,
				      struct kp_payload *payload)
{
	KP_TRY(describe_images(m, from, c, &payload->source));
	if (c->format == &kp_format_code_object)
		return KPACK_SUCCESS;
	KP_TRY(describe_header(m, c, &payload->source));
	KP_TRY(describe_gaps(m, c, &payload->source));
	return c->format == &kp_format_ccob ? describe_form(m, from, c, payload)
					    : KPACK_SUCCESS;
}

static kpack_error_t describe_container(struct maker *m, const struct kp_container *from)
{
	struct kp_layout_container *c = kp_layout_add_container(&m->l);
	struct kp_payload payload;
	kpack_error_t err;

	if (!c)
		return no_memory(m);
	c->format = from->format;
	c->offset = from->offset;
	c->size = from->size;
	c->payload_size = from->payload_size;
	KP_TRY(kp_container_load(&m->fat->source, from, &payload, m->why));
	err = describe_payload(m, from, c, &payload);
	kp_payload_fini(&payload);
	if (err)
		return kp_fail_prefix(m->why, err, "%s at offset %" PRIu64,
				      from->format->name, from->offset);
	return KPACK_SUCCESS;
}

static kpack_error_t describe_wrappers(struct maker *m)
{
	size_t n = m->fat->elf.n_wrappers;

	m->l.wrapper_container = calloc(n + 1, sizeof(*m->l.wrapper_container));
	if (!m->l.wrapper_container)
		return no_memory(m);
	for (size_t i = 0; i < n; i++) {
		if (m->fat->wrapper_container[i] < 0)
			return kp_fail(m->why, KPACK_ERROR_NOT_IMPLEMENTED,
				       "wrapper %zu leads to no container", i);
		m->l.wrapper_container[i] = (uint32_t)m->fat->wrapper_container[i];
	}
	m->l.n_wrappers = n;
	return KPACK_SUCCESS;
}

/* kp_layout_parse has the same limits, so that it can read everything we write. */
static kpack_error_t check_bounds(const struct maker *m)
{
	const struct kp_containers *list = &m->fat->containers;

	if (kp_layout_is_too_much(list) || m->l.size > KP_LAYOUT_SECTION_MAX)
		return kp_fail(m->why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "device code of more than %" PRIu64 " bytes",
			       KP_LAYOUT_SECTION_MAX);
	if (list->count > KP_IMAGES_MAX)
		return kp_fail(m->why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "%zu containers of at most %d", list->count,
			       KP_IMAGES_MAX);
	return KPACK_SUCCESS;
}

static kpack_error_t describe_fatbin(struct maker *m)
{
	m->buf = malloc(PIECE);
	m->hash = kp_hasher_new();
	if (!m->buf || !m->hash)
		return no_memory(m);
	m->l.size = m->fat->source.size;
	KP_TRY(check_bounds(m));
	KP_TRY(kp_layout_begin(&m->l, m->why));
	KP_TRY(describe_wrappers(m));
	for (size_t i = 0; i < m->fat->containers.count; i++)
		KP_TRY(describe_container(m, &m->fat->containers.items[i]));
	return KPACK_SUCCESS;
}

kpack_error_t kp_layout_make(const struct kp_fatbin *fat, const uint8_t (*xxh3)[16],
			     const bool *known, unsigned how, struct kp_layout_bytes *out,
			     struct kpackx_error *why)
{
	struct maker m = {
		.fat = fat,
		.xxh3 = xxh3,
		.known = known,
		.how = how,
		.search = KP_CCOB_SEARCH,
		.why = why,
	};
	kpack_error_t err = describe_fatbin(&m);

	if (!err)
		err = kp_layout_encode(&m.l, out, why);
	for (size_t i = 0; i < m.l.n_containers && !err; i++)
		out->n_kept += m.l.containers[i].kept != 0;
	if (!err)
		out->kept_size = m.l.heap->n_kept;
	if (err)
		kp_fail_prefix(why, err, "layout");
	kp_layout_fini(&m.l);
	kp_hasher_free(m.hash);
	free(m.buf);
	return err;
}
