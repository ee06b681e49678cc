/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>
#include <zstd.h>
#include "layout_internal.h"
#include "layout_settle.h"
#include "core/base/bounds.h"
#include "core/base/alloc.h"
#include "core/base/msgpack_read.h"
#include "core/archive/frame_header.h"

struct parser {
	struct kp_mp c;
	struct kp_layout l;
	struct kp_layout_container *now; /* the container being read */
	struct kp_span hashes;
	uint64_t frame; /* bytes of the compressed map */
	uint64_t size;  /* bytes of the section, which may have frames after it */
	uint64_t meant; /* sum of the entries' sizes; they may share bytes */
	struct kpackx_error *why;
};

/* One key of a map. */
struct field {
	const char *key;
	bool required;
	kpack_error_t (*read)(struct parser *p);
};

static kpack_error_t fail_broken(struct parser *p)
{
	return kp_mp_fail(&p->c, "layout", p->why);
}

static kpack_error_t no_memory(struct parser *p)
{
	return kp_fail_memory(p->why, (uint64_t)(p->c.end - p->c.start), "a layout");
}

static kpack_error_t fail_invalid(struct parser *p, const char *reason)
{
	return kp_fail(p->why, KPACK_ERROR_INVALID_METADATA, "layout: byte %zu: %s",
		       kp_mp_offset(&p->c), reason);
}

/* ---- values ---- */

static kpack_error_t read_uint(struct parser *p, uint64_t most, uint64_t *n)
{
	enum kp_mp_type type = kp_mp_peek(&p->c);

	if (type != KP_MP_UINT && type != KP_MP_BAD)
		return fail_invalid(p, "not a number");
	if (!kp_mp_uint(&p->c, n))
		return fail_broken(p);
	if (*n > most)
		return kp_fail(p->why, KPACK_ERROR_INVALID_METADATA,
			       "layout: byte %zu: %" PRIu64 ", at most %" PRIu64,
			       kp_mp_offset(&p->c), *n, most);
	return KPACK_SUCCESS;
}

/* Read a number modulo 2^64, of either sign. */
static kpack_error_t read_gap(struct parser *p, uint64_t *n)
{
	struct kp_mp_value v;

	if (!kp_mp_next(&p->c, &v))
		return fail_broken(p);
	if (v.type != KP_MP_UINT && v.type != KP_MP_INT)
		return fail_invalid(p, "not a number");
	*n = v.num;
	return KPACK_SUCCESS;
}

static kpack_error_t read_bool(struct parser *p, bool *b)
{
	struct kp_mp_value v;

	if (!kp_mp_next(&p->c, &v))
		return fail_broken(p);
	if (v.type != KP_MP_BOOL)
		return fail_invalid(p, "neither true nor false");
	*b = v.num != 0;
	return KPACK_SUCCESS;
}

static kpack_error_t read_array(struct parser *p, uint32_t most, uint32_t *n)
{
	enum kp_mp_type type = kp_mp_peek(&p->c);

	if (type != KP_MP_ARRAY && type != KP_MP_BAD)
		return fail_invalid(p, "not an array");
	if (!kp_mp_array(&p->c, n))
		return fail_broken(p);
	return *n <= most ? KPACK_SUCCESS : fail_invalid(p, "too many members");
}

/* Read the head of an array of exactly N members. */
static kpack_error_t read_tuple(struct parser *p, uint32_t n)
{
	uint32_t count;

	KP_TRY(read_array(p, n, &count));
	return count == n ? KPACK_SUCCESS : fail_invalid(p, "members are missing");
}

static kpack_error_t read_bin(struct parser *p, struct kp_span *bytes)
{
	struct kp_mp_value v;

	if (!kp_mp_next(&p->c, &v))
		return fail_broken(p);
	if (v.type != KP_MP_BIN)
		return fail_invalid(p, "not bytes");
	*bytes = v.span;
	return KPACK_SUCCESS;
}

