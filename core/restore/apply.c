/* SPDX-License-Identifier: MIT */
/*
 * Carrying out the parts of a recipe one after the other.  Those of a compressed bundle are
 * written to memory, or, if they are many bytes, to a temporary file; then it is compressed.
 */
#include "apply.h"
#include <inttypes.h>
#include <stdlib.h>
#include <zstd.h>
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "core/base/hash.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "core/format/bundle.h"

/* Smaller payloads are built in memory. */
static const uint64_t LARGE = 32 << 20;

/* Where parts are written: what has the offset 0 for them is at BASE there. */
struct sink {
	uint8_t *memory; /* NULL: the file */
	struct kp_outfile *file;
	uint64_t base;
};

struct apply {
	const struct kp_recipe *r;
	const struct kp_recipe_source *source;
	struct kp_recipe_result *result;
	/* the last object that was read, of which further ranges may be needed, and its number */
	uint8_t *object;
	size_t number;
	size_t container; /* the one that began last */
	struct kpackx_error *why;
};

static kpack_error_t put(const struct apply *a, const struct sink *s, uint64_t at,
			 const void *data, size_t size)
{
	if (!s->memory)
		return kp_outfile_pwrite(s->file, s->base + at, data, size, a->why);
	if (size)
		memcpy(s->memory + at, data, size);
	return KPACK_SUCCESS;
}

static bool is_there(const struct apply *a, size_t image)
{
	const struct kp_recipe_image *i = &a->r->images[image];

	return i->host || i->size == 0 || !i->placed || !a->source->have ||
	       a->source->have[image];
}

/* Read image NUMBER to BUF, and compare it with its hash. */
static kpack_error_t read_image(struct apply *a, size_t number, uint8_t *buf)
{
	const struct kp_recipe_image *image = &a->r->images[number];
	char arch[2 * KP_TARGET_TEXT_MAX];
	struct kp_hash have;

	KP_TRY(a->source->read(a->source->arg, number, buf, a->why));
	if (!image->has_xxh3)
		return KPACK_SUCCESS;
	have = kp_hash_of(buf, (size_t)image->size);
	if (memcmp(have.bytes, image->xxh3, sizeof(image->xxh3)) == 0)
		return KPACK_SUCCESS;
	return kp_fail(a->why, KPACK_ERROR_INVALID_METADATA,
		       "recipe: object %zu %s: not the object that was packed", number,
		       kp_text_escape(kp_span_str(image->arch), arch, sizeof(arch)));
}

static kpack_error_t put_object(struct apply *a, const struct sink *s,
				const struct kp_part *p)
{
	const struct kp_recipe_image *image = &a->r->images[p->number];

	if (p->size == 0)
		return KPACK_SUCCESS;
	if (image->host)
		return put(a, s, p->at, a->r->bytes + image->from, (size_t)image->size);
	if (!is_there(a, p->number)) {
		a->result->n_missing++;
		return KPACK_SUCCESS;
	}
	a->result->n_unknown += !image->has_xxh3;
	if (s->memory && p->kind == KP_PART_OBJECT)
		return read_image(a, p->number, s->memory + p->at);
	if (a->number != p->number) {
		free(a->object);
		a->number = SIZE_MAX;
		a->object = malloc((size_t)image->size);
		if (!a->object)
			return kp_fail_memory(a->why, image->size, "a code object");
		KP_TRY(read_image(a, p->number, a->object));
		a->number = p->number;
	}
	return put(a, s, p->at, a->object + p->from, (size_t)p->size);
}

/* Write the header of a bundle, without the images that are not there. */
static kpack_error_t put_header(struct apply *a, const struct sink *s,
				const struct kp_part *p)
{
	const struct kp_recipe_container *c = &a->r->containers[p->number];
	struct kp_bundle_row *rows = NULL;
	uint8_t *header = NULL;
	size_t n = 0;
	kpack_error_t err;

	KP_TRY(kp_new(&rows, c->n_images + 1, "a bundle", a->why));
	err = kp_new(&header, (size_t)p->size, "a bundle", a->why);
	for (size_t i = c->first_image; i < c->first_image + c->n_images && !err; i++) {
		const struct kp_recipe_image *image = &a->r->images[i];

		if (is_there(a, i))
			rows[n++] = (struct kp_bundle_row){
				kp_span_str(image->id), image->at - p->at, image->size};
	}
	if (!err) {
		kp_bundle_header_write(rows, n, header);
		err = put(a, s, p->at, header, (size_t)p->size);
	}
	free(header);
	free(rows);
	return err;
}

