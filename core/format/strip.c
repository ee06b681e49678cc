/* SPDX-License-Identifier: MIT */
/*
 * Without debugging information, everything that is loaded stays where it is: the bytes
 * up to the end of the last segment or loaded section are copied.  The other sections
 * follow, except those whose name begins with .debug, and .gdb_index; the symbol table
 * without symbols in such sections and without names of source files; and the section
 * headers.  String tables stay as they are, with names that nothing uses any more.
 *
 * A file that only keeps debugging information has all headers and symbols, but of the
 * loaded sections only the bytes of notes, which have the build ID.  Segments then are as
 * long as the headers and notes in them.
 *
 * Nothing is copied here: a result is a list of pieces, made from headers that are read
 * raw and patched, so that objects of any size take little memory.
 */
#include "strip.h"
#include <inttypes.h>
#include <stdlib.h>
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "core/base/sink.h"
#include "format.h"
#include "sections.h"

/* Segments of an object: linkers make ten. */
#define SEGMENTS_MAX 128

/* No offset or address may be so large that sums overflow. */
#define OFFSET_LIMIT (UINT64_C(1) << 56)

/* Debuggers map files by pages. */
#define PAGE 4096

#define SHT_CREL 0x40000014

/* What becomes of a section. */
struct fate {
	bool gone;
	uint32_t type;  /* in the output */
	uint32_t index; /* in the output */
	uint64_t offset, size;
};

struct strip {
	enum kp_strip how;
	struct kp_source src;
	struct kp_sections in;
	struct fate *fates; /* `in.count` */
	size_t n_out;       /* sections in the output, with number 0 */
	size_t symtab;      /* number of a section; 0: none */
	size_t n_symbols;   /* that are left */
	bool dropped;       /* a section or a symbol goes */
	/* the headers and the symbols, read raw; patched, they are in the output */
	uint8_t *bytes;
	uint8_t *segments, *symbols, *rows;
};

static void put_le16(uint8_t *p, size_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
}

/* The first offset from POS on that is SKEW modulo ALIGN, a power of two. */
static uint64_t align_up(uint64_t pos, uint64_t align, uint64_t skew)
{
	return pos + ((skew - pos) & (align - 1));
}

static kpack_error_t unusual(struct kpackx_error *why, size_t section, const char *what)
{
	return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED, "section %zu %s", section, what);
}

/* ---- what goes ---- */

/*
 * Decide the fate of each section, and refuse what linkers do not make.  Loaded sections
 * with a name for debugging stay: their bytes are in a segment.
 */
static kpack_error_t choose_sections(struct strip *s, struct kpackx_error *why)
{
	const Elf64_Ehdr *h = &s->in.header;

	if (h->e_machine != EM_AMDGPU || (h->e_type != ET_DYN && h->e_type != ET_EXEC))
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "not a linked code object");
	if (s->in.count < 2 || s->in.count >= SHN_LORESERVE ||
	    h->e_shstrndx == SHN_UNDEF || h->e_shstrndx >= s->in.count)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "an object with %zu sections, whose names are in section "
			       "%u",
			       s->in.count, h->e_shstrndx);
	if (h->e_phnum == 0 || h->e_phnum > SEGMENTS_MAX)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "an object with %u segments", h->e_phnum);
	KP_TRY(kp_new(&s->fates, s->in.count, "sections", why));
	for (size_t i = 1; i < s->in.count; i++) {
		const struct kp_section *in = &s->in.items[i];
		bool loaded = in->flags & SHF_ALLOC;

		if ((in->align & (in->align - 1)) || in->align > OFFSET_LIMIT ||
		    in->addr > OFFSET_LIMIT || in->size > OFFSET_LIMIT ||
		    in->offset > OFFSET_LIMIT)
			return unusual(why, i, "has an impossible place or alignment");
		if (in->link >= s->in.count)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "section %zu is linked to section %" PRIu32
				       " of %zu",
				       i, in->link, s->in.count);
		if (in->type == SHT_GROUP || in->type == SHT_SYMTAB_SHNDX ||
		    in->type == SHT_CREL)
			return unusual(why, i, "has a type of objects to link");
		if ((in->type == SHT_REL || in->type == SHT_RELA) &&
		    (!loaded || in->info >= s->in.count))
			return unusual(why, i, "has relocations of linking");
		if (in->type == SHT_SYMTAB && (loaded || s->symtab))
			return unusual(why, i,
				       "is a loaded symbol table, or a second one");
		if (in->type == SHT_SYMTAB)
			s->symtab = i;
		s->fates[i] = (struct fate){.type = in->type, .size = in->size};
		if (s->how == KP_STRIP_KEEP_DEBUG && loaded && in->type != SHT_NOTE)
			s->fates[i].type = SHT_NOBITS;
		if (s->how == KP_STRIP_DEBUG && !loaded &&
		    (strncmp(in->name, ".debug", 6) == 0 ||
		     strcmp(in->name, ".gdb_index") == 0))
			s->fates[i].gone = s->dropped = true;
	}
	return KPACK_SUCCESS;
}

