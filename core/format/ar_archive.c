/* SPDX-License-Identifier: MIT */
/*
 * Reading ar archives, and changing their members.  An archive is 8 bytes "!<arch>\n" and members.  A member is a
 * header of 60 characters and the member's bytes, padded to an even number with a line
 * feed:
 *
 *	0   16  name
 *	16  12  time, 6 user, 6 group, 8 mode
 *	48  10  size, decimal
 *	58  2   "`\n"
 *
 * Fields are filled with blanks.  GNU ends names with "/"; a name that does not fit is in
 * a member "//" and the field is "/N", N being the offset in that member.  BSD writes
 * "#1/N" and puts the N bytes of the name before the member's bytes.  A thin archive
 * begins with "!<thin>\n", and has the bytes of "/" and "//" only.
 */
#include "ar_archive.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "core/base/order.h"
#include "format.h"

#define MAGIC_SIZE 8
#define HEADER_SIZE 60
#define NAME_SIZE 16
#define SIZE_OFFSET 48
#define SIZE_DIGITS 10
#define NAME_MAX_BSD 32 /* of an index */

struct reader {
	struct kp_window headers, names;
	struct kp_ar *ar;
	size_t cap;
	uint64_t names_size;               /* bytes of all names so far */
	uint64_t table_offset, table_size; /* of the member "//" */
};

/* A header that was read. */
struct header {
	uint64_t at;
	uint8_t name[NAME_SIZE];
	uint64_t offset, size; /* of the bytes */
};

bool kp_ar_probe(struct kp_span head)
{
	return kp_span_starts(head, "!<arch>\n", MAGIC_SIZE) ||
	       kp_span_starts(head, "!<thin>\n", MAGIC_SIZE);
}

/* True if the bytes of a member with that name field are in the archive. */
static bool has_bytes(const struct reader *r, const uint8_t name[NAME_SIZE])
{
	return !r->ar->thin || (name[0] == '/' && (name[1] == '/' || name[1] == ' ' ||
						   name[1] == 'S')); /* "/SYM64/" */
}

/* Parse decimal digits, followed by blanks up to the end of the field. */
static bool parse_number(const uint8_t *field, size_t size, uint64_t *out)
{
	size_t i = 0;

	*out = 0;
	for (; i < size && field[i] >= '0' && field[i] <= '9'; i++)
		*out = 10 * *out + (uint64_t)(field[i] - '0');
	if (i == 0)
		return false;
	while (i < size && field[i] == ' ')
		i++;
	return i == size;
}

static kpack_error_t add_member(struct reader *r, const struct header *h,
				struct kp_span name, struct kpackx_error *why)
{
	struct kp_ar *ar = r->ar;
	struct kp_ar_member *m;

	r->names_size += name.size + 1;
	if (ar->count >= KP_IMAGES_MAX || r->names_size > KP_IDS_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "more than %d members, or %d bytes of names",
			       KP_IMAGES_MAX, KP_IDS_MAX);
	KP_TRY(kp_room(&ar->items, ar->count, &r->cap, "members", why));
	m = &ar->items[ar->count];
	*m = (struct kp_ar_member){strndup((const char *)name.data, name.size), h->at,
				   ar->thin ? 0 : h->offset, h->size};
	if (!m->name)
		return kp_fail_memory(why, name.size + 1, "the name of a member");
	ar->aligned = (ar->count == 0 || ar->aligned) && m->offset % 8 == 0;
	ar->count++;
	return KPACK_SUCCESS;
}

/* Return NAME up to its first NUL byte or line feed, which end names in "//" and BSD's. */
static struct kp_span cut_line(struct kp_span name)
{
	size_t n = 0;

	while (n < name.size && name.data[n] != '\0' && name.data[n] != '\n')
		n++;
	return kp_span_head(name, n);
}