/*
 * A header of container NUMBER, at AT, that is not made from its images has been written as it
 * was and ends before END: let the entries of images that are not there be empty.  A code object cannot be left out
 * if a wrapper leads to it.
 */
static kpack_error_t empty_entries(const struct apply *a, const struct sink *s,
				   size_t number, uint64_t at, uint64_t end)
{
	const struct kp_recipe_container *c = &a->r->containers[number];
	static const uint8_t zeros[8];

	at += KP_BUNDLE_HEADER_MIN;
	for (size_t i = c->first_image; i < c->first_image + c->n_images; i++) {
		const char *id = a->r->images[i].id;

		if (!id && !is_there(a, i) && c->index < a->r->n_wrappers)
			return kp_fail(a->why, KPACK_ERROR_NOT_IMPLEMENTED,
				       "wrapper %" PRIu32 " leads to an object that is "
				       "missing",
				       c->index);
		if (id && !is_there(a, i)) {
			if (!kp_range_ok(end, at + 8, sizeof(zeros)))
				return kp_fail(a->why, KPACK_ERROR_INVALID_METADATA,
					       "recipe: container %zu has no header",
					       number);
			KP_TRY(put(a, s, at + 8, zeros, sizeof(zeros)));
		}
		at += KP_BUNDLE_ROW_SIZE + (id ? strlen(id) : 0);
	}
	return KPACK_SUCCESS;
}

/* ---- compressed bundles ---- */

static kpack_error_t put_parts(struct apply *a, const struct sink *s, size_t first,
			       size_t end);

/*
 * Make the payload of part NUMBER, a compressed bundle: the parts behind it.  The caller frees
 * OUT, from which BYTES are borrowed.  In a temporary file, mapped, its pages are those of a
 * file, which the system can take back; zeros are not written there.
 */
static kpack_error_t build_payload(struct apply *a, size_t number, struct kp_payload *out,
				   struct kp_span *bytes)
{
	const struct kp_part *p = &a->r->parts[number];
	uint64_t size = p->from;
	int fd = size >= LARGE && kp_spills(size) ? kp_spill_open() : -1;
	struct kp_outfile file = kp_spill_outfile(fd);
	struct sink s = {.file = &file};
	kpack_error_t err = KPACK_SUCCESS;

	if (fd >= 0) {
		int error = kp_spill_reserve(fd, size);

		*out = (struct kp_payload){.source = kp_source_fd(fd, 0, size),
					   .spilled = true};
		if (error)
			err = kp_fail_errno(a->why, error,
					    "cannot make a temporary file");
	} else {
		s.memory = calloc(1, (size_t)size + 1);
		if (!s.memory)
			return kp_fail_memory(a->why, size, "a bundle");
		*out = (struct kp_payload){
			.source = kp_source_memory(s.memory, (size_t)size),
			.heap = s.memory};
	}
	if (!err)
		err = put_parts(a, &s, number + 1, number + 1 + p->inside);
	if (!err && p->inside && p[1].kind != KP_PART_HEADER)
		err = empty_entries(a, &s, a->container, 0, size);
	if (!err)
		err = kp_payload_map(out, bytes, a->why);
	if (err)
		kp_payload_fini(out);
	return err;
}

/* Write the SIZE bytes of a bundle whose DIFFERENCE from PAYLOAD was kept. */
static kpack_error_t apply_difference(struct kp_span payload, struct kp_span difference,
				      uint8_t *out, size_t size, struct kpackx_error *why)
{
	ZSTD_DCtx *ctx = ZSTD_createDCtx();
	size_t n;

	if (!ctx)
		return kp_fail_memory(why, size, "a kept container");
	/* no window is allocated for a frame that is decoded in one call */
	n = ZSTD_DCtx_setParameter(ctx, ZSTD_d_windowLogMax,
				   ZSTD_dParam_getBounds(ZSTD_d_windowLogMax).upperBound);
	if (!ZSTD_isError(n))
		n = ZSTD_DCtx_refPrefix(ctx, payload.data, payload.size);
	if (!ZSTD_isError(n))
		n = ZSTD_decompressDCtx(ctx, out, size, difference.data, difference.size);
	ZSTD_freeDCtx(ctx);
	if (n == size)
		return KPACK_SUCCESS;
	return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
		       "the kept container is damaged: %s",
		       ZSTD_isError(n) ? ZSTD_getErrorName(n) : "it is smaller");
}

static bool is_same(const struct kp_recipe_form *f, const uint8_t *data, size_t size)
{
	struct kp_hash have = kp_hash_of(data, size);

	return kp_hash_is(&have, f->xxh3);
}

