/* SPDX-License-Identifier: MIT */
/*
 * Reading host ELF files: headers and sections; then the wrappers, which are in a section of their own
 * or found by scanning; then the addresses that relocations let the wrappers' pointers have.
 */
#include "elf_file.h"
#include <elf.h>
#include <gelf.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "elf_relr.h"
#include "core/base/file.h"

struct kp_elf_section {
	size_t index; /* 0: the file has no such section */
	GElf_Shdr header;
};

/* The state of reading one file. */
struct kp_elf_reader {
	struct kp_source src;
	Elf *elf;
	struct kp_elf *out;
	bool relocatable; /* ET_REL: addresses are offsets in their section */
	size_t names;     /* index of the section with section names */

	/* .hip_fatbin of any type; .hipFatBinSegment and .rocm_kpack_ref with bytes */
	struct kp_elf_section fatbin, segment, marker;

	size_t wrappers_cap;
	uint64_t scanned_bytes, relocs_bytes; /* so far, see account_section */
};

typedef kpack_error_t section_fn(struct kp_elf_reader *r, size_t index,
				 const GElf_Shdr *sh, struct kpackx_error *why);

static void init_libelf(void)
{
	elf_version(EV_CURRENT);
}

kpack_error_t kp_elf_fail(struct kpackx_error *why, const char *what)
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

bool kp_elf_host_probe(struct kp_span head)
{
	uint16_t machine;

	if (!is_elf(head) || !is_host_class(head))
		return false;
	machine = kp_le16(head.data + offsetof(Elf64_Ehdr, e_machine));
	return machine != EM_AMDGPU && machine != EM_CUDA;
}

/*
 * Check the section table before libelf does, which allocates memory for all sections at
 * once, and treats a truncated table as no table.
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

static kpack_error_t check_header(const struct kp_source *src, struct kpackx_error *why)
{
	uint8_t eh[sizeof(Elf64_Ehdr)];

	KP_TRY(kp_source_read(src, 0, eh, sizeof(eh), why));
	if (!is_elf((struct kp_span){eh, sizeof(eh)}))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "elf: not an ELF file");
	if (!is_host_class((struct kp_span){eh, sizeof(eh)}))
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "elf: class %u, byte order %u: only 64-bit little-endian",
			       eh[EI_CLASS], eh[EI_DATA]);
	return check_section_table(src, eh, why);
}

static kpack_error_t begin_libelf(int fd, Elf **elf, size_t *names,
				  struct kpackx_error *why)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const Elf64_Shdr *sh;
	size_t n;

	pthread_once(&once, init_libelf);
	/* not READ_MMAP: a file that becomes shorter must not cause a SIGBUS */
	*elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!*elf || elf_kind(*elf) != ELF_K_ELF)
		return kp_elf_fail(why, "header");
	if (elf_getshdrnum(*elf, &n) || elf_getshdrstrndx(*elf, names))
		return kp_elf_fail(why, "section headers");
	if (n == 0 || *names == SHN_UNDEF)
		return KPACK_SUCCESS;
	/* not gelf_getshdr, which forgets that memory ran out */
	sh = elf64_getshdr(elf_getscn(*elf, *names));
	if (!sh)
		return kp_elf_fail(why, "section names");
	if (sh->sh_size > KP_SECTION_NAMES_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "elf: %" PRIu64 " bytes of section names, at most %d",
			       sh->sh_size, KP_SECTION_NAMES_MAX);
	return KPACK_SUCCESS;
}

kpack_error_t kp_elf_open(int fd, uint64_t size, struct Elf **elf, size_t *names,
			  struct kpackx_error *why)
{
	const struct kp_source src = kp_source_fd(fd, 0, size);
	kpack_error_t err;

	*elf = NULL;
	KP_TRY(check_header(&src, why));
	err = begin_libelf(fd, elf, names, why);
	if (err && *elf) {
		elf_end(*elf);
		*elf = NULL;
	}
	return err;
}

/* ---- sections ---- */

