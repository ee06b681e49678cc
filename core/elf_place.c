/* SPDX-License-Identifier: MIT */
/*
 * Where everything stands in the new file.
 *
 * The program headers need more room than they had.  In the order of preference they go
 *
 *   in place  behind the ELF header, when nothing stands there
 *   behind    libraries: in a segment of their own behind everything.  Nobody computes
 *             their address; ld.so searches the segments, and a PT_PHDR, which
 *             patchelf would get wrong, becomes a PT_NULL
 *   head      programs with fixed addresses: in place, on a page put in front of the
 *             first one
 *   sparse    position-independent programs begin at address 0, so there is nothing
 *             below, and Linux before 5.18 takes the file offset for the address
 *             (AT_PHDR): their segment moves that far behind, and a hole is in front of
 *             it.  Where that would be a large one, it goes into the addresses of the
 *             section that was cut instead, which becomes smaller
 *
 * The marker has a segment in front of that.  Both begin on a page of the file:
 * ld.so takes the first segment whose pages of the file have the program headers, and
 * would else find them in the last page of the data, which .bss has overwritten.
 * In front of the program headers as much space again, and a page of addresses, are free:
 * GNU strip moves them there.
 */
#include <inttypes.h>
#include <stdlib.h>
#include "elf.h"
#include "elf_edit.h"
#include "limits.h"

/* Bytes of both segments, generously: a marker and some hundred program headers. */
#define BLOCK_MAX (16 * KP_MARKER_MAX)

/* Bytes of a hole in the file that are not worth avoiding. */
#define SPARSE_SMALL (UINT64_C(1) << 20)

/* Larger alignments of unmapped sections mean nothing. */
#define ALIGN_MAX 4096

enum table_place { TABLE_IN_PLACE, TABLE_BEHIND, TABLE_HEAD, TABLE_SPARSE };

/* What is added: a PT_LOAD for the marker and one for the program headers. */
struct block {
	enum table_place table;
	size_t marker_segment, table_segment; /* SIZE_MAX: there is none */
	uint64_t marker_size, table_size;
	uint64_t bias; /* address of an offset in the file, as Linux before 5.18 has it */
};

static uint64_t round_up(uint64_t n, uint64_t to)
{
	return (n + to - 1) / to * to;
}

/* The first offset from CUR on that maps to VADDR. */
static uint64_t congruent(uint64_t cur, uint64_t vaddr, uint64_t align)
{
	return cur + ((vaddr - cur) & (align - 1));
}

static bool is_mapped(const Elf64_Shdr *s)
{
	return (s->sh_flags & SHF_ALLOC) != 0;
}

/* ---- sections in order ---- */

static void order_sections(struct kp_edit *ed)
{
	size_t n = ed->n_sections, first = 1;

	for (size_t i = 1; i < n; i++) {
		struct kp_edit_section s = ed->sections[i];

		if (!is_mapped(&s.h))
			continue;
		memmove(&ed->sections[first + 1], &ed->sections[first],
			(i - first) * sizeof(s));
		ed->sections[first] = s;
		if (ed->names >= first && ed->names < i)
			ed->names++;
		first++;
	}
}

/* Of the sections that are added, the one of the program headers, or that with content. */
static struct kp_edit_section *block_section(const struct kp_edit *ed, bool table)
{
	for (size_t i = 1; i < ed->n_sections; i++)
		if (ed->sections[i].in_block && !ed->sections[i].bytes.data == table)
			return &ed->sections[i];
	return NULL;
}

static bool is_elsewhere(const struct block *b)
{
	return b->table == TABLE_BEHIND || b->table == TABLE_SPARSE;
}

/* ---- the program headers ---- */

/* Bytes behind the ELF header that nothing else uses. */
static uint64_t room(const struct kp_edit *ed)
{
	uint64_t end = ed->chunks[0].from == ed->old_head
			       ? ed->old_head + ed->chunks[0].size
			       : ed->chunks[0].from;

	for (size_t i = 1; i < ed->n_sections; i++) {
		const struct kp_edit_section *s = &ed->sections[i];

		if (!s->is_new && s->h.sh_type != SHT_NOBITS && s->h.sh_size &&
		    s->from < end)
			end = s->from;
	}
	end -= ed->old_head < end ? ed->old_head : end;
	return end > sizeof(Elf64_Ehdr) ? end - sizeof(Elf64_Ehdr) : 0;
}