/* True if NAME, a field or what BSD writes behind it, is BSD's or Darwin's index of symbols. */
static bool is_bsd_index(struct kp_span name)
{
	name = cut_line(name);
	while (name.size && name.data[name.size - 1] == ' ')
		name.size--;
	kp_span_take_end(&name, " SORTED");
	return kp_span_is_one_of(name, "__.SYMDEF __.SYMDEF_64");
}

/*
 * Add the member with the header H, under its whole name; symbol indexes and tables of names are no
 * members.
 */
static kpack_error_t take_member(struct reader *r, struct header *h,
				 struct kpackx_error *why)
{
	struct kp_span name = {h->name, NAME_SIZE};
	uint64_t n;

	if (!r->ar->thin && memcmp(h->name, "#1/", 3) == 0 &&
	    parse_number(h->name + 3, NAME_SIZE - 3, &n)) {
		/* the name is the first N bytes, padded with NULs */
		if (n > KP_NAME_MAX || n > h->size)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "member at offset %" PRIu64 ": a name of %" PRIu64
				       " bytes among %" PRIu64 ", at most %d",
				       h->offset, n, h->size, KP_NAME_MAX);
		KP_TRY(kp_window_get(&r->names, h->offset, (size_t)n, &name.data, why));
		name.size = (size_t)n;
		h->offset += n;
		h->size -= n;
		name = cut_line(name);
		return is_bsd_index(name) ? KPACK_SUCCESS : add_member(r, h, name, why);
	}
	if (h->name[0] != '/') {
		while (name.size && name.data[name.size - 1] == ' ')
			name.size--;
		name = cut_line(name);
		if (is_bsd_index(name))
			return KPACK_SUCCESS;
	} else if (parse_number(h->name + 1, NAME_SIZE - 1, &n)) {
		/* the name is at offset N of "//" */
		if (n >= r->table_size)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "member at offset %" PRIu64 ": name at %" PRIu64
				       " of %" PRIu64 " bytes of names",
				       h->offset, n, r->table_size);
		name.size = r->table_size - n < KP_NAME_MAX ? (size_t)(r->table_size - n)
							    : KP_NAME_MAX;
		KP_TRY(kp_window_get(&r->names, r->table_offset + n, name.size,
				     &name.data, why));
		name = cut_line(name);
		if (name.size == KP_NAME_MAX)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "member at offset %" PRIu64
				       ": name of %d bytes or more",
				       h->offset, KP_NAME_MAX);
	} else if (!has_bytes(r, h->name)) {
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "member at offset %" PRIu64
			       ": member of another archive, in a thin archive",
			       h->offset);
	} else {
		if (h->name[1] == '/') {
			r->table_offset = h->offset;
			r->table_size = h->size;
		}
		return KPACK_SUCCESS;
	}
	name.size -= name.size > 1 && name.data[name.size - 1] == '/';
	return add_member(r, h, name, why);
}

/* As kp_ar_read, but on failure OUT holds the members before the damage. */
static kpack_error_t read_until_damage(const struct kp_source *src, struct kp_ar *out,
				       struct kpackx_error *why)
{
	KP_AUTO_FREE struct reader *r = NULL; /* windows are large */
	struct kp_span magic = {.size = MAGIC_SIZE};
	const uint8_t *p;
	struct header h;

