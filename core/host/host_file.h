/* SPDX-License-Identifier: MIT */
/*
 * Reading host binaries, as far as fat binaries need it: where the device code and the
 * wrappers are, and the address that each wrapper points to at run time.  They are ELF files, or
 * Windows's PE32+, which differ in the names of sections, and whose relocations are all as RELR.
 */
#ifndef KP_CORE_HOST_HOST_FILE_H
#define KP_CORE_HOST_HOST_FILE_H

#include <elf.h>
#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/format/sections.h"
#include "marker.h"

#define KP_FATBIN_SECTION ".hip_fatbin"
/* What a conversion adds: the marker, and the recipe that gives the original back. */
#define KP_MARKER_SECTION ".rocm_kpack_ref"
#define KP_LAYOUT_SECTION ".rocm_kpack_layout"

/* How a wrapper's pointer is stored and relocated. */
enum kp_pointer_source {
	KP_POINTER_IN_PLACE, /* stored in the file (non-PIE) */
	KP_POINTER_RELATIVE, /* RELATIVE relocation: RELA addend, or REL in place */
	KP_POINTER_RELR,   /* stored in place, rebased by .relr.dyn or base relocations */
	KP_POINTER_SYMBOL, /* symbol relocation: symbol value + addend */
	KP_POINTER_UNRESOLVED /* a relocation to something outside this file */
};

struct kp_host_wrapper {
	struct kp_wrapper fields; /* as stored */
	uint64_t vaddr;           /* virtual address of the wrapper */
	uint64_t offset;          /* file offset of the wrapper */
	enum kp_pointer_source source;
	uint64_t target; /* virtual address it points to at run time, without load bias */
	/* File offset and bytes of its pointer's relocation; size 0: none, or RELR.
	 * 16 bytes: Elf64_Rel, with the addend in place; 24: Elf64_Rela. */
	uint64_t reloc_offset;
	unsigned reloc_size;
	uint64_t symbol; /* SYMBOL: value of the symbol */
};

/* A section with bytes in the file; size 0: there is none. */
struct kp_host_part {
	uint64_t vaddr, offset, size;
	const char *name; /* as such files call it, also if there is none */
};

struct kp_host {
	bool pe;          /* a PE; type and machine are what they would be in an ELF */
	uint16_t type;    /* ET_EXEC, ET_DYN, ET_REL ... */
	uint16_t machine; /* EM_X86_64 ... */

	bool has_fatbin;    /* the file has a .hip_fatbin with bytes */
	bool fatbin_nobits; /* .hip_fatbin has no bytes: converted, or debug info */
	struct kp_host_part fatbin, marker, layout;

	/*
	 * In the order of .hipFatBinSegment.  If a linked file lacks that section, but
	 * has .hip_fatbin, the wrappers are found by scanning: every aligned word of
	 * allocated data that is HIPF or HIPK, followed by version 1 and a pointer into
	 * .hip_fatbin (HIPK: into .rocm_kpack_ref), in order of address.  Other data can
	 * look like that.
	 */
	struct kp_host_wrapper *wrappers;
	size_t n_wrappers;
	bool wrappers_scanned; /* the wrappers were found by scanning */
};

/*
 * Whether HEAD (KP_HEAD_SIZE bytes) begins a PE32+, or an ELF64 little-endian, not AMDGPU or
 * CUDA, of which 20 bytes are enough.
 */
bool kp_host_probe(struct kp_span head);

/*
 * Read the file open at FD (SIZE bytes).  A file without .hip_fatbin is a success with
 * has_fatbin false.  Sanitizer padding (zero words) between wrappers is skipped.
 *
 * INVALID_FORMAT   headers, sections or relocations that contradict the file; a word in
 *                  .hipFatBinSegment that is neither wrapper nor padding; more than
 *                  KP_WRAPPERS_MAX wrappers and words that look like wrappers
 * NOT_IMPLEMENTED  another ELF class or byte order; two sections of one name
 *
 * A machine whose relocation types are unknown is not a failure: its relocated pointers
 * are UNRESOLVED.
 */
kpack_error_t kp_host_read(int fd, uint64_t size, struct kp_host *out,
			   struct kpackx_error *why);
void kp_host_fini(struct kp_host *host);

/*
 * List the sections of the host binary SRC, as kp_sections_read does those of an ELF.  Those of a PE
 * are all loaded, and may pass the end of SRC.
 */
kpack_error_t kp_host_sections(const struct kp_source *src, struct kp_sections *out,
			       struct kpackx_error *why);

/* The wrapper whose pointer is at VADDR, or NULL. */
struct kp_host_wrapper *kp_host_wrapper_at(const struct kp_host *host, uint64_t vaddr);

/* ---- for the editor, too ---- */

/*
 * Read and check the headers of a host ELF, whose sections may pass its end.
 * INVALID_FORMAT: not an ELF file, or its tables or section names pass its end or the limits.
 * NOT_IMPLEMENTED: another class or byte order.
 */
kpack_error_t kp_elf_open(int fd, uint64_t size, struct kp_sections *out,
			  struct kpackx_error *why);

/* What is known of a machine. */
struct kp_elf_machine {
	uint16_t machine;
	uint32_t relative, absolute; /* relocation types */
	uint64_t page; /* the largest that its kernels use; 0: its files are not edited */
};

/* NULL: nothing is known of it. */
const struct kp_elf_machine *kp_elf_machine_of(uint16_t machine);

/* A row of REL or RELA, or a word that RELR names: the dynamic linker changes a word. */
struct kp_elf_reloc {
	uint64_t vaddr;  /* of the word */
	uint64_t offset; /* file offset of the row */
	unsigned size;   /* of the row; 0: RELR */
	uint32_t type, symbol;
	uint64_t addend; /* RELA */
};

typedef kpack_error_t kp_elf_reloc_fn(void *arg, const struct kp_elf_reloc *reloc,
				      struct kpackx_error *why);

/* Whether S has relocations. */
bool kp_elf_is_reloc(const struct kp_section *s);
/*
 * Call FN for each relocation in TABLE, a section of FILE that has some and was checked.
 * INVALID_FORMAT: its rows have an impossible size.
 */
kpack_error_t kp_elf_each_reloc(const struct kp_source *file,
				const struct kp_section *table, kp_elf_reloc_fn *fn,
				void *arg, struct kpackx_error *why);

#endif
