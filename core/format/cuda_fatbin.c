/* SPDX-License-Identifier: MIT */
/*
 * CUDA fatbin: a header, then entries one after another (entry.h).
 *
 *   0 u32 0xBA55ED50   4 u16 version 1   6 u16 header bytes   8 u64 bytes that follow
 *
 * Containers follow each other directly, or with zeros between.  If no entry is
 * compressed, the payload is the container itself; otherwise it is all decoded images one
 * after another.  A PTX image is the text without the final NULs, as ptxas reads it.
 */
#include <inttypes.h>
#include <stdlib.h>
#include "core/base/bounds.h"
#include "cuda_entry.h"

#define MAGIC 0xBA55ED50
#define HEADER 16

static bool probe_fatbin(struct kp_span head)
{
	return head.size >= 4 && kp_le32(head.data) == MAGIC;
}

/* A walk through the entries of one container. */
struct walk {
	struct kp_source src; /* the whole container */
	uint64_t pos;         /* of the next entry */
	size_t number;
	struct kp_cuda_entry entry;
	uint64_t sum;  /* of the sizes of the entries read */
	bool decoding; /* at least one of them is compressed */
};

static kpack_error_t begin_walk(struct walk *w, const struct kp_source *src, uint64_t off,
				struct kpackx_error *why)
{
	uint64_t size, header;
	struct kp_source rest;
	uint8_t p[HEADER];

	*w = (struct walk){0};
	if (!kp_source_sub(src, off, src->size - off, &rest))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "begins after the end");
	KP_TRY(kp_source_read(&rest, 0, p, sizeof(p), why));
	if (kp_le16(p + 4) != 1)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED, "version %u, known is 1",
			       kp_le16(p + 4));
	header = kp_le16(p + 6);
	size = kp_le64(p + 8);
	if (header < HEADER || !kp_range_ok(rest.size, header, size))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "header of %" PRIu64 " and %" PRIu64
			       " bytes after it, but only %" PRIu64 " bytes exist",
			       header, size, rest.size);
	w->pos = header;
	kp_source_sub(&rest, 0, header + size, &w->src);
	return KPACK_SUCCESS;
}

/* Read the next entry, which must exist. */
static kpack_error_t next_entry(struct walk *w, struct kpackx_error *why)
{
	kpack_error_t err = kp_cuda_entry_read(&w->src, w->pos, &w->entry, why);

	if (err)
		return kp_fail_prefix(why, err, "entry %zu", w->number);
	w->number++;
	w->pos += w->entry.header + w->entry.room;
	w->sum += w->entry.size;
	w->decoding |= w->entry.codec != NULL;
	if (w->sum > KP_FATBIN_MAX && w->decoding)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "%" PRIu64
			       " bytes and more when decoded, at most %" PRIu64,
			       w->sum, KP_FATBIN_MAX);
	return KPACK_SUCCESS;
}

/* *SIZE becomes the size of SRC without its final NULs. */
static kpack_error_t trim_nuls(const struct kp_source *src, uint64_t *size,
			       struct kpackx_error *why)
{
	uint8_t buf[64];
	size_t n;

	for (*size = src->size; *size > 0; *size -= n) {
		n = *size < sizeof(buf) ? (size_t)*size : sizeof(buf);
		KP_TRY(kp_source_read(src, *size - n, buf, n, why));
		for (size_t i = n; i > 0; i--) {
			if (buf[i - 1]) {
				*size -= n - i;
				return KPACK_SUCCESS;
			}
		}
	}
	return KPACK_SUCCESS;
}

/* As trim_nuls, for a compressed entry, whose text must be decoded to find its end. */
static kpack_error_t trim_decoded_nuls(const struct kp_source *src,
				       const struct kp_cuda_entry *e, uint64_t *size,
				       struct kpackx_error *why)
{
	kpack_error_t err = KPACK_SUCCESS;
	struct kpackx_error ignored;
	struct kp_source decoded;
	uint8_t *text;

	if (e->size > KP_PTX_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "%" PRIu64 " bytes of PTX, at most %d", e->size,
			       KP_PTX_MAX);
	text = malloc((size_t)e->size + !e->size);
	if (!text)
		return kp_fail_memory(why, e->size, "PTX");
	*size = e->size;
	decoded = kp_source_memory(text, (size_t)e->size);
	/* an entry that cannot be decoded is still listed, and fails when it is read */
	if (kp_cuda_entry_decode(src, e, text, &ignored) == KPACK_SUCCESS)
		err = trim_nuls(&decoded, size, why);
	free(text);
	return err;
}

static kpack_error_t image_size(const struct kp_source *src,
				const struct kp_cuda_entry *e, uint64_t *size,
				struct kpackx_error *why)
{
	struct kp_source stored;

	*size = e->size;
	if (e->kind != KP_CUDA_PTX)
		return KPACK_SUCCESS;
	if (e->codec)
		return trim_decoded_nuls(src, e, size, why);
	kp_source_sub(src, e->at + e->header, e->size, &stored);
	return trim_nuls(&stored, size, why);
}

static kpack_error_t add_entry(struct walk *w, struct kp_container *c,
			       struct kp_containers *list, struct kpackx_error *why)
{
	const struct kp_cuda_entry *e = &w->entry;
	struct kp_span none = {NULL, 0};
	uint64_t size;

