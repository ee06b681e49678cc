/* SPDX-License-Identifier: MIT */
/*
 * Making the recipe of a binary that is converted, in two steps.  The device code is described
 * once: it has the objects, is large, and compressed bundles take long.  The rest depends on
 * where the converted file has what: kp_convert says so for each plan that it makes (struct
 * kp_move), and asks for the recipe of that plan, whose size may change the plan.
 *
 * The parts of the device code, in the order of .hip_fatbin:
 *
 *	for each container   CONTAINER
 *	  a bundle           HEADER, if its header follows from its objects, else its BYTES; then
 *	                     OBJECT or RANGE for each object, and what is between them
 *	  a compressed one   COMPRESSED, and inside of it the parts of its payload
 *	  a code object      OBJECT
 *	between them         BYTES and ZEROS
 *
 * If the device code stays in the file, only CONTAINER parts are made, and all else is copied.
 *
 * What the recipe has itself makes converted files longer, so it is kept small: runs of zeros are
 * parts, headers are made again, and of the host's bytes whatever the converted file still has is
 * copied from there.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>
#include <zstd.h>
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "core/base/hash.h"
#include "core/base/order.h"
#include "core/format/bundle.h"
#include "recipe.h"

/* Bytes to read at a time. */
enum { PIECE = 256 << 10 };

/* Bytes that a recipe has itself: of the device code, and with those of the rest. */
#define CODE_MAX ((size_t)KP_LAYOUT_INLINE_MAX)
#define FILE_MAX ((size_t)KP_LAYOUT_MAX / 4)

/* A difference is compressed data, which a higher level hardly makes smaller. */
enum { DIFFERENCE_LEVEL = 3 };

/* A run of as many zeros is a part of its own; fewer are stored. */
enum { ZEROS_MIN = 64 };

/* An equal target is looked for among so many. */
enum { TARGETS_SEARCHED = 256 };

bool kp_recipe_is_too_much(const struct kp_containers *list)
{
	uint64_t decoded = 0, meant = 0;

	for (size_t i = 0; i < list->count && decoded <= KP_LAYOUT_SECTION_MAX; i++)
		decoded += list->items[i].payload_size;
	for (size_t i = 0; i < list->n_images && meant <= KP_LAYOUT_SECTION_MAX; i++)
		meant += list->images[i].size;
	return decoded > KP_LAYOUT_SECTION_MAX || meant > KP_LAYOUT_SECTION_MAX;
}

/* ---- parts, objects, and bytes that are stored ---- */

kpack_error_t kp_recipe_add(struct kp_recipe *r, struct kp_part part,
			    struct kpackx_error *why)
{
	struct kp_part *last = r->n_parts > r->apart ? &r->parts[r->n_parts - 1] : NULL;

	if (last && part.kind == last->kind &&
	    (part.kind == KP_PART_ZEROS || part.kind == KP_PART_BYTES ||
	     (part.kind == KP_PART_COPY && part.from == last->from + last->size) ||
	     (part.kind == KP_PART_RANGE && part.number == last->number &&
	      part.from == last->from + last->size))) {
		last->size += part.size;
		return KPACK_SUCCESS;
	}
	KP_TRY(kp_room(&r->parts, r->n_parts, &r->parts_cap, "a recipe", why));
	r->parts[r->n_parts++] = part;
	return KPACK_SUCCESS;
}

static kpack_error_t add_zeros(struct kp_recipe *r, uint64_t size,
			       struct kpackx_error *why)
{
	return kp_recipe_add(r, (struct kp_part){.kind = KP_PART_ZEROS, .size = size},
			     why);
}

kpack_error_t kp_recipe_add_image(struct kp_recipe *r, const char *id, const char *arch,
				  bool host, struct kp_recipe_image **out,
				  struct kpackx_error *why)
{
	size_t i = r->n_targets > TARGETS_SEARCHED ? r->n_targets - TARGETS_SEARCHED : 0;
	struct kp_recipe_target *t;