static kpack_error_t read_hash(struct parser *p, uint8_t hash[16])
{
	struct kp_span bytes;

	KP_TRY(read_bin(p, &bytes));
	if (bytes.size != 16)
		return fail_invalid(p, "an xxh3 has 16 bytes");
	memcpy(hash, bytes.data, 16);
	return KPACK_SUCCESS;
}

/* Read a text of at most MOST bytes without a NUL. */
static kpack_error_t read_text(struct parser *p, size_t most, struct kp_span *text)
{
	enum kp_mp_type type = kp_mp_peek(&p->c);

	if (type != KP_MP_STR && type != KP_MP_BAD)
		return fail_invalid(p, "not a string");
	if (!kp_mp_str(&p->c, text))
		return fail_broken(p);
	if (text->size > most)
		return fail_invalid(p, "a string that is too long");
	if (text->size && memchr(text->data, '\0', text->size))
		return fail_invalid(p, "a NUL inside a string");
	return KPACK_SUCCESS;
}

/* ---- maps ---- */

static const struct field *find_field(const struct field *fields, size_t n,
				      struct kp_span key)
{
	for (size_t i = 0; i < n; i++) {
		if (kp_span_is(key, fields[i].key))
			return &fields[i];
	}
	return NULL;
}

/* Read one key and its value; SEEN has a bit for each field. */
static kpack_error_t read_pair(struct parser *p, const struct field *fields, size_t n,
			       unsigned *seen)
{
	const struct field *field;
	struct kp_span key = {0};
	unsigned bit;

	if (kp_mp_peek(&p->c) == KP_MP_STR)
		kp_mp_str(&p->c, &key);
	else
		kp_mp_skip(&p->c);
	if (p->c.fault)
		return fail_broken(p);
	field = find_field(fields, n, key);
	if (!field)
		return kp_mp_skip(&p->c) ? KPACK_SUCCESS : fail_broken(p);
	bit = 1u << (field - fields);
	if (*seen & bit)
		return kp_fail(p->why, KPACK_ERROR_INVALID_METADATA,
			       "layout: byte %zu: %s for the second time",
			       kp_mp_offset(&p->c), field->key);
	*seen |= bit;
	return field->read(p);
}

static kpack_error_t read_map(struct parser *p, const struct field *fields, size_t n)
{
	enum kp_mp_type type = kp_mp_peek(&p->c);
	unsigned seen = 0;
	uint32_t pairs;

	if (type != KP_MP_MAP && type != KP_MP_BAD)
		return fail_invalid(p, "not a map");
	if (!kp_mp_map(&p->c, &pairs))
		return fail_broken(p);
	while (pairs--)
		KP_TRY(read_pair(p, fields, n, &seen));
	for (size_t i = 0; i < n; i++) {
		if (fields[i].required && !(seen & 1u << i))
			return kp_fail(p->why, KPACK_ERROR_INVALID_METADATA,
				       "layout: byte %zu: %s is missing",
				       kp_mp_offset(&p->c), fields[i].key);
	}
	return KPACK_SUCCESS;
}

/* ---- how a container was compressed ---- */

static kpack_error_t read_small(struct parser *p, unsigned *out)
{
	uint64_t n;

	KP_TRY(read_uint(p, UINT16_MAX, &n));
	*out = (unsigned)n;
	return KPACK_SUCCESS;
}

static kpack_error_t read_ccob_version(struct parser *p)
{
	return read_small(p, &p->now->form.version);
}

static kpack_error_t read_ccob_method(struct parser *p)
{
	return read_small(p, &p->now->form.method);
}

static kpack_error_t read_ccob_hash(struct parser *p)
{
	return read_uint(p, UINT64_MAX, &p->now->form.hash);
}

static kpack_error_t read_ccob_payload(struct parser *p)
{
	return read_uint(p, KP_CCOB_MAX, &p->now->payload_size);
}