	KP_TRY(image_size(&w->src, e, &size, why));
	KP_TRY(kp_containers_add_image(list, c, none, e->at + e->header, size, why));
	return kp_cuda_entry_state(&w->src, e, &list->images[list->n_images - 1], why);
}

/* Set the images' offsets in the decoded payload, one after another. */
static kpack_error_t lay_out_images(const struct kp_source *src, uint64_t off,
				    const struct kp_container *c,
				    struct kp_containers *list, struct kpackx_error *why)
{
	struct walk w;

	KP_TRY(begin_walk(&w, src, off, why));
	for (size_t i = 0; i < c->n_images; i++) {
		list->images[c->first_image + i].offset = w.sum;
		KP_TRY(next_entry(&w, why));
	}
	return KPACK_SUCCESS;
}

static kpack_error_t parse_fatbin(const struct kp_source *src, uint64_t off,
				  struct kp_container *c, struct kp_containers *list,
				  struct kpackx_error *why)
{
	kpack_error_t err;
	struct walk w;

	KP_TRY(begin_walk(&w, src, off, why));
	while (w.pos < w.src.size) {
		KP_TRY(next_entry(&w, why));
		err = add_entry(&w, c, list, why);
		if (err)
			return kp_fail_prefix(why, err, "entry %zu", w.number - 1);
	}
	c->size = w.src.size;
	c->payload_size = w.decoding ? w.sum : c->size;
	return w.decoding ? lay_out_images(src, off, c, list, why) : KPACK_SUCCESS;
}

/* The function for entries that cannot be decoded; fault NULL: they are errors. */
struct asked {
	kp_image_fault *fault;
	void *arg;
};

static bool is_left_out(const struct asked *asked, size_t number, kpack_error_t err,
			const struct kpackx_error *why)
{
	return asked->fault && err != KPACK_ERROR_OUT_OF_MEMORY &&
	       err != KPACK_ERROR_IO_ERROR && asked->fault(asked->arg, number, why);
}

/* Decode the last entry that W read. */
static kpack_error_t decode_entry(const struct walk *w, uint8_t *out,
				  const struct asked *asked, struct kpackx_error *why)
{
	struct kpackx_error fault = {0};
	kpack_error_t err = kp_cuda_entry_decode(&w->src, &w->entry, out, &fault);

	if (!err)
		return KPACK_SUCCESS;
	if (is_left_out(asked, w->number - 1, err, &fault)) {
		/* zeros instead of the bytes before the damage */
		memset(out, 0, (size_t)w->entry.size);
		return KPACK_SUCCESS;
	}
	if (why)
		*why = fault;
	return kp_fail_prefix(why, err, "entry %zu", w->number - 1);
}

/* Decode all entries of W, which is before its first entry. */
static kpack_error_t decode_all(struct walk *w, uint8_t *heap, uint64_t size,
				const struct asked *asked, struct kpackx_error *why)
{
	uint64_t at = 0;

	while (w->pos < w->src.size) {
		KP_TRY(next_entry(w, why));
		if (!kp_range_ok(size, at, w->entry.size))
			break;
		KP_TRY(decode_entry(w, heap + at, asked, why));
		at += w->entry.size;
	}
	if (w->pos != w->src.size || at != size)
		return kp_fail(why, KPACK_ERROR_IO_ERROR, "changed while it was read");
	return KPACK_SUCCESS;
}

/* *OUT becomes true if an entry of the container is compressed. */
static kpack_error_t see_compressed(struct walk w, bool *out, struct kpackx_error *why)
{
	while (w.pos < w.src.size && !w.decoding)
		KP_TRY(next_entry(&w, why));
	*out = w.decoding;
	return KPACK_SUCCESS;
}

static kpack_error_t load_most_images(const struct kp_source *src,
				      const struct kp_container *c, kp_image_fault *fault,
				      void *arg, struct kp_payload *out,
				      struct kpackx_error *why)
{
	const struct asked asked = {fault, arg};
	kpack_error_t err;
	bool compressed;
	struct walk w;

	KP_TRY(begin_walk(&w, src, c->offset, why));
	KP_TRY(see_compressed(w, &compressed, why));
	if (!compressed) {
		out->source = w.src;
		return KPACK_SUCCESS;
	}
	if (c->payload_size > KP_FATBIN_MAX)
		return kp_fail(why, KPACK_ERROR_IO_ERROR, "changed while it was read");
	out->heap = malloc((size_t)c->payload_size + !c->payload_size);
	if (!out->heap)
		return kp_fail_memory(why, c->payload_size, "decoded entries");
	err = decode_all(&w, out->heap, c->payload_size, &asked, why);
	if (err) {
		kp_payload_fini(out);
		return err;
	}
	out->source = kp_source_memory(out->heap, (size_t)c->payload_size);
	return KPACK_SUCCESS;
}

static kpack_error_t load_fatbin(const struct kp_source *src,
				 const struct kp_container *c, struct kp_payload *out,
				 struct kpackx_error *why)
{
	return load_most_images(src, c, NULL, NULL, out, why);
}

const struct kp_format kp_format_fatbin = {
	.name = "fatbin",
	.probe = probe_fatbin,
	.parse = parse_fatbin,
	.load = load_fatbin,
	.load_most = load_most_images,
};
