/* SPDX-License-Identifier: MIT */
/*
 * Reading and writing offload binaries (offload_binary.h has the format).  Maps and texts of hostile
 * files overlap; what they state in all is bounded by the binary's size.  Written are the header, the
 * entries, the string records, the table of strings, and from the next multiple of 8 on the
 * images one after another, padded to a multiple of 8.
 */
#include "offload_binary.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "ccob.h"
#include "core/archive/frames.h"
#include "core/base/alloc.h"
#include "core/base/bounds.h"

#define HEADER_MIN 32 /* of v1 and v2 */
#define HEADER_V3 40
#define ENTRY_SIZE 40

/* Bytes per step when searching the end of a text. */
#define STEP 256

static const uint8_t magic[4] = {0x10, 0xff, 0x10, 0xad};

struct header {
	unsigned version;
	uint64_t size;
	uint64_t entries; /* offset of the entries */
	uint64_t count;
	uint64_t inflated; /* 0: not compressed */
};

/*
 * Reads the tables and texts of one uncompressed or inflated binary.  There is a window for
 * each, because keys and values are elsewhere than the records that point to them.
 */
struct reader {
	struct kp_source src;
	struct header h;
	uint64_t records_left; /* bound of further records: maps do not overlap */
	uint64_t text_left;    /* bound of further bytes of keys and values */
	struct kp_containers *list;
	struct kp_container *c;
	struct kpackx_error *why;
	struct kp_window tables, texts;
};

static uint64_t align_size(uint64_t n)
{
	return (n + 7) / 8 * 8;
}

static uint64_t header_size(unsigned version)
{
	return version < 3 ? HEADER_MIN : HEADER_V3;
}

static uint64_t record_size(unsigned version)
{
	return version < 2 ? 16 : 24;
}

/* ---- header ---- */

static bool probe_offload_binary(struct kp_span head)
{
	return kp_span_starts(head, magic, sizeof(magic));
}

/* Read the header at the beginning of SRC, which may have more bytes. */
static kpack_error_t read_header(const struct kp_source *src, struct header *h,
				 struct kpackx_error *why)
{
	uint64_t least, each;
	uint8_t b[HEADER_V3];

	*h = (struct header){0};
	KP_TRY(kp_source_read(src, 0, b, HEADER_MIN, why));
	h->version = kp_le32(b + 4);
	if (h->version < 1 || h->version > 3)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "version %u, known are 1 to 3", h->version);
	h->size = kp_le64(b + 8);
	h->entries = kp_le64(b + 16);
	each = h->version == 1 ? kp_le64(b + 24) : ENTRY_SIZE;
	h->count = h->version == 1 ? 1 : kp_le64(b + 24);
	least = header_size(h->version);
	KP_TRY(kp_source_read(src, 0, b, (size_t)least, why));
	if (h->version == 3)
		h->inflated = kp_le64(b + 32);
	if (h->size < least || h->size > src->size)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "size %" PRIu64 ", the header has %" PRIu64
			       " bytes and %" PRIu64 " exist",
			       h->size, least, src->size);
	if (h->entries < least || h->entries > h->size)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "entries at %" PRIu64 ", the header has %" PRIu64
			       " bytes and all of it %" PRIu64,
			       h->entries, least, h->size);
	if (!h->inflated && h->count > (h->size - h->entries) / ENTRY_SIZE)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "%" PRIu64 " entries at %" PRIu64
			       " do not fit into %" PRIu64 " bytes",
			       h->count, h->entries, h->size);
	if (h->version == 1 && (each < ENTRY_SIZE || each > h->size - h->entries))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "an entry of %" PRIu64
			       " bytes, possible are %d to %" PRIu64,
			       each, ENTRY_SIZE, h->size - h->entries);
	return KPACK_SUCCESS;
}

/* ---- strings ---- */

static kpack_error_t fail_text(struct reader *r)
{
	return kp_fail(r->why, KPACK_ERROR_INVALID_FORMAT,
		       "its strings have more bytes in all than %" PRIu64
		       " bytes can hold",
		       r->h.size);
}

/*
 * Read the text at OFF, of *STATED bytes, or if that is NULL those before the next NUL.  The caller
 * frees *OUT.
 */