/*
 * Read the headers and the symbols into one block, and remove the symbols that go; their order stays,
 * local ones first.  A table without symbols goes, and its names.
 */
static kpack_error_t read_tables(struct strip *s, struct kpackx_error *why)
{
	const Elf64_Ehdr *h = &s->in.header;
	const struct kp_section *table = &s->in.items[s->symtab];
	size_t segments = h->e_phnum * sizeof(Elf64_Phdr),
	       rows = s->in.count * sizeof(Elf64_Shdr), symbols = 0;
	struct fate *fate = &s->fates[s->symtab];
	uint8_t *to;

	if (s->symtab) {
		symbols = (size_t)table->size;
		if (table->entsize != sizeof(Elf64_Sym) || table->size == 0 ||
		    table->size % sizeof(Elf64_Sym) || table->size > KP_SYMBOL_NAMES_MAX)
			return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
				       "a symbol table of %" PRIu64 " bytes, %" PRIu64
				       " for each symbol",
				       table->size, table->entsize);
	}
	KP_TRY(kp_new(&s->bytes, sizeof(Elf64_Ehdr) + segments + symbols + rows,
		      "headers and symbols", why));
	s->segments = s->bytes + sizeof(Elf64_Ehdr);
	s->symbols = to = s->segments + segments;
	s->rows = s->symbols + symbols;
	s->n_symbols = symbols / sizeof(Elf64_Sym);
	KP_TRY(kp_source_read(&s->src, 0, s->bytes, sizeof(Elf64_Ehdr), why));
	KP_TRY(kp_source_read(&s->src, h->e_phoff, s->segments, segments, why));
	KP_TRY(kp_source_read(&s->src, h->e_shoff, s->rows, rows, why));
	if (!s->symtab)
		return KPACK_SUCCESS;
	KP_TRY(kp_source_read(&s->src, table->offset, s->symbols, symbols, why));
	if (s->how == KP_STRIP_KEEP_DEBUG)
		return KPACK_SUCCESS;
	for (size_t i = 0; i < s->n_symbols; i++) {
		const uint8_t *p = s->symbols + i * sizeof(Elf64_Sym);
		uint16_t section = kp_le16(p + offsetof(Elf64_Sym, st_shndx));

		if (section < SHN_LORESERVE && section >= s->in.count)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "symbol %zu: section %u of %zu", i, section,
				       s->in.count);
		if (i > 0 &&
		    ((section < SHN_LORESERVE && s->fates[section].gone) ||
		     ELF64_ST_TYPE(p[offsetof(Elf64_Sym, st_info)]) == STT_FILE)) {
			s->dropped = true;
			continue;
		}
		memmove(to, p, sizeof(Elf64_Sym));
		to += sizeof(Elf64_Sym);
	}
	s->n_symbols = (size_t)(to - s->symbols) / sizeof(Elf64_Sym);
	fate->size = s->n_symbols * sizeof(Elf64_Sym);
	if (s->n_symbols < 2) { /* the first one is none */
		fate->gone = true;
		s->fates[table->link].gone |=
			table->link != h->e_shstrndx &&
			s->in.items[table->link].type == SHT_STRTAB &&
			!(s->in.items[table->link].flags & SHF_ALLOC);
	}
	return KPACK_SUCCESS;
}

/*
 * Number the sections that stay; nothing that stays may refer to what goes.  Loaded symbols
 * keep their old numbers of sections, as with LLVM: linkers put what goes behind all loaded
 * sections.
 */
static kpack_error_t number_sections(struct strip *s, struct kpackx_error *why)
{
	s->n_out = 1;
	for (size_t i = 1; i < s->in.count; i++)
		if (!s->fates[i].gone)
			s->fates[i].index = (uint32_t)s->n_out++;
	if (s->fates[s->in.header.e_shstrndx].gone)
		return unusual(why, s->in.header.e_shstrndx,
			       "has names, and is for debugging");
	for (size_t i = 1; i < s->in.count; i++) {
		const struct kp_section *in = &s->in.items[i];
		bool info = in->type == SHT_REL || in->type == SHT_RELA;

		if (s->fates[i].gone)
			continue;
		if (s->fates[in->link].gone || (info && s->fates[in->info].gone))
			return unusual(why, i, "refers to debugging information");
		if (s->symtab && in->link == s->symtab && s->how == KP_STRIP_DEBUG)
			return unusual(why, i, "refers to symbols by number");
	}
	return KPACK_SUCCESS;
}

/* ---- the result ---- */

