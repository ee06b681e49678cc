/* SPDX-License-Identifier: MIT */
/* Writes the placed file, and tells which bytes of the input it has where. */
#include <errno.h>
#include <gelf.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>
#include "core/base/alloc.h"
#include "core/base/order.h"
#include "edit.h"

/* So many equal bytes of a row are worth to be told. */
enum { ROW_MIN = 12 };

struct writer {
	const struct kp_edit *ed;
	struct kp_outfile *out;
	/* Instead of OUT: the ranges of the output whose bytes are not the input's. */
	struct kp_edit_range *changed;
	size_t n_changed, changed_cap;
	uint32_t *number; /* of a section: input -> output; 0: dropped */
	size_t n_old;     /* sections in the input */
	bool renumbered;
};

/* ---- new section numbers ---- */

static kpack_error_t number_sections(struct writer *w, struct kpackx_error *why)
{
	const struct kp_edit *ed = w->ed;

	if (elf_getshdrnum(ed->libelf, &w->n_old))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "elf: sections");
	w->number = calloc(w->n_old, sizeof(*w->number));
	if (!w->number)
		return kp_fail_memory(why, w->n_old * sizeof(*w->number), "sections");
	for (size_t i = 1; i < ed->n_sections; i++)
		if (!ed->sections[i].is_new)
			w->number[ed->sections[i].index] = (uint32_t)i;
	for (size_t i = 1; i < w->n_old; i++)
		w->renumbered |= w->number[i] != i;
	return KPACK_SUCCESS;
}

static uint32_t new_number(const struct writer *w, uint32_t number)
{
	return number < w->n_old ? w->number[number] : number;
}

/* sh_info is a section's number for relocations and if a flag says so, else a count. */
static void renumber_links(const struct writer *w, Elf64_Shdr *h)
{
	h->sh_link = new_number(w, h->sh_link);
	if (h->sh_type == SHT_REL || h->sh_type == SHT_RELA ||
	    (h->sh_flags & SHF_INFO_LINK))
		h->sh_info = new_number(w, h->sh_info);
}

/* ---- symbols ---- */

static kpack_error_t add_changed(struct writer *w, uint64_t from, uint64_t size,
				 struct kpackx_error *why)
{
	KP_TRY(kp_room(&w->changed, w->n_changed, &w->changed_cap, "symbols", why));
	w->changed[w->n_changed++] = (struct kp_edit_range){from, size};
	return KPACK_SUCCESS;
}

static kpack_error_t fix_symbol(struct writer *w, uint64_t at, const uint8_t *sym,
				struct kpackx_error *why)
{
	uint16_t old = kp_le16(sym + offsetof(Elf64_Sym, st_shndx)), new;
	uint8_t bytes[2];

	if (old == SHN_UNDEF || old >= SHN_LORESERVE || old >= w->n_old)
		return KPACK_SUCCESS;
	new = (uint16_t)(w->number[old] ? w->number[old] : SHN_ABS);
	if (new == old)
		return KPACK_SUCCESS;
	bytes[0] = (uint8_t) new;
	bytes[1] = (uint8_t)(new >> 8);
	at += offsetof(Elf64_Sym, st_shndx);
	return w->out ? kp_outfile_pwrite(w->out, at, bytes, 2, why)
		      : add_changed(w, at, 2, why);
}

static kpack_error_t fix_symbols(struct writer *w, const struct kp_edit_section *s,
				 struct kpackx_error *why)
{
	struct kp_source src = kp_source_fd(w->ed->fd, s->from, s->h.sh_size);
	struct kp_window window;
	const uint8_t *sym;

	if (s->h.sh_entsize != sizeof(Elf64_Sym))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "elf: section %zu: symbols of %" PRIu64 " bytes", s->index,
			       s->h.sh_entsize);
	kp_window_init(&window, &src);
	for (uint64_t off = 0; s->h.sh_size - off >= sizeof(Elf64_Sym);
	     off += sizeof(Elf64_Sym)) {
		KP_TRY(kp_window_get(&window, off, sizeof(Elf64_Sym), &sym, why));
		KP_TRY(fix_symbol(w, s->h.sh_offset + off, sym, why));
	}
	return KPACK_SUCCESS;
}

