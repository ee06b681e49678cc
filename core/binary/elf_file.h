/* SPDX-License-Identifier: MIT */
/*
 * Host ELF files through libelf, as far as fat binaries need: where the device
 * code lies, where the wrappers are, and where each wrapper really points.
 * libelf's answers are range-checked against the file before they are used.
 */
#ifndef KP_CORE_BINARY_ELF_FILE_H
#define KP_CORE_BINARY_ELF_FILE_H

#include "core/base/errors.h"
#include "marker.h"

#define KP_FATBIN_SECTION ".hip_fatbin"

/* How a wrapper's pointer is known. */
enum kp_pointer_source {
	KP_POINTER_IN_PLACE, /* stored in the file (non-PIE) */
	KP_POINTER_RELATIVE, /* addend of a RELATIVE relocation (RELA), or REL in place */
	KP_POINTER_RELR,     /* stored in place, rebased by .relr.dyn */
	KP_POINTER_SYMBOL,   /* symbol relocation: symbol value + addend */
	KP_POINTER_UNRESOLVED /* a relocation against something outside this file */
};

struct kp_elf_wrapper {
	struct kp_wrapper fields; /* as stored */
	uint64_t vaddr;           /* of the wrapper */
	uint64_t offset;          /* of the wrapper in the file */
	enum kp_pointer_source source;
	uint64_t target; /* virtual address it points to at run time, unbiased */
	/* Where the relocation of its pointer stands in the file; size 0: there is none, or
	 * it is RELR.  16 bytes: Elf64_Rel, the addend is in place; 24: Elf64_Rela. */
	uint64_t reloc_offset;
	unsigned reloc_size;
	uint64_t symbol; /* SYMBOL: value of the symbol */
};

struct kp_elf {
	uint16_t type;    /* ET_EXEC, ET_DYN, ET_REL ... */
	uint16_t machine; /* EM_X86_64 ... */

	bool has_fatbin;    /* there is a .hip_fatbin with bytes in the file */
	bool fatbin_nobits; /* there is one without bytes: converted, or split debug info */
	uint64_t fatbin_vaddr, fatbin_offset, fatbin_size;

	/*
	 * In the order they stand in .hipFatBinSegment.  Without that section, but with
	 * .hip_fatbin, in a linked file: every aligned word of allocated data that is
	 * HIPF or HIPK, version 1 and whose pointer leads into .hip_fatbin (HIPK: into
	 * .rocm_kpack_ref), by address.  Data can look like that and be no wrapper.
	 */
	struct kp_elf_wrapper *wrappers;
	size_t n_wrappers;
	bool wrappers_scanned; /* found that way */
};

/* Does HEAD (20 bytes or more) begin a host ELF: ELF64 little-endian, not AMDGPU or CUDA? */
bool kp_elf_host_probe(struct kp_span head);

/*
 * Read the ELF open at FD (SIZE bytes).  A file without .hip_fatbin is a success with
 * has_fatbin false.  Sanitizer padding (zero words) between wrappers is stepped over.
 *
 * INVALID_FORMAT   headers, sections or relocations that lie; a word in
 *                  .hipFatBinSegment that is neither wrapper nor padding; more than
 *                  KP_WRAPPERS_MAX of what is or could be one
 * NOT_IMPLEMENTED  an ELF class or byte order; two sections of one name
 *
 * A machine whose relocations are unknown is no failure: its relocated pointers are
 * UNRESOLVED.
 */
kpack_error_t kp_elf_read(int fd, uint64_t size, struct kp_elf *out,
			  struct kpackx_error *why);
void kp_elf_fini(struct kp_elf *elf);

#endif
