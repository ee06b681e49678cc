/* SPDX-License-Identifier: MIT */
/*
 * These go: sections whose name begins with .debug, .gdb_index, symbols in such sections
 * and symbols that name source files.  String tables that are not loaded are written
 * anew, with the names that are left; an empty symbol table goes.  A file that only keeps
 * debugging information keeps all headers and symbols, but of the loaded sections only
 * the bytes of notes.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "core/base/sink.h"
#include "amdgpu_notes.h"
#include "strip_work.h"

/* Segments of an object: linkers make ten. */
#define SEGMENTS_MAX 128

/* Alignments and addresses: sums of several must not overflow. */
#define ADDRESS_LIMIT (UINT64_C(1) << 62)
#define ALIGN_LIMIT (UINT64_C(1) << 40)

/* A symbol's section number of AMDGPU, for variables in local memory. */
#define SHN_AMDGPU_LDS 0xff00

bool kp_strip_probe(struct kp_span head)
{
	uint16_t machine;

	return kp_elf_probe(head, &machine) && machine == EM_AMDGPU;
}

static kpack_error_t fail_unusual(struct kpackx_error *why, size_t section,
				  const char *what)
{
	return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED, "section %zu %s", section, what);
}

static bool is_power(uint64_t n)
{
	return (n & (n - 1)) == 0 && n <= ALIGN_LIMIT;
}

/* --- reading --------------------------------------------------------------------------- */

static kpack_error_t check_header(struct strip_work *w, struct kpackx_error *why)
{
	const Elf64_Ehdr *h = &w->in.header;

	if (h->e_machine != EM_AMDGPU || (h->e_type != ET_DYN && h->e_type != ET_EXEC))
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "not a linked code object");
	if (w->in.count < 2 || w->in.count >= SHN_LORESERVE ||
	    h->e_shstrndx == SHN_UNDEF || h->e_shstrndx >= w->in.count)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "an object with %zu sections, whose names are in section "
			       "%u",
			       w->in.count, h->e_shstrndx);
	if (h->e_phnum == 0 || h->e_phnum > SEGMENTS_MAX)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "an object with %u segments", h->e_phnum);
	return KPACK_SUCCESS;
}

static kpack_error_t read_segment(struct strip_work *w, size_t i,
				  struct kpackx_error *why)
{
	struct strip_segment *s = &w->segments[i];
	uint8_t p[sizeof(Elf64_Phdr)];

	KP_TRY(kp_source_read(&w->src, w->in.header.e_phoff + i * sizeof(p), p, sizeof(p),
			      why));
	s->in = (Elf64_Phdr){.p_type = kp_le32(p),
			     .p_flags = kp_le32(p + 4),
			     .p_offset = kp_le64(p + 8),
			     .p_vaddr = kp_le64(p + 16),
			     .p_paddr = kp_le64(p + 24),
			     .p_filesz = kp_le64(p + 32),
			     .p_memsz = kp_le64(p + 40),
			     .p_align = kp_le64(p + 48)};
	s->offset = s->in.p_offset;
	s->filesz = s->in.p_filesz;
	if (!kp_range_ok(w->src.size, s->in.p_offset, s->in.p_filesz))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "segment %zu: %" PRIu64 " bytes at offset %" PRIu64
			       " pass the end at %" PRIu64,
			       i, s->in.p_filesz, s->in.p_offset, w->src.size);
	if (s->in.p_vaddr > ADDRESS_LIMIT || s->in.p_memsz > ADDRESS_LIMIT ||
	    !is_power(s->in.p_align))
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "segment %zu: address %" PRIu64 ", %" PRIu64
			       " bytes, alignment %" PRIu64,
			       i, s->in.p_vaddr, s->in.p_memsz, s->in.p_align);
	return KPACK_SUCCESS;
}

static kpack_error_t read_segments(struct strip_work *w, struct kpackx_error *why)
{
	size_t n = w->in.header.e_phnum;
	uint64_t at = w->in.header.e_phoff, size = n * sizeof(Elf64_Phdr);

	w->segments = calloc(n + 2, sizeof(*w->segments));
	if (!w->segments)
		return kp_fail_memory(why, n * sizeof(*w->segments), "segments");
	w->n_segments = n;
	for (size_t i = 0; i < n; i++)
		KP_TRY(read_segment(w, i, why));
	w->segments[n].in.p_type = PT_PHDR;
	w->segments[n].filesz = sizeof(Elf64_Ehdr);
	w->segments[n + 1] = (struct strip_segment){.in = {.p_type = PT_PHDR,
							   .p_offset = at,
							   .p_vaddr = at,
							   .p_filesz = size,
							   .p_memsz = size,
							   .p_align = sizeof(Elf64_Addr)},
						    .offset = at,
						    .filesz = size};
	return KPACK_SUCCESS;
}

