/* SPDX-License-Identifier: MIT */
/*
 * The headers may be at any offset and of any number; each range that they state is
 * checked before it is used.  A walk reads them through a window and keeps only where the
 * ELF ends, so that kp_elf_extent, which is called for each code object of a library,
 * allocates nothing; kp_sections_read also keeps the section headers and their names.
 *
 * The order is: the ELF header, which states both tables; section 0, if a number did not fit into
 * the header (sections: 0 there, segments: PN_XNUM, section of the names: SHN_XINDEX); the
 * sections, whose bytes must exist; the names, which are bytes of a section; the segments.
 */
#include "sections.h"
#include <inttypes.h>
#include <stdlib.h>
#include "core/base/alloc.h"
#include "core/base/bounds.h"

struct walk {
	struct kp_window window;
	Elf64_Ehdr header; /* decoded */
	uint64_t n_sections, n_segments;
	uint64_t end; /* of the ELF, as far as its headers were read */
	uint32_t stack_flags;
	bool headers_only; /* sections may pass the end */
};

bool kp_elf_probe(struct kp_span head, uint16_t *machine)
{
	if (head.size < 20 || memcmp(head.data, ELFMAG, SELFMAG) != 0 ||
	    head.data[EI_CLASS] != ELFCLASS64 || head.data[EI_DATA] != ELFDATA2LSB)
		return false;
	if (machine)
		*machine = kp_le16(head.data + offsetof(Elf64_Ehdr, e_machine));
	return true;
}

/* Extend W's end over [OFF, OFF + LEN), which must lie in the source. */
static kpack_error_t reach_range(struct walk *w, const char *what, uint64_t i,
				 uint64_t off, uint64_t len, struct kpackx_error *why)
{
	if (!kp_range_ok(w->window.src.size, off, len))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "%s %" PRIu64 ": %" PRIu64 " bytes at offset %" PRIu64
			       " pass the end at %" PRIu64,
			       what, i, len, off, w->window.src.size);
	if (off + len > w->end)
		w->end = off + len;
	return KPACK_SUCCESS;
}

/* Fields are little-endian, whatever this machine is. */
#define FIELD(bits, p, type, member) kp_le##bits((p) + offsetof(type, member))

/* *NAME becomes the offset of the name in the section of names. */
static kpack_error_t get_section(struct walk *w, uint64_t i, struct kp_section *s,
				 uint32_t *name, struct kpackx_error *why)
{
	const uint8_t *p;

	KP_TRY(kp_window_get(&w->window, w->header.e_shoff + i * sizeof(Elf64_Shdr),
			     sizeof(Elf64_Shdr), &p, why));
	*name = FIELD(32, p, Elf64_Shdr, sh_name);
	*s = (struct kp_section){
		.name = "",
		.type = FIELD(32, p, Elf64_Shdr, sh_type),
		.link = FIELD(32, p, Elf64_Shdr, sh_link),
		.info = FIELD(32, p, Elf64_Shdr, sh_info),
		.flags = FIELD(64, p, Elf64_Shdr, sh_flags),
		.addr = FIELD(64, p, Elf64_Shdr, sh_addr),
		.offset = FIELD(64, p, Elf64_Shdr, sh_offset),
		.size = FIELD(64, p, Elf64_Shdr, sh_size),
		.entsize = FIELD(64, p, Elf64_Shdr, sh_entsize),
		.align = FIELD(64, p, Elf64_Shdr, sh_addralign),
	};
	if (w->headers_only)
		return KPACK_SUCCESS;
	switch (w->header.e_machine == EM_CUDA ? s->type : SHT_NULL) {
	case SHT_LOPROC + 0x7:  /* .nv.global, of relocatable cubins instead of NOBITS */
	case SHT_LOPROC + 0x9:  /* .nv.local */
	case SHT_LOPROC + 0xa:  /* .nv.shared */
	case SHT_LOPROC + 0x15: /* .nv.shared.reserved */
		return KPACK_SUCCESS;
	default:
		/* row 0 is SHT_NULL: its sh_size can be the number of sections */
		return s->type == SHT_NULL || s->type == SHT_NOBITS
			       ? KPACK_SUCCESS
			       : reach_range(w, "section", i, s->offset, s->size, why);
	}
}

/*
 * Read the ELF header, and check that both tables lie in SRC.  Numbers that are too large
 * for the header are in section header 0.
 */
static kpack_error_t begin_walk(struct walk *w, const struct kp_source *src,
				struct kpackx_error *why)
{
	const Elf64_Ehdr *h = &w->header;
	const uint8_t *p;