static bool fits(const struct kp_edit *ed, size_t segments)
{
	return segments * sizeof(Elf64_Phdr) <= room(ed);
}

static size_t find_segment(const struct kp_edit *ed, uint32_t type, bool last)
{
	size_t found = SIZE_MAX;

	for (size_t i = 0; i < ed->n_segments; i++)
		if (ed->segments[i].h.p_type == type && (found == SIZE_MAX || last))
			found = i;
	return found;
}

/* Is there a page below the first address of a program whose addresses are fixed? */
static bool has_head_room(const struct kp_edit *ed)
{
	const Elf64_Phdr *first = &ed->segments[find_segment(ed, PT_LOAD, false)].h;

	return ed->h.e_type == ET_EXEC && first->p_offset == ed->old_head &&
	       ed->n_segments * sizeof(Elf64_Phdr) < ed->page / 2 &&
	       first->p_vaddr % ed->page == 0 && first->p_vaddr >= 2 * ed->page &&
	       first->p_vaddr - ed->page >= 65536;
}

static uint64_t bias(const struct kp_edit *ed)
{
	const Elf64_Phdr *first = &ed->segments[find_segment(ed, PT_LOAD, false)].h;

	return first->p_vaddr - (first->p_offset - ed->old_head);
}

static void choose_table(struct kp_edit *ed, struct block *b)
{
	size_t own = find_segment(ed, PT_PHDR, false);

	b->table = TABLE_IN_PLACE;
	if (fits(ed, ed->n_segments + (b->marker_size > 0)))
		return;
	if (!kp_edit_is_program(ed) && ed->h.e_type == ET_DYN) {
		b->table = TABLE_BEHIND;
		if (own != SIZE_MAX)
			ed->segments[own].h.p_type = PT_NULL;
	} else if (has_head_room(ed)) {
		b->table = TABLE_HEAD;
	} else {
		b->table = TABLE_SPARSE;
	}
}

static size_t add_segment(struct kp_edit *ed)
{
	struct kp_edit_segment s = {
		.h = {.p_type = PT_LOAD, .p_flags = PF_R, .p_align = ed->page},
		.from = UINT64_MAX};
	size_t at = find_segment(ed, PT_LOAD, true) + 1;

	kp_edit_insert_segment(ed, at, s);
	return at;
}

static void add_segments(struct kp_edit *ed, struct block *b)
{
	b->marker_segment = b->marker_size ? add_segment(ed) : SIZE_MAX;
	b->table_segment = is_elsewhere(b) ? add_segment(ed) : SIZE_MAX;
	b->table_size = ed->n_segments * sizeof(Elf64_Phdr);
	ed->h.e_phnum = (uint16_t)ed->n_segments;
	ed->h.e_phoff = sizeof(Elf64_Ehdr);
}

/* ---- chunks ---- */

static uint64_t place_moved(const struct kp_edit *ed, const struct kp_edit_chunk *c,
			    uint64_t cur)
{
	Elf64_Phdr *h = &ed->segments[c->segment].h;

	if (h->p_align > ed->page && h->p_align > 65536)
		h->p_align = ed->page;
	if (c->page_before)
		cur = round_up(cur, kp_edit_page(ed, c->segment));
	return congruent(cur, c->vaddr, h->p_align);
}

static uint64_t shift_chunk(const struct kp_edit *ed, const struct kp_edit_chunk *c,
			    uint64_t shift)
{
	Elf64_Phdr *h = &ed->segments[c->segment].h;

	if (shift & (h->p_align - 1))
		h->p_align = ed->page;
	return c->from + shift;
}

