/* SPDX-License-Identifier: MIT */
/*
 * Removing a section's bytes, or our additions, from the file, and putting bytes back.  Nothing but the
 * wrappers may lead into a section whose bytes go.
 */
#include <inttypes.h>
#include "core/base/bounds.h"
#include "elf_relr.h"
#include "edit.h"
#include "elf_file.h"

/* ==== pointers that would dangle ==== */

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

/* ==== bytes ==== */

static kpack_error_t refuse_edit(struct kpackx_error *why, const char *text)
{
	return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED, "elf: %s", text);
}

/* ---- cutting ---- */

/* Check that nothing except SECTION uses its bytes of the file. */
static kpack_error_t check_alone(const struct kp_edit *ed, size_t section,
				 struct kpackx_error *why)
{
	uint64_t from = ed->sections[section].h.sh_offset;
	uint64_t end = from + ed->sections[section].h.sh_size;

	for (size_t i = 1; i < ed->n_sections; i++) {
		const Elf64_Shdr *h = &ed->sections[i].h;

		if (i != section && h->sh_type != SHT_NOBITS && h->sh_size &&
		    h->sh_offset < end && h->sh_offset + h->sh_size > from)
			return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
				       "elf: section %zu has bytes in common with %s", i,
				       ed->sections[section].name);
	}
	for (size_t i = 0; i < ed->n_segments; i++) {
		const Elf64_Phdr *h = &ed->segments[i].h;

		if (h->p_type != PT_LOAD && h->p_type != PT_GNU_RELRO && h->p_filesz &&
		    h->p_offset < end &&
		    kp_range_ok(UINT64_MAX, h->p_offset, h->p_filesz) &&
		    h->p_offset + h->p_filesz > from)
			return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
				       "elf: program header %zu has bytes in common "
				       "with %s",
				       i, ed->sections[section].name);
	}
	if ((ed->h.e_phoff < end &&
	     ed->h.e_phoff + ed->n_segments * sizeof(Elf64_Phdr) > from) ||
	    from < sizeof(Elf64_Ehdr))
		return refuse_edit(why, "headers lie inside the section");
	return KPACK_SUCCESS;
}

/* Return the chunk that holds all bytes of S, or -1. */
static ptrdiff_t chunk_of(const struct kp_edit *ed, const Elf64_Shdr *s)
{
	for (size_t i = 0; i < ed->n_chunks; i++) {
		const struct kp_edit_chunk *c = &ed->chunks[i];

		if (s->sh_offset >= c->from &&
		    kp_range_ok(c->size, s->sh_offset - c->from, s->sh_size) &&
		    s->sh_addr - c->vaddr == s->sh_offset - c->from)
			return (ptrdiff_t)i;
	}
	return -1;
}

/* True if the segment maps code. */
static bool has_code(const struct kp_edit *ed, const Elf64_Phdr *h)
{
	for (size_t i = 1; i < ed->n_sections; i++) {
		const Elf64_Shdr *s = &ed->sections[i].h;

		if ((s->sh_flags & SHF_EXECINSTR) && s->sh_addr >= h->p_vaddr &&
		    s->sh_addr - h->p_vaddr < h->p_memsz)
			return true;
	}
	return false;
}

/* Return the part [SKIP, SKIP + SIZE) of segment OF as a segment. */
static struct kp_edit_segment segment_part(const struct kp_edit *ed, size_t of,
					   uint64_t skip, uint64_t size)
{
	struct kp_edit_segment s = ed->segments[of];

	s.from += skip;
	s.h.p_offset += skip;
	s.h.p_vaddr += skip;
	s.h.p_paddr += skip;
	s.h.p_filesz = s.h.p_filesz > skip ? s.h.p_filesz - skip : 0;
	s.h.p_filesz = s.h.p_filesz < size ? s.h.p_filesz : size;
	s.h.p_memsz = size;
	if ((s.h.p_flags & PF_X) && !has_code(ed, &s.h))
		s.h.p_flags &= ~(Elf64_Word)PF_X;
	return s;
}

/*
 * Replace segment AT by its part before SKIP, if any, and a hole of SIZE bytes of
 * memory.  Returns the hole.
 */