/* Refuse what LLVM's tools treat specially and linkers do not make. */
static kpack_error_t check_section(const struct strip_work *w, size_t i,
				   struct kpackx_error *why)
{
	const struct kp_section *s = &w->in.items[i];
	bool loaded = s->flags & SHF_ALLOC;

	if (!is_power(s->align) || s->addr > ADDRESS_LIMIT || s->size > ADDRESS_LIMIT ||
	    s->offset > ADDRESS_LIMIT || s->entsize > UINT32_MAX)
		return fail_unusual(why, i, "has an impossible place or alignment");
	if (s->link >= w->in.count)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "section %zu is linked to section %" PRIu32 " of %zu", i,
			       s->link, w->in.count);
	switch (s->type) {
	case SHT_NULL:
		return s->size ? fail_unusual(why, i, "has no type") : KPACK_SUCCESS;
	case SHT_REL:
	case SHT_RELA:
		if (!loaded)
			return fail_unusual(why, i, "has relocations of linking");
		if ((s->link && w->in.items[s->link].type != SHT_DYNSYM) ||
		    s->info >= w->in.count)
			return fail_unusual(why, i, "has relocations without symbols");
		return KPACK_SUCCESS;
	case SHT_GROUP:
	case SHT_SYMTAB_SHNDX:
	case 0x40000014: /* SHT_CREL */
		return fail_unusual(why, i, "has a type of objects to link");
	case SHT_SYMTAB:
		if (loaded)
			return fail_unusual(why, i, "is a loaded symbol table");
		return KPACK_SUCCESS;
	default:
		return KPACK_SUCCESS;
	}
}

/* Whether the section's contents are written anew. */
static bool is_rebuilt(const struct kp_section *s)
{
	return (s->type == SHT_STRTAB && !(s->flags & SHF_ALLOC)) ||
	       s->type == SHT_SYMTAB;
}

static kpack_error_t read_sections(struct strip_work *w, struct kpackx_error *why)
{
	w->sections = calloc(w->in.count, sizeof(*w->sections));
	if (!w->sections)
		return kp_fail_memory(why, w->in.count * sizeof(*w->sections),
				      "sections");
	for (size_t i = 1; i < w->in.count; i++) {
		const struct kp_section *s = &w->in.items[i];

		KP_TRY(check_section(w, i, why));
		w->sections[i] = (struct strip_section){.type = s->type,
							.size = s->size,
							.align = s->align,
							.entsize = s->entsize,
							.segment = NO_SEGMENT};
		if (s->type == SHT_SYMTAB && w->symtab)
			return fail_unusual(why, i, "is a second symbol table");
		if (s->type == SHT_SYMTAB)
			w->symtab = i;
	}
	w->shstrtab = w->in.header.e_shstrndx;
	strip_find_parents(w);
	for (size_t i = 1; i < w->in.count; i++)
		if (is_rebuilt(&w->in.items[i]) && w->sections[i].segment != NO_SEGMENT)
			return fail_unusual(why, i, "is in a segment");
	if (!is_rebuilt(&w->in.items[w->shstrtab]))
		return fail_unusual(why, w->shstrtab, "has names, and is loaded");
	return KPACK_SUCCESS;
}

/* --- symbols --------------------------------------------------------------------------- */

static kpack_error_t read_strings(struct strip_work *w, struct kpackx_error *why)
{
	const struct kp_section *s;

	w->strtab = w->in.items[w->symtab].link;
	s = &w->in.items[w->strtab];
	if (s->type != SHT_STRTAB || (s->flags & SHF_ALLOC) || s->size == 0 ||
	    s->size > KP_SYMBOL_NAMES_MAX)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "section %zu with %" PRIu64 " bytes for names of symbols",
			       w->strtab, s->size);
	w->strings = malloc((size_t)s->size);
	if (!w->strings)
		return kp_fail_memory(why, s->size, "names of symbols");
	w->strings_size = s->size;
	KP_TRY(kp_source_read(&w->src, s->offset, w->strings, (size_t)s->size, why));
	if (w->strings[s->size - 1] != '\0')
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "the names of symbols do not end in a NUL byte");
	return KPACK_SUCCESS;
}