	kp_window_init(&w->window, src);
	KP_TRY(kp_window_get(&w->window, 0, sizeof(Elf64_Ehdr), &p, why));
	if (!kp_elf_probe((struct kp_span){p, sizeof(Elf64_Ehdr)}, NULL))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "not a 64-bit little-endian ELF file");
	w->header = (Elf64_Ehdr){
		.e_type = FIELD(16, p, Elf64_Ehdr, e_type),
		.e_machine = FIELD(16, p, Elf64_Ehdr, e_machine),
		.e_version = FIELD(32, p, Elf64_Ehdr, e_version),
		.e_entry = FIELD(64, p, Elf64_Ehdr, e_entry),
		.e_phoff = FIELD(64, p, Elf64_Ehdr, e_phoff),
		.e_shoff = FIELD(64, p, Elf64_Ehdr, e_shoff),
		.e_flags = FIELD(32, p, Elf64_Ehdr, e_flags),
		.e_ehsize = FIELD(16, p, Elf64_Ehdr, e_ehsize),
		.e_phentsize = FIELD(16, p, Elf64_Ehdr, e_phentsize),
		.e_phnum = FIELD(16, p, Elf64_Ehdr, e_phnum),
		.e_shentsize = FIELD(16, p, Elf64_Ehdr, e_shentsize),
		.e_shnum = FIELD(16, p, Elf64_Ehdr, e_shnum),
		.e_shstrndx = FIELD(16, p, Elf64_Ehdr, e_shstrndx),
	};
	memcpy(w->header.e_ident, p, EI_NIDENT);
	w->end = sizeof(Elf64_Ehdr);
	w->stack_flags = PF_X;
	w->n_sections = h->e_shoff ? h->e_shnum : 0;
	w->n_segments = h->e_phnum;
	if (h->e_shoff && (h->e_shnum == 0 || h->e_phnum == PN_XNUM)) {
		KP_TRY(kp_window_get(&w->window, h->e_shoff, sizeof(Elf64_Shdr), &p,
				     why));
		if (h->e_shnum == 0)
			w->n_sections = FIELD(64, p, Elf64_Shdr, sh_size);
		if (h->e_phnum == PN_XNUM)
			w->n_segments = FIELD(32, p, Elf64_Shdr, sh_info);
	}
	/* the sizes of rows are checked only of tables that exist: linkers write zeros */
	for (int segments = 0; segments < 2; segments++) {
		const char *what = segments ? "segment" : "section";
		uint64_t n = segments ? w->n_segments : w->n_sections;
		unsigned row = segments ? sizeof(Elf64_Phdr) : sizeof(Elf64_Shdr);
		unsigned stated = segments ? h->e_phentsize : h->e_shentsize;
		uint64_t at = segments ? h->e_phoff : h->e_shoff;

		if (n && stated != row)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "%s headers of %u bytes, expected %u", what,
				       stated, row);
		if (n && (n > src->size / row || !kp_range_ok(src->size, at, n * row)))
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "%" PRIu64 " %s headers at offset %" PRIu64
				       " pass the end at %" PRIu64,
				       n, what, at, src->size);
		if (n && at + n * row > w->end)
			w->end = at + n * row;
	}
	return KPACK_SUCCESS;
}

/*
 * Extend W's end over all segments.  STRICT: one that passes the source's end is an
 * error; else it is ignored.
 */
static kpack_error_t reach_segments(struct walk *w, bool strict, struct kpackx_error *why)
{
	struct kpackx_error ignored;
	const uint8_t *p;

	for (uint64_t i = 0; i < w->n_segments; i++) {
		KP_TRY(kp_window_get(&w->window,
				     w->header.e_phoff + i * sizeof(Elf64_Phdr),
				     sizeof(Elf64_Phdr), &p, why));
		uint64_t size = FIELD(64, p, Elf64_Phdr, p_filesz);
		kpack_error_t err = size ? reach_range(w, "segment", i,
						       FIELD(64, p, Elf64_Phdr, p_offset),
						       size, strict ? why : &ignored)
					 : KPACK_SUCCESS;

		if (err && strict)
			return err;
		if (FIELD(32, p, Elf64_Phdr, p_type) == PT_GNU_STACK)
			w->stack_flags = FIELD(32, p, Elf64_Phdr, p_flags);
	}
	return KPACK_SUCCESS;
}

kpack_error_t kp_elf_extent(const struct kp_source *src, uint64_t *end,
			    struct kpackx_error *why)
{
	struct kp_section s;
	struct walk w;
	uint32_t name;

	w.headers_only = false;
	KP_TRY(begin_walk(&w, src, why));
	for (uint64_t i = 0; i < w.n_sections; i++)
		KP_TRY(get_section(&w, i, &s, &name, why));
	KP_TRY(reach_segments(&w, true, why));
	*end = w.end;
	return KPACK_SUCCESS;
}

