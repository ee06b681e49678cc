/* SPDX-License-Identifier: MIT */
/*
 * Removing a section's bytes, or our additions, from the file, and putting bytes back.  Nothing but the
 * wrappers may lead into a section whose bytes go.
 *
 * A section is cut out of its chunk, and its segment becomes up to three: the part before it, the
 * section's addresses as memory without bytes, and the part behind it.  Filling joins them again.
 *
 *	before   [ PT_LOAD: text | .hip_fatbin | data ]
 *	after    [ PT_LOAD: text ] [ PT_LOAD without bytes ] [ PT_LOAD: data ]
 *
 * A page of memory comes from one page of the file.  Where that does not allow the split, or where the
 * file would become longer by it, the section's place stays in the file (ed->whole): it is a gap
 * then, into which edit_place.c puts what is added.
 *
 * Nothing that the dynamic linker does may lead into the section: relocations are searched for words in
 * it, and for words that will point into it.  Their tables can state the same bytes many times; what
 * bounds the time is that symbols are read once for each table, of at most the file's size in all, and
 * that packed relocations must ascend.
 */
#include <inttypes.h>
#include "elf_relr.h"
#include "edit.h"

/* ---- pointers that would dangle ---- */

struct dangling_search {
	const struct kp_edit *ed;
	const struct kp_host *host;
	const Elf64_Shdr *fatbin;
	uint32_t relative; /* relocation type */
	/* of the section whose symbols the relocations are for; 0: none */
	uint32_t symbols_of;
	uint64_t symbols_at; /* its offset */
	/* symbols that lie in the section have indexes in this range */
	uint32_t first_symbol, end_symbol;
	uint64_t symbol_bytes; /* read so far */
	uint64_t last_word;    /* address of the last RELR word */
	struct kp_window words;
};

static bool is_inside(const struct dangling_search *s, uint64_t vaddr)
{
	return vaddr >= s->fatbin->sh_addr &&
	       vaddr - s->fatbin->sh_addr < s->fatbin->sh_size;
}

/* Find the range of indexes of the symbols of TABLE, a section's number, that are inside. */
static kpack_error_t read_symbols(struct dangling_search *s, uint32_t table,
				  struct kpackx_error *why)
{
	const struct kp_section *symbols =
		&s->ed->in.items[table < s->ed->in.count ? table : 0];
	const uint8_t *p;

	s->symbols_of = table;
	s->symbols_at = symbols->offset;
	s->first_symbol = s->end_symbol = 0;
	if (symbols->type != SHT_DYNSYM)
		return KPACK_SUCCESS;
	/* bounds the time: many tables may state the same bytes */
	if (symbols->size > s->ed->size - s->symbol_bytes)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "elf: more symbols than the file's %" PRIu64 " bytes hold",
			       s->ed->size);
	s->symbol_bytes += symbols->size;
	for (uint64_t i = 0; i < symbols->size / sizeof(Elf64_Sym); i++) {
		KP_TRY(kp_window_get(&s->words, s->symbols_at + i * sizeof(Elf64_Sym),
				     sizeof(Elf64_Sym), &p, why));
		if (!is_inside(s, kp_le64(p + offsetof(Elf64_Sym, st_value))))
			continue;
		s->first_symbol = s->end_symbol ? s->first_symbol : (uint32_t)i;
		s->end_symbol = (uint32_t)i + 1;
	}
	return KPACK_SUCCESS;
}

/* Check the word that RELOC changes: where it is, and where it will lead. */
static kpack_error_t check_word(void *arg, const struct kp_elf_reloc *reloc,
				struct kpackx_error *why)
{
	struct dangling_search *s = arg;
	const struct kp_edit *ed = s->ed;
	uint64_t target = reloc->addend, vaddr = reloc->vaddr;
	const uint8_t *p;
	uint8_t bytes[8];

