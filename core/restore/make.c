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

/* What a recipe is made with; each of the two steps has one. */
struct maker {
	struct kp_recipe r;
	size_t most;  /* bytes that the recipe may have itself */
	uint8_t *buf; /* PIECE */
	struct kp_hasher *hash;
	struct kpackx_error *why;
	/* the device code */
	const struct kp_fatbin *fat;
	const uint8_t (*xxh3)[16];
	const bool *known;
	unsigned how;
	struct kp_ccob_search search;
	/* the whole file */
	struct kp_source file;
	const struct kp_move *moves; /* by `from` */
	size_t n_moves;
	struct kp_move *copied; /* what is copied, in order; `to` is not used */
	size_t n_copied, copied_cap;
};

static kpack_error_t begin_recipe(struct maker *m)
{
	m->buf = malloc(PIECE);
	m->hash = kp_hasher_new();
	return m->buf && m->hash ? KPACK_SUCCESS
				 : kp_fail_memory(m->why, PIECE, "a recipe");
}

static void maker_fini(struct maker *m)
{
	kp_recipe_fini(&m->r);
	kp_hasher_free(m->hash);
	free(m->buf);
	free(m->copied);
}

static kpack_error_t add_part(struct maker *m, enum kp_part_kind kind, size_t number,
			      uint64_t size)
{
	struct kp_part part = {.kind = kind, .number = (uint32_t)number, .size = size};

	return kp_recipe_add(&m->r, part, m->why);
}

/* Append SIZE bytes to those that the recipe has, which the caller fills in at once: *ROOM. */
static kpack_error_t add_room(struct maker *m, size_t size, uint8_t **room)
{
	struct kp_recipe *r = &m->r;

	if (!kp_grow(&r->bytes, r->n_bytes + size, &r->bytes_cap, 1))
		return kp_fail_memory(m->why, r->n_bytes + size, "a recipe");
	*room = r->bytes + r->n_bytes;
	r->n_bytes += size;
	return KPACK_SUCCESS;
}

/* Add the parts for DATA: bytes that the recipe has, and runs of zeros. */
static kpack_error_t add_data(struct maker *m, struct kp_span data)
{
	/* in each round N bytes that are stored, and then a run of zeros that is not */
	while (data.size) {
		struct kp_part part = {.kind = KP_PART_BYTES, .from = m->r.n_bytes};
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
		if (n > m->most - m->r.n_bytes)
			return kp_fail(m->why, KPACK_ERROR_NOT_IMPLEMENTED,
				       "%zu bytes more that are in no code object; a "
				       "recipe keeps %zu",
				       n, m->most);
		if (n) {
			KP_TRY(add_room(m, n, &room));
			memcpy(room, data.data, n);
			part.size = n;
			KP_TRY(kp_recipe_add(&m->r, part, m->why));
		}
		if (zeros)
			KP_TRY(add_part(m, KP_PART_ZEROS, 0, zeros));
		data = kp_span_tail(data, n + zeros);
	}
	return KPACK_SUCCESS;
}

/* Add the parts for [OFF, END) of SRC, as add_data. */
static kpack_error_t add_range(struct maker *m, const struct kp_source *src, uint64_t off,
			       uint64_t end)
{
	for (uint64_t n; off < end; off += n) {
		off_t here = (off_t)(src->offset + off);
		off_t data = src->fd < 0 ? here : lseek(src->fd, here, SEEK_DATA);

		n = end - off;
		/* a hole can be longer than anything that can be read */
		if ((data < 0 && errno == ENXIO) || data > here) {
			if (data > here && (uint64_t)(data - here) < n)
				n = (uint64_t)(data - here);
			KP_TRY(add_part(m, KP_PART_ZEROS, 0, n));
			continue;
		}
		n = n < PIECE ? n : PIECE;
		KP_TRY(kp_source_read(src, off, m->buf, (size_t)n, m->why));
		KP_TRY(add_data(m, (struct kp_span){m->buf, (size_t)n}));
	}
	return KPACK_SUCCESS;
}

/* ---- the device code ---- */

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

/* Where an image is in its container's payload. */
struct spot {
	uint64_t offset, size;
	size_t number; /* of the recipe */
	bool host;
};

/*
 * Add the parts of the payload of container C: the header, the images at their offsets, and what
 * is between.
 */
