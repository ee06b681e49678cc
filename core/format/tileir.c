/* SPDX-License-Identifier: MIT */
/*
 * TileIR bytecode: the form of cuTile kernels from which NVIDIA's compiler makes a cubin.
 *
 *   0x7f "TileIR" 0, major, minor, u16 tag
 *   sections: id (0x80 set: aligned), varint length, varint alignment, padding, payload
 *   0
 *
 * The alignment refers to file offsets.  Varints have 7 bits per byte, the low bits
 * first.  The strings are a table: varint count, u32 offsets, aligned, and the bytes.  The
 * functions are varint count, and for each: varint name (a string's number), type, u8
 * flags, varint debugging, hints if flagged, varint bytes of the body, the body.  Hints
 * are values by name for each target, of which only the targets are kept.  Other sections,
 * and bodies, are not read.
 */
#include <inttypes.h>
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "format.h"

#define MAJOR 13
#define MINOR_MIN 1
#define MINOR_MAX 4
#define HEADER_SIZE 12

enum { STRINGS = 1, FUNCTIONS, DEBUG, CONSTANTS, TYPES, GLOBALS, SECTIONS };
static const char *const section_names[SECTIONS] = {
	NULL, "string", "function", "debug", "constant", "type", "global",
};

enum { FUNCTION_PRIVATE = 1, FUNCTION_ENTRY = 2, FUNCTION_HINTS = 4 };
enum { TAG_INTEGER = 0x01, TAG_BOOL = 0x03, TAG_DICTIONARY = 0x0a, TAG_HINTS = 0x0b };

/* The next byte to read, and the end of the range. */
struct cursor {
	uint64_t pos, end;
};

struct tileir {
	struct kp_window window;
	uint8_t version[2];
	uint16_t tag;
	bool known;                       /* the version is one of those above */
	struct cursor sections[SECTIONS]; /* end 0: absent */
	uint64_t size;
	/* The strings: the last ends with the section. */
	uint64_t n_strings, offsets, data, data_size;
	uint64_t copied; /* bytes of kernels' names */
	struct kp_object *out;
	bool many_targets;
	struct kpackx_error *why;
};

#define INVALID(m, ...) kp_fail((m)->why, KPACK_ERROR_INVALID_FORMAT, __VA_ARGS__)

static bool probe_tileir(struct kp_span head)
{
	return kp_span_starts(head, "\x7fTileIR", 8);
}

/* ---- bytes ---- */

/* Get the next N bytes; they stay valid until the next call. */
static kpack_error_t get_bytes(struct tileir *m, struct cursor *c, size_t n,
			       const uint8_t **bytes)
{
	if (!kp_range_ok(c->end, c->pos, n))
		return INVALID(m,
			       "offset %" PRIu64 ": %zu bytes pass the end at %" PRIu64,
			       c->pos, n, c->end);
	KP_TRY(kp_window_get(&m->window, c->pos, n, bytes, m->why));
	c->pos += n;
	return KPACK_SUCCESS;
}

/* Read a number; what does not fit into 64 bits is refused, also as zeros in front. */
static kpack_error_t get_varint(struct tileir *m, struct cursor *c, uint64_t *out)
{
	const uint64_t begin = c->pos;
	const uint8_t *byte;

	*out = 0;
	for (unsigned shift = 0; shift < 64; shift += 7) {
		KP_TRY(get_bytes(m, c, 1, &byte));
		if (shift == 63 && *byte > 1)
			break;
		*out |= (uint64_t)(*byte & 0x7f) << shift;
		if (!(*byte & 0x80))
			return KPACK_SUCCESS;
	}
	return INVALID(m, "offset %" PRIu64 ": a number of more than 64 bits", begin);
}

/* Read a number of a string, and that string, of at most MAX bytes; the caller frees it. */
static kpack_error_t get_string(struct tileir *m, struct cursor *c, size_t max,
				char **out)
{
	const uint64_t at = c->pos;
	struct kp_source bytes;
	uint64_t number, begin, end;
	uint8_t ends[8];

	KP_TRY(get_varint(m, c, &number));
	if (number >= m->n_strings)
		return INVALID(m, "offset %" PRIu64 ": string %" PRIu64 " of %" PRIu64,
			       at, number, m->n_strings);
	/* numbers come in any order, so a window would not help */
	KP_TRY(kp_source_read(&m->window.src, m->offsets + 4 * number, ends,
			      number + 1 < m->n_strings ? 8 : 4, m->why));
	begin = kp_le32(ends);
	end = number + 1 < m->n_strings ? kp_le32(ends + 4) : m->data_size;
	if (begin > end || end > m->data_size)
		return INVALID(m,
			       "string %" PRIu64 " begins at %" PRIu64
			       " and ends at %" PRIu64 " of %" PRIu64 " bytes",
			       number, begin, end, m->data_size);
	if (end - begin > max)
		return INVALID(
			m, "string %" PRIu64 " has %" PRIu64 " bytes, the limit is %zu",
			number, end - begin, max);
	kp_source_sub(&m->window.src, m->data + begin, end - begin, &bytes);
	KP_TRY(kp_source_load(&bytes, max, "a string", (uint8_t **)out, m->why));
	if (memchr(*out, '\0', (size_t)bytes.size))
		return INVALID(m, "string %" PRIu64 " contains a NUL byte", number);
	return KPACK_SUCCESS;
}

