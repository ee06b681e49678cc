/* SPDX-License-Identifier: MIT */
/* Pointers that would lead nowhere once .hip_fatbin is empty. */
#ifndef KP_CORE_CONVERT_STRAY_H
#define KP_CORE_CONVERT_STRAY_H

#include "core/binary/elf_file.h"
#include "edit.h"

/*
 * NOT_IMPLEMENTED when the dynamic linker would make a word other than the wrappers of
 * ELF lead into section FATBIN, or change a word in it.  Addresses that a program
 * computes, or that stand in code with fixed addresses, cannot be seen.
 */
kpack_error_t kp_stray_check(const struct kp_edit *ed, size_t fatbin,
			     const struct kp_elf *elf, struct kpackx_error *why);

#endif