/* Take symbol I of the input, at P, unless it goes. */
static kpack_error_t take_symbol(struct strip_work *w, size_t i, const uint8_t *p,
				 struct kpackx_error *why)
{
	struct strip_symbol s = {.sym = {.st_info = p[4],
					 .st_other = p[5],
					 .st_value = kp_le64(p + 8),
					 .st_size = kp_le64(p + 16)}};
	uint32_t name = kp_le32(p);
	uint16_t section = kp_le16(p + 6);

	if (name >= w->strings_size ||
	    (section < SHN_LORESERVE && section >= w->in.count))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "symbol %zu: name at %" PRIu32 " of %" PRIu64
			       ", section %u of %zu",
			       i, name, w->strings_size, section, w->in.count);
	if (section >= SHN_LORESERVE && section != SHN_ABS && section != SHN_COMMON &&
	    section != SHN_AMDGPU_LDS)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "symbol %zu: unknown section %u", i, section);
	if (i == 0 && (ELF64_ST_BIND(s.sym.st_info) != STB_LOCAL || section || name))
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED, "symbol 0 is not empty");
	s.reserved = section >= SHN_LORESERVE ? section : SHN_UNDEF;
	s.section = section >= SHN_LORESERVE ? 0 : section;
	if (i > 0 && w->how == KP_STRIP_DEBUG &&
	    (w->sections[s.section].gone || ELF64_ST_TYPE(s.sym.st_info) == STT_FILE)) {
		w->renumbered = true;
		return KPACK_SUCCESS;
	}
	KP_TRY(kp_tails_add(strip_symbol_names(w), w->strings + name, &s.name, why));
	w->symbols[w->n_symbols++] = s;
	return KPACK_SUCCESS;
}

/* Put local symbols before the others; both keep their order. */
static kpack_error_t sort_symbols(struct strip_work *w, struct kpackx_error *why)
{
	size_t n = w->n_symbols, local = 0, other = 0;
	struct strip_symbol *others = malloc((n + 1) * sizeof(*others));

	if (!others)
		return kp_fail_memory(why, n * sizeof(*others), "symbols");
	for (size_t i = 0; i < n; i++) {
		if (ELF64_ST_BIND(w->symbols[i].sym.st_info) == STB_LOCAL) {
			w->renumbered |= other > 0;
			w->symbols[local++] = w->symbols[i];
		} else {
			others[other++] = w->symbols[i];
		}
	}
	memcpy(w->symbols + local, others, other * sizeof(*others));
	free(others);
	return KPACK_SUCCESS;
}

static kpack_error_t read_symbols(struct strip_work *w, struct kpackx_error *why)
{
	const struct kp_section *s = &w->in.items[w->symtab];
	struct kp_window *window;
	size_t n = (size_t)(s->size / sizeof(Elf64_Sym));
	kpack_error_t err = KPACK_SUCCESS;
	const uint8_t *p;

	if (s->entsize != sizeof(Elf64_Sym) || s->size % sizeof(Elf64_Sym) || n == 0 ||
	    s->size > KP_SYMBOL_NAMES_MAX)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "a symbol table of %" PRIu64 " bytes, %" PRIu64
			       " for each symbol",
			       s->size, s->entsize);
	KP_TRY(read_strings(w, why));
	w->symbols = malloc(n * sizeof(*w->symbols));
	window = malloc(sizeof(*window));
	if (!w->symbols || !window) {
		free(window);
		return kp_fail_memory(why, n * sizeof(*w->symbols), "symbols");
	}
	kp_window_init(window, &w->src);
	for (size_t i = 0; i < n && !err; i++) {
		err = kp_window_get(window, s->offset + i * sizeof(Elf64_Sym),
				    sizeof(Elf64_Sym), &p, why);
		if (!err)
			err = take_symbol(w, i, p, why);
	}
	free(window);
	return err ? err : sort_symbols(w, why);
}

/* --- what goes ------------------------------------------------------------------------- */

