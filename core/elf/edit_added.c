/* SPDX-License-Identifier: MIT */
/*
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
 * If the section's place stays in the file (ed->whole), the marker is in it, and so may
 * be what is not mapped; no segment is needed then.
 */
#include "edit.h"
#include <inttypes.h>
#include "elf_file.h"
#include "core/base/bounds.h"

/* Bytes that .hip_fatbin keeps in front of a marker in its place. */
#define GAP_KEPT 16

/*
 * Return the added mapped section of the program headers (TABLE), or the one with
 * content; or NULL.
 */
static struct kp_edit_section *added_section(const struct kp_edit *ed, bool table)
{
	for (size_t i = 1; i < ed->n_sections; i++)
		if (ed->sections[i].in_block && !ed->sections[i].bytes.data == table)
			return &ed->sections[i];
	return NULL;
}

/* ---- the program headers ---- */

/* Return the bytes after the ELF header that nothing else uses. */
static uint64_t header_room(const struct kp_edit *ed)
{
	const struct kp_edit_chunk *c = &ed->chunks[0];
	uint64_t end = c->from ? c->from : c->size;

	for (size_t i = 1; i < ed->n_sections; i++) {
		const struct kp_edit_section *s = &ed->sections[i];

		if (!s->is_new && s->h.sh_type != SHT_NOBITS && s->h.sh_size &&
		    s->from < end)
			end = s->from;
	}
	if (ed->n_kept && ed->kept[0].from < end)
		end = ed->kept[0].from;
	return end > sizeof(Elf64_Ehdr) ? end - sizeof(Elf64_Ehdr) : 0;
}

static size_t find_segment(const struct kp_edit *ed, uint32_t type, bool last)
{
	size_t found = SIZE_MAX;

	for (size_t i = 0; i < ed->n_segments; i++)
		if (ed->segments[i].h.p_type == type && (found == SIZE_MAX || last))
			found = i;
	return found;
}

/* True if the input's program headers can stay where they are. */
static bool table_stays(const struct kp_edit *ed, const struct kp_added *a)
{
	uint64_t size = ed->n_old_segments * sizeof(Elf64_Phdr);

	for (size_t i = 0; i < ed->n_chunks && ed->whole; i++) {
		const struct kp_edit_chunk *c = &ed->chunks[i];

		if (c->vaddr - c->from == a->bias && ed->old_table >= c->from &&
		    kp_range_ok(c->size, ed->old_table - c->from, size))
			return ed->n_segments == ed->n_old_segments;
	}
	return false;
}

/* Return where the marker is in the place of the section that was cut, or 0. */
static uint64_t gap_address(const struct kp_edit *ed, uint64_t size)
{
	const Elf64_Shdr *s = &ed->sections[kp_edit_find(ed, KP_FATBIN_SECTION)].h;
	ptrdiff_t at = kp_edit_load_of(ed, s->sh_addr, 1);
	uint64_t address = kp_round_up(s->sh_addr + GAP_KEPT, GAP_KEPT);

	if (!ed->whole || at < 0 || s->sh_type != SHT_NOBITS ||
	    !kp_range_ok(kp_edit_gap_end(ed, (size_t)at, s->sh_addr), address, size))
		return 0;
	return address;
}

kpack_error_t kp_added_plan(struct kp_edit *ed, struct kp_added *a,
			    struct kpackx_error *why)
{
	const struct kp_edit_section *content = added_section(ed, false);
	size_t first = find_segment(ed, PT_LOAD, false);
	const Elf64_Phdr *h = &ed->segments[first].h;
	struct kp_edit_segment ours = {
		.h = {.p_type = PT_LOAD, .p_flags = PF_R, .p_align = ed->page},
		.from = UINT64_MAX};

