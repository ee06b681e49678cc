/* SPDX-License-Identifier: MIT */
/*
 * Decides all places in the new file, in its order: chunks, what was added, what is not mapped.
 *
 * The marker is in a read-only segment of ours.  The program headers stay after the ELF
 * header if there is room for all; else they are in our segment, too.
 *
 * Programs compute the address of their program headers as that of the ELF header in
 * memory + e_phoff, and so does Linux before 5.18 (AT_PHDR).  So a segment with program
 * headers has the distance of address and file offset that the first segment has.  At the
 * addresses of the section that was cut, that costs nothing in most files; behind all
 * segments, it needs a hole in the file that is as large as what the memory has more than
 * the file.
 *
 * Our segment begins on a page of the file: ld.so uses the first segment whose pages of
 * the file contain the program headers, and would otherwise find them in the last page of
 * the data, which .bss has overwritten.  In front of the program headers, space of the
 * same size and a page of addresses are free, because GNU strip moves the headers there.
 *
 * If the place of the section that was cut stays in the file (ed->whole), the marker is in
 * it, and so may be what is not mapped; no segment is needed then.
 */
#include <inttypes.h>
#include <stdlib.h>
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "core/base/order.h"
#include "edit.h"

/* Larger alignments of unmapped sections have no effect. */
#define ALIGN_MAX 4096

/* Bytes that .hip_fatbin keeps in front of a marker in its place. */
#define GAP_KEPT 16

struct placing {
	struct kp_edit *ed;
	Elf64_Shdr *fatbin; /* of .hip_fatbin; of the null section if there is none */
	Elf64_Shdr *marker, *table; /* of the sections that are added; NULL: none */
	size_t ours; /* index of our PT_LOAD; SIZE_MAX: none, or it is placed */
	uint64_t table_size, ours_size;
	uint64_t bias; /* of the ELF header: address - file offset */
	uint64_t gap_at,
		gap_end; /* addresses, if the marker is in the section's place; or 0 */
	/* Free bytes of the section's place behind that, and those of them that have something. */
	struct kp_edit_range gap;
	uint64_t gap_used;
	uint64_t cur; /* what is placed ends here */
};

static uint64_t round_up(uint64_t n, uint64_t to)
{
	return (n + to - 1) / to * to;
}

/* Return the first offset from CUR on that can be mapped to VADDR. */
static uint64_t congruent_offset(uint64_t cur, uint64_t vaddr, uint64_t align)
{
	return cur + ((vaddr - cur) & (align - 1));
}

static bool is_mapped(const Elf64_Shdr *s)
{
	return (s->sh_flags & SHF_ALLOC) != 0;
}

/* ---- what is added ---- */

static Elf64_Shdr *new_section(const struct kp_edit *ed, const char *name)
{
	struct kp_edit_section *s = &ed->sections[kp_edit_find(ed, name)];

	return s->is_new ? &s->h : NULL;
}

