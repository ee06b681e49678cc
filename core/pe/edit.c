/* SPDX-License-Identifier: MIT */
/*
 * Editing PE32+ files.  The file that is read, and, in brackets, what a conversion does:
 *
 *	DOS header and stub, PE headers, section headers	[changed; more headers at their end]
 *	the bytes of the sections, at multiples of FileAlignment	[one goes, new ones at the end]
 *	the tail: symbols, and other bytes that are in no section	[moves, or all is pinned]
 *	the signature, which covers all before it	[goes]
 *
 * Windows maps sections that follow each other without a gap, so that one that loses its bytes
 * keeps its size in memory, as zeros.
 */
#include "edit.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>
#include "core/base/alloc.h"
#include "core/base/order.h"

/* Offsets in the headers, from "PE\0\0" on. */
enum {
	H_SECTIONS = 6,
	H_SYMBOLS = 12,
	H_DATA_SIZE = 32,
	H_IMAGE_SIZE = 80,
	H_HEADERS_SIZE = 84,
	H_CHECKSUM = 88,
	H_SIGNATURE = 136 + 8 * KP_PE_SIGNATURE,
};
enum { SECTION = 40, DEBUG_ROW = 28, DEBUG_MAX = 64 };
/* Windows loads no file with more. */
enum { SECTIONS_MAX = 96 };
/* Headers are in memory while they are changed. */
enum { HEADERS_MAX = 1 << 20 };

static uint64_t round_up(uint64_t n, uint32_t align)
{
	return (n + align - 1) & ~(uint64_t)(align - 1);
}

static kpack_error_t refuse(struct kpackx_error *why, const char *text)
{
	return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED, "pe: %s", text);
}

/* A part in the order of the bytes in the file; those without follow the one before them. */
struct place {
	uint64_t from;
	size_t index;
};

static kpack_error_t sort_parts(const struct kp_pe_edit *ed, struct place **out,
				struct kpackx_error *why)
{
	uint64_t last = 0;

	KP_TRY(kp_new(out, ed->n, "sections", why));
	for (size_t i = 0; i < ed->n; i++) {
		last = ed->parts[i].from ? ed->parts[i].from : last;
		(*out)[i] = (struct place){last, i};
	}
	if (ed->n)
		kp_sort(*out, ed->n, KP_BY_NUMBER(struct place, from),
			KP_BY_NUMBER(struct place, index));
	return KPACK_SUCCESS;
}

/* Find the first byte from OFF on, before END, that is not zero; *OFF is END: there is none. */
static kpack_error_t skip_zeros(const struct kp_source *file, uint64_t *off, uint64_t end,
				struct kpackx_error *why)
{
	uint8_t buf[4096];

	while (*off < end) {
		size_t n = end - *off < sizeof(buf) ? (size_t)(end - *off) : sizeof(buf);

		KP_TRY(kp_source_read(file, *off, buf, n, why));
		for (size_t i = 0; i < n; i++, ++*off)
			if (buf[i])
				return KPACK_SUCCESS;
	}
	return KPACK_SUCCESS;
}

/* ---- the debug directory, whose rows have file offsets ---- */

struct debug_row {
	uint64_t at;   /* of the offset of its data */
	uint64_t data; /* that offset */
	uint64_t size;
};

static kpack_error_t read_debug(const struct kp_pe_edit *ed,
				struct debug_row rows[DEBUG_MAX], size_t *n,
				struct kpackx_error *why)
{
	uint32_t size = ed->in.directories[KP_PE_DEBUG].size;
	uint8_t bytes[DEBUG_ROW];
	uint64_t at;

	*n = 0;
	if (size / DEBUG_ROW > DEBUG_MAX ||
	    (size &&
	     !kp_pe_find(&ed->in, ed->in.directories[KP_PE_DEBUG].rva, size, &at)))
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "pe: a debug directory of %" PRIu32 " bytes at 0x%" PRIx32,
			       size, ed->in.directories[KP_PE_DEBUG].rva);
	for (; size >= DEBUG_ROW; size -= DEBUG_ROW, at += DEBUG_ROW) {
		KP_TRY(kp_source_read(&ed->file, at, bytes, DEBUG_ROW, why));
		rows[(*n)++] = (struct debug_row){at + 24, kp_le32(bytes + 24),
						  kp_le32(bytes + 16)};
	}
	return KPACK_SUCCESS;
}