static kpack_error_t fix_all_symbols(struct writer *w, struct kpackx_error *why)
{
	for (size_t i = 1; i < w->ed->n_sections && w->renumbered; i++) {
		const struct kp_edit_section *s = &w->ed->sections[i];

		if (s->h.sh_type == SHT_SYMTAB || s->h.sh_type == SHT_DYNSYM)
			KP_TRY(fix_symbols(w, s, why));
	}
	return KPACK_SUCCESS;
}

/* ---- contents ---- */

static kpack_error_t write_chunks(const struct writer *w, struct kpackx_error *why)
{
	const struct kp_edit *ed = w->ed;

	for (size_t i = 0; i < ed->n_chunks; i++) {
		const struct kp_edit_chunk *c = &ed->chunks[i];

		if (c->made)
			KP_TRY(ed->fill(ed->fill_arg, w->out, c->to, why));
		else
			KP_TRY(kp_outfile_copy(w->out, c->to, ed->fd, c->from, c->size,
					       why));
	}
	return KPACK_SUCCESS;
}

static bool in_chunk(const struct kp_edit *ed, const struct kp_edit_section *s)
{
	for (size_t i = 0; i < ed->n_chunks; i++)
		if (s->h.sh_offset >= ed->chunks[i].to &&
		    kp_range_ok(ed->chunks[i].size, s->h.sh_offset - ed->chunks[i].to,
				s->h.sh_size))
			return true;
	return false;
}

static kpack_error_t write_names(const struct writer *w, const struct kp_edit_section *s,
				 struct kpackx_error *why)
{
	KP_TRY(kp_outfile_copy(w->out, s->h.sh_offset, w->ed->fd, s->from,
			       w->ed->old_names, why));
	for (size_t i = 1; i < w->ed->n_sections; i++) {
		const struct kp_edit_section *named = &w->ed->sections[i];

		if (named->is_new)
			KP_TRY(kp_outfile_pwrite(
				w->out, s->h.sh_offset + named->h.sh_name, named->name,
				strlen(named->name) + 1, why));
	}
	return KPACK_SUCCESS;
}

static kpack_error_t write_section(const struct writer *w, size_t i,
				   struct kpackx_error *why)
{
	const struct kp_edit_section *s = &w->ed->sections[i];

	if (i == w->ed->names)
		return write_names(w, s, why);
	if (s->is_new) /* the section of program headers has no bytes of its own */
		return kp_outfile_pwrite(w->out, s->h.sh_offset, s->bytes.data,
					 s->bytes.size, why);
	if (s->h.sh_type == SHT_NOBITS || s->h.sh_size == 0 || in_chunk(w->ed, s))
		return KPACK_SUCCESS;
	return kp_outfile_copy(w->out, s->h.sh_offset, w->ed->fd, s->from, s->h.sh_size,
			       why);
}

static kpack_error_t write_sections(struct writer *w, struct kpackx_error *why)
{
	for (size_t i = 1; i < w->ed->n_sections; i++)
		KP_TRY(write_section(w, i, why));
	return fix_all_symbols(w, why);
}

/* Where the output has the bytes of P, which must be in a chunk. */
static kpack_error_t place_patch(const struct kp_edit *ed, const struct kp_edit_patch *p,
				 uint64_t *to, struct kpackx_error *why)
{
	for (size_t i = 0; i < ed->n_chunks; i++) {
		const struct kp_edit_chunk *c = &ed->chunks[i];

		if (!c->made && p->from >= c->from &&
		    kp_range_ok(c->size, p->from - c->from, p->size)) {
			*to = c->to + (p->from - c->from);
			return KPACK_SUCCESS;
		}
	}
	return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
		       "elf: a wrapper or its relocation, at offset %" PRIu64
		       ", is not mapped",
		       p->from);
}

static kpack_error_t write_patches(const struct writer *w, struct kpackx_error *why)
{
	const struct kp_edit *ed = w->ed;
	uint64_t to;

	for (size_t i = 0; i < ed->n_patches; i++) {
		KP_TRY(place_patch(ed, &ed->patches[i], &to, why));
		KP_TRY(kp_outfile_pwrite(w->out, to, ed->patches[i].bytes,
					 ed->patches[i].size, why));
	}
	return KPACK_SUCCESS;
}