static kpack_error_t place_chunks(struct kp_edit *ed, const struct block *b,
				  uint64_t *end, struct kpackx_error *why)
{
	uint64_t shift = (b->table == TABLE_HEAD ? ed->page : 0) - ed->old_head;
	uint64_t cur = 0;

	for (size_t i = 0; i < ed->n_chunks; i++) {
		struct kp_edit_chunk *c = &ed->chunks[i];

		if (i && c->segment == c[-1].segment)
			c->to = c[-1].to + (c->vaddr - c[-1].vaddr);
		else if (c->moves)
			c->to = place_moved(ed, c, cur);
		else
			c->to = shift_chunk(ed, c, shift);
		if (c->to < cur)
			return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
				       "elf: segment at 0x%" PRIx64
				       " finds no place in the file",
				       c->vaddr);
		cur = c->to + c->size;
		if (c->page_after && (c->vaddr + c->size) % kp_edit_page(ed, c->segment))
			cur = round_up(cur, kp_edit_page(ed, c->segment));
	}
	if (cur < sizeof(Elf64_Ehdr) + b->table_size && b->table == TABLE_IN_PLACE)
		cur = sizeof(Elf64_Ehdr) + b->table_size;
	*end = cur;
	return KPACK_SUCCESS;
}

/* ---- what is added ---- */

static uint64_t memory_end(const struct kp_edit *ed)
{
	uint64_t end = 0;

	for (size_t i = 0; i < ed->n_segments; i++) {
		const Elf64_Phdr *h = &ed->segments[i].h;

		if (h->p_type == PT_LOAD && h->p_vaddr + h->p_memsz > end)
			end = h->p_vaddr + h->p_memsz;
	}
	/* what is added must be nobody else's, mapped or not */
	for (size_t i = 1; i < ed->n_sections; i++) {
		const Elf64_Shdr *h = &ed->sections[i].h;

		if (is_mapped(h) && h->sh_addr + h->sh_size > end)
			end = h->sh_addr + h->sh_size;
	}
	return end;
}

/* The segment of the section that was cut, when that has one of its own; or SIZE_MAX. */
static size_t find_hole(const struct kp_edit *ed)
{
	const Elf64_Shdr *s = &ed->sections[kp_edit_find(ed, KP_FATBIN_SECTION)].h;

	for (size_t i = 0; i < ed->n_segments; i++) {
		const Elf64_Phdr *h = &ed->segments[i].h;

		if (h->p_type == PT_LOAD && h->p_filesz == 0 &&
		    s->sh_type == SHT_NOBITS && h->p_vaddr == s->sh_addr &&
		    h->p_memsz == s->sh_size)
			return i;
	}
	return SIZE_MAX;
}

/*
 * File offsets from the marker's on, and the distance of both segments in memory: a page of
 * addresses is free between them.
 */
struct block_form {
	uint64_t segment; /* of the program headers begins here */
	uint64_t table, end;
	uint64_t distance;
};

static struct block_form form_of(const struct kp_edit *ed, const struct block *b)
{
	struct block_form f = {.segment = b->marker_size};

	f.table = round_up(f.segment + b->table_size, 8);
	f.end = f.table + b->table_size;
	f.distance = round_up(b->marker_size, ed->page) + ed->page + f.segment % ed->page;
	return f;
}

/* The marker's address from FREE on that lets the program headers be behind CUR of the file. */
static uint64_t biased_address(const struct kp_edit *ed, const struct block *b,
			       const struct block_form *f, uint64_t free, uint64_t cur)
{
	/* in a small file it is negative */
	int64_t least = (int64_t)(round_up(cur, ed->page) + b->bias -
				  (f->distance - f->segment));

	return (int64_t)free > least ? free : round_up((uint64_t)least, ed->page);
}

static uint64_t biased_offset(const struct block *b, const struct block_form *f,
			      uint64_t address)
{
	return address + (f->distance - f->segment) - b->bias;
}

/* Take addresses of the hole, behind CUR of the file, if there are enough; 0: not. */
static uint64_t take_from_hole(struct kp_edit *ed, struct block *b,
			       const struct block_form *f, uint64_t cur)
{
	size_t at = find_hole(ed);
	Elf64_Phdr *hole;
	uint64_t address;

	if (at == SIZE_MAX)
		return 0;
	hole = &ed->segments[at].h;
	address = biased_address(ed, b, f, hole->p_vaddr + 2 * ed->page, cur);
	if (address + BLOCK_MAX > kp_edit_free_until(ed, at))
		return 0;
	hole->p_memsz = address - ed->page - hole->p_vaddr;
	ed->sections[kp_edit_find(ed, KP_FATBIN_SECTION)].h.sh_size = hole->p_memsz;
	kp_edit_move_segment(ed, b->table_segment, at + 1);
	b->table_segment = at + 1;
	if (b->marker_segment != SIZE_MAX) {
		/* it was in front of the other and is one behind where it was */
		kp_edit_move_segment(ed, b->marker_segment + 1, at + 1);
		b->marker_segment = at + 1;
		b->table_segment = at + 2;
	}
	return address;
}

