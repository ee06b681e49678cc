/* SPDX-License-Identifier: MIT */
/*
 * libelf finds the sections; their contents are read with pread, so that
 * memory stays bounded whatever the headers claim.
 *
 * A wrapper's pointer is what the dynamic linker makes of it, which is seldom
 * what stands in the file: lld leaves zero where a RELA relocation will write,
 * GNU ld stores the address too, RELR needs it stored, and libraries made
 * with -fgpu-rdc go through a symbol.
 */
#include "elf.h"
#include <elf.h>
#include <gelf.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include "file.h"
#include "limits.h"

#ifndef SHT_RELR
#define SHT_RELR 19
#endif

/* What a relocation does to the word it is for. */
enum action {
	ACTION_OTHER,    /* something not known at build time */
	ACTION_RELATIVE, /* load address + addend */
	ACTION_SYMBOL,   /* symbol + addend */
};

static const struct machine {
	uint16_t machine;
	uint32_t relative, absolute; /* relocation types */
} machines[] = {
	{EM_X86_64, R_X86_64_RELATIVE, R_X86_64_64},
	{EM_AARCH64, R_AARCH64_RELATIVE, R_AARCH64_ABS64},
};

/* One relocation of a word in .hipFatBinSegment. */
struct reloc {
	uint64_t vaddr; /* of the word */
	enum kp_pointer_source source;
	bool in_place;   /* the word holds the addend */
	uint64_t symbol; /* value to be added */
	uint64_t addend;
	uint64_t offset; /* of the record in the file */
	unsigned size;   /* of the record; 0: RELR */
};

/* What is needed while one file is read. */
struct reader {
	struct kp_source src;
	Elf *elf;
	struct kp_elf *out;
	bool relocatable; /* ET_REL: addresses are offsets in their section */
	bool has_fatbin_section, has_segment;
	size_t names; /* index of the section of names */
	size_t fatbin_index, segment_index;
	GElf_Shdr segment; /* .hipFatBinSegment */
	uint64_t relocs_bytes;
	struct reloc *relocs;
	size_t n_relocs;
};

static void init_libelf(void)
{
	elf_version(EV_CURRENT);
}

static kpack_error_t libelf_fail(struct kpackx_error *why, const char *what)
{
	const char *text = elf_errmsg(-1);

	return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "elf: %s: %s", what,
		       text ? text : "no reason given");
}

/* ---- headers ---- */

static bool is_elf(struct kp_span head)
{
	return head.size >= 20 && memcmp(head.data, ELFMAG, SELFMAG) == 0;
}

static bool is_host_class(struct kp_span head)
{
	return head.data[EI_CLASS] == ELFCLASS64 && head.data[EI_DATA] == ELFDATA2LSB;
}

bool kp_elf_probe(struct kp_span head)
{
	uint16_t machine;

	if (!is_elf(head) || !is_host_class(head))
		return false;
	machine = kp_le16(head.data + offsetof(Elf64_Ehdr, e_machine));
	return machine != EM_AMDGPU && machine != EM_CUDA;
}

/*
 * libelf allocates for every section at once, and takes a table that is cut off for none:
 * look at it before.
 */
static kpack_error_t check_section_table(const struct kp_source *src, const uint8_t *eh,
					 struct kpackx_error *why)
{
	uint64_t shoff = kp_le64(eh + offsetof(Elf64_Ehdr, e_shoff));
	uint64_t n = kp_le16(eh + offsetof(Elf64_Ehdr, e_shnum));
	uint8_t sh[sizeof(Elf64_Shdr)];

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

static kpack_error_t read_header(struct reader *r, struct kpackx_error *why)
{
	uint8_t eh[sizeof(Elf64_Ehdr)];

	KP_TRY(kp_source_read(&r->src, 0, eh, sizeof(eh), why));
	if (!is_elf((struct kp_span){eh, sizeof(eh)}))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "elf: not an ELF file");
	if (!is_host_class((struct kp_span){eh, sizeof(eh)}))
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "elf: class %u, byte order %u: only 64-bit little-endian",
			       eh[EI_CLASS], eh[EI_DATA]);
	r->out->type = kp_le16(eh + offsetof(Elf64_Ehdr, e_type));
	r->out->machine = kp_le16(eh + offsetof(Elf64_Ehdr, e_machine));
	r->relocatable = r->out->type == ET_REL;
	return check_section_table(&r->src, eh, why);
}