/* Choose where the program headers are, and add the segments and sections needed. */
static kpack_error_t plan_additions(struct placing *p, struct kpackx_error *why)
{
	struct kp_edit *ed = p->ed;
	const Elf64_Shdr *s = &ed->sections[kp_edit_find(ed, KP_FATBIN_SECTION)].h;
	const Elf64_Shdr *marker = new_section(ed, KP_MARKER_SECTION);
	uint64_t old_size = ed->in.header.e_phnum * sizeof(Elf64_Phdr);
	uint64_t marker_size = marker ? marker->sh_size : 0;
	ptrdiff_t at = kp_edit_load_of(ed, s->sh_addr, 1);
	size_t first = SIZE_MAX, last = 0, n_mapped = 1;
	uint64_t room = ed->chunks[0].from ? ed->chunks[0].from : ed->chunks[0].size;
	bool stays = false, apart = false;

	for (size_t i = 0; i < ed->n_segments; i++)
		if (ed->segments[i].h.p_type == PT_LOAD) {
			first = first == SIZE_MAX ? i : first;
			last = i;
		}
	/* the ELF header is at the beginning of the first segment, or would be */
	p->bias = ed->segments[first].h.p_vaddr - ed->segments[first].h.p_offset;
	if (marker && ed->whole && at >= 0 && s->sh_type == SHT_NOBITS) {
		p->gap_at = round_up(s->sh_addr + GAP_KEPT, GAP_KEPT);
		p->gap_end = kp_edit_gap_end(ed, (size_t)at, s->sh_addr);
		if (!kp_range_ok(p->gap_end, p->gap_at, marker_size))
			p->gap_at = 0;
	}
	if (p->gap_at)
		marker_size = 0; /* needs no segment */
	for (size_t i = 0; i < ed->n_chunks && ed->whole && !marker_size; i++) {
		const struct kp_edit_chunk *c = &ed->chunks[i];

		stays |=
			c->vaddr - c->from == p->bias &&
			ed->in.header.e_phoff >= c->from &&
			kp_range_ok(c->size, ed->in.header.e_phoff - c->from, old_size) &&
			ed->n_segments == ed->in.header.e_phnum;
	}
	/* the bytes at the beginning that nothing uses but the ELF header */
	for (size_t i = 1; i < ed->n_sections; i++) {
		const struct kp_edit_section *old = &ed->sections[i];

		if (!old->is_new && old->h.sh_type != SHT_NOBITS && old->h.sh_size &&
		    old->from < room)
			room = old->from;
	}
	if (ed->n_kept && ed->kept[0].from < room)
		room = ed->kept[0].from;
	/* after the ELF header, unless there is not enough room; set_ours decides then */
	ed->h.e_phoff = stays ? ed->in.header.e_phoff : sizeof(Elf64_Ehdr);
	if (!stays)
		apart = sizeof(Elf64_Ehdr) + (ed->n_segments + (marker_size != 0)) *
						     sizeof(Elf64_Phdr) >
			room;
	if (apart)
		KP_TRY(kp_edit_add_section(ed, KP_TABLE_SECTION, SHF_ALLOC,
					   (struct kp_span){0}, why));
	p->ours = SIZE_MAX;
	if (apart || marker_size) {
		p->ours = last + 1;
		kp_edit_insert_segment(
			ed, p->ours,
			(struct kp_edit_segment){
				.h = {.p_type = PT_LOAD,
				      .p_flags = PF_R,
				      .p_align =
					      apart ? kp_edit_page(ed, first) : ed->page},
				.from = UINT64_MAX});
	}
	ed->h.e_phnum = (uint16_t)ed->n_segments;
	p->table_size = ed->n_segments * sizeof(Elf64_Phdr);
	p->ours_size = (apart ? 2 * p->table_size : 0) + marker_size;
	/* mapped sections first */
	for (size_t i = 1; i < ed->n_sections; i++) {
		struct kp_edit_section moved = ed->sections[i];

		if (!is_mapped(&moved.h))
			continue;
		memmove(&ed->sections[n_mapped + 1], &ed->sections[n_mapped],
			(i - n_mapped) * sizeof(moved));
		ed->sections[n_mapped] = moved;
		if (ed->names >= n_mapped && ed->names < i)
			ed->names++;
		n_mapped++;
	}
	p->fatbin = &ed->sections[kp_edit_find(ed, KP_FATBIN_SECTION)].h;
	p->marker = new_section(ed, KP_MARKER_SECTION);
	p->table = new_section(ed, KP_TABLE_SECTION);
	return KPACK_SUCCESS;
}

/*
 * Return an address from FREE on for our segment with program headers, whose file offset
 * is behind what is placed and away from kept bytes; 0: there is none.
 */
static uint64_t biased_address(const struct placing *p, uint64_t free)
{
	const struct kp_edit *ed = p->ed;
	uint64_t address = round_up(free, ed->page) + ed->page;

	for (uint64_t cur = p->cur; cur;) {
		/* negative in a small file */
		int64_t least = (int64_t)(round_up(cur, ed->page) + p->bias);

		if (least > (int64_t)address)
			address = round_up((uint64_t)least, ed->page);
		if (address > KP_ADDRESS_MAX)
			return 0;
		cur = kp_edit_kept_end(ed, address - p->bias, p->ours_size);
	}
	return address;
}

