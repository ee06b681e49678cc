/* SPDX-License-Identifier: MIT */
/*
 * Inside the reader of host ELF files: what its parts share.
 *
 *	elf.c          headers and sections
 *	elf_wrapper.c  where the wrappers are
 *	elf_reloc.c    where their pointers lead
 */
#ifndef KP_CORE_BINARY_INTERNAL_H
#define KP_CORE_BINARY_INTERNAL_H

#include <gelf.h>
#include "elf_file.h"
#include "core/base/file.h"

struct kp_elf_section {
	size_t index; /* 0: there is none */
	GElf_Shdr header;
};

/* What is needed while one file is read. */
struct kp_elf_reader {
	struct kp_source src;
	Elf *elf;
	struct kp_elf *out;
	bool relocatable; /* ET_REL: addresses are offsets in their section */
	size_t names;     /* index of the section of names */

	/* .hip_fatbin, of any type; .hipFatBinSegment and .rocm_kpack_ref with bytes */
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
 * Add the size of SH, which was checked, to *TOTAL.  INVALID_FORMAT: more than the file
 * has.  Many headers over the same bytes would else cost time without end.
 */
kpack_error_t kp_elf_account(const struct kp_elf_reader *r, const char *name,
			     const GElf_Shdr *sh, uint64_t *total,
			     struct kpackx_error *why);

/* Fill OUT with the wrappers, or what may be ones, by address; none is resolved. */
kpack_error_t kp_elf_find_wrappers(struct kp_elf_reader *r, struct kpackx_error *why);

/*
 * Of wrappers that were found by scanning, keep those with a pointer that leads where it
 * must.
 */
void kp_elf_drop_strays(struct kp_elf_reader *r);

/* Resolve the pointer of every wrapper that has a relocation. */
kpack_error_t kp_elf_relocate(struct kp_elf_reader *r, struct kpackx_error *why);

#endif