/* ---- tables ---- */

static kpack_error_t encode_row(void *to, const void *from, size_t size, Elf_Type type,
				struct kpackx_error *why)
{
	Elf_Data out = {.d_buf = to, .d_size = size, .d_version = EV_CURRENT};
	Elf_Data in = {.d_buf = (void *)from,
		       .d_size = size,
		       .d_type = type,
		       .d_version = EV_CURRENT};

	if (!elf64_xlatetof(&out, &in, ELFDATA2LSB))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "elf: %s",
			       elf_errmsg(-1));
	return KPACK_SUCCESS;
}

static kpack_error_t write_segments(const struct writer *w, struct kpackx_error *why)
{
	const struct kp_edit *ed = w->ed;
	uint8_t bytes[sizeof(Elf64_Phdr)];

	for (size_t i = 0; i < ed->n_segments; i++) {
		KP_TRY(encode_row(bytes, &ed->segments[i].h, sizeof(bytes), ELF_T_PHDR,
				  why));
		KP_TRY(kp_outfile_pwrite(w->out, ed->h.e_phoff + i * sizeof(bytes), bytes,
					 sizeof(bytes), why));
	}
	return KPACK_SUCCESS;
}

static kpack_error_t write_section_headers(const struct writer *w,
					   struct kpackx_error *why)
{
	const struct kp_edit *ed = w->ed;
	uint8_t bytes[sizeof(Elf64_Shdr)];

	for (size_t i = 0; i < ed->n_sections; i++) {
		Elf64_Shdr h = ed->sections[i].h;

		renumber_links(w, &h);
		KP_TRY(encode_row(bytes, &h, sizeof(bytes), ELF_T_SHDR, why));
		KP_TRY(kp_outfile_pwrite(w->out, ed->h.e_shoff + i * sizeof(bytes), bytes,
					 sizeof(bytes), why));
	}
	return KPACK_SUCCESS;
}

/* The old program headers, which are erased if nothing else is in their place now. */
static struct kp_edit_range erased_table(const struct kp_edit *ed)
{
	uint64_t size = ed->n_old_segments * sizeof(Elf64_Phdr);

	if (ed->chunks[0].to != 0 || ed->old_table != sizeof(Elf64_Ehdr) ||
	    !kp_range_ok(ed->chunks[0].size, ed->old_table, size))
		return (struct kp_edit_range){0};
	return (struct kp_edit_range){ed->old_table, size};
}

static kpack_error_t write_tables(const struct writer *w, struct kpackx_error *why)
{
	const struct kp_edit_range erased = erased_table(w->ed);
	static const uint8_t zeros[sizeof(Elf64_Phdr)];
	uint8_t bytes[sizeof(Elf64_Ehdr)];

	for (uint64_t i = 0; i < erased.size; i += sizeof(zeros))
		KP_TRY(kp_outfile_pwrite(w->out, erased.from + i, zeros, sizeof(zeros),
					 why));
	KP_TRY(encode_row(bytes, &w->ed->h, sizeof(bytes), ELF_T_EHDR, why));
	KP_TRY(kp_outfile_pwrite(w->out, 0, bytes, sizeof(bytes), why));
	KP_TRY(write_segments(w, why));
	return write_section_headers(w, why);
}

static kpack_error_t write_all(struct writer *w, struct kpackx_error *why)
{
	const struct kp_edit *ed = w->ed;

	KP_TRY(number_sections(w, why));
	/* gaps become holes of a sparse file */
	if (ftruncate(w->out->fd, (off_t)ed->out_size))
		return kp_fail_errno(why, errno, "%s: cannot become %" PRIu64 " bytes",
				     w->out->name, ed->out_size);
	KP_TRY(write_chunks(w, why));
	KP_TRY(write_sections(w, why));
	KP_TRY(write_patches(w, why));
	KP_TRY(write_tables(w, why));
	for (size_t i = 0; i < ed->n_kept; i++)
		KP_TRY(kp_outfile_copy(w->out, ed->kept[i].from, ed->fd, ed->kept[i].from,
				       ed->kept[i].size, why));
	return KPACK_SUCCESS;
}