/* INVALID_FORMAT unless the bytes of SH are in the file and in the address space. */
static kpack_error_t check_section(const struct kp_elf_reader *r, const char *name,
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

/*
 * Add the size of SH, which was checked, to *TOTAL.  INVALID_FORMAT: the total exceeds
 * the file's size.  Otherwise many headers over the same bytes would cost unbounded time.
 */
static kpack_error_t account_section(const struct kp_elf_reader *r, const char *name,
				     const GElf_Shdr *sh, uint64_t *total,
				     struct kpackx_error *why)
{
	if (sh->sh_size > r->src.size - *total)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "elf: more %s than the file's %" PRIu64 " bytes hold",
			       name, r->src.size);
	*total += sh->sh_size;
	return KPACK_SUCCESS;
}

/* Call FN for every section until one fails. */
static kpack_error_t each_section(struct kp_elf_reader *r, section_fn *fn,
				  struct kpackx_error *why)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;

	while ((scn = elf_nextscn(r->elf, scn))) {
		if (!gelf_getshdr(scn, &sh))
			return kp_elf_fail(why, "section header");
		KP_TRY(fn(r, elf_ndxscn(scn), &sh, why));
	}
	return KPACK_SUCCESS;
}

/* The member of R for the section NAME, or NULL. */
static struct kp_elf_section *find_member(struct kp_elf_reader *r, const char *name)
{
	return strcmp(name, ".hip_fatbin") == 0         ? &r->fatbin
	       : strcmp(name, ".hipFatBinSegment") == 0 ? &r->segment
	       : strcmp(name, ".rocm_kpack_ref") == 0   ? &r->marker
							: NULL;
}

static kpack_error_t take_section(struct kp_elf_reader *r, size_t index,
				  const GElf_Shdr *sh, struct kpackx_error *why)
{
	const char *name = elf_strptr(r->elf, r->names, sh->sh_name);
	struct kp_elf_section *section;

	if (!name)
		return kp_elf_fail(why, "section name");
	section = find_member(r, name);
	/*
	 * of sections without bytes, which split debug info has, only .hip_fatbin counts
	 */
	if (!section || (sh->sh_type == SHT_NOBITS && section != &r->fatbin))
		return KPACK_SUCCESS;
	if (section->index)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "elf: two sections %s, %zu and %zu", name, section->index,
			       index);
	if (sh->sh_type != SHT_NOBITS)
		KP_TRY(check_section(r, name, sh, why));
	*section = (struct kp_elf_section){index, *sh};
	return KPACK_SUCCESS;
}

static void describe_fatbin(struct kp_elf_reader *r)
{
	const GElf_Shdr *sh = &r->fatbin.header;
	struct kp_elf *out = r->out;

	if (!r->fatbin.index)
		return;
	out->fatbin_nobits = sh->sh_type == SHT_NOBITS;
	if (out->fatbin_nobits)
		return;
	out->has_fatbin = sh->sh_size > 0;
	out->fatbin_vaddr = sh->sh_addr;
	out->fatbin_offset = sh->sh_offset;
	out->fatbin_size = sh->sh_size;
}

/* ==== wrappers ==== */

static kpack_error_t add_wrapper(struct kp_elf_reader *r, const GElf_Shdr *sh,
				 uint64_t off, struct kp_wrapper fields,
				 struct kpackx_error *why)
{
	struct kp_elf *out = r->out;

	if (out->n_wrappers == KP_WRAPPERS_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "elf: more than %d wrappers, or words that look like ones",
			       KP_WRAPPERS_MAX);
	if (!kp_grow(&out->wrappers, out->n_wrappers, &r->wrappers_cap,
		     sizeof(*out->wrappers)))
		return kp_fail_memory(why, out->n_wrappers * sizeof(*out->wrappers),
				      "wrappers");
	out->wrappers[out->n_wrappers++] = (struct kp_elf_wrapper){
		.fields = fields,
		.vaddr = sh->sh_addr + off,
		.offset = sh->sh_offset + off,
		.source = KP_POINTER_IN_PLACE,
		.target = fields.pointer,
	};
	return KPACK_SUCCESS;
}

/* ---- .hipFatBinSegment ---- */