static kpack_error_t read_text(struct reader *r, uint64_t off, const uint64_t *stated,
			       uint8_t **out, uint64_t *length)
{
	const uint8_t *p, *end = NULL;
	struct kp_source text;
	uint64_t step;

	for (uint64_t pos = off; !stated && !end; pos += step) {
		if (pos >= r->h.size)
			return kp_fail(r->why, KPACK_ERROR_INVALID_FORMAT,
				       "a string at %" PRIu64
				       " does not end within %" PRIu64 " bytes",
				       off, r->h.size);
		step = r->h.size - pos < STEP ? r->h.size - pos : STEP;
		KP_TRY(kp_window_get(&r->texts, pos, (size_t)step, &p, r->why));
		end = memchr(p, 0, (size_t)step);
		*length = pos - off + (end ? (uint64_t)(end - p) : step);
		if (!end && *length > r->text_left)
			return fail_text(r);
	}
	if (stated)
		*length = *stated;
	if (!kp_source_sub(&r->src, off, *length, &text) || off + *length > r->h.size)
		return kp_fail(r->why, KPACK_ERROR_INVALID_FORMAT,
			       "a value of %" PRIu64 " bytes at %" PRIu64
			       " passes the end at %" PRIu64,
			       *length, off, r->h.size);
	if (*length > r->text_left)
		return fail_text(r);
	r->text_left -= *length;
	return kp_source_load(&text, UINT64_MAX, "a string", out, r->why);
}

/* ---- kinds ---- */

static const struct {
	const char *name, *ext;
} image_kinds[] = {
	[KP_OFFLOAD_NONE] = {"none", ""},
	[KP_OFFLOAD_OBJECT] = {"object", "o"},
	[KP_OFFLOAD_BITCODE] = {"bitcode", "bc"},
	[KP_OFFLOAD_CUBIN] = {"cubin", "cubin"},
	[KP_OFFLOAD_FATBINARY] = {"fatbinary", "fatbin"},
	[KP_OFFLOAD_PTX] = {"ptx", "s"},
	[KP_OFFLOAD_SPIRV] = {"spirv", "spv"},
};

const char *kp_offload_image_kind_ext(unsigned kind)
{
	return kind < KP_OFFLOAD_IMAGE_KINDS ? image_kinds[kind].ext : "";
}

enum kp_offload_image_kind kp_offload_image_kind_by_ext(const char *ext)
{
	for (unsigned i = 1; i < KP_OFFLOAD_IMAGE_KINDS; i++)
		if (strcmp(image_kinds[i].ext, ext) == 0)
			return (enum kp_offload_image_kind)i;
	return KP_OFFLOAD_NONE;
}

/*
 * Our own pairs are the last, so that a stored key with one of their names is still told
 * apart: the last pair is ours, and its name says whether there are two.
 */
size_t kp_offload_strings(const struct kp_image *image)
{
	size_t n = image->pairs.count - 1;

	return strcmp(image->pairs.items[n].name, KP_OFFLOAD_FLAGS_NAME) == 0 ? n - 1 : n;
}

const struct kp_pair *kp_offload_string(const struct kp_image *image, const char *name)
{
	for (size_t n = kp_offload_strings(image); n--;)
		if (strcmp(image->pairs.items[n].name, name) == 0)
			return &image->pairs.items[n];
	return NULL;
}

/* A kind without a name is in the pairs as its number. */
unsigned kp_offload_image_kind(const struct kp_image *image)
{
	const char *text = image->pairs.items[kp_offload_strings(image)].value;

	for (unsigned i = 0; i < KP_OFFLOAD_IMAGE_KINDS; i++)
		if (strcmp(image_kinds[i].name, text) == 0)
			return i;
	return (unsigned)strtoul(text, NULL, 10);
}

static const struct {
	unsigned number;
	const char *name;
} kinds[] = {{1, "openmp"}, {2, "cuda"}, {4, "hip"},
	     {8, "sycl"},   {3, "hip"},  {0, "none"}};

const char *kp_offload_kind_name(unsigned kind)
{
	for (size_t i = 0; i < KP_COUNT(kinds); i++)
		if (kinds[i].number == kind)
			return kinds[i].name;
	return NULL;
}