	for (; i < r->n_targets; i++) {
		t = &r->targets[i];
		if (t->host == host && strcmp(t->arch, arch) == 0 && !t->id == !id &&
		    (!id || strcmp(t->id, id) == 0))
			break;
	}
	if (i == r->n_targets) {
		KP_TRY(kp_room(&r->targets, i, &r->targets_cap, "a recipe", why));
		t = &r->targets[r->n_targets++];
		*t = (struct kp_recipe_target){id ? strdup(id) : NULL, strdup(arch),
					       host};
		if (!t->arch || (id && !t->id))
			return kp_fail_memory(why, 0, "a recipe");
	}
	KP_TRY(kp_room(&r->images, r->n_images, &r->images_cap, "a recipe", why));
	*out = &r->images[r->n_images++];
	**out = (struct kp_recipe_image){.target = (uint32_t)i,
					 .id = r->targets[i].id,
					 .arch = r->targets[i].arch,
					 .host = host};
	return KPACK_SUCCESS;
}

/* Append SIZE bytes to those that the recipe has, which the caller fills in at once: *ROOM. */
static kpack_error_t add_room(struct kp_recipe *r, size_t size, uint8_t **room,
			      struct kpackx_error *why)
{
	if (!kp_grow(&r->bytes, r->n_bytes + size, &r->bytes_cap, 1))
		return kp_fail_memory(why, r->n_bytes + size, "a recipe");
	*room = r->bytes + r->n_bytes;
	r->n_bytes += size;
	return KPACK_SUCCESS;
}

/* Add the parts for DATA: bytes, of which the recipe has at most MOST, and runs of zeros. */
static kpack_error_t add_data(struct kp_recipe *r, struct kp_span data, size_t most,
			      struct kpackx_error *why)
{
	/* in each round N bytes that are stored, and then a run of zeros that is not */
	while (data.size) {
		size_t n = 0, zeros = 0;
		uint8_t *room = NULL;

		/*
		 * Find a long run of zeros, or zeros alone, which may go on in the next data;
		 * shorter runs cost less among the bytes than as a part.
		 */
		for (;;) {
			while (n + zeros < data.size && !data.data[n + zeros])
				zeros++;
			if (zeros >= ZEROS_MIN || n + zeros == data.size)
				break;
			n += zeros + 1;
			zeros = 0;
		}
		if (zeros < ZEROS_MIN && n) {
			n += zeros;
			zeros = 0;
		}
		if (n > most - r->n_bytes)
			return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
				       "%zu bytes more that are in no code object; a "
				       "recipe keeps %zu",
				       n, most);
		if (n) {
			KP_TRY(add_room(r, n, &room, why));
			memcpy(room, data.data, n);
			KP_TRY(kp_recipe_add(r,
					     (struct kp_part){.kind = KP_PART_BYTES,
							      .from = r->n_bytes - n,
							      .size = n},
					     why));
		}
		if (zeros)
			KP_TRY(add_zeros(r, zeros, why));
		data = kp_span_tail(data, n + zeros);
	}
	return KPACK_SUCCESS;
}

/* Add the parts for [OFF, END) of SRC, as add_data; BUF has PIECE bytes. */
static kpack_error_t add_range(struct kp_recipe *r, const struct kp_source *src,
			       uint64_t off, uint64_t end, size_t most, uint8_t *buf,
			       struct kpackx_error *why)
{
	for (uint64_t n; off < end; off += n) {
		off_t here = (off_t)(src->offset + off);
		off_t data = src->fd < 0 ? here : lseek(src->fd, here, SEEK_DATA);

		n = end - off;
		/* a hole can be longer than anything that can be read */
		if ((data < 0 && errno == ENXIO) || data > here) {
			if (data > here && (uint64_t)(data - here) < n)
				n = (uint64_t)(data - here);
			KP_TRY(add_zeros(r, n, why));
			continue;
		}
		n = n < PIECE ? n : PIECE;
		KP_TRY(kp_source_read(src, off, buf, (size_t)n, why));
		KP_TRY(add_data(r, (struct kp_span){buf, (size_t)n}, most, why));
	}
	return KPACK_SUCCESS;
}

/* ---- the device code ---- */

