/* SPDX-License-Identifier: MIT */
/*
 * Writing offload binaries: the header, the entries, the string records, the table of
 * strings, and from the next multiple of 8 on the images one after another, padded to a
 * multiple of 8.
 */
#include <inttypes.h>
#include <stdlib.h>
#include "ccob.h"
#include "core/base/alloc.h"
#include "offload_binary.h"

#define ENTRY_SIZE 40
#define ALIGNMENT 8

/*
 * A key or a value, and its offset in the table of strings.  The table has each text once,
 * and a text that ends another one in that: LLVM's StringTableBuilder, whose order by ends
 * gives the same bytes.
 */
struct text {
	struct kp_span bytes;
	uint64_t offset;
};

/* A binary being laid out: all offsets are known before the first byte is written. */
struct layout {
	const struct kp_offload_image *images;
	size_t n_images;
	unsigned version;
	struct text *texts;   /* key, value, key, value ... of all images, in order */
	struct text **sorted; /* the same in the order of the table */
	size_t n_texts;
	uint64_t table; /* offset of the table of strings */
	uint64_t data;  /* offset of the images */
	uint64_t size;
};

static uint64_t align_size(uint64_t n)
{
	return (n + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static uint64_t header_size(unsigned version)
{
	return version < 3 ? 32 : 40;
}

static uint64_t record_size(unsigned version)
{
	return version < 2 ? 16 : 24;
}

/* ---- the table of strings ---- */

/*
 * Compare from the end backwards, higher bytes first; a text follows those that end with
 * it.
 */
static int by_end(const void *a, const void *b)
{
	struct kp_span x = (*(struct text *const *)a)->bytes;
	struct kp_span y = (*(struct text *const *)b)->bytes;
	size_t n = x.size < y.size ? x.size : y.size;

	for (size_t i = 1; i <= n; i++)
		if (x.data[x.size - i] != y.data[y.size - i])
			return y.data[y.size - i] - x.data[x.size - i];
	return KP_ORDER(y.size, x.size);
}

static bool ends_with(struct kp_span s, struct kp_span end)
{
	return s.size >= end.size &&
	       memcmp(s.data + s.size - end.size, end.data, end.size) == 0;
}

/*
 * Place the texts; one that is the end of another shares its bytes.  Returns the table's
 * size.
 */
static uint64_t place_texts(struct layout *l)
{
	struct kp_span previous = {(const uint8_t *)"", 0};
	uint64_t size = 1; /* it begins with a NUL */

	qsort(l->sorted, l->n_texts, sizeof(*l->sorted), by_end);
	for (size_t i = 0; i < l->n_texts; i++) {
		struct text *t = l->sorted[i];

		/* the NUL at the beginning of the table is the empty text */
		if (ends_with(previous, t->bytes)) {
			t->offset = t->bytes.size ? size - t->bytes.size - 1 : 0;
			continue;
		}
		t->offset = size;
		size += t->bytes.size + 1;
		previous = t->bytes;
	}
	return size;
}

static kpack_error_t lay_out_binary(struct layout *l, struct kpackx_error *why)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n_images; i++)
		n += 2 * l->images[i].strings->count;
	KP_TRY(kp_new(&l->texts, n, "strings", why));
	KP_TRY(kp_new(&l->sorted, n, "strings", why));
	for (size_t i = 0; i < l->n_images; i++) {
		for (size_t j = 0; j < l->images[i].strings->count; j++) {
			const struct kp_pair *p = &l->images[i].strings->items[j];

			if (l->version == 1 && memchr(p->value, 0, p->size))
				return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
					       "the value of '%s' has a NUL, which "
					       "version 1 cannot store",
					       p->name);
			l->texts[l->n_texts++].bytes = kp_span_str(p->name);
			l->texts[l->n_texts++].bytes =
				(struct kp_span){(const uint8_t *)p->value, p->size};
		}
	}
	for (size_t i = 0; i < n; i++)
		l->sorted[i] = &l->texts[i];
	l->table = header_size(l->version) + l->n_images * ENTRY_SIZE +
		   n / 2 * record_size(l->version);
	l->data = align_size(l->table + place_texts(l));
	l->size = l->data;
	for (size_t i = 0; i < l->n_images; i++) {
		if (l->images[i].bytes.size > INT64_MAX - l->size)
			return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				       "more bytes than 63 bits can count");
		l->size += l->images[i].bytes.size;
	}
	l->size = align_size(l->size);
	return KPACK_SUCCESS;
}

/* ---- bytes ---- */

static kpack_error_t put_header(const struct layout *l, uint64_t size, uint64_t inflated,
				struct kp_sink *sink, struct kpackx_error *why)
{
	uint8_t b[40] = {0x10, 0xff, 0x10, 0xad};
	uint64_t header = header_size(l->version);

	kp_put_le32(b + 4, l->version);
	kp_put_le64(b + 8, size);
	kp_put_le64(b + 16, header);
	kp_put_le64(b + 24, l->version == 1 ? ENTRY_SIZE : l->n_images);
	kp_put_le64(b + 32, inflated);
	return kp_sink_put(sink, b, (size_t)header, why);
}

/* Write the part after the header; the binary began at byte BEGIN of SINK. */
static kpack_error_t put_body(const struct layout *l, uint64_t begin,
			      struct kp_sink *sink, struct kpackx_error *why)
{
	uint64_t strings = header_size(l->version) + l->n_images * ENTRY_SIZE;
	uint64_t data = l->data, end = 1;
	uint8_t b[ENTRY_SIZE];