static kpack_error_t add_payload(struct maker *m, const struct kp_container *from,
				 size_t c, const struct kp_source *payload)
{
	struct kp_recipe *r = &m->r;
	size_t n = r->containers[c].n_images, first = r->containers[c].first_image;
	bool is_bundle = from->format != &kp_format_code_object, derived = false;
	uint64_t size = is_bundle ? KP_BUNDLE_HEADER_MIN : 0, pos;
	KP_AUTO_FREE struct kp_bundle_row *rows = NULL;
	KP_AUTO_FREE struct spot *spots = NULL;
	KP_AUTO_FREE uint8_t *header = NULL, *again = NULL;
	const uint8_t *at;

	for (size_t i = first; i < first + n && is_bundle; i++)
		size += KP_BUNDLE_ROW_SIZE + strlen(r->images[i].id);
	KP_TRY(kp_new(&rows, n, "a bundle", m->why));
	KP_TRY(kp_new(&spots, n, "a bundle", m->why));
	KP_TRY(kp_new(&header, (size_t)size + 1, "a bundle", m->why));
	KP_TRY(kp_new(&again, (size_t)size + 1, "a bundle", m->why));
	KP_TRY(kp_source_read(payload, 0, header, (size_t)size, m->why));
	at = header + (is_bundle ? KP_BUNDLE_HEADER_MIN : 0);
	for (size_t i = 0; i < n; i++) {
		const struct kp_image *image =
			&m->fat->containers.images[from->first_image + i];

		spots[i] =
			(struct spot){image->offset, image->size, first + i, image->host};
		if (!is_bundle)
			continue;
		/* the offsets of empty images are in the bundle's header alone */
		if (image->size == 0)
			spots[i].offset = kp_le64(at);
		rows[i] = (struct kp_bundle_row){kp_span_str(image->id), spots[i].offset,
						 image->size};
		at += KP_BUNDLE_ROW_SIZE + rows[i].id.size;
	}
	/*
	 * From the images of all bundles that compilers write the same header can be made again.
	 * What a row of padding, another order or another alignment would change stays as bytes.
	 */
	if (is_bundle) {
		kp_bundle_header_write(rows, n, again);
		derived = memcmp(again, header, (size_t)size) == 0;
	}
	/* an empty one before the others at its offset, so that it does not seem to overlap them */
	kp_sort(spots, n, KP_BY_NUMBER(struct spot, offset),
		KP_BY_NUMBER(struct spot, size), KP_BY_NUMBER(struct spot, number));
	pos = size;
	for (size_t i = 0; i < n; i++) {
		derived &=
			spots[i].offset >= pos && spots[i].offset <= from->payload_size;
		if (spots[i].offset >= pos)
			pos = spots[i].offset + spots[i].size;
	}
	if (derived)
		KP_TRY(add_part(m, KP_PART_HEADER, c, size));
	pos = derived ? size : 0;
	for (size_t i = 0; i < n; i++) {
		const struct spot *s = &spots[i];
		struct kp_part part = {.kind = KP_PART_OBJECT,
				       .number = (uint32_t)s->number,
				       .size = s->size};
		uint8_t *room = NULL;

		/* objects can overlap: then a later one gives only what the earlier ones did not */
		if (s->offset > from->payload_size || s->offset + s->size < pos ||
		    (s->offset < pos && (s->host || s->offset + s->size == pos)))
			continue; /* no bytes, or bytes that another one has, too */
		if (s->offset < pos) {
			part.kind = KP_PART_RANGE;
			part.from = pos - s->offset;
			part.size = s->size - part.from;
		}
		KP_TRY(add_range(m, payload, pos, s->offset));
		if (s->host && s->size) {
			if (s->size > m->most - r->n_bytes)
				return kp_fail(m->why, KPACK_ERROR_NOT_IMPLEMENTED,
					       "%" PRIu64 " bytes of the host", s->size);
			r->images[s->number].from = r->n_bytes;
			KP_TRY(add_room(m, (size_t)s->size, &room));
			KP_TRY(kp_source_read(payload, s->offset, room, (size_t)s->size,
					      m->why));
		}
		KP_TRY(kp_recipe_add(r, part, m->why));
		pos = s->offset + s->size;
	}
	return add_range(m, payload, pos, from->payload_size);
}