/*
 * Make the original bytes of part P from what is kept of it.  *OUT stays NULL if that is
 * damaged: then it is as if nothing was kept.
 */
static kpack_error_t unkeep(struct apply *a, const struct kp_part *p,
			    struct kp_span plain, uint8_t **out)
{
	const struct kp_recipe_form *f = &a->r->forms[p->number];
	uint8_t *difference = malloc((size_t)f->kept),
		*data = malloc((size_t)p->size + 1);
	struct kpackx_error fault = {0};
	kpack_error_t err;

	err = difference && data ? kp_source_read(&a->r->source, f->kept_offset,
						  difference, (size_t)f->kept, &fault)
				 : kp_fail_memory(&fault, p->size, "a kept container");
	if (!err)
		err = apply_difference(plain,
				       (struct kp_span){difference, (size_t)f->kept},
				       data, (size_t)p->size, &fault);
	free(difference);
	if (!err && is_same(f, data, (size_t)p->size)) {
		*out = data;
		return KPACK_SUCCESS;
	}
	free(data);
	if (!err || err == KPACK_ERROR_DECOMPRESSION_FAILED)
		return KPACK_SUCCESS;
	if (a->why)
		*a->why = fault;
	return err;
}

/* Bytes from the beginning of part NUMBER, a compressed bundle, to what follows it. */
static uint64_t room_for(const struct kp_recipe *r, size_t number)
{
	size_t next = number + 1 + r->parts[number].inside;
	uint64_t room = r->parts[number].size;

	if (next < r->n_parts && r->parts[next].kind == KP_PART_ZEROS)
		room += r->parts[next].size;
	return room;
}

/*
 * Compress PLAIN, the payload of part NUMBER.  If it gets other bytes, and more than it had
 * room for, higher levels are tried.
 */
static kpack_error_t encode(struct apply *a, size_t number, struct kp_span plain,
			    bool whole, uint8_t **out, size_t *size)
{
	static const int levels[] = {0, 5, 7, 9, 15, 19};
	struct kp_ccob_form form = a->r->forms[a->r->parts[number].number].form;
	uint64_t room = room_for(a->r, number);
	int first = form.level;

	if (!whole)
		form.hash = kp_ccob_hash(plain);
	for (size_t i = 0; i < KP_COUNT(levels); i++) {
		if (levels[i] && (levels[i] <= first ||
				  (levels[i] > 9 && form.method != KP_CCOB_ZSTD)))
			continue;
		if (levels[i]) {
			form.level = levels[i];
			form.long_range = form.method == KP_CCOB_ZSTD;
		}
		KP_TRY(kp_ccob_encode(&form, plain, out, size, a->why));
		if (*size <= room)
			return KPACK_SUCCESS;
		free(*out);
		*out = NULL;
	}
	return kp_fail(a->why, KPACK_ERROR_NOT_IMPLEMENTED,
		       "a compressed bundle had %" PRIu64 " bytes, and this compressor "
		       "needs %zu: kpack pack --keep-containers keeps what restores it",
		       room, *size);
}

static kpack_error_t put_compressed(struct apply *a, const struct sink *s, size_t number)
{
	const struct kp_part *p = &a->r->parts[number];
	const struct kp_recipe_form *f = &a->r->forms[p->number];
	size_t missing = a->result->n_missing, size = (size_t)p->size;
	struct kp_payload payload;
	struct kp_span plain;
	uint8_t *data = NULL;
	bool whole;
	kpack_error_t err;

	KP_TRY(build_payload(a, number, &payload, &plain));
	whole = a->result->n_missing == missing;
	err = whole && f->kept ? unkeep(a, p, plain, &data) : KPACK_SUCCESS;
	if (!err && !data) {
		err = encode(a, number, plain, whole, &data, &size);
		if (!err && whole && !(size == p->size && is_same(f, data, size)))
			a->result->n_recompressed++;
	}
	kp_payload_fini(&payload);
	if (!err)
		err = put(a, s, p->at, data, size);
	free(data);
	return err;
}

/* ---- all parts ---- */

static kpack_error_t put_copy(const struct apply *a, const struct sink *s,
			      const struct kp_part *p)
{
	const struct kp_source *changed = a->source->changed;

	if (!changed || !kp_range_ok(changed->size, p->from, p->size))
		return kp_fail(a->why, KPACK_ERROR_INVALID_METADATA,
			       "recipe: %" PRIu64 " bytes at %" PRIu64
			       " of a file that has fewer",
			       p->size, p->from);
	return kp_outfile_copy(s->file, s->base + p->at, changed->fd,
			       changed->offset + p->from, p->size, a->why);
}