/* Let our segment be at OFFSET and ADDRESS: program headers, then the marker. */
static void set_ours(struct placing *p, uint64_t offset, uint64_t address)
{
	Elf64_Phdr *h = &p->ed->segments[p->ours].h;

	h->p_offset = offset;
	h->p_vaddr = h->p_paddr = address;
	h->p_filesz = h->p_memsz = p->ours_size;
	if (p->table) {
		p->table->sh_offset = p->ed->h.e_phoff = offset + p->table_size;
		p->table->sh_addr = address + p->table_size;
		p->table->sh_size = p->table_size;
		p->table->sh_addralign = 8;
	}
	if (p->marker && !p->gap_at) {
		p->marker->sh_offset = offset + p->ours_size - p->marker->sh_size;
		p->marker->sh_addr = address + p->ours_size - p->marker->sh_size;
	}
	p->cur = offset + p->ours_size;
	p->ours = SIZE_MAX;
}

/*
 * Place our segment, if it has program headers, at the addresses of the section that was cut, if
 * SEGMENT, whose bytes come next in the file, follows them, and if they suffice.
 */
static void place_ours_inside(struct placing *p, size_t segment)
{
	struct kp_edit *ed = p->ed;
	Elf64_Shdr *s = p->fatbin;
	uint64_t end = s->sh_addr + s->sh_size, address;
	struct kp_edit_segment ours;
	size_t at = SIZE_MAX;
	bool is_hole;
	Elf64_Phdr *h;

	if (!p->table || p->ours == SIZE_MAX)
		return;
	/*
	 * The hole: the segment whose memory the section ends, and of whose bytes it is behind.
	 * None of its addresses can become free in PT_GNU_RELRO, whose protection the loader
	 * changes as a whole.
	 */
	for (size_t i = 0; i < ed->n_segments; i++) {
		h = &ed->segments[i].h;
		if (h->p_type == PT_LOAD && s->sh_type == SHT_NOBITS &&
		    s->sh_addr >= h->p_vaddr + h->p_filesz &&
		    end == h->p_vaddr + h->p_memsz &&
		    (h->p_filesz || h->p_vaddr == s->sh_addr))
			at = i;
	}
	for (size_t i = 0; i < ed->n_segments; i++) {
		h = &ed->segments[i].h;
		if (h->p_type == PT_GNU_RELRO && h->p_vaddr < end &&
		    s->sh_addr < h->p_vaddr + h->p_memsz)
			at = SIZE_MAX;
	}
	is_hole = at != SIZE_MAX;
	/* addresses behind a section that became smaller are free, too */
	if (!is_hole && ed->trimmed)
		at = (size_t)kp_edit_load_of(ed, s->sh_addr, s->sh_size);
	if (at == SIZE_MAX || segment <= at)
		return;
	h = &ed->segments[at].h;
	address = biased_address(p, is_hole ? s->sh_addr : h->p_vaddr + h->p_memsz);
	if (!address ||
	    address + p->ours_size > kp_edit_free_until(ed, at) / ed->page * ed->page)
		return;
	if (is_hole) { /* a section without addresses would be lost to other tools */
		s->sh_size = 1;
		h->p_memsz = s->sh_addr + 1 - h->p_vaddr;
	}
	/* it follows that segment */
	ours = ed->segments[p->ours];
	kp_edit_remove_segment(ed, p->ours);
	kp_edit_insert_segment(ed, at + 1, ours);
	p->ours = at + 1;
	set_ours(p, address - p->bias, address);
}