static kpack_error_t read_ccob_level(struct parser *p)
{
	unsigned level = 0;

	KP_TRY(read_small(p, &level));
	p->now->form.level = (int)level;
	return KPACK_SUCCESS;
}

static kpack_error_t read_ccob_long(struct parser *p)
{
	return read_bool(p, &p->now->form.long_range);
}

static kpack_error_t read_ccob_xxh3(struct parser *p)
{
	return read_hash(p, p->now->xxh3);
}

static kpack_error_t read_ccob_kept(struct parser *p)
{
	return read_uint(p, UINT32_MAX, &p->now->kept);
}

static kpack_error_t read_ccob(struct parser *p)
{
	static const struct field fields[] = {
		{"version", true, read_ccob_version},
		{"method", true, read_ccob_method},
		{"hash", true, read_ccob_hash},
		{"payload", true, read_ccob_payload},
		{"level", true, read_ccob_level},
		{"long", false, read_ccob_long},
		{"xxh3", false, read_ccob_xxh3},
		{"kept", false, read_ccob_kept},
	};

	KP_TRY(read_map(p, fields, KP_COUNT(fields)));
	if (!kp_ccob_form_ok(&p->now->form))
		return kp_fail(p->why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "layout: container %zu: CCOB of version %u, method %u, "
			       "level %d",
			       p->l.n_containers - 1, p->now->form.version,
			       p->now->form.method, p->now->form.level);
	return KPACK_SUCCESS;
}

/* ---- a container ---- */

static kpack_error_t read_format(struct parser *p)
{
	static const struct kp_format *const formats[] = {
		&kp_format_bundle, &kp_format_ccob, &kp_format_code_object};
	struct kp_span name;

	KP_TRY(read_text(p, 64, &name));
	for (size_t i = 0; i < KP_COUNT(formats); i++) {
		if (kp_span_is(name, formats[i]->name))
			p->now->format = formats[i];
	}
	if (!p->now->format)
		return kp_fail(p->why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "layout: container %zu: a format that is not known",
			       p->l.n_containers - 1);
	return KPACK_SUCCESS;
}

static kpack_error_t read_place(struct parser *p)
{
	return read_gap(p, &p->now->offset);
}

static kpack_error_t read_extent(struct parser *p)
{
	return read_gap(p, &p->now->size);
}

/* Read the content of an image: the host's bytes, an object's hash, or nothing. */
static kpack_error_t read_content(struct parser *p, struct kp_layout_image *image)
{
	struct kp_span bytes;

	if (kp_mp_peek(&p->c) == KP_MP_NIL) {
		kp_mp_skip(&p->c);
		return image->host && image->size
			       ? fail_invalid(p, "a host entry without its "
						 "bytes")
			       : KPACK_SUCCESS;
	}
	if (!image->host) {
		KP_TRY(read_bool(p, &image->has_xxh3));
		return image->has_xxh3
			       ? KPACK_SUCCESS
			       : fail_invalid(p, "the content is neither true nor nil");
	}
	KP_TRY(read_bin(p, &bytes));
	if (bytes.size != image->size)
		return fail_invalid(p, "a host entry's bytes do not have its size");
	image->bytes = bytes.data;
	return KPACK_SUCCESS;
}

/* Read an entry, whose offset is a gap until the container is settled. */
static kpack_error_t read_entry(struct parser *p)
{
	struct kp_layout_image *image = kp_layout_add_image(&p->l);
	const struct kp_layout_target *target;
	uint64_t n = 0;

	if (!image)
		return no_memory(p);
	p->now->n_images++;
	image->container = (uint32_t)(p->l.n_containers - 1);
	KP_TRY(read_tuple(p, 4));
	KP_TRY(read_uint(p, UINT32_MAX, &n));
	if (n >= p->l.heap->n_targets)
		return fail_invalid(p, "a target that was not listed before");
	target = &p->l.heap->targets[n];
	image->id = target->id;
	image->host = target->host;
	memcpy(image->arch, target->arch, sizeof(image->arch));
	KP_TRY(read_gap(p, &image->offset));
	KP_TRY(read_uint(p, KP_OBJECT_MAX, &image->size));
	p->meant += image->size;
	if (p->meant > KP_LAYOUT_SECTION_MAX)
		return fail_invalid(p, "too many bytes of entries in all");
	return read_content(p, image);
}