	*a = (struct kp_added){.segment = SIZE_MAX,
			       .marker_size = content ? content->h.sh_size : 0,
			       .bias = h->p_vaddr - h->p_offset};
	a->in_gap = content && gap_address(ed, a->marker_size);
	ed->h.e_phoff = sizeof(Elf64_Ehdr);
	if ((!content || a->in_gap) && table_stays(ed, a))
		ed->h.e_phoff = ed->old_table;
	else
		a->apart = (ed->n_segments + (content && !a->in_gap)) * sizeof(*h) >
			   header_room(ed);
	if (a->apart) {
		ours.h.p_align = kp_edit_page(ed, first);
		KP_TRY(kp_edit_add_section(ed, KP_TABLE_SECTION, true,
					   (struct kp_span){0}, why));
	}
	if (a->apart || (content && !a->in_gap)) {
		a->segment = find_segment(ed, PT_LOAD, true) + 1;
		kp_edit_insert_segment(ed, a->segment, ours);
	}
	ed->h.e_phnum = (uint16_t)ed->n_segments;
	a->table_size = ed->n_segments * sizeof(*h);
	return KPACK_SUCCESS;
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

/* Return the offset of the first chunk of a segment. */
static uint64_t chunk_offset(const struct kp_edit *ed, size_t segment)
{
	size_t i = 0;

	while (ed->chunks[i].segment != segment)
		i++;
	return ed->chunks[i].to;
}

/*
 * Return the segment whose memory the section that was cut ends, and of whose bytes it is
 * behind; or SIZE_MAX.  None of its addresses can become free in PT_GNU_RELRO, whose
 * protection the loader changes as a whole.
 */
static size_t find_hole(const struct kp_edit *ed)
{
	const Elf64_Shdr *s = &ed->sections[kp_edit_find(ed, KP_FATBIN_SECTION)].h;
	uint64_t end = s->sh_addr + s->sh_size;
	size_t found = SIZE_MAX;

	for (size_t i = 0; i < ed->n_segments; i++) {
		const Elf64_Phdr *h = &ed->segments[i].h;

		if (h->p_type == PT_GNU_RELRO && h->p_vaddr < end &&
		    s->sh_addr < h->p_vaddr + h->p_memsz)
			return SIZE_MAX;
		if (h->p_type == PT_LOAD && s->sh_type == SHT_NOBITS &&
		    s->sh_addr >= h->p_vaddr + h->p_filesz &&
		    end == h->p_vaddr + h->p_memsz &&
		    (h->p_filesz || h->p_vaddr == s->sh_addr))
			found = i;
	}
	return found;
}

/*
 * Return an address from FREE on for our segment with program headers, whose file offset
 * is after CUR and away from kept bytes; 0: there is none.
 */
static uint64_t biased_address(const struct kp_edit *ed, const struct kp_added *a,
			       uint64_t free, uint64_t cur, uint64_t size)
{
	uint64_t address = kp_round_up(free, ed->page) + ed->page;

	while (cur) {
		/* negative in a small file */
		int64_t least = (int64_t)(kp_round_up(cur, ed->page) + a->bias);

		if (least > (int64_t)address)
			address = kp_round_up((uint64_t)least, ed->page);
		if (address > KP_ADDRESS_MAX)
			return 0;
		cur = kp_edit_kept_end(ed, address - a->bias, size);
	}
	return address;
}

static void set_section(Elf64_Shdr *h, const Elf64_Phdr *in, uint64_t skip, uint64_t size)
{
	h->sh_offset = in->p_offset + skip;
	h->sh_addr = in->p_vaddr + skip;
	h->sh_size = size;
}

static uint64_t size_of_ours(const struct kp_added *a)
{
	return (a->apart ? 2 * a->table_size : 0) + a->marker_size;
}

/* Let our segment be at OFFSET and ADDRESS: program headers, then the marker. */
static void set_ours(struct kp_edit *ed, struct kp_added *a, uint64_t offset,
		     uint64_t address)
{
	Elf64_Phdr *h = &ed->segments[a->segment].h;

	h->p_offset = offset;
	h->p_vaddr = h->p_paddr = address;
	h->p_filesz = h->p_memsz = size_of_ours(a);
	if (a->apart) {
		Elf64_Shdr *table = &added_section(ed, true)->h;

		set_section(table, h, a->table_size, a->table_size);
		table->sh_addralign = 8;
		ed->h.e_phoff = table->sh_offset;
	}
	if (a->marker_size)
		set_section(&added_section(ed, false)->h, h, h->p_filesz - a->marker_size,
			    a->marker_size);
	a->segment = SIZE_MAX;
}

void kp_added_inside(struct kp_edit *ed, struct kp_added *a, size_t segment,
		     uint64_t *cur)
{
	Elf64_Shdr *s = &ed->sections[kp_edit_find(ed, KP_FATBIN_SECTION)].h;
	size_t at = find_hole(ed);
	bool is_hole = at != SIZE_MAX;
	uint64_t size = size_of_ours(a), address;
	Elf64_Phdr *h;

	/* addresses behind a section that became smaller are free, too */
	if (!is_hole && ed->trimmed)
		at = (size_t)kp_edit_load_of(ed, s->sh_addr, s->sh_size);
	if (!a->apart || a->segment == SIZE_MAX || at == SIZE_MAX || segment <= at)
		return;
	h = &ed->segments[at].h;
	address = biased_address(ed, a, is_hole ? s->sh_addr : h->p_vaddr + h->p_memsz,
				 *cur, size);
	if (!address || address + size > kp_edit_free_until(ed, at) / ed->page * ed->page)
		return;
	if (is_hole) { /* a section without addresses would be lost to other tools */
		s->sh_size = 1;
		h->p_memsz = s->sh_addr + 1 - h->p_vaddr;
	}
	kp_edit_move_segment(ed, a->segment, at + 1);
	a->segment = at + 1;
	*cur = address - a->bias + size;
	set_ours(ed, a, address - a->bias, address);
}

kpack_error_t kp_added_place(struct kp_edit *ed, struct kp_added *a, uint64_t *cur,
			     struct kpackx_error *why)
{
	uint64_t size = size_of_ours(a), address, offset, end;

