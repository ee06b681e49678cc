/* SPDX-License-Identifier: MIT */
/*
 * CUDA fatbin: a header, then entries one after another.
 *
 *   0 u32 0xBA55ED50   4 u16 version 1   6 u16 header bytes   8 u64 bytes that follow
 *
 * An entry is a header of 64 bytes or more, then the payload:
 *
 *   0 u16 kind           20 u32 options record, 0: none    40 u64 flags
 *   2 u16 0x0101         24 u16 version: minor             48 u64 identity (LTO-IR)
 *   4 u32 header bytes   26 u16          major             56 u64 decoded bytes
 *   8 u64 payload bytes  28 u32 SM number
 *  16 u32 compressed     32 u32 file name, 36 u32 name length
 *
 * The options record is u32 offset, u32 length.  Offsets count from the entry's beginning
 * and lead into its header.  NVIDIA does not publish this format.
 *
 * Containers follow each other directly, or with zeros between.  If no entry is
 * compressed, the payload is the container itself; otherwise it is all decoded images one
 * after another.  A PTX image is the text without the final NULs, as ptxas reads it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/archive/frames.h"
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "format.h"

#if KP_WITH_LZ4
#include <lz4.h>
#endif

#define MAGIC 0xBA55ED50
#define HEADER 16
#define ENTRY_HEADER 64

enum { KIND_PTX = 1, KIND_CUBIN = 2, KIND_LTO_IR = 8 };

/* Flags of an entry. */
#define LZ4 UINT64_C(0x2000)
#define ZSTD UINT64_C(0x8000)
#define SCRAMBLED UINT64_C(0x10000) /* LTO-IR: only NVIDIA's linker can read it */
#define ARCH_SPECIFIC UINT64_C(0x100000)
#define FAMILY_SPECIFIC UINT64_C(0x200000)

struct entry {
	uint16_t kind, minor, major;
	uint32_t sm;
	uint64_t at;     /* offset of the header */
	uint64_t header; /* bytes of the header */
	uint64_t room;   /* bytes of the payload, after which the next entry begins */
	uint64_t stored; /* bytes of the payload that the stored image takes */
	uint64_t size;   /* bytes of the decoded image */
	uint64_t flags, identity;
	uint32_t options, name, name_size;
	const char *codec; /* "zstd", "lz4" or "unknown"; NULL: not compressed */
};

static bool probe_fatbin(struct kp_span head)
{
	return head.size >= 4 && kp_le32(head.data) == MAGIC;
}

/* ---- entries ---- */

/* Decode a raw LZ4 block, which has neither size nor checksum. */
static kpack_error_t decode_lz4(struct kp_span stored, uint8_t *out, size_t size,
				struct kpackx_error *why)
{
#if KP_WITH_LZ4
	int n;

	if (stored.size > INT32_MAX || size > INT32_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "LZ4: %zu bytes of %zu, at most %d", size, stored.size,
			       INT32_MAX);
	n = LZ4_decompress_safe((const char *)stored.data, (char *)out, (int)stored.size,
				(int)size);
	if (n < 0)
		return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
			       "LZ4: %zu bytes do not decode to %zu", stored.size, size);
	if ((size_t)n != size)
		return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
			       "LZ4: %d decoded bytes, the header says %zu", n, size);
	return KPACK_SUCCESS;
#else
	(void)stored, (void)out, (void)size;
	return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED, "LZ4: built without LZ4");
#endif
}

/* Write the image's bytes to OUT. */
static kpack_error_t decode_entry(const struct kp_source *src, const struct entry *e,
				  uint8_t *out, struct kpackx_error *why)
{
	KP_AUTO_FREE uint8_t *bytes = NULL;
	struct kp_source image;
	struct kp_span stored;

	if (!e->codec)
		return kp_source_read(src, e->at + e->header, out, (size_t)e->size, why);
	if (!(e->flags & (ZSTD | LZ4)))
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "%" PRIu64 " bytes are compressed by an unknown method",
			       e->size);
	kp_source_sub(src, e->at + e->header, e->stored, &image);
	KP_TRY(kp_source_load(&image, UINT64_MAX, "a compressed entry", &bytes, why));
	stored = (struct kp_span){bytes, (size_t)e->stored};
	return e->flags & ZSTD ? kp_zstd_decode(stored, out, (size_t)e->size, why)
			       : decode_lz4(stored, out, (size_t)e->size, why);
}

