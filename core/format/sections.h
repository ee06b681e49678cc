/* SPDX-License-Identifier: MIT */
/*
 * Section headers of an ELF64 anywhere in a source: a host binary, an archive member, an
 * image.  Read only: core/host changes host binaries.
 */
#ifndef KP_CORE_FORMAT_SECTIONS_H
#define KP_CORE_FORMAT_SECTIONS_H

#include <elf.h>
#include "core/base/errors.h"
#include "core/base/file.h"

struct kp_section {
	const char *name; /* "": none */
	uint32_t type, link, info;
	uint64_t flags, addr, offset, size, entsize, align;
};

struct kp_sections {
	Elf64_Ehdr header;        /* decoded */
	struct kp_section *items; /* by index; [0], if it exists, is SHT_NULL */
	size_t count;
	char *names; /* owned */
	/* Where the ELF ends: after its headers, its sections and its segments. */
	uint64_t end;
	uint32_t stack_flags; /* of PT_GNU_STACK; without it the stack is executable */
};

/* True if HEAD begins a little-endian ELF64; *MACHINE (may be NULL) becomes e_machine. */
bool kp_elf_probe(struct kp_span head, uint16_t *machine);

/*
 * Set *END to the end of the little-endian ELF64 at the beginning of SRC: after its
 * headers, its sections and its segments.  SRC may have more bytes.  Allocates nothing.
 * INVALID_FORMAT: not such an ELF, or a header, section or segment passes the end of SRC.
 */
kpack_error_t kp_elf_extent(const struct kp_source *src, uint64_t *end,
			    struct kpackx_error *why);

/*
 * Read the headers of the little-endian ELF64 at the beginning of SRC.  Every section
 * with bytes (neither NULL nor NOBITS, nor one of the types that mean NOBITS in cubins)
 * must lie in SRC; segments need not, as in files with split-off debugging information.
 * INVALID_FORMAT: a header or section passes the end of SRC, or the names do not end in a
 * NUL.  On failure OUT is empty.
 */
kpack_error_t kp_sections_read(const struct kp_source *src, struct kp_sections *out,
			       struct kpackx_error *why);
/* As kp_sections_read, but sections other than that of the names may pass the end of SRC. */
kpack_error_t kp_sections_read_headers(const struct kp_source *src,
				       struct kp_sections *out, struct kpackx_error *why);
void kp_sections_fini(struct kp_sections *sections);

/* Return the first section named NAME, or of TYPE; or NULL. */
const struct kp_section *kp_sections_find(const struct kp_sections *sections,
					  const char *name);
const struct kp_section *kp_sections_first(const struct kp_sections *sections,
					   uint32_t type);

/*
 * Call FOUND for each symbol of TABLE, a section of type SHT_SYMTAB or SHT_DYNSYM, with its
 * row and its name; NULL: the row's name is outside of the names, which are NAMES_SIZE
 * bytes.  Names may overlap: whoever copies them counts the bytes.
 * INVALID_FORMAT: the names are not in SRC.  Otherwise FOUND's error.
 */
typedef kpack_error_t kp_symbol_fn(void *arg, const uint8_t *row, const char *name,
				   uint64_t names_size, struct kpackx_error *why);
kpack_error_t kp_symbols_each(const struct kp_source *src,
			      const struct kp_sections *sections,
			      const struct kp_section *table, kp_symbol_fn *found,
			      void *arg, struct kpackx_error *why);

/* True if HEAD begins an ELF of any class and byte order; sets its e_type and e_machine. */
bool kp_elf_any_probe(struct kp_span head, uint16_t *type, uint16_t *machine);

/* Whether a segment of the linked ELF of any class in SRC has a wrapper of HIP or CUDA. */
bool kp_elf_has_wrapper(const struct kp_source *src);

#endif