static bool is_debug(const char *name)
{
	return strncmp(name, ".debug", 6) == 0 || strcmp(name, ".gdb_index") == 0;
}

/* Nothing that stays may refer to a section that goes. */
static kpack_error_t check_links(const struct strip_work *w, struct kpackx_error *why)
{
	for (size_t i = 1; i < w->in.count; i++) {
		const struct kp_section *s = &w->in.items[i];

		if (w->sections[i].gone)
			continue;
		if (w->sections[s->link].gone ||
		    ((s->type == SHT_REL || s->type == SHT_RELA) &&
		     w->sections[s->info].gone))
			return fail_unusual(why, i, "refers to debugging information");
		if ((s->flags & SHF_COMPRESSED) && (s->link || (s->flags & SHF_ALLOC)))
			return fail_unusual(why, i,
					    "is compressed, and loaded or linked");
	}
	return KPACK_SUCCESS;
}

static kpack_error_t choose_sections(struct strip_work *w, struct kpackx_error *why)
{
	for (size_t i = 1; i < w->in.count; i++) {
		const struct kp_section *s = &w->in.items[i];

		if (w->how == KP_STRIP_DEBUG)
			w->sections[i].gone = is_debug(s->name);
		else if ((s->flags & SHF_ALLOC) && s->type != SHT_NOTE)
			w->sections[i].type = SHT_NOBITS;
	}
	if (w->sections[w->shstrtab].gone || w->sections[w->symtab].gone)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "the names of sections or symbols are in a section for "
			       "debugging");
	if (w->symtab)
		KP_TRY(read_symbols(w, why));
	if (w->symtab && w->n_symbols < 2) {
		w->sections[w->symtab].gone = true;
		w->sections[w->strtab].gone = w->strtab != w->shstrtab;
	}
	return check_links(w, why);
}

/* Count the sections that stay, collect their names, and set the sizes of tables. */
static kpack_error_t measure_sections(struct strip_work *w, struct kpackx_error *why)
{
	for (size_t i = 1; i < w->in.count; i++) {
		struct strip_section *s = &w->sections[i];

		if (s->gone)
			continue;
		s->index = ++w->n_out;
		KP_TRY(kp_tails_add(&w->section_names, w->in.items[i].name, &s->name,
				    why));
		if (i == w->symtab) {
			s->entsize = sizeof(Elf64_Sym);
			s->size = w->n_symbols * sizeof(Elf64_Sym);
			s->align = sizeof(Elf64_Xword);
		} else if (is_rebuilt(&w->in.items[i])) {
			s->size = 1; /* a table without names */
		}
	}
	w->n_out++;
	KP_TRY(kp_tails_place(&w->section_names, why));
	KP_TRY(kp_tails_place(&w->symbol_names, why));
	if (w->symtab && w->strtab != w->shstrtab)
		w->sections[w->strtab].size = w->symbol_names.size;
	w->sections[w->shstrtab].size = w->section_names.size;
	return KPACK_SUCCESS;
}

static kpack_error_t prepare_work(struct strip_work *w, struct kpackx_error *why)
{
	KP_TRY(kp_sections_read(&w->src, &w->in, why));
	KP_TRY(check_header(w, why));
	KP_TRY(read_segments(w, why));
	KP_TRY(read_sections(w, why));
	KP_TRY(choose_sections(w, why));
	KP_TRY(measure_sections(w, why));
	return strip_place(w, why);
}

/* --- the pieces ------------------------------------------------------------------------ */

static kpack_error_t add_piece(struct kp_stripped *out, struct kp_strip_piece p,
			       struct kpackx_error *why)
{
	if (!p.size)
		return KPACK_SUCCESS;
	if (!kp_range_ok(out->size, p.to, p.size))
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "sections in an order that no linker has");
	if (!kp_grow(&out->pieces, out->n, &out->cap, sizeof(*out->pieces)))
		return kp_fail_memory(why, out->n * sizeof(*out->pieces), "pieces");
	out->pieces[out->n++] = p;
	return KPACK_SUCCESS;
}

/* Whether the segment's bytes are copied with its parent. */
static bool is_covered(const struct strip_work *w, const struct strip_segment *s)
{
	const Elf64_Phdr *p;

	if (w->how != KP_STRIP_DEBUG || s->parent == NO_SEGMENT)
		return false;
	p = &w->segments[s->parent].in;
	return s->in.p_offset + s->in.p_filesz <= p->p_offset + p->p_filesz;
}

