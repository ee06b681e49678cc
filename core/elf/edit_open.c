/* SPDX-License-Identifier: MIT */
/* Reading and checking a file for editing. */
#include "edit.h"
#include <gelf.h>
#include <inttypes.h>
#include <stdlib.h>
#include "core/base/bounds.h"
#include "elf_file.h"
#include "core/base/alloc.h"

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
