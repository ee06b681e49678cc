/* SPDX-License-Identifier: MIT */
/*
 * Opening a file for editing, which checks all that the editor relies on, and changing its tables.
 *
 * Bytes of the input that neither a section nor a program header names are found, too: a program may
 * find what was appended to it by an offset from the beginning or the end of its file, or behind its
 * section headers.  They are kept where they are.
 *
 * What is refused, and why: a segment that is not aligned to pages, or overlaps another, because the
 * places of the new file are decided by page; mapped section names and section groups, because they
 * cannot grow or be numbered anew; machines whose page size is not known.
 */
#include "edit.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "core/base/order.h"

/* Room for segments, chunks and sections that are added. */
#define SPARE 4

/* ---- tables ---- */

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

uint64_t kp_edit_page(const struct kp_edit *ed, size_t segment)
{
	uint64_t align = ed->segments[segment].h.p_align;

	return align < ed->page ? align : ed->page;
}

uint64_t kp_edit_gap_end(const struct kp_edit *ed, size_t segment, uint64_t vaddr)
{
	const Elf64_Phdr *h = &ed->segments[segment].h;
	uint64_t end = h->p_vaddr + h->p_filesz;

	for (size_t i = 0; i < ed->n_chunks; i++) {
		const struct kp_edit_chunk *c = &ed->chunks[i];

		if (c->segment == segment && c->vaddr + c->size > vaddr && c->vaddr < end)
			end = c->vaddr;
	}
	return end > vaddr ? end : vaddr;
}

uint64_t kp_edit_free_until(const struct kp_edit *ed, size_t segment)
{
	for (size_t i = segment + 1; i < ed->n_segments; i++)
		if (ed->segments[i].h.p_type == PT_LOAD && ed->segments[i].h.p_memsz)
			return ed->segments[i].h.p_vaddr;
	return KP_ADDRESS_MAX;
}

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

kpack_error_t kp_edit_add_section(struct kp_edit *ed, const char *name, uint64_t flags,
				  struct kp_span bytes, struct kpackx_error *why)
{
	if (kp_edit_find(ed, name))
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "elf: a section %s already exists", name);
	ed->sections[ed->n_sections++] =
		(struct kp_edit_section){.name = name,
					 .is_new = true,
					 .bytes = bytes,
					 .h = {.sh_type = SHT_PROGBITS,
					       .sh_flags = flags,
					       .sh_size = bytes.size,
					       .sh_addralign = 1}};
	return KPACK_SUCCESS;
}

void kp_edit_drop_section(struct kp_edit *ed, const char *name)
{
	size_t i = kp_edit_find(ed, name);

	if (!i)
		return;
	ed->n_sections--;
	memmove(&ed->sections[i], &ed->sections[i + 1],
		(ed->n_sections - i) * sizeof(*ed->sections));
	if (ed->names > i)
		ed->names--;
}

kpack_error_t kp_edit_patch(struct kp_edit *ed, uint64_t from, const void *bytes,
			    size_t size, struct kpackx_error *why)
{
	struct kp_edit_patch p = {.from = from, .size = (uint8_t)size};

	KP_TRY(kp_room(&ed->patches, ed->n_patches, &ed->patches_cap, "wrappers", why));
	memcpy(p.bytes, bytes, size);
	ed->patches[ed->n_patches++] = p;
	return KPACK_SUCCESS;
}

/* ---- reading them ---- */

void kp_edit_swap(void *row, const char *sizes)
{
	if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
		return;
	for (uint8_t *p = row; *sizes; p += *sizes++ - '0')
		for (int i = 0, k = *sizes - '1'; i < k; i++, k--) {
			uint8_t byte = p[i];

			p[i] = p[k];
			p[k] = byte;
		}
}

static kpack_error_t refuse_file(struct kpackx_error *why, const char *text)
{
	return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED, "elf: %s", text);
}

