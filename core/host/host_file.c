/* SPDX-License-Identifier: MIT */
/*
 * Reading host binaries, in four steps: the headers; the sections that matter here, by name; the
 * wrappers, which are in a section of their own or are found by scanning the data; and the
 * relocations, which say what address each wrapper's pointer has at run time.
 *
 * Whatever a header states is checked before it is used.  Many headers may name the same bytes, so
 * that the bytes of all sections that are walked are limited to those of the file.
 *
 * Of a PE file the sections are read as if they were an ELF's; only their names differ.
 */
#include "host_file.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "core/base/file.h"
#include "core/base/order.h"
#include "core/pe/pe.h"
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

bool kp_host_probe(struct kp_span head)
{
	uint16_t machine;

	return kp_pe_host_probe(head) || (kp_elf_probe(head, &machine) &&
					  machine != EM_AMDGPU && machine != EM_CUDA);
}

kpack_error_t kp_elf_open(int fd, uint64_t size, struct kp_sections *out,
			  struct kpackx_error *why)
{
	const struct kp_source src = kp_source_fd(fd, 0, size);
	uint8_t head[EI_NIDENT];
	kpack_error_t err;

	*out = (struct kp_sections){0};
	KP_TRY(kp_source_read(&src, 0, head, sizeof(head), why));
	if (memcmp(head, ELFMAG, SELFMAG) != 0)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "elf: not an ELF file");
	if (head[EI_CLASS] != ELFCLASS64 || head[EI_DATA] != ELFDATA2LSB)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "elf: class %u, byte order %u: only 64-bit little-endian",
			       head[EI_CLASS], head[EI_DATA]);
	err = kp_sections_read_headers(&src, out, why);
	return err ? kp_fail_prefix(why, err, "elf") : err;
}

/* ---- relocations ---- */

kpack_error_t kp_elf_each_reloc(const struct kp_source *file,
				const struct kp_section *table, kp_elf_reloc_fn *fn,
				void *arg, struct kpackx_error *why)
{
	size_t row = table->type == SHT_REL    ? sizeof(Elf64_Rel)
		     : table->type == SHT_RELA ? sizeof(Elf64_Rela)
					       : 8;
	bool relr = table->type == SHT_RELR;
	struct kp_elf_reloc r = {.size = relr ? 0 : (unsigned)row};
	struct kp_window window;
	uint64_t next = 0;
	const uint8_t *p;

	if (!relr && (table->entsize != row || table->size % row))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "elf: relocations: %" PRIu64 " bytes in rows of %" PRIu64
			       ", expected rows of %zu",
			       table->size, table->entsize, row);
	kp_window_init(&window, file);
	for (uint64_t off = 0; table->size - off >= row; off += row) {
		uint64_t info, entry;

		r.offset = table->offset + off;
		KP_TRY(kp_window_get(&window, r.offset, row, &p, why));
		if (!relr) {
			info = kp_le64(p + offsetof(Elf64_Rela, r_info));
			r.vaddr = kp_le64(p + offsetof(Elf64_Rela, r_offset));
			r.type = (uint32_t)ELF64_R_TYPE(info);
			r.symbol = (uint32_t)ELF64_R_SYM(info);
			if (table->type == SHT_RELA)
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

bool kp_elf_is_reloc(const struct kp_section *s)
{
	return s->type == SHT_REL || s->type == SHT_RELA || s->type == SHT_RELR;
}

/* ---- sections ---- */

/* The sections that are found by name. */
enum { FATBIN, SEGMENT, MARKER, LAYOUT, NAMED };
static const char *const section_names[NAMED] = {KP_FATBIN_SECTION, ".hipFatBinSegment",
						 KP_MARKER_SECTION, KP_LAYOUT_SECTION};
/* In a PE they begin like that, because some linkers cut them off. */
static const char *const pe_names[NAMED] = {KP_PE_FATBIN, KP_PE_WRAPPERS, KP_PE_MARKER,
					    KP_PE_LAYOUT};

/* The state of reading one file. */
struct host_reader {
	struct kp_source src;
	struct kp_sections in;
	const char *format; /* in messages */
	struct kp_pe pe;
	struct kp_host *out;
	bool relocatable;    /* ET_REL: addresses are offsets in their section */
	size_t found[NAMED]; /* indexes; 0: none with bytes, but FATBIN may have none */
	size_t wrappers_cap;
	uint64_t walked;                 /* bytes of data and relocations so far */
	const struct kp_section *relocs; /* those that are read */
};

/* INVALID_FORMAT unless the bytes of S, or none of WHAT, are in the file and in the address space. */
static kpack_error_t check_section(const struct host_reader *r, const char *what,
				   const struct kp_section *s, struct kpackx_error *why)
{
	if (!kp_range_ok(r->src.size, s->offset, s->size))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "%s: %s: %" PRIu64 " bytes at offset %" PRIu64
			       " pass the end of the file at %" PRIu64,
			       r->format, what, s->size, s->offset, r->src.size);
	if (!kp_range_ok(UINT64_MAX, s->addr, s->size))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "%s: %s: %" PRIu64 " bytes at address 0x%" PRIx64
			       " pass the end of the address space",
			       r->format, what, s->size, s->addr);
	return KPACK_SUCCESS;
}