static size_t insert_hole(struct kp_edit *ed, size_t at, uint64_t skip, uint64_t size)
{
	struct kp_edit_segment before = segment_part(ed, at, 0, skip);
	struct kp_edit_segment hole = segment_part(ed, at, skip, size);

	hole.h.p_filesz = 0;
	ed->segments[at] = hole;
	if (skip)
		kp_edit_insert_segment(ed, at, before);
	return skip ? at + 1 : at;
}

/*
 * Split segment AT into the part before [SKIP, SKIP + SIZE), that range as memory without
 * bytes, and the part after it.  The kernel gives whole pages to a segment without bytes,
 * so a range that does not begin with a page stays the end of the part before it.
 * Returns the last part.
 */
static size_t split_segment(struct kp_edit *ed, size_t at, uint64_t skip, uint64_t size)
{
	uint64_t all = ed->segments[at].h.p_memsz;
	struct kp_edit_segment after =
		segment_part(ed, at, skip + size, all - skip - size);
	uint64_t hole = after.h.p_filesz ? size : all - skip;

	if ((ed->segments[at].h.p_vaddr + skip) % ed->page == 0) {
		at = insert_hole(ed, at, skip, hole);
	} else {
		ed->segments[at] = segment_part(ed, at, 0, skip + hole);
		ed->segments[at].h.p_filesz = skip;
	}
	if (after.h.p_filesz)
		kp_edit_insert_segment(ed, ++at, after);
	return at;
}

/*
 * True if the bytes before and after [SKIP, SKIP + SIZE) of a chunk share a page.  A page
 * comes from one place of the file, so the gap stays in the file then, as zeros.
 */
static bool shares_page(const struct kp_edit *ed, const struct kp_edit_chunk *c,
			uint64_t skip, uint64_t size)
{
	uint64_t page = kp_edit_page(ed, c->segment);

	return skip && skip + size < c->size &&
	       (c->vaddr + skip - 1) / page == (c->vaddr + skip + size) / page;
}

/* Remove SIZE bytes from FROM on from the chunk; MOVES: from its segment, too. */
static void cut_chunk(struct kp_edit *ed, size_t chunk, uint64_t from, uint64_t size,
		      bool moves)
{
	struct kp_edit_chunk left = ed->chunks[chunk], right = left;
	uint64_t skip = from - left.from;

	if (moves)
		right.segment = split_segment(ed, left.segment, skip, size);
	kp_edit_remove_chunk(ed, chunk);
	if (moves)
		kp_edit_mark_moves(ed, chunk);
	left.size = skip;
	left.page_after = moves;
	right.from += skip + size;
	right.vaddr += skip + size;
	right.size -= skip + size;
	right.page_before = right.moves = moves;
	/* empty ones tell where a segment begins and ends whose bytes stay */
	if (right.size || !moves)
		kp_edit_insert_chunk(ed, chunk, right);
	if (left.size || !moves)
		kp_edit_insert_chunk(ed, chunk, left);
}

kpack_error_t kp_edit_cut(struct kp_edit *ed, size_t section, struct kpackx_error *why)
{
	Elf64_Shdr *h = &ed->sections[section].h;
	ptrdiff_t chunk = chunk_of(ed, h);

	if (!(h->sh_flags & SHF_ALLOC) || chunk < 0)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "elf: %s is not mapped by one segment",
			       ed->sections[section].name);
	KP_TRY(check_alone(ed, section, why));
	ed->whole |= shares_page(ed, &ed->chunks[chunk],
				 h->sh_offset - ed->chunks[chunk].from, h->sh_size);
	cut_chunk(ed, (size_t)chunk, h->sh_offset, h->sh_size, !ed->whole);
	h->sh_type = SHT_NOBITS;
	return KPACK_SUCCESS;
}

/* ---- the place of a section that was cut ---- */

uint64_t kp_edit_gap_end(const struct kp_edit *ed, size_t segment, uint64_t vaddr)
{
	const Elf64_Phdr *h = &ed->segments[segment].h;
	uint64_t end = h->p_vaddr + h->p_filesz;

	for (size_t i = 0; i < ed->n_chunks; i++) {
		const struct kp_edit_chunk *c = &ed->chunks[i];

		if (c->segment != segment || c->vaddr + c->size <= vaddr)
			continue;
		if (c->vaddr < end)
			end = c->vaddr;
	}
	return end > vaddr ? end : vaddr;
}

/*
 * Empty the place of SECTION, which was cut and stays in the file, up to the next section;
 * false: it did not stay, or the section ADDED is not in it.
 */
