/* SPDX-License-Identifier: MIT */
/* Making wrappers lead somewhere else. */
#ifndef KP_CORE_CONVERT_WRAPPER_H
#define KP_CORE_CONVERT_WRAPPER_H

#include "core/binary/elf_file.h"
#include "edit.h"

/*
 * Patch W, and its relocation, so that it has MAGIC and INDEX and leads to the address
 * TARGET at run time.  The kind of relocation stays what it is.
 */
kpack_error_t kp_wrapper_point(struct kp_edit *ed, const struct kp_elf_wrapper *w,
			       uint32_t magic, uint64_t index, uint64_t target,
			       struct kpackx_error *why);

#endif
