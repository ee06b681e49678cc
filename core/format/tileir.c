/* SPDX-License-Identifier: MIT */
/*
 * TileIR bytecode: the form of cuTile kernels from which NVIDIA's compiler makes a cubin.
 *
 *   0x7f "TileIR" 0, major, minor, u16 tag
 *   sections: id (0x80 set: aligned), varint length, varint alignment, padding, payload
 *   0
 *
 * The alignment refers to file offsets.  Varints have 7 bits per byte, the low bits
 * first.  Functions refer to strings and types by index; their bodies are not read.
 */
#include <inttypes.h>
#include <stdlib.h>
#include "core/base/bounds.h"
#include "tileir.h"

#define MAJOR 13
#define MINOR_MIN 1
#define MINOR_MAX 4
#define HEADER_SIZE 12

const char *const kp_tileir_sections[KP_TILEIR_SECTIONS] = {
	NULL, "string", "function", "debug", "constant", "type", "global",
};

static bool probe_tileir(struct kp_span head)
{
	return kp_span_starts(head, "\x7fTileIR", 8);
}

/* ---- bytes ---- */

kpack_error_t kp_tileir_get(struct kp_tileir *m, struct kp_tileir_cursor *c, size_t n,
			    const uint8_t **bytes)
{
	if (!kp_range_ok(c->end, c->pos, n))
		return KP_TILEIR_INVALID(
			m, "offset %" PRIu64 ": %zu bytes pass the end at %" PRIu64,
			c->pos, n, c->end);
	KP_TRY(kp_window_get(&m->window, c->pos, n, bytes, m->why));
	c->pos += n;
	return KPACK_SUCCESS;
}

kpack_error_t kp_tileir_get_byte(struct kp_tileir *m, struct kp_tileir_cursor *c,
				 uint8_t *out)
{
	const uint8_t *byte;

	KP_TRY(kp_tileir_get(m, c, 1, &byte));
	*out = *byte;
	return KPACK_SUCCESS;
}

kpack_error_t kp_tileir_get_varint(struct kp_tileir *m, struct kp_tileir_cursor *c,
				   uint64_t *out)
{
	const uint64_t begin = c->pos;
	uint8_t byte;

	*out = 0;
	for (unsigned shift = 0; shift < 64; shift += 7) {
		KP_TRY(kp_tileir_get_byte(m, c, &byte));
		if (shift == 63 && byte > 1)
			break;
		*out |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return KPACK_SUCCESS;
	}
	return KP_TILEIR_INVALID(m, "offset %" PRIu64 ": a number of more than 64 bits",
				 begin);
}

/* Read the index of a WHAT, less than COUNT. */
kpack_error_t kp_tileir_get_index(struct kp_tileir *m, struct kp_tileir_cursor *c,
				  uint64_t count, const char *what, uint64_t *out)
{
	const uint64_t begin = c->pos;

	KP_TRY(kp_tileir_get_varint(m, c, out));
	if (*out >= count)
		return KP_TILEIR_INVALID(m,
					 "offset %" PRIu64 ": %s %" PRIu64 " of %" PRIu64,
					 begin, what, *out, count);
	return KPACK_SUCCESS;
}

/* Move the cursor to the next multiple of ALIGNMENT, counted from BASE. */
static kpack_error_t align_cursor(struct kp_tileir *m, struct kp_tileir_cursor *c,
				  uint64_t base, uint64_t alignment)
{
	const uint64_t fill = (0 - (c->pos - base)) & (alignment - 1);

	if (!kp_range_ok(c->end, c->pos, fill))
		return KP_TILEIR_INVALID(m,
					 "offset %" PRIu64 ": alignment %" PRIu64
					 " passes the "
					 "end at %" PRIu64,
					 c->pos, alignment, c->end);
	c->pos += fill;
	return KPACK_SUCCESS;
}

/* ---- sections ---- */

static bool is_known(const struct kp_tileir *m)
{
	return m->version[0] == MAJOR && m->version[1] >= MINOR_MIN &&
	       m->version[1] <= MINOR_MAX;
}

static kpack_error_t read_header(struct kp_tileir *m, struct kp_tileir_cursor *c)
{
	const uint8_t *h;

	KP_TRY(kp_tileir_get(m, c, HEADER_SIZE, &h));
	m->version[0] = h[8];
	m->version[1] = h[9];
	m->tag = kp_le16(h + 10);
	return KPACK_SUCCESS;
}