/* Place what is added and not placed yet: the marker in the section's place, and our segment. */
static kpack_error_t place_additions(struct placing *p, struct kpackx_error *why)
{
	struct kp_edit *ed = p->ed;
	uint64_t address = 0, offset = round_up(p->cur, 16), end;

	if (p->gap_at) {
		const Elf64_Phdr *h =
			&ed->segments[kp_edit_load_of(ed, p->fatbin->sh_addr, 1)].h;

		p->fatbin->sh_size = GAP_KEPT;
		p->marker->sh_addr = p->gap_at;
		p->marker->sh_offset = h->p_offset + (p->gap_at - h->p_vaddr);
		p->gap.from = p->marker->sh_offset + p->marker->sh_size;
		p->gap.size = p->gap_end - p->gap_at - p->marker->sh_size;
	}
	if (p->ours == SIZE_MAX)
		return KPACK_SUCCESS;
	for (size_t i = 0; i < ed->n_segments; i++) {
		const Elf64_Phdr *h = &ed->segments[i].h;

		if (h->p_type == PT_LOAD && h->p_vaddr + h->p_memsz > address)
			address = h->p_vaddr + h->p_memsz;
	}
	/* additions must not use addresses of any section, mapped or not */
	for (size_t i = 1; i < ed->n_sections; i++) {
		const Elf64_Shdr *h = &ed->sections[i].h;

		if (is_mapped(h) && h->sh_addr + h->sh_size > address)
			address = h->sh_addr + h->sh_size;
	}
	address = round_up(address, ed->page);
	if (p->table) {
		address = biased_address(p, address);
		offset = address - p->bias;
	} else {
		while ((end = kp_edit_kept_end(ed, offset, p->ours_size)))
			offset = round_up(end, 16);
		address += offset % ed->page;
	}
	if (!address || !kp_range_ok(KP_ADDRESS_MAX, address, p->ours_size) ||
	    offset > KP_SPARSE_MAX)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "elf: no room for the marker and program headers: address "
			       "0x%" PRIx64 ", offset %" PRIu64,
			       address, offset);
	set_ours(p, offset, address);
	return KPACK_SUCCESS;
}

/* ---- what is mapped ---- */

static kpack_error_t place_chunks(struct placing *p, struct kpackx_error *why)
{
	struct kp_edit *ed = p->ed;

	for (size_t i = 0; i < ed->n_chunks; i++) {
		struct kp_edit_chunk *c = &ed->chunks[i];
		Elf64_Phdr *h;
		uint64_t page;

		place_ours_inside(p, c->segment);
		h = &ed->segments[c->segment].h;
		page = kp_edit_page(ed, c->segment);
		/* chunks of one segment keep their distance */
		if (i && c->segment == c[-1].segment) {
			c->to = c[-1].to + (c->vaddr - c[-1].vaddr);
		} else if (!c->moves) {
			c->to = h->p_offset = c->from;
		} else {
			uint64_t size = h->p_filesz - (c->vaddr - h->p_vaddr);

			if (h->p_align > ed->page && h->p_align > 65536)
				h->p_align = ed->page;
			page = kp_edit_page(ed, c->segment);
			for (uint64_t cur = p->cur;;) {
				if (c->page_before)
					cur = round_up(cur, page);
				c->to = congruent_offset(cur, c->vaddr, h->p_align);
				cur = kp_edit_kept_end(ed, c->to, size);
				if (!cur)
					break;
			}
			h->p_offset = c->to;
		}
		if (c->to < p->cur)
			return kp_fail(
				why, KPACK_ERROR_NOT_IMPLEMENTED,
				"elf: no place in the file for the segment at 0x%" PRIx64,
				c->vaddr);
		p->cur = c->to + c->size;
		if (c->page_after && (c->vaddr + c->size) % page)
			p->cur = round_up(p->cur, page);
	}
	place_ours_inside(p, SIZE_MAX);
	if (p->cur < sizeof(Elf64_Ehdr) + p->table_size && !p->table)
		p->cur = sizeof(Elf64_Ehdr) + p->table_size;
	return KPACK_SUCCESS;
}

/* Return the chunk that has [OFFSET, OFFSET + SIZE) of the input, or NULL. */
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

/*
 * Move the offset of something without bytes: its distance from its segment's offset stays.  false:
 * it is in no segment.
 */
static bool move_offset(const struct kp_edit *ed, uint64_t vaddr, uint64_t *offset)
{
	/* from the last one on: a boundary belongs to the segment that begins there */
	for (size_t i = ed->n_segments; i-- > 0;) {
		const struct kp_edit_segment *s = &ed->segments[i];

		if (s->h.p_type != PT_LOAD || vaddr < s->h.p_vaddr ||
		    vaddr - s->h.p_vaddr > s->h.p_memsz)
			continue;
		/* an offset below its segment has no meaning */
		*offset -= *offset < s->from ? *offset : s->from;
		*offset += s->h.p_offset;
		return true;
	}
	return false;
}

