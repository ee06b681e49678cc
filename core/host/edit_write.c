/* SPDX-License-Identifier: MIT */
/*
 * The placed file: first what is copied from the input, then, over that, bytes that are new.  One walk
 * over all of it serves two purposes.  It writes the file; or, without a file, it notes what is copied
 * and what is new, from which follows which bytes of the input the output has where.
 *
 * The order is that of what lies over what: chunks; sections that are not mapped, and names; the numbers
 * of sections in symbols; wrappers and their relocations; program and section headers; and last the bytes
 * that no table names, whose place nothing else has.
 *
 * Rows of tables are the largest part of a host that changes a little everywhere.  So for each row
 * the runs of bytes that are as in the old row are noted, too: a recipe copies them.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>
#include "core/base/alloc.h"
#include "core/base/order.h"
#include "edit.h"

/* So many equal bytes of a row are worth to be told. */
enum { ROW_MIN = 12 };

struct output {
	const struct kp_edit *ed;
	struct kp_outfile *file; /* NULL: only note */
	/* What is copied; what of the rows of tables is as in the rows that they come from. */
	struct kp_move *copies, *rows;
	size_t n_copies, copies_cap, n_rows, rows_cap;
	struct kp_edit_range *changed; /* ranges of the output with new bytes */
	size_t n_changed, changed_cap;
	uint32_t *number; /* of a section: input -> output; 0: dropped */
};

static kpack_error_t copy_bytes(struct output *o, uint64_t from, uint64_t size,
				uint64_t to, struct kpackx_error *why)
{
	if (o->file)
		return kp_outfile_copy(o->file, to, o->ed->fd, from, size, why);
	KP_TRY(kp_room(&o->copies, o->n_copies, &o->copies_cap, "moves", why));
	o->copies[o->n_copies++] = (struct kp_move){from, size, to};
	return KPACK_SUCCESS;
}

static kpack_error_t put_bytes(struct output *o, uint64_t to, const void *bytes,
			       size_t size, struct kpackx_error *why)
{
	if (o->file)
		return kp_outfile_pwrite(o->file, to, bytes, size, why);
	if (!size)
		return KPACK_SUCCESS;
	KP_TRY(kp_room(&o->changed, o->n_changed, &o->changed_cap, "moves", why));
	o->changed[o->n_changed++] = (struct kp_edit_range){to, size};
	return KPACK_SUCCESS;
}

/*
 * Put a row of a table, with fields of SIZES.  Most differ in few bytes, if any, from the row OLD
 * that they stand for, at offset FROM of the input; NULL: for none.
 */
static kpack_error_t put_row(struct output *o, uint64_t to, const void *row, size_t size,
			     const char *sizes, uint64_t from, const void *old,
			     struct kpackx_error *why)
{
	uint8_t bytes[sizeof(Elf64_Shdr)], before[sizeof(Elf64_Shdr)];

	memcpy(bytes, row, size);
	kp_edit_swap(bytes, sizes);
	KP_TRY(put_bytes(o, to, bytes, size, why));
	if (o->file || !old)
		return KPACK_SUCCESS;
	memcpy(before, old, size);
	kp_edit_swap(before, sizes);
	for (size_t i = 0, end; i < size; i = end + 1) {
		for (end = i; end < size && before[end] == bytes[end]; end++)
			;
		if (end - i < ROW_MIN)
			continue;
		KP_TRY(kp_room(&o->rows, o->n_rows, &o->rows_cap, "moves", why));
		o->rows[o->n_rows++] = (struct kp_move){from + i, end - i, to + i};
	}
	return KPACK_SUCCESS;
}

/* ---- sections ---- */