static kpack_error_t read_entries(struct parser *p)
{
	uint32_t n;

	KP_TRY(read_array(p, KP_BUNDLE_ENTRIES_MAX, &n));
	if (n > KP_IMAGES_MAX - p->l.n_images)
		return fail_invalid(p, "too many entries in all");
	while (n--)
		KP_TRY(read_entry(p));
	return KPACK_SUCCESS;
}

static kpack_error_t read_pieces(struct parser *p)
{
	struct kp_layout_piece *piece;
	uint32_t n;

	KP_TRY(read_array(p, KP_LAYOUT_PIECES_MAX, &n));
	if (n > KP_LAYOUT_PIECES_MAX - p->l.heap->n_pieces)
		return fail_invalid(p, "too many runs of bytes in all");
	while (n--) {
		piece = kp_layout_add_piece(&p->l);
		if (!piece)
			return no_memory(p);
		p->now->n_pieces++;
		KP_TRY(read_tuple(p, 2));
		KP_TRY(read_uint(p, KP_LAYOUT_SECTION_MAX, &piece->offset));
		KP_TRY(read_bin(p, &piece->bytes));
	}
	return KPACK_SUCCESS;
}

static kpack_error_t read_container(struct parser *p)
{
	static const struct field fields[] = {
		{"format", true, read_format}, {"offset", true, read_place},
		{"size", true, read_extent},   {"entries", true, read_entries},
		{"bytes", false, read_pieces}, {"ccob", false, read_ccob},
	};

	p->now = kp_layout_add_container(&p->l);
	return p->now ? read_map(p, fields, KP_COUNT(fields)) : no_memory(p);
}

/* ---- the whole ---- */

static kpack_error_t read_version(struct parser *p)
{
	uint64_t n;

	KP_TRY(read_uint(p, UINT64_MAX, &n));
	if (n != KP_LAYOUT_VERSION)
		return kp_fail(p->why, KPACK_ERROR_UNSUPPORTED_VERSION,
			       "layout: version %" PRIu64 ", only %d is supported", n,
			       KP_LAYOUT_VERSION);
	return KPACK_SUCCESS;
}

static kpack_error_t read_size(struct parser *p)
{
	return read_uint(p, KP_LAYOUT_SECTION_MAX, &p->l.size);
}

static kpack_error_t read_target(struct parser *p)
{
	struct kp_layout_heap *heap = p->l.heap;
	struct kp_layout_target *target;
	struct kp_span text;

	if (!kp_grow(&heap->targets, heap->n_targets, &heap->targets_cap,
		     sizeof(*target)))
		return no_memory(p);
	target = &heap->targets[heap->n_targets++];
	*target = (struct kp_layout_target){0};
	KP_TRY(read_tuple(p, 3));
	if (kp_mp_peek(&p->c) == KP_MP_NIL) {
		kp_mp_skip(&p->c);
	} else {
		KP_TRY(read_text(p, KP_ENTRY_ID_MAX, &text));
		target->id = strndup((const char *)text.data, text.size);
		if (!target->id)
			return no_memory(p);
	}
	KP_TRY(read_text(p, sizeof(target->arch) - 1, &text));
	if (text.size)
		memcpy(target->arch, text.data, text.size);
	return read_bool(p, &target->host);
}

static kpack_error_t read_targets(struct parser *p)
{
	uint32_t n;

	KP_TRY(read_array(p, KP_IMAGES_MAX, &n));
	while (n--)
		KP_TRY(read_target(p));
	return KPACK_SUCCESS;
}

