/* SPDX-License-Identifier: MIT */
#include "elf_edit.h"
#include <gelf.h>
#include <inttypes.h>
#include <stdlib.h>
#include "limits.h"
#include "memory.h"

/* Segments and sections that we may add. */
#define SPARE 4

static const struct machine {
	uint16_t machine;
	uint64_t page; /* the largest the kernel may use */
} machines[] = {
	{EM_X86_64, 4096},
	{EM_AARCH64, 65536},
};

static kpack_error_t refuse(struct kpackx_error *why, const char *text)
{
	return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED, "elf: %s", text);
}

static kpack_error_t lies(struct kpackx_error *why, const char *what)
{
	const char *text = elf_errmsg(-1);

	return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "elf: %s: %s", what,
		       text ? text : "no reason given");
}

/* ---- opening ---- */

static kpack_error_t read_header(struct kp_edit *ed, struct kpackx_error *why)
{
	ed->libelf = elf_begin(ed->fd, ELF_C_READ, NULL);
	if (!ed->libelf || !gelf_getehdr(ed->libelf, &ed->h))
		return lies(why, "header");
	if (ed->h.e_ident[EI_CLASS] != ELFCLASS64 ||
	    ed->h.e_ident[EI_DATA] != ELFDATA2LSB)
		return refuse(why, "only 64-bit little-endian files are changed");
	if (ed->h.e_type != ET_EXEC && ed->h.e_type != ET_DYN)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "elf: type %u: only programs and shared libraries are "
			       "changed",
			       ed->h.e_type);
	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++)
		if (machines[i].machine == ed->h.e_machine)
			ed->page = machines[i].page;
	if (!ed->page)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "elf: machine %u: only x86-64 and AArch64 are changed",
			       ed->h.e_machine);
	if (ed->h.e_ehsize != sizeof(Elf64_Ehdr) ||
	    ed->h.e_phentsize != sizeof(Elf64_Phdr) ||
	    ed->h.e_shentsize != sizeof(Elf64_Shdr))
		return refuse(why, "its headers have another size");
	return KPACK_SUCCESS;
}

static kpack_error_t read_segments(struct kp_edit *ed, struct kpackx_error *why)
{
	size_t n;

	if (elf_getphdrnum(ed->libelf, &n))
		return lies(why, "program headers");
	if (n == 0 || n + SPARE >= PN_XNUM)
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
			return lies(why, "program header");
		s->from = s->h.p_offset;
	}
	return KPACK_SUCCESS;
}

static kpack_error_t check_section(const struct kp_edit *ed,
				   const struct kp_edit_section *s,
				   struct kpackx_error *why)
{
	if (s->h.sh_type == SHT_GROUP)
		return refuse(why, "section groups in a linked file");
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
		return lies(why, "section header");
	s->index = i;
	s->from = s->h.sh_offset;
	s->name = elf_strptr(ed->libelf, names, s->h.sh_name);
	if (!s->name)
		return lies(why, "section name");
	ed->n_sections++;
	return i ? check_section(ed, s, why) : KPACK_SUCCESS;
}

static kpack_error_t read_sections(struct kp_edit *ed, struct kpackx_error *why)
{
	size_t n, names;

	if (elf_getshdrnum(ed->libelf, &n) || elf_getshdrstrndx(ed->libelf, &names))
		return lies(why, "section headers");
	if (n < 2 || n + SPARE >= SHN_LORESERVE || names == 0 || names >= n)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "elf: %zu sections, names in %zu", n, names);
	ed->sections = calloc(n + SPARE, sizeof(*ed->sections));
	if (!ed->sections)
		return kp_fail_memory(why, n * sizeof(*ed->sections), "sections");
	for (size_t i = 0; i < n; i++)
		KP_TRY(read_section(ed, i, names, why));
	if (ed->sections[names].h.sh_flags & SHF_ALLOC)
		return refuse(why, "the section names are mapped");
	ed->names = names;
	ed->old_names = ed->sections[names].h.sh_size;
	return KPACK_SUCCESS;
}