static kpack_error_t open_libelf(struct reader *r, struct kpackx_error *why)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	GElf_Shdr names;
	size_t n;

	pthread_once(&once, init_libelf);
	/* READ and not READ_MMAP: a file that becomes shorter must not be a SIGBUS */
	r->elf = elf_begin(r->src.fd, ELF_C_READ, NULL);
	if (!r->elf || elf_kind(r->elf) != ELF_K_ELF)
		return libelf_fail(why, "header");
	if (elf_getshdrnum(r->elf, &n) || elf_getshdrstrndx(r->elf, &r->names))
		return libelf_fail(why, "section headers");
	if (n == 0 || r->names == SHN_UNDEF)
		return KPACK_SUCCESS;
	if (!gelf_getshdr(elf_getscn(r->elf, r->names), &names))
		return libelf_fail(why, "section names");
	if (names.sh_size > KP_SECTION_NAMES_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "elf: %" PRIu64 " bytes of section names, at most %d",
			       names.sh_size, KP_SECTION_NAMES_MAX);
	return KPACK_SUCCESS;
}

/* ---- sections ---- */

static kpack_error_t check_section(const struct reader *r, const char *name,
				   const GElf_Shdr *sh, struct kpackx_error *why)
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

static kpack_error_t take_fatbin(struct reader *r, size_t index, const GElf_Shdr *sh,
				 struct kpackx_error *why)
{
	struct kp_elf *out = r->out;

	if (r->has_fatbin_section)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "elf: two sections .hip_fatbin, %zu and %zu",
			       r->fatbin_index, index);
	r->has_fatbin_section = true;
	r->fatbin_index = index;
	out->fatbin_nobits = sh->sh_type == SHT_NOBITS;
	if (out->fatbin_nobits)
		return KPACK_SUCCESS;
	KP_TRY(check_section(r, ".hip_fatbin", sh, why));
	out->has_fatbin = sh->sh_size > 0;
	out->fatbin_vaddr = sh->sh_addr;
	out->fatbin_offset = sh->sh_offset;
	out->fatbin_size = sh->sh_size;
	return KPACK_SUCCESS;
}

static kpack_error_t take_segment(struct reader *r, size_t index, const GElf_Shdr *sh,
				  struct kpackx_error *why)
{
	if (sh->sh_type == SHT_NOBITS)
		return KPACK_SUCCESS;
	if (r->has_segment)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "elf: two sections .hipFatBinSegment, %zu and %zu",
			       r->segment_index, index);
	KP_TRY(check_section(r, ".hipFatBinSegment", sh, why));
	r->has_segment = true;
	r->segment_index = index;
	r->segment = *sh;
	return KPACK_SUCCESS;
}

typedef kpack_error_t section_fn(struct reader *r, size_t index, const GElf_Shdr *sh,
				 struct kpackx_error *why);

static kpack_error_t each_section(struct reader *r, section_fn *fn,
				  struct kpackx_error *why)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;

	while ((scn = elf_nextscn(r->elf, scn))) {
		if (!gelf_getshdr(scn, &sh))
			return libelf_fail(why, "section header");
		KP_TRY(fn(r, elf_ndxscn(scn), &sh, why));
	}
	return KPACK_SUCCESS;
}

static kpack_error_t take_section(struct reader *r, size_t index, const GElf_Shdr *sh,
				  struct kpackx_error *why)
{
	const char *name = elf_strptr(r->elf, r->names, sh->sh_name);

	if (!name)
		return libelf_fail(why, "section name");
	if (strcmp(name, ".hip_fatbin") == 0)
		return take_fatbin(r, index, sh, why);
	if (strcmp(name, ".hipFatBinSegment") == 0)
		return take_segment(r, index, sh, why);
	return KPACK_SUCCESS;
}

/* ---- relocations ---- */

static bool in_segment(const struct reader *r, uint64_t vaddr)
{
	return vaddr >= r->segment.sh_addr &&
	       kp_range_ok(r->segment.sh_size, vaddr - r->segment.sh_addr, 8);
}