struct maker {
	const struct kp_fatbin *fat;
	const uint8_t (*xxh3)[16];
	const bool *known;
	unsigned how;
	struct kp_recipe r;
	uint8_t *buf; /* PIECE */
	struct kp_hasher *hash;
	struct kp_ccob_search search;
	struct kpackx_error *why;
};

static kpack_error_t hash_range(struct maker *m, const struct kp_source *src,
				uint64_t off, uint64_t size, uint8_t *out, size_t n_out)
{
	struct kp_hash hash;

	kp_hasher_reset(m->hash);
	KP_TRY(kp_recipe_hash(m->hash, src, off, size, m->why));
	hash = kp_hasher_value(m->hash);
	memcpy(out, hash.bytes, n_out);
	return KPACK_SUCCESS;
}

/* List the images of container FROM, number C, whose payload is PAYLOAD. */
static kpack_error_t list_images(struct maker *m, const struct kp_container *from,
				 uint32_t c, const struct kp_source *payload)
{
	for (size_t i = from->first_image; i < from->first_image + from->n_images; i++) {
		const struct kp_image *old = &m->fat->containers.images[i];
		struct kp_recipe_image *image;

		KP_TRY(kp_recipe_add_image(&m->r, old->id, old->arch, old->host, &image,
					   m->why));
		image->container = c;
		image->size = old->size;
		if (image->host || !image->size)
			continue;
		if (image->size > KP_OBJECT_MAX)
			return kp_fail(m->why, KPACK_ERROR_NOT_IMPLEMENTED,
				       "a code object of %" PRIu64
				       " bytes, at most %" PRIu64,
				       image->size, KP_OBJECT_MAX);
		image->has_xxh3 = true;
		if (m->xxh3 && m->known[i])
			memcpy(image->xxh3, m->xxh3[i], sizeof(image->xxh3));
		else if (m->how & KP_RECIPE_COMPUTE)
			KP_TRY(hash_range(m, payload, old->offset, old->size, image->xxh3,
					  sizeof(image->xxh3)));
		else
			image->has_xxh3 = false;
	}
	m->r.containers[c].n_images = m->r.n_images - m->r.containers[c].first_image;
	return KPACK_SUCCESS;
}

/* Where an image is in its container's payload. */
struct spot {
	uint64_t offset, size;
	size_t number; /* of the recipe */
	bool host;
};

/*
 * Find the images of container C in its payload, in order; SPOTS has room for them.  The
 * offsets of empty images are in the bundle's HEADER alone.  *DERIVED: from the images the same
 * header can be made again, which is the case for all bundles that compilers write.
 */
static kpack_error_t find_spots(struct maker *m, const struct kp_container *from,
				size_t c, struct kp_span header, struct spot *spots,
				bool *derived)
{
	const struct kp_recipe_container *container = &m->r.containers[c];
	size_t n = container->n_images, first = container->first_image;
	KP_AUTO_FREE struct kp_bundle_row *rows = NULL;
	KP_AUTO_FREE uint8_t *again = NULL;
	const uint8_t *at = header.data;
	uint64_t pos = header.size;

	KP_TRY(kp_new(&rows, n, "a bundle", m->why));
	KP_TRY(kp_new(&again, header.size, "a bundle", m->why));
	at += header.size ? KP_BUNDLE_HEADER_MIN : 0;
	for (size_t i = 0; i < n; i++) {
		const struct kp_image *image =
			&m->fat->containers.images[from->first_image + i];
		uint64_t offset = image->offset;

		if (header.size && image->size == 0)
			offset = kp_le64(at);
		spots[i] = (struct spot){offset, image->size, first + i, image->host};
		rows[i] = (struct kp_bundle_row){kp_span_str(image->id ? image->id : ""),
						 offset, image->size};
		at += header.size ? KP_BUNDLE_ROW_SIZE + rows[i].id.size : 0;
	}
	/* what a row of padding, another order or another alignment would change stays as bytes */
	/* a code object alone has no header */
	*derived = header.size != 0;
	if (*derived) {
		kp_bundle_header_write(rows, n, again);
		*derived = memcmp(again, header.data, header.size) == 0;
	}
	/* an empty one before the others at its offset, so that it does not seem to overlap them */
	kp_sort(spots, n, KP_BY_NUMBER(struct spot, offset),
		KP_BY_NUMBER(struct spot, size), KP_BY_NUMBER(struct spot, number));
	for (size_t i = 0; i < n; i++) {
		*derived &=
			spots[i].offset >= pos && spots[i].offset <= from->payload_size;
		if (spots[i].offset >= pos)
			pos = spots[i].offset + spots[i].size;
	}
	return KPACK_SUCCESS;
}

