/* SPDX-License-Identifier: MIT */
/*
 * Opening a file for editing, which checks all that the editor relies on; changing its tables; and
 * finding what a conversion added.
 *
 * Bytes of the input that neither a section nor a program header names are found, too: a program may
 * find what was appended to it by an offset from the beginning or the end of its file, or behind its
 * section headers.  They are kept where they are.
 */
#include <errno.h>
#include <gelf.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "convert.h"
#include "edit.h"
#include "elf_file.h"

/* ==== tables ==== */

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

/* ==== opening ==== */

/* Room for segments and sections that are added. */
#define SPARE 4

static const struct machine {
	uint16_t machine;
	uint64_t page;     /* the largest size that the kernel may use */
	uint32_t relative; /* the relocation type */
} machines[] = {
	{EM_X86_64, 4096, R_X86_64_RELATIVE},
	{EM_AARCH64, 65536, R_AARCH64_RELATIVE},
	{EM_PPC64, 65536, R_PPC64_RELATIVE},
};

static kpack_error_t refuse_file(struct kpackx_error *why, const char *text)
{
	return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED, "elf: %s", text);
}

/* ---- opening ---- */

static kpack_error_t read_header(struct kp_edit *ed, struct kpackx_error *why)
{
	KP_TRY(kp_elf_open(ed->fd, ed->size, &ed->libelf, &ed->names, why));
	if (!gelf_getehdr(ed->libelf, &ed->h))
		return kp_elf_fail(why, "header");
	if (ed->h.e_type != ET_EXEC && ed->h.e_type != ET_DYN)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "elf: type %u: only programs and shared libraries are "
			       "changed",
			       ed->h.e_type);
	for (size_t i = 0; i < KP_COUNT(machines); i++)
		if (machines[i].machine == ed->h.e_machine) {
			ed->page = machines[i].page;
			ed->relative = machines[i].relative;
		}
	if (!ed->page)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "elf: machine %u: only x86-64, AArch64 and PowerPC64 "
			       "are changed",
			       ed->h.e_machine);
	if (ed->h.e_ehsize != sizeof(Elf64_Ehdr) ||
	    ed->h.e_phentsize != sizeof(Elf64_Phdr) ||
	    ed->h.e_shentsize != sizeof(Elf64_Shdr))
		return refuse_file(why, "its headers have an unknown size");
	return KPACK_SUCCESS;
}

static kpack_error_t read_segments(struct kp_edit *ed, struct kpackx_error *why)
{
	size_t n;

	if (elf_getphdrnum(ed->libelf, &n))
		return kp_elf_fail(why, "program headers");
	if (n == 0 || n > KP_SEGMENTS_MAX)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "elf: %zu program headers", n);
	if (!kp_range_ok(ed->size, ed->h.e_phoff, n * sizeof(Elf64_Phdr)))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "elf: %zu program headers at offset %" PRIu64
			       " pass the end of the file at %" PRIu64,
			       n, ed->h.e_phoff, ed->size);
	ed->segments = calloc(n + SPARE, sizeof(*ed->segments));
	if (!ed->segments)
		return kp_fail_memory(why, n * sizeof(*ed->segments), "segments");
	for (; ed->n_segments < n; ed->n_segments++) {
		struct kp_edit_segment *s = &ed->segments[ed->n_segments];

		if (!gelf_getphdr(ed->libelf, (int)ed->n_segments, &s->h))
			return kp_elf_fail(why, "program header");
		s->from = s->h.p_offset;
	}
	return KPACK_SUCCESS;
}