/*
 * Keep what the compressed bundle FROM has besides PAYLOAD, as a skippable frame: a zstd frame whose
 * prefix is the payload.  What the bundle's compressor left as it was is in the payload, too.  To
 * undo it no compressor is needed, so that the result is the same with every version of zstd.
 */
static kpack_error_t keep_difference(struct maker *m, const struct kp_container *from,
				     struct kp_recipe_form *f, struct kp_payload *payload)
{
	ZSTD_bounds bounds = ZSTD_cParam_getBounds(ZSTD_c_windowLog);
	size_t cap = ZSTD_compressBound((size_t)from->size), n = 0;
	KP_AUTO_FREE uint8_t *original = NULL;
	int window = bounds.lowerBound;
	struct kp_span plain = {0};
	struct kp_source stored;
	ZSTD_CCtx *ctx;
	uint8_t *frame;
	bool good;

	if (!kp_source_sub(&m->fat->source, from->offset, from->size, &stored))
		return kp_fail(m->why, KPACK_ERROR_INVALID_FORMAT, "passes the end");
	KP_TRY(kp_source_load(&stored, UINT64_MAX, "a container", &original, m->why));
	KP_TRY(kp_payload_map(payload, &plain, m->why));
	/* the window must have all of both */
	while (window < bounds.upperBound &&
	       UINT64_C(1) << window < (uint64_t)plain.size + from->size)
		window++;
	cap += KP_RECIPE_SKIP_HEADER;
	frame = realloc(m->r.kept, m->r.n_kept + cap);
	if (!frame)
		return kp_fail_memory(m->why, cap, "a kept container");
	m->r.kept = frame;
	frame += m->r.n_kept;
	ctx = ZSTD_createCCtx();
	good = ctx &&
	       !ZSTD_isError(ZSTD_CCtx_setParameter(ctx, ZSTD_c_compressionLevel,
						    DIFFERENCE_LEVEL)) &&
	       !ZSTD_isError(ZSTD_CCtx_setParameter(
		       ctx, ZSTD_c_enableLongDistanceMatching, 1)) &&
	       !ZSTD_isError(ZSTD_CCtx_setParameter(ctx, ZSTD_c_windowLog, window)) &&
	       !ZSTD_isError(ZSTD_CCtx_refPrefix(ctx, plain.data, plain.size));
	if (good)
		n = ZSTD_compress2(ctx, frame + KP_RECIPE_SKIP_HEADER,
				   cap - KP_RECIPE_SKIP_HEADER, original,
				   (size_t)from->size);
	ZSTD_freeCCtx(ctx);
	if (!good || ZSTD_isError(n))
		return kp_fail_memory(m->why, cap, "a kept container");
	if (n > UINT32_MAX)
		return kp_fail(m->why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "%zu bytes are too many to be kept", n);
	kp_put_le32(frame, KP_RECIPE_SKIP_MAGIC);
	kp_put_le32(frame + 4, (uint32_t)n);
	m->r.n_kept += KP_RECIPE_SKIP_HEADER + n;
	f->kept = n;
	return KPACK_SUCCESS;
}

/* List the images of container FROM, number C, and add its parts. */
static kpack_error_t describe_payload(struct maker *m, const struct kp_container *from,
				      size_t c, struct kp_payload *payload)
{
	struct kp_recipe *r = &m->r;
	const struct kp_source *src = &m->fat->source;
	struct kp_recipe_form f = {0};
	size_t part = r->n_parts;

	for (size_t i = from->first_image; i < from->first_image + from->n_images; i++) {
		const struct kp_image *old = &m->fat->containers.images[i];
		struct kp_recipe_image *image;

		KP_TRY(kp_recipe_add_image(r, old->id, old->arch, old->host, &image,
					   m->why));
		image->container = (uint32_t)c;
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
			KP_TRY(hash_range(m, &payload->source, old->offset, old->size,
					  image->xxh3, sizeof(image->xxh3)));
		else
			image->has_xxh3 = false;
	}
	r->containers[c].n_images = r->n_images - r->containers[c].first_image;
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
		KP_TRY(keep_difference(m, from, &f, payload));
	KP_TRY(hash_range(m, src, from->offset, from->size, f.xxh3, sizeof(f.xxh3)));
	KP_TRY(add_part(m, KP_PART_COMPRESSED, r->n_forms, from->size));
	KP_TRY(kp_room(&r->forms, r->n_forms, &r->forms_cap, "a recipe", m->why));
	r->forms[r->n_forms++] = f;
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
	r->section_offset = m->fat->host.fatbin.offset;
	r->section_size = src->size;
	r->n_wrappers = m->fat->host.n_wrappers;
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
		KP_AUTO(kp_payload) payload = {.source = {.fd = -1}};
		kpack_error_t err;

		if (!in_file)
			KP_TRY(add_range(m, src, pos, from->offset));
		r->containers[r->n_containers++] = (struct kp_recipe_container){
			.first_image = r->n_images,
			.offset = r->section_offset + from->offset};
		KP_TRY(add_part(m, KP_PART_CONTAINER, i, 0));
		KP_TRY(kp_container_load(src, from, &payload, m->why));
		err = describe_payload(m, from, i, &payload);
		if (err)
			return kp_fail_prefix(m->why, err, "%s at offset %" PRIu64,
					      from->format->name, from->offset);
		pos = from->offset + from->size;
	}
	if (!in_file)
		KP_TRY(add_range(m, src, pos, src->size));
	r->section_end = r->n_parts;
	return KPACK_SUCCESS;
}

