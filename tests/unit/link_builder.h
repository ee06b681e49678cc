/* SPDX-License-Identifier: MIT */
/*
 * Linked 64-bit ELF files for tests: sections in segments, with the addresses and offsets
 * that a linker would choose.  Describe the file, call link_build(), then write contents
 * that depend on addresses; any field can be falsified afterwards.
 */
#ifndef LINK_BUILDER_H
#define LINK_BUILDER_H

#include "elf_builder.h"

#ifndef SHT_RELR
#define SHT_RELR 19
#endif

#define LINK_UNMAPPED SIZE_MAX
#define LINK_SEGMENTS_MAX 8
#define LINK_HEADERS_MAX 8

struct link_section {
	const char *name;
	uint32_t type;
	uint64_t flags;
	size_t segment; /* number of its PT_LOAD, or LINK_UNMAPPED */
	size_t size;
	const void *content; /* NULL: bytes that differ from any other section's */
	uint64_t align;
	uint64_t entsize;
	const char *link;      /* section whose number goes to sh_link */
	const char *info_link; /* the same for sh_info; NULL: use INFO */
	uint32_t info;
	uint64_t addr, offset; /* chosen by link_build */
};

struct link_segment {
	uint32_t flags;
	bool new_page;         /* start a new file page like GNU ld; else like lld */
	uint64_t addr, offset; /* chosen by link_build */
	uint64_t file_size, memory_size;
};

/* A program header other than PT_LOAD that covers the sections from FIRST to LAST. */
struct link_header {
	uint32_t type, flags;
	const char *first, *last; /* NULL: no sections, or PT_PHDR */
	uint64_t align;
	bool to_page; /* its memory extends to the end of the page */
};

struct link {
	uint16_t type, machine;
	uint64_t base; /* address of the ELF header */
	uint64_t page; /* p_align */
	size_t spare;  /* free bytes after the program headers */
	struct link_segment segments[LINK_SEGMENTS_MAX];
	size_t n_segments;
	struct link_header headers[LINK_HEADERS_MAX];
	size_t n_headers;
	struct link_section *sections; /* [0] is section number 1 */
	size_t n_sections, sections_cap;
	const char *tail; /* appended to the file */
	struct bytes file;
	size_t shoff;
};

static inline void link_add(struct link *l, struct link_section s)
{
	if (l->n_sections == l->sections_cap) {
		l->sections_cap = 2 * l->sections_cap + 16;
		l->sections = realloc(l->sections, l->sections_cap * sizeof(s));
	}
	if (!l->sections)
		abort();
	l->sections[l->n_sections++] = s;
}

static inline size_t link_add_segment(struct link *l, uint32_t flags)
{
	if (l->n_segments == LINK_SEGMENTS_MAX)
		abort();
	l->segments[l->n_segments].flags = flags;
	return l->n_segments++;
}

static inline void link_add_header(struct link *l, struct link_header h)
{
	if (l->n_headers == LINK_HEADERS_MAX)
		abort();
	l->headers[l->n_headers++] = h;
}

static inline void link_free(struct link *l)
{
	free(l->sections);
	bytes_free(&l->file);
	*l = (struct link){0};
}

/* The number of section NAME, or 0. */
static inline size_t link_number(const struct link *l, const char *name)
{
	for (size_t i = 0; name && i < l->n_sections; i++)
		if (strcmp(l->sections[i].name, name) == 0)
			return i + 1;
	return 0;
}

static inline struct link_section *link_section(const struct link *l, const char *name)
{
	size_t i = link_number(l, name);

	if (!i)
		abort();
	return &l->sections[i - 1];
}

static inline uint64_t link_addr(const struct link *l, const char *name)
{
	return link_section(l, name)->addr;
}

/* ---- contents ---- */

static inline void link_put_content(struct link *l, size_t i)
{
	struct link_section *s = &l->sections[i];

	s->offset = l->file.size;
	if (s->content)
		put(&l->file, s->content, s->size);
	for (size_t k = 0; k < s->size && !s->content; k++)
		put_number(&l->file, 1 + ((i * 2654435761u + k * 40503u) >> 8) % 255, 1);
}

/*
 * Place section I at *VADDR or after it; the first section of a segment sets the
 * segment's start.
 */