/* Check S, whose bytes are about to be walked: all together they are no more than the file's. */
static kpack_error_t begin_section(struct host_reader *r, const char *what,
				   const struct kp_section *s, struct kpackx_error *why)
{
	KP_TRY(check_section(r, what, s, why));
	if (s->size > r->src.size - r->walked)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "%s: more %s than the file's %" PRIu64 " bytes hold",
			       r->format, what, r->src.size);
	r->walked += s->size;
	return KPACK_SUCCESS;
}

/* ---- wrappers ---- */

static kpack_error_t add_wrapper(struct host_reader *r, const struct kp_section *s,
				 uint64_t off, struct kp_wrapper fields,
				 struct kpackx_error *why)
{
	struct kp_host *out = r->out;

	if (out->n_wrappers == KP_WRAPPERS_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "%s: more than %d wrappers, or words that look like ones",
			       r->format, KP_WRAPPERS_MAX);
	KP_TRY(kp_room(&out->wrappers, out->n_wrappers, &r->wrappers_cap, "wrappers",
		       why));
	out->wrappers[out->n_wrappers++] = (struct kp_host_wrapper){
		.fields = fields,
		.vaddr = s->addr + off,
		.offset = s->offset + off,
		.source = KP_POINTER_IN_PLACE,
		.target = fields.pointer,
	};
	return KPACK_SUCCESS;
}

/* Read .hipFatBinSegment, and skip zero words that a sanitizer puts between wrappers. */
static kpack_error_t read_segment(struct host_reader *r, struct kpackx_error *why)
{
	const struct kp_section *s = &r->in.items[r->found[SEGMENT]];
	static const uint8_t zero[8];
	struct kp_wrapper fields;
	struct kp_window window;
	uint64_t off = 0, left;
	const uint8_t *p;

	kp_window_init(&window, &r->src);
	while ((left = s->size - off)) {
		size_t n = left < KP_WRAPPER_SIZE ? (size_t)left : KP_WRAPPER_SIZE;
		size_t word = n < 8 ? n : 8;
		char hex[3 * 8 + 1] = "";

		KP_TRY(kp_window_get(&window, s->offset + off, n, &p, why));
		if (memcmp(p, zero, word) == 0) {
			off += word;
			continue;
		}
		if (n == KP_WRAPPER_SIZE && kp_wrapper_decode(p, &fields)) {
			KP_TRY(add_wrapper(r, s, off, fields, why));
			off += KP_WRAPPER_SIZE;
			continue;
		}
		for (size_t i = 0; i < word; i++)
			snprintf(hex + 3 * i, 4, " %02x", p[i]);
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "%s: %s: no wrapper at file offset %" PRIu64 ":%s",
			       r->format, s->name, s->offset + off, hex);
	}
	return KPACK_SUCCESS;
}