/* Add the parts of the payload: the header, images at their offsets, and what is between. */
static kpack_error_t add_payload(struct maker *m, const struct kp_container *from,
				 size_t c, const struct kp_source *payload)
{
	struct kp_recipe *r = &m->r;
	const struct kp_recipe_container *container = &r->containers[c];
	KP_AUTO_FREE struct spot *spots = NULL;
	KP_AUTO_FREE uint8_t *header = NULL;
	uint64_t pos = 0, size = 0;
	bool derived;

	if (from->format != &kp_format_code_object) {
		size = KP_BUNDLE_HEADER_MIN;
		for (size_t i = 0; i < container->n_images; i++)
			size += KP_BUNDLE_ROW_SIZE +
				strlen(r->images[container->first_image + i].id);
	}
	KP_TRY(kp_new(&header, (size_t)size, "a bundle", m->why));
	KP_TRY(kp_new(&spots, container->n_images, "a bundle", m->why));
	KP_TRY(kp_source_read(payload, 0, header, (size_t)size, m->why));
	KP_TRY(find_spots(m, from, c, (struct kp_span){header, (size_t)size}, spots,
			  &derived));
	if (derived) {
		KP_TRY(kp_recipe_add(r,
				     (struct kp_part){.kind = KP_PART_HEADER,
						      .number = (uint32_t)c,
						      .size = size},
				     m->why));
		pos = size;
	}
	for (size_t i = 0; i < container->n_images; i++) {
		const struct spot *s = &spots[i];
		struct kp_part part = {.kind = KP_PART_OBJECT,
				       .number = (uint32_t)s->number,
				       .size = s->size};
		uint8_t *room = NULL;

		/* objects can overlap: then a later one gives only what the earlier ones did not */
		if (s->offset > from->payload_size || s->offset + s->size < pos ||
		    (s->offset < pos && (s->host || s->offset + s->size == pos)))
			continue; /* no bytes, or bytes that another one has, too */
		if (s->offset > pos) {
			KP_TRY(add_range(r, payload, pos, s->offset, CODE_MAX, m->buf,
					 m->why));
		} else if (s->offset < pos) {
			part.kind = KP_PART_RANGE;
			part.from = pos - s->offset;
			part.size = s->size - part.from;
		}
		if (s->host && s->size) {
			if (s->size > CODE_MAX - r->n_bytes)
				return kp_fail(m->why, KPACK_ERROR_NOT_IMPLEMENTED,
					       "%" PRIu64 " bytes of the host", s->size);
			r->images[s->number].from = r->n_bytes;
			KP_TRY(add_room(r, (size_t)s->size, &room, m->why));
			KP_TRY(kp_source_read(payload, s->offset, room, (size_t)s->size,
					      m->why));
		}
		KP_TRY(kp_recipe_add(r, part, m->why));
		pos = s->offset + s->size;
	}
	return add_range(r, payload, pos, from->payload_size, CODE_MAX, m->buf, m->why);
}

/*
 * Compute what ORIGINAL, a compressed bundle, has besides PAYLOAD: a zstd frame whose prefix is the
 * payload.  What the bundle's compressor left as it was is in the payload, too.  To undo it no
 * compressor is needed, so that the result is the same with every version of zstd.
 */
static kpack_error_t make_difference(struct kp_span payload, struct kp_span original,
				     uint8_t **out, size_t *size,
				     struct kpackx_error *why)
{
	ZSTD_bounds bounds = ZSTD_cParam_getBounds(ZSTD_c_windowLog);
	size_t cap = ZSTD_compressBound(original.size), n = 0;
	ZSTD_CCtx *ctx = ZSTD_createCCtx();
	int window = bounds.lowerBound;
	bool good;