	*out = (struct kp_ar){0};
	KP_TRY(kp_new(&r, 1, "an archive", why));
	r->ar = out;
	kp_window_init(&r->headers, src);
	kp_window_init(&r->names, src);
	KP_TRY(kp_window_get(&r->headers, 0, MAGIC_SIZE, &magic.data, why));
	if (!kp_ar_probe(magic))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "not an ar archive");
	out->thin = memcmp(magic.data, "!<thin>", 7) == 0;
	for (uint64_t pos = MAGIC_SIZE, end; pos < src->size; pos = end) {
		KP_TRY(kp_window_get(&r->headers, pos, HEADER_SIZE, &p, why));
		if (p[58] != '`' || p[59] != '\n' ||
		    !parse_number(p + SIZE_OFFSET, SIZE_DIGITS, &h.size))
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "offset %" PRIu64 ": no header of a member", pos);
		memcpy(h.name, p, NAME_SIZE);
		h.at = pos;
		h.offset = pos + HEADER_SIZE;
		if (has_bytes(r, h.name) && !kp_range_ok(src->size, h.offset, h.size))
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "member at offset %" PRIu64 ": %" PRIu64
				       " bytes pass the end at %" PRIu64,
				       pos, h.size, src->size);
		end = h.offset + (has_bytes(r, h.name) ? h.size : 0);
		end += end & 1;
		KP_TRY(take_member(r, &h, why));
	}
	return KPACK_SUCCESS;
}

kpack_error_t kp_ar_read(const struct kp_source *src, struct kp_ar *out,
			 struct kpackx_error *why)
{
	kpack_error_t err = read_until_damage(src, out, why);

	if (err)
		kp_ar_fini(out);
	return err;
}

void kp_ar_fini(struct kp_ar *ar)
{
	for (size_t i = 0; i < ar->count; i++)
		free(ar->items[i].name);
	free(ar->items);
	*ar = (struct kp_ar){0};
}

/* ---- changing members ---- */

/*
 * Bytes outside members are copied, so that archives of any tool stay what they are; only the sizes of
 * members change in their headers, and in the index, which precedes the members, the offsets.
 * The index is changed last, in the output, when all offsets are known.
 */

struct edited {
	const struct kp_source *src;
	const struct kp_ar *ar;
	struct kp_outfile *out;
	uint64_t pos;      /* of the output */
	uint64_t *headers; /* per member: offset of its header in the output */
};

static kpack_error_t copy_bytes(struct edited *e, uint64_t from, uint64_t size,
				struct kpackx_error *why)
{
	struct kp_sink sink = {.out = e->out, .size = e->pos};
	struct kp_source part;

	if (!kp_source_sub(e->src, from, size, &part))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "%" PRIu64 " bytes at offset %" PRIu64
			       " pass the archive's end",
			       size, from);
	KP_TRY(kp_sink_copy(&sink, &part, why));
	e->pos += size;
	return KPACK_SUCCESS;
}

/* Where the offsets of members are in an index. */
struct offsets {
	uint64_t at, n;
	unsigned width, stride; /* bytes of an offset, and from one to the next */
	bool big;
};

/* Move the offsets, in the output too. */
static kpack_error_t move_offsets(struct edited *e, const struct offsets *o,
				  struct kpackx_error *why)
{
	uint8_t bytes[4096];
	uint64_t at = o->at;
	size_t step;

	for (uint64_t left = o->n * o->stride; left; left -= step, at += step) {
		step = left < sizeof(bytes) ? (size_t)left : sizeof(bytes);
		KP_TRY(kp_source_read(e->src, at, bytes, step, why));
		for (size_t i = 0; i < step; i += o->stride) {
			uint8_t *p = bytes + i + o->stride - o->width;
			struct kp_ar_member probe = {
				.header = kp_number(p, o->width, o->big)};
			const struct kp_ar_member *m =
				kp_find(e->ar->items, e->ar->count, &probe,
					KP_BY_NUMBER(struct kp_ar_member, header));
			uint64_t to = m ? e->headers[m - e->ar->items] : 0;

			if (!m || (o->width == 4 && to > UINT32_MAX))
				return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
					       "the index has an offset where no member "
					       "begins");
			for (unsigned k = 0; k < o->width; k++)
				p[o->big ? o->width - 1 - k : k] =
					(uint8_t)(to >> (8 * k));
		}
		KP_TRY(kp_outfile_pwrite(e->out, at, bytes, step, why));
	}
	return KPACK_SUCCESS;
}

