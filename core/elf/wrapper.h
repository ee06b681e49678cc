/* SPDX-License-Identifier: MIT */
/* The wrappers of a file that is edited. */
#ifndef KP_CORE_CONVERT_WRAPPER_H
#define KP_CORE_CONVERT_WRAPPER_H

#include "host_fatbin.h"
#include "edit.h"

/*
 * Patch W and its relocation: at run time W has MAGIC and INDEX and points to the address
 * TARGET.  The relocation keeps its type.
 */
kpack_error_t kp_wrapper_point(struct kp_edit *ed, const struct kp_elf_wrapper *w,
			       uint32_t magic, uint64_t index, uint64_t target,
			       struct kpackx_error *why);

/* NOT_IMPLEMENTED, with the reason: FAT is not a fat binary whose wrappers are all HIPF. */
kpack_error_t kp_convert_kind(const struct kp_fatbin *fat, struct kpackx_error *why);

#endif