	/* the window must have all of both */
	while (window < bounds.upperBound &&
	       UINT64_C(1) << window < (uint64_t)payload.size + original.size)
		window++;
	*out = malloc(cap);
	good = *out && ctx &&
	       !ZSTD_isError(ZSTD_CCtx_setParameter(ctx, ZSTD_c_compressionLevel,
						    DIFFERENCE_LEVEL)) &&
	       !ZSTD_isError(ZSTD_CCtx_setParameter(
		       ctx, ZSTD_c_enableLongDistanceMatching, 1)) &&
	       !ZSTD_isError(ZSTD_CCtx_setParameter(ctx, ZSTD_c_windowLog, window)) &&
	       !ZSTD_isError(ZSTD_CCtx_refPrefix(ctx, payload.data, payload.size));
	if (good)
		n = ZSTD_compress2(ctx, *out, cap, original.data, original.size);
	ZSTD_freeCCtx(ctx);
	*size = n;
	return good && !ZSTD_isError(n) ? KPACK_SUCCESS
					: kp_fail_memory(why, cap, "a kept container");
}

/* Append the difference of bundle FROM from its payload, as a skippable frame. */
static kpack_error_t keep_container(struct maker *m, const struct kp_container *from,
				    struct kp_recipe_form *f, struct kp_payload *payload)
{
	KP_AUTO_FREE uint8_t *original = NULL, *difference = NULL;
	struct kp_source stored;
	struct kp_span plain = {0};
	size_t size = 0, total;
	uint8_t *grown;

	if (!kp_source_sub(&m->fat->source, from->offset, from->size, &stored))
		return kp_fail(m->why, KPACK_ERROR_INVALID_FORMAT, "passes the end");
	KP_TRY(kp_source_load(&stored, UINT64_MAX, "a container", &original, m->why));
	KP_TRY(kp_payload_map(payload, &plain, m->why));
	KP_TRY(make_difference(plain, (struct kp_span){original, (size_t)from->size},
			       &difference, &size, m->why));
	if (size > UINT32_MAX)
		return kp_fail(m->why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "%zu bytes are too many to be kept", size);
	total = m->r.n_kept + KP_RECIPE_SKIP_HEADER + size;
	grown = realloc(m->r.kept, total);
	if (!grown)
		return kp_fail_memory(m->why, total, "kept containers");
	m->r.kept = grown;
	grown += m->r.n_kept;
	kp_put_le32(grown, KP_RECIPE_SKIP_MAGIC);
	kp_put_le32(grown + 4, (uint32_t)size);
	memcpy(grown + KP_RECIPE_SKIP_HEADER, difference, size);
	m->r.n_kept = total;
	f->kept = size;
	return KPACK_SUCCESS;
}

static kpack_error_t describe_payload(struct maker *m, const struct kp_container *from,
				      size_t c, struct kp_payload *payload)
{
	struct kp_recipe *r = &m->r;
	const struct kp_source *src = &m->fat->source;
	struct kp_recipe_form f = {0};
	size_t part = r->n_parts;

	KP_TRY(list_images(m, from, (uint32_t)c, &payload->source));
	if (m->how & KP_RECIPE_IN_FILE)
		return KPACK_SUCCESS;
	if (from->format != &kp_format_ccob)
		return add_payload(m, from, c, &payload->source);
	/*
	 * The level may be a guess, and restoring may be done with another zstd; the hash shows
	 * then whether the result has the same bytes.
	 */
	KP_TRY(kp_ccob_form_read(src, from, &f.form, m->why));
	KP_TRY(kp_ccob_find_level(src, from, payload, &m->search, &f.form, m->why));
	if (m->how & KP_RECIPE_KEEP)
		KP_TRY(keep_container(m, from, &f, payload));
	KP_TRY(hash_range(m, src, from->offset, from->size, f.xxh3, sizeof(f.xxh3)));
	KP_TRY(kp_room(&r->forms, r->n_forms, &r->forms_cap, "a recipe", m->why));
	r->forms[r->n_forms++] = f;
	KP_TRY(kp_recipe_add(r,
			     (struct kp_part){.kind = KP_PART_COMPRESSED,
					      .number = (uint32_t)r->n_forms - 1,
					      .size = from->size},
			     m->why));
	KP_TRY(add_payload(m, from, c, &payload->source));
	r->parts[part].inside = (uint32_t)(r->n_parts - part - 1);
	/* bytes behind the bundle are none of its payload */
	r->apart = r->n_parts;
	return KPACK_SUCCESS;
}