	if (reloc->size == 0) {
		/* ascending, as linkers write them; this bounds the time for hostile tables */
		if (vaddr <= s->last_word && s->last_word)
			return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
				       "elf: .relr.dyn is not in order at 0x%" PRIx64,
				       vaddr);
		s->last_word = vaddr;
	}
	/* the addend is in the word, which is zero if the file has no bytes for it */
	for (size_t i = 0; i < ed->n_chunks && reloc->size != sizeof(Elf64_Rela); i++) {
		const struct kp_edit_chunk *c = &ed->chunks[i];

		if (vaddr < c->vaddr || !kp_range_ok(c->size, vaddr - c->vaddr, 8))
			continue;
		KP_TRY(kp_window_get(&s->words, c->from + (vaddr - c->vaddr), 8, &p,
				     why));
		target = kp_le64(p);
	}
	if (reloc->size && reloc->type != s->relative) {
		uint64_t symbol = 0;

		if (reloc->symbol >= s->first_symbol && reloc->symbol < s->end_symbol) {
			KP_TRY(kp_file_pread(ed->fd,
					     s->symbols_at +
						     reloc->symbol * sizeof(Elf64_Sym) +
						     offsetof(Elf64_Sym, st_value),
					     bytes, sizeof(bytes), why));
			symbol = kp_le64(bytes);
		}
		target = symbol ? symbol + target : 0;
	}
	if (!is_inside(s, vaddr) &&
	    (!is_inside(s, target) || kp_host_wrapper_at(s->host, vaddr)))
		return KPACK_SUCCESS;
	return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
		       "elf: the word at 0x%" PRIx64
		       ", which is not part of a wrapper, %s " KP_FATBIN_SECTION,
		       vaddr, is_inside(s, vaddr) ? "is relocated inside" : "leads into");
}

kpack_error_t kp_dangling_check(const struct kp_edit *ed, size_t fatbin,
				const struct kp_host *host, struct kpackx_error *why)
{
	struct kp_source all = kp_source_fd(ed->fd, 0, ed->size);
	struct dangling_search s = {.ed = ed,
				    .host = host,
				    .fatbin = &ed->sections[fatbin].h,
				    .relative =
					    kp_elf_machine_of(ed->h.e_machine)->relative};

	kp_window_init(&s.words, &all);
	for (size_t i = 1; i < ed->n_sections; i++) {
		const struct kp_section *table = &ed->in.items[i];

		if (!(table->flags & SHF_ALLOC) || !kp_elf_is_reloc(table))
			continue;
		s.last_word = 0;
		if (table->type != SHT_RELR && table->link != s.symbols_of)
			KP_TRY(read_symbols(&s, table->link, why));
		KP_TRY(kp_elf_each_reloc(&all, table, check_word, &s, why));
	}
	return KPACK_SUCCESS;
}

/* ---- cutting ---- */

/*
 * Return the part [SKIP, SKIP + SIZE) of segment OF as a segment, which can be executed only if it
 * has code.
 */
static struct kp_edit_segment segment_part(const struct kp_edit *ed, size_t of,
					   uint64_t skip, uint64_t size)
{
	struct kp_edit_segment s = ed->segments[of];
	bool code = false;

	s.from += skip;
	s.h.p_offset += skip;
	s.h.p_vaddr += skip;
	s.h.p_paddr += skip;
	s.h.p_filesz = s.h.p_filesz > skip ? s.h.p_filesz - skip : 0;
	s.h.p_filesz = s.h.p_filesz < size ? s.h.p_filesz : size;
	s.h.p_memsz = size;
	for (size_t i = 1; i < ed->n_sections; i++) {
		const Elf64_Shdr *h = &ed->sections[i].h;

		code |= (h->sh_flags & SHF_EXECINSTR) && h->sh_addr >= s.h.p_vaddr &&
			h->sh_addr - s.h.p_vaddr < size;
	}
	if (!code)
		s.h.p_flags &= ~(Elf64_Word)PF_X;
	return s;
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
	struct kp_edit_segment before = segment_part(ed, at, 0, skip);

	if ((before.h.p_vaddr + skip) % ed->page == 0) {
		ed->segments[at] = segment_part(ed, at, skip, hole);
		ed->segments[at].h.p_filesz = 0;
		if (skip)
			kp_edit_insert_segment(ed, at++, before);
	} else {
		ed->segments[at] = segment_part(ed, at, 0, skip + hole);
		ed->segments[at].h.p_filesz = skip;
	}
	if (after.h.p_filesz)
		kp_edit_insert_segment(ed, ++at, after);
	return at;
}

/*
 * Remove SIZE bytes from FROM on from the chunk; unless ed->whole, from its segment, too, and what
 * is behind them moves.
 */