static bool vacate(struct kp_edit *ed, size_t section, size_t added)
{
	const Elf64_Shdr *h = &ed->sections[section].h, *a = &ed->sections[added].h;
	struct kp_edit_chunk *c = ed->chunks, *all = c + ed->n_chunks;
	uint64_t end;

	while (c < all && (h->sh_addr < c->vaddr || h->sh_addr - c->vaddr >= c->size))
		c++;
	if (!section || h->sh_type != SHT_NOBITS || c == all)
		return false;
	end = c->vaddr + c->size;
	for (size_t i = 1; i < ed->n_sections; i++) {
		const Elf64_Shdr *s = &ed->sections[i].h;

		if (i != section && i != added && (s->sh_flags & SHF_ALLOC) &&
		    s->sh_size && s->sh_addr >= h->sh_addr && s->sh_addr < end)
			end = s->sh_addr;
	}
	ed->whole = true;
	cut_chunk(ed, (size_t)(c - ed->chunks), c->from + (h->sh_addr - c->vaddr),
		  end - h->sh_addr, false);
	return a->sh_addr >= h->sh_addr &&
	       kp_range_ok(end - h->sh_addr, a->sh_addr - h->sh_addr, a->sh_size);
}

/* ---- removing additions ---- */

static bool has_sections(const struct kp_edit *ed, const Elf64_Phdr *h, size_t but)
{
	for (size_t i = 1; i < ed->n_sections; i++) {
		const Elf64_Shdr *s = &ed->sections[i].h;

		if (i != but && strcmp(ed->sections[i].name, KP_TABLE_SECTION) != 0 &&
		    (s->sh_flags & SHF_ALLOC) && s->sh_size &&
		    s->sh_addr < h->p_vaddr + h->p_memsz &&
		    s->sh_addr + s->sh_size > h->p_vaddr &&
		    !(s->sh_type == SHT_NOBITS && (s->sh_flags & SHF_TLS)))
			return true;
	}
	return false;
}

static void drop_load(struct kp_edit *ed, size_t at)
{
	for (size_t i = 0; i < ed->n_chunks; i++)
		if (ed->chunks[i].segment == at)
			kp_edit_remove_chunk(ed, i--);
	kp_edit_remove_segment(ed, at);
}

/* Drop the section of the program headers, and its segment if it has one. */
static void drop_table_section(struct kp_edit *ed, size_t section)
{
	const Elf64_Shdr *s = &ed->sections[section].h;
	ptrdiff_t at = kp_edit_load_of(ed, s->sh_addr, s->sh_size);

	/* a segment at the start of the file is never ours, whatever sections say */
	if (at >= 0 && ed->segments[at].h.p_offset &&
	    !has_sections(ed, &ed->segments[at].h, section))
		drop_load(ed, (size_t)at);
	kp_edit_drop_section(ed, section);
}

void kp_edit_drop_table(struct kp_edit *ed)
{
	size_t section = kp_edit_find(ed, KP_TABLE_SECTION);

	if (section)
		drop_table_section(ed, section);
}

kpack_error_t kp_edit_drop_block(struct kp_edit *ed, size_t section,
				 struct kpackx_error *why)
{
	const Elf64_Shdr *s = &ed->sections[section].h;
	ptrdiff_t at = kp_edit_load_of(ed, s->sh_addr, s->sh_size);
	size_t fatbin = kp_edit_find(ed, KP_FATBIN_SECTION);
	bool own = at >= 0 && !has_sections(ed, &ed->segments[at].h, section);

	if (own)
		drop_load(ed, (size_t)at);
	if (!vacate(ed, fatbin, section) && !own)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "elf: %s has no segment of its own",
			       ed->sections[section].name);
	kp_edit_drop_table(ed);
	return KPACK_SUCCESS;
}

/* ---- filling ---- */

/* True if segments AT and AT + 1 can be joined to one. */
static bool can_join(const struct kp_edit *ed, size_t at)
{
	const Elf64_Phdr *a = &ed->segments[at].h, *b = &ed->segments[at + 1].h;

	return at + 1 < ed->n_segments && a->p_type == PT_LOAD && b->p_type == PT_LOAD &&
	       a->p_filesz && a->p_filesz == a->p_memsz && b->p_filesz &&
	       b->p_vaddr == a->p_vaddr + a->p_memsz &&
	       ((a->p_flags ^ b->p_flags) & ~(Elf64_Word)PF_X) == 0;
}