kpack_error_t kp_edit_write(const struct kp_edit *ed, struct kp_outfile *out,
			    struct kpackx_error *why)
{
	struct writer w = {.ed = ed, .out = out};
	kpack_error_t err = write_all(&w, why);

	free(w.number);
	return err;
}

/* ---- what moves ---- */

/* List the ranges of the output that have other bytes than the input has for them. */
static kpack_error_t find_changed(struct writer *w, struct kpackx_error *why)
{
	const struct kp_edit *ed = w->ed;
	const struct kp_edit_range erased = erased_table(ed);
	uint64_t to;
	size_t n = 0;

	KP_TRY(number_sections(w, why));
	KP_TRY(add_changed(w, 0, sizeof(Elf64_Ehdr), why));
	KP_TRY(add_changed(w, erased.from, erased.size, why));
	KP_TRY(add_changed(w, ed->h.e_phoff, ed->n_segments * sizeof(Elf64_Phdr), why));
	KP_TRY(add_changed(w, ed->h.e_shoff, ed->n_sections * sizeof(Elf64_Shdr), why));
	for (size_t i = 1; i < ed->n_sections; i++)
		if (ed->sections[i].is_new)
			KP_TRY(add_changed(w, ed->sections[i].h.sh_offset,
					   ed->sections[i].h.sh_size, why));
	for (size_t i = 0; i < ed->n_patches; i++) {
		KP_TRY(place_patch(ed, &ed->patches[i], &to, why));
		KP_TRY(add_changed(w, to, ed->patches[i].size, why));
	}
	KP_TRY(fix_all_symbols(w, why));
	kp_sort(w->changed, w->n_changed, KP_BY_NUMBER(struct kp_edit_range, from));
	for (size_t i = 0; i < w->n_changed; i++) {
		struct kp_edit_range *last = &w->changed[n - (n > 0)], c = w->changed[i];

		if (n == 0 || c.from > last->from + last->size)
			w->changed[n++] = c;
		else if (c.from + c.size > last->from + last->size)
			last->size = c.from + c.size - last->from;
	}
	w->n_changed = n;
	return KPACK_SUCCESS;
}

/* Add M without what is changed of it. */
static kpack_error_t add_move(const struct writer *w, struct kp_move m,
			      struct kp_move **list, size_t *n, size_t *cap,
			      struct kpackx_error *why)
{
	const struct kp_edit_range probe = {.from = m.to + 1};
	size_t i = kp_lower_bound(w->changed, w->n_changed, &probe,
				  KP_BY_NUMBER(struct kp_edit_range, from));

	for (i -= i != 0; m.size && i < w->n_changed; i++) {
		const struct kp_edit_range c = w->changed[i];
		uint64_t before = c.from > m.to ? c.from - m.to : 0, skip;

		if (c.from + c.size <= m.to)
			continue;
		if (before >= m.size)
			break;
		if (before) {
			KP_TRY(kp_room(list, *n, cap, "moves", why));
			(*list)[(*n)++] = (struct kp_move){m.from, before, m.to};
		}
		skip = c.from + c.size - m.to;
		skip = skip < m.size ? skip : m.size;
		m = (struct kp_move){m.from + skip, m.size - skip, m.to + skip};
	}
	if (!m.size)
		return KPACK_SUCCESS;
	KP_TRY(kp_room(list, *n, cap, "moves", why));
	(*list)[(*n)++] = m;
	return KPACK_SUCCESS;
}

/*
 * Add what a row of a table has in common with the row that stands for it in the input: the rows
 * of most sections differ in few bytes, if any.
 */
static kpack_error_t add_row(const uint8_t *old, uint64_t from, const uint8_t *new,
			     uint64_t to, size_t size, struct kp_move **list, size_t *n,
			     size_t *cap, struct kpackx_error *why)
{
	for (size_t i = 0, end; i < size; i = end + 1) {
		for (end = i; end < size && old[end] == new[end]; end++)
			;
		if (end - i < ROW_MIN)
			continue;
		KP_TRY(kp_room(list, *n, cap, "moves", why));
		(*list)[(*n)++] = (struct kp_move){from + i, end - i, to + i};
	}
	return KPACK_SUCCESS;
}

