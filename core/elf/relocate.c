/* SPDX-License-Identifier: MIT */
/*
 * The dynamic linker sets a wrapper's pointer, so that the file seldom has its final
 * value: lld stores zero where a RELA relocation will write, GNU ld stores the address
 * too, RELR needs the stored address, and libraries compiled with -fgpu-rdc use a symbol.
 *
 * A library can have millions of relocations, of which about a hundred are for wrappers.
 * So none is kept in memory: each is looked up among the wrappers, which are sorted by
 * address.
 */
#include <inttypes.h>
#include "host_internal.h"
#include "core/base/elf_relr.h"

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
	KP_TRY(kp_elf_check_section(r, "symbols", &sh, why));
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

static kpack_error_t take_section(struct kp_elf_reader *r, size_t index,
				  const GElf_Shdr *sh, struct kpackx_error *why)
{
	(void)index;
	if (!is_reloc_section(r, sh))
		return KPACK_SUCCESS;
	KP_TRY(kp_elf_check_section(r, "relocations", sh, why));
	KP_TRY(kp_elf_account(r, "relocations", sh, &r->relocs_bytes, why));
	return sh->sh_type == SHT_RELR ? take_relr(r, sh, why) : take_relocs(r, sh, why);
}

kpack_error_t kp_elf_relocate(struct kp_elf_reader *r, struct kpackx_error *why)
{
	if (r->out->n_wrappers == 0)
		return KPACK_SUCCESS;
	return kp_elf_each_section(r, take_section, why);
}