/* ---- opening ---- */

static kpack_error_t check_headers(const struct kp_pe *in, uint64_t size,
				   struct kpackx_error *why)
{
	uint64_t end = 0;

	if (!in->wide)
		return refuse(why, "only 64-bit files (PE32+) are changed");
	if (in->machine != KP_PE_X86_64 && in->machine != KP_PE_ARM64)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "pe: machine 0x%x: only x86-64 and ARM64", in->machine);
	/* with smaller pages a file is mapped as a whole, offsets being addresses */
	if ((in->section_align & (in->section_align - 1)) || in->section_align < 4096 ||
	    (in->file_align & (in->file_align - 1)) || in->file_align < 512 ||
	    in->file_align > in->section_align || in->section_align > 1U << 30)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "pe: sections are aligned to %" PRIu32
			       " bytes, in the file to %" PRIu32,
			       in->section_align, in->file_align);
	if (in->headers_size > HEADERS_MAX || in->headers_size > size ||
	    !kp_range_ok(in->headers_size, in->table, in->n * SECTION) || in->at < 64)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "pe: headers of %" PRIu32
			       " bytes, with %zu sections at offset %" PRIu64,
			       in->headers_size, in->n, in->table);
	if (!in->n || in->n > SECTIONS_MAX)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "pe: %zu sections of at most %d", in->n, SECTIONS_MAX);
	for (size_t i = 0; i < in->n; i++) {
		const struct kp_pe_section *s = &in->sections[i];

		if (s->rva % in->section_align || s->rva < end ||
		    s->rva < in->headers_size)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "pe: section %zu is at 0x%" PRIx32
				       ", where others are",
				       i, s->rva);
		if (s->has_rows || s->offset % in->file_align)
			return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
				       "pe: section %zu has relocations or lines, or is "
				       "not aligned in the file",
				       i);
		if (s->size && !kp_range_ok(size, s->offset, s->size))
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "pe: section %zu: %" PRIu32
				       " bytes at offset %" PRIu32
				       " pass the end of the file",
				       i, s->size, s->offset);
		end = (uint64_t)s->rva + (s->memory ? s->memory : s->size);
	}
	return KPACK_SUCCESS;
}

/* The end of what the headers say is at OFF of the tail; 0: nothing. */
static uint64_t known_end(const struct kp_pe_edit *ed, const struct debug_row *rows,
			  size_t n, uint64_t off)
{
	uint64_t end = 0;

	if (ed->in.symbols && off >= ed->in.symbols && off < ed->in.symbols_end)
		end = ed->in.symbols_end;
	for (size_t i = 0; i < n; i++)
		if (off >= rows[i].data && off - rows[i].data < rows[i].size)
			end = rows[i].data + rows[i].size;
	return end;
}

/* Find what is behind the sections, and whether anything there has to stay where it is. */
static kpack_error_t find_tail(struct kp_pe_edit *ed, bool unsign,
			       struct kpackx_error *why)
{
	uint64_t from = ed->in.directories[KP_PE_SIGNATURE].rva;
	uint64_t bytes = ed->in.directories[KP_PE_SIGNATURE].size;
	KP_AUTO_FREE struct place *order = NULL;
	struct debug_row rows[DEBUG_MAX];
	uint64_t off, end;
	size_t n;

	KP_TRY(sort_parts(ed, &order, why));
	ed->tail = ed->in.headers_size;
	for (size_t i = 0; i < ed->n; i++) {
		const struct kp_pe_part *p = &ed->parts[order[i].index];

		if (!p->from)
			continue;
		if (p->from < ed->tail)
			return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
				       "pe: section %zu shares bytes of the file",
				       order[i].index);
		off = ed->tail;
		KP_TRY(skip_zeros(&ed->file, &off, p->from, why));
		if (off < p->from)
			return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
				       "pe: the bytes at offset %" PRIu64
				       " are between two sections",
				       off);
		ed->tail = p->from + p->room;
	}
	ed->tail_end = ed->file.size;
	if (bytes && !unsign)
		return refuse(why, "is signed, and a change would break the signature; "
				   "--drop-signature removes it");
	if (bytes) {
		off = from + bytes;
		if (from < ed->tail || !kp_range_ok(ed->file.size, from, bytes))
			return refuse(why, "its signature is not behind its sections");
		KP_TRY(skip_zeros(&ed->file, &off, ed->file.size, why));
		if (off < ed->file.size)
			return refuse(why, "bytes follow its signature");
		ed->tail_end = from;
	}
	KP_TRY(read_debug(ed, rows, &n, why));
	for (off = ed->tail;; off = end) {
		KP_TRY(skip_zeros(&ed->file, &off, ed->tail_end, why));
		if (off >= ed->tail_end)
			return KPACK_SUCCESS;
		end = known_end(ed, rows, n, off);
		if (!end) {
			ed->pinned = true;
			return KPACK_SUCCESS;
		}
	}
}

