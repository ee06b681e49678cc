/* SPDX-License-Identifier: MIT */
/*
 * Carrying out the parts of a recipe one after the other.  Those of a compressed bundle are
 * written to memory, or, if they are many bytes, to a temporary file; then it is compressed.
 *
 * The new file begins as a hole, so zeros are where nothing is written.  That is also what happens
 * to an object that is not there (kpack mark restore --allow-missing): its place stays zeros, and the
 * header of its bundle leaves it out, or says that it is empty.
 *
 * A compressed bundle is made in one of three ways, the first that gives the original's bytes:
 *
 *	its payload and the difference that was kept, which no compressor is needed for
 *	the compressor and level that made the same bytes when the recipe was made
 *	higher levels, until it fits its place: the same objects, but other bytes
 *
 * The result is compared with the hash of the original, and counted if it differs.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <zstd.h>
#include "core/base/alloc.h"
#include "core/base/hash.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "core/format/bundle.h"
#include "recipe.h"

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

static kpack_error_t put_object(struct apply *a, const struct sink *s,
				const struct kp_part *p)
{
	const struct kp_recipe_image *image = &a->r->images[p->number];
	bool direct = s->memory && p->kind == KP_PART_OBJECT;
	char arch[2 * KP_TARGET_TEXT_MAX];
	struct kp_hash have;
	uint8_t *to;

	if (p->size == 0)
		return KPACK_SUCCESS;
	if (image->host)
		return put(a, s, p->at, a->r->bytes + image->from, (size_t)image->size);
	if (!is_there(a, p->number)) {
		a->result->n_missing++;
		return KPACK_SUCCESS;
	}
	a->result->n_unknown += !image->has_xxh3;
	/* ranges of one object follow each other, so that the last one is worth to be held */
	if (direct) {
		to = s->memory + p->at;
	} else if (a->number == p->number) {
		return put(a, s, p->at, a->object + p->from, (size_t)p->size);
	} else {
		free(a->object);
		a->number = SIZE_MAX;
		to = a->object = malloc((size_t)image->size);
		if (!to)
			return kp_fail_memory(a->why, image->size, "a code object");
	}
	KP_TRY(a->source->read(a->source->arg, p->number, to, a->why));
	/* an archive can have an object of this name from another build: never write that */
	if (image->has_xxh3) {
		have = kp_hash_of(to, (size_t)image->size);
		if (memcmp(have.bytes, image->xxh3, sizeof(image->xxh3)) != 0)
			return kp_fail(a->why, KPACK_ERROR_INVALID_METADATA,
				       "recipe: object %" PRIu32
				       " %s: not the object that was packed",
				       p->number,
				       kp_text_escape(kp_span_str(image->arch), arch,
						      sizeof(arch)));
	}
	if (direct)
		return KPACK_SUCCESS;
	a->number = p->number;
	return put(a, s, p->at, to + p->from, (size_t)p->size);
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

static bool is_same(const struct kp_recipe_form *f, const uint8_t *data, size_t size)
{
	struct kp_hash have = kp_hash_of(data, size);

	return kp_hash_is(&have, f->xxh3);
}

/*
 * Make the original bytes of part P from its payload PLAIN and what is kept of it.  *OUT stays NULL
 * if that is damaged: then it is as if nothing was kept.
 */
static kpack_error_t apply_difference(struct apply *a, const struct kp_part *p,
				      struct kp_span plain, uint8_t **out)
{
	const struct kp_recipe_form *f = &a->r->forms[p->number];
	int window = ZSTD_dParam_getBounds(ZSTD_d_windowLogMax).upperBound;
	KP_AUTO_FREE uint8_t *difference = malloc((size_t)f->kept);
	KP_AUTO_FREE uint8_t *data = malloc((size_t)p->size + 1);
	ZSTD_DCtx *ctx = ZSTD_createDCtx();
	kpack_error_t err;
	size_t n;

	err = difference && data && ctx
		      ? kp_source_read(&a->r->source, f->kept_offset, difference,
				       (size_t)f->kept, a->why)
		      : kp_fail_memory(a->why, p->size, "a kept container");
	if (err)
		goto out;
	/* no window is allocated for a frame that is decoded in one call */
	n = ZSTD_DCtx_setParameter(ctx, ZSTD_d_windowLogMax, window);
	if (!ZSTD_isError(n))
		n = ZSTD_DCtx_refPrefix(ctx, plain.data, plain.size);
	if (!ZSTD_isError(n))
		n = ZSTD_decompressDCtx(ctx, data, (size_t)p->size, difference,
					(size_t)f->kept);
	if (n == p->size && is_same(f, data, n)) {
		*out = data;
		data = NULL;
	}
out:
	ZSTD_freeDCtx(ctx);
	return err == KPACK_ERROR_DECOMPRESSION_FAILED ? KPACK_SUCCESS : err;
}

