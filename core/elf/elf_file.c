/* SPDX-License-Identifier: MIT */
/*
 * Reading host ELF files, in four steps: the headers; the sections that matter here, by name; the
 * wrappers, which are in a section of their own or are found by scanning the data; and the
 * relocations, which say what address each wrapper's pointer has at run time.
 *
 * Whatever a header states is checked before it is used.  Many headers may name the same bytes, so
 * that the bytes of all sections of a kind together are limited to those of the file.
 */
#include "elf_file.h"
#include <gelf.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "core/base/file.h"
#include "core/base/order.h"
#include "elf_relr.h"

#ifndef EM_LOONGARCH
#define EM_LOONGARCH 258
#endif
#ifndef R_LARCH_RELATIVE
#define R_LARCH_64 2
#define R_LARCH_RELATIVE 3
#endif

static const struct kp_elf_machine machines[] = {
	{EM_X86_64, R_X86_64_RELATIVE, R_X86_64_64, 4096},
	{EM_AARCH64, R_AARCH64_RELATIVE, R_AARCH64_ABS64, 65536},
	{EM_PPC64, R_PPC64_RELATIVE, R_PPC64_ADDR64, 65536},
	{EM_RISCV, R_RISCV_RELATIVE, R_RISCV_64, 0},
	{EM_LOONGARCH, R_LARCH_RELATIVE, R_LARCH_64, 0},
};

const struct kp_elf_machine *kp_elf_machine_of(uint16_t machine)
{
	for (size_t i = 0; i < KP_COUNT(machines); i++)
		if (machines[i].machine == machine)
			return &machines[i];
	return NULL;
}

/* ---- headers ---- */

static bool is_host_class(const uint8_t *head)
{
	return head[EI_CLASS] == ELFCLASS64 && head[EI_DATA] == ELFDATA2LSB;
}

bool kp_elf_host_probe(struct kp_span head)
{
	uint16_t machine;

	if (head.size < 20 || memcmp(head.data, ELFMAG, SELFMAG) != 0 ||
	    !is_host_class(head.data))
		return false;
	machine = kp_le16(head.data + offsetof(Elf64_Ehdr, e_machine));
	return machine != EM_AMDGPU && machine != EM_CUDA;
}

kpack_error_t kp_elf_fail(struct kpackx_error *why, const char *what)
{
	const char *text = elf_errmsg(-1);

	return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "elf: %s: %s", what,
		       text ? text : "no reason given");
}

static void init_libelf(void)
{
	elf_version(EV_CURRENT);
}

/*
 * Check the header and the section table before libelf does, which allocates memory for all
 * sections at once, and treats a truncated table as no table.
 */
static kpack_error_t check_header(const struct kp_source *src, struct kpackx_error *why)
{
	uint8_t eh[sizeof(Elf64_Ehdr)], sh[sizeof(Elf64_Shdr)];
	uint64_t shoff, n;

	KP_TRY(kp_source_read(src, 0, eh, sizeof(eh), why));
	if (memcmp(eh, ELFMAG, SELFMAG) != 0)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "elf: not an ELF file");
	if (!is_host_class(eh))
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "elf: class %u, byte order %u: only 64-bit little-endian",
			       eh[EI_CLASS], eh[EI_DATA]);
	shoff = kp_le64(eh + offsetof(Elf64_Ehdr, e_shoff));
	n = kp_le16(eh + offsetof(Elf64_Ehdr, e_shnum));
	if (shoff == 0)
		return KPACK_SUCCESS;
	if (n == 0) {
		KP_TRY(kp_source_read(src, shoff, sh, sizeof(sh), why));
		n = kp_le64(sh + offsetof(Elf64_Shdr, sh_size));
	}
	if (n > KP_SECTIONS_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "elf: %" PRIu64 " sections of at most %d", n,
			       KP_SECTIONS_MAX);
	if (!kp_range_ok(src->size, shoff, n * sizeof(sh)))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "elf: %" PRIu64 " section headers at offset %" PRIu64
			       " pass the end of the file at %" PRIu64,
			       n, shoff, src->size);
	return KPACK_SUCCESS;
}