static void cut_chunk(struct kp_edit *ed, size_t chunk, uint64_t from, uint64_t size)
{
	struct kp_edit_chunk left = ed->chunks[chunk], right = left;
	uint64_t skip = from - left.from;
	bool moves = !ed->whole;

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
	const char *name = ed->sections[section].name;
	const struct kp_edit_chunk *c = ed->chunks, *all = c + ed->n_chunks;
	uint64_t headers_end = ed->h.e_phoff + ed->n_segments * sizeof(Elf64_Phdr);
	Elf64_Shdr *s = &ed->sections[section].h;
	uint64_t from = s->sh_offset, end = from + s->sh_size, skip, page;

	while (c < all &&
	       (from < c->from || !kp_range_ok(c->size, from - c->from, s->sh_size) ||
		s->sh_addr - c->vaddr != from - c->from))
		c++;
	if (!(s->sh_flags & SHF_ALLOC) || c == all)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "elf: %s is not mapped by one segment", name);
	/* nothing else may use its bytes */
	for (size_t i = 1; i < ed->n_sections; i++) {
		const Elf64_Shdr *h = &ed->sections[i].h;

		if (i != section && h->sh_type != SHT_NOBITS && h->sh_size &&
		    h->sh_offset < end && h->sh_offset + h->sh_size > from)
			return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
				       "elf: section %zu has bytes in common with %s", i,
				       name);
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
				       i, name);
	}
	if ((ed->h.e_phoff < end && headers_end > from) || from < sizeof(Elf64_Ehdr))
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "elf: headers lie inside the section");
	/*
	 * A page comes from one place of the file.  So if the bytes before the section share
	 * one with those behind it, its place stays in the file, as zeros.
	 */
	skip = from - c->from;
	page = kp_edit_page(ed, c->segment);
	ed->whole |=
		skip && skip + s->sh_size < c->size &&
		(c->vaddr + skip - 1) / page == (c->vaddr + skip + s->sh_size) / page;
	cut_chunk(ed, (size_t)(c - ed->chunks), from, s->sh_size);
	s->sh_type = SHT_NOBITS;
	return KPACK_SUCCESS;
}

/* ---- removing additions ---- */

/*
 * Drop the segment that has section ADDED and nothing but additions.  false: there is none; one
 * at the start of the file is never ours, whatever sections say.
 */
static bool drop_own_load(struct kp_edit *ed, size_t added)
{
	const Elf64_Shdr *a = &ed->sections[added].h;
	ptrdiff_t at = kp_edit_load_of(ed, a->sh_addr, a->sh_size);
	const Elf64_Phdr *h = at < 0 ? NULL : &ed->segments[at].h;

	if (!h || !h->p_offset)
		return false;
	for (size_t i = 1; i < ed->n_sections; i++) {
		const Elf64_Shdr *s = &ed->sections[i].h;

		if (i != added && strcmp(ed->sections[i].name, KP_TABLE_SECTION) != 0 &&
		    (s->sh_flags & SHF_ALLOC) && s->sh_size &&
		    s->sh_addr < h->p_vaddr + h->p_memsz &&
		    s->sh_addr + s->sh_size > h->p_vaddr &&
		    !(s->sh_type == SHT_NOBITS && (s->sh_flags & SHF_TLS)))
			return false;
	}
	for (size_t i = 0; i < ed->n_chunks; i++)
		if (ed->chunks[i].segment == (size_t)at)
			kp_edit_remove_chunk(ed, i--);
	kp_edit_remove_segment(ed, (size_t)at);
	return true;
}

void kp_edit_drop_table(struct kp_edit *ed)
{
	size_t table = kp_edit_find(ed, KP_TABLE_SECTION);

	if (table)
		drop_own_load(ed, table);
	kp_edit_drop_section(ed, KP_TABLE_SECTION);
}

kpack_error_t kp_edit_drop_marker(struct kp_edit *ed, struct kpackx_error *why)
{
	size_t marker = kp_edit_find(ed, KP_MARKER_SECTION);
	bool dropped = drop_own_load(ed, marker);
	size_t fatbin = kp_edit_find(ed, KP_FATBIN_SECTION);
	const Elf64_Shdr *h = &ed->sections[fatbin].h, *m = &ed->sections[marker].h;
	struct kp_edit_chunk *c = ed->chunks, *all = c + ed->n_chunks;

	while (c < all && (h->sh_addr < c->vaddr || h->sh_addr - c->vaddr >= c->size))
		c++;
	/* if the place of .hip_fatbin stayed in the file, empty it, up to the next section */
	if (fatbin && h->sh_type == SHT_NOBITS && c < all) {
		uint64_t end = c->vaddr + c->size;

		for (size_t i = 1; i < ed->n_sections; i++) {
			const Elf64_Shdr *s = &ed->sections[i].h;

			if (i != fatbin && i != marker && (s->sh_flags & SHF_ALLOC) &&
			    s->sh_size && s->sh_addr >= h->sh_addr && s->sh_addr < end)
				end = s->sh_addr;
		}
		ed->whole = true;
		cut_chunk(ed, (size_t)(c - ed->chunks), c->from + (h->sh_addr - c->vaddr),
			  end - h->sh_addr);
		dropped |= m->sh_addr >= h->sh_addr &&
			   kp_range_ok(end - h->sh_addr, m->sh_addr - h->sh_addr,
				       m->sh_size);
	}
	if (!dropped)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "elf: %s has no segment of its own",
			       ed->sections[marker].name);
	kp_edit_drop_table(ed);
	kp_edit_drop_section(ed, KP_MARKER_SECTION);
	return KPACK_SUCCESS;
}