/* Read the program headers, and make a chunk of the bytes that each PT_LOAD maps. */
static kpack_error_t read_segments(struct kp_edit *ed, struct kpackx_error *why)
{
	size_t n = ed->h.e_phnum, size = n * sizeof(Elf64_Phdr);
	const Elf64_Phdr *before = NULL;

	if (n == 0 || n > KP_SEGMENTS_MAX)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "elf: %zu program headers", n);
	KP_TRY(kp_new(&ed->old_segments, n, "segments", why));
	KP_TRY(kp_new(&ed->segments, n + SPARE, "segments", why));
	KP_TRY(kp_new(&ed->chunks, n + SPARE, "segments", why));
	ed->n_segments = n;
	KP_TRY(kp_file_pread(ed->fd, ed->in.header.e_phoff, ed->old_segments, size, why));
	for (size_t i = 0; i < n; i++) {
		Elf64_Phdr *h = &ed->segments[i].h;

		kp_edit_swap(&ed->old_segments[i], KP_EDIT_PHDR);
		*h = ed->old_segments[i];
		ed->segments[i].from = h->p_offset;
		if (h->p_type != PT_LOAD)
			continue;
		if (h->p_filesz > h->p_memsz ||
		    (h->p_filesz && !kp_range_ok(ed->size, h->p_offset, h->p_filesz)) ||
		    !kp_range_ok(KP_ADDRESS_MAX, h->p_vaddr, h->p_memsz))
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "elf: segment at 0x%" PRIx64 ": %" PRIu64
				       " bytes at offset %" PRIu64 ", %" PRIu64
				       " in memory",
				       h->p_vaddr, h->p_filesz, h->p_offset, h->p_memsz);
		if (h->p_align < 4096 || (h->p_align & (h->p_align - 1)) ||
		    ((h->p_vaddr - h->p_offset) & (h->p_align - 1)))
			return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
				       "elf: segment at 0x%" PRIx64 ", offset 0x%" PRIx64
				       ", is not aligned to pages (0x%" PRIx64 ")",
				       h->p_vaddr, h->p_offset, h->p_align);
		if (before && h->p_vaddr < before->p_vaddr + before->p_memsz)
			return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
				       "elf: segment at 0x%" PRIx64
				       " overlaps the one before it, or they are out of "
				       "order",
				       h->p_vaddr);
		before = h;
		if (h->p_filesz)
			ed->chunks[ed->n_chunks++] =
				(struct kp_edit_chunk){.from = h->p_offset,
						       .size = h->p_filesz,
						       .vaddr = h->p_vaddr,
						       .segment = i};
	}
	return ed->n_chunks ? KPACK_SUCCESS
			    : refuse_file(why, "no segment has bytes in the file");
}

static kpack_error_t read_sections(struct kp_edit *ed, struct kpackx_error *why)
{
	size_t n = ed->in.count, size = n * sizeof(Elf64_Shdr);

	ed->names = ed->h.e_shstrndx;
	if (n < 2 || n + SPARE >= SHN_LORESERVE || ed->names == 0 || ed->names >= n)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "elf: %zu sections, names in %zu", n, ed->names);
	KP_TRY(kp_new(&ed->old_sections, n, "sections", why));
	KP_TRY(kp_new(&ed->sections, n + SPARE, "sections", why));
	ed->n_sections = n;
	KP_TRY(kp_file_pread(ed->fd, ed->in.header.e_shoff, ed->old_sections, size, why));
	for (size_t i = 0; i < n; i++) {
		struct kp_edit_section *s = &ed->sections[i];

		kp_edit_swap(&ed->old_sections[i], KP_EDIT_SHDR);
		s->h = ed->old_sections[i];
		s->index = i;
		s->from = s->h.sh_offset;
		s->name = ed->in.items[i].name;
		if (i == 0)
			continue;
		if (s->h.sh_type == SHT_GROUP)
			return refuse_file(why, "section groups in a linked file");
		if (s->h.sh_type != SHT_NOBITS &&
		    !kp_range_ok(ed->size, s->h.sh_offset, s->h.sh_size))
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "elf: section %zu: %" PRIu64
				       " bytes at offset %" PRIu64
				       " pass the end of the file at %" PRIu64,
				       i, s->h.sh_size, s->h.sh_offset, ed->size);
		if ((s->h.sh_flags & SHF_ALLOC) &&
		    !kp_range_ok(KP_ADDRESS_MAX, s->h.sh_addr, s->h.sh_size))
			return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
				       "elf: section %zu: %" PRIu64
				       " bytes at address 0x%" PRIx64,
				       i, s->h.sh_size, s->h.sh_addr);
	}
	if (ed->sections[ed->names].h.sh_flags & SHF_ALLOC)
		return refuse_file(why, "the section names are mapped");
	ed->old_names = ed->sections[ed->names].h.sh_size;
	return KPACK_SUCCESS;
}

/* ---- bytes that no table names ---- */

uint64_t kp_edit_kept_end(const struct kp_edit *ed, uint64_t at, uint64_t size)
{
	const struct kp_edit_range probe = {.from = at + 1};
	size_t i = kp_lower_bound(ed->kept, ed->n_kept, &probe,
				  KP_BY_NUMBER(struct kp_edit_range, from));

	/* the range that begins at AT or before may reach behind it */
	if (i && ed->kept[i - 1].from + ed->kept[i - 1].size > at)
		i--;
	if (i == ed->n_kept || (ed->kept[i].from > at && ed->kept[i].from - at >= size))
		return 0;
	return ed->kept[i].from + ed->kept[i].size;
}

/* Set *SAME if [FROM, END) has only WORD, which begins at a multiple of its size. */
static kpack_error_t repeats(const struct kp_edit *ed, uint64_t from, uint64_t end,
			     const uint8_t word[4], bool *same, struct kpackx_error *why)
{
	uint8_t bytes[4096];

	*same = false;
	for (size_t n; from < end; from += n) {
		if (memcmp(word, "\0\0\0", 4) == 0) {
			/* a hole can be longer than anything that can be read */
			off_t data = lseek(ed->fd, (off_t)from, SEEK_DATA);

			if ((data < 0 && errno == ENXIO) || data >= (off_t)end)
				break;
			from = data > (off_t)from ? (uint64_t)data : from;
		}
		n = end - from < sizeof(bytes) ? (size_t)(end - from) : sizeof(bytes);
		KP_TRY(kp_file_pread(ed->fd, from, bytes, n, why));
		for (size_t i = 0; i < n; i++)
			if (bytes[i] != word[(from + i) % 4])
				return KPACK_SUCCESS;
	}
	*same = true;
	return KPACK_SUCCESS;
}

