/* SPDX-License-Identifier: MIT */
/*
 * Bare AMDGPU code object: an ELF64 whose machine is 224.  In a stream nothing
 * says how long it is, so it reaches as far as its headers do.
 */
#include <elf.h>
#include "format.h"
#include "sections.h"

static bool probe(struct kp_span head)
{
	uint16_t machine;

	return kp_elf_probe(head, &machine) && machine == EM_AMDGPU;
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

	if (!kp_source_sub(src, off, src->size - off, &rest))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "begins after the end");
	KP_TRY(kp_source_read(&rest, 0, eh, sizeof(eh), why));
	KP_TRY(kp_elf_extent(&rest, &c->size, why));
	c->payload_size = c->size;
	return add_image(eh, c, list, why);
}

const struct kp_format kp_format_code_object = {
	.name = "code-object",
	.type = "hsaco",
	.in_hip_fatbin = true,
	.probe = probe,
	.parse = parse,
};
