/* SPDX-License-Identifier: MIT */
#include "wrapper.h"

/*
 * Return the pointer's word in the file.  A word that a RELA relocation overwrites is
 * zero with lld and the address with GNU ld; this is kept.
 */
static uint64_t stored_pointer(const struct kp_elf_wrapper *w, uint64_t target)
{
	if (w->reloc_size == sizeof(Elf64_Rela))
		return w->fields.pointer ? target : 0;
	return w->source == KP_POINTER_SYMBOL ? target - w->symbol : target;
}

static kpack_error_t patch_addend(struct kp_edit *ed, const struct kp_elf_wrapper *w,
				  uint64_t target, struct kpackx_error *why)
{
	uint8_t addend[8];

	/* the relocation keeps its symbol, so that tables sorted by kind stay sorted */
	kp_put_le64(addend, w->source == KP_POINTER_SYMBOL ? target - w->symbol : target);
	return kp_edit_patch(ed, w->reloc_offset + offsetof(Elf64_Rela, r_addend), addend,
			     sizeof(addend), why);
}

kpack_error_t kp_wrapper_point(struct kp_edit *ed, const struct kp_elf_wrapper *w,
			       uint32_t magic, uint64_t index, uint64_t target,
			       struct kpackx_error *why)
{
	uint8_t bytes[KP_WRAPPER_SIZE];

	if (w->source == KP_POINTER_UNRESOLVED)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "elf: a wrapper's pointer is set from outside this file");
	kp_put_le32(bytes, magic);
	kp_put_le32(bytes + 4, KP_WRAPPER_VERSION);
	kp_put_le64(bytes + 8, stored_pointer(w, target));
	kp_put_le64(bytes + 16, index);
	if (w->reloc_size == sizeof(Elf64_Rela))
		KP_TRY(patch_addend(ed, w, target, why));
	return kp_edit_patch(ed, w->offset, bytes, sizeof(bytes), why);
}