/*
 * Make the payload of part NUMBER, a compressed bundle: the parts behind it.  Compress that, or apply
 * the difference that was kept.  In a temporary file, mapped, the payload's pages are those of a
 * file, which the system can take back; zeros are not written there.
 */
static kpack_error_t put_compressed(struct apply *a, const struct sink *s, size_t number)
{
	const struct kp_part *p = &a->r->parts[number];
	const struct kp_recipe_form *f = &a->r->forms[p->number];
	static const int levels[] = {0, 5, 7, 9, 15, 19};
	struct kp_ccob_form form = f->form;
	size_t missing = a->result->n_missing, size = (size_t)p->size;
	size_t next = number + 1 + p->inside;
	uint64_t room = p->size;
	int fd = p->from >= LARGE && kp_spills(p->from) ? kp_spill_open() : -1;
	struct kp_outfile file = kp_spill_outfile(fd);
	struct sink inner = {.file = &file};
	KP_AUTO(kp_payload) payload = {.source = {.fd = -1}};
	KP_AUTO_FREE uint8_t *data = NULL;
	struct kp_span plain;
	bool whole;

	if (fd >= 0) {
		int error = kp_spill_reserve(fd, p->from);

		payload.source = kp_source_fd(fd, 0, p->from);
		payload.spilled = true;
		if (error)
			return kp_fail_errno(a->why, error,
					     "cannot make a temporary file");
	} else {
		payload.heap = inner.memory = calloc(1, (size_t)p->from + 1);
		if (!inner.memory)
			return kp_fail_memory(a->why, p->from, "a bundle");
		payload.source = kp_source_memory(inner.memory, (size_t)p->from);
	}
	KP_TRY(put_parts(a, &inner, number + 1, number + 1 + p->inside));
	if (p->inside && p[1].kind != KP_PART_HEADER)
		KP_TRY(empty_entries(a, &inner, a->container, 0, p->from));
	KP_TRY(kp_payload_map(&payload, &plain, a->why));
	whole = a->result->n_missing == missing;
	if (whole && f->kept)
		KP_TRY(apply_difference(a, p, plain, &data));
	if (!data) {
		/* up to what follows it: zeros that aligned the next container are room, too */
		if (next < a->r->n_parts && next != a->r->section_end &&
		    a->r->parts[next].kind == KP_PART_ZEROS)
			room += a->r->parts[next].size;
		/* the hash in its header is of the payload, which lacks an object now */
		if (!whole)
			form.hash = kp_ccob_hash(plain);
		size = SIZE_MAX;
		/*
		 * If it gets other bytes, and more than it had room for, higher levels than the one
		 * that was found are tried; long windows cost nothing but time.
		 */
		for (size_t i = 0; i < KP_COUNT(levels) && size > room; i++) {
			if (levels[i] && (levels[i] <= f->form.level ||
					  (levels[i] > 9 && form.method != KP_CCOB_ZSTD)))
				continue;
			if (levels[i]) {
				form.level = levels[i];
				form.long_range = form.method == KP_CCOB_ZSTD;
			}
			free(data);
			data = NULL;
			KP_TRY(kp_ccob_encode(&form, plain, &data, &size, a->why));
		}
		if (size > room)
			return kp_fail(
				a->why, KPACK_ERROR_NOT_IMPLEMENTED,
				"a compressed bundle had %" PRIu64
				" bytes, and this compressor needs %zu: kpack pack "
				"--keep-containers keeps what restores it",
				room, size);
		if (whole && !(size == p->size && is_same(f, data, size)))
			a->result->n_recompressed++;
	}
	/* the temporary file may be on the disk that this is written to */
	kp_payload_fini(&payload);
	return put(a, s, p->at, data, size);
}

/* ---- all parts ---- */