kpack_error_t kp_pe_edit_open(int fd, uint64_t size, bool unsign, struct kp_pe_edit *out,
			      struct kpackx_error *why)
{
	kp_pe_edit_fini(out);
	out->file = kp_source_fd(fd, 0, size);
	KP_TRY(kp_pe_open(&out->file, &out->in, why));
	KP_TRY(check_headers(&out->in, size, why));
	/* the marker, and the recipe */
	KP_TRY(kp_new(&out->parts, out->in.n + 2, "sections", why));
	for (size_t i = 0; i < out->in.n; i++) {
		const struct kp_pe_section *s = &out->in.sections[i];

		out->parts[out->n++] = (struct kp_pe_part){
			.s = *s, .from = s->size ? s->offset : 0, .room = s->size};
	}
	return find_tail(out, unsign, why);
}

void kp_pe_edit_fini(struct kp_pe_edit *ed)
{
	kp_pe_fini(&ed->in);
	free(ed->parts);
	free(ed->patches);
	*ed = (struct kp_pe_edit){0};
}

/* ---- changes ---- */

struct kp_pe_part *kp_pe_edit_find(const struct kp_pe_edit *ed, const char *name)
{
	for (size_t i = 0; i < ed->n; i++)
		if (strncmp(ed->parts[i].s.name, name, strlen(name)) == 0)
			return &ed->parts[i];
	return NULL;
}

void kp_pe_edit_fill(struct kp_pe_edit *ed, struct kp_pe_part *part, uint32_t size,
		     kpack_error_t (*fill)(void *, struct kp_outfile *, uint64_t,
					   struct kpackx_error *),
		     void *arg)
{
	part->is_new = true;
	part->fill = fill;
	part->fill_arg = arg;
	part->s.size = (uint32_t)round_up(size, ed->in.file_align);
}

kpack_error_t kp_pe_edit_drop(struct kp_pe_edit *ed, const char *name,
			      struct kpackx_error *why)
{
	struct kp_pe_part *part = kp_pe_edit_find(ed, name);

	if (part && part != &ed->parts[ed->n - 1])
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "pe: other sections were added behind %s", name);
	ed->n -= part != NULL;
	ed->dropped += part != NULL;
	return KPACK_SUCCESS;
}

kpack_error_t kp_pe_edit_add(struct kp_pe_edit *ed, const char *name, uint32_t flags,
			     struct kp_span bytes, struct kpackx_error *why)
{
	const struct kp_pe_section *last = &ed->parts[ed->n - 1].s;
	uint64_t rva =
		round_up((uint64_t)last->rva + (last->memory ? last->memory : last->size),
			 ed->in.section_align);
	struct kp_pe_part part = {.is_new = true, .bytes = bytes};

	if (kp_pe_edit_find(ed, name))
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "pe: there already is a section %s", name);
	/* images have at most 2 GiB */
	if (rva > INT32_MAX || bytes.size > INT32_MAX / 2 || ed->n == SECTIONS_MAX)
		return refuse(why, "there is no room in memory behind its sections, or "
				   "there are too many");
	memcpy(part.s.name, name, strlen(name));
	part.s.rva = (uint32_t)rva;
	part.s.memory = (uint32_t)bytes.size;
	part.s.size = (uint32_t)round_up(bytes.size, ed->in.file_align);
	part.s.flags = flags;
	ed->parts[ed->n++] = part;
	return KPACK_SUCCESS;
}