kpack_error_t kp_recipe_describe(const struct kp_fatbin *fat, const uint8_t (*xxh3)[16],
				 const bool *known, unsigned how, struct kp_recipe *out,
				 struct kpackx_error *why)
{
	KP_AUTO(maker)
	m = {
		.most = KP_LAYOUT_INLINE_MAX,
		.fat = fat,
		.xxh3 = xxh3,
		.known = known,
		.how = how,
		.search = KP_CCOB_SEARCH,
		.why = why,
	};
	kpack_error_t err = begin_recipe(&m);

	if (!err)
		err = describe_fatbin(&m);
	if (err)
		return kp_fail_prefix(why, err, "recipe");
	*out = m.r;
	m.r = (struct kp_recipe){0};
	return KPACK_SUCCESS;
}

/* ---- the whole file ---- */

/* Add [FROM, END) of the file: what moves is copied, and the rest stored. */
static kpack_error_t add_file(struct maker *m, uint64_t from, uint64_t end)
{
	const struct kp_move probe = {.from = from + 1};
	size_t i = kp_lower_bound(m->moves, m->n_moves, &probe,
				  KP_BY_NUMBER(struct kp_move, from));

	/*
	 * from the last one on that begins at FROM or before: what a move has of the range is
	 * copied from where it goes, what is between two moves is stored
	 */
	for (i -= i != 0; from < end && i < m->n_moves && m->moves[i].from < end; i++) {
		const struct kp_move *move = &m->moves[i];
		struct kp_part part = {.kind = KP_PART_COPY};

		if (move->from > from) {
			KP_TRY(add_range(m, &m->file, from, move->from));
			from = move->from;
		}
		if (move->size <= from - move->from)
			continue;
		part.from = move->to + (from - move->from);
		part.size = move->size - (from - move->from);
		part.size = part.size < end - from ? part.size : end - from;
		KP_TRY(kp_room(&m->copied, m->n_copied, &m->copied_cap, "a recipe",
			       m->why));
		m->copied[m->n_copied++] = (struct kp_move){from, part.size, 0};
		KP_TRY(kp_recipe_add(&m->r, part, m->why));
		from += part.size;
	}
	return add_range(m, &m->file, from, end);
}

/* Add parts [FIRST, END) of OLD, with the bytes that they have. */
static kpack_error_t add_parts(struct maker *m, const struct kp_recipe *old, size_t first,
			       size_t end)
{
	struct kp_recipe *r = &m->r;

	for (size_t i = first; i < end; i++) {
		const struct kp_part *p = &old->parts[i];
		const struct kp_recipe_image *image = &old->images[p->number];
		bool host = p->kind == KP_PART_OBJECT && image->host;
		size_t size = p->kind == KP_PART_BYTES ? (size_t)p->size
			      : host                   ? (size_t)image->size
						       : 0;
		uint8_t *room = NULL;

		if (p->kind == KP_PART_COPY) {
			KP_TRY(add_file(m, p->from, p->from + p->size));
			continue;
		}
		if (size) {
			KP_TRY(add_room(m, size, &room));
			memcpy(room, old->bytes + (host ? image->from : p->from), size);
		}
		/* as it is: the number of parts in a compressed bundle stays */
		KP_TRY(kp_room(&r->parts, r->n_parts, &r->parts_cap, "a recipe", m->why));
		r->parts[r->n_parts++] = *p;
		r->apart = r->n_parts;
	}
	return KPACK_SUCCESS;
}

