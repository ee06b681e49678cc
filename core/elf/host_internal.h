/* SPDX-License-Identifier: MIT */
/*
 * Internals of the reader of host ELF files, shared by its files:
 *
 *	elf_file.c       headers and sections
 *	find_wrappers.c  finds the wrappers
 *	relocate.c       finds the targets of their pointers
 */
#ifndef KP_CORE_BINARY_INTERNAL_H
#define KP_CORE_BINARY_INTERNAL_H

#include <gelf.h>
#include "elf_file.h"
#include "core/base/file.h"

struct kp_elf_section {
	size_t index; /* 0: the file has no such section */
	GElf_Shdr header;
};

/* The state of reading one file. */
struct kp_elf_reader {
	struct kp_source src;
	Elf *elf;
	struct kp_elf *out;
	bool relocatable; /* ET_REL: addresses are offsets in their section */
	size_t names;     /* index of the section with section names */

	/* .hip_fatbin of any type; .hipFatBinSegment and .rocm_kpack_ref with bytes */
	struct kp_elf_section fatbin, segment, marker;

	size_t wrappers_cap;
	uint64_t scanned_bytes, relocs_bytes; /* so far, see kp_elf_account */
};

typedef kpack_error_t kp_elf_section_fn(struct kp_elf_reader *r, size_t index,
					const GElf_Shdr *sh, struct kpackx_error *why);

/* Call FN for every section until one fails. */
kpack_error_t kp_elf_each_section(struct kp_elf_reader *r, kp_elf_section_fn *fn,
				  struct kpackx_error *why);

/* INVALID_FORMAT unless the bytes of SH are in the file and in the address space. */
kpack_error_t kp_elf_check_section(const struct kp_elf_reader *r, const char *name,
				   const GElf_Shdr *sh, struct kpackx_error *why);

/*
 * Add the size of SH, which was checked, to *TOTAL.  INVALID_FORMAT: the total exceeds
 * the file's size.  Otherwise many headers over the same bytes would cost unbounded time.
 */
kpack_error_t kp_elf_account(const struct kp_elf_reader *r, const char *name,
			     const GElf_Shdr *sh, uint64_t *total,
			     struct kpackx_error *why);

/*
 * Fill R->out with the wrappers, or words that look like wrappers, by address; their
 * pointers are not resolved yet.
 */
kpack_error_t kp_elf_find_wrappers(struct kp_elf_reader *r, struct kpackx_error *why);

/*
 * Drop the wrappers found by scanning whose pointer does not lead into the section that
 * it must point to.
 */
void kp_elf_drop_strays(struct kp_elf_reader *r);

/* Resolve the pointer of every wrapper that has a relocation. */
kpack_error_t kp_elf_relocate(struct kp_elf_reader *r, struct kpackx_error *why);

#endif