unsigned kp_offload_kind_number(const char *name)
{
	for (size_t i = 0; i < KP_COUNT(kinds); i++)
		if (strcmp(kinds[i].name, name) == 0)
			return kinds[i].number;
	return 0;
}

/* ---- entries ---- */

/* Read the entry at AT: its image, its strings, and what LLVM's tools derive from these. */
static kpack_error_t add_entry(struct reader *r, uint64_t at)
{
	uint64_t entries = r->h.count * ENTRY_SIZE, off, size, n;
	uint64_t record = record_size(r->h.version);
	const struct kp_pair *arch;
	struct kp_image *image;
	uint8_t e[ENTRY_SIZE];
	const uint8_t *p;
	const char *name;
	unsigned kind;

	KP_TRY(kp_window_get(&r->tables, at, ENTRY_SIZE, &p, r->why));
	memcpy(e, p, sizeof(e)); /* the window moves on */
	off = kp_le64(e + 24);
	size = kp_le64(e + 32);
	if (!kp_range_ok(r->h.size, off, size))
		return kp_fail(r->why, KPACK_ERROR_INVALID_FORMAT,
			       "an image of %" PRIu64 " bytes at %" PRIu64
			       " passes the end at %" PRIu64,
			       size, off, r->h.size);
	/* one that contained the entries would contain itself */
	if (size && (off < HEADER_MIN ||
		     (off < r->h.entries + entries && r->h.entries < off + size)))
		return kp_fail(r->why, KPACK_ERROR_INVALID_FORMAT,
			       "an image of %" PRIu64 " bytes at %" PRIu64
			       " has the header or the entries in it",
			       size, off);
	KP_TRY(kp_containers_add_named(r->list, r->c, (struct kp_span){0}, off, size,
				       &image, r->why));
	/* the pairs: a key ends with a NUL; so does a value of v1 */
	off = kp_le64(e + 8);
	n = kp_le64(e + 16);
	if (off > r->h.size || n > (r->h.size - off) / record)
		return kp_fail(r->why, KPACK_ERROR_INVALID_FORMAT,
			       "%" PRIu64 " strings at %" PRIu64
			       " do not fit into %" PRIu64 " bytes",
			       n, off, r->h.size);
	if (n > r->records_left)
		return kp_fail(r->why, KPACK_ERROR_INVALID_FORMAT,
			       "more strings in all than fit into %" PRIu64 " bytes",
			       r->h.size);
	r->records_left -= n;
	for (; n--; off += record) {
		KP_AUTO_FREE uint8_t *key = NULL, *value = NULL;
		uint64_t value_at, stated = 0, length, value_length;

		KP_TRY(kp_window_get(&r->tables, off, (size_t)record, &p, r->why));
		value_at = kp_le64(p + 8);
		if (r->h.version > 1)
			stated = kp_le64(p + 16);
		KP_TRY(read_text(r, kp_le64(p), NULL, &key, &length));
		KP_TRY(read_text(r, value_at, r->h.version > 1 ? &stated : NULL, &value,
				 &value_length));
		KP_TRY(kp_pairs_add(&image->pairs, (struct kp_span){key, (size_t)length},
				    (struct kp_span){value, (size_t)value_length},
				    r->why));
	}
	kind = kp_le16(e + 2);
	name = kp_offload_kind_name(kind);
	if (name)
		snprintf(image->kind, sizeof(image->kind), "%s", name);
	else
		snprintf(image->kind, sizeof(image->kind), "%u", kind);
	kind = kp_le16(e);
	name = kind < KP_OFFLOAD_IMAGE_KINDS ? image_kinds[kind].name : NULL;
	KP_TRY(name ? kp_pairs_print(&image->pairs, r->why, KP_OFFLOAD_KIND_NAME, "%s",
				     name)
		    : kp_pairs_print(&image->pairs, r->why, KP_OFFLOAD_KIND_NAME, "%u",
				     kind));
	if (kp_le32(e + 4))
		KP_TRY(kp_pairs_print(&image->pairs, r->why, KP_OFFLOAD_FLAGS_NAME,
				      "0x%" PRIx32, kp_le32(e + 4)));
	arch = kp_offload_string(image, "arch");
	if (arch)
		kp_target_canonical(kp_span_str(arch->value), image->arch);
	return KPACK_SUCCESS;
}