static kpack_error_t add_rows(const struct writer *w, struct kp_move **list, size_t *n,
			      size_t *cap, struct kpackx_error *why)
{
	const struct kp_edit *ed = w->ed;
	uint8_t old[sizeof(Elf64_Shdr)], new[sizeof(Elf64_Shdr)];

	for (size_t i = 1; i < ed->n_sections; i++) {
		uint64_t from = ed->old_headers + ed->sections[i].index * sizeof(old);
		Elf64_Shdr h = ed->sections[i].h;

		if (ed->sections[i].is_new)
			continue;
		renumber_links(w, &h);
		KP_TRY(kp_file_pread(ed->fd, from, old, sizeof(old), why));
		KP_TRY(encode_row(new, &h, sizeof(new), ELF_T_SHDR, why));
		KP_TRY(add_row(old, from, new, ed->h.e_shoff + i * sizeof(new),
			       sizeof(new), list, n, cap, why));
	}
	for (size_t i = 0; i < ed->n_old_segments; i++) {
		uint64_t from = ed->old_table + i * sizeof(Elf64_Phdr);
		size_t k = 0;

		KP_TRY(kp_file_pread(ed->fd, from, old, sizeof(Elf64_Phdr), why));
		while (k < ed->n_segments &&
		       (ed->segments[k].h.p_type != kp_le32(old) ||
			ed->segments[k].h.p_vaddr !=
				kp_le64(old + offsetof(Elf64_Phdr, p_vaddr))))
			k++;
		if (k == ed->n_segments)
			continue;
		KP_TRY(encode_row(new, &ed->segments[k].h, sizeof(Elf64_Phdr), ELF_T_PHDR,
				  why));
		KP_TRY(add_row(old, from, new, ed->h.e_phoff + k * sizeof(Elf64_Phdr),
			       sizeof(Elf64_Phdr), list, n, cap, why));
	}
	return KPACK_SUCCESS;
}

kpack_error_t kp_edit_moves(const struct kp_edit *ed, struct kp_move **out, size_t *n_out,
			    struct kpackx_error *why)
{
	struct writer w = {.ed = ed};
	struct kp_move *list = NULL;
	size_t n = 0, cap = 0, kept = 0;
	uint64_t end = 0;
	kpack_error_t err = find_changed(&w, why);

	for (size_t i = 0; i < ed->n_chunks && !err; i++)
		if (!ed->chunks[i].made)
			err = add_move(&w,
				       (struct kp_move){ed->chunks[i].from,
							ed->chunks[i].size,
							ed->chunks[i].to},
				       &list, &n, &cap, why);
	for (size_t i = 1; i < ed->n_sections && !err; i++) {
		const struct kp_edit_section *s = &ed->sections[i];
		uint64_t size = i == ed->names ? ed->old_names : s->h.sh_size;

		if (s->is_new || s->h.sh_type == SHT_NOBITS || s->from == UINT64_MAX ||
		    in_chunk(ed, s))
			continue;
		err = add_move(&w, (struct kp_move){s->from, size, s->h.sh_offset}, &list,
			       &n, &cap, why);
	}
	for (size_t i = 0; i < ed->n_kept && !err; i++)
		err = add_move(&w,
			       (struct kp_move){ed->kept[i].from, ed->kept[i].size,
						ed->kept[i].from},
			       &list, &n, &cap, why);
	if (!err)
		err = add_rows(&w, &list, &n, &cap, why);
	free(w.changed);
	free(w.number);
	if (err) {
		free(list);
		return err;
	}
	if (n)
		kp_sort(list, n, KP_BY_NUMBER(struct kp_move, from));
	/* sections can have bytes in common */
	for (size_t i = 0; i < n; i++) {
		struct kp_move m = list[i];
		uint64_t skip = m.from < end ? end - m.from : 0;

		if (skip >= m.size)
			continue;
		list[kept++] =
			(struct kp_move){m.from + skip, m.size - skip, m.to + skip};
		end = m.from + m.size;
	}
	*out = list;
	*n_out = kept;
	return KPACK_SUCCESS;
}