/* Find all words in data that look like wrappers, by address. */
static kpack_error_t scan_data(struct host_reader *r, struct kpackx_error *why)
{
	struct kp_host *out = r->out;
	struct kp_wrapper fields;
	struct kp_window window;
	const uint8_t *p;

	out->wrappers_scanned = true;
	kp_window_init(&window, &r->src);
	for (size_t i = 1; i < r->in.count; i++) {
		const struct kp_section *s = &r->in.items[i];

		if (i == r->found[FATBIN] || s->type != SHT_PROGBITS ||
		    (s->flags & (SHF_ALLOC | SHF_EXECINSTR)) != SHF_ALLOC)
			continue;
		KP_TRY(begin_section(r, "data", s, why));
		for (uint64_t off = -s->addr & 7;
		     kp_range_ok(s->size, off, KP_WRAPPER_SIZE); off += 8) {
			KP_TRY(kp_window_get(&window, s->offset + off, KP_WRAPPER_SIZE,
					     &p, why));
			if (kp_wrapper_decode(p, &fields))
				KP_TRY(add_wrapper(r, s, off, fields, why));
		}
	}
	if (out->n_wrappers)
		kp_sort(out->wrappers, out->n_wrappers,
			KP_BY_NUMBER(struct kp_host_wrapper, vaddr));
	return KPACK_SUCCESS;
}

/* ---- where the wrappers' pointers lead ---- */

struct kp_host_wrapper *kp_host_wrapper_at(const struct kp_host *host, uint64_t vaddr)
{
	const struct kp_host_wrapper probe = {.vaddr = vaddr - KP_WRAPPER_POINTER};
	size_t n = host->n_wrappers;

	/* most relocations are for other sections */
	if (n == 0 || probe.vaddr < host->wrappers[0].vaddr ||
	    probe.vaddr > host->wrappers[n - 1].vaddr)
		return NULL;
	return kp_find(host->wrappers, n, &probe,
		       KP_BY_NUMBER(struct kp_host_wrapper, vaddr));
}

/*
 * If RELOC changes a wrapper's pointer, note where it leads.  It is unresolved, and leads to 0, if
 * only the dynamic linker can know: the type of relocation or the symbol is not of this file.
 */
static kpack_error_t relocate_wrapper(void *arg, const struct kp_elf_reloc *reloc,
				      struct kpackx_error *why)
{
	struct host_reader *r = arg;
	uint64_t base = r->relocatable ? r->in.items[r->found[SEGMENT]].addr : 0;
	struct kp_host_wrapper *w = kp_host_wrapper_at(r->out, reloc->vaddr + base);
	const struct kp_elf_machine *m = kp_elf_machine_of(r->out->machine);
	uint8_t sym[sizeof(Elf64_Sym)];
	const struct kp_section *s;
	uint16_t section;
	uint64_t addend;

	/* type 0 is "no relocation" on every machine */
	if (!w || (reloc->size && reloc->type == 0))
		return KPACK_SUCCESS;
	if (w->source != KP_POINTER_IN_PLACE)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "%s: two relocations of the word at 0x%" PRIx64, r->format,
			       w->vaddr + KP_WRAPPER_POINTER);
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
	if (m && reloc->type == m->relative) {
		w->source = KP_POINTER_RELATIVE;
		w->target = addend;
	}
	if (!m || reloc->type != m->absolute)
		return KPACK_SUCCESS;
	s = r->relocs->link < r->in.count ? &r->in.items[r->relocs->link] : NULL;
	if (!s || (s->type != SHT_DYNSYM && s->type != SHT_SYMTAB))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "elf: relocations for section %u, which has no symbols",
			       r->relocs->link);
	KP_TRY(check_section(r, "symbols", s, why));
	if (reloc->symbol >= s->size / sizeof(sym))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "elf: relocation for symbol %u of %" PRIu64, reloc->symbol,
			       s->size / sizeof(sym));
	KP_TRY(kp_source_read(&r->src, s->offset + reloc->symbol * sizeof(sym), sym,
			      sizeof(sym), why));
	section = kp_le16(sym + offsetof(Elf64_Sym, st_shndx));
	/* in an object, the value is an offset in its section, which must be .hip_fatbin */
	if (r->relocatable ? !r->out->has_fatbin || section != r->found[FATBIN]
			   : section == SHN_UNDEF)
		return KPACK_SUCCESS;
	w->source = KP_POINTER_SYMBOL;
	w->symbol = kp_le64(sym + offsetof(Elf64_Sym, st_value)) +
		    (r->relocatable ? r->out->fatbin.vaddr : 0);
	w->target = w->symbol + addend;
	return KPACK_SUCCESS;
}