static kpack_error_t read_section(struct kp_tileir *m, struct kp_tileir_cursor *c,
				  uint8_t id, bool aligned)
{
	const uint64_t begin = c->pos - 1;
	uint64_t length, alignment = 1;

	if (id == 0 || id >= KP_TILEIR_SECTIONS)
		return KP_TILEIR_INVALID(m, "offset %" PRIu64 ": section %u is not known",
					 begin, id);
	if (m->sections[id].end)
		return KP_TILEIR_INVALID(m, "offset %" PRIu64 ": a second %s section",
					 begin, kp_tileir_sections[id]);
	KP_TRY(kp_tileir_get_varint(m, c, &length));
	if (aligned)
		KP_TRY(kp_tileir_get_varint(m, c, &alignment));
	if (alignment == 0 || (alignment & (alignment - 1)))
		return KP_TILEIR_INVALID(
			m, "offset %" PRIu64 ": alignment %" PRIu64 " is no power of two",
			begin, alignment);
	KP_TRY(align_cursor(m, c, 0, alignment));
	if (!kp_range_ok(c->end, c->pos, length))
		return KP_TILEIR_INVALID(m,
					 "offset %" PRIu64 ": %s section of %" PRIu64
					 " bytes passes the end at %" PRIu64,
					 begin, kp_tileir_sections[id], length, c->end);
	m->sections[id] = (struct kp_tileir_cursor){c->pos, c->pos + length};
	c->pos += length;
	return KPACK_SUCCESS;
}

/* Read from the header to the end marker. */
static kpack_error_t read_sections(struct kp_tileir *m)
{
	struct kp_tileir_cursor c = {0, m->window.src.size};
	uint8_t id;

	KP_TRY(read_header(m, &c));
	m->size = c.end;
	if (!is_known(m)) /* the format of its sections is unknown too */
		return KPACK_SUCCESS;
	for (;;) {
		KP_TRY(kp_tileir_get_byte(m, &c, &id));
		if (id == 0)
			break;
		KP_TRY(read_section(m, &c, id & 0x7f, id & 0x80));
	}
	m->size = c.pos;
	for (int i = KP_TILEIR_STRINGS; i <= KP_TILEIR_FUNCTIONS; i++)
		if (!m->sections[i].end)
			return KP_TILEIR_INVALID(m, "there is no %s section",
						 kp_tileir_sections[i]);
	return KPACK_SUCCESS;
}

/* ---- tables ---- */

static uint64_t offset_of(const struct kp_tileir_table *t, const uint8_t *bytes)
{
	return t->width == 4 ? kp_le32(bytes) : kp_le64(bytes);
}

/* Items may be empty but do not overlap, so that together they fit into the section. */
static kpack_error_t check_offsets(struct kp_tileir *m, const struct kp_tileir_table *t,
				   const char *what)
{
	struct kp_tileir_cursor c = {t->offsets, t->data};
	uint64_t before = 0, offset;
	const uint8_t *bytes;

	for (uint64_t i = 0; i < t->count; i++, before = offset) {
		KP_TRY(kp_tileir_get(m, &c, t->width, &bytes));
		offset = offset_of(t, bytes);
		if (offset < before || offset > t->data_size)
			return KP_TILEIR_INVALID(m,
						 "%s %" PRIu64 " begins at %" PRIu64
						 ", not between %" PRIu64 " and %" PRIu64,
						 what, i, offset, before, t->data_size);
	}
	return KPACK_SUCCESS;
}

static kpack_error_t read_table(struct kp_tileir *m, int id, unsigned width,
				struct kp_tileir_table *t)
{
	struct kp_tileir_cursor c = m->sections[id];
	const uint64_t begin = c.pos;

	*t = (struct kp_tileir_table){.width = width};
	if (!c.end)
		return KPACK_SUCCESS;
	KP_TRY(kp_tileir_get_varint(m, &c, &t->count));
	if (t->count == 0)
		return KPACK_SUCCESS;
	KP_TRY(align_cursor(m, &c, begin, width));
	if (t->count > (c.end - c.pos) / width)
		return KP_TILEIR_INVALID(m, "%" PRIu64 " %ss in %" PRIu64 " bytes",
					 t->count, kp_tileir_sections[id], c.end - c.pos);
	t->offsets = c.pos;
	t->data = c.pos + t->count * width;
	t->data_size = c.end - t->data;
	return check_offsets(m, t, kp_tileir_sections[id]);
}

/*
 * Find where string INDEX begins.  Indexes come in any order, so a window would not help.
 */
static kpack_error_t find_string(struct kp_tileir *m, uint64_t index, uint64_t *out)
{
	const struct kp_tileir_table *t = &m->strings;
	uint8_t bytes[8];

	*out = t->data_size;
	if (index == t->count)
		return KPACK_SUCCESS;
	KP_TRY(kp_source_read(&m->window.src, t->offsets + index * t->width, bytes,
			      t->width, m->why));
	*out = offset_of(t, bytes);
	return KPACK_SUCCESS;
}