kpack_error_t kp_pe_edit_patch(struct kp_pe_edit *ed, uint64_t from, const void *bytes,
			       size_t size, struct kpackx_error *why)
{
	struct kp_pe_patch patch = {.from = from, .size = (uint8_t)size};

	memcpy(patch.bytes, bytes, size);
	KP_TRY(kp_room(&ed->patches, ed->n_patches, &ed->patches_cap, "patches", why));
	ed->patches[ed->n_patches++] = patch;
	return KPACK_SUCCESS;
}

/* ---- places ---- */

/* Where the byte FROM of the input goes; UINT64_MAX: away. */
static uint64_t new_offset(const struct kp_pe_edit *ed, uint64_t from)
{
	if (from >= ed->tail && from <= ed->tail_end)
		return ed->tail_to + (from - ed->tail);
	for (size_t i = 0; i < ed->n; i++) {
		const struct kp_pe_part *p = &ed->parts[i];

		if (!p->is_new && from >= p->from && from - p->from < p->room)
			return p->s.offset + (from - p->from);
	}
	return UINT64_MAX;
}

/*
 * Place PART, which is new, at the end of the last gap of a pinned file that has room: then the
 * next edit finds the tail where it was.  Of the new parts the first N have their places.
 */
static bool place_in_gap(struct kp_pe_edit *ed, struct kp_pe_part *part, size_t n)
{
	uint64_t best = 0;

	for (size_t i = 0; i <= ed->n; i++) {
		uint64_t end = i < ed->n ? ed->parts[i].s.offset : ed->tail, at;
		bool free = end >= part->s.size;

		at = (end - part->s.size) & ~(uint64_t)(ed->in.file_align - 1);
		free &= at >= ed->headers_size;
		for (size_t k = 0; k < ed->n && free; k++) {
			const struct kp_pe_section *s = &ed->parts[k].s;

			free = (ed->parts[k].is_new && k >= n) || !s->size ||
			       at + part->s.size <= s->offset ||
			       at >= (uint64_t)s->offset + s->size;
		}
		if (free && at > best)
			best = at;
	}
	part->s.offset = (uint32_t)best;
	return best;
}

kpack_error_t kp_pe_edit_place(struct kp_pe_edit *ed, struct kpackx_error *why)
{
	static const char no_headers[] = "there is no room for the headers of more "
					 "sections";
	uint64_t old_table = ed->in.table + ed->in.n * SECTION;
	uint64_t table = ed->in.table + ed->n * SECTION, off = old_table;
	uint64_t at, end = ed->in.headers_size;
	KP_AUTO_FREE struct place *order = NULL;
	struct debug_row rows[DEBUG_MAX];
	size_t n;

	/* the headers of new sections need zeros behind the others, or more room */
	ed->headers_size = ed->in.headers_size;
	if (table > ed->headers_size)
		ed->headers_size = (uint32_t)round_up(table, ed->in.file_align);
	if (table > old_table)
		KP_TRY(skip_zeros(
			&ed->file, &off,
			table < ed->in.headers_size ? table : ed->in.headers_size, why));
	if ((table > old_table && off < table && off < ed->in.headers_size) ||
	    ed->headers_size > ed->parts[0].s.rva)
		return refuse(why, no_headers);
	KP_TRY(sort_parts(ed, &order, why));
	at = ed->headers_size;
	for (size_t i = 0; i < ed->n && !ed->pinned; i++) {
		struct kp_pe_part *p = &ed->parts[order[i].index];

		/* zeros before a section stay */
		if (p->from && p->s.size)
			at += p->from - end;
		if (p->from)
			end = p->from + p->room;
		at = p->s.size ? round_up(at, ed->in.file_align) : at;
		p->s.offset = p->s.size ? (uint32_t)at : 0;
		at += p->s.size;
		if (at > UINT32_MAX)
			return refuse(why, "the file would have more than 4 GiB");
	}
	ed->tail_to = ed->pinned ? ed->tail : at;
	for (size_t i = 0; i < ed->n && ed->pinned; i++) {
		struct kp_pe_part *p = &ed->parts[i];

		p->s.offset = p->is_new || !p->s.size ? 0 : (uint32_t)p->from;
		if (p->s.offset && p->s.offset < ed->headers_size)
			return refuse(why, no_headers);
		if (p->is_new && p->s.size && !place_in_gap(ed, p, i))
			return refuse(why,
				      "there is no room before the bytes behind its "
				      "sections, which may be found by their offset");
	}
	ed->size = ed->tail_to + (ed->tail_end - ed->tail);
	KP_TRY(read_debug(ed, rows, &n, why));
	for (size_t i = 0; i < n; i++) {
		uint64_t to = rows[i].data ? new_offset(ed, rows[i].data) : 0;
		uint8_t bytes[4];

		if (to == rows[i].data || to == UINT64_MAX)
			continue;
		kp_put_le32(bytes, (uint32_t)to);
		KP_TRY(kp_pe_edit_patch(ed, rows[i].at, bytes, 4, why));
	}
	return KPACK_SUCCESS;
}