static kpack_error_t fail_word(uint64_t offset, const uint8_t *p, size_t n,
			       struct kpackx_error *why)
{
	char hex[3 * 8 + 1] = "";

	for (size_t i = 0; i < n; i++)
		snprintf(hex + 3 * i, 4, " %02x", p[i]);
	return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
		       "elf: .hipFatBinSegment: no wrapper at file offset %" PRIu64 ":%s",
		       offset, hex);
}

/* Read the wrappers, and skip zero words that a sanitizer puts between them. */
static kpack_error_t read_segment(struct kp_elf_reader *r, struct kpackx_error *why)
{
	static const uint8_t zero[8];
	const GElf_Shdr *sh = &r->segment.header;
	struct kp_wrapper fields;
	struct kp_window window;
	uint64_t off = 0, left;
	const uint8_t *p;

	kp_window_init(&window, &r->src);
	while ((left = sh->sh_size - off)) {
		size_t n = left < KP_WRAPPER_SIZE ? (size_t)left : KP_WRAPPER_SIZE;
		size_t word = n < 8 ? n : 8;

		KP_TRY(kp_window_get(&window, sh->sh_offset + off, n, &p, why));
		if (memcmp(p, zero, word) == 0) {
			off += word;
			continue;
		}
		if (n < KP_WRAPPER_SIZE || !kp_wrapper_decode(p, &fields))
			return fail_word(sh->sh_offset + off, p, word, why);
		KP_TRY(add_wrapper(r, sh, off, fields, why));
		off += KP_WRAPPER_SIZE;
	}
	return KPACK_SUCCESS;
}

/* ---- other sections ---- */

/* Object files have no final addresses, and debug information files have no data. */
static bool must_scan(const struct kp_elf_reader *r)
{
	return !r->relocatable &&
	       (r->out->has_fatbin || (r->fatbin.index && r->marker.index));
}

static bool can_have_wrappers(const struct kp_elf_reader *r, size_t index,
			      const GElf_Shdr *sh)
{
	return index != r->fatbin.index && sh->sh_type == SHT_PROGBITS &&
	       (sh->sh_flags & SHF_ALLOC) && !(sh->sh_flags & SHF_EXECINSTR);
}

static kpack_error_t scan_section(struct kp_elf_reader *r, size_t index,
				  const GElf_Shdr *sh, struct kpackx_error *why)
{
	struct kp_wrapper fields;
	struct kp_window window;
	const uint8_t *p;

	if (!can_have_wrappers(r, index, sh))
		return KPACK_SUCCESS;
	KP_TRY(check_section(r, "data", sh, why));
	KP_TRY(account_section(r, "data", sh, &r->scanned_bytes, why));
	kp_window_init(&window, &r->src);
	for (uint64_t off = -sh->sh_addr & 7;
	     kp_range_ok(sh->sh_size, off, KP_WRAPPER_SIZE); off += 8) {
		KP_TRY(kp_window_get(&window, sh->sh_offset + off, KP_WRAPPER_SIZE, &p,
				     why));
		if (kp_wrapper_decode(p, &fields))
			KP_TRY(add_wrapper(r, sh, off, fields, why));
	}
	return KPACK_SUCCESS;
}

static int compare_vaddr(const void *a, const void *b)
{
	const struct kp_elf_wrapper *x = a, *y = b;

	return KP_ORDER(x->vaddr, y->vaddr);
}

/*
 * Fill R->out with the wrappers, or words that look like wrappers, by address; their
 * pointers are not resolved yet.
 */
static kpack_error_t find_wrappers(struct kp_elf_reader *r, struct kpackx_error *why)
{
	struct kp_elf *out = r->out;

	if (r->segment.index)
		return read_segment(r, why);
	if (!must_scan(r))
		return KPACK_SUCCESS;
	out->wrappers_scanned = true;
	KP_TRY(each_section(r, scan_section, why));
	if (out->n_wrappers)
		qsort(out->wrappers, out->n_wrappers, sizeof(*out->wrappers),
		      compare_vaddr);
	return KPACK_SUCCESS;
}