static kpack_error_t put_sections(struct output *o, struct kpackx_error *why)
{
	const struct kp_edit *ed = o->ed;
	uint64_t names = ed->sections[ed->names].h.sh_offset;
	struct kp_source all = kp_source_fd(ed->fd, 0, ed->size);
	enum { FIELD = offsetof(Elf64_Sym, st_shndx) };
	struct kp_window window;
	bool renumbered = false;

	KP_TRY(kp_new(&o->number, ed->in.count, "sections", why));
	for (size_t i = 1; i < ed->n_sections; i++)
		if (!ed->sections[i].is_new)
			o->number[ed->sections[i].index] = (uint32_t)i;
	for (size_t i = 1; i < ed->in.count; i++)
		renumbered |= o->number[i] != i;
	/* the names in use, and behind them those of new sections */
	KP_TRY(copy_bytes(o, ed->sections[ed->names].from, ed->old_names, names, why));
	for (size_t i = 1; i < ed->n_sections; i++) {
		const struct kp_edit_section *s = &ed->sections[i];

		if (s->is_new) {
			KP_TRY(put_bytes(o, names + s->h.sh_name, s->name,
					 strlen(s->name) + 1, why));
			/* that of program headers has no bytes of its own */
			KP_TRY(put_bytes(o, s->h.sh_offset, s->bytes.data, s->bytes.size,
					 why));
		} else if (i != ed->names && s->h.sh_type != SHT_NOBITS && s->h.sh_size &&
			   s->from != UINT64_MAX) {
			bool mapped = false; /* then it was copied with its chunk */

			for (size_t k = 0; k < ed->n_chunks; k++) {
				const struct kp_edit_chunk *c = &ed->chunks[k];

				mapped |= s->h.sh_offset >= c->to &&
					  kp_range_ok(c->size, s->h.sh_offset - c->to,
						      s->h.sh_size);
			}
			if (!mapped)
				KP_TRY(copy_bytes(o, s->from, s->h.sh_size,
						  s->h.sh_offset, why));
		}
	}
	/* give symbols the new numbers of their sections */
	kp_window_init(&window, &all);
	for (size_t i = 1; i < ed->n_sections && renumbered; i++) {
		const struct kp_edit_section *s = &ed->sections[i];

		if (s->h.sh_type != SHT_SYMTAB && s->h.sh_type != SHT_DYNSYM)
			continue;
		if (s->h.sh_entsize != sizeof(Elf64_Sym))
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "elf: section %zu: symbols of %" PRIu64 " bytes",
				       s->index, s->h.sh_entsize);
		for (uint64_t k = 0; k < s->h.sh_size / sizeof(Elf64_Sym); k++) {
			uint64_t off = k * sizeof(Elf64_Sym) + FIELD;
			const uint8_t *old;
			uint8_t bytes[2];
			uint32_t new;

			KP_TRY(kp_window_get(&window, s->from + off, 2, &old, why));
			new = kp_le16(old);
			if (new == SHN_UNDEF || new >= SHN_LORESERVE ||
			    new >= ed->in.count)
				continue;
			new = o->number[new] ? o->number[new] : SHN_ABS;
			bytes[0] = (uint8_t) new;
			bytes[1] = (uint8_t)(new >> 8);
			if (memcmp(bytes, old, 2) != 0)
				KP_TRY(put_bytes(o, s->h.sh_offset + off, bytes, 2, why));
		}
	}
	return KPACK_SUCCESS;
}

/* ---- headers ---- */

static uint32_t new_number(const struct output *o, uint32_t number)
{
	return number < o->ed->in.count ? o->number[number] : number;
}

static kpack_error_t put_all(struct output *o, struct kpackx_error *why)
{
	const struct kp_edit *ed = o->ed;
	uint64_t old_size = ed->in.header.e_phnum * sizeof(Elf64_Phdr);
	static const uint8_t zeros[sizeof(Elf64_Phdr)];

	/* gaps become holes of a sparse file */
	if (o->file && ftruncate(o->file->fd, (off_t)ed->out_size))
		return kp_fail_errno(why, errno, "%s: cannot become %" PRIu64 " bytes",
				     o->file->name, ed->out_size);
	for (size_t i = 0; i < ed->n_chunks; i++) {
		const struct kp_edit_chunk *c = &ed->chunks[i];

		if (!c->made)
			KP_TRY(copy_bytes(o, c->from, c->size, c->to, why));
		else if (o->file)
			KP_TRY(ed->fill(ed->fill_arg, o->file, c->to, why));
	}
	/* in this order: patches and headers are over what was copied */
	KP_TRY(put_sections(o, why));
	for (size_t i = 0; i < ed->n_patches; i++) {
		const struct kp_edit_patch *p = &ed->patches[i];
		const struct kp_edit_chunk *c = ed->chunks, *all = c + ed->n_chunks;

		while (c < all && (c->made || p->from < c->from ||
				   !kp_range_ok(c->size, p->from - c->from, p->size)))
			c++;
		if (c == all)
			return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
				       "elf: a wrapper or its relocation, at offset "
				       "%" PRIu64 ", is not mapped",
				       p->from);
		KP_TRY(put_bytes(o, c->to + (p->from - c->from), p->bytes, p->size, why));
	}

	/* the old program headers are erased if nothing else is in their place now */
	if (ed->chunks[0].to == 0 && ed->in.header.e_phoff == sizeof(Elf64_Ehdr) &&
	    kp_range_ok(ed->chunks[0].size, ed->in.header.e_phoff, old_size))
		for (uint64_t i = 0; i < old_size; i += sizeof(zeros))
			KP_TRY(put_bytes(o, ed->in.header.e_phoff + i, zeros,
					 sizeof(zeros), why));
	KP_TRY(put_row(o, 0, &ed->h, sizeof(ed->h), KP_EDIT_EHDR, 0, NULL, why));
	for (size_t i = 0; i < ed->n_sections; i++) {
		size_t index = ed->sections[i].index; /* 0: new, or the null section */
		Elf64_Shdr h = ed->sections[i].h;

		/* sh_info is a section's number for relocations and if a flag says so */
		h.sh_link = new_number(o, h.sh_link);
		if (h.sh_type == SHT_REL || h.sh_type == SHT_RELA ||
		    (h.sh_flags & SHF_INFO_LINK))
			h.sh_info = new_number(o, h.sh_info);
		KP_TRY(put_row(o, ed->h.e_shoff + i * sizeof(h), &h, sizeof(h),
			       KP_EDIT_SHDR, ed->in.header.e_shoff + index * sizeof(h),
			       index ? &ed->old_sections[index] : NULL, why));
	}
	for (size_t i = 0; i < ed->n_segments; i++) {
		const Elf64_Phdr *h = &ed->segments[i].h, *old = ed->old_segments;
		size_t k = 0;

		/* it comes from the header of its type and address */
		while (k < ed->in.header.e_phnum &&
		       (h->p_type != old[k].p_type || h->p_vaddr != old[k].p_vaddr))
			k++;
		KP_TRY(put_row(o, ed->h.e_phoff + i * sizeof(*h), h, sizeof(*h),
			       KP_EDIT_PHDR, ed->in.header.e_phoff + k * sizeof(*h),
			       k < ed->in.header.e_phnum ? &old[k] : NULL, why));
	}
	for (size_t i = 0; i < ed->n_kept; i++)
		KP_TRY(copy_bytes(o, ed->kept[i].from, ed->kept[i].size, ed->kept[i].from,
				  why));
	return KPACK_SUCCESS;
}