static kpack_error_t check_section(const struct kp_edit *ed,
				   const struct kp_edit_section *s,
				   struct kpackx_error *why)
{
	if (s->h.sh_type == SHT_GROUP)
		return refuse_file(why, "section groups in a linked file");
	if (s->h.sh_type != SHT_NOBITS &&
	    !kp_range_ok(ed->size, s->h.sh_offset, s->h.sh_size))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "elf: section %zu: %" PRIu64 " bytes at offset %" PRIu64
			       " pass the end of the file at %" PRIu64,
			       s->index, s->h.sh_size, s->h.sh_offset, ed->size);
	if ((s->h.sh_flags & SHF_ALLOC) &&
	    !kp_range_ok(KP_ADDRESS_MAX, s->h.sh_addr, s->h.sh_size))
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "elf: section %zu: %" PRIu64
			       " bytes at address 0x%" PRIx64,
			       s->index, s->h.sh_size, s->h.sh_addr);
	return KPACK_SUCCESS;
}

static kpack_error_t read_section(struct kp_edit *ed, size_t i, size_t names,
				  struct kpackx_error *why)
{
	struct kp_edit_section *s = &ed->sections[i];

	if (!gelf_getshdr(elf_getscn(ed->libelf, i), &s->h))
		return kp_elf_fail(why, "section header");
	s->index = i;
	s->from = s->h.sh_offset;
	s->name = elf_strptr(ed->libelf, names, s->h.sh_name);
	if (!s->name)
		return kp_elf_fail(why, "section name");
	ed->n_sections++;
	return i ? check_section(ed, s, why) : KPACK_SUCCESS;
}

static kpack_error_t read_sections(struct kp_edit *ed, struct kpackx_error *why)
{
	size_t n, names = ed->names;

	if (elf_getshdrnum(ed->libelf, &n))
		return kp_elf_fail(why, "section headers");
	if (n < 2 || n + SPARE >= SHN_LORESERVE || names == 0 || names >= n)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "elf: %zu sections, names in %zu", n, names);
	ed->sections = calloc(n + SPARE, sizeof(*ed->sections));
	if (!ed->sections)
		return kp_fail_memory(why, n * sizeof(*ed->sections), "sections");
	for (size_t i = 0; i < n; i++)
		KP_TRY(read_section(ed, i, names, why));
	if (ed->sections[names].h.sh_flags & SHF_ALLOC)
		return refuse_file(why, "the section names are mapped");
	ed->old_names = ed->sections[names].h.sh_size;
	return KPACK_SUCCESS;
}

/* ---- mapped bytes ---- */

static kpack_error_t check_load(const struct kp_edit *ed, const Elf64_Phdr *h,
				const Elf64_Phdr *before, struct kpackx_error *why)
{
	if (h->p_filesz > h->p_memsz ||
	    (h->p_filesz && !kp_range_ok(ed->size, h->p_offset, h->p_filesz)) ||
	    !kp_range_ok(KP_ADDRESS_MAX, h->p_vaddr, h->p_memsz))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "elf: segment at 0x%" PRIx64 ": %" PRIu64
			       " bytes at offset %" PRIu64 ", %" PRIu64 " in memory",
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
			       " overlaps the one before it, or they are out of order",
			       h->p_vaddr);
	return KPACK_SUCCESS;
}

static kpack_error_t make_chunks(struct kp_edit *ed, struct kpackx_error *why)
{
	const Elf64_Phdr *before = NULL;

	ed->chunks = calloc(ed->n_segments + SPARE, sizeof(*ed->chunks));
	if (!ed->chunks)
		return kp_fail_memory(why, ed->n_segments * sizeof(*ed->chunks),
				      "segments");
	for (size_t i = 0; i < ed->n_segments; i++) {
		const Elf64_Phdr *h = &ed->segments[i].h;

		if (h->p_type != PT_LOAD)
			continue;
		KP_TRY(check_load(ed, h, before, why));
		before = h;
		if (h->p_filesz)
			ed->chunks[ed->n_chunks++] =
				(struct kp_edit_chunk){.from = h->p_offset,
						       .size = h->p_filesz,
						       .vaddr = h->p_vaddr,
						       .segment = i};
	}
	if (ed->n_chunks == 0)
		return refuse_file(why, "no segment has bytes in the file");
	return KPACK_SUCCESS;
}