/* ---- sections ---- */

/*
 * Read from the header to the end marker.  No field states the size of a module, so this
 * is also how its end is found where modules follow one another.
 */
static kpack_error_t read_sections(struct tileir *m)
{
	struct cursor c = {0, m->window.src.size};
	const uint8_t *p;

	KP_TRY(get_bytes(m, &c, HEADER_SIZE, &p));
	m->version[0] = p[8];
	m->version[1] = p[9];
	m->tag = kp_le16(p + 10);
	m->known = p[8] == MAJOR && p[9] >= MINOR_MIN && p[9] <= MINOR_MAX;
	m->size = c.end;
	if (!m->known) /* the format of its sections is unknown too */
		return KPACK_SUCCESS;
	for (;;) {
		const uint64_t begin = c.pos;
		uint64_t length, alignment = 1, fill;
		bool aligned;
		uint8_t id;

		KP_TRY(get_bytes(m, &c, 1, &p));
		id = *p & 0x7f;
		aligned = *p & 0x80;
		if (*p == 0)
			break;
		if (id == 0 || id >= SECTIONS)
			return INVALID(m, "offset %" PRIu64 ": section %u is not known",
				       begin, id);
		if (m->sections[id].end)
			return INVALID(m, "offset %" PRIu64 ": a second %s section",
				       begin, section_names[id]);
		KP_TRY(get_varint(m, &c, &length));
		if (aligned)
			KP_TRY(get_varint(m, &c, &alignment));
		if (alignment == 0 || (alignment & (alignment - 1)))
			return INVALID(m,
				       "offset %" PRIu64 ": alignment %" PRIu64
				       " is no power of two",
				       begin, alignment);
		fill = (0 - c.pos) & (alignment - 1);
		if (!kp_range_ok(c.end, c.pos, fill) ||
		    !kp_range_ok(c.end, c.pos + fill, length))
			return INVALID(m,
				       "offset %" PRIu64 ": %s section of %" PRIu64
				       " bytes passes the end at %" PRIu64,
				       begin, section_names[id], length, c.end);
		c.pos += fill;
		m->sections[id] = (struct cursor){c.pos, c.pos + length};
		c.pos += length;
	}
	m->size = c.pos;
	for (int i = STRINGS; i <= FUNCTIONS; i++)
		if (!m->sections[i].end)
			return INVALID(m, "there is no %s section", section_names[i]);
	return KPACK_SUCCESS;
}

/* ---- functions ---- */

/* Skip the hints of a function; a target that they name becomes the object's arch. */
static kpack_error_t read_hints(struct tileir *m, struct cursor *c)
{
	char *arch = m->out->arch;
	uint64_t targets, count, ignored;
	const uint8_t *p;

	KP_TRY(get_bytes(m, c, 1, &p));
	if (*p != TAG_HINTS)
		return INVALID(m, "offset %" PRIu64 ": attribute 0x%02x is no hints",
			       c->pos - 1, *p);
	KP_TRY(get_varint(m, c, &targets));
	while (targets--) {
		KP_AUTO_FREE char *target = NULL;

		KP_TRY(get_string(m, c, KP_TILEIR_HINT_MAX, &target));
		if (strncmp(target, "sm_", 3) == 0 && target[3] &&
		    strlen(target) < sizeof(m->out->arch) && strcmp(target, arch) != 0) {
			m->many_targets |= arch[0] != '\0';
			strcpy(arch, target);
		}
		KP_TRY(get_bytes(m, c, 1, &p));
		if (*p != TAG_DICTIONARY)
			return INVALID(m,
				       "offset %" PRIu64
				       ": attribute 0x%02x is no dictionary",
				       c->pos - 1, *p);
		KP_TRY(get_varint(m, c, &count));
		while (count--) {
			KP_TRY(get_varint(m, c, &ignored)); /* its name */
			KP_TRY(get_bytes(m, c, 1, &p));
			if (*p == TAG_INTEGER) {
				KP_TRY(get_varint(m, c, &ignored)); /* its type */
				KP_TRY(get_varint(m, c, &ignored));
			} else if (*p == TAG_BOOL) {
				KP_TRY(get_bytes(m, c, 1, &p));
			} else {
				return INVALID(m,
					       "offset %" PRIu64 ": attribute 0x%02x is "
					       "no integer and no bool",
					       c->pos - 1, *p);
			}
		}
	}
	return KPACK_SUCCESS;
}