static kpack_error_t add_reloc(struct reader *r, struct reloc reloc,
			       struct kpackx_error *why)
{
	size_t room = r->n_relocs ? 2 * r->n_relocs : 8;
	struct reloc *grown;

	/* one bit of RELR costs us 40 bytes: refuse before that hurts */
	if (r->n_relocs >= r->segment.sh_size / 8)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "elf: more relocations than words in .hipFatBinSegment");
	if (r->n_relocs == 0 ||
	    (r->n_relocs >= 8 && !(r->n_relocs & (r->n_relocs - 1)))) {
		grown = reallocarray(r->relocs, room, sizeof(*grown));
		if (!grown)
			return kp_fail_memory(why, (uint64_t)room * sizeof(*grown),
					      "relocations");
		r->relocs = grown;
	}
	r->relocs[r->n_relocs++] = reloc;
	return KPACK_SUCCESS;
}

static enum action find_action(const struct reader *r, uint32_t type)
{
	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
		if (machines[i].machine != r->out->machine)
			continue;
		return type == machines[i].relative   ? ACTION_RELATIVE
		       : type == machines[i].absolute ? ACTION_SYMBOL
						      : ACTION_OTHER;
	}
	return ACTION_OTHER;
}

/* The value of a symbol defined in this file; KNOWN false when it is not. */
static kpack_error_t read_symbol(struct reader *r, uint32_t table, uint32_t index,
				 uint64_t *value, bool *known, struct kpackx_error *why)
{
	uint8_t sym[sizeof(Elf64_Sym)];
	uint16_t shndx;
	GElf_Shdr sh;

	*known = false;
	if (!gelf_getshdr(elf_getscn(r->elf, table), &sh) ||
	    (sh.sh_type != SHT_DYNSYM && sh.sh_type != SHT_SYMTAB))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "elf: relocations for section %u, which has no symbols",
			       table);
	KP_TRY(check_section(r, "symbols", &sh, why));
	if (index >= sh.sh_size / sizeof(sym))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "elf: relocation for symbol %u of %" PRIu64, index,
			       sh.sh_size / sizeof(sym));
	KP_TRY(kp_source_read(&r->src, sh.sh_offset + index * sizeof(sym), sym,
			      sizeof(sym), why));
	shndx = kp_le16(sym + offsetof(Elf64_Sym, st_shndx));
	*value = kp_le64(sym + offsetof(Elf64_Sym, st_value));
	/* in an object the value counts from its section, so it must be the right one */
	*known = r->relocatable ? r->out->has_fatbin && shndx == r->fatbin_index
				: shndx != SHN_UNDEF;
	if (r->relocatable)
		*value += r->out->fatbin_vaddr;
	return KPACK_SUCCESS;
}

/* The record P, at file offset AT: an Elf64_Rel, or an Elf64_Rela with its addend. */
static kpack_error_t take_reloc(struct reader *r, const GElf_Shdr *sh, const uint8_t *p,
				uint64_t at, struct kpackx_error *why)
{
	uint64_t info = kp_le64(p + offsetof(Elf64_Rela, r_info));
	struct reloc reloc = {.vaddr = kp_le64(p + offsetof(Elf64_Rela, r_offset)),
			      .source = KP_POINTER_UNRESOLVED,
			      .in_place = sh->sh_type == SHT_REL,
			      .offset = at,
			      .size = (unsigned)sh->sh_entsize};
	bool known;

	if (r->relocatable)
		reloc.vaddr += r->segment.sh_addr;
	/* type 0 is "no relocation" on every machine */
	if (!in_segment(r, reloc.vaddr) || ELF64_R_TYPE(info) == 0)
		return KPACK_SUCCESS;
	if (!reloc.in_place)
		reloc.addend = kp_le64(p + offsetof(Elf64_Rela, r_addend));
	switch (find_action(r, (uint32_t)ELF64_R_TYPE(info))) {
	case ACTION_RELATIVE:
		reloc.source = KP_POINTER_RELATIVE;
		break;
	case ACTION_SYMBOL:
		KP_TRY(read_symbol(r, sh->sh_link, (uint32_t)ELF64_R_SYM(info),
				   &reloc.symbol, &known, why));
		if (known)
			reloc.source = KP_POINTER_SYMBOL;
		break;
	case ACTION_OTHER:
		break;
	}
	return add_reloc(r, reloc, why);
}