/* Set the offsets in program headers: those of bytes that are placed follow them. */
static kpack_error_t place_headers(struct placing *p, struct kpackx_error *why)
{
	struct kp_edit *ed = p->ed;
	const Elf64_Shdr *s = p->fatbin;
	uint64_t cur = 0;

	/*
	 * Segments without bytes have an offset too, which must be congruent to the address.  That of
	 * a hole, the addresses of the section that was cut, is behind all bytes, because at its old
	 * offset tools would find other sections in it.  But if it begins inside a page, ld.so maps
	 * that page, so that the page must exist in the file.
	 */
	for (size_t i = 0; i < ed->n_segments; i++) {
		Elf64_Phdr *h = &ed->segments[i].h;
		bool is_hole =
			s->sh_type == SHT_NOBITS && s->sh_addr >= h->p_vaddr &&
			kp_range_ok(h->p_memsz, s->sh_addr - h->p_vaddr, s->sh_size);

		if (h->p_type != PT_LOAD)
			continue;
		if (h->p_filesz)
			cur = h->p_offset + h->p_filesz;
		else if (is_hole && h->p_vaddr % kp_edit_page(ed, i))
			h->p_offset = h->p_vaddr & (h->p_align - 1);
		else
			h->p_offset = congruent_offset(is_hole ? p->cur : cur, h->p_vaddr,
						       h->p_align);
	}
	for (size_t i = 0; i < ed->n_segments; i++) {
		uint64_t from = ed->segments[i].from;
		Elf64_Phdr *h = &ed->segments[i].h;
		const struct kp_edit_chunk *c = chunk_with(ed, from, h->p_filesz);

		switch (h->p_type) {
		case PT_NULL:
		case PT_LOAD:
			continue;
		case PT_PHDR:
			h->p_offset = ed->h.e_phoff;
			h->p_vaddr = h->p_paddr = ed->h.e_phoff + p->bias;
			h->p_filesz = h->p_memsz = p->table_size;
			continue;
		case PT_GNU_RELRO: {
			ptrdiff_t at = kp_edit_load_of(ed, h->p_vaddr, 1);
			const Elf64_Phdr *load = at < 0 ? NULL : &ed->segments[at].h;
			uint64_t end;

			if (!load)
				continue;
			h->p_offset = load->p_offset + (h->p_vaddr - load->p_vaddr);
			/* it ended where a section was cut that is filled again */
			for (size_t k = 0; k < ed->n_chunks; k++)
				if (ed->chunks[k].made &&
				    ed->chunks[k].vaddr == h->p_vaddr + h->p_filesz)
					h->p_filesz = h->p_memsz;
			/* it may extend over a section that was cut */
			end = load->p_vaddr + load->p_filesz;
			end = end > h->p_vaddr ? end - h->p_vaddr : 0;
			h->p_filesz = h->p_filesz < end ? h->p_filesz : end;
			continue;
		}
		}
		if (h->p_filesz && !c)
			return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
				       "elf: program header %zu is for bytes that are "
				       "not mapped",
				       i);
		if (h->p_filesz)
			h->p_offset = c->to + (from - c->from);
		else if (h->p_memsz)
			move_offset(ed, h->p_vaddr, &h->p_offset);
	}
	return KPACK_SUCCESS;
}

/* ---- what is not mapped ---- */

/* Take SIZE bytes of RANGE, of whose bytes *USED are taken; false: they are not free. */
static bool take_bytes(const struct kp_edit *ed, struct kp_edit_range range,
		       uint64_t *used, uint64_t size, uint64_t align, uint64_t *offset)
{
	uint64_t to = round_up(range.from + *used, align);

	if (!kp_range_ok(range.size, to - range.from, size) ||
	    kp_edit_kept_end(ed, to, size))
		return false;
	*used = to - range.from + size;
	*offset = to;
	return true;
}