static kpack_error_t read_headers(int fd, struct kp_elf_tables *t,
				  struct kpackx_error *why)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, init_libelf);
	/* not READ_MMAP: a file that becomes shorter must not cause a SIGBUS */
	t->libelf = elf_begin(fd, ELF_C_READ, NULL);
	if (!t->libelf || elf_kind(t->libelf) != ELF_K_ELF ||
	    !gelf_getehdr(t->libelf, &t->header))
		return kp_elf_fail(why, "header");
	if (elf_getshdrnum(t->libelf, &t->n_sections) ||
	    elf_getshdrstrndx(t->libelf, &t->names))
		return kp_elf_fail(why, "section headers");
	KP_TRY(kp_new(&t->sections, t->n_sections, "sections", why));
	/* a copy, which the loops below read in order */
	for (size_t i = 0; i < t->n_sections; i++) {
		/* not gelf_getshdr, which forgets that memory ran out */
		const Elf64_Shdr *sh = elf64_getshdr(elf_getscn(t->libelf, i));

		if (!sh)
			return kp_elf_fail(why, "section headers");
		t->sections[i] = *sh;
	}
	if (t->names != SHN_UNDEF && t->n_sections) {
		if (t->names >= t->n_sections)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "elf: section names in section %zu of %zu",
				       t->names, t->n_sections);
		if (t->sections[t->names].sh_size > KP_SECTION_NAMES_MAX)
			return kp_fail(
				why, KPACK_ERROR_INVALID_FORMAT,
				"elf: %" PRIu64 " bytes of section names, at most %d",
				t->sections[t->names].sh_size, KP_SECTION_NAMES_MAX);
	}
	return KPACK_SUCCESS;
}

kpack_error_t kp_elf_open(int fd, uint64_t size, struct kp_elf_tables *out,
			  struct kpackx_error *why)
{
	const struct kp_source src = kp_source_fd(fd, 0, size);
	kpack_error_t err;

	*out = (struct kp_elf_tables){0};
	KP_TRY(check_header(&src, why));
	err = read_headers(fd, out, why);
	if (err)
		kp_elf_close(out);
	return err;
}

void kp_elf_close(struct kp_elf_tables *t)
{
	elf_end(t->libelf);
	free(t->sections);
	*t = (struct kp_elf_tables){0};
}

kpack_error_t kp_elf_name(const struct kp_elf_tables *t, size_t i, const char **name,
			  struct kpackx_error *why)
{
	*name = elf_strptr(t->libelf, t->names, t->sections[i].sh_name);
	return *name ? KPACK_SUCCESS : kp_elf_fail(why, "section name");
}

/* ---- relocations ---- */

kpack_error_t kp_elf_each_reloc(const struct kp_source *file, const Elf64_Shdr *table,
				kp_elf_reloc_fn *fn, void *arg, struct kpackx_error *why)
{
	size_t row = table->sh_type == SHT_REL    ? sizeof(Elf64_Rel)
		     : table->sh_type == SHT_RELA ? sizeof(Elf64_Rela)
						  : 8;
	bool relr = table->sh_type == SHT_RELR;
	struct kp_elf_reloc r = {.size = relr ? 0 : (unsigned)row};
	struct kp_window window;
	uint64_t next = 0;
	const uint8_t *p;

	if (!relr && table->sh_type != SHT_REL && table->sh_type != SHT_RELA)
		return KPACK_SUCCESS;
	if (!relr && (table->sh_entsize != row || table->sh_size % row))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "elf: relocations: %" PRIu64 " bytes in rows of %" PRIu64
			       ", expected rows of %zu",
			       table->sh_size, table->sh_entsize, row);
	kp_window_init(&window, file);
	for (uint64_t off = 0; table->sh_size - off >= row; off += row) {
		uint64_t info, entry;

		r.offset = table->sh_offset + off;
		KP_TRY(kp_window_get(&window, r.offset, row, &p, why));
		if (!relr) {
			info = kp_le64(p + offsetof(Elf64_Rela, r_info));
			r.vaddr = kp_le64(p + offsetof(Elf64_Rela, r_offset));
			r.type = (uint32_t)ELF64_R_TYPE(info);
			r.symbol = (uint32_t)ELF64_R_SYM(info);
			if (table->sh_type == SHT_RELA)
				r.addend = kp_le64(p + offsetof(Elf64_Rela, r_addend));
			KP_TRY(fn(arg, &r, why));
			continue;
		}
		/* the address of a word, or, if it is odd, a bit map of the next 63 words */
		entry = kp_le64(p);
		if (!(entry & 1)) {
			r.vaddr = entry;
			KP_TRY(fn(arg, &r, why));
			next = entry + 8;
			continue;
		}
		for (r.vaddr = next; entry >>= 1; r.vaddr += 8)
			if (entry & 1)
				KP_TRY(fn(arg, &r, why));
		next += UINT64_C(63) * 8;
	}
	return KPACK_SUCCESS;
}