static kpack_error_t read_wrappers(struct parser *p)
{
	uint64_t c = 0;
	uint32_t n;

	KP_TRY(read_array(p, KP_WRAPPERS_MAX, &n));
	p->l.wrapper_container = calloc((size_t)n + 1, sizeof(uint32_t));
	if (!p->l.wrapper_container)
		return no_memory(p);
	for (; p->l.n_wrappers < n; p->l.n_wrappers++) {
		KP_TRY(read_uint(p, UINT32_MAX, &c));
		p->l.wrapper_container[p->l.n_wrappers] = (uint32_t)c;
	}
	return KPACK_SUCCESS;
}

static kpack_error_t read_containers(struct parser *p)
{
	uint32_t n;

	KP_TRY(read_array(p, KP_IMAGES_MAX, &n));
	while (n--)
		KP_TRY(read_container(p));
	return KPACK_SUCCESS;
}

static kpack_error_t read_hashes(struct parser *p)
{
	return read_bin(p, &p->hashes);
}

static kpack_error_t read_layout(struct parser *p)
{
	static const struct field fields[] = {
		{"version", true, read_version},       {"size", true, read_size},
		{"targets", true, read_targets},       {"wrappers", true, read_wrappers},
		{"containers", true, read_containers}, {"xxh3", true, read_hashes},
	};

	return read_map(p, fields, KP_COUNT(fields));
}

/* ---- its bytes ---- */

/* Decompress the map into memory of the layout, which does not need BYTES afterwards. */
static kpack_error_t decompress_map(struct parser *p, struct kp_span bytes, size_t *size)
{
	unsigned long long n = ZSTD_getFrameContentSize(bytes.data, bytes.size);

	if (n > KP_LAYOUT_MAX || n / KP_ZSTD_RATIO_MAX > bytes.size)
		return kp_fail(p->why, KPACK_ERROR_INVALID_METADATA,
			       "layout: %zu bytes that state a size of %llu", bytes.size,
			       n);
	p->l.heap->bytes = malloc((size_t)n + 1);
	if (!p->l.heap->bytes)
		return kp_fail_memory(p->why, n, "a layout");
	*size = ZSTD_decompress(p->l.heap->bytes, (size_t)n, bytes.data, bytes.size);
	if (*size != n)
		return kp_fail(p->why, KPACK_ERROR_INVALID_METADATA, "layout: %s",
			       ZSTD_isError(*size) ? ZSTD_getErrorName(*size)
						   : "smaller than stated");
	return KPACK_SUCCESS;
}

static kpack_error_t copy_map(struct parser *p, struct kp_span bytes, size_t *size)
{
	p->l.heap->bytes = malloc(bytes.size);
	if (!p->l.heap->bytes)
		return kp_fail_memory(p->why, bytes.size, "a layout");
	memcpy(p->l.heap->bytes, bytes.data, bytes.size);
	*size = bytes.size;
	return KPACK_SUCCESS;
}

static const uint8_t ZSTD_MAGIC[] = {0x28, 0xb5, 0x2f, 0xfd};

static kpack_error_t open_parser(struct parser *p, struct kp_span bytes)
{
	size_t size = 0;

	if (bytes.size == 0)
		return kp_fail(p->why, KPACK_ERROR_MSGPACK_PARSE_FAILED, "layout: empty");
	if (bytes.size > KP_LAYOUT_MAX)
		return kp_fail(p->why, KPACK_ERROR_INVALID_METADATA,
			       "layout: %zu bytes, at most %llu", bytes.size,
			       (unsigned long long)KP_LAYOUT_MAX);
	KP_TRY(kp_layout_begin(&p->l, p->why));
	p->frame = bytes.size;
	if (kp_span_starts(bytes, ZSTD_MAGIC, sizeof(ZSTD_MAGIC)))
		p->frame = ZSTD_findFrameCompressedSize(bytes.data, bytes.size);
	if (ZSTD_isError((size_t)p->frame)) /* the map cannot be decompressed */
		p->frame = bytes.size;
	KP_TRY(kp_span_starts(bytes, ZSTD_MAGIC, sizeof(ZSTD_MAGIC))
		       ? decompress_map(p, bytes, &size)
		       : copy_map(p, bytes, &size));
	p->c = kp_mp_over((struct kp_span){p->l.heap->bytes, size});
	return KPACK_SUCCESS;
}

