/* SPDX-License-Identifier: MIT */
/*
 * Checks that only the wrappers point into .hip_fatbin: a program that reads its device
 * code itself must keep it.
 */
#include <inttypes.h>
#include "dangling.h"
#include "core/base/elf_relr.h"

struct search {
	const struct kp_edit *ed;
	const struct kp_elf *elf;
	const Elf64_Shdr *fatbin;
	uint32_t relative; /* relocation type */
	/*
	 * symbols of table symbols_of that lie in the section have indexes in this range
	 */
	uint32_t symbols_of, first_symbol, end_symbol;
	uint64_t symbol_bytes; /* read so far */
	uint64_t last_word;    /* address of the last RELR word */
	struct kp_window words;
};

static bool is_inside(const struct search *s, uint64_t vaddr)
{
	return vaddr >= s->fatbin->sh_addr &&
	       vaddr - s->fatbin->sh_addr < s->fatbin->sh_size;
}

static bool is_wrapper_pointer(const struct kp_elf *elf, uint64_t vaddr)
{
	size_t low = 0, high = elf->n_wrappers;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		uint64_t at = elf->wrappers[middle].vaddr + 8;

		if (at == vaddr)
			return true;
		if (at < vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

static kpack_error_t refuse_word(uint64_t vaddr, const char *what,
				 struct kpackx_error *why)
{
	return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
		       "elf: the word at 0x%" PRIx64
		       ", which is not part of a wrapper, %s " KP_FATBIN_SECTION,
		       vaddr, what);
}

/* Check the word at VADDR, which is relocated to point to TARGET. */
static kpack_error_t check_target(const struct search *s, uint64_t vaddr, uint64_t target,
				  struct kpackx_error *why)
{
	if (is_inside(s, vaddr))
		return refuse_word(vaddr, "is relocated inside", why);
	if (is_inside(s, target) && !is_wrapper_pointer(s->elf, vaddr))
		return refuse_word(vaddr, "leads into", why);
	return KPACK_SUCCESS;
}

/* Read the word at VADDR; words without bytes in the file are zero. */
static kpack_error_t stored_word(struct search *s, uint64_t vaddr, uint64_t *word,
				 struct kpackx_error *why)
{
	const uint8_t *p;

	*word = 0;
	for (size_t i = 0; i < s->ed->n_chunks; i++) {
		const struct kp_edit_chunk *c = &s->ed->chunks[i];

		if (vaddr < c->vaddr || !kp_range_ok(c->size, vaddr - c->vaddr, 8))
			continue;
		KP_TRY(kp_window_get(&s->words, c->from + (vaddr - c->vaddr), 8, &p,
				     why));
		*word = kp_le64(p);
	}
	return KPACK_SUCCESS;
}

/* ---- REL and RELA ---- */

static kpack_error_t symbol_value(const struct search *s, const Elf64_Shdr *symbols,
				  uint32_t index, uint64_t *value,
				  struct kpackx_error *why)
{
	uint8_t bytes[8];

	KP_TRY(kp_file_pread(s->ed->fd,
			     symbols->sh_offset + index * sizeof(Elf64_Sym) +
				     offsetof(Elf64_Sym, st_value),
			     bytes, sizeof(bytes), why));
	*value = kp_le64(bytes);
	return KPACK_SUCCESS;
}

/* Find the range of indexes of the symbols inside the section. */
static kpack_error_t read_symbols(struct search *s, const Elf64_Shdr *symbols,
				  struct kpackx_error *why)
{
	struct kp_source src =
		kp_source_fd(s->ed->fd, symbols->sh_offset, symbols->sh_size);
	struct kp_window window;
	const uint8_t *p;

	s->first_symbol = s->end_symbol = 0;
	/* bounds the time: many tables may state the same bytes */
	if (symbols->sh_size > s->ed->size - s->symbol_bytes)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "elf: more symbols than the file's %" PRIu64 " bytes hold",
			       s->ed->size);
	s->symbol_bytes += symbols->sh_size;
	kp_window_init(&window, &src);
	for (uint64_t off = 0; symbols->sh_size - off >= sizeof(Elf64_Sym);
	     off += sizeof(Elf64_Sym)) {
		uint32_t index = (uint32_t)(off / sizeof(Elf64_Sym));

		KP_TRY(kp_window_get(&window, off, sizeof(Elf64_Sym), &p, why));
		if (!is_inside(s, kp_le64(p + offsetof(Elf64_Sym, st_value))))
			continue;
		if (s->end_symbol == 0)
			s->first_symbol = index;
		s->end_symbol = index + 1;
	}
	return KPACK_SUCCESS;
}