	for (size_t i = 0; i < l->n_images; i++) {
		const struct kp_offload_image *image = &l->images[i];

		kp_put_le32(b, image->image_kind | (uint32_t)image->offload_kind << 16);
		kp_put_le32(b + 4, image->flags);
		kp_put_le64(b + 8, strings);
		kp_put_le64(b + 16, image->strings->count);
		kp_put_le64(b + 24, data);
		kp_put_le64(b + 32, image->bytes.size);
		KP_TRY(kp_sink_put(sink, b, ENTRY_SIZE, why));
		strings += image->strings->count * record_size(l->version);
		data += image->bytes.size;
	}
	for (size_t i = 0; i < l->n_texts; i += 2) {
		kp_put_le64(b, l->table + l->texts[i].offset);
		kp_put_le64(b + 8, l->table + l->texts[i + 1].offset);
		kp_put_le64(b + 16, l->texts[i + 1].bytes.size);
		KP_TRY(kp_sink_put(sink, b, (size_t)record_size(l->version), why));
	}
	KP_TRY(kp_sink_fill(sink, 0, 1, why));
	for (size_t i = 0; i < l->n_texts; i++) {
		const struct text *t = l->sorted[i];

		if (t->offset != end)
			continue;
		KP_TRY(kp_sink_put(sink, t->bytes.data, t->bytes.size, why));
		KP_TRY(kp_sink_fill(sink, 0, 1, why));
		end += t->bytes.size + 1;
	}
	KP_TRY(kp_sink_fill(sink, 0, l->data - (sink->size - begin), why));
	for (size_t i = 0; i < l->n_images; i++)
		KP_TRY(kp_sink_copy(sink, &l->images[i].bytes, why));
	return kp_sink_fill(sink, 0, l->size - (sink->size - begin), why);
}

/* ---- compressed ---- */

/* The body of a compressed binary, made in memory, because its size precedes it. */
struct buffer {
	uint8_t *data;
	size_t size, cap;
};

static kpack_error_t buffer_put(void *arg, const void *data, size_t size,
				struct kpackx_error *why)
{
	struct buffer *b = arg;

	if (!kp_range_ok(b->cap, b->size, size))
		return kp_fail(why, KPACK_ERROR_IO_ERROR, "changed while it was read");
	memcpy(b->data + b->size, data, size);
	b->size += size;
	return KPACK_SUCCESS;
}

/* LLVM's default levels are 5 for zstd and 6 for zlib. */
static kpack_error_t put_compressed(const struct layout *l,
				    const struct kp_offload_form *form,
				    struct kp_sink *sink, struct kpackx_error *why)
{
	bool zstd = form->method == KP_OFFLOAD_ZSTD;
	uint64_t header = header_size(l->version), stored;
	struct buffer body = {.cap = (size_t)(l->size - header)};
	struct kp_sink inner = {.write = buffer_put, .arg = &body, .size = header};
	uint8_t *made = NULL;
	kpack_error_t err;
	size_t size;

	body.data = malloc(body.cap + 1);
	if (!body.data)
		return kp_fail_memory(why, body.cap, "an offload binary");
	err = put_body(l, 0, &inner, why);
	if (!err)
		err = kp_llvm_compress(zstd ? KP_CCOB_ZSTD : KP_CCOB_ZLIB,
				       form->level ? form->level
				       : zstd      ? 5
						   : 6,
				       false, (struct kp_span){body.data, body.size}, 0,
				       &made, &size, why);
	free(body.data);
	KP_TRY(err);
	stored = header + size;
	err = put_header(l, stored, l->size, sink, why);
	if (!err)
		err = kp_sink_put(sink, made, size, why);
	if (!err)
		err = kp_sink_fill(sink, 0, align_size(stored) - stored, why);
	free(made);
	return err;
}

/* ---- binaries ---- */

/* Write one binary with N images behind what SINK has. */
static kpack_error_t put_binary(const struct kp_offload_image *images, size_t n,
				const struct kp_offload_form *form, struct kp_sink *sink,
				struct kpackx_error *why)
{
	struct layout l = {.images = images, .n_images = n, .version = form->version};
	uint64_t begin = sink->size;
	kpack_error_t err = lay_out_binary(&l, why);

	if (!err && form->method != KP_OFFLOAD_PLAIN)
		err = put_compressed(&l, form, sink, why);
	else if (!err && !(err = put_header(&l, l.size, 0, sink, why)))
		err = put_body(&l, begin, sink, why);
	free(l.texts);
	free(l.sorted);
	return err;
}

kpack_error_t kp_offload_write(const struct kp_offload_image *images, size_t n,
			       const struct kp_offload_form *form, struct kp_sink *sink,
			       struct kpackx_error *why)
{
	if (form->version < 1 || form->version > 3)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "version %u, known are 1 to 3", form->version);
	if (form->version < 3 && form->method != KP_OFFLOAD_PLAIN)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "version %u cannot be compressed", form->version);
	if (form->version > 1)
		return put_binary(images, n, form, sink, why);
	for (size_t i = 0; i < n; i++)
		KP_TRY(put_binary(&images[i], 1, form, sink, why));
	return KPACK_SUCCESS;
}