/* ---- the whole ---- */

/* List the sections of PE as those of an ELF, with their own names. */
static kpack_error_t list_pe(const struct kp_pe *pe, struct kp_sections *out,
			     struct kpackx_error *why)
{
	enum { NAME = sizeof(pe->sections->name) };

	KP_TRY(kp_new(&out->items, pe->n + 1, "sections", why));
	KP_TRY(kp_new(&out->names, (pe->n + 1) * NAME, "sections", why));
	out->items[0].name = out->names;
	out->count = pe->n + 1;
	for (size_t i = 1; i <= pe->n; i++) {
		const struct kp_pe_section *s = &pe->sections[i - 1];

		out->items[i] = (struct kp_section){
			.name = memcpy(out->names + i * NAME, s->name, NAME),
			.type = s->size ? SHT_PROGBITS : SHT_NOBITS,
			.flags = SHF_ALLOC |
				 (s->flags & KP_PE_EXECUTE ? SHF_EXECINSTR : 0),
			.addr = pe->base + s->rva,
			.offset = s->offset,
			.size = kp_pe_bytes(s)};
	}
	out->header.e_type = pe->library ? ET_DYN : ET_EXEC;
	out->header.e_machine = pe->machine == KP_PE_X86_64  ? EM_X86_64
				: pe->machine == KP_PE_ARM64 ? EM_AARCH64
							     : EM_NONE;
	return KPACK_SUCCESS;
}

kpack_error_t kp_host_sections(const struct kp_source *src, struct kp_sections *out,
			       struct kpackx_error *why)
{
	KP_AUTO(kp_pe) pe = {0};
	struct kp_span head;
	uint8_t magic[2];

	*out = (struct kp_sections){0};
	KP_TRY(kp_source_head(src, 0, magic, sizeof(magic), &head, why));
	if (!kp_span_begins(head, "MZ"))
		return kp_sections_read(src, out, why);
	KP_TRY(kp_pe_open(src, &pe, why));
	return list_pe(&pe, out, why);
}

/* The loader adds to the word at RVA what it adds to all addresses. */
static kpack_error_t rebase_wrapper(void *arg, uint32_t rva, unsigned size,
				    struct kpackx_error *why)
{
	struct host_reader *r = arg;

	return size == 8 ? relocate_wrapper(
				   r, &(struct kp_elf_reloc){.vaddr = r->pe.base + rva},
				   why)
			 : KPACK_SUCCESS;
}

/*
 * A pointer that is not rebased leads nowhere in a file that is loaded anywhere.  AMD's converter
 * leaves the section in memory, and cuts what it has in the file to less than a page.
 */
static void finish_pe(struct host_reader *r)
{
	struct kp_host *out = r->out;
	size_t n_hipk = 0;

	for (size_t i = 0; i < out->n_wrappers; i++) {
		struct kp_host_wrapper *w = &out->wrappers[i];

		n_hipk += w->fields.magic == KP_WRAPPER_HIPK;
		if (!r->pe.fixed && r->pe.directories[KP_PE_RELOCS].size &&
		    w->source == KP_POINTER_IN_PLACE)
			w->source = KP_POINTER_UNRESOLVED;
	}
	if (out->has_fatbin && n_hipk && n_hipk == out->n_wrappers &&
	    out->fatbin.size < r->pe.sections[r->found[FATBIN] - 1].memory) {
		out->has_fatbin = false;
		out->fatbin_nobits = true;
		out->fatbin.size = 0;
	}
}

static void host_reader_fini(struct host_reader *r)
{
	kp_sections_fini(&r->in);
	kp_pe_fini(&r->pe);
	if (r->out)
		kp_host_fini(r->out);
}

kpack_error_t kp_host_read(int fd, uint64_t size, struct kp_host *out,
			   struct kpackx_error *why)
{
	KP_AUTO(host_reader)
	r = {.src = kp_source_fd(fd, 0, size), .format = "elf", .out = out};
	struct kp_host_part parts[NAMED] = {0};
	const char *const *names = section_names;
	struct kp_span head;
	size_t n = 0;
	uint8_t magic[2];