/* ---- sections ---- */

/* The sections that are found by name. */
enum { FATBIN, SEGMENT, MARKER, LAYOUT, NAMED };
static const char *const section_names[NAMED] = {KP_FATBIN_SECTION, ".hipFatBinSegment",
						 KP_MARKER_SECTION, KP_LAYOUT_SECTION};

/* The state of reading one file. */
struct elf_reader {
	struct kp_source src;
	struct kp_elf_tables tables;
	struct kp_elf *out;
	bool relocatable;    /* ET_REL: addresses are offsets in their section */
	size_t found[NAMED]; /* indexes; 0: none with bytes, but FATBIN may have none */
	size_t wrappers_cap;
	uint64_t scanned_bytes, relocs_bytes; /* so far */
	const Elf64_Shdr *relocs;             /* those that are read */
};

/* INVALID_FORMAT unless the bytes of SH are in the file and in the address space. */
static kpack_error_t check_section(const struct elf_reader *r, const char *name,
				   const Elf64_Shdr *sh, struct kpackx_error *why)
{
	if (!kp_range_ok(r->src.size, sh->sh_offset, sh->sh_size))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "elf: %s: %" PRIu64 " bytes at offset %" PRIu64
			       " pass the end of the file at %" PRIu64,
			       name, sh->sh_size, sh->sh_offset, r->src.size);
	if (!kp_range_ok(UINT64_MAX, sh->sh_addr, sh->sh_size))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "elf: %s: %" PRIu64 " bytes at address 0x%" PRIx64
			       " pass the end of the address space",
			       name, sh->sh_size, sh->sh_addr);
	return KPACK_SUCCESS;
}

/* Check SH, of which all of its kind have *TOTAL bytes so far. */
static kpack_error_t count_section(const struct elf_reader *r, const char *name,
				   const Elf64_Shdr *sh, uint64_t *total,
				   struct kpackx_error *why)
{
	KP_TRY(check_section(r, name, sh, why));
	if (sh->sh_size > r->src.size - *total)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "elf: more %s than the file's %" PRIu64 " bytes hold",
			       name, r->src.size);
	*total += sh->sh_size;
	return KPACK_SUCCESS;
}

static kpack_error_t find_sections(struct elf_reader *r, struct kpackx_error *why)
{
	const Elf64_Shdr *sections = r->tables.sections;
	struct kp_elf_part parts[NAMED] = {0};
	struct kp_elf *out = r->out;

	for (size_t i = 1; i < r->tables.n_sections; i++) {
		const Elf64_Shdr *sh = &sections[i];
		const char *name;
		int n = 0;

		KP_TRY(kp_elf_name(&r->tables, i, &name, why));
		while (n < NAMED && strcmp(name, section_names[n]) != 0)
			n++;
		/* of sections without bytes, which split debug info has, only .hip_fatbin counts */
		if (n == NAMED || (sh->sh_type == SHT_NOBITS && n != FATBIN))
			continue;
		if (r->found[n])
			return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
				       "elf: two sections %s, %zu and %zu", name,
				       r->found[n], i);
		r->found[n] = i;
		if (sh->sh_type == SHT_NOBITS)
			continue;
		KP_TRY(check_section(r, name, sh, why));
		parts[n] = (struct kp_elf_part){sh->sh_addr, sh->sh_offset, sh->sh_size};
	}
	out->fatbin_nobits =
		r->found[FATBIN] && sections[r->found[FATBIN]].sh_type == SHT_NOBITS;
	out->has_fatbin = parts[FATBIN].size > 0;
	out->fatbin_vaddr = parts[FATBIN].vaddr;
	out->fatbin_offset = parts[FATBIN].offset;
	out->fatbin_size = parts[FATBIN].size;
	out->marker = parts[MARKER];
	out->layout = parts[LAYOUT];
	return KPACK_SUCCESS;
}