/* ---- what is mapped ---- */

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
		return refuse(why, "no segment has bytes in the file");
	return KPACK_SUCCESS;
}

static void reach(uint64_t *end, uint64_t offset, uint64_t size)
{
	if (size && offset + size > *end)
		*end = offset + size;
}

/* Bytes behind everything the tables name belong to somebody else: keep them. */
static void find_tail(struct kp_edit *ed)
{
	uint64_t end = sizeof(Elf64_Ehdr);

	reach(&end, ed->h.e_phoff, ed->n_segments * sizeof(Elf64_Phdr));
	reach(&end, ed->h.e_shoff, ed->n_sections * sizeof(Elf64_Shdr));
	for (size_t i = 1; i < ed->n_sections; i++)
		if (ed->sections[i].h.sh_type != SHT_NOBITS)
			reach(&end, ed->sections[i].h.sh_offset,
			      ed->sections[i].h.sh_size);
	for (size_t i = 0; i < ed->n_chunks; i++)
		reach(&end, ed->chunks[i].from, ed->chunks[i].size);
	ed->tail_from = end;
	ed->tail_size = ed->size > end ? ed->size - end : 0;
}

kpack_error_t kp_edit_open(int fd, uint64_t size, struct kp_edit *out,
			   struct kpackx_error *why)
{
	kpack_error_t err;

	*out = (struct kp_edit){.fd = fd, .size = size};
	elf_version(EV_CURRENT);
	err = read_header(out, why);
	if (!err)
		err = read_segments(out, why);
	if (!err)
		err = read_sections(out, why);
	if (!err)
		err = make_chunks(out, why);
	if (err)
		kp_edit_close(out);
	else
		find_tail(out);
	out->old_table = out->h.e_phoff;
	out->n_old_segments = out->n_segments;
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
	*ed = (struct kp_edit){.fd = -1};
}

/* ---- looking ---- */

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

static void insert_chunk(struct kp_edit *ed, size_t at, struct kp_edit_chunk c)
{
	memmove(&ed->chunks[at + 1], &ed->chunks[at], (ed->n_chunks - at) * sizeof(c));
	ed->chunks[at] = c;
	ed->n_chunks++;
}

static void remove_chunk(struct kp_edit *ed, size_t at)
{
	ed->n_chunks--;
	memmove(&ed->chunks[at], &ed->chunks[at + 1],
		(ed->n_chunks - at) * sizeof(*ed->chunks));
}

static void mark_moves(struct kp_edit *ed, size_t first)
{
	for (size_t i = first; i < ed->n_chunks; i++)
		ed->chunks[i].moves = true;
}

/* ---- cutting ---- */

/* Does anything but SECTION claim bytes of the file in [FROM, FROM + SIZE)? */
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
		return refuse(why, "headers stand inside the section");
	return KPACK_SUCCESS;
}

/* The chunk that holds all of S, or -1. */
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

/* Is there code in what the segment maps? */
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

/* The part [SKIP, SKIP + SIZE) of segment OF, by itself. */
static struct kp_edit_segment part(const struct kp_edit *ed, size_t of, uint64_t skip,
				   uint64_t size)
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

/* Put SIZE bytes of memory at SKIP of segment AT behind what is before them. */
static size_t insert_hole(struct kp_edit *ed, size_t at, uint64_t skip, uint64_t size)
{
	struct kp_edit_segment before = part(ed, at, 0, skip);
	struct kp_edit_segment hole = part(ed, at, skip, size);

	hole.h.p_filesz = 0;
	ed->segments[at] = hole;
	if (skip)
		kp_edit_insert_segment(ed, at, before);
	return skip ? at + 1 : at;
}

/*
 * Segment AT becomes what is before [SKIP, SKIP + SIZE), that in memory only, and what is
 * after.  The kernel gives whole pages to a segment without bytes, so one that
 * does not begin with a page stays the end of what is before.  Returns the last of them.
 */