/* Read a function, and skip its body; a private or called one is no kernel. */
static kpack_error_t read_function(struct tileir *m, struct cursor *c)
{
	KP_AUTO_FREE char *name = NULL;
	uint64_t ignored, body;
	struct kp_kernel *kernel;
	const uint8_t *p;
	uint8_t flags;

	KP_TRY(get_string(m, c, KP_CUTILE_NAME_MAX, &name));
	KP_TRY(get_varint(m, c, &ignored)); /* type */
	KP_TRY(get_bytes(m, c, 1, &p));
	flags = *p;
	if (flags & ~(FUNCTION_PRIVATE | FUNCTION_ENTRY | FUNCTION_HINTS))
		return INVALID(m, "offset %" PRIu64 ": function flags 0x%02x", c->pos - 1,
			       flags);
	KP_TRY(get_varint(m, c, &ignored)); /* debug attribute */
	if (flags & FUNCTION_HINTS)
		KP_TRY(read_hints(m, c));
	KP_TRY(get_varint(m, c, &body));
	if (!kp_range_ok(c->end, c->pos, body))
		return INVALID(m,
			       "offset %" PRIu64 ": a body of %" PRIu64
			       " bytes passes the end at %" PRIu64,
			       c->pos, body, c->end);
	c->pos += body;
	if (!(flags & FUNCTION_ENTRY))
		return KPACK_SUCCESS;
	/* many functions may have one name: a small file could request all memory */
	m->copied += strlen(name);
	if (m->copied > m->data_size)
		return INVALID(m, "two functions have one name");
	return kp_object_add_kernel(m->out, kp_span_str(name), &kernel, m->why);
}

static kpack_error_t describe_tileir(const struct kp_source *src, struct kp_object *out,
				     struct kpackx_error *why)
{
	struct tileir m = {.out = out, .why = why};
	uint64_t pos, begin, count;
	struct cursor c;

	kp_window_init(&m.window, src);
	KP_TRY(read_sections(&m));
	KP_TRY(kp_pairs_print(&out->facts, why, "version", "%u.%u", m.version[0],
			      m.version[1]));
	if (m.tag)
		KP_TRY(kp_pairs_print(&out->facts, why, "tag", "%u", m.tag));
	if (!m.known)
		return kp_pairs_print(&out->facts, why, "not read",
				      "kernels: only bytecode %d.%d to %d.%d is known",
				      MAJOR, MINOR_MIN, MAJOR, MINOR_MAX);
	pos = m.size;
	KP_TRY(kp_skip_zeros(src, &pos, why));
	if (pos != src->size)
		return INVALID(
			&m, "offset %" PRIu64 ": bytes after the end marker at %" PRIu64,
			pos, m.size - 1);
	/* the offsets of strings are checked when one is read: others do no harm */
	c = m.sections[STRINGS];
	begin = c.pos;
	KP_TRY(get_varint(&m, &c, &m.n_strings));
	m.offsets = c.pos + ((0 - (c.pos - begin)) & 3);
	if (m.n_strings && (m.offsets > c.end || m.n_strings > (c.end - m.offsets) / 4))
		return INVALID(&m, "%" PRIu64 " strings in %" PRIu64 " bytes",
			       m.n_strings, c.end - c.pos);
	m.data = m.offsets + 4 * m.n_strings;
	m.data_size = m.n_strings ? c.end - m.data : 0;
	c = m.sections[FUNCTIONS];
	KP_TRY(get_varint(&m, &c, &count));
	KP_TRY(kp_pairs_print(&out->facts, why, "functions", "%" PRIu64, count));
	for (uint64_t i = 0; i < count; i++) {
		kpack_error_t err = read_function(&m, &c);

		if (err)
			return kp_fail_prefix(why, err, "function %" PRIu64, i);
	}
	if (c.pos != c.end)
		return INVALID(
			&m, "%" PRIu64 " bytes follow the last of the function section",
			c.end - c.pos);
	if (m.many_targets) /* one module, compiled for several */
		out->arch[0] = '\0';
	return KPACK_SUCCESS;
}

/* The target of a damaged module is not known, but its bytes can still be extracted. */
static kpack_error_t parse_tileir(const struct kp_source *src, struct kp_container *c,
				  struct kp_containers *list, struct kpackx_error *why)
{
	struct kp_object object = {0};
	struct tileir m = {.why = why};
	struct kp_image *image;
	struct kp_source module;

	kp_window_init(&m.window, src);
	KP_TRY(read_sections(&m));
	KP_TRY(kp_containers_add_object(list, c, m.size, &image, why));
	kp_source_sub(src, 0, m.size, &module);
	if (describe_tileir(&module, &object, NULL) == KPACK_SUCCESS)
		memcpy(image->arch, object.arch, sizeof(image->arch));
	kp_object_fini(&object);
	return KPACK_SUCCESS;
}

const struct kp_format kp_format_tileir = {
	.name = "tileir",
	.type = "tileirbc",
	.probe = probe_tileir,
	.parse = parse_tileir,
	.describe = describe_tileir,
};