/* ---- writing ---- */

kpack_error_t kp_pe_edit_moves(struct kp_pe_edit *ed, struct kp_move **out, size_t *n_out,
			       struct kpackx_error *why)
{
	uint64_t table = ed->in.table + (ed->in.n > ed->n ? ed->in.n : ed->n) * SECTION;
	KP_AUTO_FREE struct place *order = NULL;
	KP_AUTO_FREE struct kp_move *all = NULL;
	size_t n = 0, cap = 0, k = 0;

	KP_TRY(sort_parts(ed, &order, why));
	if (ed->n_patches)
		kp_sort(ed->patches, ed->n_patches,
			KP_BY_NUMBER(struct kp_pe_patch, from));
	/* all headers from "PE" on are in the recipe: they are few bytes, and most change */
	for (size_t i = 0; i < ed->n + 3; i++) {
		const struct kp_pe_part *p =
			i > 1 && i < ed->n + 2 ? &ed->parts[order[i - 2].index] : NULL;
		struct kp_move m = {0, ed->in.at, 0};

		if (i == 1)
			m = (struct kp_move){table,
					     table < ed->in.headers_size
						     ? ed->in.headers_size - table
						     : 0,
					     table};
		else if (p)
			m = (struct kp_move){p->from, p->is_new ? 0 : p->room,
					     p->s.offset};
		else if (i)
			m = (struct kp_move){ed->tail, ed->tail_end - ed->tail,
					     ed->tail_to};
		/* what is between the patches */
		while (m.size) {
			uint64_t same = m.size, skip = m.size;

			while (k < ed->n_patches && ed->patches[k].from < m.from)
				k++;
			if (k < ed->n_patches && ed->patches[k].from - m.from < m.size) {
				same = ed->patches[k].from - m.from;
				skip = same + ed->patches[k].size;
				skip = skip < m.size ? skip : m.size;
			}
			KP_TRY(kp_room(&all, n, &cap, "moves", why));
			all[n] = (struct kp_move){m.from, same, m.to};
			n += same != 0;
			m = (struct kp_move){m.from + skip, m.size - skip, m.to + skip};
		}
	}
	*out = all;
	*n_out = n;
	all = NULL;
	return KPACK_SUCCESS;
}

/* Write the headers; what of them stays was copied. */
static kpack_error_t write_headers(const struct kp_pe_edit *ed, struct kp_outfile *out,
				   struct kpackx_error *why)
{
	const struct kp_pe_section *last = &ed->parts[ed->n - 1].s;
	size_t rows = ed->n > ed->in.n ? ed->n : ed->in.n, at = (size_t)ed->in.at;
	size_t size = (size_t)ed->in.table - at;
	uint64_t symbols = new_offset(ed, ed->in.symbols);
	KP_AUTO_FREE uint8_t *bytes = NULL;
	int64_t data;