static kpack_error_t take_relocs(struct reader *r, const GElf_Shdr *sh,
				 struct kpackx_error *why)
{
	size_t row = sh->sh_type == SHT_REL ? sizeof(Elf64_Rel) : sizeof(Elf64_Rela);
	struct kp_window window;
	const uint8_t *p;

	if (sh->sh_entsize != row || sh->sh_size % row)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "elf: relocations: %" PRIu64 " bytes in rows of %" PRIu64
			       ", expected rows of %zu",
			       sh->sh_size, sh->sh_entsize, row);
	kp_window_init(&window, &r->src);
	for (uint64_t off = 0; off < sh->sh_size; off += row) {
		KP_TRY(kp_window_get(&window, sh->sh_offset + off, row, &p, why));
		KP_TRY(take_reloc(r, sh, p, sh->sh_offset + off, why));
	}
	return KPACK_SUCCESS;
}

static kpack_error_t take_relr_word(struct reader *r, uint64_t vaddr,
				    struct kpackx_error *why)
{
	struct reloc reloc = {
		.vaddr = vaddr, .source = KP_POINTER_RELR, .in_place = true};

	return in_segment(r, vaddr) ? add_reloc(r, reloc, why) : KPACK_SUCCESS;
}

/* An even entry is a word's address; an odd one says which of the next 63 words follow.
 */
static kpack_error_t take_relr(struct reader *r, const GElf_Shdr *sh,
			       struct kpackx_error *why)
{
	struct kp_window window;
	uint64_t next = 0;
	const uint8_t *p;

	kp_window_init(&window, &r->src);
	for (uint64_t off = 0; sh->sh_size - off >= 8; off += 8) {
		KP_TRY(kp_window_get(&window, sh->sh_offset + off, 8, &p, why));
		uint64_t entry = kp_le64(p);

		if (!(entry & 1)) {
			KP_TRY(take_relr_word(r, entry, why));
			next = entry + 8;
			continue;
		}
		for (unsigned bit = 1; entry >> bit; bit++) {
			if (entry >> bit & 1)
				KP_TRY(take_relr_word(r, next + (bit - 1) * 8, why));
			if (bit == 63)
				break;
		}
		next += UINT64_C(63) * 8;
	}
	return KPACK_SUCCESS;
}

static bool is_reloc_section(const struct reader *r, const GElf_Shdr *sh)
{
	if (sh->sh_type != SHT_REL && sh->sh_type != SHT_RELA && sh->sh_type != SHT_RELR)
		return false;
	/* a linked file can keep the linker's own relocations too (-q): not loaded, not
	 * used */
	return r->relocatable ? sh->sh_info == r->segment_index
			      : (sh->sh_flags & SHF_ALLOC) != 0;
}

static kpack_error_t take_reloc_section(struct reader *r, size_t index,
					const GElf_Shdr *sh, struct kpackx_error *why)
{
	(void)index;
	if (!is_reloc_section(r, sh))
		return KPACK_SUCCESS;
	KP_TRY(check_section(r, "relocations", sh, why));
	/* many headers over the same bytes would cost time without end */
	if (sh->sh_size > r->src.size - r->relocs_bytes)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "elf: more relocations than the file's %" PRIu64
			       " bytes hold",
			       r->src.size);
	r->relocs_bytes += sh->sh_size;
	return sh->sh_type == SHT_RELR ? take_relr(r, sh, why) : take_relocs(r, sh, why);
}

static int compare_relocs(const void *a, const void *b)
{
	const struct reloc *x = a, *y = b;

	return (x->vaddr > y->vaddr) - (x->vaddr < y->vaddr);
}

static kpack_error_t sort_relocs(struct reader *r, struct kpackx_error *why)
{
	if (r->n_relocs)
		qsort(r->relocs, r->n_relocs, sizeof(*r->relocs), compare_relocs);
	for (size_t i = 1; i < r->n_relocs; i++) {
		if (r->relocs[i].vaddr == r->relocs[i - 1].vaddr)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "elf: two relocations of the word at 0x%" PRIx64,
				       r->relocs[i].vaddr);
	}
	return KPACK_SUCCESS;
}

/* ---- wrappers ---- */