/* The address of what is added, and *TO, its offset behind CUR. */
static kpack_error_t choose_address(struct kp_edit *ed, struct block *b,
				    const struct block_form *f, uint64_t cur,
				    uint64_t *address, uint64_t *to,
				    struct kpackx_error *why)
{
	uint64_t free = round_up(memory_end(ed), ed->page), inside = 0;

	*to = is_elsewhere(b) ? round_up(cur, ed->page) : round_up(cur, 16);
	*address = free + *to % ed->page;
	if (b->table == TABLE_SPARSE) {
		*address = biased_address(ed, b, f, free, cur);
		*to = biased_offset(b, f, *address);
		if (*to - cur > SPARSE_SMALL)
			inside = take_from_hole(ed, b, f, cur);
	}
	if (inside) {
		*address = inside;
		*to = biased_offset(b, f, inside);
	}
	/* with room for a marker to grow */
	if (!kp_range_ok(KP_ADDRESS_MAX, *address, BLOCK_MAX) || *to > KP_SPARSE_MAX)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "elf: what is added would have to be at 0x%" PRIx64
			       ", offset %" PRIu64,
			       *address, *to);
	return KPACK_SUCCESS;
}

static void set_segment(Elf64_Phdr *h, uint64_t offset, uint64_t address, uint64_t size)
{
	h->p_offset = offset;
	h->p_vaddr = h->p_paddr = address;
	h->p_filesz = h->p_memsz = size;
}

static void set_section(Elf64_Shdr *h, const Elf64_Phdr *in, uint64_t skip, uint64_t size)
{
	h->sh_offset = in->p_offset + skip;
	h->sh_addr = in->p_vaddr + skip;
	h->sh_size = size;
}

static kpack_error_t place_block(struct kp_edit *ed, struct block *b, uint64_t *cur,
				 struct kpackx_error *why)
{
	struct kp_edit_section *table = block_section(ed, true);
	struct kp_edit_section *content = block_section(ed, false);
	struct block_form f = form_of(ed, b);
	uint64_t address, to;
	Elf64_Phdr *h;

	if (!content && !is_elsewhere(b))
		return KPACK_SUCCESS;
	KP_TRY(choose_address(ed, b, &f, *cur, &address, &to, why));
	*cur = to + b->marker_size;
	if (content) {
		h = &ed->segments[b->marker_segment].h;
		set_segment(h, to, address, b->marker_size);
		set_section(&content->h, h, 0, b->marker_size);
	}
	if (is_elsewhere(b)) {
		h = &ed->segments[b->table_segment].h;
		set_segment(h, to + f.segment, address + f.distance, f.end - f.segment);
		set_section(&table->h, h, f.table - f.segment, b->table_size);
		table->h.sh_addralign = 8;
		ed->h.e_phoff = table->h.sh_offset;
		*cur = to + f.end;
	}
	return KPACK_SUCCESS;
}

/* ---- program headers of what is mapped ---- */

/* Is it the address space of a section that was cut? */
static bool is_hole(const struct kp_edit *ed, const Elf64_Phdr *h)
{
	const Elf64_Shdr *s = &ed->sections[kp_edit_find(ed, KP_FATBIN_SECTION)].h;

	return s->sh_type == SHT_NOBITS && s->sh_addr >= h->p_vaddr &&
	       kp_range_ok(h->p_memsz, s->sh_addr - h->p_vaddr, s->sh_size);
}

/*
 * A hole's offset is behind all bytes: where it was cut, tools would find other sections in
 * it.  But of one that begins inside a page ld.so maps that page, which must be there.
 */