static kpack_error_t describe_fatbin(struct maker *m)
{
	const struct kp_containers *list = &m->fat->containers;
	const struct kp_source *src = &m->fat->source;
	bool in_file = m->how & KP_RECIPE_IN_FILE;
	struct kp_recipe *r = &m->r;
	uint64_t pos = 0;

	/* kp_recipe_read has the same limits, so that it can read everything we write */
	if (kp_recipe_is_too_much(list) || src->size > KP_LAYOUT_SECTION_MAX)
		return kp_fail(m->why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "device code of more than %" PRIu64 " bytes",
			       KP_LAYOUT_SECTION_MAX);
	if (list->count > KP_IMAGES_MAX)
		return kp_fail(m->why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "%zu containers of at most %d", list->count,
			       KP_IMAGES_MAX);
	r->has_section = true;
	r->section_offset = m->fat->elf.fatbin.offset;
	r->section_size = src->size;
	r->n_wrappers = m->fat->elf.n_wrappers;
	KP_TRY(kp_new(&r->wrapper_container, r->n_wrappers, "wrappers", m->why));
	for (size_t i = 0; i < r->n_wrappers; i++) {
		if (m->fat->wrapper_container[i] < 0)
			return kp_fail(m->why, KPACK_ERROR_NOT_IMPLEMENTED,
				       "wrapper %zu leads to no container", i);
		r->wrapper_container[i] = (uint32_t)m->fat->wrapper_container[i];
	}
	KP_TRY(kp_new(&r->containers, list->count, "a recipe", m->why));
	for (size_t i = 0; i < list->count; i++) {
		const struct kp_container *from = &list->items[i];
		struct kp_payload payload;
		kpack_error_t err;

		if (!in_file)
			KP_TRY(add_range(r, src, pos, from->offset, CODE_MAX, m->buf,
					 m->why));
		r->containers[r->n_containers++] = (struct kp_recipe_container){
			.first_image = r->n_images,
			.offset = r->section_offset + from->offset};
		KP_TRY(kp_recipe_add(r,
				     (struct kp_part){.kind = KP_PART_CONTAINER,
						      .number = (uint32_t)i},
				     m->why));
		KP_TRY(kp_container_load(src, from, &payload, m->why));
		err = describe_payload(m, from, i, &payload);
		kp_payload_fini(&payload);
		if (err)
			return kp_fail_prefix(m->why, err, "%s at offset %" PRIu64,
					      from->format->name, from->offset);
		pos = from->offset + from->size;
	}
	if (!in_file)
		KP_TRY(add_range(r, src, pos, src->size, CODE_MAX, m->buf, m->why));
	r->section_end = r->n_parts;
	return KPACK_SUCCESS;
}

kpack_error_t kp_recipe_describe(const struct kp_fatbin *fat, const uint8_t (*xxh3)[16],
				 const bool *known, unsigned how, struct kp_recipe *out,
				 struct kpackx_error *why)
{
	struct maker m = {
		.fat = fat,
		.xxh3 = xxh3,
		.known = known,
		.how = how,
		.buf = malloc(PIECE),
		.hash = kp_hasher_new(),
		.search = KP_CCOB_SEARCH,
		.why = why,
	};
	kpack_error_t err = m.buf && m.hash ? describe_fatbin(&m)
					    : kp_fail_memory(why, PIECE, "a recipe");

	kp_hasher_free(m.hash);
	free(m.buf);
	if (err) {
		kp_recipe_fini(&m.r);
		return kp_fail_prefix(why, err, "recipe");
	}
	*out = m.r;
	return KPACK_SUCCESS;
}