static kpack_error_t add_segments(const struct strip_work *w, struct kp_stripped *out,
				  struct kpackx_error *why)
{
	for (size_t i = 0; i < w->n_segments; i++) {
		const struct strip_segment *s = &w->segments[i];
		uint64_t size = s->filesz < s->in.p_filesz ? s->filesz : s->in.p_filesz;

		if (!is_covered(w, s))
			KP_TRY(add_piece(out,
					 (struct kp_strip_piece){.to = s->offset,
								 .size = size,
								 .from = s->in.p_offset},
					 why));
	}
	return KPACK_SUCCESS;
}

/* Sections outside segments have bytes of their own, unless the file is hostile. */
static kpack_error_t add_sections(const struct strip_work *w, struct kp_stripped *out,
				  struct kpackx_error *why)
{
	uint64_t left = out->size;

	for (size_t i = 1; i < w->in.count; i++) {
		const struct strip_section *s = &w->sections[i];

		if (s->gone || s->segment != NO_SEGMENT || s->type == SHT_NOBITS ||
		    is_rebuilt(&w->in.items[i]))
			continue;
		if (s->size > left)
			return fail_unusual(why, i,
					    "shares its place with other sections");
		left -= s->size;
		KP_TRY(add_piece(out,
				 (struct kp_strip_piece){.to = s->offset,
							 .size = s->size,
							 .from = w->in.items[i].offset},
				 why));
	}
	return KPACK_SUCCESS;
}

/* Put SIZE bytes of W's, the next of which is at *P, at TO of the output. */
static kpack_error_t add_bytes(struct kp_stripped *out, uint8_t **p, uint64_t to,
			       uint64_t size, struct kpackx_error *why)
{
	struct kp_strip_piece piece = {.to = to, .size = size, .bytes = *p};

	*p += size;
	return add_piece(out, piece, why);
}

static void put_header(const struct strip_work *w, uint8_t *p)
{
	const Elf64_Ehdr *h = &w->in.header;
	static const uint8_t ident[] = {0x7f,       'E',         'L',       'F',
					ELFCLASS64, ELFDATA2LSB, EV_CURRENT};

	memset(p, 0, sizeof(*h));
	memcpy(p, ident, sizeof(ident));
	p[EI_OSABI] = h->e_ident[EI_OSABI];
	p[EI_ABIVERSION] = h->e_ident[EI_ABIVERSION];
	kp_put_le32(p + 16, h->e_type | (uint32_t)h->e_machine << 16);
	kp_put_le32(p + 20, h->e_version);
	kp_put_le64(p + 24, h->e_entry);
	kp_put_le64(p + 32, w->segments[w->n_segments + 1].offset);
	kp_put_le64(p + 40, w->headers);
	kp_put_le32(p + 48, h->e_flags);
	kp_put_le32(p + 52, (uint32_t)(sizeof(Elf64_Ehdr) | sizeof(Elf64_Phdr) << 16));
	kp_put_le32(p + 56, (uint32_t)(w->n_segments | sizeof(Elf64_Shdr) << 16));
	kp_put_le32(p + 60, (uint32_t)(w->n_out | w->sections[w->shstrtab].index << 16));
}

static void put_segment(const struct strip_segment *s, uint8_t *p)
{
	kp_put_le32(p, s->in.p_type);
	kp_put_le32(p + 4, s->in.p_flags);
	kp_put_le64(p + 8, s->offset);
	kp_put_le64(p + 16, s->in.p_vaddr);
	kp_put_le64(p + 24, s->in.p_paddr);
	kp_put_le64(p + 32, s->filesz);
	kp_put_le64(p + 40, s->in.p_memsz);
	kp_put_le64(p + 48, s->in.p_align);
}

/* The first number after the local symbols. */
static uint32_t first_global(const struct strip_work *w)
{
	size_t i = w->n_symbols;

	while (i > 0 && ELF64_ST_BIND(w->symbols[i - 1].sym.st_info) != STB_LOCAL)
		i--;
	return (uint32_t)i;
}