/* Write the parts [FIRST, END) to S. */
static kpack_error_t put_parts(struct apply *a, const struct sink *s, size_t first,
			       size_t end)
{
	for (size_t i = first; i < end; i++) {
		const struct kp_part *p = &a->r->parts[i];

		switch (p->kind) {
		case KP_PART_COPY:
			KP_TRY(put_copy(a, s, p));
			break;
		case KP_PART_BYTES:
			KP_TRY(put(a, s, p->at, a->r->bytes + p->from, (size_t)p->size));
			break;
		case KP_PART_OBJECT:
		case KP_PART_RANGE:
			KP_TRY(put_object(a, s, p));
			break;
		case KP_PART_CONTAINER:
			a->container = p->number;
			break;
		case KP_PART_HEADER:
			KP_TRY(put_header(a, s, p));
			break;
		case KP_PART_COMPRESSED:
			KP_TRY(put_compressed(a, s, i));
			i += p->inside;
			break;
		default: /* zeros: where nothing is written */
			break;
		}
	}
	return KPACK_SUCCESS;
}

/* Write the parts [FIRST, END), which are [AT, AT + SIZE) of the original, to OUT at OFFSET. */
static kpack_error_t restore(const struct kp_recipe *r,
			     const struct kp_recipe_source *source, size_t first,
			     size_t end, uint64_t at, uint64_t size,
			     struct kp_outfile *out, uint64_t offset,
			     struct kp_recipe_result *result, struct kpackx_error *why)
{
	struct apply a = {.r = r,
			  .source = source,
			  .result = result,
			  .number = SIZE_MAX,
			  .why = why};
	struct sink s = {.file = out, .base = offset - at};
	const struct kp_part *last = end ? &r->parts[end - 1] : NULL;
	kpack_error_t err = KPACK_SUCCESS;

	*result = (struct kp_recipe_result){0};
	/* what is written later may be where this byte is */
	if (size && last && last->kind != KP_PART_COPY && last->kind != KP_PART_BYTES)
		err = kp_outfile_pwrite(out, offset + size - 1, "", 1, why);
	if (!err)
		err = put_parts(&a, &s, first, end);
	for (size_t i = first; i + 1 < end && !err; i++)
		if (r->parts[i].kind == KP_PART_CONTAINER &&
		    r->parts[i + 1].kind != KP_PART_HEADER &&
		    r->parts[i + 1].kind != KP_PART_COMPRESSED)
			err = empty_entries(&a, &s, r->parts[i].number, r->parts[i].at,
					    at + size);
	free(a.object);
	return err;
}

kpack_error_t kp_recipe_restore(const struct kp_recipe *r,
				const struct kp_recipe_source *source,
				struct kp_outfile *out, struct kp_recipe_result *result,
				struct kpackx_error *why)
{
	return restore(r, source, 0, r->n_parts, 0, r->size, out, 0, result, why);
}

kpack_error_t kp_recipe_restore_section(const struct kp_recipe *r,
					const struct kp_recipe_source *source,
					struct kp_outfile *out, uint64_t offset,
					struct kp_recipe_result *result,
					struct kpackx_error *why)
{
	return restore(r, source, r->section_first, r->section_end, r->section_offset,
		       r->section_size, out, offset, result, why);
}

kpack_error_t kp_recipe_fits(const struct kp_recipe *r, const struct kp_source *changed,
			     bool *fits, struct kpackx_error *why)
{
	enum { PIECE = 256 << 10 };
	struct kp_hasher *hash = kp_hasher_new();
	uint8_t *buf = malloc(PIECE);
	struct kp_hash all;
	kpack_error_t err =
		hash && buf ? KPACK_SUCCESS : kp_fail_memory(why, PIECE, "a recipe");

	*fits = true;
	for (size_t i = 0; i < r->n_parts && *fits && !err; i++) {
		const struct kp_part *p = &r->parts[i];
		uint64_t n;

		if (p->kind != KP_PART_COPY)
			continue;
		*fits = kp_range_ok(changed->size, p->from, p->size);
		for (uint64_t k = 0; k < p->size && *fits && !err; k += n) {
			n = p->size - k < PIECE ? p->size - k : PIECE;
			err = kp_source_read(changed, p->from + k, buf, (size_t)n, why);
			if (!err)
				kp_hasher_add(hash, buf, (size_t)n);
		}
	}
	if (!err && *fits) {
		all = kp_hasher_value(hash);
		*fits = kp_hash_is(&all, r->copied);
	}
	kp_hasher_free(hash);
	free(buf);
	return err;
}