/* ---- targets of the pointers ---- */

static bool is_inside(uint64_t target, uint64_t vaddr, uint64_t size)
{
	return target >= vaddr && target - vaddr < size;
}

static bool is_wrapper(const struct kp_elf_reader *r, const struct kp_elf_wrapper *w)
{
	const struct kp_elf *out = r->out;
	const GElf_Shdr *marker = &r->marker.header;

	if (w->source == KP_POINTER_UNRESOLVED)
		return false;
	if (w->fields.magic == KP_WRAPPER_HIPK)
		return r->marker.index &&
		       is_inside(w->target, marker->sh_addr, marker->sh_size);
	return out->has_fatbin &&
	       is_inside(w->target, out->fatbin_vaddr, out->fatbin_size);
}

/*
 * Drop the wrappers found by scanning whose pointer does not lead into the section that
 * it must point to.
 */
static void drop_strays(struct kp_elf_reader *r)
{
	struct kp_elf *out = r->out;
	uint64_t end = 0; /* of the last wrapper kept; wrappers share no bytes */
	size_t n = 0;

	for (size_t i = 0; i < out->n_wrappers; i++) {
		const struct kp_elf_wrapper w = out->wrappers[i];

		if (w.vaddr < end || !is_wrapper(r, &w))
			continue;
		end = w.vaddr + KP_WRAPPER_SIZE;
		out->wrappers[n++] = w;
	}
	out->n_wrappers = n;
	if (out->wrappers)
		out->wrappers = kp_large_trim(out->wrappers, n * sizeof(*out->wrappers));
}

/* ==== where their pointers lead ==== */

#ifndef EM_LOONGARCH
#define EM_LOONGARCH 258
#endif
#ifndef R_LARCH_RELATIVE
#define R_LARCH_64 2
#define R_LARCH_RELATIVE 3
#endif

/* The value that a relocation writes. */
enum action {
	ACTION_OTHER,    /* a value not known at build time */
	ACTION_RELATIVE, /* load address + addend */
	ACTION_SYMBOL,   /* symbol + addend */
};

static const struct machine {
	uint16_t machine;
	uint32_t relative, absolute; /* relocation types */
} machines[] = {
	{EM_X86_64, R_X86_64_RELATIVE, R_X86_64_64},
	{EM_AARCH64, R_AARCH64_RELATIVE, R_AARCH64_ABS64},
	{EM_PPC64, R_PPC64_RELATIVE, R_PPC64_ADDR64},
	{EM_RISCV, R_RISCV_RELATIVE, R_RISCV_64},
	{EM_LOONGARCH, R_LARCH_RELATIVE, R_LARCH_64},
};

bool kp_elf_machine_known(uint16_t machine)
{
	for (size_t i = 0; i < KP_COUNT(machines); i++)
		if (machines[i].machine == machine)
			return true;
	return false;
}

static enum action find_action(uint16_t machine, uint32_t type)
{
	for (size_t i = 0; i < KP_COUNT(machines); i++) {
		if (machines[i].machine != machine)
			continue;
		return type == machines[i].relative   ? ACTION_RELATIVE
		       : type == machines[i].absolute ? ACTION_SYMBOL
						      : ACTION_OTHER;
	}
	return ACTION_OTHER;
}

/* ---- words ---- */

/* The virtual address of the wrapper's pointer. */
static uint64_t pointer_word(const struct kp_elf_wrapper *w)
{
	return w->vaddr + 8;
}