static kpack_error_t read_file(struct kp_edit *ed, struct kpackx_error *why)
{
	KP_TRY(read_header(ed, why));
	KP_TRY(read_segments(ed, why));
	KP_TRY(read_sections(ed, why));
	ed->old_table = ed->h.e_phoff;
	ed->old_headers = ed->h.e_shoff;
	ed->n_old_segments = ed->n_segments;
	return make_chunks(ed, why);
}

kpack_error_t kp_edit_open(int fd, uint64_t size, struct kp_edit *out,
			   struct kpackx_error *why)
{
	kpack_error_t err;

	*out = (struct kp_edit){.fd = fd, .size = size};
	err = read_file(out, why);
	if (err)
		kp_edit_close(out);
	return err;
}

void kp_edit_close(struct kp_edit *ed)
{
	if (ed->libelf)
		elf_end(ed->libelf);
	free(ed->segments);
	free(ed->sections);
	free(ed->chunks);
	free(ed->patches);
	free(ed->kept);
	*ed = (struct kp_edit){.fd = -1};
}

/* ==== bytes that no table names ==== */

uint64_t kp_edit_kept_end(const struct kp_edit *ed, uint64_t at, uint64_t size)
{
	size_t low = 0, high = ed->n_kept;

	while (low < high) { /* the first that ends behind AT */
		size_t middle = low + (high - low) / 2;

		if (ed->kept[middle].from + ed->kept[middle].size <= at)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == ed->n_kept ||
	    (ed->kept[low].from > at && ed->kept[low].from - at >= size))
		return 0;
	return ed->kept[low].from + ed->kept[low].size;
}

static int by_start(const void *a, const void *b)
{
	const struct kp_edit_range *x = a, *y = b;

	return KP_ORDER(x->from, y->from);
}

/* Fill LIST, which has room for all tables, with the ranges that they name. */
static size_t named_ranges(const struct kp_edit *ed, uint64_t headers,
			   struct kp_edit_range *list)
{
	size_t n = 0;

	list[n++] = (struct kp_edit_range){0, sizeof(Elf64_Ehdr)};
	list[n++] = (struct kp_edit_range){ed->h.e_phoff,
					   ed->n_segments * sizeof(Elf64_Phdr)};
	if (kp_range_ok(ed->size, ed->h.e_shoff, headers))
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
	qsort(list, n, sizeof(*list), by_start);
	return n;
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

/*
 * Linkers fill the last page of code with an instruction: let *FROM be the end of such
 * filling, which is not kept.
 */
static kpack_error_t skip_filling(const struct kp_edit *ed, uint64_t *from, uint64_t end,
				  struct kpackx_error *why)
{
	uint8_t word[4], bytes[4];
	bool same = false;

	for (size_t i = 0; i < ed->n_chunks; i++) {
		const struct kp_edit_chunk *c = &ed->chunks[i];
		const Elf64_Phdr *h = &ed->segments[c->segment].h;
		uint64_t page = *from - *from % h->p_align;

		if (c->from + c->size != *from || !(h->p_flags & PF_X))
			continue;
		if (*from % h->p_align && end - page > h->p_align)
			end = page + h->p_align;
		if (*from % h->p_align == 0 || end - *from < sizeof(bytes))
			return KPACK_SUCCESS;
		KP_TRY(kp_file_pread(ed->fd, *from, bytes, sizeof(bytes), why));
		for (size_t k = 0; k < sizeof(bytes); k++)
			word[(*from + k) % 4] = bytes[k];
		KP_TRY(repeats(ed, *from, end, word, &same, why));
		if (same)
			*from = end;
		return KPACK_SUCCESS;
	}
	return KPACK_SUCCESS;
}

static kpack_error_t look_at_gap(struct kp_edit *ed, uint64_t from, uint64_t end,
				 struct kpackx_error *why)
{
	static const uint8_t zero[4];
	bool zeros;

