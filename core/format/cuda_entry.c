/* SPDX-License-Identifier: MIT */
#include "cuda_entry.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/archive/codec.h"
#include "core/base/bounds.h"

#ifndef KP_WITH_LZ4
#define KP_WITH_LZ4 1
#endif
#if KP_WITH_LZ4
#include <lz4.h>
#endif

/* Flags of an entry. */
#define LZ4 UINT64_C(0x2000)
#define ZSTD UINT64_C(0x8000)
#define SCRAMBLED UINT64_C(0x10000) /* LTO-IR: only NVIDIA's linker can read it */
#define ARCH_SPECIFIC UINT64_C(0x100000)
#define FAMILY_SPECIFIC UINT64_C(0x200000)

struct kp_cuda_codec {
	const char *name;
	uint64_t flag;
	uint64_t ratio_max;
	kpack_error_t (*decode)(struct kp_span stored, uint8_t *out, size_t size,
				struct kpackx_error *why);
};

static kpack_error_t decode_zstd(struct kp_span stored, uint8_t *out, size_t size,
				 struct kpackx_error *why)
{
	return kp_zstd_decode(stored, out, size, why);
}

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

static kpack_error_t decode_unknown(struct kp_span stored, uint8_t *out, size_t size,
				    struct kpackx_error *why)
{
	(void)stored, (void)out;
	return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
		       "%zu bytes are compressed by an unknown method", size);
}

static const struct kp_cuda_codec codecs[] = {
	{"zstd", ZSTD, KP_ZSTD_RATIO_MAX, decode_zstd},
	{"lz4", LZ4, KP_LZ4_RATIO_MAX, decode_lz4},
	{"unknown", 0, KP_ZSTD_RATIO_MAX, decode_unknown},
};

static const struct kp_cuda_codec *find_codec(uint64_t flags)
{
	const struct kp_cuda_codec *codec = codecs;

	while (codec->flag && !(flags & codec->flag))
		codec++;
	return codec;
}

/* --- reading ---------------------------------------------------------------------- */

/* Set the sizes and the codec of E; DECODED is the size that the header states. */
static kpack_error_t find_sizes(struct kp_cuda_entry *e, uint64_t compressed,
				uint64_t decoded, struct kpackx_error *why)
{
	if (compressed > e->room)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "%" PRIu64 " compressed bytes in %" PRIu64, compressed,
			       e->room);
	e->stored = e->size = compressed ? compressed : e->room;
	if (!compressed || e->flags & SCRAMBLED)
		return KPACK_SUCCESS;
	e->codec = find_codec(e->flags);
	e->size = decoded;
	if (decoded / e->codec->ratio_max > compressed || decoded > KP_FATBIN_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "decoded size %" PRIu64 " cannot come out of %" PRIu64
			       " bytes of %s",
			       decoded, compressed, e->codec->name);
	return KPACK_SUCCESS;
}

static kpack_error_t read_fields(const uint8_t *p, struct kp_cuda_entry *e,
				 struct kpackx_error *why)
{
	e->kind = kp_le16(p);
	e->header = kp_le32(p + 4);
	e->room = kp_le64(p + 8);
	e->options = kp_le32(p + 20);
	e->minor = kp_le16(p + 24);
	e->major = kp_le16(p + 26);
	e->sm = kp_le32(p + 28);
	e->name = kp_le32(p + 32);
	e->name_size = kp_le32(p + 36);
	e->flags = kp_le64(p + 40);
	e->identity = kp_le64(p + 48);
	if (e->header < KP_CUDA_ENTRY_HEADER)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "header of %" PRIu64 " bytes, at least %d", e->header,
			       KP_CUDA_ENTRY_HEADER);
	return KPACK_SUCCESS;
}

kpack_error_t kp_cuda_entry_read(const struct kp_source *src, uint64_t at,
				 struct kp_cuda_entry *out, struct kpackx_error *why)
{
	uint8_t p[KP_CUDA_ENTRY_HEADER];

	*out = (struct kp_cuda_entry){.at = at};
	KP_TRY(kp_source_read(src, at, p, sizeof(p), why));
	KP_TRY(read_fields(p, out, why));
	if (!kp_range_ok(src->size, at, out->header) ||
	    !kp_range_ok(src->size, at + out->header, out->room))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "%" PRIu64 " and %" PRIu64 " bytes at %" PRIu64
			       " pass the end at %" PRIu64,
			       out->header, out->room, at, src->size);
	return find_sizes(out, kp_le32(p + 16), kp_le64(p + 56), why);
}

/* --- what the header states ------------------------------------------------------- */

static const struct {
	uint16_t kind;
	const char *name, *arch;
} kinds[] = {
	{KP_CUDA_PTX, "ptx", "compute"},
	{KP_CUDA_CUBIN, "cubin", "sm"},
	/* as nvcc's code=lto_90 */
	{KP_CUDA_LTO_IR, KP_LTO_IR, "lto"},
};

static kpack_error_t state_kind(const struct kp_cuda_entry *e, struct kp_image *image,
				struct kpackx_error *why)
{
	const char *arch = "sm", *name = NULL;