static uint64_t hole_offset(const struct kp_edit *ed, size_t segment, uint64_t end)
{
	const Elf64_Phdr *h = &ed->segments[segment].h;

	if (h->p_vaddr % kp_edit_page(ed, segment))
		return h->p_vaddr & (h->p_align - 1);
	return congruent(end, h->p_vaddr, h->p_align);
}

/* Memory without bytes has an offset too, which must be congruent. */
static void place_empty_loads(struct kp_edit *ed, uint64_t end)
{
	uint64_t cur = 0;

	for (size_t i = 0; i < ed->n_segments; i++) {
		struct kp_edit_segment *s = &ed->segments[i];

		if (s->h.p_type != PT_LOAD)
			continue;
		if (s->h.p_filesz == 0 && is_hole(ed, &s->h))
			s->h.p_offset = hole_offset(ed, i, end);
		else if (s->h.p_filesz == 0)
			s->h.p_offset = congruent(cur, s->h.p_vaddr, s->h.p_align);
		else
			cur = s->h.p_offset + s->h.p_filesz;
	}
}

static void place_head_section(struct kp_edit *ed, const struct block *b,
			       const Elf64_Phdr *head)
{
	Elf64_Shdr *s = &block_section(ed, true)->h;

	s->sh_offset = sizeof(Elf64_Ehdr) + b->table_size;
	s->sh_addr = head->p_vaddr + s->sh_offset;
	s->sh_size = ed->page - s->sh_offset;
	s->sh_addralign = 8;
}

static void place_loads(struct kp_edit *ed, const struct block *b, uint64_t end)
{
	for (size_t i = ed->n_chunks; i-- > 0;)
		ed->segments[ed->chunks[i].segment].h.p_offset = ed->chunks[i].to;
	place_empty_loads(ed, end);
	if (b->table == TABLE_HEAD) {
		Elf64_Phdr *h = &ed->segments[ed->chunks[0].segment].h;

		h->p_offset -= ed->page;
		h->p_vaddr -= ed->page;
		h->p_paddr -= ed->page;
		h->p_filesz += ed->page;
		h->p_memsz += ed->page;
		place_head_section(ed, b, h);
	}
}

/* The chunk that has [OFFSET, OFFSET + SIZE) of the input, or NULL. */
static const struct kp_edit_chunk *chunk_with(const struct kp_edit *ed, uint64_t offset,
					      uint64_t size)
{
	for (size_t i = 0; i < ed->n_chunks; i++) {
		const struct kp_edit_chunk *c = &ed->chunks[i];

		if (!c->made && offset >= c->from &&
		    kp_range_ok(c->size, offset - c->from, size) &&
		    (offset < c->from + c->size || size == 0))
			return c;
	}
	return NULL;
}

/* Where a segment begins in the file, without the page put in front of it. */
static uint64_t old_start(const struct kp_edit *ed, size_t segment)
{
	const struct kp_edit_chunk *c = &ed->chunks[0];

	return c->segment == segment ? c->to : ed->segments[segment].h.p_offset;
}

/* What has no bytes keeps its distance from the file offset of its segment. */
static bool move_offset(const struct kp_edit *ed, uint64_t vaddr, uint64_t *offset)
{
	for (size_t i = ed->n_segments; i-- > 0;) {
		const struct kp_edit_segment *s = &ed->segments[i];

		/* from the last on: a boundary belongs to what begins there */
		if (s->h.p_type == PT_LOAD && vaddr >= s->h.p_vaddr &&
		    vaddr - s->h.p_vaddr <= s->h.p_memsz) {
			/* below its segment it means nothing */
			*offset -= *offset < s->from ? *offset : s->from;
			*offset += old_start(ed, i);
			return true;
		}
	}
	return false;
}

static void place_table_segment(const struct kp_edit *ed, const struct block *b,
				Elf64_Phdr *h)
{
	const Elf64_Phdr *load = b->table == TABLE_HEAD || b->table == TABLE_IN_PLACE
					 ? &ed->segments[ed->chunks[0].segment].h
					 : &ed->segments[b->table_segment].h;
	uint64_t vaddr = load->p_vaddr + (ed->h.e_phoff - load->p_offset);

	h->p_offset = ed->h.e_phoff;
	h->p_vaddr = h->p_paddr = vaddr;
	h->p_filesz = h->p_memsz = b->table_size;
}