/* ---- the whole file ---- */

/* A recipe that is completed. */
struct completion {
	struct kp_recipe r; /* its parts and bytes; the other tables are borrowed */
	struct kp_source file;
	const struct kp_move *moves; /* by `from` */
	size_t n;
	uint8_t *buf;
	struct kp_move *copied; /* what is copied, in order; `to` is not used */
	size_t n_copied, copied_cap;
	struct kpackx_error *why;
};

/* Add [FROM, END) of the file: what moves is copied, and the rest stored. */
static kpack_error_t add_file(struct completion *c, uint64_t from, uint64_t end)
{
	const struct kp_move probe = {.from = from + 1};
	size_t i = kp_lower_bound(c->moves, c->n, &probe,
				  KP_BY_NUMBER(struct kp_move, from));

	/*
	 * from the last one on that begins at FROM or before: what a move has of the range is
	 * copied from where it goes, what is between two moves is stored
	 */
	for (i -= i != 0; from < end && i < c->n && c->moves[i].from < end; i++) {
		const struct kp_move *m = &c->moves[i];
		uint64_t n;

		if (m->from > from) {
			KP_TRY(add_range(&c->r, &c->file, from, m->from, FILE_MAX, c->buf,
					 c->why));
			from = m->from;
		}
		if (m->size <= from - m->from)
			continue;
		n = m->size - (from - m->from);
		n = n < end - from ? n : end - from;
		KP_TRY(kp_room(&c->copied, c->n_copied, &c->copied_cap, "a recipe",
			       c->why));
		c->copied[c->n_copied++] = (struct kp_move){from, n, 0};
		KP_TRY(kp_recipe_add(&c->r,
				     (struct kp_part){.kind = KP_PART_COPY,
						      .from = m->to + (from - m->from),
						      .size = n},
				     c->why));
		from += n;
	}
	return add_range(&c->r, &c->file, from, end, FILE_MAX, c->buf, c->why);
}

/* Add parts [FIRST, END) of OLD, with the bytes that they have. */
static kpack_error_t add_parts(struct completion *c, const struct kp_recipe *old,
			       size_t first, size_t end)
{
	for (size_t i = first; i < end; i++) {
		const struct kp_part *p = &old->parts[i];
		const struct kp_recipe_image *image = &old->images[p->number];
		bool host = p->kind == KP_PART_OBJECT && image->host;
		size_t size = p->kind == KP_PART_BYTES ? (size_t)p->size
			      : host                   ? (size_t)image->size
						       : 0;
		uint8_t *room = NULL;

		if (p->kind == KP_PART_COPY) {
			KP_TRY(add_file(c, p->from, p->from + p->size));
			continue;
		}
		if (size) {
			KP_TRY(add_room(&c->r, size, &room, c->why));
			memcpy(room, old->bytes + (host ? image->from : p->from), size);
		}
		/* as it is: the number of parts in a compressed bundle stays */
		KP_TRY(kp_room(&c->r.parts, c->r.n_parts, &c->r.parts_cap, "a recipe",
			       c->why));
		c->r.parts[c->r.n_parts++] = *p;
		c->r.apart = c->r.n_parts;
	}
	return KPACK_SUCCESS;
}

static kpack_error_t add_all(struct completion *c, const struct kp_recipe_maker *maker)
{
	const struct kp_recipe *old = maker->recipe;
	uint64_t pos = old->section_offset, end = pos + old->section_size;
	bool needs_objects = false;

	/* the parts are those of the original: only what they copy has another place now */
	if (maker->converted)
		return add_parts(c, old, 0, old->n_parts);
	/* the section must begin and end between two parts, because it is restored alone, too */
	KP_TRY(add_file(c, 0, pos));
	c->r.apart = c->r.n_parts;
	for (size_t i = old->section_first; i < old->section_end; i++)
		needs_objects |= old->parts[i].kind == KP_PART_OBJECT ||
				 old->parts[i].kind == KP_PART_RANGE ||
				 old->parts[i].kind == KP_PART_HEADER;
	if (needs_objects) {
		KP_TRY(add_parts(c, old, old->section_first, old->section_end));
		return add_file(c, end, maker->size);
	}
	/* the device code stays in the file, with marks where containers begin */
	for (size_t i = 0; i < old->n_containers; i++) {
		KP_TRY(add_file(c, pos, old->containers[i].offset));
		pos = old->containers[i].offset;
		KP_TRY(kp_recipe_add(&c->r,
				     (struct kp_part){.kind = KP_PART_CONTAINER,
						      .number = (uint32_t)i},
				     c->why));
	}
	KP_TRY(add_file(c, pos, end));
	c->r.apart = c->r.n_parts;
	return add_file(c, end, maker->size);
}