static kpack_error_t add_all(struct maker *m, const struct kp_recipe_maker *maker)
{
	const struct kp_recipe *old = maker->recipe;
	uint64_t pos = old->section_offset, end = pos + old->section_size;
	bool needs_objects = false;

	/* the parts are those of the original: only what they copy has another place now */
	if (maker->converted)
		return add_parts(m, old, 0, old->n_parts);
	/* the section must begin and end between two parts, because it is restored alone, too */
	KP_TRY(add_file(m, 0, pos));
	m->r.apart = m->r.n_parts;
	for (size_t i = old->section_first; i < old->section_end; i++)
		needs_objects |= old->parts[i].kind == KP_PART_OBJECT ||
				 old->parts[i].kind == KP_PART_RANGE ||
				 old->parts[i].kind == KP_PART_HEADER;
	if (needs_objects)
		KP_TRY(add_parts(m, old, old->section_first, old->section_end));
	/* the device code stays in the file, with marks where containers begin */
	for (size_t i = 0; i < old->n_containers && !needs_objects; i++) {
		KP_TRY(add_file(m, pos, old->containers[i].offset));
		pos = old->containers[i].offset;
		KP_TRY(add_part(m, KP_PART_CONTAINER, i, 0));
	}
	if (!needs_objects)
		KP_TRY(add_file(m, pos, end));
	m->r.apart = m->r.n_parts;
	return add_file(m, end, maker->size);
}

kpack_error_t kp_recipe_complete(void *arg, const struct kp_move *moves, size_t n,
				 struct kp_span *out, struct kpackx_error *why)
{
	struct kp_recipe_maker *maker = arg;
	struct kp_recipe all = *maker->recipe;
	KP_AUTO(maker)
	m = {.most = KP_LAYOUT_MAX / 4,
	     .file = kp_source_fd(maker->fd, 0, INT64_MAX),
	     .moves = moves,
	     .n_moves = n,
	     .why = why};
	uint64_t ranges, first = 0, end = 0;
	struct kp_source frames;
	uint8_t *bytes;
	size_t size;

	KP_TRY(begin_recipe(&m));
	KP_TRY(add_all(&m, maker));
	/* hash what is copied, unless the last plan copied the same */
	ranges = kp_hash64(m.copied, m.n_copied * sizeof(*m.copied), 1);
	if (maker->ranges != ranges) {
		for (size_t i = 0; i < m.n_copied; i++)
			KP_TRY(kp_recipe_hash(m.hash, &m.file, m.copied[i].from,
					      m.copied[i].size, why));
		memcpy(maker->copied, kp_hasher_value(m.hash).bytes,
		       sizeof(maker->copied));
		maker->ranges = ranges;
	}
	/* the differences of a recipe that was read are where it is, all frames together */
	for (size_t i = 0; i < all.n_forms && !all.n_kept; i++) {
		if (!all.forms[i].kept)
			continue;
		first = end ? first : all.forms[i].kept_offset - KP_RECIPE_SKIP_HEADER;
		end = all.forms[i].kept_offset + all.forms[i].kept;
	}
	if (end) {
		if (!kp_source_sub(&all.source, first, end - first, &frames))
			return kp_fail(why, KPACK_ERROR_INVALID_METADATA,
				       "recipe: a difference is missing");
		KP_TRY(kp_source_load(&frames, UINT64_MAX, "kept containers", &m.r.kept,
				      why));
		all.kept = m.r.kept;
		all.n_kept = (size_t)frames.size;
	}
	/* the tables of objects stay, and the parts are new, with the bytes that they need */
	all.size = maker->converted ? all.size : maker->size;
	all.parts = m.r.parts;
	all.n_parts = m.r.n_parts;
	all.bytes = m.r.bytes;
	all.n_bytes = m.r.n_bytes;
	memcpy(all.copied, maker->copied, sizeof(all.copied));
	KP_TRY(kp_recipe_encode(&all, &bytes, &size, why));
	free((void *)maker->bytes.data);
	*out = maker->bytes = (struct kp_span){bytes, size};
	return KPACK_SUCCESS;
}
