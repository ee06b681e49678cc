/* SPDX-License-Identifier: MIT */
/*
 * Changing members of an ar archive (ar_archive.c has the format).  Bytes outside members
 * are copied, so that archives of any tool stay what they are; only the sizes of members
 * change in their headers, and in the index, which precedes the members, the offsets.
 * The index is changed last, in the output, when all offsets are known.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "ar_archive.h"
#include "core/base/alloc.h"
#include "core/base/order.h"

#define MAGIC_SIZE 8
#define HEADER_SIZE 60
#define SIZE_OFFSET 48
#define SIZE_DIGITS 10
#define NAME_SIZE 16
#define NAME_MAX_BSD 32 /* of an index */

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

/* --- members --------------------------------------------------------------------------- */

/*
 * Copy the member's header, let EDIT write its bytes, and put their number into the header
 * if they are others.
 */
static kpack_error_t put_member(struct edited *e, const struct kp_ar_edit *edit, size_t i,
				struct kpackx_error *why)
{
	const struct kp_ar_member *m = &e->ar->items[i];
	uint64_t size = m->size, before = m->offset - m->header;
	bool same = false;
	char text[24];

	e->headers[i] = e->pos;
	KP_TRY(copy_bytes(e, m->header, before, why));
	KP_TRY(edit->write(edit->arg, i, e->out, e->pos, &size, &same, why));
	if (same) {
		KP_TRY(copy_bytes(e, m->offset, m->size, why));
	} else {
		unsigned pad = kp_ar_padding(e->ar, i, size);

		/* BSD's name behind the header counts */
		if (snprintf(text, sizeof(text), "%-10" PRIu64,
			     size + pad + before - HEADER_SIZE) != SIZE_DIGITS)
			return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
				       "a member of %" PRIu64 " bytes", size);
		KP_TRY(kp_outfile_pwrite(e->out, e->headers[i] + SIZE_OFFSET, text,
					 SIZE_DIGITS, why));
		KP_TRY(kp_outfile_pwrite(e->out, e->pos + size, "\n\n\n\n\n\n\n", pad,
					 why));
		e->pos += size + pad;
	}
	if (e->pos & 1) {
		KP_TRY(kp_outfile_pwrite(e->out, e->pos, "\n", 1, why));
		e->pos++;
	}
	return KPACK_SUCCESS;
}

/* --- the index ------------------------------------------------------------------------- */

static uint64_t get_number(const uint8_t *p, unsigned width, bool big)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < width; i++)
		n = n << 8 | p[big ? i : width - 1 - i];
	return n;
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
				.header = get_number(p, o->width, o->big)};
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
	char h[HEADER_SIZE + 1], name[NAME_MAX_BSD + 1] = "";
	uint64_t at = MAGIC_SIZE + HEADER_SIZE, size, n = 0;
	struct kp_span text = {(const uint8_t *)h, NAME_SIZE};
	struct offsets o = {.width = 4, .big = true};
	uint8_t bytes[8];

	if (e->ar->count == 0 || e->ar->items[0].header < at)
		return KPACK_SUCCESS;
	KP_TRY(kp_source_read(e->src, MAGIC_SIZE, h, HEADER_SIZE, why));
	h[SIZE_OFFSET + SIZE_DIGITS] = '\0';
	size = strtoull(h + SIZE_OFFSET, NULL, 10);
	if (strncmp(h, "//", 2) == 0)
		return KPACK_SUCCESS;
	if (strncmp(h, "/ ", 2) == 0 || strncmp(h, "/SYM64/ ", 8) == 0) {
		o.width = o.stride = h[1] == ' ' ? 4 : 8;
		o.at = at + o.width;
		if (size < o.width)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "an index of %" PRIu64 " bytes", size);
		KP_TRY(kp_source_read(e->src, at, bytes, o.width, why));
		o.n = get_number(bytes, o.width, true);
		if (o.n > (size - o.width) / o.width)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "an index of %" PRIu64 " symbols in %" PRIu64
				       " bytes",
				       o.n, size);
		return move_offsets(e, &o, why);
	}
	if (strncmp(h, "#1/", 3) == 0) {
		n = strtoull(h + 3, NULL, 10);
		text.size = n < NAME_MAX_BSD ? (size_t)n : NAME_MAX_BSD;
		KP_TRY(kp_source_read(e->src, at, name, text.size, why));
		text.data = (const uint8_t *)name;
	}
	if (!kp_ar_is_bsd_index(text) || n > size)
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
		pairs = get_number(bytes, o.width, big);
		if (pairs > size - o.stride || pairs % o.stride)
			continue;
		KP_TRY(kp_source_read(e->src, o.at + pairs, bytes, o.width, why));
		names = get_number(bytes, o.width, big);
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

/* Another index between the first one and the members, as in Windows' libraries. */
static kpack_error_t check_gap(struct edited *e, uint64_t from, uint64_t to,
			       struct kpackx_error *why)
{
	char h[16];

	if (from == MAGIC_SIZE && to >= MAGIC_SIZE + HEADER_SIZE) {
		char first[HEADER_SIZE + 1];
		uint64_t size;

		KP_TRY(kp_source_read(e->src, from, first, HEADER_SIZE, why));
		first[SIZE_OFFSET + SIZE_DIGITS] = '\0';
		size = strtoull(first + SIZE_OFFSET, NULL, 10);
		if (size > to - from - HEADER_SIZE)
			return KPACK_SUCCESS;
		from += HEADER_SIZE + size + (size & 1);
	}
	if (to < from || to - from < sizeof(h))
		return KPACK_SUCCESS;
	KP_TRY(kp_source_read(e->src, from, h, sizeof(h), why));
	return memcmp(h, "//", 2) == 0 ? KPACK_SUCCESS
				       : kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
						 "an archive with a second index");
}

/* --------------------------------------------------------------------------------------- */

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

		if (m->header > from) {
			KP_TRY(check_gap(&e, from ? from : MAGIC_SIZE, m->header, why));
			KP_TRY(copy_bytes(&e, from, m->header - from, why));
		}
		KP_TRY(put_member(&e, edit, i, why));
		from = m->offset + m->size;
		from += from & 1;
	}
	if (src->size > from)
		KP_TRY(copy_bytes(&e, from, src->size - from, why));
	return move_index(&e, why);
}