/*
 * *SIZE becomes the size of E's image: of PTX, the text without its final NULs.  That of
 * a compressed entry must be decoded to find its end; one that cannot be decoded is still
 * listed, and fails when it is read.
 */
static kpack_error_t measure_image(const struct kp_source *src, const struct entry *e,
				   uint64_t *size, struct kpackx_error *why)
{
	KP_AUTO_FREE uint8_t *text = NULL;
	struct kpackx_error ignored;
	struct kp_source image;
	uint8_t buf[64];
	size_t n;

	*size = e->size;
	if (e->kind != KIND_PTX)
		return KPACK_SUCCESS;
	kp_source_sub(src, e->at + e->header, e->stored, &image);
	if (e->codec) {
		if (e->size > KP_PTX_MAX)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "%" PRIu64 " bytes of PTX, at most %d", e->size,
				       KP_PTX_MAX);
		text = malloc((size_t)e->size + !e->size);
		if (!text)
			return kp_fail_memory(why, e->size, "PTX");
		if (decode_entry(src, e, text, &ignored))
			return KPACK_SUCCESS;
		image = kp_source_memory(text, (size_t)e->size);
	}
	for (; *size > 0; *size -= n) {
		n = *size < sizeof(buf) ? (size_t)*size : sizeof(buf);
		KP_TRY(kp_source_read(&image, *size - n, buf, n, why));
		for (size_t i = n; i > 0; i--) {
			if (buf[i - 1]) {
				*size -= n - i;
				return KPACK_SUCCESS;
			}
		}
	}
	return KPACK_SUCCESS;
}

/* ---- what an entry's header says ---- */

/*
 * Read the text WHAT, SIZE bytes at OFFSET of E's header, of which at most
 * KP_FATBIN_TEXT_MAX bytes are read to BUF.
 */
static kpack_error_t read_text(const struct kp_source *src, const struct entry *e,
			       const char *what, uint32_t offset, uint32_t size,
			       uint8_t buf[KP_FATBIN_TEXT_MAX], struct kp_span *out,
			       struct kpackx_error *why)
{
	if (!kp_range_ok(e->header, offset, size))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "%s of %" PRIu32 " bytes at %" PRIu32
			       " in a header of %" PRIu64,
			       what, size, offset, e->header);
	*out = (struct kp_span){buf,
				size < KP_FATBIN_TEXT_MAX ? size : KP_FATBIN_TEXT_MAX};
	return kp_source_read(src, e->at + offset, buf, out->size, why);
}

/* Set IMAGE's kind, arch and pairs from entry E. */
static kpack_error_t state_entry(const struct kp_source *src, const struct entry *e,
				 struct kp_image *image, struct kpackx_error *why)
{
	struct kp_pairs *pairs = &image->pairs;
	const char *name = NULL, *arch = "sm";
	char hex[2 * KP_FATBIN_TEXT_MAX + 1];
	uint8_t buf[KP_FATBIN_TEXT_MAX];
	struct kp_span file, bytes, text;
	size_t i = 0;

	if (e->kind == KIND_PTX) {
		name = "ptx";
		arch = "compute";
	} else if (e->kind == KIND_CUBIN) {
		name = "cubin";
	} else if (e->kind == KIND_LTO_IR) {
		name = KP_LTO_IR;
		arch = "lto"; /* as nvcc's code=lto_90 */
	}
	snprintf(image->kind, sizeof(image->kind), "cuda");
	if (e->sm)
		snprintf(image->arch, sizeof(image->arch), "%s_%" PRIu32 "%s", arch,
			 e->sm,
			 e->flags & ARCH_SPECIFIC     ? "a"
			 : e->flags & FAMILY_SPECIFIC ? "f"
						      : "");
	KP_TRY(name ? kp_pairs_print(pairs, why, KP_PAIR_IMAGE_KIND, "%s", name)
		    : kp_pairs_print(pairs, why, KP_PAIR_IMAGE_KIND, "0x%x", e->kind));
	KP_TRY(kp_pairs_print(pairs, why, "version", "%u.%u", e->major, e->minor));
	KP_TRY(kp_pairs_print(pairs, why, "flags", "0x%" PRIx64, e->flags));
	if (e->codec)
		KP_TRY(kp_pairs_print(pairs, why, "compression", "%s", e->codec));
	if (e->flags & SCRAMBLED)
		KP_TRY(kp_pairs_print(pairs, why, "stored", "scrambled"));
	if (e->codec)
		KP_TRY(kp_pairs_print(pairs, why, "stored bytes", "%" PRIu64, e->stored));
	if (e->identity)
		KP_TRY(kp_pairs_print(pairs, why, "identity", "0x%" PRIx64, e->identity));
	if (e->name && e->name_size) {
		KP_TRY(read_text(src, e, "file name", e->name, e->name_size, buf, &file,
				 why));
		file.size = strnlen((const char *)buf, file.size);
		KP_TRY(kp_pairs_add(pairs, kp_span_str("file"), file, why));
	}
	if (!e->options)
		return KPACK_SUCCESS;
	/* the options are text without its padding, or other bytes in hexadecimal */
	KP_TRY(read_text(src, e, "options record", e->options, 8, buf, &bytes, why));
	KP_TRY(read_text(src, e, "options", kp_le32(buf), kp_le32(buf + 4), buf, &bytes,
			 why));
	text = bytes;
	while (text.size &&
	       (text.data[text.size - 1] == ' ' || text.data[text.size - 1] == '\0'))
		text.size--;
	while (i < text.size && (text.data[i] >= ' ' || text.data[i] == '\t'))
		i++;
	if (i == text.size)
		return text.size ? kp_pairs_add(pairs, kp_span_str("options"), text, why)
				 : KPACK_SUCCESS;
	for (i = 0; i < bytes.size; i++)
		snprintf(hex + 2 * i, 3, "%02x", bytes.data[i]);
	return kp_pairs_add(pairs, kp_span_str("options (hex)"), kp_span_str(hex), why);
}