static void output_fini(struct output *o)
{
	free(o->copies);
	free(o->rows);
	free(o->changed);
	free(o->number);
}

kpack_error_t kp_edit_write(const struct kp_edit *ed, struct kp_outfile *out,
			    struct kpackx_error *why)
{
	KP_AUTO(output) o = {.ed = ed, .file = out};

	return put_all(&o, why);
}

/* ---- what moves ---- */

kpack_error_t kp_edit_moves(const struct kp_edit *ed, struct kp_move **out, size_t *n_out,
			    struct kpackx_error *why)
{
	KP_AUTO(output) o = {.ed = ed};
	uint64_t end = 0;
	size_t n = 0;

	KP_TRY(put_all(&o, why));
	/* the changed ranges, joined where they meet */
	kp_sort(o.changed, o.n_changed, KP_BY_NUMBER(struct kp_edit_range, from));
	for (size_t i = 0; i < o.n_changed; i++) {
		struct kp_edit_range *last = &o.changed[n - (n > 0)], c = o.changed[i];

		if (n == 0 || c.from > last->from + last->size)
			o.changed[n++] = c;
		else if (c.from + c.size > last->from + last->size)
			last->size = c.from + c.size - last->from;
	}
	o.n_changed = n;
	/* of each copy, the runs between the changed ranges move as they are */
	for (size_t k = 0; k < o.n_copies; k++) {
		struct kp_move m = o.copies[k];
		const struct kp_edit_range probe = {.from = m.to + 1};
		size_t i = kp_lower_bound(o.changed, o.n_changed, &probe,
					  KP_BY_NUMBER(struct kp_edit_range, from));

		for (i -= i != 0; m.size; i++) {
			struct kp_edit_range c = {UINT64_MAX, 0};
			uint64_t same, skip;

			if (i < o.n_changed)
				c = o.changed[i];
			if (c.from + c.size <= m.to)
				continue;
			same = c.from > m.to ? c.from - m.to : 0;
			skip = c.from + c.size - m.to;
			skip = skip < m.size ? skip : m.size;
			KP_TRY(kp_room(&o.rows, o.n_rows, &o.rows_cap, "moves", why));
			o.rows[o.n_rows++] = (struct kp_move){
				m.from, same < m.size ? same : m.size, m.to};
			m = (struct kp_move){m.from + skip, m.size - skip, m.to + skip};
		}
	}
	/* in order of the input, where sections can have bytes in common; none is without bytes */
	if (o.n_rows)
		kp_sort(o.rows, o.n_rows, KP_BY_NUMBER(struct kp_move, from));
	n = 0;
	for (size_t i = 0; i < o.n_rows; i++) {
		struct kp_move m = o.rows[i];
		uint64_t skip = m.from < end ? end - m.from : 0;

		if (skip >= m.size)
			continue;
		o.rows[n++] = (struct kp_move){m.from + skip, m.size - skip, m.to + skip};
		end = m.from + m.size;
	}
	*out = o.rows;
	*n_out = n;
	o.rows = NULL;
	return KPACK_SUCCESS;
}