/* ---- wrappers ---- */

static kpack_error_t add_wrapper(struct elf_reader *r, const Elf64_Shdr *sh, uint64_t off,
				 struct kp_wrapper fields, struct kpackx_error *why)
{
	struct kp_elf *out = r->out;

	if (out->n_wrappers == KP_WRAPPERS_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "elf: more than %d wrappers, or words that look like ones",
			       KP_WRAPPERS_MAX);
	KP_TRY(kp_room(&out->wrappers, out->n_wrappers, &r->wrappers_cap, "wrappers",
		       why));
	out->wrappers[out->n_wrappers++] = (struct kp_elf_wrapper){
		.fields = fields,
		.vaddr = sh->sh_addr + off,
		.pointer_vaddr = sh->sh_addr + off + 8,
		.offset = sh->sh_offset + off,
		.source = KP_POINTER_IN_PLACE,
		.target = fields.pointer,
	};
	return KPACK_SUCCESS;
}

/* Read .hipFatBinSegment, and skip zero words that a sanitizer puts between wrappers. */
static kpack_error_t read_segment(struct elf_reader *r, struct kpackx_error *why)
{
	const Elf64_Shdr *sh = &r->tables.sections[r->found[SEGMENT]];
	static const uint8_t zero[8];
	struct kp_wrapper fields;
	struct kp_window window;
	uint64_t off = 0, left;
	const uint8_t *p;

	kp_window_init(&window, &r->src);
	while ((left = sh->sh_size - off)) {
		size_t n = left < KP_WRAPPER_SIZE ? (size_t)left : KP_WRAPPER_SIZE;
		size_t word = n < 8 ? n : 8;
		char hex[3 * 8 + 1] = "";

		KP_TRY(kp_window_get(&window, sh->sh_offset + off, n, &p, why));
		if (memcmp(p, zero, word) == 0) {
			off += word;
			continue;
		}
		if (n == KP_WRAPPER_SIZE && kp_wrapper_decode(p, &fields)) {
			KP_TRY(add_wrapper(r, sh, off, fields, why));
			off += KP_WRAPPER_SIZE;
			continue;
		}
		for (size_t i = 0; i < word; i++)
			snprintf(hex + 3 * i, 4, " %02x", p[i]);
		return kp_fail(
			why, KPACK_ERROR_INVALID_FORMAT,
			"elf: .hipFatBinSegment: no wrapper at file offset %" PRIu64
			":%s",
			sh->sh_offset + off, hex);
	}
	return KPACK_SUCCESS;
}

/* Find all words in data that look like wrappers, by address. */
static kpack_error_t scan_data(struct elf_reader *r, struct kpackx_error *why)
{
	struct kp_elf *out = r->out;
	struct kp_wrapper fields;
	struct kp_window window;
	const uint8_t *p;

	out->wrappers_scanned = true;
	for (size_t i = 1; i < r->tables.n_sections; i++) {
		const Elf64_Shdr *sh = &r->tables.sections[i];

		if (i == r->found[FATBIN] || sh->sh_type != SHT_PROGBITS ||
		    (sh->sh_flags & (SHF_ALLOC | SHF_EXECINSTR)) != SHF_ALLOC)
			continue;
		KP_TRY(count_section(r, "data", sh, &r->scanned_bytes, why));
		kp_window_init(&window, &r->src);
		for (uint64_t off = -sh->sh_addr & 7;
		     kp_range_ok(sh->sh_size, off, KP_WRAPPER_SIZE); off += 8) {
			KP_TRY(kp_window_get(&window, sh->sh_offset + off,
					     KP_WRAPPER_SIZE, &p, why));
			if (kp_wrapper_decode(p, &fields))
				KP_TRY(add_wrapper(r, sh, off, fields, why));
		}
	}
	if (out->n_wrappers)
		kp_sort(out->wrappers, out->n_wrappers,
			KP_BY_NUMBER(struct kp_elf_wrapper, vaddr));
	return KPACK_SUCCESS;
}