static kpack_error_t look_at_reloc(struct search *s, const Elf64_Shdr *h,
				   const Elf64_Shdr *symbols, const uint8_t *p,
				   struct kpackx_error *why)
{
	uint64_t vaddr = kp_le64(p + offsetof(Elf64_Rela, r_offset));
	uint64_t info = kp_le64(p + offsetof(Elf64_Rela, r_info));
	uint32_t index = (uint32_t)ELF64_R_SYM(info);
	uint64_t addend = 0, symbol = 0;

	if (h->sh_type == SHT_RELA)
		addend = kp_le64(p + offsetof(Elf64_Rela, r_addend));
	else
		KP_TRY(stored_word(s, vaddr, &addend, why));
	if (ELF64_R_TYPE(info) == s->relative)
		return check_target(s, vaddr, addend, why);
	if (index >= s->first_symbol && index < s->end_symbol)
		KP_TRY(symbol_value(s, symbols, index, &symbol, why));
	return check_target(s, vaddr, symbol ? symbol + addend : 0, why);
}

static kpack_error_t look_at_relocs(struct search *s, const Elf64_Shdr *h,
				    struct kpackx_error *why)
{
	size_t row = h->sh_type == SHT_REL ? sizeof(Elf64_Rel) : sizeof(Elf64_Rela);
	struct kp_source src = kp_source_fd(s->ed->fd, h->sh_offset, h->sh_size);
	const Elf64_Shdr *symbols = NULL;
	struct kp_window window;
	const uint8_t *p;

	if (h->sh_link && h->sh_link < s->ed->n_sections)
		symbols = &s->ed->sections[h->sh_link].h;
	if (h->sh_link != s->symbols_of)
		s->first_symbol = s->end_symbol = 0;
	if (symbols && symbols->sh_type == SHT_DYNSYM && h->sh_link != s->symbols_of)
		KP_TRY(read_symbols(s, symbols, why));
	s->symbols_of = h->sh_link;
	kp_window_init(&window, &src);
	for (uint64_t off = 0; h->sh_size - off >= row; off += row) {
		KP_TRY(kp_window_get(&window, off, row, &p, why));
		KP_TRY(look_at_reloc(s, h, symbols, p, why));
	}
	return KPACK_SUCCESS;
}

/* ---- RELR ---- */

static kpack_error_t look_at_word(struct search *s, uint64_t vaddr,
				  struct kpackx_error *why)
{
	uint64_t target;

	/* ascending, as linkers write them; this bounds the time for hostile tables */
	if (vaddr <= s->last_word && s->last_word)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "elf: .relr.dyn is not in order at 0x%" PRIx64, vaddr);
	s->last_word = vaddr;
	KP_TRY(stored_word(s, vaddr, &target, why));
	return check_target(s, vaddr, target, why);
}

static kpack_error_t look_at_relr(struct search *s, const Elf64_Shdr *h,
				  struct kpackx_error *why)
{
	struct kp_source src = kp_source_fd(s->ed->fd, h->sh_offset, h->sh_size);
	struct kp_window window;
	uint64_t next = 0;
	const uint8_t *p;

	s->last_word = 0;
	kp_window_init(&window, &src);
	for (uint64_t off = 0; h->sh_size - off >= 8; off += 8) {
		KP_TRY(kp_window_get(&window, off, 8, &p, why));
		uint64_t entry = kp_le64(p);

		if (!(entry & 1)) {
			KP_TRY(look_at_word(s, entry, why));
			next = entry + 8;
			continue;
		}
		for (uint64_t bits = entry >> 1, at = next; bits; bits >>= 1, at += 8)
			if (bits & 1)
				KP_TRY(look_at_word(s, at, why));
		next += UINT64_C(63) * 8;
	}
	return KPACK_SUCCESS;
}

/* ---- the call ---- */

static kpack_error_t look_at_section(struct search *s, const Elf64_Shdr *h,
				     struct kpackx_error *why)
{
	if (!(h->sh_flags & SHF_ALLOC))
		return KPACK_SUCCESS;
	if (h->sh_type == SHT_REL || h->sh_type == SHT_RELA)
		return look_at_relocs(s, h, why);
	return h->sh_type == SHT_RELR ? look_at_relr(s, h, why) : KPACK_SUCCESS;
}

kpack_error_t kp_dangling_check(const struct kp_edit *ed, size_t fatbin,
				const struct kp_elf *elf, struct kpackx_error *why)
{
	struct kp_source all = kp_source_fd(ed->fd, 0, ed->size);
	struct search s = {.ed = ed,
			   .elf = elf,
			   .fatbin = &ed->sections[fatbin].h,
			   .relative = ed->relative};

	kp_window_init(&s.words, &all);
	for (size_t i = 1; i < ed->n_sections; i++)
		KP_TRY(look_at_section(&s, &ed->sections[i].h, why));
	return KPACK_SUCCESS;
}
