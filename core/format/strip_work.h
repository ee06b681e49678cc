/* SPDX-License-Identifier: MIT */
/* Stripping in steps: strip.c reads and chooses, strip_place.c decides the offsets. */
#ifndef KP_CORE_FORMAT_AMDGPU_STRIP_WORK_H
#define KP_CORE_FORMAT_AMDGPU_STRIP_WORK_H

#include "sections.h"
#include "strip.h"
#include "amdgpu_tails.h"

#define NO_SEGMENT SIZE_MAX

/* A section; its header in the input is item of the same number of `in`. */
struct strip_section {
	bool gone;
	uint32_t type;  /* in the output */
	size_t segment; /* the first in the file that has it, or NO_SEGMENT */
	size_t index;   /* in the output */
	uint64_t offset, size, align, entsize;
	size_t name; /* in `section_names` */
};

/* A segment, or the ELF header, or the program headers, which are placed like segments. */
struct strip_segment {
	Elf64_Phdr in; /* as it is in the file */
	size_t parent; /* a segment in which it begins, or NO_SEGMENT */
	uint64_t offset, filesz;
};

struct strip_symbol {
	Elf64_Sym sym;  /* st_name and st_shndx are not used */
	size_t name;    /* in the list of its string table */
	size_t section; /* in the input; 0: `reserved` */
	uint16_t reserved;
};

struct strip_work {
	enum kp_strip how;
	struct kp_source src;
	struct kp_sections in;
	struct strip_section *sections; /* `in.count` */
	struct strip_segment *segments; /* `n_segments`, then the two headers */
	size_t n_segments;

	size_t symtab, strtab, shstrtab; /* numbers of sections; 0: none */
	char *strings;                   /* of the input's symbol names */
	uint64_t strings_size;
	struct strip_symbol *symbols;
	size_t n_symbols;
	bool renumbered; /* symbols have other numbers than in the input */

	struct kp_tails symbol_names;  /* unless both are in one section */
	struct kp_tails section_names; /* of the sections that stay */
	uint64_t headers;              /* offset of the section headers in the output */
	size_t n_out;                  /* sections in the output, with number 0 */
	uint8_t *bytes;                /* that the output's pieces refer to */
};

/* The list of names that the symbols' names are in. */
static inline struct kp_tails *strip_symbol_names(struct strip_work *w)
{
	return w->strtab == w->shstrtab ? &w->section_names : &w->symbol_names;
}

/* Whether the section was inside the segment when both were read. */
bool strip_is_inside(const struct kp_section *s, const Elf64_Phdr *segment);

/* Find the parents of segments, and the segments of sections. */
void strip_find_parents(struct strip_work *w);

/* Decide all offsets; the sections' sizes are known. */
kpack_error_t strip_place(struct strip_work *w, struct kpackx_error *why);

#endif