/*
 * Take SIZE bytes of the place of the section that was cut, or else of the padding between
 * segments; false: there are no so many together, or the place does not stay.
 */
static bool place_in_gap(struct placing *p, uint64_t size, uint64_t align,
			 uint64_t *offset)
{
	struct kp_edit *ed = p->ed;

	if (p->gap.size == 0 || size == 0)
		return false;
	if (take_bytes(ed, p->gap, &p->gap_used, size, align, offset))
		return true;
	for (size_t i = 0; i + 1 < ed->n_chunks; i++) {
		struct kp_edit_chunk *c = &ed->chunks[i];
		struct kp_edit_range padding = {c->to + c->size,
						c[1].to - c->to - c->size};

		if (c->segment != c[1].segment &&
		    take_bytes(ed, padding, &c->used, size, align, offset))
			return true;
	}
	return false;
}

/* Return the offset of SIZE bytes behind what is placed. */
static uint64_t place_behind(struct placing *p, uint64_t size, uint64_t align)
{
	uint64_t to = round_up(p->cur, align), end;

	while (size && (end = kp_edit_kept_end(p->ed, to, size)))
		to = round_up(end, align);
	p->cur = to + size;
	return to;
}

static uint64_t bytes_of(const Elf64_Shdr *h)
{
	return h->sh_type == SHT_NOBITS ? 0 : h->sh_size;
}

static uint64_t section_alignment(const Elf64_Shdr *h)
{
	bool good = h->sh_addralign && h->sh_addralign <= ALIGN_MAX &&
		    !(h->sh_addralign & (h->sh_addralign - 1));

	return good ? h->sh_addralign : 1;
}

/* A section that is not mapped, and what decides its place among them. */
struct unmapped {
	bool is_new;
	uint64_t after; /* an offset in the input */
	size_t number;
};

/*
 * Place the N sections in ORDER and the section headers behind what is mapped.  If the place of the
 * section that was cut stays, it gets as much as makes up for what was added: the layout; the section
 * headers, which tools write anew; else names; else what fits, which to some tools is part of the
 * segment then.
 */
static void place_rest(struct placing *p, const struct unmapped *order, size_t n)
{
	struct kp_edit *ed = p->ed;
	uint64_t size = ed->n_sections * sizeof(Elf64_Shdr);
	Elf64_Shdr *names = &ed->sections[ed->names].h;
	Elf64_Shdr *layout = &ed->sections[kp_edit_find(ed, KP_LAYOUT_SECTION)].h;
	bool placed_layout, placed_headers, placed_names, fits;

	placed_layout = !is_mapped(layout) &&
			place_in_gap(p, bytes_of(layout), section_alignment(layout),
				     &layout->sh_offset);
	placed_headers = !ed->headers_end && place_in_gap(p, size, 8, &ed->h.e_shoff);
	placed_names =
		!placed_headers && place_in_gap(p, bytes_of(names), 1, &names->sh_offset);
	for (size_t i = 0; i < n; i++) {
		Elf64_Shdr *h = &ed->sections[order[i].number].h;

		if ((h == layout && placed_layout) || (h == names && placed_names))
			continue;
		if (!placed_headers && !placed_names &&
		    place_in_gap(p, bytes_of(h), section_alignment(h), &h->sh_offset))
			continue;
		h->sh_offset = place_behind(p, bytes_of(h), section_alignment(h));
	}
	/* what is appended is found behind the section headers: their end stays where it was */
	if (ed->headers_end) {
		ed->h.e_shoff = ed->headers_end - size;
		fits = kp_range_ok(ed->headers_end, round_up(p->cur, 8), size) &&
		       !kp_edit_kept_end(ed, ed->h.e_shoff, size);
		p->cur = fits ? ed->headers_end : UINT64_MAX;
	} else if (!placed_headers) {
		ed->h.e_shoff = place_behind(p, size, 8);
	}
}

/*
 * Place the sections, those that are not mapped by their offsets.  Those in front of the end of what
 * is mapped have been moved there; they were behind the section that they follow in the table.
 * Names of new sections follow the old ones, up to the last in use; all of them are kept if another
 * section uses them.
 */
