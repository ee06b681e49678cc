/* SPDX-License-Identifier: MIT */
/*
 * The program headers need more room than they had.  In the order of preference they go:
 *
 *   in place  after the ELF header, if nothing else is there
 *   behind    libraries: in a segment of their own after everything.  Nothing computes
 *             their address, because ld.so searches the segments.  A PT_PHDR, which
 *             patchelf would get wrong, becomes a PT_NULL
 *   head      programs with fixed addresses: after the ELF header, on a page put in
 *             front of the first page
 *   sparse    position-independent programs: they begin at address 0, so no page is free
 *             in front, and Linux before 5.18 uses the file offset as the address
 *             (AT_PHDR).  So the file offset of the headers' segment is as large as its
 *             address, with a hole in the file before it.  If the hole would be large,
 *             the segment uses addresses of the section that was cut, which shrinks
 *
 * The marker has a segment in front of that of the headers.  Both segments begin on a
 * page of the file: ld.so uses the first segment whose pages of the file contain the
 * program headers, and would otherwise find them in the last page of the data, which .bss
 * has overwritten.  In front of the program headers, space of the same size and a page of
 * addresses are free, because GNU strip moves the headers there.
 */
#include "edit_added.h"
#include <inttypes.h>
#include "core/binary/elf_file.h"
#include "core/base/bounds.h"

/*
 * Upper bound of the bytes of both segments: a marker and some hundred program headers.
 */
#define BLOCK_MAX (16 * KP_MARKER_MAX)

/* A hole in the file up to this size is accepted. */
#define SPARSE_SMALL (UINT64_C(1) << 16)

/*
 * Return the added mapped section of the program headers (TABLE), or the one with
 * content; or NULL.
 */
static struct kp_edit_section *block_section(const struct kp_edit *ed, bool table)
{
	for (size_t i = 1; i < ed->n_sections; i++)
		if (ed->sections[i].in_block && !ed->sections[i].bytes.data == table)
			return &ed->sections[i];
	return NULL;
}

static bool is_elsewhere(const struct kp_added *a)
{
	return a->table == KP_TABLE_BEHIND || a->table == KP_TABLE_SPARSE;
}

/* ---- the program headers ---- */

/* Return the bytes after the ELF header that nothing else uses. */
static uint64_t header_room(const struct kp_edit *ed)
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

static bool segments_fit(const struct kp_edit *ed, size_t segments)
{
	return segments * sizeof(Elf64_Phdr) <= header_room(ed);
}

static size_t find_segment(const struct kp_edit *ed, uint32_t type, bool last)
{
	size_t found = SIZE_MAX;

	for (size_t i = 0; i < ed->n_segments; i++)
		if (ed->segments[i].h.p_type == type && (found == SIZE_MAX || last))
			found = i;
	return found;
}

/* True if a page is free below the first address of a program with fixed addresses. */
static bool has_head_room(const struct kp_edit *ed)
{
	const Elf64_Phdr *first = &ed->segments[find_segment(ed, PT_LOAD, false)].h;

	return ed->h.e_type == ET_EXEC && first->p_offset == ed->old_head &&
	       ed->n_segments * sizeof(Elf64_Phdr) < ed->page / 2 &&
	       first->p_vaddr % ed->page == 0 && first->p_vaddr >= 2 * ed->page &&
	       first->p_vaddr - ed->page >= 65536;
}

static uint64_t address_bias(const struct kp_edit *ed)
{
	const Elf64_Phdr *first = &ed->segments[find_segment(ed, PT_LOAD, false)].h;

	return first->p_vaddr - (first->p_offset - ed->old_head);
}