/* ---- containers ---- */

/* A walk through the entries of one container. */
struct walk {
	struct kp_source src; /* the whole container */
	uint64_t pos;         /* of the next entry */
	size_t number;
	struct entry entry;
	uint64_t sum;  /* of the sizes of the entries read */
	bool decoding; /* at least one of them is compressed */
};

static kpack_error_t begin_walk(struct walk *w, const struct kp_source *src,
				struct kpackx_error *why)
{
	uint64_t size, header;
	uint8_t p[HEADER];

	*w = (struct walk){0};
	KP_TRY(kp_source_read(src, 0, p, sizeof(p), why));
	if (kp_le16(p + 4) != 1)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED, "version %u, known is 1",
			       kp_le16(p + 4));
	header = kp_le16(p + 6);
	size = kp_le64(p + 8);
	if (header < HEADER || !kp_range_ok(src->size, header, size))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "header of %" PRIu64 " and %" PRIu64
			       " bytes after it, but only %" PRIu64 " bytes exist",
			       header, size, src->size);
	w->pos = header;
	kp_source_sub(src, 0, header + size, &w->src);
	return KPACK_SUCCESS;
}

/* Read the next entry, which must exist. */
static kpack_error_t next_entry(struct walk *w, struct kpackx_error *why)
{
	struct entry *e = &w->entry;
	uint64_t compressed, ratio;
	uint8_t p[ENTRY_HEADER];
	kpack_error_t err = kp_source_read(&w->src, w->pos, p, sizeof(p), why);

	if (err)
		return kp_fail_prefix(why, err, "entry %zu", w->number);
	*e = (struct entry){.kind = kp_le16(p),
			    .at = w->pos,
			    .header = kp_le32(p + 4),
			    .room = kp_le64(p + 8),
			    .options = kp_le32(p + 20),
			    .minor = kp_le16(p + 24),
			    .major = kp_le16(p + 26),
			    .sm = kp_le32(p + 28),
			    .name = kp_le32(p + 32),
			    .name_size = kp_le32(p + 36),
			    .flags = kp_le64(p + 40),
			    .identity = kp_le64(p + 48)};
	compressed = kp_le32(p + 16);
	if (e->header < ENTRY_HEADER)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "entry %zu: header of %" PRIu64 " bytes, at least %d",
			       w->number, e->header, ENTRY_HEADER);
	if (!kp_range_ok(w->src.size, e->at, e->header) ||
	    !kp_range_ok(w->src.size, e->at + e->header, e->room))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "entry %zu: %" PRIu64 " and %" PRIu64 " bytes at %" PRIu64
			       " pass the end at %" PRIu64,
			       w->number, e->header, e->room, e->at, w->src.size);
	if (compressed > e->room)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "entry %zu: %" PRIu64 " compressed bytes in %" PRIu64,
			       w->number, compressed, e->room);
	e->stored = e->size = compressed ? compressed : e->room;
	if (compressed && !(e->flags & SCRAMBLED)) {
		e->codec = e->flags & ZSTD ? "zstd" : e->flags & LZ4 ? "lz4" : "unknown";
		e->size = kp_le64(p + 56);
		ratio = e->flags & LZ4 && !(e->flags & ZSTD) ? KP_LZ4_RATIO_MAX
							     : KP_ZSTD_RATIO_MAX;
		if (e->size / ratio > compressed || e->size > KP_FATBIN_MAX)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "entry %zu: decoded size %" PRIu64
				       " cannot come out of %" PRIu64 " bytes of %s",
				       w->number, e->size, compressed, e->codec);
	}
	w->number++;
	w->pos += e->header + e->room;
	w->sum += e->size;
	w->decoding |= e->codec != NULL;
	if (w->sum > KP_FATBIN_MAX && w->decoding)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "%" PRIu64
			       " bytes and more when decoded, at most %" PRIu64,
			       w->sum, KP_FATBIN_MAX);
	return KPACK_SUCCESS;
}