	if (a->in_gap) {
		Elf64_Shdr *s = &ed->sections[kp_edit_find(ed, KP_FATBIN_SECTION)].h;
		size_t at = (size_t)kp_edit_load_of(ed, s->sh_addr, 1);
		Elf64_Phdr h = ed->segments[at].h;

		s->sh_size = GAP_KEPT;
		address = gap_address(ed, a->marker_size);
		end = kp_edit_gap_end(ed, at, s->sh_addr);
		h.p_offset = chunk_offset(ed, at);
		set_section(&added_section(ed, false)->h, &h, address - h.p_vaddr,
			    a->marker_size);
		ed->gap.from = h.p_offset + (address - h.p_vaddr) + a->marker_size;
		ed->gap.size = end - address - a->marker_size;
	}
	if (a->segment == SIZE_MAX)
		return KPACK_SUCCESS;
	address = kp_round_up(memory_end(ed), ed->page);
	offset = kp_round_up(*cur, 16);
	if (a->apart) {
		address = biased_address(ed, a, address, *cur, size);
		offset = address - a->bias;
	} else {
		while ((end = kp_edit_kept_end(ed, offset, size)))
			offset = kp_round_up(end, 16);
		address += offset % ed->page;
	}
	if (!address || !kp_range_ok(KP_ADDRESS_MAX, address, size) ||
	    offset > KP_SPARSE_MAX)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "elf: no room for the marker and program headers: address "
			       "0x%" PRIx64 ", offset %" PRIu64,
			       address, offset);
	*cur = offset + size;
	set_ours(ed, a, offset, address);
	return KPACK_SUCCESS;
}

/* ---- after all PT_LOADs are placed ---- */

void kp_added_settle(struct kp_edit *ed, const struct kp_added *a)
{
	size_t own = find_segment(ed, PT_PHDR, false);
	Elf64_Phdr *h;

	if (own == SIZE_MAX)
		return;
	h = &ed->segments[own].h;
	h->p_offset = ed->h.e_phoff;
	h->p_vaddr = h->p_paddr = ed->h.e_phoff + a->bias;
	h->p_filesz = h->p_memsz = a->table_size;
}