/*
 * Adjust offsets of sections without bytes: they count from their segment, which becomes
 * AT.
 */
static void join_empty_sections(struct kp_edit *ed, size_t at)
{
	const struct kp_edit_segment *a = &ed->segments[at], *b = a + 1;

	for (size_t i = 1; i < ed->n_sections; i++) {
		Elf64_Shdr *s = &ed->sections[i].h;

		if (s->sh_type == SHT_NOBITS && s->sh_addr >= b->h.p_vaddr &&
		    s->sh_addr - b->h.p_vaddr <= b->h.p_memsz)
			s->sh_offset += a->from + (b->h.p_vaddr - a->h.p_vaddr) - b->from;
	}
}

static void join_segments(struct kp_edit *ed, size_t at)
{
	Elf64_Phdr *a = &ed->segments[at].h, *b = &ed->segments[at + 1].h;

	join_empty_sections(ed, at);
	a->p_filesz = b->p_vaddr + b->p_filesz - a->p_vaddr;
	a->p_memsz = b->p_vaddr + b->p_memsz - a->p_vaddr;
	a->p_flags |= b->p_flags;
	for (size_t i = 0; i < ed->n_chunks; i++)
		if (ed->chunks[i].segment == at + 1)
			ed->chunks[i].segment = at;
	kp_edit_remove_segment(ed, at + 1);
}

/* Insert MADE after the bytes of segment AT; it may close the gap to the next segment. */
static void fill_hole(struct kp_edit *ed, size_t at, struct kp_edit_chunk made)
{
	Elf64_Phdr *h = &ed->segments[at].h;
	size_t chunk = 0;

	while (chunk < ed->n_chunks && ed->chunks[chunk].vaddr < made.vaddr)
		chunk++;
	made.segment = at;
	/*
	 * memory between the bytes and the section was zero, and is part of the file now
	 */
	h->p_filesz = made.vaddr + made.size - h->p_vaddr;
	/* the section was cut just now: MADE is on the page that the chunk before it ends */
	if (chunk && ed->chunks[chunk - 1].segment == at) {
		made.page_after = ed->chunks[chunk - 1].page_after;
		ed->chunks[chunk - 1].page_after = false;
	}
	kp_edit_insert_chunk(ed, chunk, made);
	kp_edit_mark_moves(ed, chunk);
	if (can_join(ed, at))
		join_segments(ed, at);
	if (at && can_join(ed, at - 1))
		join_segments(ed, at - 1);
}

kpack_error_t kp_edit_fill(struct kp_edit *ed, size_t section, kp_edit_fill_fn *fill,
			   void *arg, struct kpackx_error *why)
{
	Elf64_Shdr *h = &ed->sections[section].h;
	ptrdiff_t at = kp_edit_load_of(ed, h->sh_addr, h->sh_size);
	struct kp_edit_chunk made = {.from = UINT64_MAX,
				     .size = h->sh_size,
				     .vaddr = h->sh_addr,
				     .made = true};
	bool inside = at >= 0 && ed->segments[at].h.p_filesz >
					 h->sh_addr - ed->segments[at].h.p_vaddr;
	size_t chunk = 0;

	if (at < 0 || h->sh_type != SHT_NOBITS || h->sh_size == 0 ||
	    (inside &&
	     kp_edit_gap_end(ed, (size_t)at, h->sh_addr) - h->sh_addr < h->sh_size))
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "elf: %s cannot be filled where it is",
			       ed->sections[section].name);
	if (inside) {
		while (chunk < ed->n_chunks &&
		       ed->chunks[chunk].vaddr + ed->chunks[chunk].size <= made.vaddr)
			chunk++;
		made.segment = (size_t)at;
		kp_edit_insert_chunk(ed, chunk, made);
	} else {
		fill_hole(ed, (size_t)at, made);
	}
	h->sh_type = SHT_PROGBITS;
	ed->sections[section].from = UINT64_MAX;
	ed->fill = fill;
	ed->fill_arg = arg;
	return KPACK_SUCCESS;
}

uint64_t kp_edit_free_until(const struct kp_edit *ed, size_t segment)
{
	for (size_t i = segment + 1; i < ed->n_segments; i++)
		if (ed->segments[i].h.p_type == PT_LOAD && ed->segments[i].h.p_memsz)
			return ed->segments[i].h.p_vaddr;
	return KP_ADDRESS_MAX;
}
