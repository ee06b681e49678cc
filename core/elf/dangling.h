/* SPDX-License-Identifier: MIT */
/* Pointers into .hip_fatbin that would dangle once its bytes are gone. */
#ifndef KP_CORE_CONVERT_DANGLING_H
#define KP_CORE_CONVERT_DANGLING_H

#include "elf_file.h"
#include "edit.h"

/*
 * NOT_IMPLEMENTED: the dynamic linker would point a word other than the wrappers of ELF
 * into section FATBIN, or change a word in it.  Addresses that a program computes, or
 * that are part of code with fixed addresses, are not detected.
 */
kpack_error_t kp_dangling_check(const struct kp_edit *ed, size_t fatbin,
				const struct kp_elf *elf, struct kpackx_error *why);

#endif