/* What ended where a section was cut goes on when that is there again. */
static void reach_over_made(const struct kp_edit *ed, Elf64_Phdr *h)
{
	for (size_t i = 0; i < ed->n_chunks; i++)
		if (ed->chunks[i].made && ed->chunks[i].vaddr == h->p_vaddr + h->p_filesz)
			h->p_filesz = h->p_memsz;
}

/* PT_GNU_RELRO may reach over what was cut. */
static void clip_to_load(const struct kp_edit *ed, Elf64_Phdr *h)
{
	ptrdiff_t i = kp_edit_load_of(ed, h->p_vaddr, 1);
	const Elf64_Phdr *load;

	if (i < 0)
		return;
	load = &ed->segments[i].h;
	h->p_offset = load->p_offset + (h->p_vaddr - load->p_vaddr);
	reach_over_made(ed, h);
	if (h->p_vaddr + h->p_filesz > load->p_vaddr + load->p_filesz)
		h->p_filesz = load->p_vaddr + load->p_filesz > h->p_vaddr
				      ? load->p_vaddr + load->p_filesz - h->p_vaddr
				      : 0;
}

static kpack_error_t place_segment(struct kp_edit *ed, size_t i, struct kpackx_error *why)
{
	struct kp_edit_segment *s = &ed->segments[i];
	const struct kp_edit_chunk *c = chunk_with(ed, s->from, s->h.p_filesz);

	if (s->h.p_type == PT_GNU_RELRO)
		clip_to_load(ed, &s->h);
	else if (s->h.p_filesz && c)
		s->h.p_offset = c->to + (s->from - c->from);
	else if (s->h.p_filesz)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "elf: program header %zu is for bytes that are not mapped",
			       i);
	else if (s->h.p_memsz)
		move_offset(ed, s->h.p_vaddr, &s->h.p_offset);
	return KPACK_SUCCESS;
}

static kpack_error_t place_segments(struct kp_edit *ed, const struct block *b,
				    struct kpackx_error *why)
{
	for (size_t i = 0; i < ed->n_segments; i++) {
		Elf64_Phdr *h = &ed->segments[i].h;

		if (h->p_type == PT_PHDR)
			place_table_segment(ed, b, h);
		else if (h->p_type != PT_LOAD && h->p_type != PT_NULL)
			KP_TRY(place_segment(ed, i, why));
	}
	return KPACK_SUCCESS;
}

/* ---- sections ---- */

static bool place_made(const struct kp_edit *ed, struct kp_edit_section *s)
{
	for (size_t i = 0; i < ed->n_chunks; i++)
		if (ed->chunks[i].made)
			s->h.sh_offset = ed->chunks[i].to;
	return true;
}

/* A section in a chunk moves with it; true: that was one. */
static bool place_mapped(const struct kp_edit *ed, struct kp_edit_section *s)
{
	const struct kp_edit_chunk *c;

	if (s->in_block)
		return true;
	if (s->from == UINT64_MAX)
		return place_made(ed, s);
	if (is_mapped(&s->h) && (s->h.sh_type == SHT_NOBITS || s->h.sh_size == 0))
		return move_offset(ed, s->h.sh_addr, &s->h.sh_offset);
	if (s->is_new || s->h.sh_size == 0)
		return false;
	c = chunk_with(ed, s->from, s->h.sh_size);
	if (c)
		s->h.sh_offset = c->to + (s->from - c->from);
	return c != NULL;
}

/* Does part of S, which no chunk holds whole, belong to one? */
static bool straddles(const struct kp_edit *ed, const struct kp_edit_section *s)
{
	for (size_t i = 0; i < ed->n_chunks; i++) {
		const struct kp_edit_chunk *c = &ed->chunks[i];

		if (!s->is_new && !c->made && s->from < c->from + c->size &&
		    s->from + s->h.sh_size > c->from && s->h.sh_size)
			return true;
	}
	return false;
}

static int by_offset(const void *a, const void *b)
{
	const struct kp_edit_section *x = *(struct kp_edit_section *const *)a;
	const struct kp_edit_section *y = *(struct kp_edit_section *const *)b;

	if (x->is_new != y->is_new)
		return x->is_new ? 1 : -1;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return (x > y) - (x < y);
}

