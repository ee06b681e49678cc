/* SPDX-License-Identifier: MIT */
/*
 * Bare AMDGPU code object: an ELF64 whose machine is 224.  In a stream nothing
 * says how long it is, so it reaches as far as its headers do.
 */
#include <elf.h>
#include <inttypes.h>
#include "format.h"

struct extent {
	struct kp_window window;
	uint64_t size; /* bytes seen to belong to it */
};

static bool probe(struct kp_span head)
{
	return head.size >= 20 && memcmp(head.data, ELFMAG, SELFMAG) == 0 &&
	       head.data[EI_CLASS] == ELFCLASS64 && head.data[EI_DATA] == ELFDATA2LSB &&
	       kp_le16(head.data + offsetof(Elf64_Ehdr, e_machine)) == EM_AMDGPU;
}

static kpack_error_t reach(struct extent *x, const char *what, uint64_t i, uint64_t off,
			   uint64_t len, struct kpackx_error *why)
{
	if (!kp_range_ok(x->window.src.size, off, len))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "%s %" PRIu64 ": %" PRIu64 " bytes at offset %" PRIu64
			       " pass the end at %" PRIu64,
			       what, i, len, off, x->window.src.size);
	if (off + len > x->size)
		x->size = off + len;
	return KPACK_SUCCESS;
}

/* A table of N rows of ROW bytes at OFF: does it fit? */
static kpack_error_t reach_table(struct extent *x, const char *what, uint64_t off,
				 uint64_t n, unsigned row, unsigned stated_row,
				 struct kpackx_error *why)
{
	if (n == 0)
		return KPACK_SUCCESS;
	if (stated_row != row)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "%s headers of %u bytes, expected %u", what, stated_row,
			       row);
	if (n > x->window.src.size / row)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "%" PRIu64 " %s headers do not fit into %" PRIu64 " bytes",
			       n, what, x->window.src.size);
	return reach(x, what, 0, off, n * row, why);
}

static kpack_error_t reach_sections(struct extent *x, uint64_t off, uint64_t n,
				    struct kpackx_error *why)
{
	const uint8_t *p;

	for (uint64_t i = 0; i < n; i++) {
		KP_TRY(kp_window_get(&x->window, off + i * sizeof(Elf64_Shdr),
				     sizeof(Elf64_Shdr), &p, why));
		uint32_t type = kp_le32(p + offsetof(Elf64_Shdr, sh_type));

		/* row 0 is SHT_NULL: its size can be the number of sections */
		if (type == SHT_NULL || type == SHT_NOBITS)
			continue;
		KP_TRY(reach(x, "section", i,
			     kp_le64(p + offsetof(Elf64_Shdr, sh_offset)),
			     kp_le64(p + offsetof(Elf64_Shdr, sh_size)), why));
	}
	return KPACK_SUCCESS;
}

static kpack_error_t reach_segments(struct extent *x, uint64_t off, uint64_t n,
				    struct kpackx_error *why)
{
	const uint8_t *p;

	for (uint64_t i = 0; i < n; i++) {
		KP_TRY(kp_window_get(&x->window, off + i * sizeof(Elf64_Phdr),
				     sizeof(Elf64_Phdr), &p, why));
		uint64_t size = kp_le64(p + offsetof(Elf64_Phdr, p_filesz));

		if (size == 0)
			continue;
		KP_TRY(reach(x, "segment", i, kp_le64(p + offsetof(Elf64_Phdr, p_offset)),
			     size, why));
	}
	return KPACK_SUCCESS;
}

/* Numbers that do not fit into the ELF header stand in section header 0. */
static kpack_error_t read_counts(struct extent *x, const uint8_t *eh, uint64_t *sections,
				 uint64_t *segments, struct kpackx_error *why)
{
	uint64_t shoff = kp_le64(eh + offsetof(Elf64_Ehdr, e_shoff));
	const uint8_t *p;

	*sections = shoff ? kp_le16(eh + offsetof(Elf64_Ehdr, e_shnum)) : 0;
	*segments = kp_le16(eh + offsetof(Elf64_Ehdr, e_phnum));
	if (!shoff || (*sections && *segments != PN_XNUM))
		return KPACK_SUCCESS;
	KP_TRY(kp_window_get(&x->window, shoff, sizeof(Elf64_Shdr), &p, why));
	if (*sections == 0)
		*sections = kp_le64(p + offsetof(Elf64_Shdr, sh_size));
	if (*segments == PN_XNUM)
		*segments = kp_le32(p + offsetof(Elf64_Shdr, sh_info));
	return KPACK_SUCCESS;
}

static kpack_error_t measure(struct extent *x, const uint8_t *eh,
			     struct kpackx_error *why)
{
	uint64_t shoff = kp_le64(eh + offsetof(Elf64_Ehdr, e_shoff));
	uint64_t phoff = kp_le64(eh + offsetof(Elf64_Ehdr, e_phoff));
	uint64_t sections, segments;

	x->size = sizeof(Elf64_Ehdr);
	KP_TRY(read_counts(x, eh, &sections, &segments, why));
	KP_TRY(reach_table(x, "section", shoff, sections, sizeof(Elf64_Shdr),
			   kp_le16(eh + offsetof(Elf64_Ehdr, e_shentsize)), why));
	KP_TRY(reach_table(x, "segment", phoff, segments, sizeof(Elf64_Phdr),
			   kp_le16(eh + offsetof(Elf64_Ehdr, e_phentsize)), why));
	KP_TRY(reach_sections(x, shoff, sections, why));
	return reach_segments(x, phoff, segments, why);
}

/* The header's flags name the target, except in code object v2; its arch stays "". */
static kpack_error_t add_image(const uint8_t *eh, struct kp_container *c,
			       struct kp_containers *list, struct kpackx_error *why)
{
	struct kp_target target;
	struct kpackx_error ignored;
	struct kp_span none = {NULL, 0};

	KP_TRY(kp_containers_add_image(list, c, none, 0, c->size, why));
	if (kp_target_from_elf_flags(eh[EI_ABIVERSION],
				     kp_le32(eh + offsetof(Elf64_Ehdr, e_flags)), &target,
				     &ignored) == KPACK_SUCCESS)
		kp_target_format(&target, list->images[list->n_images - 1].arch);
	return KPACK_SUCCESS;
}

static kpack_error_t parse(const struct kp_source *src, uint64_t off,
			   struct kp_container *c, struct kp_containers *list,
			   struct kpackx_error *why)
{
	uint8_t eh[sizeof(Elf64_Ehdr)];
	struct kp_source rest;
	struct extent x;

	if (!kp_source_sub(src, off, src->size - off, &rest))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "begins after the end");
	KP_TRY(kp_source_read(&rest, 0, eh, sizeof(eh), why));
	kp_window_init(&x.window, &rest);
	KP_TRY(measure(&x, eh, why));
	c->size = c->payload_size = x.size;
	return add_image(eh, c, list, why);
}

const struct kp_format kp_format_code_object = {
	.name = "code-object",
	.type = "hsaco",
	.in_hip_fatbin = true,
	.probe = probe,
	.parse = parse,
};