static kpack_error_t find_kept(struct kp_edit *ed, struct kpackx_error *why)
{
	uint64_t headers = ed->n_sections * sizeof(Elf64_Shdr), at = 0;
	size_t most = ed->n_sections + ed->n_segments + 4, n = 0;
	KP_AUTO_FREE struct kp_edit_range *list = NULL;
	static const uint8_t zero[4];
	uint8_t word[4], bytes[4];
	bool same;

	KP_TRY(kp_new(&list, most, "sections", why));
	KP_TRY(kp_new(&ed->kept, most, "sections", why));
	list[n++] = (struct kp_edit_range){0, sizeof(Elf64_Ehdr)};
	list[n++] = (struct kp_edit_range){ed->h.e_phoff,
					   ed->n_segments * sizeof(Elf64_Phdr)};
	list[n++] = (struct kp_edit_range){ed->h.e_shoff, headers};
	for (size_t i = 1; i < ed->n_sections; i++)
		if (ed->sections[i].h.sh_type != SHT_NOBITS)
			list[n++] = (struct kp_edit_range){ed->sections[i].from,
							   ed->sections[i].h.sh_size};
	for (size_t i = 0; i < ed->n_segments; i++)
		if (kp_range_ok(ed->size, ed->segments[i].from,
				ed->segments[i].h.p_filesz))
			list[n++] = (struct kp_edit_range){ed->segments[i].from,
							   ed->segments[i].h.p_filesz};
	list[n++] = (struct kp_edit_range){ed->size, 0};
	kp_sort(list, n, KP_BY_NUMBER(struct kp_edit_range, from));
	for (size_t i = 0; i < n; i++) {
		uint64_t from = at, next = list[i].from;
		const struct kp_edit_chunk *c = ed->chunks, *all = c + ed->n_chunks;

		if (next > at) {
			/* what no table names is kept, but not zeros, and not what fills a page of
			 * code: linkers fill the last one with an instruction */
			while (c < all && (c->from + c->size != from ||
					   !(ed->segments[c->segment].h.p_flags & PF_X)))
				c++;
			if (c < all) {
				uint64_t align = ed->segments[c->segment].h.p_align;
				uint64_t page = from - from % align, fill = next;

				if (from % align && next - page > align)
					fill = page + align;
				if (from % align && fill - from >= sizeof(bytes)) {
					KP_TRY(kp_file_pread(ed->fd, from, bytes,
							     sizeof(bytes), why));
					for (size_t k = 0; k < sizeof(bytes); k++)
						word[(from + k) % 4] = bytes[k];
					KP_TRY(repeats(ed, from, fill, word, &same, why));
					from = same ? fill : from;
				}
			}
			KP_TRY(repeats(ed, from, next, zero, &same, why));
			if (!same)
				ed->kept[ed->n_kept++] =
					(struct kp_edit_range){from, next - from};
			else if (next == ed->size)
				ed->end_zeros = next - from;
		}
		if (list[i].from + list[i].size > at)
			at = list[i].from + list[i].size;
	}
	/* as in AppImages, whose runtime computes the end of its ELF file */
	if (kp_edit_kept_end(ed, ed->h.e_shoff + headers, 1) == ed->size)
		ed->headers_end = ed->h.e_shoff + headers;
	return KPACK_SUCCESS;
}

kpack_error_t kp_edit_open(int fd, uint64_t size, struct kp_edit *out,
			   struct kpackx_error *why)
{
	KP_AUTO(kp_edit) ed = {.fd = fd, .size = size};
	const struct kp_elf_machine *machine;

	KP_TRY(kp_elf_open(fd, size, &ed.in, why));
	ed.h = ed.in.header;
	machine = kp_elf_machine_of(ed.h.e_machine);
	if (ed.h.e_type != ET_EXEC && ed.h.e_type != ET_DYN)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "elf: type %u: only programs and shared libraries are "
			       "changed",
			       ed.h.e_type);
	if (!machine || !machine->page)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "elf: machine %u: only x86-64, AArch64 and PowerPC64 "
			       "are changed",
			       ed.h.e_machine);
	if (ed.h.e_ehsize != sizeof(Elf64_Ehdr))
		return refuse_file(why, "its headers have an unknown size");
	ed.page = machine->page;
	KP_TRY(read_segments(&ed, why));
	KP_TRY(read_sections(&ed, why));
	KP_TRY(find_kept(&ed, why));
	kp_edit_fini(out);
	*out = ed;
	ed = (struct kp_edit){0};
	return KPACK_SUCCESS;
}

void kp_edit_fini(struct kp_edit *ed)
{
	kp_sections_fini(&ed->in);
	free(ed->old_sections);
	free(ed->old_segments);
	free(ed->segments);
	free(ed->sections);
	free(ed->chunks);
	free(ed->patches);
	free(ed->kept);
	*ed = (struct kp_edit){.fd = -1};
}