/* ---- container ---- */

/* *YES becomes true if BODY, the compressed part, is zstd's, by its magic; else zlib's. */
static kpack_error_t is_zstd(const struct kp_source *body, bool *yes,
			     struct kpackx_error *why)
{
	uint8_t buf[KP_FRAME_HEADER_MAX];
	struct kp_frame_header header;
	struct kp_span head;

	KP_TRY(kp_source_head(body, 0, buf, sizeof(buf), &head, why));
	*yes = kp_frame_header_read(head, &header);
	return KPACK_SUCCESS;
}

/*
 * Set OUT to the uncompressed form of the binary at the beginning of SRC: SRC itself, or
 * the inflated binary on the heap, with its header changed accordingly.  That BODY can
 * decode to so many bytes is checked before anything is allocated.
 */
static kpack_error_t inflate_all(const struct kp_source *src, const struct header *h,
				 struct kp_payload *out, struct kpackx_error *why)
{
	KP_AUTO_FREE uint8_t *heap = NULL, *stored = NULL;
	struct kp_source body;
	size_t size;
	bool zstd;

	if (!h->inflated) {
		kp_source_sub(src, 0, h->size, &out->source);
		return KPACK_SUCCESS;
	}
	kp_source_sub(src, h->entries, h->size - h->entries, &body);
	KP_TRY(is_zstd(&body, &zstd, why));
	if (h->inflated < h->entries || h->inflated > KP_OFFLOAD_INFLATED_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "inflated size %" PRIu64 ", possible are %" PRIu64
			       " to %" PRIu64,
			       h->inflated, h->entries, KP_OFFLOAD_INFLATED_MAX);
	size = (size_t)(h->inflated - h->entries);
	if (size / (zstd ? KP_ZSTD_RATIO_MAX : KP_ZLIB_RATIO_MAX) > body.size)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "inflated size %" PRIu64 " cannot come out of %" PRIu64
			       " bytes of %s",
			       h->inflated, body.size, zstd ? "zstd" : "zlib");
	heap = malloc((size_t)h->inflated);
	if (!heap)
		return kp_fail_memory(why, h->inflated, "an inflated offload binary");
	KP_TRY(kp_source_read(src, 0, heap, (size_t)h->entries, why));
	if (zstd) {
		KP_TRY(kp_source_load(&body, UINT64_MAX, "a compressed offload binary",
				      &stored, why));
		KP_TRY(kp_zstd_decode((struct kp_span){stored, (size_t)body.size},
				      heap + h->entries, size, why));
	} else {
		KP_TRY(kp_zlib_decode(&body, heap + h->entries, size, why));
	}
	kp_put_le64(heap + 8, h->inflated);
	kp_put_le64(heap + 32, 0);
	out->heap = heap;
	out->source = kp_source_memory(heap, (size_t)h->inflated);
	heap = NULL;
	return KPACK_SUCCESS;
}

/* Listing needs the strings, so a compressed binary is inflated here and again in load. */
static kpack_error_t parse_offload_binary(const struct kp_source *src,
					  struct kp_container *c,
					  struct kp_containers *list,
					  struct kpackx_error *why)
{
	KP_AUTO(kp_payload) payload = {.source = {.fd = -1}};
	KP_AUTO_FREE struct reader *r = NULL; /* windows are large */
	struct header h;

	KP_TRY(read_header(src, &h, why));
	KP_TRY(inflate_all(src, &h, &payload, why));
	c->size = h.size;
	c->payload_size = payload.source.size;
	KP_TRY(kp_new(&r, 1, "a reader", why));
	r->src = payload.source;
	r->list = list;
	r->c = c;
	r->why = why;
	KP_TRY(read_header(&r->src, &r->h, why));
	r->records_left = r->h.size / 16; /* of the smallest records */
	r->text_left = r->h.size > KP_OFFLOAD_TEXT_MAX / KP_OFFLOAD_TEXT_RATIO
			       ? KP_OFFLOAD_TEXT_MAX
			       : r->h.size * KP_OFFLOAD_TEXT_RATIO;
	kp_window_init(&r->tables, &r->src);
	kp_window_init(&r->texts, &r->src);
	for (uint64_t i = 0; i < r->h.count; i++) {
		kpack_error_t err = add_entry(r, r->h.entries + i * ENTRY_SIZE);

		if (err)
			return kp_fail_prefix(why, err, "entry %" PRIu64, i);
	}
	return KPACK_SUCCESS;
}