/*
 * Drop what scanning found, but whose pointer does not lead into the section that a wrapper's
 * must lead into.  Wrappers share no bytes.
 */
static void drop_strays(struct kp_elf *out)
{
	size_t n = 0;

	for (size_t i = 0; i < out->n_wrappers; i++) {
		const struct kp_elf_wrapper w = out->wrappers[i];
		const struct kp_elf_part into =
			w.fields.magic == KP_WRAPPER_HIPK
				? out->marker
				: (struct kp_elf_part){out->fatbin_vaddr, 0,
						       out->fatbin_size};

		if (w.source != KP_POINTER_UNRESOLVED && w.target >= into.vaddr &&
		    w.target - into.vaddr < into.size &&
		    (n == 0 || w.vaddr >= out->wrappers[n - 1].vaddr + KP_WRAPPER_SIZE))
			out->wrappers[n++] = w;
	}
	out->n_wrappers = n;
}

/* ---- where the wrappers' pointers lead ---- */

struct kp_elf_wrapper *kp_elf_wrapper_at(const struct kp_elf *elf, uint64_t vaddr)
{
	const struct kp_elf_wrapper probe = {.pointer_vaddr = vaddr};
	size_t n = elf->n_wrappers;

	/* most relocations are for other sections */
	if (n == 0 || vaddr < elf->wrappers[0].pointer_vaddr ||
	    vaddr > elf->wrappers[n - 1].pointer_vaddr)
		return NULL;
	return kp_find(elf->wrappers, n, &probe,
		       KP_BY_NUMBER(struct kp_elf_wrapper, pointer_vaddr));
}

/*
 * Read the value of symbol INDEX in section TABLE; *KNOWN is false if this file does not define
 * it.  In an object, the value is an offset in its section, which must be .hip_fatbin.
 */
static kpack_error_t read_symbol(struct elf_reader *r, uint32_t table, uint32_t index,
				 uint64_t *value, bool *known, struct kpackx_error *why)
{
	const Elf64_Shdr *sh =
		table < r->tables.n_sections ? &r->tables.sections[table] : NULL;
	uint8_t sym[sizeof(Elf64_Sym)];
	uint16_t section;

	if (!sh || (sh->sh_type != SHT_DYNSYM && sh->sh_type != SHT_SYMTAB))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "elf: relocations for section %u, which has no symbols",
			       table);
	KP_TRY(check_section(r, "symbols", sh, why));
	if (index >= sh->sh_size / sizeof(sym))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "elf: relocation for symbol %u of %" PRIu64, index,
			       sh->sh_size / sizeof(sym));
	KP_TRY(kp_source_read(&r->src, sh->sh_offset + index * sizeof(sym), sym,
			      sizeof(sym), why));
	section = kp_le16(sym + offsetof(Elf64_Sym, st_shndx));
	*known = r->relocatable ? r->out->has_fatbin && section == r->found[FATBIN]
				: section != SHN_UNDEF;
	*value = kp_le64(sym + offsetof(Elf64_Sym, st_value)) +
		 (r->relocatable ? r->out->fatbin_vaddr : 0);
	return KPACK_SUCCESS;
}

/* If RELOC changes a wrapper's pointer, note where it leads; an unresolved one leads to 0. */
static kpack_error_t relocate_wrapper(void *arg, const struct kp_elf_reloc *reloc,
				      struct kpackx_error *why)
{
	struct elf_reader *r = arg;
	const struct kp_elf_machine *m;
	struct kp_elf_wrapper *w;
	bool known = false;
	uint64_t addend, base;