/* Give the sections their names; NAMES[i] is the offset of row i's. */
static kpack_error_t name_sections(struct walk *w, struct kp_sections *out,
				   const uint32_t *names, struct kpackx_error *why)
{
	uint32_t index = w->header.e_shstrndx;
	const struct kp_section *s;

	if (index == SHN_UNDEF || out->count == 0)
		return KPACK_SUCCESS;
	if (index == SHN_XINDEX)
		index = out->items[0].link;
	if (index >= out->count)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "names are in section %" PRIu32 " of %zu", index,
			       out->count);
	s = &out->items[index];
	if (s->type != SHT_STRTAB || s->size == 0 || s->size > KP_SECTION_NAMES_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "section %" PRIu32 " of type %" PRIu32 " with %" PRIu64
			       " bytes holds no names",
			       index, s->type, s->size);
	KP_TRY(reach_range(w, "section", index, s->offset, s->size, why));
	out->names = malloc((size_t)s->size);
	if (!out->names)
		return kp_fail_memory(why, s->size, "section names");
	KP_TRY(kp_source_read(&w->window.src, s->offset, out->names, (size_t)s->size,
			      why));
	if (out->names[s->size - 1] != '\0')
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "the section names do not end in a NUL byte");
	for (size_t i = 0; i < out->count; i++) {
		if (names[i] >= s->size)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "section %zu: its name at %" PRIu32
				       " passes the end of the names at %" PRIu64,
				       i, names[i], s->size);
		out->items[i].name = out->names + names[i];
	}
	return KPACK_SUCCESS;
}

static kpack_error_t read_sections(const struct kp_source *src, bool headers_only,
				   struct kp_sections *out, struct kpackx_error *why)
{
	KP_AUTO_FREE uint32_t *names = NULL;
	kpack_error_t err;
	struct walk w;

	*out = (struct kp_sections){0};
	w.headers_only = headers_only;
	KP_TRY(begin_walk(&w, src, why));
	if (w.n_sections > KP_SECTIONS_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "%" PRIu64 " sections of at most %d", w.n_sections,
			       KP_SECTIONS_MAX);
	out->header = w.header;
	out->count = (size_t)w.n_sections;
	err = kp_new(&out->items, out->count, "sections", why);
	if (!err)
		err = kp_new(&names, out->count, "sections", why);
	for (size_t i = 0; i < out->count && !err; i++)
		err = get_section(&w, i, &out->items[i], &names[i], why);
	if (!err)
		err = name_sections(&w, out, names, why);
	if (!err)
		err = reach_segments(&w, false, why);
	out->end = w.end;
	out->stack_flags = w.stack_flags;
	if (err)
		kp_sections_fini(out);
	return err;
}

kpack_error_t kp_sections_read(const struct kp_source *src, struct kp_sections *out,
			       struct kpackx_error *why)
{
	return read_sections(src, false, out, why);
}

kpack_error_t kp_sections_read_headers(const struct kp_source *src,
				       struct kp_sections *out, struct kpackx_error *why)
{
	return read_sections(src, true, out, why);
}

void kp_sections_fini(struct kp_sections *sections)
{
	free(sections->items);
	free(sections->names);
	*sections = (struct kp_sections){0};
}

const struct kp_section *kp_sections_find(const struct kp_sections *sections,
					  const char *name)
{
	for (size_t i = 0; i < sections->count; i++) {
		if (strcmp(sections->items[i].name, name) == 0)
			return &sections->items[i];
	}
	return NULL;
}

const struct kp_section *kp_sections_first(const struct kp_sections *sections,
					   uint32_t type)
{
	for (size_t i = 0; i < sections->count; i++)
		if (sections->items[i].type == type)
			return &sections->items[i];
	return NULL;
}

kpack_error_t kp_symbols_each(const struct kp_source *src,
			      const struct kp_sections *sections,
			      const struct kp_section *table, kp_symbol_fn *found,
			      void *arg, struct kpackx_error *why)
{
	KP_AUTO_FREE uint8_t *names = NULL;
	struct kp_window rows;
	struct kp_source text;
	const uint8_t *p;

	if (table->link >= sections->count || table->entsize != sizeof(Elf64_Sym) ||
	    sections->items[table->link].type != SHT_STRTAB ||
	    !kp_source_sub(src, sections->items[table->link].offset,
			   sections->items[table->link].size, &text))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "symbols of %" PRIu64 " bytes, names in section %" PRIu32
			       " of %zu",
			       table->entsize, table->link, sections->count);
	KP_TRY(kp_source_load(&text, KP_SYMBOL_NAMES_MAX, "names of symbols", &names,
			      why));
	kp_window_init(&rows, src);
	for (uint64_t i = 0; i < table->size / sizeof(Elf64_Sym); i++) {
		uint32_t name;

		KP_TRY(kp_window_get(&rows, table->offset + i * sizeof(Elf64_Sym),
				     sizeof(Elf64_Sym), &p, why));
		name = kp_le32(p + offsetof(Elf64_Sym, st_name));
		KP_TRY(found(arg, p, name < text.size ? (char *)names + name : NULL,
			     text.size, why));
	}
	return KPACK_SUCCESS;
}