/* Read string INDEX, which exists, of at most MAX bytes, for free(). */
kpack_error_t kp_tileir_read_string(struct kp_tileir *m, uint64_t index, size_t max,
				    char **out)
{
	uint64_t begin, end;
	char *text;

	KP_TRY(find_string(m, index, &begin));
	KP_TRY(find_string(m, index + 1, &end));
	if (end - begin > max)
		return KP_TILEIR_INVALID(
			m, "string %" PRIu64 " has %" PRIu64 " bytes, the limit is %zu",
			index, end - begin, max);
	text = calloc(1, (size_t)(end - begin) + 1);
	if (!text)
		return kp_fail_memory(m->why, end - begin, "a string");
	*out = text;
	KP_TRY(kp_source_read(&m->window.src, m->strings.data + begin, text,
			      (size_t)(end - begin), m->why));
	if (memchr(text, '\0', (size_t)(end - begin)))
		return KP_TILEIR_INVALID(m, "string %" PRIu64 " contains a NUL byte",
					 index);
	return KPACK_SUCCESS;
}

kpack_error_t kp_tileir_get_string(struct kp_tileir *m, struct kp_tileir_cursor *c,
				   size_t max, char **out)
{
	uint64_t index;

	KP_TRY(kp_tileir_get_index(m, c, m->strings.count, "string", &index));
	return kp_tileir_read_string(m, index, max, out);
}

/* ---- the whole ---- */

static kpack_error_t read_contents(struct kp_tileir *m)
{
	KP_TRY(read_table(m, KP_TILEIR_STRINGS, 4, &m->strings));
	KP_TRY(read_table(m, KP_TILEIR_TYPES, 4, &m->types));
	KP_TRY(read_table(m, KP_TILEIR_CONSTANTS, 8, &m->constants));
	m->named = calloc(1, (size_t)(m->strings.count / 8 + 1));
	if (!m->named)
		return kp_fail_memory(m->why, m->strings.count / 8, "names");
	KP_TRY(kp_tileir_functions(m));
	return kp_tileir_globals(m);
}

static kpack_error_t check_rest(struct kp_tileir *m)
{
	uint64_t pos = m->size;

	KP_TRY(kp_skip_zeros(&m->window.src, &pos, m->why));
	if (pos != m->window.src.size)
		return KP_TILEIR_INVALID(
			m, "offset %" PRIu64 ": bytes after the end marker at %" PRIu64,
			pos, m->size - 1);
	return KPACK_SUCCESS;
}

static kpack_error_t read_module(struct kp_tileir *m)
{
	KP_TRY(read_sections(m));
	KP_TRY(kp_pairs_print(&m->out->facts, m->why, "version", "%u.%u", m->version[0],
			      m->version[1]));
	if (m->tag)
		KP_TRY(kp_pairs_print(&m->out->facts, m->why, "tag", "%u", m->tag));
	if (!is_known(m))
		return kp_pairs_print(&m->out->facts, m->why, "not read",
				      "kernels: only bytecode %d.%d to %d.%d is known",
				      MAJOR, MINOR_MIN, MAJOR, MINOR_MAX);
	KP_TRY(check_rest(m));
	return read_contents(m);
}

static kpack_error_t describe_tileir(const struct kp_source *src, struct kp_object *out,
				     struct kpackx_error *why)
{
	struct kp_tileir m = {.out = out, .hints_left = KP_TILEIR_HINTS_MAX, .why = why};
	kpack_error_t err;

	kp_window_init(&m.window, src);
	err = read_module(&m);
	if (m.many_targets)
		out->arch[0] = '\0';
	kp_compose_fini(&m.hints);
	free(m.named);
	return err;
}

/* Set the arch of a valid module, else leave "". */
static void copy_arch(const struct kp_source *module, struct kp_image *image)
{
	struct kp_object object = {0};

	if (describe_tileir(module, &object, NULL) == KPACK_SUCCESS)
		memcpy(image->arch, object.arch, sizeof(image->arch));
	kp_object_fini(&object);
}

static kpack_error_t parse_tileir(const struct kp_source *src, uint64_t off,
				  struct kp_container *c, struct kp_containers *list,
				  struct kpackx_error *why)
{
	struct kp_tileir m = {.why = why};
	struct kp_source rest, module;
	struct kp_span none = {NULL, 0};

	if (!kp_source_sub(src, off, src->size - off, &rest))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "begins after the end");
	kp_window_init(&m.window, &rest);
	KP_TRY(read_sections(&m));
	c->size = c->payload_size = m.size;
	KP_TRY(kp_containers_add_image(list, c, none, 0, c->size, why));
	if (kp_source_sub(&rest, 0, m.size, &module))
		copy_arch(&module, &list->images[list->n_images - 1]);
	return KPACK_SUCCESS;
}

const struct kp_format kp_format_tileir = {
	.name = "tileir",
	.type = "tileirbc",
	.probe = probe_tileir,
	.parse = parse_tileir,
	.describe = describe_tileir,
};