/* Find what is kept of containers behind the map. */
static kpack_error_t settle_kept(struct parser *p)
{
	uint64_t at = p->frame;

	for (size_t i = 0; i < p->l.n_containers; i++) {
		struct kp_layout_container *c = &p->l.containers[i];

		if (!c->kept)
			continue;
		c->kept_offset = at + KP_LAYOUT_SKIP_HEADER;
		if (!kp_range_ok(p->size, c->kept_offset, c->kept) ||
		    c->size / KP_ZSTD_RATIO_MAX > c->kept)
			return kp_fail(
				p->why, KPACK_ERROR_INVALID_METADATA,
				"layout: container %zu: its kept bytes are missing", i);
		at = c->kept_offset + c->kept;
	}
	return KPACK_SUCCESS;
}

static kpack_error_t parse_all(struct parser *p, struct kp_span bytes)
{
	KP_TRY(open_parser(p, bytes));
	KP_TRY(read_layout(p));
	KP_TRY(kp_layout_settle(&p->l, p->hashes, p->why));
	return settle_kept(p);
}

/* Parse BYTES, the beginning of a section of SIZE bytes. */
static kpack_error_t parse_section(struct kp_span bytes, uint64_t size,
				   struct kp_layout *out, struct kpackx_error *why)
{
	struct parser p = {.size = size, .why = why};
	kpack_error_t err = parse_all(&p, bytes);

	if (err)
		kp_layout_fini(&p.l);
	else
		*out = p.l;
	return err;
}

kpack_error_t kp_layout_parse(struct kp_span bytes, struct kp_layout *out,
			      struct kpackx_error *why)
{
	return parse_section(bytes, bytes.size, out, why);
}

/* Find the size of the map, which is all of SECTION unless frames follow it. */
static kpack_error_t measure_map(const struct kp_source *section, uint64_t *size,
				 struct kpackx_error *why)
{
	struct kp_frame_header header;
	struct kp_window window;
	const uint8_t *head;

	*size = section->size;
	if (section->size < sizeof(ZSTD_MAGIC))
		return KPACK_SUCCESS;
	kp_window_init(&window, section);
	KP_TRY(kp_window_get(&window, 0, sizeof(ZSTD_MAGIC), &head, why));
	if (memcmp(head, ZSTD_MAGIC, sizeof(ZSTD_MAGIC)) != 0)
		return KPACK_SUCCESS;
	return kp_frame_measure(&window, 0, &header, size, why);
}

kpack_error_t kp_layout_read(const struct kp_source *section, struct kp_layout *out,
			     struct kpackx_error *why)
{
	kpack_error_t err;
	uint64_t size;
	uint8_t *bytes;

	KP_TRY(measure_map(section, &size, why));
	if (size > KP_LAYOUT_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_METADATA,
			       "layout: %llu bytes of at most %llu",
			       (unsigned long long)size,
			       (unsigned long long)KP_LAYOUT_MAX);
	bytes = malloc(size ? (size_t)size : 1);
	if (!bytes)
		return kp_fail_memory(why, size, "a layout");
	err = kp_source_read(section, 0, bytes, (size_t)size, why);
	if (!err)
		err = parse_section((struct kp_span){bytes, (size_t)size}, section->size,
				    out, why);
	if (!err)
		out->section = *section;
	free(bytes);
	return err;
}