static kpack_error_t place_sections(struct placing *p, struct kpackx_error *why)
{
	struct kp_edit *ed = p->ed;
	KP_AUTO_FREE struct unmapped *order = NULL;
	uint64_t last = 0, mapped = 0, names = 1, end;
	size_t n = 0;

	KP_TRY(kp_new(&order, ed->n_sections, "sections", why));
	for (size_t i = 1; i < ed->n_sections; i++) {
		const struct kp_edit_section *s = &ed->sections[i];

		end = s->h.sh_name + strlen(s->name) + 1;
		if (!s->is_new && s->h.sh_link == ed->sections[ed->names].index)
			names = ed->old_names;
		else if (!s->is_new && end > names)
			names = end;
	}
	ed->old_names = names;
	for (size_t i = 1; i < ed->n_sections; i++) {
		if (!ed->sections[i].is_new)
			continue;
		ed->sections[i].h.sh_name = (uint32_t)names;
		names += strlen(ed->sections[i].name) + 1;
	}
	ed->sections[ed->names].h.sh_size = names;
	for (size_t i = 0; i < ed->n_chunks; i++)
		if (!ed->chunks[i].made)
			mapped = ed->chunks[i].from + ed->chunks[i].size;
	for (size_t i = 1; i < ed->n_sections; i++) {
		struct kp_edit_section *s = &ed->sections[i];
		/* the names have grown, so that no chunk has all of them */
		bool old = !s->is_new && i != ed->names;
		bool placed = s->is_new && is_mapped(&s->h);
		const struct kp_edit_chunk *c;

		last = s->from < mapped ? last : s->from;
		if (old && s->from == UINT64_MAX) {
			for (size_t k = 0; k < ed->n_chunks; k++)
				if (ed->chunks[k].made)
					s->h.sh_offset = ed->chunks[k].to;
			placed = true;
		} else if (old && is_mapped(&s->h) && !bytes_of(&s->h)) {
			placed = move_offset(ed, s->h.sh_addr, &s->h.sh_offset);
		} else if (old && s->h.sh_size) {
			c = chunk_with(ed, s->from, s->h.sh_size);
			if (c)
				s->h.sh_offset = c->to + (s->from - c->from);
			placed = c != NULL;
		}
		for (size_t k = 0; k < ed->n_chunks && !placed && old; k++) {
			c = &ed->chunks[k];
			if (!c->made && s->from < c->from + c->size &&
			    s->from + s->h.sh_size > c->from && s->h.sh_size)
				return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
					       "elf: section %zu is partly mapped",
					       s->index);
		}
		if (!placed)
			order[n++] = (struct unmapped){s->is_new, last, i};
	}
	kp_sort(order, n, KP_BY_NUMBER(struct unmapped, is_new),
		KP_BY_NUMBER(struct unmapped, after),
		KP_BY_NUMBER(struct unmapped, number));
	place_rest(p, order, n);
	ed->h.e_shnum = (uint16_t)ed->n_sections;
	ed->h.e_shstrndx = (uint16_t)ed->names;
	if (ed->n_kept == 0)
		return KPACK_SUCCESS;
	end = ed->kept[ed->n_kept - 1].from + ed->kept[ed->n_kept - 1].size;
	/* a program may look for appended bytes from its file's end */
	if (p->cur > ed->size && end == ed->size)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "elf: bytes are appended to it, in front of which "
			       "is no room for more");
	p->cur = p->cur < end ? end : p->cur;
	return KPACK_SUCCESS;
}

kpack_error_t kp_edit_place(struct kp_edit *ed, struct kpackx_error *why)
{
	struct placing p = {.ed = ed};

	if (ed->n_chunks == 0)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "elf: no other segment has bytes in the file");
	KP_TRY(plan_additions(&p, why));
	KP_TRY(place_chunks(&p, why));
	KP_TRY(place_additions(&p, why));
	KP_TRY(place_headers(&p, why));
	KP_TRY(place_sections(&p, why));
	ed->out_size = p.cur + ed->end_zeros;
	return KPACK_SUCCESS;
}
