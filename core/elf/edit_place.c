/* SPDX-License-Identifier: MIT */
/* Decides all places in the new file; edit_added.c decides those of the additions. */
#include <inttypes.h>
#include <stdlib.h>
#include "elf_file.h"
#include "convert.h"
#include "edit.h"
#include "core/base/bounds.h"

/* Larger alignments of unmapped sections have no effect. */
#define ALIGN_MAX 4096

/* Return the first offset from CUR on that can be mapped to VADDR. */
static uint64_t congruent_offset(uint64_t cur, uint64_t vaddr, uint64_t align)
{
	return cur + ((vaddr - cur) & (align - 1));
}

/* ---- sections in order ---- */

static void order_sections(struct kp_edit *ed)
{
	size_t n = ed->n_sections, first = 1;

	for (size_t i = 1; i < n; i++) {
		struct kp_edit_section s = ed->sections[i];

		if (!kp_is_mapped(&s.h))
			continue;
		memmove(&ed->sections[first + 1], &ed->sections[first],
			(i - first) * sizeof(s));
		ed->sections[first] = s;
		if (ed->names >= first && ed->names < i)
			ed->names++;
		first++;
	}
}

/* ---- chunks ---- */

/* Return an offset from CUR on for the first chunk of a segment. */
static uint64_t place_moved(const struct kp_edit *ed, const struct kp_edit_chunk *c,
			    uint64_t cur)
{
	Elf64_Phdr *h = &ed->segments[c->segment].h;
	uint64_t size = h->p_filesz - (c->vaddr - h->p_vaddr), to = 0;

	if (h->p_align > ed->page && h->p_align > 65536)
		h->p_align = ed->page;
	do {
		if (c->page_before)
			cur = kp_round_up(cur, kp_edit_page(ed, c->segment));
		to = congruent_offset(cur, c->vaddr, h->p_align);
		cur = kp_edit_kept_end(ed, to, size);
	} while (cur);
	return to;
}

static kpack_error_t place_chunks(struct kp_edit *ed, struct kp_added *a, uint64_t *end,
				  struct kpackx_error *why)
{
	uint64_t cur = 0;

	for (size_t i = 0; i < ed->n_chunks; i++) {
		struct kp_edit_chunk *c = &ed->chunks[i];

		kp_added_inside(ed, a, c->segment, &cur);
		if (i && c->segment == c[-1].segment)
			c->to = c[-1].to + (c->vaddr - c[-1].vaddr);
		else
			c->to = c->moves ? place_moved(ed, c, cur) : c->from;
		if (c->to < cur)
			return kp_fail(
				why, KPACK_ERROR_NOT_IMPLEMENTED,
				"elf: no place in the file for the segment at 0x%" PRIx64,
				c->vaddr);
		cur = c->to + c->size;
		if (c->page_after && (c->vaddr + c->size) % kp_edit_page(ed, c->segment))
			cur = kp_round_up(cur, kp_edit_page(ed, c->segment));
	}
	kp_added_inside(ed, a, SIZE_MAX, &cur);
	if (cur < sizeof(Elf64_Ehdr) + a->table_size && !a->apart)
		cur = sizeof(Elf64_Ehdr) + a->table_size;
	*end = cur;
	return KPACK_SUCCESS;
}

/* ---- program headers of mapped bytes ---- */

/* True if H is the address space of the section that was cut. */
static bool is_hole(const struct kp_edit *ed, const Elf64_Phdr *h)
{
	const Elf64_Shdr *s = &ed->sections[kp_edit_find(ed, KP_FATBIN_SECTION)].h;

	return s->sh_type == SHT_NOBITS && s->sh_addr >= h->p_vaddr &&
	       kp_range_ok(h->p_memsz, s->sh_addr - h->p_vaddr, s->sh_size);
}

/*
 * Return the offset of a hole: after all bytes, because at its old offset tools would
 * find other sections in it.  But if it begins inside a page, ld.so maps that page, so
 * that the page must exist in the file.
 */
static uint64_t hole_offset(const struct kp_edit *ed, size_t segment, uint64_t end)
{
	const Elf64_Phdr *h = &ed->segments[segment].h;

	if (h->p_vaddr % kp_edit_page(ed, segment))
		return h->p_vaddr & (h->p_align - 1);
	return congruent_offset(end, h->p_vaddr, h->p_align);
}

/* Segments without bytes have an offset too, which must be congruent to the address. */
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
			s->h.p_offset = congruent_offset(cur, s->h.p_vaddr, s->h.p_align);
		else
			cur = s->h.p_offset + s->h.p_filesz;
	}
}