/* Number of the first wrapper whose pointer is at VADDR or after it. */
static size_t first_from(const struct kp_elf *elf, uint64_t vaddr)
{
	size_t low = 0, high = elf->n_wrappers;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (pointer_word(&elf->wrappers[middle]) < vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The wrapper whose pointer is at VADDR, or NULL. */
static struct kp_elf_wrapper *wrapper_of(const struct kp_elf *elf, uint64_t vaddr)
{
	struct kp_elf_wrapper *first = elf->wrappers, *last = first + elf->n_wrappers - 1,
			      *w;

	/* most relocations are for other sections */
	if (vaddr < pointer_word(first) || vaddr > pointer_word(last))
		return NULL;
	w = first + first_from(elf, vaddr);
	return pointer_word(w) == vaddr ? w : NULL;
}

static kpack_error_t check_unrelocated(const struct kp_elf_wrapper *w,
				       struct kpackx_error *why)
{
	if (w->source == KP_POINTER_IN_PLACE)
		return KPACK_SUCCESS;
	return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
		       "elf: two relocations of the word at 0x%" PRIx64, pointer_word(w));
}

/* ---- REL and RELA ---- */

/* Read the value of a symbol; KNOWN is false if this file does not define it. */
static kpack_error_t read_symbol(struct kp_elf_reader *r, uint32_t table, uint32_t index,
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
	/*
	 * in an object the value is an offset in its section, which must be .hip_fatbin
	 */
	*known = r->relocatable ? r->out->has_fatbin && shndx == r->fatbin.index
				: shndx != SHN_UNDEF;
	if (*known)
		*value = kp_le64(sym + offsetof(Elf64_Sym, st_value)) +
			 (r->relocatable ? r->out->fatbin_vaddr : 0);
	return KPACK_SUCCESS;
}

/* Relocate W as INFO says; an unresolved pointer has target 0. */
static kpack_error_t relocate_wrapper(struct kp_elf_reader *r, struct kp_elf_wrapper *w,
				      uint32_t symbols, uint64_t info, uint64_t addend,
				      struct kpackx_error *why)
{
	enum action action = find_action(r->out->machine, (uint32_t)ELF64_R_TYPE(info));
	bool known = action == ACTION_RELATIVE;

	w->source = KP_POINTER_UNRESOLVED;
	w->target = 0;
	if (action == ACTION_SYMBOL)
		KP_TRY(read_symbol(r, symbols, (uint32_t)ELF64_R_SYM(info), &w->symbol,
				   &known, why));
	if (!known)
		return KPACK_SUCCESS;
	w->source = action == ACTION_SYMBOL ? KP_POINTER_SYMBOL : KP_POINTER_RELATIVE;
	w->target = w->symbol + addend;
	return KPACK_SUCCESS;
}

/*
 * Apply the record P, at file offset AT: an Elf64_Rel, or an Elf64_Rela with an addend.
 */
static kpack_error_t take_reloc(struct kp_elf_reader *r, const GElf_Shdr *sh,
				const uint8_t *p, uint64_t at, struct kpackx_error *why)
{
	uint64_t info = kp_le64(p + offsetof(Elf64_Rela, r_info));
	uint64_t vaddr = kp_le64(p + offsetof(Elf64_Rela, r_offset)), addend;
	struct kp_elf_wrapper *w;

	if (r->relocatable)
		vaddr += r->segment.header.sh_addr;
	w = wrapper_of(r->out, vaddr);
	/* type 0 is "no relocation" on every machine */
	if (!w || ELF64_R_TYPE(info) == 0)
		return KPACK_SUCCESS;
	KP_TRY(check_unrelocated(w, why));
	w->reloc_offset = at;
	w->reloc_size = (unsigned)sh->sh_entsize;
	addend = sh->sh_type == SHT_REL ? w->fields.pointer
					: kp_le64(p + offsetof(Elf64_Rela, r_addend));
	return relocate_wrapper(r, w, sh->sh_link, info, addend, why);
}

static kpack_error_t take_relocs(struct kp_elf_reader *r, const GElf_Shdr *sh,
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

/* ---- RELR ---- */

/*
 * If bit I of BITS is set, the loader adds the load address to the word at VADDR + 8 * I.
 */
static kpack_error_t take_relr_bits(struct kp_elf_reader *r, uint64_t vaddr,
				    uint64_t bits, struct kpackx_error *why)
{
	const struct kp_elf *out = r->out;

	for (size_t i = first_from(out, vaddr); i < out->n_wrappers; i++) {
		struct kp_elf_wrapper *w = &out->wrappers[i];
		uint64_t distance = pointer_word(w) - vaddr;

		if (distance >= UINT64_C(64) * 8)
			break;
		if (distance % 8 || !(bits >> (distance / 8) & 1))
			continue;
		KP_TRY(check_unrelocated(w, why));
		w->source = KP_POINTER_RELR;
	}
	return KPACK_SUCCESS;
}

/*
 * An even entry is the address of a word; an odd entry is a bit map of the next 63 words.
 */
static kpack_error_t take_relr(struct kp_elf_reader *r, const GElf_Shdr *sh,
			       struct kpackx_error *why)
{
	struct kp_window window;
	uint64_t next = 0;
	const uint8_t *p;

	kp_window_init(&window, &r->src);
	for (uint64_t off = 0; sh->sh_size - off >= 8; off += 8) {
		KP_TRY(kp_window_get(&window, sh->sh_offset + off, 8, &p, why));
		uint64_t entry = kp_le64(p);

		if (entry & 1) {
			KP_TRY(take_relr_bits(r, next, entry >> 1, why));
			next += UINT64_C(63) * 8;
		} else {
			KP_TRY(take_relr_bits(r, entry, 1, why));
			next = entry + 8;
		}
	}
	return KPACK_SUCCESS;
}

/* ---- sections ---- */

static bool is_reloc_section(const struct kp_elf_reader *r, const GElf_Shdr *sh)
{
	if (sh->sh_type != SHT_REL && sh->sh_type != SHT_RELA && sh->sh_type != SHT_RELR)
		return false;
	/* ignore relocations that a linked file keeps but does not load (ld -q) */
	return r->relocatable ? sh->sh_info == r->segment.index
			      : (sh->sh_flags & SHF_ALLOC) != 0;
}

static kpack_error_t take_relocations(struct kp_elf_reader *r, size_t index,
				      const GElf_Shdr *sh, struct kpackx_error *why)
{
	(void)index;
	if (!is_reloc_section(r, sh))
		return KPACK_SUCCESS;
	KP_TRY(check_section(r, "relocations", sh, why));
	KP_TRY(account_section(r, "relocations", sh, &r->relocs_bytes, why));
	return sh->sh_type == SHT_RELR ? take_relr(r, sh, why) : take_relocs(r, sh, why);
}

/* Resolve the pointer of every wrapper that has a relocation. */
static kpack_error_t relocate_wrappers(struct kp_elf_reader *r, struct kpackx_error *why)
{
	if (r->out->n_wrappers == 0)
		return KPACK_SUCCESS;
	return each_section(r, take_relocations, why);
}

/* ==== the whole ==== */

/* ---- reading ---- */

static kpack_error_t read_all(struct kp_elf_reader *r, struct kpackx_error *why)
{
	GElf_Ehdr header;

	KP_TRY(kp_elf_open(r->src.fd, r->src.size, &r->elf, &r->names, why));
	if (!gelf_getehdr(r->elf, &header))
		return kp_elf_fail(why, "header");
	r->out->type = header.e_type;
	r->out->machine = header.e_machine;
	r->relocatable = header.e_type == ET_REL;
	/* without section names no section can be found */
	if (r->names == SHN_UNDEF)
		return KPACK_SUCCESS;
	KP_TRY(each_section(r, take_section, why));
	describe_fatbin(r);
	KP_TRY(find_wrappers(r, why));
	KP_TRY(relocate_wrappers(r, why));
	if (r->out->wrappers_scanned)
		drop_strays(r);
	return KPACK_SUCCESS;
}

kpack_error_t kp_elf_read(int fd, uint64_t size, struct kp_elf *out,
			  struct kpackx_error *why)
{
	struct kp_elf_reader r = {.src = kp_source_fd(fd, 0, size), .out = out};
	kpack_error_t err;

	*out = (struct kp_elf){0};
	err = read_all(&r, why);
	if (r.elf)
		elf_end(r.elf);
	if (err != KPACK_SUCCESS)
		kp_elf_fini(out);
	return err;
}

void kp_elf_fini(struct kp_elf *elf)
{
	free(elf->wrappers);
	*elf = (struct kp_elf){0};
}