static void put_symbols(struct strip_work *w, uint8_t *p)
{
	const struct kp_tails *names = strip_symbol_names(w);

	for (size_t i = 0; i < w->n_symbols; i++, p += sizeof(Elf64_Sym)) {
		const struct strip_symbol *s = &w->symbols[i];
		size_t section = s->section ? w->sections[s->section].index : s->reserved;

		kp_put_le32(p, names->items[s->name].at);
		p[4] = s->sym.st_info;
		p[5] = s->sym.st_other;
		p[6] = (uint8_t)section;
		p[7] = (uint8_t)(section >> 8);
		kp_put_le64(p + 8, s->sym.st_value);
		kp_put_le64(p + 16, s->sym.st_size);
	}
}

/* The link of section I: string tables keep what they have. */
static uint32_t link_of(const struct strip_work *w, size_t i)
{
	const struct kp_section *s = &w->in.items[i];
	bool kept = s->type == SHT_STRTAB && !(s->flags & SHF_ALLOC);

	if (kept)
		return s->link;
	if (s->link == w->symtab && i != w->symtab && w->renumbered)
		return 0;
	return (uint32_t)w->sections[s->link].index;
}

static uint32_t info_of(const struct strip_work *w, size_t i)
{
	const struct kp_section *s = &w->in.items[i];

	if (i == w->symtab)
		return first_global(w);
	if ((s->type == SHT_REL || s->type == SHT_RELA) && s->info)
		return (uint32_t)w->sections[s->info].index;
	return s->info;
}

static void put_section(const struct strip_work *w, size_t i, uint8_t *p)
{
	const struct strip_section *s = &w->sections[i];

	kp_put_le32(p, w->section_names.items[s->name].at);
	kp_put_le32(p + 4, s->type);
	kp_put_le64(p + 8, w->in.items[i].flags);
	kp_put_le64(p + 16, w->in.items[i].addr);
	kp_put_le64(p + 24, s->offset);
	kp_put_le64(p + 32, s->size);
	kp_put_le32(p + 40, link_of(w, i));
	kp_put_le32(p + 44, info_of(w, i));
	kp_put_le64(p + 48, s->align);
	kp_put_le64(p + 56, s->entsize);
}

static kpack_error_t add_headers(struct strip_work *w, struct kp_stripped *out,
				 uint8_t **next, struct kpackx_error *why)
{
	uint8_t *p = *next;

	put_header(w, p);
	KP_TRY(add_bytes(out, next, 0, sizeof(Elf64_Ehdr), why));
	p = *next;
	for (size_t i = 0; i < w->n_segments; i++)
		put_segment(&w->segments[i], p + i * sizeof(Elf64_Phdr));
	return add_bytes(out, next, w->segments[w->n_segments + 1].offset,
			 w->n_segments * sizeof(Elf64_Phdr), why);
}

static kpack_error_t add_table(struct strip_work *w, size_t i, struct kp_stripped *out,
			       uint8_t **next, struct kpackx_error *why)
{
	const struct strip_section *s = &w->sections[i];

	if (i == w->symtab)
		put_symbols(w, *next);
	else if (i == w->shstrtab)
		kp_tails_write(&w->section_names, *next);
	else if (w->symtab && i == w->strtab)
		kp_tails_write(&w->symbol_names, *next);
	return add_bytes(out, next, s->offset, s->size, why);
}

/* The bytes that are not copied: headers and tables. */
static uint64_t new_size(const struct strip_work *w)
{
	uint64_t size = sizeof(Elf64_Ehdr) + w->n_segments * sizeof(Elf64_Phdr) +
			w->n_out * sizeof(Elf64_Shdr);

	for (size_t i = 1; i < w->in.count; i++)
		if (!w->sections[i].gone && is_rebuilt(&w->in.items[i]))
			size += w->sections[i].size;
	return size;
}

/* Sections that go from segments leave zeros; only hostile files have some. */
static kpack_error_t check_emptied(const struct strip_work *w, struct kpackx_error *why)
{
	for (size_t i = 1; i < w->in.count; i++)
		if (w->sections[i].gone && w->sections[i].segment != NO_SEGMENT &&
		    w->in.items[i].type != SHT_NOBITS && w->in.items[i].size)
			return fail_unusual(why, i, "is for debugging, and loaded");
	return KPACK_SUCCESS;
}

static kpack_error_t make_pieces(struct strip_work *w, struct kp_stripped *out,
				 struct kpackx_error *why)
{
	uint8_t *next;