/* ---- filling ---- */

/* Join segments AT and AT + 1 if they are next to each other and have the same rights. */
static void join_segments(struct kp_edit *ed, size_t at)
{
	struct kp_edit_segment *a = &ed->segments[at], *b = a + 1;

	if (at + 1 >= ed->n_segments || a->h.p_type != PT_LOAD ||
	    b->h.p_type != PT_LOAD || !a->h.p_filesz || a->h.p_filesz != a->h.p_memsz ||
	    !b->h.p_filesz || b->h.p_vaddr != a->h.p_vaddr + a->h.p_memsz ||
	    ((a->h.p_flags ^ b->h.p_flags) & ~(Elf64_Word)PF_X))
		return;
	/* offsets of sections without bytes count from their segment */
	for (size_t i = 1; i < ed->n_sections; i++) {
		Elf64_Shdr *s = &ed->sections[i].h;

		if (s->sh_type == SHT_NOBITS && s->sh_addr >= b->h.p_vaddr &&
		    s->sh_addr - b->h.p_vaddr <= b->h.p_memsz)
			s->sh_offset += a->from + (b->h.p_vaddr - a->h.p_vaddr) - b->from;
	}
	a->h.p_filesz = b->h.p_vaddr + b->h.p_filesz - a->h.p_vaddr;
	a->h.p_memsz = b->h.p_vaddr + b->h.p_memsz - a->h.p_vaddr;
	a->h.p_flags |= b->h.p_flags;
	for (size_t i = 0; i < ed->n_chunks; i++)
		if (ed->chunks[i].segment == at + 1)
			ed->chunks[i].segment = at;
	kp_edit_remove_segment(ed, at + 1);
}

kpack_error_t kp_edit_fill(struct kp_edit *ed, size_t section, kp_convert_fill_fn *fill,
			   void *arg, struct kpackx_error *why)
{
	Elf64_Shdr *h = &ed->sections[section].h;
	ptrdiff_t load = kp_edit_load_of(ed, h->sh_addr, h->sh_size);
	size_t at = (size_t)load, i = 0;
	Elf64_Phdr *p = &ed->segments[load < 0 ? 0 : at].h;
	bool inside = p->p_filesz > h->sh_addr - p->p_vaddr;
	struct kp_edit_chunk made = {.from = UINT64_MAX,
				     .size = h->sh_size,
				     .vaddr = h->sh_addr,
				     .segment = at,
				     .made = true};

	if (load < 0 || h->sh_type != SHT_NOBITS || h->sh_size == 0 ||
	    (inside && kp_edit_gap_end(ed, at, h->sh_addr) - h->sh_addr < h->sh_size))
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "elf: %s cannot be filled where it is",
			       ed->sections[section].name);
	/* empty chunks, which are only inside, stay before it */
	while (i < ed->n_chunks &&
	       (inside ? ed->chunks[i].vaddr + ed->chunks[i].size <= made.vaddr
		       : ed->chunks[i].vaddr < made.vaddr))
		i++;
	/* the section was cut just now: it is on the page that the chunk before it ends */
	if (!inside && i && ed->chunks[i - 1].segment == at) {
		made.page_after = ed->chunks[i - 1].page_after;
		ed->chunks[i - 1].page_after = false;
	}
	kp_edit_insert_chunk(ed, i, made);
	if (!inside) {
		/* memory between the bytes and the section was zero, and is in the file now */
		p->p_filesz = made.vaddr + made.size - p->p_vaddr;
		kp_edit_mark_moves(ed, i);
		join_segments(ed, at);
		if (at)
			join_segments(ed, at - 1);
	}
	h->sh_type = SHT_PROGBITS;
	ed->sections[section].from = UINT64_MAX;
	ed->fill = fill;
	ed->fill_arg = arg;
	return KPACK_SUCCESS;
}