static void choose_table(struct kp_edit *ed, struct kp_added *a)
{
	size_t own = find_segment(ed, PT_PHDR, false);

	a->table = KP_TABLE_IN_PLACE;
	if (segments_fit(ed, ed->n_segments + (a->marker_size > 0)))
		return;
	if (!kp_edit_is_program(ed) && ed->h.e_type == ET_DYN) {
		a->table = KP_TABLE_BEHIND;
		if (own != SIZE_MAX)
			ed->segments[own].h.p_type = PT_NULL;
	} else if (has_head_room(ed)) {
		a->table = KP_TABLE_HEAD;
	} else {
		a->table = KP_TABLE_SPARSE;
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

static void add_segments(struct kp_edit *ed, struct kp_added *a)
{
	a->marker_segment = a->marker_size ? add_segment(ed) : SIZE_MAX;
	a->table_segment = is_elsewhere(a) ? add_segment(ed) : SIZE_MAX;
	a->table_size = ed->n_segments * sizeof(Elf64_Phdr);
	ed->h.e_phnum = (uint16_t)ed->n_segments;
	ed->h.e_phoff = sizeof(Elf64_Ehdr);
}

kpack_error_t kp_added_plan(struct kp_edit *ed, struct kp_added *a,
			    struct kpackx_error *why)
{
	const struct kp_edit_section *content = block_section(ed, false);

	*a = (struct kp_added){.marker_size = content ? content->h.sh_size : 0,
			       .bias = address_bias(ed)};
	choose_table(ed, a);
	add_segments(ed, a);
	if (a->table == KP_TABLE_IN_PLACE)
		return KPACK_SUCCESS;
	return kp_edit_add_section(ed, KP_TABLE_SECTION, true, (struct kp_span){0}, why);
}

/* ---- addresses ---- */

static uint64_t memory_end(const struct kp_edit *ed)
{
	uint64_t end = 0;

	for (size_t i = 0; i < ed->n_segments; i++) {
		const Elf64_Phdr *h = &ed->segments[i].h;

		if (h->p_type == PT_LOAD && h->p_vaddr + h->p_memsz > end)
			end = h->p_vaddr + h->p_memsz;
	}
	/* additions must not use addresses of any section, mapped or not */
	for (size_t i = 1; i < ed->n_sections; i++) {
		const Elf64_Shdr *h = &ed->sections[i].h;

		if (kp_is_mapped(h) && h->sh_addr + h->sh_size > end)
			end = h->sh_addr + h->sh_size;
	}
	return end;
}

/*
 * Return the segment whose memory the section that was cut ends, and of whose bytes it is
 * behind; or SIZE_MAX.  A writable segment is none: the loader changes its protection as
 * a whole (PT_GNU_RELRO).
 */
static size_t find_hole(const struct kp_edit *ed)
{
	const Elf64_Shdr *s = &ed->sections[kp_edit_find(ed, KP_FATBIN_SECTION)].h;

	for (size_t i = 0; i < ed->n_segments; i++) {
		const Elf64_Phdr *h = &ed->segments[i].h;

		if (h->p_type == PT_LOAD && s->sh_type == SHT_NOBITS &&
		    s->sh_addr >= h->p_vaddr + h->p_filesz &&
		    s->sh_addr + s->sh_size == h->p_vaddr + h->p_memsz &&
		    (h->p_filesz == 0 || !(h->p_flags & PF_W)))
			return h->p_filesz || h->p_vaddr == s->sh_addr ? i : SIZE_MAX;
	}
	return SIZE_MAX;
}

/*
 * File offsets relative to the marker's, and the distance of both segments in memory,
 * with a free page of addresses between them.
 */
struct form {
	uint64_t segment; /* beginning of the program headers' segment */
	uint64_t table, end;
	uint64_t distance;
};

static struct form form_of(const struct kp_edit *ed, const struct kp_added *a)
{
	struct form f = {.segment = a->marker_size};

	f.table = f.segment + a->table_size;
	f.end = f.table + a->table_size;
	f.distance =
		kp_round_up(a->marker_size, ed->page) + ed->page + f.segment % ed->page;
	return f;
}

/*
 * Return a marker address from FREE on for which the program headers are after CUR in the
 * file.
 */
static uint64_t biased_address(const struct kp_edit *ed, const struct kp_added *a,
			       const struct form *f, uint64_t free, uint64_t cur)
{
	/* negative in a small file */
	int64_t least = (int64_t)(kp_round_up(cur, ed->page) + a->bias -
				  (f->distance - f->segment));

	return (int64_t)free > least ? free : kp_round_up((uint64_t)least, ed->page);
}

static uint64_t biased_offset(const struct kp_added *a, const struct form *f,
			      uint64_t address)
{
	return address + (f->distance - f->segment) - a->bias;
}

/* Use freed addresses whose file offset is after CUR; 0: there are not enough. */
static uint64_t take_from_hole(struct kp_edit *ed, struct kp_added *a,
			       const struct form *f, uint64_t cur)
{
	Elf64_Shdr *s = &ed->sections[kp_edit_find(ed, KP_FATBIN_SECTION)].h;
	size_t at = find_hole(ed);
	bool is_hole = at != SIZE_MAX;
	Elf64_Phdr *h;
	uint64_t address, room;

	/* addresses behind a section that became smaller are free, too */
	if (!is_hole && ed->trimmed)
		at = (size_t)kp_edit_load_of(ed, s->sh_addr, s->sh_size);
	if (at == SIZE_MAX)
		return 0;
	h = &ed->segments[at].h;
	address = is_hole ? s->sh_addr : h->p_vaddr + h->p_memsz;
	address = biased_address(ed, a, f, kp_round_up(address, ed->page) + 2 * ed->page,
				 cur);
	/* a marker may grow later */
	room = a->marker_size ? BLOCK_MAX : f->distance + f->end + ed->page;
	if (address + room > kp_edit_free_until(ed, at))
		return 0;
	if (is_hole && address - ed->page < s->sh_addr + s->sh_size) {
		s->sh_size = address - ed->page - s->sh_addr;
		h->p_memsz = address - ed->page - h->p_vaddr;
	}
	kp_edit_move_segment(ed, a->table_segment, at + 1);
	a->table_segment = at + 1;
	if (a->marker_segment != SIZE_MAX) {
		/* it was before the table's segment, so its index is one higher now */
		kp_edit_move_segment(ed, a->marker_segment + 1, at + 1);
		a->marker_segment = at + 1;
		a->table_segment = at + 2;
	}
	return address;
}

/* Where the additions go. */
struct place {
	uint64_t address, offset;
};

/* The marker ends at a multiple of 8, where program headers can begin. */
static uint64_t marker_skip(const struct kp_added *a)
{
	return -a->marker_size & 7;
}

static struct place place_sparse(struct kp_edit *ed, struct kp_added *a,
				 const struct form *f, uint64_t cur)
{
	uint64_t free = kp_round_up(memory_end(ed), ed->page), inside = 0;
	uint64_t address = biased_address(ed, a, f, free, cur) + marker_skip(a);

	if (biased_offset(a, f, address) - cur > SPARSE_SMALL)
		inside = take_from_hole(ed, a, f, cur);
	if (inside)
		address = inside + marker_skip(a);
	return (struct place){address, biased_offset(a, f, address)};
}

/* Choose where the additions go, in the file after CUR. */
static struct place choose_place(struct kp_edit *ed, struct kp_added *a,
				 const struct form *f, uint64_t cur)
{
	uint64_t free = kp_round_up(memory_end(ed), ed->page);
	uint64_t offset = kp_round_up(cur, 16);

	if (!is_elsewhere(a))
		return (struct place){free + offset % ed->page, offset};
	if (a->table == KP_TABLE_SPARSE)
		return place_sparse(ed, a, f, cur);
	return (struct place){free + marker_skip(a),
			      kp_round_up(cur, ed->page) + marker_skip(a)};
}

static kpack_error_t check_place(struct place p, struct kpackx_error *why)
{
	/* BLOCK_MAX leaves room for the marker to grow */
	if (!kp_range_ok(KP_ADDRESS_MAX, p.address, BLOCK_MAX) ||
	    p.offset > KP_SPARSE_MAX)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "elf: no room for the marker and program headers: address "
			       "0x%" PRIx64 ", offset %" PRIu64,
			       p.address, p.offset);
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

kpack_error_t kp_added_place(struct kp_edit *ed, struct kp_added *a, uint64_t *cur,
			     struct kpackx_error *why)
{
	struct kp_edit_section *table = block_section(ed, true);
	struct kp_edit_section *content = block_section(ed, false);
	struct form f = form_of(ed, a);
	struct place p;
	Elf64_Phdr *h;

	if (!content && !is_elsewhere(a))
		return KPACK_SUCCESS;
	p = choose_place(ed, a, &f, *cur);
	KP_TRY(check_place(p, why));
	*cur = p.offset + a->marker_size;
	if (content) {
		h = &ed->segments[a->marker_segment].h;
		set_segment(h, p.offset, p.address, a->marker_size);
		set_section(&content->h, h, 0, a->marker_size);
	}
	if (is_elsewhere(a)) {
		h = &ed->segments[a->table_segment].h;
		set_segment(h, p.offset + f.segment, p.address + f.distance,
			    f.end - f.segment);
		set_section(&table->h, h, f.table - f.segment, a->table_size);
		table->h.sh_addralign = 8;
		ed->h.e_phoff = table->h.sh_offset;
		*cur = p.offset + f.end;
	}
	return KPACK_SUCCESS;
}

/* ---- after all PT_LOADs are placed ---- */

static void place_head_section(struct kp_edit *ed, const struct kp_added *a,
			       const Elf64_Phdr *head)
{
	Elf64_Shdr *s = &block_section(ed, true)->h;

	s->sh_offset = sizeof(Elf64_Ehdr) + a->table_size;
	s->sh_addr = head->p_vaddr + s->sh_offset;
	s->sh_size = ed->page - s->sh_offset;
	s->sh_addralign = 8;
}

static void place_table_segment(const struct kp_edit *ed, const struct kp_added *a,
				Elf64_Phdr *h)
{
	const Elf64_Phdr *load =
		a->table == KP_TABLE_HEAD || a->table == KP_TABLE_IN_PLACE
			? &ed->segments[ed->chunks[0].segment].h
			: &ed->segments[a->table_segment].h;
	uint64_t vaddr = load->p_vaddr + (ed->h.e_phoff - load->p_offset);

	h->p_offset = ed->h.e_phoff;
	h->p_vaddr = h->p_paddr = vaddr;
	h->p_filesz = h->p_memsz = a->table_size;
}

/* Let the first segment begin a page earlier, with the ELF header. */
static void extend_to_head(struct kp_edit *ed, const struct kp_added *a)
{
	Elf64_Phdr *h = &ed->segments[ed->chunks[0].segment].h;

	h->p_offset -= ed->page;
	h->p_vaddr -= ed->page;
	h->p_paddr -= ed->page;
	h->p_filesz += ed->page;
	h->p_memsz += ed->page;
	place_head_section(ed, a, h);
}

void kp_added_settle(struct kp_edit *ed, const struct kp_added *a)
{
	size_t own = find_segment(ed, PT_PHDR, false);

	if (a->table == KP_TABLE_HEAD)
		extend_to_head(ed, a);
	if (own != SIZE_MAX)
		place_table_segment(ed, a, &ed->segments[own].h);
}