/*
 * Move the index, if there is one: it is the first thing in the archive.
 * GNU's: the number of symbols, their members' offsets, their names; all big-endian.
 * BSD's and Darwin's, in the objects' byte order: the bytes of the pairs, pairs of a name's
 * and a member's offset, the bytes of the names, the names.
 */
static kpack_error_t move_index(struct edited *e, struct kpackx_error *why)
{
	uint8_t h[HEADER_SIZE], name[NAME_MAX_BSD], bytes[8];
	uint64_t at = MAGIC_SIZE + HEADER_SIZE, size, n = 0;
	struct kp_span text = {h, NAME_SIZE};
	struct offsets o = {.width = 4, .big = true};

	if (e->ar->count == 0 || e->ar->items[0].header < at)
		return KPACK_SUCCESS;
	KP_TRY(kp_source_read(e->src, MAGIC_SIZE, h, HEADER_SIZE, why));
	parse_number(h + SIZE_OFFSET, SIZE_DIGITS, &size);
	if (memcmp(h, "//", 2) == 0)
		return KPACK_SUCCESS;
	if (memcmp(h, "/ ", 2) == 0 || memcmp(h, "/SYM64/ ", 8) == 0) {
		o.width = o.stride = h[1] == ' ' ? 4 : 8;
		o.at = at + o.width;
		if (size < o.width)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "an index of %" PRIu64 " bytes", size);
		KP_TRY(kp_source_read(e->src, at, bytes, o.width, why));
		o.n = kp_number(bytes, o.width, true);
		if (o.n > (size - o.width) / o.width)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "an index of %" PRIu64 " symbols in %" PRIu64
				       " bytes",
				       o.n, size);
		return move_offsets(e, &o, why);
	}
	if (memcmp(h, "#1/", 3) == 0 && parse_number(h + 3, NAME_SIZE - 3, &n)) {
		text.size = n < NAME_MAX_BSD ? (size_t)n : NAME_MAX_BSD;
		KP_TRY(kp_source_read(e->src, at, name, text.size, why));
		text.data = name;
	}
	if (!is_bsd_index(text) || n > size)
		return kp_fail(
			why, KPACK_ERROR_NOT_IMPLEMENTED,
			"an archive whose index of symbols is not known: rewrite it "
			"with ranlib first");
	at += n;
	size -= n;
	o.width = kp_span_starts(text, "__.SYMDEF_64", 12) ? 8 : 4;
	o.stride = 2 * o.width;
	o.at = at + o.width;
	for (unsigned big = 0; big < 2 && size >= o.stride; big++) {
		uint64_t pairs, names;

		KP_TRY(kp_source_read(e->src, at, bytes, o.width, why));
		pairs = kp_number(bytes, o.width, big);
		if (pairs > size - o.stride || pairs % o.stride)
			continue;
		KP_TRY(kp_source_read(e->src, o.at + pairs, bytes, o.width, why));
		names = kp_number(bytes, o.width, big);
		if (names > size - o.stride - pairs)
			continue;
		o.n = pairs / o.stride;
		o.big = big;
		return move_offsets(e, &o, why);
	}
	return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
		       "an index of %" PRIu64 " bytes whose parts do not fit into it",
		       size);
}

/* Refuse another index between the first one and the members, as in Windows' libraries. */
static kpack_error_t check_gap(struct edited *e, uint64_t from, uint64_t to,
			       struct kpackx_error *why)
{
	uint8_t h[HEADER_SIZE];
	uint64_t size;

	if (from == MAGIC_SIZE && to >= MAGIC_SIZE + HEADER_SIZE) {
		KP_TRY(kp_source_read(e->src, from, h, HEADER_SIZE, why));
		parse_number(h + SIZE_OFFSET, SIZE_DIGITS, &size);
		if (size > to - from - HEADER_SIZE)
			return KPACK_SUCCESS;
		from += HEADER_SIZE + size + (size & 1);
	}
	if (to < from || to - from < NAME_SIZE)
		return KPACK_SUCCESS;
	KP_TRY(kp_source_read(e->src, from, h, NAME_SIZE, why));
	return memcmp(h, "//", 2) == 0 ? KPACK_SUCCESS
				       : kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
						 "an archive with a second index");
}