static size_t split_segment(struct kp_edit *ed, size_t at, uint64_t skip, uint64_t size)
{
	uint64_t all = ed->segments[at].h.p_memsz;
	struct kp_edit_segment after = part(ed, at, skip + size, all - skip - size);
	uint64_t hole = after.h.p_filesz ? size : all - skip;

	if ((ed->segments[at].h.p_vaddr + skip) % ed->page == 0) {
		at = insert_hole(ed, at, skip, hole);
	} else {
		ed->segments[at] = part(ed, at, 0, skip + hole);
		ed->segments[at].h.p_filesz = skip;
	}
	if (after.h.p_filesz)
		kp_edit_insert_segment(ed, ++at, after);
	return at;
}

uint64_t kp_edit_page(const struct kp_edit *ed, size_t segment)
{
	uint64_t align = ed->segments[segment].h.p_align;

	return align < ed->page ? align : ed->page;
}

/*
 * Would what is before and what is after [SKIP, SKIP + SIZE) of a chunk share a page?  A page
 * comes from one place of the file: then the gap stays in it, as zeros.
 */
static bool shares_page(const struct kp_edit *ed, const struct kp_edit_chunk *c,
			uint64_t skip, uint64_t size)
{
	uint64_t page = kp_edit_page(ed, c->segment);

	return skip && skip + size < c->size &&
	       (c->vaddr + skip - 1) / page == (c->vaddr + skip + size) / page;
}

/* SIZE bytes from FROM on leave the chunk. */
static void cut_chunk(struct kp_edit *ed, size_t chunk, uint64_t from, uint64_t size)
{
	struct kp_edit_chunk left = ed->chunks[chunk], right = left;
	uint64_t skip = from - left.from;
	bool moves = !shares_page(ed, &left, skip, size);

	if (moves)
		right.segment = split_segment(ed, left.segment, skip, size);
	remove_chunk(ed, chunk);
	if (moves)
		mark_moves(ed, chunk);
	left.size = skip;
	left.page_after = moves;
	right.from += skip + size;
	right.vaddr += skip + size;
	right.size -= skip + size;
	right.page_before = right.moves = moves;
	if (right.size)
		insert_chunk(ed, chunk, right);
	if (left.size)
		insert_chunk(ed, chunk, left);
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
	cut_chunk(ed, (size_t)chunk, h->sh_offset, h->sh_size);
	h->sh_type = SHT_NOBITS;
	return KPACK_SUCCESS;
}

/* ---- filling ---- */

/* Are segments AT and AT + 1 parts of one? */
static bool can_join(const struct kp_edit *ed, size_t at)
{
	const Elf64_Phdr *a = &ed->segments[at].h, *b = &ed->segments[at + 1].h;

	return at + 1 < ed->n_segments && a->p_type == PT_LOAD && b->p_type == PT_LOAD &&
	       a->p_filesz && a->p_filesz == a->p_memsz && b->p_filesz &&
	       b->p_vaddr == a->p_vaddr + a->p_memsz &&
	       ((a->p_flags ^ b->p_flags) & ~(Elf64_Word)PF_X) == 0;
}

/* Offsets of sections without bytes count from their segment, which becomes AT. */
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

static void join(struct kp_edit *ed, size_t at)
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

/* MADE takes its place in the middle of a chunk, where zeros stood for it. */
static void fill_gap(struct kp_edit *ed, size_t chunk, struct kp_edit_chunk made)
{
	struct kp_edit_chunk *left = &ed->chunks[chunk], right = *left;
	uint64_t skip = made.vaddr - left->vaddr;

	made.segment = left->segment;
	right.from += skip + made.size;
	right.vaddr += skip + made.size;
	right.size -= skip + made.size;
	left->size = skip;
	if (right.size)
		insert_chunk(ed, chunk + 1, right);
	insert_chunk(ed, chunk + 1, made);
}