static kpack_error_t add_piece(struct kp_stripped *out, struct kp_strip_piece p,
			       struct kpackx_error *why)
{
	if (!p.size)
		return KPACK_SUCCESS;
	KP_TRY(kp_room(&out->pieces, out->n, &out->cap, "pieces", why));
	out->pieces[out->n++] = p;
	return KPACK_SUCCESS;
}

/* The end of what is loaded, which stays as it is: headers, segments, loaded sections. */
static kpack_error_t find_loaded(const struct strip *s, uint64_t *end,
				 struct kpackx_error *why)
{
	const Elf64_Ehdr *h = &s->in.header;

	*end = h->e_phoff + h->e_phnum * sizeof(Elf64_Phdr);
	for (size_t i = 0; i < h->e_phnum; i++) {
		const uint8_t *p = s->segments + i * sizeof(Elf64_Phdr);
		uint64_t offset = kp_le64(p + offsetof(Elf64_Phdr, p_offset)),
			 size = kp_le64(p + offsetof(Elf64_Phdr, p_filesz));

		if (!kp_range_ok(s->src.size, offset, size))
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "segment %zu: %" PRIu64 " bytes at offset %" PRIu64
				       " pass the end at %" PRIu64,
				       i, size, offset, s->src.size);
		if (size && offset + size > *end)
			*end = offset + size;
	}
	for (size_t i = 1; i < s->in.count; i++) {
		const struct kp_section *in = &s->in.items[i];

		if ((in->flags & SHF_ALLOC) && in->type != SHT_NOBITS &&
		    in->type != SHT_NULL && in->offset + in->size > *end)
			*end = in->offset + in->size;
	}
	return KPACK_SUCCESS;
}

/* Make segments of a file for debuggers as long as the headers and notes in them. */
static void shorten_segments(struct strip *s, uint64_t headers)
{
	for (size_t i = 0; i < s->in.header.e_phnum; i++) {
		uint8_t *p = s->segments + i * sizeof(Elf64_Phdr);
		uint64_t offset = kp_le64(p + offsetof(Elf64_Phdr, p_offset)),
			 size = kp_le64(p + offsetof(Elf64_Phdr, p_filesz)),
			 address = kp_le64(p + offsetof(Elf64_Phdr, p_vaddr));
		bool phdr = kp_le32(p) == PT_PHDR;
		uint64_t begin = phdr ? sizeof(Elf64_Ehdr) : offset ? UINT64_MAX : 0;
		uint64_t end = phdr || !offset ? headers : 0;

		if (!size)
			continue;

		for (size_t k = 1; k < s->in.count; k++) {
			const struct kp_section *in = &s->in.items[k];
			const struct fate *f = &s->fates[k];

			if (!(in->flags & SHF_ALLOC) || f->type == SHT_NOBITS ||
			    in->offset < offset ||
			    !kp_range_ok(size, in->offset - offset, in->size))
				continue;
			begin = f->offset < begin ? f->offset : begin;
			end = f->offset + f->size > end ? f->offset + f->size : end;
		}
		if (begin >=
		    end) /* the address and the offset have one place in a page */
			begin = end = address % PAGE;
		kp_put_le64(p + offsetof(Elf64_Phdr, p_offset), begin);
		kp_put_le64(p + offsetof(Elf64_Phdr, p_filesz), end - begin);
	}
}

/*
 * Decide the offsets, patch the headers and list the pieces: first all that is loaded, then
 * the other sections, the section headers; last the ELF header, over that of the input.
 */
static kpack_error_t lay_out_object(struct strip *s, struct kp_stripped *out,
				    struct kpackx_error *why)
{
	const Elf64_Ehdr *h = &s->in.header;
	size_t segments = h->e_phnum * sizeof(Elf64_Phdr);
	uint64_t loaded, headers = sizeof(Elf64_Ehdr) + segments, pos;
	bool debug = s->how == KP_STRIP_KEEP_DEBUG;