	*out = (struct kp_host){0};
	KP_TRY(kp_source_head(&r.src, 0, magic, sizeof(magic), &head, why));
	if (kp_span_begins(head, "MZ")) {
		out->pe = true;
		r.format = "pe";
		names = pe_names;
		KP_TRY(kp_pe_open(&r.src, &r.pe, why));
		KP_TRY(list_pe(&r.pe, &r.in, why));
	} else {
		KP_TRY(kp_elf_open(fd, size, &r.in, why));
	}
	out->type = r.in.header.e_type;
	out->machine = r.in.header.e_machine;
	r.relocatable = out->type == ET_REL;
	for (int name = 0; name < NAMED; name++)
		parts[name].name = names[name];
	for (size_t i = 1; i < r.in.count; i++) {
		const struct kp_section *s = &r.in.items[i];
		int name = 0;

		while (name < NAMED &&
		       (out->pe ? strncmp(s->name, names[name], strlen(names[name]))
				: strcmp(s->name, names[name])) != 0)
			name++;
		/* of sections without bytes, which split debug info has, only .hip_fatbin counts */
		if (name == NAMED || (s->type == SHT_NOBITS && name != FATBIN))
			continue;
		if (r.found[name])
			return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
				       "%s: two sections %s, %zu and %zu", r.format,
				       s->name, r.found[name], i);
		r.found[name] = i;
		out->fatbin_nobits |= s->type == SHT_NOBITS;
		if (s->type == SHT_NOBITS)
			continue;
		KP_TRY(check_section(&r, s->name, s, why));
		parts[name] =
			(struct kp_host_part){s->addr, s->offset, s->size, names[name]};
	}
	out->has_fatbin = parts[FATBIN].size > 0;
	out->fatbin = parts[FATBIN];
	out->marker = parts[MARKER];
	out->layout = parts[LAYOUT];
	/* object files have no final addresses, and debug information no data */
	if (r.found[SEGMENT])
		KP_TRY(read_segment(&r, why));
	else if (!r.relocatable &&
		 (out->has_fatbin || (r.found[FATBIN] && r.found[MARKER])))
		KP_TRY(scan_data(&r, why));
	for (size_t i = 1; i < r.in.count && out->n_wrappers; i++) {
		const struct kp_section *s = &r.in.items[i];

		/* ignore relocations that a linked file keeps but does not load (ld -q) */
		if (!kp_elf_is_reloc(s) || (r.relocatable ? s->info != r.found[SEGMENT]
							  : !(s->flags & SHF_ALLOC)))
			continue;
		KP_TRY(begin_section(&r, "relocations", s, why));
		r.relocs = s;
		KP_TRY(kp_elf_each_reloc(&r.src, s, relocate_wrapper, &r, why));
	}
	if (out->pe && out->n_wrappers)
		KP_TRY(kp_pe_each_reloc(&r.src, &r.pe, rebase_wrapper, &r, why));
	if (out->pe)
		finish_pe(&r);
	/*
	 * Drop what scanning found, but whose pointer does not lead into the section that a wrapper's
	 * must lead into.  Wrappers share no bytes.
	 */
	for (size_t i = 0; i < out->n_wrappers && out->wrappers_scanned; i++) {
		const struct kp_host_wrapper w = out->wrappers[i];
		const struct kp_host_part *into =
			w.fields.magic == KP_WRAPPER_HIPK ? &out->marker : &out->fatbin;

		if (w.source != KP_POINTER_UNRESOLVED && w.target >= into->vaddr &&
		    w.target - into->vaddr < into->size &&
		    (n == 0 || w.vaddr >= out->wrappers[n - 1].vaddr + KP_WRAPPER_SIZE))
			out->wrappers[n++] = w;
	}
	if (out->wrappers_scanned)
		out->n_wrappers = n;
	r.out = NULL; /* it is the caller's now */
	return KPACK_SUCCESS;
}

void kp_host_fini(struct kp_host *host)
{
	free(host->wrappers);
	*host = (struct kp_host){0};
}
