/* SPDX-License-Identifier: MIT */
/* Packed relative relocations, which elf.h has since glibc 2.36. */
#ifndef CORE_ELF_ELF_RELR_H
#define CORE_ELF_ELF_RELR_H

#include <elf.h>

#ifndef SHT_RELR
#define SHT_RELR 19
#define DT_RELRSZ 35
#define DT_RELR 36
#endif

#endif