/* Read the header again: the file may have changed since it was listed. */
static kpack_error_t load_offload_binary(const struct kp_source *src,
					 const struct kp_container *c,
					 kp_image_fault *fault, void *arg,
					 struct kp_payload *out, struct kpackx_error *why)
{
	struct header h;

	(void)fault, (void)arg;
	KP_TRY(read_header(src, &h, why));
	if (h.size != c->size || (h.inflated ? h.inflated : h.size) != c->payload_size)
		return kp_fail(why, KPACK_ERROR_IO_ERROR, "changed while it was read");
	return inflate_all(src, &h, out, why);
}

kpack_error_t kp_offload_form_read(const struct kp_source *src,
				   const struct kp_container *c,
				   struct kp_offload_form *out, struct kpackx_error *why)
{
	struct kp_source own, body;
	struct header h;
	bool zstd;

	if (!kp_source_sub(src, c->offset, c->size, &own))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "passes the end");
	KP_TRY(read_header(&own, &h, why));
	*out = (struct kp_offload_form){.version = h.version};
	if (!h.inflated)
		return KPACK_SUCCESS;
	kp_source_sub(&own, h.entries, h.size - h.entries, &body);
	KP_TRY(is_zstd(&body, &zstd, why));
	out->method = zstd ? KP_OFFLOAD_ZSTD : KP_OFFLOAD_ZLIB;
	return KPACK_SUCCESS;
}

const struct kp_format kp_format_offload_binary = {
	.name = "offload-binary",
	.probe = probe_offload_binary,
	.parse = parse_offload_binary,
	.load = load_offload_binary,
};

/* ---- writing ---- */

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

static void layout_fini(struct layout *l)
{
	free(l->texts);
	free(l->sorted);
}

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

static kpack_error_t put_header(const struct layout *l, uint64_t size, uint64_t inflated,
				struct kp_sink *sink, struct kpackx_error *why)
{
	uint8_t b[HEADER_V3] = {0};
	uint64_t header = header_size(l->version);

	memcpy(b, magic, sizeof(magic));
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

/* Write one binary with N images behind what SINK has. */
static kpack_error_t put_binary(const struct kp_offload_image *images, size_t n_images,
				const struct kp_offload_form *form, struct kp_sink *sink,
				struct kpackx_error *why)
{
	KP_AUTO(layout) all = {.images = images, .n_images = n_images};
	struct layout *l = &all;
	struct kp_span last = {(const uint8_t *)"", 0};
	uint64_t size = 1; /* of the table of strings, which begins with a NUL */
	size_t n = 0;

	l->version = form->version;
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
	/* a text that is the end of another shares its bytes */
	qsort(l->sorted, l->n_texts, sizeof(*l->sorted), by_end);
	for (size_t i = 0; i < l->n_texts; i++) {
		struct text *t = l->sorted[i];

		/* the NUL at the beginning of the table is the empty text */
		if (kp_range_ok(last.size, 0, t->bytes.size) &&
		    memcmp(last.data + last.size - t->bytes.size, t->bytes.data,
			   t->bytes.size) == 0) {
			t->offset = t->bytes.size ? size - t->bytes.size - 1 : 0;
			continue;
		}
		t->offset = size;
		size += t->bytes.size + 1;
		last = t->bytes;
	}
	l->table = header_size(l->version) + l->n_images * ENTRY_SIZE +
		   n / 2 * record_size(l->version);
	l->data = align_size(l->table + size);
	l->size = l->data;
	for (size_t i = 0; i < l->n_images; i++) {
		if (l->images[i].bytes.size > INT64_MAX - l->size)
			return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				       "more bytes than 63 bits can count");
		l->size += l->images[i].bytes.size;
	}
	l->size = align_size(l->size);

	if (form->method != KP_OFFLOAD_PLAIN)
		return put_compressed(l, form, sink, why);
	KP_TRY(put_header(l, l->size, 0, sink, why));
	return put_body(l, sink->size - header_size(l->version), sink, why);
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
