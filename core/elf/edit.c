/* SPDX-License-Identifier: MIT */
#include "edit.h"
#include <inttypes.h>
#include "core/base/alloc.h"

/* ---- queries ---- */

size_t kp_edit_find(const struct kp_edit *ed, const char *name)
{
	for (size_t i = 1; i < ed->n_sections; i++)
		if (strcmp(ed->sections[i].name, name) == 0)
			return i;
	return 0;
}

ptrdiff_t kp_edit_load_of(const struct kp_edit *ed, uint64_t vaddr, uint64_t size)
{
	for (size_t i = 0; i < ed->n_segments; i++) {
		const Elf64_Phdr *h = &ed->segments[i].h;

		if (h->p_type == PT_LOAD && vaddr >= h->p_vaddr &&
		    kp_range_ok(h->p_memsz, vaddr - h->p_vaddr, size))
			return (ptrdiff_t)i;
	}
	return -1;
}

static const Elf64_Phdr *segment_of_type(const struct kp_edit *ed, uint32_t type)
{
	for (size_t i = 0; i < ed->n_segments; i++)
		if (ed->segments[i].h.p_type == type)
			return &ed->segments[i].h;
	return NULL;
}

bool kp_edit_is_program(const struct kp_edit *ed)
{
	return segment_of_type(ed, PT_INTERP) != NULL;
}

bool kp_edit_table_is_right(const struct kp_edit *ed)
{
	const Elf64_Phdr *first = segment_of_type(ed, PT_LOAD);
	uint64_t at = ed->h.e_phoff + first->p_vaddr - first->p_offset;
	const Elf64_Phdr *own = segment_of_type(ed, PT_PHDR), *load;
	uint64_t size = ed->n_segments * sizeof(Elf64_Phdr);
	ptrdiff_t i = kp_edit_load_of(ed, at, size);

	if (i < 0 || (own && own->p_vaddr != at))
		return false;
	load = &ed->segments[i].h;
	return load->p_vaddr - load->p_offset == first->p_vaddr - first->p_offset &&
	       kp_range_ok(load->p_filesz, at - load->p_vaddr, size);
}

/* ---- segments and chunks ---- */

void kp_edit_insert_segment(struct kp_edit *ed, size_t at, struct kp_edit_segment s)
{
	memmove(&ed->segments[at + 1], &ed->segments[at],
		(ed->n_segments - at) * sizeof(s));
	ed->segments[at] = s;
	ed->n_segments++;
	for (size_t i = 0; i < ed->n_chunks; i++)
		if (ed->chunks[i].segment >= at)
			ed->chunks[i].segment++;
}

void kp_edit_remove_segment(struct kp_edit *ed, size_t at)
{
	ed->n_segments--;
	memmove(&ed->segments[at], &ed->segments[at + 1],
		(ed->n_segments - at) * sizeof(*ed->segments));
	for (size_t i = 0; i < ed->n_chunks; i++)
		if (ed->chunks[i].segment > at)
			ed->chunks[i].segment--;
}

void kp_edit_move_segment(struct kp_edit *ed, size_t from, size_t to)
{
	struct kp_edit_segment s = ed->segments[from];

	kp_edit_remove_segment(ed, from);
	kp_edit_insert_segment(ed, to, s);
}

void kp_edit_insert_chunk(struct kp_edit *ed, size_t at, struct kp_edit_chunk c)
{
	memmove(&ed->chunks[at + 1], &ed->chunks[at], (ed->n_chunks - at) * sizeof(c));
	ed->chunks[at] = c;
	ed->n_chunks++;
}

void kp_edit_remove_chunk(struct kp_edit *ed, size_t at)
{
	ed->n_chunks--;
	memmove(&ed->chunks[at], &ed->chunks[at + 1],
		(ed->n_chunks - at) * sizeof(*ed->chunks));
}

void kp_edit_mark_moves(struct kp_edit *ed, size_t first)
{
	for (size_t i = first; i < ed->n_chunks; i++)
		ed->chunks[i].moves = true;
}

uint64_t kp_edit_page(const struct kp_edit *ed, size_t segment)
{
	uint64_t align = ed->segments[segment].h.p_align;

	return align < ed->page ? align : ed->page;
}

/* ---- sections ---- */

kpack_error_t kp_edit_add_section(struct kp_edit *ed, const char *name, bool alloc,
				  struct kp_span bytes, struct kpackx_error *why)
{
	struct kp_edit_section *s = &ed->sections[ed->n_sections];

	if (kp_edit_find(ed, name))
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "elf: a section %s already exists", name);
	*s = (struct kp_edit_section){
		.name = name, .is_new = true, .in_block = alloc, .bytes = bytes};
	s->h.sh_type = SHT_PROGBITS;
	s->h.sh_flags = alloc ? SHF_ALLOC : 0;
	s->h.sh_size = bytes.size;
	s->h.sh_addralign = 1;
	ed->n_sections++;
	return KPACK_SUCCESS;
}

void kp_edit_drop_section(struct kp_edit *ed, size_t number)
{
	ed->n_sections--;
	memmove(&ed->sections[number], &ed->sections[number + 1],
		(ed->n_sections - number) * sizeof(*ed->sections));
	if (ed->names > number)
		ed->names--;
}

/* ---- patches ---- */

kpack_error_t kp_edit_patch(struct kp_edit *ed, uint64_t from, const void *bytes,
			    size_t size, struct kpackx_error *why)
{
	struct kp_edit_patch p = {.from = from, .size = (uint8_t)size};

	if (!kp_grow(&ed->patches, ed->n_patches, &ed->patches_cap, sizeof(*ed->patches)))
		return kp_fail_memory(why, ed->n_patches * sizeof(p), "wrappers");
	memcpy(p.bytes, bytes, size);
	ed->patches[ed->n_patches++] = p;
	return KPACK_SUCCESS;
}