	base = r->relocatable ? r->tables.sections[r->found[SEGMENT]].sh_addr : 0;
	w = kp_elf_wrapper_at(r->out, reloc->vaddr + base);
	/* type 0 is "no relocation" on every machine */
	if (!w || (reloc->size && reloc->type == 0))
		return KPACK_SUCCESS;
	if (w->source != KP_POINTER_IN_PLACE)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "elf: two relocations of the word at 0x%" PRIx64,
			       w->pointer_vaddr);
	if (reloc->size == 0) {
		w->source = KP_POINTER_RELR;
		return KPACK_SUCCESS;
	}
	/* the row, too, is changed when the wrapper is to lead elsewhere */
	w->reloc_offset = reloc->offset;
	w->reloc_size = reloc->size;
	w->source = KP_POINTER_UNRESOLVED;
	w->target = 0;
	addend = reloc->size == sizeof(Elf64_Rel) ? w->fields.pointer : reloc->addend;
	m = kp_elf_machine_of(r->out->machine);
	if (m && reloc->type == m->relative) {
		w->source = KP_POINTER_RELATIVE;
		w->target = addend;
	} else if (m && reloc->type == m->absolute) {
		uint64_t value = 0;

		KP_TRY(read_symbol(r, r->relocs->sh_link, reloc->symbol, &value, &known,
				   why));
		if (known) {
			w->source = KP_POINTER_SYMBOL;
			w->symbol = value;
			w->target = value + addend;
		}
	}
	return KPACK_SUCCESS;
}

static kpack_error_t resolve_pointers(struct elf_reader *r, struct kpackx_error *why)
{
	for (size_t i = 1; i < r->tables.n_sections; i++) {
		const Elf64_Shdr *sh = &r->tables.sections[i];

		if (sh->sh_type != SHT_REL && sh->sh_type != SHT_RELA &&
		    sh->sh_type != SHT_RELR)
			continue;
		/* ignore relocations that a linked file keeps but does not load (ld -q) */
		if (r->relocatable ? sh->sh_info != r->found[SEGMENT]
				   : !(sh->sh_flags & SHF_ALLOC))
			continue;
		KP_TRY(count_section(r, "relocations", sh, &r->relocs_bytes, why));
		r->relocs = sh;
		KP_TRY(kp_elf_each_reloc(&r->src, sh, relocate_wrapper, r, why));
	}
	return KPACK_SUCCESS;
}

/* ---- the whole ---- */

static void elf_reader_fini(struct elf_reader *r)
{
	kp_elf_close(&r->tables);
	if (r->out)
		kp_elf_fini(r->out);
}

kpack_error_t kp_elf_read(int fd, uint64_t size, struct kp_elf *out,
			  struct kpackx_error *why)
{
	KP_AUTO(elf_reader) r = {.src = kp_source_fd(fd, 0, size), .out = out};

	*out = (struct kp_elf){0};
	KP_TRY(kp_elf_open(fd, size, &r.tables, why));
	out->type = r.tables.header.e_type;
	out->machine = r.tables.header.e_machine;
	r.relocatable = out->type == ET_REL;
	/* without section names no section can be found */
	if (r.tables.names != SHN_UNDEF) {
		KP_TRY(find_sections(&r, why));
		/* object files have no final addresses, and debug information no data */
		if (r.found[SEGMENT])
			KP_TRY(read_segment(&r, why));
		else if (!r.relocatable &&
			 (out->has_fatbin || (r.found[FATBIN] && r.found[MARKER])))
			KP_TRY(scan_data(&r, why));
	}
	if (out->n_wrappers)
		KP_TRY(resolve_pointers(&r, why));
	if (out->wrappers_scanned)
		drop_strays(out);
	r.out = NULL; /* it is the caller's now */
	return KPACK_SUCCESS;
}

void kp_elf_fini(struct kp_elf *elf)
{
	free(elf->wrappers);
	*elf = (struct kp_elf){0};
}