	KP_TRY(check_emptied(w, why));
	next = w->bytes = calloc(1, (size_t)new_size(w));
	if (!next)
		return kp_fail_memory(why, new_size(w), "headers and symbols");
	out->size = w->headers + w->n_out * sizeof(Elf64_Shdr);
	if (out->size >= w->src.size)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "it would not become smaller");
	KP_TRY(add_segments(w, out, why));
	KP_TRY(add_headers(w, out, &next, why));
	KP_TRY(add_sections(w, out, why));
	for (size_t i = 1; i < w->in.count; i++)
		if (!w->sections[i].gone && is_rebuilt(&w->in.items[i]))
			KP_TRY(add_table(w, i, out, &next, why));
	for (size_t i = 1; i < w->in.count; i++)
		if (!w->sections[i].gone)
			put_section(w, i,
				    next + w->sections[i].index * sizeof(Elf64_Shdr));
	return add_bytes(out, &next, w->headers, w->n_out * sizeof(Elf64_Shdr), why);
}

/* --------------------------------------------------------------------------------------- */

kpack_error_t kp_strip_plan(const struct kp_source *src, enum kp_strip how,
			    struct kp_stripped *out, struct kpackx_error *why)
{
	struct strip_work *w = calloc(1, sizeof(*w));
	kpack_error_t err;

	*out = (struct kp_stripped){.work = w};
	if (!w)
		return kp_fail_memory(why, sizeof(*w), "a code object");
	w->how = how;
	w->src = *src;
	err = prepare_work(w, why);
	if (!err)
		err = make_pieces(w, out, why);
	if (err)
		kp_stripped_fini(out);
	return err;
}

void kp_stripped_fini(struct kp_stripped *s)
{
	struct strip_work *w = s->work;

	if (w) {
		kp_sections_fini(&w->in);
		free(w->sections);
		free(w->segments);
		free(w->strings);
		free(w->symbols);
		kp_tails_fini(&w->symbol_names);
		kp_tails_fini(&w->section_names);
		free(w->bytes);
		free(w);
	}
	free(s->pieces);
	*s = (struct kp_stripped){0};
}

kpack_error_t kp_strip_build_id(const struct kp_source *src, char out[KP_BUILD_ID_TEXT],
				struct kpackx_error *why)
{
	struct kp_amdgpu_notes notes = {0};
	struct kp_sections sections;
	kpack_error_t err;

	*out = '\0';
	KP_TRY(kp_sections_read(src, &sections, why));
	err = kp_amdgpu_notes_read(src, &sections, &notes, why);
	for (size_t i = 0; i < notes.build_id_size && notes.build_id_size > 1; i++)
		snprintf(out + 2 * i, 3, "%02x", notes.build_id[i]);
	kp_amdgpu_notes_fini(&notes);
	kp_sections_fini(&sections);
	return err;
}

static kpack_error_t copy_piece(const struct kp_strip_piece *p,
				const struct kp_source *src, struct kp_outfile *out,
				uint64_t at, struct kpackx_error *why)
{
	struct kp_sink sink = {.out = out, .size = at};
	struct kp_source piece;

	if (!kp_source_sub(src, p->from, p->size, &piece))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "a part of a code object passes the end");
	return kp_sink_copy(&sink, &piece, why);
}

kpack_error_t kp_stripped_write(const struct kp_stripped *s, const struct kp_source *src,
				struct kp_outfile *out, uint64_t at,
				struct kpackx_error *why)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct kp_strip_piece *p = &s->pieces[i];

		if (p->bytes)
			KP_TRY(kp_outfile_pwrite(out, at + p->to, p->bytes,
						 (size_t)p->size, why));
		else
			KP_TRY(copy_piece(p, src, out, at + p->to, why));
	}
	return KPACK_SUCCESS;
}

kpack_error_t kp_stripped_read(const struct kp_stripped *s, const struct kp_source *src,
			       uint8_t *out, struct kpackx_error *why)
{
	memset(out, 0, (size_t)s->size);
	for (size_t i = 0; i < s->n; i++) {
		const struct kp_strip_piece *p = &s->pieces[i];

		if (p->bytes)
			memcpy(out + p->to, p->bytes, (size_t)p->size);
		else
			KP_TRY(kp_source_read(src, p->from, out + p->to, (size_t)p->size,
					      why));
	}
	return KPACK_SUCCESS;
}
