/* SPDX-License-Identifier: MIT */
/* Pointing wrappers to another address. */
#ifndef KP_CORE_CONVERT_WRAPPER_H
#define KP_CORE_CONVERT_WRAPPER_H

#include "core/binary/elf_file.h"
#include "edit.h"

/*
 * Patch W and its relocation: at run time W has MAGIC and INDEX and points to the address
 * TARGET.  The relocation keeps its type.
 */
kpack_error_t kp_wrapper_point(struct kp_edit *ed, const struct kp_elf_wrapper *w,
			       uint32_t magic, uint64_t index, uint64_t target,
			       struct kpackx_error *why);

#endif