static uint64_t alignment(const Elf64_Shdr *h)
{
	if (h->sh_addralign == 0 || h->sh_addralign > ALIGN_MAX ||
	    (h->sh_addralign & (h->sh_addralign - 1)))
		return 1;
	return h->sh_addralign;
}

/* Bytes of the old names up to the last one in use; all, when symbols are named there too. */
static uint64_t names_in_use(const struct kp_edit *ed)
{
	uint64_t end = 1;

	for (size_t i = 1; i < ed->n_sections; i++) {
		const struct kp_edit_section *s = &ed->sections[i];

		if (s->h.sh_link == ed->sections[ed->names].index && !s->is_new)
			return ed->old_names;
		if (!s->is_new && s->h.sh_name + strlen(s->name) + 1 > end)
			end = s->h.sh_name + strlen(s->name) + 1;
	}
	return end;
}

/* Names of new sections follow the old ones. */
static void name_sections(struct kp_edit *ed)
{
	uint64_t size = ed->old_names = names_in_use(ed);

	for (size_t i = 1; i < ed->n_sections; i++) {
		if (!ed->sections[i].is_new)
			continue;
		ed->sections[i].h.sh_name = (uint32_t)size;
		size += strlen(ed->sections[i].name) + 1;
	}
	ed->sections[ed->names].h.sh_size = size;
}

static kpack_error_t place_unmapped(struct kp_edit *ed, struct kp_edit_section **order,
				    uint64_t *cur, struct kpackx_error *why)
{
	size_t n = 0;

	for (size_t i = 1; i < ed->n_sections; i++) {
		struct kp_edit_section *s = &ed->sections[i];

		/* the names have grown: only the old ones say where they stood */
		if (i == ed->names || !place_mapped(ed, s))
			order[n++] = s;
	}
	qsort(order, n, sizeof(*order), by_offset);
	for (size_t i = 0; i < n; i++) {
		Elf64_Shdr *h = &order[i]->h;

		if (order[i] != &ed->sections[ed->names] && straddles(ed, order[i]))
			return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
				       "elf: section %zu is partly mapped",
				       order[i]->index);
		*cur = round_up(*cur, alignment(h));
		h->sh_offset = *cur;
		if (h->sh_type != SHT_NOBITS)
			*cur += h->sh_size;
	}
	return KPACK_SUCCESS;
}

static kpack_error_t place_sections(struct kp_edit *ed, uint64_t *cur,
				    struct kpackx_error *why)
{
	struct kp_edit_section **order = calloc(ed->n_sections, sizeof(*order));
	kpack_error_t err;

	if (!order)
		return kp_fail_memory(why, ed->n_sections * sizeof(*order), "sections");
	name_sections(ed);
	err = place_unmapped(ed, order, cur, why);
	free(order);
	*cur = round_up(*cur, 8);
	ed->h.e_shoff = *cur;
	ed->h.e_shnum = (uint16_t)ed->n_sections;
	ed->h.e_shstrndx = (uint16_t)ed->names;
	*cur += ed->n_sections * sizeof(Elf64_Shdr);
	return err;
}

kpack_error_t kp_edit_place(struct kp_edit *ed, struct kpackx_error *why)
{
	const struct kp_edit_section *content = block_section(ed, false);
	struct block b = {.marker_size = content ? content->h.sh_size : 0};
	uint64_t cur = 0;

	if (ed->n_chunks == 0)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "elf: no other segment has bytes in the file");
	b.bias = bias(ed);
	choose_table(ed, &b);
	if (b.table != TABLE_IN_PLACE)
		KP_TRY(kp_edit_add_section(ed, KP_TABLE_SECTION, true,
					   (struct kp_span){0}, why));
	order_sections(ed);
	add_segments(ed, &b);
	KP_TRY(place_chunks(ed, &b, &cur, why));
	KP_TRY(place_block(ed, &b, &cur, why));
	place_loads(ed, &b, cur);
	KP_TRY(place_segments(ed, &b, why));
	KP_TRY(place_sections(ed, &cur, why));
	ed->tail_to = cur;
	ed->out_size = cur + ed->tail_size;
	return KPACK_SUCCESS;
}