/* Work out where the pointer of W leads at run time. */
static void resolve(const struct reader *r, struct kp_elf_wrapper *w)
{
	struct reloc key = {.vaddr = w->vaddr + 8}, *found = NULL;

	if (r->n_relocs)
		found = bsearch(&key, r->relocs, r->n_relocs, sizeof(key),
				compare_relocs);
	if (!found) {
		w->source = KP_POINTER_IN_PLACE;
		w->target = w->fields.pointer;
		return;
	}
	w->source = found->source;
	w->reloc_offset = found->offset;
	w->reloc_size = found->size;
	w->symbol = found->symbol;
	if (w->source == KP_POINTER_UNRESOLVED)
		return;
	w->target = found->symbol + (found->in_place ? w->fields.pointer : found->addend);
}

static kpack_error_t add_wrapper(struct reader *r, uint64_t off, struct kp_wrapper fields,
				 struct kpackx_error *why)
{
	struct kp_elf_wrapper w = {.fields = fields,
				   .vaddr = r->segment.sh_addr + off,
				   .offset = r->segment.sh_offset + off};
	struct kp_elf *out = r->out;
	size_t n = out->n_wrappers, room = n ? 2 * n : 1;
	void *grown;

	if (!(n & (n - 1))) {
		grown = reallocarray(out->wrappers, room, sizeof(w));
		if (!grown)
			return kp_fail_memory(why, (uint64_t)room * sizeof(w),
					      "wrappers");
		out->wrappers = grown;
	}
	resolve(r, &w);
	out->wrappers[out->n_wrappers++] = w;
	return KPACK_SUCCESS;
}

static kpack_error_t fail_word(const struct reader *r, uint64_t off, const uint8_t *p,
			       size_t n, struct kpackx_error *why)
{
	char hex[3 * 8 + 1] = "";

	for (size_t i = 0; i < n; i++)
		snprintf(hex + 3 * i, 4, " %02x", p[i]);
	return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
		       "elf: .hipFatBinSegment: no wrapper at file offset %" PRIu64 ":%s",
		       r->segment.sh_offset + off, hex);
}

/* Wrappers, and the zero words a sanitizer puts between them. */
static kpack_error_t read_wrappers(struct reader *r, struct kpackx_error *why)
{
	static const uint8_t zero[8];
	uint64_t off = 0, size = r->segment.sh_size, left;
	struct kp_wrapper fields;
	struct kp_window window;
	const uint8_t *p;

	kp_window_init(&window, &r->src);
	while ((left = size - off)) {
		size_t n = left < KP_WRAPPER_SIZE ? (size_t)left : KP_WRAPPER_SIZE;
		size_t word = n < 8 ? n : 8;

		KP_TRY(kp_window_get(&window, r->segment.sh_offset + off, n, &p, why));
		if (memcmp(p, zero, word) == 0) {
			off += word;
			continue;
		}
		if (n < KP_WRAPPER_SIZE || !kp_wrapper_decode(p, &fields))
			return fail_word(r, off, p, word, why);
		KP_TRY(add_wrapper(r, off, fields, why));
		off += KP_WRAPPER_SIZE;
	}
	return KPACK_SUCCESS;
}

static kpack_error_t read_all(struct reader *r, struct kpackx_error *why)
{
	KP_TRY(read_header(r, why));
	KP_TRY(open_libelf(r, why));
	/* without section names there is nothing to find */
	if (r->names == SHN_UNDEF)
		return KPACK_SUCCESS;
	KP_TRY(each_section(r, take_section, why));
	if (!r->has_segment)
		return KPACK_SUCCESS;
	KP_TRY(each_section(r, take_reloc_section, why));
	KP_TRY(sort_relocs(r, why));
	return read_wrappers(r, why);
}

kpack_error_t kp_elf_read(int fd, uint64_t size, struct kp_elf *out,
			  struct kpackx_error *why)
{
	struct reader r = {.src = kp_source_fd(fd, 0, size), .out = out};
	kpack_error_t err;

	*out = (struct kp_elf){0};
	err = read_all(&r, why);
	if (r.elf)
		elf_end(r.elf);
	free(r.relocs);
	if (err != KPACK_SUCCESS)
		kp_elf_fini(out);
	return err;
}

void kp_elf_fini(struct kp_elf *elf)
{
	free(elf->wrappers);
	*elf = (struct kp_elf){0};
}