	for (size_t i = 0; i < KP_COUNT(kinds); i++) {
		if (kinds[i].kind == e->kind) {
			name = kinds[i].name;
			arch = kinds[i].arch;
		}
	}
	snprintf(image->kind, sizeof(image->kind), "cuda");
	if (e->sm)
		snprintf(image->arch, sizeof(image->arch), "%s_%" PRIu32 "%s", arch,
			 e->sm,
			 e->flags & ARCH_SPECIFIC     ? "a"
			 : e->flags & FAMILY_SPECIFIC ? "f"
						      : "");
	if (name)
		return kp_pairs_add(&image->pairs, kp_span_str(KP_PAIR_IMAGE_KIND),
				    kp_span_str(name), why);
	return kp_pairs_print(&image->pairs, why, KP_PAIR_IMAGE_KIND, "0x%x", e->kind);
}

/* A text in a header. */
struct header_text {
	const char *what;
	uint32_t offset, size;
};

/* Read the text T, of which at most KP_FATBIN_TEXT_MAX bytes are read to BUF. */
static kpack_error_t read_text(const struct kp_source *src, const struct kp_cuda_entry *e,
			       struct header_text t, uint8_t buf[KP_FATBIN_TEXT_MAX],
			       struct kp_span *out, struct kpackx_error *why)
{
	uint32_t size = t.size < KP_FATBIN_TEXT_MAX ? t.size : KP_FATBIN_TEXT_MAX;

	if (!kp_range_ok(e->header, t.offset, t.size))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "%s of %" PRIu32 " bytes at %" PRIu32
			       " in a header of %" PRIu64,
			       t.what, t.size, t.offset, e->header);
	KP_TRY(kp_source_read(src, e->at + t.offset, buf, size, why));
	*out = (struct kp_span){buf, size};
	return KPACK_SUCCESS;
}

static bool is_text(struct kp_span s)
{
	for (size_t i = 0; i < s.size; i++)
		if (s.data[i] < ' ' && s.data[i] != '\t')
			return false;
	return true;
}

/*
 * Add options: text without its padding, or other bytes in hexadecimal, as "options
 * (hex)".
 */
static kpack_error_t add_options(struct kp_image *image, struct kp_span bytes,
				 struct kpackx_error *why)
{
	char hex[2 * KP_FATBIN_TEXT_MAX + 1];
	struct kp_span text = bytes;

	while (text.size &&
	       (text.data[text.size - 1] == ' ' || text.data[text.size - 1] == '\0'))
		text.size--;
	if (is_text(text))
		return text.size ? kp_pairs_add(&image->pairs, kp_span_str("options"),
						text, why)
				 : KPACK_SUCCESS;
	for (size_t i = 0; i < bytes.size; i++)
		snprintf(hex + 2 * i, 3, "%02x", bytes.data[i]);
	return kp_pairs_add(&image->pairs, kp_span_str("options (hex)"), kp_span_str(hex),
			    why);
}

static kpack_error_t state_texts(const struct kp_source *src,
				 const struct kp_cuda_entry *e, struct kp_image *image,
				 struct kpackx_error *why)
{
	const struct header_text name = {"file name", e->name, e->name_size},
				 record = {"options record", e->options, 8};
	struct header_text options = {.what = "options"};
	uint8_t text[KP_FATBIN_TEXT_MAX];
	struct kp_span bytes;

	if (e->name && e->name_size) {
		KP_TRY(read_text(src, e, name, text, &bytes, why));
		bytes.size = strnlen((const char *)text, bytes.size);
		KP_TRY(kp_pairs_add(&image->pairs, kp_span_str("file"), bytes, why));
	}
	if (!e->options)
		return KPACK_SUCCESS;
	KP_TRY(read_text(src, e, record, text, &bytes, why));
	options.offset = kp_le32(text);
	options.size = kp_le32(text + 4);
	KP_TRY(read_text(src, e, options, text, &bytes, why));
	return add_options(image, bytes, why);
}

kpack_error_t kp_cuda_entry_state(const struct kp_source *src,
				  const struct kp_cuda_entry *e, struct kp_image *image,
				  struct kpackx_error *why)
{
	struct kp_pairs *pairs = &image->pairs;

	KP_TRY(state_kind(e, image, why));
	KP_TRY(kp_pairs_print(pairs, why, "version", "%u.%u", e->major, e->minor));
	KP_TRY(kp_pairs_print(pairs, why, "flags", "0x%" PRIx64, e->flags));
	if (e->codec)
		KP_TRY(kp_pairs_add(pairs, kp_span_str("compression"),
				    kp_span_str(e->codec->name), why));
	if (e->flags & SCRAMBLED)
		KP_TRY(kp_pairs_add(pairs, kp_span_str("stored"),
				    kp_span_str("scrambled"), why));
	if (e->codec)
		KP_TRY(kp_pairs_print(pairs, why, "stored bytes", "%" PRIu64, e->stored));
	if (e->identity)
		KP_TRY(kp_pairs_print(pairs, why, "identity", "0x%" PRIx64, e->identity));
	return state_texts(src, e, image, why);
}

/* --- decoding --------------------------------------------------------------------- */

kpack_error_t kp_cuda_entry_decode(const struct kp_source *src,
				   const struct kp_cuda_entry *e, uint8_t *out,
				   struct kpackx_error *why)
{
	uint64_t at = e->at + e->header;
	kpack_error_t err;
	uint8_t *stored;

	if (!e->codec)
		return kp_source_read(src, at, out, (size_t)e->size, why);
	stored = malloc((size_t)e->stored);
	if (!stored)
		return kp_fail_memory(why, e->stored, "a compressed entry");
	err = kp_source_read(src, at, stored, (size_t)e->stored, why);
	if (!err)
		err = e->codec->decode((struct kp_span){stored, (size_t)e->stored}, out,
				       (size_t)e->size, why);
	free(stored);
	return err;
}