static inline void link_place_mapped(struct link *l, size_t i, uint64_t *vaddr,
				     bool is_first)
{
	struct link_section *s = &l->sections[i];
	struct link_segment *g = &l->segments[s->segment];
	uint64_t pad = -*vaddr & (s->align - 1);

	s->addr = *vaddr + pad;
	s->offset = l->file.size;
	/* occupies no memory */
	if (s->type == SHT_NOBITS && (s->flags & SHF_TLS))
		return;
	*vaddr += pad;
	if (s->type != SHT_NOBITS || is_first)
		put_zeros(&l->file, pad);
	s->offset = l->file.size;
	if (is_first && s->segment) {
		g->addr = *vaddr;
		g->offset = l->file.size;
	}
	if (s->type != SHT_NOBITS)
		link_put_content(l, i);
	*vaddr += s->size;
	g->memory_size = *vaddr - g->addr;
	if (s->type != SHT_NOBITS)
		g->file_size = g->memory_size;
}

static inline void link_place_segment(struct link *l, size_t segment, uint64_t *vaddr)
{
	bool is_first = true;

	if (segment) {
		if (l->segments[segment].new_page)
			put_padding(&l->file, l->page);
		*vaddr = (*vaddr + l->page - 1) / l->page * l->page +
			 l->file.size % l->page;
	} else {
		l->segments[0].addr = l->base;
		l->segments[0].file_size = l->segments[0].memory_size = l->file.size;
	}
	for (size_t i = 0; i < l->n_sections; i++) {
		if (l->sections[i].segment != segment)
			continue;
		link_place_mapped(l, i, vaddr, is_first);
		is_first = false;
	}
}

static inline void link_place_unmapped(struct link *l)
{
	for (size_t i = 0; i < l->n_sections; i++) {
		if (l->sections[i].segment != LINK_UNMAPPED)
			continue;
		put_padding(&l->file, l->sections[i].align);
		link_put_content(l, i);
	}
}

/* ---- tables ---- */

static inline size_t link_phnum(const struct link *l)
{
	return l->n_segments + l->n_headers;
}

static inline void link_write_load(const struct link *l, const struct link_segment *g,
				   uint8_t *to)
{
	Elf64_Phdr h = {.p_type = PT_LOAD,
			.p_flags = g->flags,
			.p_offset = g->offset,
			.p_vaddr = g->addr,
			.p_paddr = g->addr,
			.p_filesz = g->file_size,
			.p_memsz = g->memory_size,
			.p_align = l->page};

	memcpy(to, &h, sizeof(h));
}

static inline void link_cover(const struct link *l, const struct link_header *from,
			      Elf64_Phdr *h)
{
	const struct link_section *first = link_section(l, from->first);
	const struct link_section *last = link_section(l, from->last);
	uint64_t end = last->addr + last->size;

	if (from->to_page)
		end = (end + l->page - 1) / l->page * l->page;
	h->p_offset = first->offset;
	h->p_vaddr = h->p_paddr = first->addr;
	h->p_memsz = end - first->addr;
	h->p_filesz = h->p_memsz;
	if (last->type == SHT_NOBITS)
		h->p_filesz = last->offset - first->offset;
	else if (from->to_page)
		h->p_filesz = last->addr + last->size - first->addr;
}

static inline void link_write_header(const struct link *l, const struct link_header *from,
				     uint8_t *to)
{
	Elf64_Phdr h = {
		.p_type = from->type, .p_flags = from->flags, .p_align = from->align};

	if (from->first)
		link_cover(l, from, &h);
	if (from->type == PT_PHDR) {
		h.p_offset = sizeof(Elf64_Ehdr);
		h.p_vaddr = h.p_paddr = l->base + h.p_offset;
		h.p_filesz = h.p_memsz = link_phnum(l) * sizeof(h);
	}
	memcpy(to, &h, sizeof(h));
}

static inline bool link_is_in_front(const struct link_header *h)
{
	return h->type == PT_PHDR || h->type == PT_INTERP;
}

static inline void link_write_headers(struct link *l)
{
	uint8_t *to = l->file.data + sizeof(Elf64_Ehdr);

	for (size_t i = 0; i < l->n_headers; i++)
		if (link_is_in_front(&l->headers[i])) {
			link_write_header(l, &l->headers[i], to);
			to += sizeof(Elf64_Phdr);
		}
	for (size_t i = 0; i < l->n_segments; i++, to += sizeof(Elf64_Phdr))
		link_write_load(l, &l->segments[i], to);
	for (size_t i = 0; i < l->n_headers; i++)
		if (!link_is_in_front(&l->headers[i])) {
			link_write_header(l, &l->headers[i], to);
			to += sizeof(Elf64_Phdr);
		}
}