	KP_TRY(find_loaded(s, &loaded, why));
	pos = debug ? headers : loaded;
	if (!debug)
		KP_TRY(add_piece(out, (struct kp_strip_piece){.size = loaded}, why));
	for (size_t i = 1; i < s->in.count; i++) {
		const struct kp_section *in = &s->in.items[i];
		struct fate *f = &s->fates[i];
		struct kp_strip_piece piece = {.from = in->offset, .size = f->size};
		bool empty = f->type == SHT_NOBITS || f->type == SHT_NULL;

		if (f->gone)
			continue;
		if (i == s->symtab)
			piece.bytes = s->symbols;
		else if (!debug && (empty || kp_range_ok(loaded, in->offset, in->size))) {
			f->offset = in->offset;
			continue;
		}
		if (!empty)
			pos = in->flags & SHF_ALLOC
				      ? align_up(pos, PAGE, in->addr)
				      : align_up(pos, in->align ? in->align : 1, 0);
		f->offset = piece.to = pos;
		if (empty)
			continue;
		pos += f->size;
		if (pos > OFFSET_LIMIT)
			return unusual(why, i, "would have an impossible offset");
		KP_TRY(add_piece(out, piece, why));
	}
	pos = align_up(pos, sizeof(Elf64_Xword), 0);
	out->size = pos + s->n_out * sizeof(Elf64_Shdr);
	if (out->size >= s->src.size || (!debug && !s->dropped))
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "it would not become smaller");
	for (size_t i = 0; i < s->n_symbols; i++) {
		uint8_t *p = s->symbols + i * sizeof(Elf64_Sym) +
			     offsetof(Elf64_Sym, st_shndx);

		if (kp_le16(p) < SHN_LORESERVE && kp_le16(p) < s->in.count)
			put_le16(p, s->fates[kp_le16(p)].index);
	}
	/* rows move to their numbers, which are not larger: none is overwritten before it is read */
	for (size_t i = 1; i < s->in.count; i++) {
		const struct kp_section *in = &s->in.items[i];
		const struct fate *f = &s->fates[i];
		uint8_t *row = s->rows + f->index * sizeof(Elf64_Shdr);

		if (f->gone)
			continue;
		memmove(row, s->rows + i * sizeof(Elf64_Shdr), sizeof(Elf64_Shdr));
		kp_put_le32(row + offsetof(Elf64_Shdr, sh_type), f->type);
		kp_put_le64(row + offsetof(Elf64_Shdr, sh_offset), f->offset);
		kp_put_le64(row + offsetof(Elf64_Shdr, sh_size), f->size);
		kp_put_le32(row + offsetof(Elf64_Shdr, sh_link),
			    s->fates[in->link].index);
		if (in->type == SHT_REL || in->type == SHT_RELA)
			kp_put_le32(row + offsetof(Elf64_Shdr, sh_info),
				    s->fates[in->info].index);
		/* the number of the first symbol that is not local */
		for (size_t k = i == s->symtab ? s->n_symbols : 0; k > 0; k--) {
			const uint8_t *symbol = s->symbols + (k - 1) * sizeof(Elf64_Sym);

			if (ELF64_ST_BIND(symbol[offsetof(Elf64_Sym, st_info)]) !=
			    STB_LOCAL)
				continue;
			kp_put_le32(row + offsetof(Elf64_Shdr, sh_info), (uint32_t)k);
			break;
		}
	}
	if (debug) {
		shorten_segments(s, headers);
		kp_put_le64(s->bytes + offsetof(Elf64_Ehdr, e_phoff), sizeof(Elf64_Ehdr));
	}
	kp_put_le64(s->bytes + offsetof(Elf64_Ehdr, e_shoff), pos);
	put_le16(s->bytes + offsetof(Elf64_Ehdr, e_shnum), s->n_out);
	put_le16(s->bytes + offsetof(Elf64_Ehdr, e_shstrndx),
		 s->fates[h->e_shstrndx].index);
	KP_TRY(add_piece(
		out,
		(struct kp_strip_piece){.size = debug ? headers : sizeof(Elf64_Ehdr),
					.bytes = s->bytes},
		why));
	return add_piece(out,
			 (struct kp_strip_piece){.to = pos,
						 .size = s->n_out * sizeof(Elf64_Shdr),
						 .bytes = s->rows},
			 why);
}

kpack_error_t kp_strip_plan(const struct kp_source *src, enum kp_strip how,
			    struct kp_stripped *out, struct kpackx_error *why)
{
	struct strip s = {.how = how, .src = *src};
	kpack_error_t err;

	*out = (struct kp_stripped){0};
	err = kp_sections_read(src, &s.in, why);
	if (!err)
		err = choose_sections(&s, why);
	if (!err)
		err = read_tables(&s, why);
	if (!err)
		err = number_sections(&s, why);
	if (!err)
		err = lay_out_object(&s, out, why);
	out->work = s.bytes;
	kp_sections_fini(&s.in);
	free(s.fates);
	if (err)
		kp_stripped_fini(out);
	return err;
}

void kp_stripped_fini(struct kp_stripped *s)
{
	free(s->work);
	free(s->pieces);
	*s = (struct kp_stripped){0};
}

kpack_error_t kp_stripped_write(const struct kp_stripped *s, const struct kp_source *src,
				struct kp_outfile *out, uint64_t at,
				struct kpackx_error *why)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct kp_strip_piece *p = &s->pieces[i];
		struct kp_sink sink = {.out = out, .size = at + p->to};
		struct kp_source part;

		if (p->bytes)
			KP_TRY(kp_sink_put(&sink, p->bytes, (size_t)p->size, why));
		else if (kp_source_sub(src, p->from, p->size, &part))
			KP_TRY(kp_sink_copy(&sink, &part, why));
		else
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "a part of a code object passes the end");
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