	KP_TRY(skip_filling(ed, &from, end, why));
	KP_TRY(repeats(ed, from, end, zero, &zeros, why));
	if (!zeros)
		ed->kept[ed->n_kept++] = (struct kp_edit_range){from, end - from};
	else if (end == ed->size)
		ed->end_zeros = end - from;
	return KPACK_SUCCESS;
}

static kpack_error_t find_kept(struct kp_edit *ed, struct kpackx_error *why)
{
	uint64_t headers = ed->n_sections * sizeof(Elf64_Shdr), at = 0;
	size_t most = ed->n_sections + ed->n_segments + 4, n;
	struct kp_edit_range *list = calloc(most, sizeof(*list));
	kpack_error_t err = KPACK_SUCCESS;

	ed->kept = calloc(most, sizeof(*ed->kept));
	if (!list || !ed->kept) {
		free(list);
		return kp_fail_memory(why, most * sizeof(*list), "sections");
	}
	n = named_ranges(ed, headers, list);
	list[n++] = (struct kp_edit_range){ed->size, 0};
	for (size_t i = 0; i < n && !err; i++) {
		if (list[i].from > at)
			err = look_at_gap(ed, at, list[i].from, why);
		if (list[i].from + list[i].size > at)
			at = list[i].from + list[i].size;
	}
	free(list);
	/* as in AppImages, whose runtime computes the end of its ELF file */
	if (!err && kp_edit_kept_end(ed, ed->h.e_shoff + headers, 1) == ed->size)
		ed->headers_end = ed->h.e_shoff + headers;
	return err;
}

kpack_error_t kp_edit_open_all(int fd, uint64_t size, struct kp_edit *out,
			       struct kpackx_error *why)
{
	kpack_error_t err;

	KP_TRY(kp_edit_open(fd, size, out, why));
	err = find_kept(out, why);
	if (err)
		kp_edit_close(out);
	return err;
}

/* ==== what a conversion added ==== */

static kpack_error_t check_targets(const struct kp_elf *elf, uint64_t marker,
				   struct kpackx_error *why)
{
	for (size_t i = 0; i < elf->n_wrappers; i++) {
		const struct kp_elf_wrapper *w = &elf->wrappers[i];

		if (w->fields.magic != KP_WRAPPER_HIPK || w->target != marker ||
		    w->source == KP_POINTER_UNRESOLVED)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "wrapper %zu leads to 0x%" PRIx64
				       ", the marker is at 0x%" PRIx64,
				       i, w->target, marker);
	}
	return KPACK_SUCCESS;
}

static kpack_error_t find_sections(const struct kp_edit *ed, const struct kp_fatbin *fat,
				   struct kp_converted *out, struct kpackx_error *why)
{
	size_t marker = kp_edit_find(ed, KP_MARKER_SECTION);
	size_t layout = kp_edit_find(ed, KP_LAYOUT_SECTION);
	size_t fatbin = kp_edit_find(ed, KP_FATBIN_SECTION);
	const Elf64_Shdr *h = &ed->sections[marker].h;

	if (!marker || h->sh_type == SHT_NOBITS || h->sh_size == 0)
		return kp_fail(
			why, KPACK_ERROR_INVALID_FORMAT,
			"wrappers are converted, but there is no " KP_MARKER_SECTION);
	KP_TRY(check_targets(&fat->elf, h->sh_addr, why));
	*out = (struct kp_converted){.marker_offset = h->sh_offset,
				     .marker_size = h->sh_size};
	if (layout && ed->sections[layout].h.sh_type != SHT_NOBITS) {
		out->layout_offset = ed->sections[layout].h.sh_offset;
		out->layout_size = ed->sections[layout].h.sh_size;
	}
	out->has_device_code = fatbin && ed->sections[fatbin].h.sh_type != SHT_NOBITS;
	return KPACK_SUCCESS;
}

kpack_error_t kp_converted_find(int fd, uint64_t size, const struct kp_fatbin *fat,
				struct kp_converted *out, struct kpackx_error *why)
{
	struct kp_edit ed;
	kpack_error_t err;

	if (fat->kind != KP_FATBIN_CONVERTED)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED, "is not converted");
	KP_TRY(kp_edit_open(fd, size, &ed, why));
	err = find_sections(&ed, fat, out, why);
	kp_edit_close(&ed);
	return err;
}