/* Read the differences of a recipe that was read, all frames together. */
static kpack_error_t load_kept(struct completion *c)
{
	struct kp_recipe *r = &c->r;
	uint64_t first = 0, end = 0;
	struct kp_source frames;

	r->kept = NULL;
	for (size_t i = 0; i < r->n_forms; i++) {
		if (!r->forms[i].kept)
			continue;
		first = end ? first : r->forms[i].kept_offset - KP_RECIPE_SKIP_HEADER;
		end = r->forms[i].kept_offset + r->forms[i].kept;
	}
	if (!end)
		return KPACK_SUCCESS;
	if (!kp_source_sub(&r->source, first, end - first, &frames))
		return kp_fail(c->why, KPACK_ERROR_INVALID_METADATA,
			       "recipe: a difference is missing");
	r->n_kept = (size_t)frames.size;
	return kp_source_load(&frames, UINT64_MAX, "kept containers", &r->kept, c->why);
}

kpack_error_t kp_recipe_complete(void *arg, const struct kp_move *moves, size_t n,
				 struct kp_span *out, struct kpackx_error *why)
{
	struct kp_recipe_maker *maker = arg;
	const struct kp_recipe *old = maker->recipe;
	struct completion c = {.r = *old,
			       .file = kp_source_fd(maker->fd, 0, INT64_MAX),
			       .moves = moves,
			       .n = n,
			       .buf = malloc(PIECE),
			       .why = why};
	struct kp_hasher *hash;
	uint64_t ranges;
	uint8_t *bytes;
	size_t size;
	kpack_error_t err =
		c.buf ? KPACK_SUCCESS : kp_fail_memory(why, PIECE, "a recipe");

	/* the tables of objects stay, and the parts are made anew, with the bytes that they need */
	c.r.parts = NULL;
	c.r.bytes = NULL;
	c.r.n_parts = c.r.parts_cap = c.r.apart = c.r.n_bytes = c.r.bytes_cap = 0;
	if (!maker->converted)
		c.r.size = maker->size;
	if (!old->n_kept && !err)
		err = load_kept(&c);
	if (!err)
		err = add_all(&c, maker);
	/* hash what is copied, unless the last plan copied the same */
	ranges = kp_hash64(c.copied, c.n_copied * sizeof(*c.copied), 1);
	if (!err && maker->ranges != ranges) {
		hash = kp_hasher_new();
		err = hash ? KPACK_SUCCESS : kp_fail_memory(why, 0, "a hash");
		for (size_t i = 0; i < c.n_copied && !err; i++)
			err = kp_recipe_hash(hash, &c.file, c.copied[i].from,
					     c.copied[i].size, why);
		if (!err) {
			memcpy(maker->copied, kp_hasher_value(hash).bytes,
			       sizeof(maker->copied));
			maker->ranges = ranges;
		}
		kp_hasher_free(hash);
	}
	memcpy(c.r.copied, maker->copied, sizeof(c.r.copied));
	if (!err)
		err = kp_recipe_encode(&c.r, &bytes, &size, why);
	if (!err) {
		free((void *)maker->bytes.data);
		*out = maker->bytes = (struct kp_span){bytes, size};
	}
	if (!old->n_kept)
		free(c.r.kept);
	free(c.r.parts);
	free(c.r.bytes);
	free(c.buf);
	free(c.copied);
	return err;
}