/* MADE follows the file part of segment AT, and may close the gap to the next one. */
static void fill_hole(struct kp_edit *ed, size_t at, struct kp_edit_chunk made)
{
	Elf64_Phdr *h = &ed->segments[at].h;
	size_t chunk = 0;

	while (chunk < ed->n_chunks && ed->chunks[chunk].vaddr < made.vaddr)
		chunk++;
	made.segment = at;
	/* between the file part and the section were zeros: they are file part now */
	h->p_filesz = made.vaddr + made.size - h->p_vaddr;
	insert_chunk(ed, chunk, made);
	mark_moves(ed, chunk);
	if (can_join(ed, at))
		join(ed, at);
	if (at && can_join(ed, at - 1))
		join(ed, at - 1);
}

/* The chunk that has the addresses of S, or -1. */
static ptrdiff_t chunk_at(const struct kp_edit *ed, const Elf64_Shdr *s)
{
	for (size_t i = 0; i < ed->n_chunks; i++) {
		const struct kp_edit_chunk *c = &ed->chunks[i];

		if (s->sh_addr > c->vaddr &&
		    kp_range_ok(c->size, s->sh_addr - c->vaddr, s->sh_size))
			return (ptrdiff_t)i;
	}
	return -1;
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
	ptrdiff_t chunk = chunk_at(ed, h);

	if (at < 0 || h->sh_type != SHT_NOBITS || h->sh_size == 0 ||
	    (chunk < 0 &&
	     ed->segments[at].h.p_filesz > h->sh_addr - ed->segments[at].h.p_vaddr))
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "elf: %s cannot be filled where it is",
			       ed->sections[section].name);
	if (chunk >= 0)
		fill_gap(ed, (size_t)chunk, made);
	else
		fill_hole(ed, (size_t)at, made);
	h->sh_type = SHT_PROGBITS;
	ed->sections[section].from = UINT64_MAX;
	ed->fill = fill;
	ed->fill_arg = arg;
	return KPACK_SUCCESS;
}

uint64_t kp_edit_free_until(const struct kp_edit *ed, size_t segment)
{
	for (size_t i = segment + 1; i < ed->n_segments; i++)
		if (ed->segments[i].h.p_type == PT_LOAD)
			return ed->segments[i].h.p_vaddr;
	return KP_ADDRESS_MAX;
}

bool kp_edit_widen(struct kp_edit *ed, size_t section, uint64_t size)
{
	Elf64_Shdr *s = &ed->sections[section].h;
	ptrdiff_t at = kp_edit_load_of(ed, s->sh_addr, s->sh_size);
	Elf64_Phdr *h;

	if (at < 0)
		return false;
	h = &ed->segments[at].h;
	if (h->p_filesz || h->p_vaddr != s->sh_addr || h->p_memsz != s->sh_size ||
	    !kp_range_ok(kp_edit_free_until(ed, (size_t)at), h->p_vaddr, size))
		return false;
	s->sh_size = h->p_memsz = size;
	return true;
}

kpack_error_t kp_edit_move_behind(struct kp_edit *ed, size_t section, uint64_t size,
				  struct kpackx_error *why)
{
	struct kp_edit_segment s = {.from = UINT64_MAX};
	size_t last = 0;
	uint64_t end;

	for (size_t i = 0; i < ed->n_segments; i++)
		if (ed->segments[i].h.p_type == PT_LOAD)
			last = i;
	end = ed->segments[last].h.p_vaddr + ed->segments[last].h.p_memsz;
	end = (end + ed->page - 1) / ed->page * ed->page;
	if (!kp_range_ok(KP_ADDRESS_MAX, end, size))
		return refuse(why, "no address is free behind the last segment");
	s.h = (Elf64_Phdr){.p_type = PT_LOAD,
			   .p_flags = PF_R,
			   .p_vaddr = end,
			   .p_paddr = end,
			   .p_memsz = size,
			   .p_align = ed->page};
	kp_edit_insert_segment(ed, last + 1, s);
	ed->sections[section].h.sh_addr = end;
	ed->sections[section].h.sh_size = size;
	return KPACK_SUCCESS;
}