static void place_loads(struct kp_edit *ed, uint64_t end)
{
	for (size_t i = ed->n_chunks; i-- > 0;)
		ed->segments[ed->chunks[i].segment].h.p_offset = ed->chunks[i].to;
	place_empty_loads(ed, end);
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
 * Move the offset of something without bytes: its distance from its segment's offset
 * stays.
 */
static bool move_offset(const struct kp_edit *ed, uint64_t vaddr, uint64_t *offset)
{
	for (size_t i = ed->n_segments; i-- > 0;) {
		const struct kp_edit_segment *s = &ed->segments[i];

		/*
		 * from the last segment on: a boundary belongs to the segment that begins
		 * there
		 */
		if (s->h.p_type == PT_LOAD && vaddr >= s->h.p_vaddr &&
		    vaddr - s->h.p_vaddr <= s->h.p_memsz) {
			/* an offset below its segment has no meaning */
			*offset -= *offset < s->from ? *offset : s->from;
			*offset += s->h.p_offset;
			return true;
		}
	}
	return false;
}

/* Extend H, which ended where a section was cut, if that section is filled again. */
static void reach_over_made(const struct kp_edit *ed, Elf64_Phdr *h)
{
	for (size_t i = 0; i < ed->n_chunks; i++)
		if (ed->chunks[i].made && ed->chunks[i].vaddr == h->p_vaddr + h->p_filesz)
			h->p_filesz = h->p_memsz;
}

/* Clip PT_GNU_RELRO to its PT_LOAD: it may extend over a cut section. */
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

static kpack_error_t place_segments(struct kp_edit *ed, struct kpackx_error *why)
{
	for (size_t i = 0; i < ed->n_segments; i++) {
		uint32_t type = ed->segments[i].h.p_type;

		if (type != PT_PHDR && type != PT_LOAD && type != PT_NULL)
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

/* Move a section with its chunk or segment; false: it is not mapped. */
static bool place_mapped(const struct kp_edit *ed, struct kp_edit_section *s)
{
	const struct kp_edit_chunk *c;

	if (s->in_block)
		return true;
	if (s->from == UINT64_MAX)
		return place_made(ed, s);
	if (kp_is_mapped(&s->h) && (s->h.sh_type == SHT_NOBITS || s->h.sh_size == 0))
		return move_offset(ed, s->h.sh_addr, &s->h.sh_offset);
	if (s->is_new || s->h.sh_size == 0)
		return false;
	c = chunk_with(ed, s->from, s->h.sh_size);
	if (c)
		s->h.sh_offset = c->to + (s->from - c->from);
	return c != NULL;
}

/* True if part of S, which is not inside a chunk, is in one. */
static bool section_straddles(const struct kp_edit *ed, const struct kp_edit_section *s)
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
		return KP_ORDER(x->is_new, y->is_new);
	if (x->after != y->after)
		return KP_ORDER(x->after, y->after);
	return KP_ORDER(x, y);
}

static uint64_t section_alignment(const Elf64_Shdr *h)
{
	if (h->sh_addralign == 0 || h->sh_addralign > ALIGN_MAX ||
	    (h->sh_addralign & (h->sh_addralign - 1)))
		return 1;
	return h->sh_addralign;
}

/*
 * Return the bytes of the old names up to the last one in use, or all if another section
 * uses them.
 */
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

/* Take SIZE bytes of RANGE, of whose bytes *USED are taken; false: they are not free. */
static bool take_bytes(const struct kp_edit *ed, struct kp_edit_range range,
		       uint64_t *used, uint64_t size, uint64_t align, uint64_t *offset)
{
	uint64_t to = kp_round_up(range.from + *used, align);

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
static bool place_in_gap(struct kp_edit *ed, uint64_t size, uint64_t align,
			 uint64_t *offset)
{
	if (ed->gap.size == 0 || size == 0)
		return false;
	if (take_bytes(ed, ed->gap, &ed->gap_used, size, align, offset))
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

/* Return the offset of SIZE bytes at or behind *CUR, which moves behind them. */
static uint64_t place_behind(const struct kp_edit *ed, uint64_t *cur, uint64_t size,
			     uint64_t align)
{
	uint64_t to = kp_round_up(*cur, align), end;

	while (size && (end = kp_edit_kept_end(ed, to, size)))
		to = kp_round_up(end, align);
	*cur = to + size;
	return to;
}

static uint64_t bytes_of(const Elf64_Shdr *h)
{
	return h->sh_type == SHT_NOBITS ? 0 : h->sh_size;
}

/*
 * Place the N sections in ORDER and the section headers behind *CUR.  If the place of the
 * section that was cut stays, it gets as much as makes up for what was added: the layout; the section headers, which tools write anew; else names; else what fits, which
 * to some tools is part of the segment then.
 */
static void place_rest(struct kp_edit *ed, struct kp_edit_section **order, size_t n,
		       uint64_t *cur)
{
	uint64_t headers = ed->n_sections * sizeof(Elf64_Shdr);
	Elf64_Shdr *names = &ed->sections[ed->names].h;
	Elf64_Shdr *layout = &ed->sections[kp_edit_find(ed, KP_LAYOUT_SECTION)].h;
	bool placed_layout, placed_headers, placed_names;

	placed_layout = !kp_is_mapped(layout) &&
			place_in_gap(ed, bytes_of(layout), section_alignment(layout),
				     &layout->sh_offset);
	placed_headers = !ed->headers_end && place_in_gap(ed, headers, 8, &ed->h.e_shoff);
	placed_names = !placed_headers &&
		       place_in_gap(ed, bytes_of(names), 1, &names->sh_offset);
	for (size_t i = 0; i < n; i++) {
		Elf64_Shdr *h = &order[i]->h;
		uint64_t size = bytes_of(h), align = section_alignment(h);

		if ((h == layout && placed_layout) || (h == names && placed_names))
			continue;
		if (!placed_headers && !placed_names &&
		    place_in_gap(ed, size, align, &h->sh_offset))
			continue;
		h->sh_offset = place_behind(ed, cur, size, align);
	}
	if (ed->headers_end) {
		bool fits = kp_range_ok(ed->headers_end, kp_round_up(*cur, 8), headers);

		ed->h.e_shoff = ed->headers_end - headers;
		fits = fits && !kp_edit_kept_end(ed, ed->h.e_shoff, headers);
		*cur = fits ? ed->headers_end : UINT64_MAX;
	} else if (!placed_headers) {
		ed->h.e_shoff = place_behind(ed, cur, headers, 8);
	}
}

/*
 * Place mapped sections, and collect the others in ORDER, by their offsets.  Those in
 * front of the end of what is mapped have been moved there; they were behind the section
 * that they follow in the table.
 */
static kpack_error_t place_mapped_sections(struct kp_edit *ed,
					   struct kp_edit_section **order, size_t *n,
					   struct kpackx_error *why)
{
	uint64_t last = 0, mapped = 0;

	for (size_t i = 0; i < ed->n_chunks; i++)
		if (!ed->chunks[i].made)
			mapped = ed->chunks[i].from + ed->chunks[i].size;
	for (size_t i = 1; i < ed->n_sections; i++) {
		struct kp_edit_section *s = &ed->sections[i];

		s->after = s->from < mapped ? last : s->from;
		last = s->after;
		/* the section of names has grown, so no chunk has all of it */
		if (i != ed->names && place_mapped(ed, s))
			continue;
		if (i != ed->names && section_straddles(ed, s))
			return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
				       "elf: section %zu is partly mapped", s->index);
		order[(*n)++] = s;
	}
	qsort(order, *n, sizeof(*order), by_offset);
	return KPACK_SUCCESS;
}

static kpack_error_t place_sections(struct kp_edit *ed, uint64_t *cur,
				    struct kpackx_error *why)
{
	struct kp_edit_section **order = calloc(ed->n_sections, sizeof(*order));
	size_t n = 0;
	kpack_error_t err;

	if (!order)
		return kp_fail_memory(why, ed->n_sections * sizeof(*order), "sections");
	name_sections(ed);
	err = place_mapped_sections(ed, order, &n, why);
	if (!err)
		place_rest(ed, order, n, cur);
	if (!err && ed->n_kept) {
		const struct kp_edit_range *last = &ed->kept[ed->n_kept - 1];
		uint64_t end = last->from + last->size;

		/* a program may look for appended bytes from its file's end */
		if (*cur > ed->size && end == ed->size)
			err = kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
				      "elf: bytes are appended to it, in front of which "
				      "is no room for more");
		if (*cur < end)
			*cur = end;
	}
	free(order);
	ed->h.e_shnum = (uint16_t)ed->n_sections;
	ed->h.e_shstrndx = (uint16_t)ed->names;
	return err;
}

kpack_error_t kp_edit_place(struct kp_edit *ed, struct kpackx_error *why)
{
	struct kp_added a;
	uint64_t cur = 0;

	if (ed->n_chunks == 0)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "elf: no other segment has bytes in the file");
	KP_TRY(kp_added_plan(ed, &a, why));
	order_sections(ed);
	KP_TRY(place_chunks(ed, &a, &cur, why));
	KP_TRY(kp_added_place(ed, &a, &cur, why));
	place_loads(ed, cur);
	kp_added_settle(ed, &a);
	KP_TRY(place_segments(ed, why));
	KP_TRY(place_sections(ed, &cur, why));
	ed->out_size = cur + ed->end_zeros;
	return KPACK_SUCCESS;
}