/* Write the parts [FIRST, END) to S. */
static kpack_error_t put_parts(struct apply *a, const struct sink *s, size_t first,
			       size_t end)
{
	for (size_t i = first; i < end; i++) {
		const struct kp_source *changed = a->source->changed;
		const struct kp_part *p = &a->r->parts[i];
		KP_AUTO_FREE struct kp_bundle_row *rows = NULL;
		KP_AUTO_FREE uint8_t *header = NULL;
		const struct kp_recipe_container *c;
		size_t n;

		switch (p->kind) {
		case KP_PART_COPY:
			if (!changed || !kp_range_ok(changed->size, p->from, p->size))
				return kp_fail(a->why, KPACK_ERROR_INVALID_METADATA,
					       "recipe: %" PRIu64 " bytes at %" PRIu64
					       " of a file that has fewer",
					       p->size, p->from);
			KP_TRY(kp_outfile_copy(s->file, s->base + p->at, changed->fd,
					       changed->offset + p->from, p->size,
					       a->why));
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
		case KP_PART_HEADER: /* without the images that are not there */
			c = &a->r->containers[p->number];
			n = 0;
			KP_TRY(kp_new(&rows, c->n_images, "a bundle", a->why));
			KP_TRY(kp_new(&header, (size_t)p->size, "a bundle", a->why));
			for (size_t k = c->first_image; k < c->first_image + c->n_images;
			     k++) {
				const struct kp_recipe_image *image = &a->r->images[k];

				if (is_there(a, k))
					rows[n++] = (struct kp_bundle_row){
						kp_span_str(image->id), image->at - p->at,
						image->size};
			}
			kp_bundle_header_write(rows, n, header);
			KP_TRY(put(a, s, p->at, header, (size_t)p->size));
			break;
		case KP_PART_COMPRESSED:
			KP_TRY(put_compressed(a, s, i));
			i += p->inside; /* which it has written */
			break;
		default: /* zeros: where nothing is written */
			break;
		}
	}
	return KPACK_SUCCESS;
}

/* Write the parts [FIRST, END), which end at UNTIL in the original, to S. */
static kpack_error_t restore(const struct kp_recipe *r,
			     const struct kp_recipe_source *source, size_t first,
			     size_t end, uint64_t until, struct sink s,
			     struct kp_recipe_result *result, struct kpackx_error *why)
{
	struct apply a = {.r = r,
			  .source = source,
			  .result = result,
			  .number = SIZE_MAX,
			  .why = why};
	enum kp_part_kind last = first < end ? r->parts[end - 1].kind : KP_PART_COPY;
	kpack_error_t err = KPACK_SUCCESS;

	*result = (struct kp_recipe_result){0};
	/* what is written later may be where this byte is */
	if (last != KP_PART_COPY && last != KP_PART_BYTES && r->parts[first].at < until)
		err = kp_outfile_pwrite(s.file, s.base + until - 1, "", 1, why);
	if (!err)
		err = put_parts(&a, &s, first, end);
	/* only now the headers that were written as bytes are there to be changed */
	for (size_t i = first; i + 1 < end && !err; i++)
		if (r->parts[i].kind == KP_PART_CONTAINER &&
		    r->parts[i + 1].kind != KP_PART_HEADER &&
		    r->parts[i + 1].kind != KP_PART_COMPRESSED)
			err = empty_entries(&a, &s, r->parts[i].number, r->parts[i].at,
					    until);
	free(a.object);
	return err;
}

kpack_error_t kp_recipe_restore(const struct kp_recipe *r,
				const struct kp_recipe_source *source,
				struct kp_outfile *out, struct kp_recipe_result *result,
				struct kpackx_error *why)
{
	return restore(r, source, 0, r->n_parts, r->size, (struct sink){.file = out},
		       result, why);
}

kpack_error_t kp_recipe_restore_section(const struct kp_recipe *r,
					const struct kp_recipe_source *source,
					struct kp_outfile *out, uint64_t offset,
					struct kp_recipe_result *result,
					struct kpackx_error *why)
{
	return restore(r, source, r->section_first, r->section_end,
		       r->section_offset + r->section_size,
		       (struct sink){.file = out, .base = offset - r->section_offset},
		       result, why);
}

kpack_error_t kp_recipe_fits(const struct kp_recipe *r, const struct kp_source *changed,
			     bool *fits, struct kpackx_error *why)
{
	struct kp_hasher *hash = kp_hasher_new();
	kpack_error_t err = hash ? KPACK_SUCCESS : kp_fail_memory(why, 0, "a recipe");
	struct kp_hash all;

	*fits = true;
	for (size_t i = 0; i < r->n_parts && *fits && !err; i++) {
		const struct kp_part *p = &r->parts[i];

		if (p->kind != KP_PART_COPY)
			continue;
		*fits = kp_range_ok(changed->size, p->from, p->size);
		if (*fits)
			err = kp_recipe_hash(hash, changed, p->from, p->size, why);
	}
	if (!err && *fits) {
		all = kp_hasher_value(hash);
		*fits = kp_hash_is(&all, r->copied);
	}
	kp_hasher_free(hash);
	return err;
}