/* ---- sections ---- */

kpack_error_t kp_edit_add_section(struct kp_edit *ed, const char *name, bool alloc,
				  struct kp_span bytes, struct kpackx_error *why)
{
	struct kp_edit_section *s = &ed->sections[ed->n_sections];

	if (kp_edit_find(ed, name))
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "elf: there is a section %s already", name);
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

/* ---- taking away what was added ---- */

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
			remove_chunk(ed, i--);
	kp_edit_remove_segment(ed, at);
}

/* Is the first page of the file one that place put in front of the old header? */
static bool has_head(const struct kp_edit *ed)
{
	uint8_t magic[SELFMAG];

	if (ed->h.e_type != ET_EXEC || ed->h.e_phoff != sizeof(Elf64_Ehdr) ||
	    ed->n_chunks == 0 || ed->chunks[0].from != 0 ||
	    ed->chunks[0].size <= ed->page ||
	    kp_file_pread(ed->fd, ed->page, magic, sizeof(magic), NULL) ||
	    memcmp(magic, ELFMAG, SELFMAG) != 0)
		return false;
	for (size_t i = 1; i < ed->n_sections; i++)
		if (ed->sections[i].h.sh_size && ed->sections[i].from < ed->page)
			return false;
	return true;
}

static void drop_head(struct kp_edit *ed)
{
	struct kp_edit_chunk *c = &ed->chunks[0];
	struct kp_edit_segment *s = &ed->segments[c->segment];

	ed->old_head = ed->page;
	c->from += ed->page;
	c->vaddr += ed->page;
	c->size -= ed->page;
	s->from += ed->page;
	s->h.p_offset += ed->page;
	s->h.p_vaddr += ed->page;
	s->h.p_paddr += ed->page;
	s->h.p_filesz -= ed->page;
	s->h.p_memsz -= ed->page;
}

/* A PT_PHDR that place had no use for. */
static void revive_table_segment(struct kp_edit *ed)
{
	for (size_t i = 0; i < ed->n_segments; i++) {
		Elf64_Phdr *h = &ed->segments[i].h;

		if (h->p_type == PT_NULL && h->p_offset == sizeof(Elf64_Ehdr) &&
		    h->p_filesz && h->p_filesz % sizeof(*h) == 0)
			h->p_type = PT_PHDR;
	}
}

/* The section of the program headers, and its segment if it has one. */
static void drop_table_section(struct kp_edit *ed, size_t section)
{
	const Elf64_Shdr *s = &ed->sections[section].h;
	ptrdiff_t at = kp_edit_load_of(ed, s->sh_addr, s->sh_size);

	if (at >= 0 && !has_sections(ed, &ed->segments[at].h, section))
		drop_load(ed, (size_t)at);
	kp_edit_drop_section(ed, section);
}

void kp_edit_drop_table(struct kp_edit *ed)
{
	size_t section = kp_edit_find(ed, KP_TABLE_SECTION);

	if (section)
		drop_table_section(ed, section);
	revive_table_segment(ed);
	if (has_head(ed))
		drop_head(ed);
}

kpack_error_t kp_edit_drop_block(struct kp_edit *ed, size_t section,
				 struct kpackx_error *why)
{
	const Elf64_Shdr *s = &ed->sections[section].h;
	ptrdiff_t at = kp_edit_load_of(ed, s->sh_addr, s->sh_size);

	if (at < 0 || has_sections(ed, &ed->segments[at].h, section))
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "elf: %s has no segment of its own",
			       ed->sections[section].name);
	drop_load(ed, (size_t)at);
	kp_edit_drop_table(ed);
	return KPACK_SUCCESS;
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
