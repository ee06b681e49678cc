/* SPDX-License-Identifier: MIT */
/*
 * Host binaries of Windows (PE): reading the headers of any, and editing those of PE32+.
 *
 *	pe.c    headers, sections, and the words that base relocations name
 *	edit.c  open, change, place, write; core/host/convert_pe.c has the conversions
 */
#ifndef KP_CORE_PE_PE_H
#define KP_CORE_PE_PE_H

#include "core/base/errors.h"
#include "core/base/file.h"

/* The sections of device code and of wrappers; linkers cut off longer names, or keep them. */
#define KP_PE_FATBIN ".hip_fat"
#define KP_PE_WRAPPERS ".hipFatB"
/* What a conversion adds: the marker, and the recipe that gives the original back. */
#define KP_PE_MARKER ".kpackrf"
#define KP_PE_LAYOUT ".kpackrc"

enum { KP_PE_X86_64 = 0x8664, KP_PE_ARM64 = 0xaa64 };

/* Flags of sections. */
enum {
	KP_PE_DATA = 0x40,
	KP_PE_DISCARDABLE = 0x2000000,
	KP_PE_EXECUTE = 0x20000000,
	KP_PE_READ = 0x40000000,
};

/* Data directories; that of the signature has a file offset in place of an address. */
enum { KP_PE_SIGNATURE = 4, KP_PE_RELOCS = 5, KP_PE_DEBUG = 6, KP_PE_DIRECTORIES = 16 };

/* Addresses are relative to the image's base (RVA), unless they are called vaddr. */
struct kp_pe_section {
	char name[20]; /* longer ones are cut off */
	uint32_t memory, rva;
	uint32_t size, offset; /* in the file: SizeOfRawData, PointerToRawData */
	uint32_t flags;
	bool has_rows; /* of relocations or lines, which only objects should have */
};

struct kp_pe {
	uint64_t at; /* of "PE\0\0" */
	uint16_t machine;
	bool library; /* a DLL */
	bool fixed;   /* cannot be loaded at another address */
	/* The symbols and their string table; 0, 0: none. */
	uint64_t symbols, symbols_end;
	uint64_t table; /* of the section headers */
	struct kp_pe_section *sections;
	size_t n;

	/* A whole header of PE32+; if not, what follows is zeros. */
	bool wide;
	uint64_t base;
	uint32_t section_align, file_align, image_size, headers_size, checksum;
	struct {
		uint32_t rva, size;
	} directories[KP_PE_DIRECTORIES];
};

/* Whether HEAD (KP_HEAD_SIZE bytes) begins a PE file; and one of PE32+. */
bool kp_pe_probe(struct kp_span head);
bool kp_pe_host_probe(struct kp_span head);

/*
 * Read the headers.  Sections and directories may lead anywhere.
 * INVALID_FORMAT: a header passes the end of the file.
 */
kpack_error_t kp_pe_open(const struct kp_source *src, struct kp_pe *out,
			 struct kpackx_error *why);
void kp_pe_fini(struct kp_pe *pe);

/* Bytes of S that are in the file and in memory; a linker can round up either. */
uint32_t kp_pe_bytes(const struct kp_pe_section *s);
/* Find SIZE bytes at RVA in the file; false: they are not in the bytes of one section. */
bool kp_pe_find(const struct kp_pe *pe, uint32_t rva, uint64_t size, uint64_t *offset);

/* Called with the address of a word of SIZE bytes that the loader changes; 0: a part of one. */
typedef kpack_error_t kp_pe_reloc_fn(void *arg, uint32_t rva, unsigned size,
				     struct kpackx_error *why);
/*
 * Call FN for each base relocation, in the order of their blocks.
 * INVALID_FORMAT: the directory or a block is not in one section.
 */
kpack_error_t kp_pe_each_reloc(const struct kp_source *src, const struct kp_pe *pe,
			       kp_pe_reloc_fn *fn, void *arg, struct kpackx_error *why);

#endif