	KP_TRY(kp_new(&bytes, size + rows * SECTION, "headers", why));
	KP_TRY(kp_source_read(&ed->file, at, bytes, size + ed->in.n * SECTION, why));
	data = kp_le32(bytes + H_DATA_SIZE);
	for (size_t i = 0; i < rows; i++) {
		const struct kp_pe_section *s = &ed->parts[i].s;
		uint8_t *p = bytes + size + i * SECTION;

		if (i < ed->in.n && (ed->in.sections[i].flags & KP_PE_DATA))
			data -= ed->in.sections[i].size;
		if (i < ed->n && (s->flags & KP_PE_DATA))
			data += s->size;
		if (i >= ed->in.n - ed->dropped)
			memset(p, 0, SECTION);
		if (i >= ed->n)
			continue;
		if (i >= ed->in.n - ed->dropped) {
			memcpy(p, s->name, 8);
			kp_put_le32(p + 8, s->memory);
			kp_put_le32(p + 12, s->rva);
			kp_put_le32(p + 36, s->flags);
		}
		if (s->size || ed->parts[i].room) {
			kp_put_le32(p + 16, s->size);
			kp_put_le32(p + 20, s->offset);
		}
	}
	bytes[H_SECTIONS] = (uint8_t)ed->n;
	bytes[H_SECTIONS + 1] = (uint8_t)(ed->n >> 8);
	if (ed->in.symbols && symbols != UINT64_MAX)
		kp_put_le32(bytes + H_SYMBOLS, (uint32_t)symbols);
	kp_put_le32(bytes + H_DATA_SIZE, data > 0 ? (uint32_t)data : 0);
	kp_put_le32(bytes + H_IMAGE_SIZE,
		    (uint32_t)round_up((uint64_t)last->rva +
					       (last->memory ? last->memory : last->size),
				       ed->in.section_align));
	kp_put_le32(bytes + H_HEADERS_SIZE, ed->headers_size);
	kp_put_le32(bytes + H_CHECKSUM, 0);
	if (ed->in.directories[KP_PE_SIGNATURE].size)
		memset(bytes + H_SIGNATURE, 0, 8);
	return kp_outfile_pwrite(out, at, bytes, size + rows * SECTION, why);
}

/* The sum of all words, with their carries, and of the size; the checksum itself is zero in OUT. */
static kpack_error_t write_checksum(const struct kp_pe_edit *ed, struct kp_outfile *out,
				    struct kpackx_error *why)
{
	const struct kp_source file = kp_source_fd(out->fd, 0, ed->size);
	enum { PIECE = 1 << 16 };
	KP_AUTO_FREE uint8_t *buf = NULL;
	uint64_t sum = 0;
	uint8_t bytes[4];

	KP_TRY(kp_new(&buf, PIECE + 1, "a checksum", why));
	for (uint64_t off = 0, n; off < ed->size; off += n) {
		n = ed->size - off < PIECE ? ed->size - off : PIECE;
		KP_TRY(kp_source_read(&file, off, buf, (size_t)n, why));
		buf[n] = 0;
		for (size_t i = 0; i < n; i += 2)
			sum += kp_le16(buf + i);
	}
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	kp_put_le32(bytes, (uint32_t)(sum + ed->size));
	return kp_outfile_pwrite(out, ed->in.at + H_CHECKSUM, bytes, 4, why);
}

kpack_error_t kp_pe_edit_write(struct kp_pe_edit *ed, struct kp_outfile *out,
			       struct kpackx_error *why)
{
	/* gaps become holes of a sparse file */
	if (ftruncate(out->fd, (off_t)ed->size))
		return kp_fail_errno(why, errno, "%s: cannot become %" PRIu64 " bytes",
				     out->name, ed->size);
	KP_TRY(kp_outfile_copy(out, 0, ed->file.fd, 0, ed->in.headers_size, why));
	for (size_t i = 0; i < ed->n; i++) {
		const struct kp_pe_part *p = &ed->parts[i];

		if (!p->is_new && p->room)
			KP_TRY(kp_outfile_copy(out, p->s.offset, ed->file.fd, p->from,
					       p->room, why));
		else if (p->fill)
			KP_TRY(p->fill(p->fill_arg, out, p->s.offset, why));
		else if (p->bytes.size)
			KP_TRY(kp_outfile_pwrite(out, p->s.offset, p->bytes.data,
						 p->bytes.size, why));
	}
	if (ed->tail_end > ed->tail)
		KP_TRY(kp_outfile_copy(out, ed->tail_to, ed->file.fd, ed->tail,
				       ed->tail_end - ed->tail, why));
	for (size_t i = 0; i < ed->n_patches; i++) {
		const struct kp_pe_patch *p = &ed->patches[i];
		uint64_t to = new_offset(ed, p->from);

		if (to == UINT64_MAX)
			return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
				       "pe: a wrapper at offset %" PRIu64
				       " is in no section",
				       p->from);
		KP_TRY(kp_outfile_pwrite(out, to, p->bytes, p->size, why));
	}
	KP_TRY(write_headers(ed, out, why));
	/* only drivers need one: most files have none */
	return ed->in.checksum ? write_checksum(ed, out, why) : KPACK_SUCCESS;
}
