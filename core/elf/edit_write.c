/* SPDX-License-Identifier: MIT */
/* Writes the placed file. */
#include <errno.h>
#include <gelf.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>
#include "edit.h"

struct writer {
	const struct kp_edit *ed;
	struct kp_outfile *out;
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

static kpack_error_t fix_symbol(const struct writer *w, uint64_t at, const uint8_t *sym,
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
	return kp_outfile_pwrite(w->out, at + offsetof(Elf64_Sym, st_shndx), bytes, 2,
				 why);
}

static kpack_error_t fix_symbols(const struct writer *w, const struct kp_edit_section *s,
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

static kpack_error_t fix_all_symbols(const struct writer *w, struct kpackx_error *why)
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

static kpack_error_t write_sections(const struct writer *w, struct kpackx_error *why)
{
	for (size_t i = 1; i < w->ed->n_sections; i++)
		KP_TRY(write_section(w, i, why));
	return fix_all_symbols(w, why);
}

static kpack_error_t write_patches(const struct writer *w, struct kpackx_error *why)
{
	const struct kp_edit *ed = w->ed;

	for (size_t i = 0; i < ed->n_patches; i++) {
		const struct kp_edit_patch *p = &ed->patches[i];
		const struct kp_edit_chunk *c = ed->chunks, *end = c + ed->n_chunks;

		while (c < end && (c->made || p->from < c->from ||
				   !kp_range_ok(c->size, p->from - c->from, p->size)))
			c++;
		if (c == end)
			return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
				       "elf: a wrapper or its relocation, at offset "
				       "%" PRIu64 ", is not mapped",
				       p->from);
		KP_TRY(kp_outfile_pwrite(w->out, c->to + (p->from - c->from), p->bytes,
					 p->size, why));
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

/* Erase the old program headers, if nothing else is in their place now. */
static kpack_error_t erase_table(const struct writer *w, struct kpackx_error *why)
{
	static const uint8_t zero[sizeof(Elf64_Phdr)];
	const struct kp_edit *ed = w->ed;
	uint64_t size = ed->n_old_segments * sizeof(zero);

	if (ed->chunks[0].to != 0 || ed->old_table != sizeof(Elf64_Ehdr) ||
	    !kp_range_ok(ed->chunks[0].size, ed->old_table, size))
		return KPACK_SUCCESS;
	for (size_t i = 0; i < ed->n_old_segments; i++)
		KP_TRY(kp_outfile_pwrite(w->out, ed->old_table + i * sizeof(zero), zero,
					 sizeof(zero), why));
	return KPACK_SUCCESS;
}

static kpack_error_t write_tables(const struct writer *w, struct kpackx_error *why)
{
	uint8_t bytes[sizeof(Elf64_Ehdr)];

	KP_TRY(erase_table(w, why));
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