/*
 * An image's offset is that in the payload, which depends on whether any entry is
 * compressed: that is known after the last one.
 */
static kpack_error_t parse_fatbin(const struct kp_source *src, struct kp_container *c,
				  struct kp_containers *list, struct kpackx_error *why)
{
	kpack_error_t err;
	struct walk w;

	KP_TRY(begin_walk(&w, src, why));
	while (w.pos < w.src.size) {
		struct kp_image *image;
		uint64_t size;

		KP_TRY(next_entry(&w, why));
		err = measure_image(&w.src, &w.entry, &size, why);
		if (!err)
			err = kp_containers_add_named(list, c, (struct kp_span){0},
						      w.entry.at + w.entry.header, size,
						      &image, why);
		if (!err)
			err = state_entry(&w.src, &w.entry, image, why);
		if (err)
			return kp_fail_prefix(why, err, "entry %zu", w.number - 1);
	}
	c->size = w.src.size;
	c->payload_size = w.decoding ? w.sum : c->size;
	if (!w.decoding)
		return KPACK_SUCCESS;
	/* the decoded images follow one another */
	KP_TRY(begin_walk(&w, src, why));
	for (size_t i = 0; i < c->n_images; i++) {
		list->images[c->first_image + i].offset = w.sum;
		KP_TRY(next_entry(&w, why));
	}
	return KPACK_SUCCESS;
}

/* Decode all entries, those that FAULT leaves out as zeros. */
static kpack_error_t load_fatbin(const struct kp_source *src,
				 const struct kp_container *c, kp_image_fault *fault,
				 void *arg, struct kp_payload *out,
				 struct kpackx_error *why)
{
	uint64_t size = c->payload_size, at = 0;
	kpack_error_t err;
	uint8_t *heap;
	struct walk w;

	KP_TRY(begin_walk(&w, src, why));
	while (w.pos < w.src.size && !w.decoding)
		KP_TRY(next_entry(&w, why));
	if (!w.decoding) {
		out->source = w.src;
		return KPACK_SUCCESS;
	}
	if (size > KP_FATBIN_MAX)
		return kp_fail(why, KPACK_ERROR_IO_ERROR, "changed while it was read");
	heap = malloc((size_t)size + !size);
	if (!heap)
		return kp_fail_memory(why, size, "decoded entries");
	err = begin_walk(&w, src, why);
	while (!err && w.pos < w.src.size) {
		struct kpackx_error damage = {0};

		err = next_entry(&w, why);
		if (err || !kp_range_ok(size, at, w.entry.size))
			break;
		err = decode_entry(&w.src, &w.entry, heap + at, &damage);
		if (err && fault && err != KPACK_ERROR_OUT_OF_MEMORY &&
		    err != KPACK_ERROR_IO_ERROR && fault(arg, w.number - 1, &damage)) {
			memset(heap + at, 0, (size_t)w.entry.size);
			err = KPACK_SUCCESS;
		} else if (err) {
			kp_fail(why, err, "entry %zu: %s", w.number - 1, damage.text);
		}
		at += w.entry.size;
	}
	if (!err && (w.pos != w.src.size || at != size))
		err = kp_fail(why, KPACK_ERROR_IO_ERROR, "changed while it was read");
	if (err) {
		free(heap);
		return err;
	}
	out->heap = heap;
	out->source = kp_source_memory(heap, (size_t)size);
	return KPACK_SUCCESS;
}

const struct kp_format kp_format_fatbin = {
	.name = "fatbin",
	.probe = probe_fatbin,
	.parse = parse_fatbin,
	.load = load_fatbin,
};