kpack_error_t kp_ar_rewrite(const struct kp_source *src, const struct kp_ar *ar,
			    const struct kp_ar_edit *edit, struct kp_outfile *out,
			    struct kpackx_error *why)
{
	KP_AUTO_FREE uint64_t *headers = NULL;
	struct edited e = {.src = src, .ar = ar, .out = out};
	uint64_t from = 0;

	if (ar->thin)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "a thin archive: its members are other files");
	KP_TRY(kp_new(&headers, ar->count, "members", why));
	e.headers = headers;
	for (size_t i = 0; i < ar->count; i++) {
		const struct kp_ar_member *m = &ar->items[i];
		uint64_t size = m->size, before = m->offset - m->header;
		bool same = false;
		char text[24];

		if (m->header > from) {
			KP_TRY(check_gap(&e, from ? from : MAGIC_SIZE, m->header, why));
			KP_TRY(copy_bytes(&e, from, m->header - from, why));
		}
		headers[i] = e.pos;
		KP_TRY(copy_bytes(&e, m->header, before, why));
		KP_TRY(edit->write(edit->arg, i, out, e.pos, &size, &same, why));
		if (same) {
			KP_TRY(copy_bytes(&e, m->offset, m->size, why));
		} else {
			/* other bytes, whose number goes into the header; BSD's name counts */
			unsigned pad = kp_ar_padding(ar, i, size);

			if (snprintf(text, sizeof(text), "%-10" PRIu64,
				     size + pad + before - HEADER_SIZE) != SIZE_DIGITS)
				return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
					       "a member of %" PRIu64 " bytes", size);
			KP_TRY(kp_outfile_pwrite(out, headers[i] + SIZE_OFFSET, text,
						 SIZE_DIGITS, why));
			KP_TRY(kp_outfile_pwrite(out, e.pos + size, "\n\n\n\n\n\n\n", pad,
						 why));
			e.pos += size + pad;
		}
		if (e.pos & 1) {
			KP_TRY(kp_outfile_pwrite(out, e.pos, "\n", 1, why));
			e.pos++;
		}
		from = m->offset + m->size;
		from += from & 1;
	}
	if (src->size > from)
		KP_TRY(copy_bytes(&e, from, src->size - from, why));
	return move_index(&e, why);
}

/* ---- the format: static libraries, heterogeneous archives of bundles, of device code ---- */

/* After a failure the members before the damage are listed, which only salvaging keeps. */
static kpack_error_t parse_archive(const struct kp_source *src, struct kp_container *c,
				   struct kp_containers *list, struct kpackx_error *why)
{
	struct kp_image *image;
	struct kp_ar ar;
	kpack_error_t err = read_until_damage(src, &ar, why), added = KPACK_SUCCESS;

	if (!err && ar.thin)
		err = kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			      "a thin archive: its members are other files, which are "
			      "not looked for");
	c->size = c->payload_size = src->size;
	for (size_t i = 0; i < ar.count && !ar.thin && !added; i++)
		added = kp_containers_add_named(list, c, kp_span_str(ar.items[i].name),
						ar.items[i].offset, ar.items[i].size,
						&image, why);
	kp_ar_fini(&ar);
	return err ? err : added;
}

static kpack_error_t salvage_archive(const struct kp_source *src, struct kp_container *c,
				     struct kp_containers *list, struct kpackx_error *why)
{
	kpack_error_t err = parse_archive(src, c, list, why);

	return c->n_images ? KPACK_SUCCESS : err;
}

const struct kp_format kp_format_archive = {
	.name = "archive",
	.probe = kp_ar_probe,
	.parse = parse_archive,
	.salvage = salvage_archive,
};