static inline void link_put_shdr(struct link *l, const struct link_section *s,
				 size_t name)
{
	Elf64_Shdr h = {.sh_name = (uint32_t)name,
			.sh_type = s->type,
			.sh_flags = s->flags,
			.sh_addr = s->addr,
			.sh_offset = s->offset,
			.sh_size = s->size,
			.sh_link = (uint32_t)link_number(l, s->link),
			.sh_info = s->info_link ? (uint32_t)link_number(l, s->info_link)
						: s->info,
			.sh_addralign = s->align,
			.sh_entsize = s->entsize};

	put(&l->file, &h, sizeof(h));
}

static inline void link_put_names(struct link *l)
{
	struct link_section s = {.name = ".shstrtab",
				 .type = SHT_STRTAB,
				 .segment = LINK_UNMAPPED,
				 .align = 1};
	struct bytes names = {0};

	link_add(l, s);
	put_zeros(&names, 1);
	for (size_t i = 0; i < l->n_sections; i++)
		put(&names, l->sections[i].name, strlen(l->sections[i].name) + 1);
	l->sections[l->n_sections - 1].offset = l->file.size;
	l->sections[l->n_sections - 1].size = names.size;
	put(&l->file, names.data, names.size);
	bytes_free(&names);
}

static inline void link_put_tables(struct link *l)
{
	size_t name = 1;

	put_padding(&l->file, 8);
	l->shoff = l->file.size;
	put_zeros(&l->file, sizeof(Elf64_Shdr));
	for (size_t i = 0; i < l->n_sections; i++) {
		link_put_shdr(l, &l->sections[i], name);
		name += strlen(l->sections[i].name) + 1;
	}
	if (l->tail)
		put(&l->file, l->tail, strlen(l->tail));
}

static inline void link_write_ehdr(struct link *l)
{
	Elf64_Ehdr h = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, 1},
			.e_type = l->type,
			.e_machine = l->machine,
			.e_version = 1,
			.e_entry = l->base + 0x1234,
			.e_phoff = sizeof(h),
			.e_shoff = l->shoff,
			.e_ehsize = sizeof(h),
			.e_phentsize = sizeof(Elf64_Phdr),
			.e_phnum = (uint16_t)link_phnum(l),
			.e_shentsize = sizeof(Elf64_Shdr),
			.e_shnum = (uint16_t)(l->n_sections + 1),
			.e_shstrndx = (uint16_t)l->n_sections};

	memcpy(l->file.data, &h, sizeof(h));
}

/* The section names come last, as .shstrtab. */
static inline void link_build(struct link *l)
{
	uint64_t vaddr;

	put_zeros(&l->file,
		  sizeof(Elf64_Ehdr) + link_phnum(l) * sizeof(Elf64_Phdr) + l->spare);
	vaddr = l->base + l->file.size;
	for (size_t i = 0; i < l->n_segments; i++)
		link_place_segment(l, i, &vaddr);
	link_place_unmapped(l);
	link_put_names(l);
	link_put_tables(l);
	link_write_headers(l);
	link_write_ehdr(l);
}

/* ---- after building ---- */

/* The file's bytes at address VADDR. */
static inline uint8_t *link_at(struct link *l, uint64_t vaddr)
{
	for (size_t i = 0; i < l->n_segments; i++) {
		const struct link_segment *g = &l->segments[i];

		if (vaddr >= g->addr && vaddr - g->addr < g->file_size)
			return l->file.data + g->offset + (vaddr - g->addr);
	}
	abort();
}

static inline void link_write64(struct link *l, uint64_t vaddr, uint64_t value)
{
	kp_put_le64(link_at(l, vaddr), value);
}

/*
 * The header of section NUMBER and program header NUMBER; callers may change them in
 * place.
 */
static inline Elf64_Shdr *link_shdr(struct link *l, size_t number)
{
	return (void *)(l->file.data + l->shoff + number * sizeof(Elf64_Shdr));
}

static inline Elf64_Phdr *link_phdr(struct link *l, size_t number)
{
	return (void *)(l->file.data + sizeof(Elf64_Ehdr) + number * sizeof(Elf64_Phdr));
}

static inline Elf64_Ehdr *link_ehdr(struct link *l)
{
	return (void *)l->file.data;
}

#endif
