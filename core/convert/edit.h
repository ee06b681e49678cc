/* SPDX-License-Identifier: MIT */
/*
 * An ELF file's tables as something to edit: opened, changed, placed, written.
 *
 *	kp_edit_open -> kp_edit_cut or kp_edit_fill, kp_edit_add_section, ... ->
 *	kp_edit_place -> kp_edit_patch, where addresses had to be known -> kp_edit_write
 *
 * What is mapped never changes its address; only where bytes stand in the file is
 * decided anew.  The file consists of chunks (what PT_LOADs map), then what is added
 * (marker, and the program headers where they need a new place), then sections that
 * are not mapped, their names, the section headers, and what was appended to the file.
 *
 * Internal to core: convert.c and restore.c.
 */
#ifndef KP_CORE_CONVERT_EDIT_H
#define KP_CORE_CONVERT_EDIT_H

#include <elf.h>
#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/span.h"

/* Bytes of the file that a PT_LOAD maps. */
struct kp_edit_chunk {
	uint64_t from; /* in the input */
	uint64_t size;
	uint64_t vaddr;
	uint64_t to;    /* in the output; set by place */
	size_t segment; /* the segment it belongs to; chunks of one segment stay together */
	bool made;      /* its bytes are not in the input: the filler writes them */
	bool moves;     /* something before it was cut or filled */
	bool page_before, page_after; /* shares no page of the file with its neighbour */
};

struct kp_edit_segment {
	Elf64_Phdr h;
	uint64_t from; /* p_offset in the input */
};

struct kp_edit_section {
	Elf64_Shdr h; /* sh_name and sh_offset are set by place */
	const char *name;
	size_t index; /* in the input; 0 for new ones and the null section */
	bool is_new, in_block;
	struct kp_span bytes; /* content of a new one, borrowed */
	uint64_t from;        /* sh_offset in the input */
};

/*
 * Tools that copy a file section by section (dwz, eu-strip) would lose program headers in the
 * block: this section covers them.  On a page put in front it covers what is free
 * behind them, or patchelf would put into that page what must be writable.
 */
#define KP_TABLE_SECTION ".rocm_kpack_phdr"

/* Write SIZE bytes at OFFSET of OUT: the content of a chunk that is made. */
typedef kpack_error_t kp_edit_fill_fn(void *arg, struct kp_outfile *out, uint64_t offset,
				      struct kpackx_error *why);

/* Bytes to be changed, where they stand in the input. */
struct kp_edit_patch {
	uint64_t from;
	uint8_t size, bytes[24];
};

struct kp_edit {
	int fd;
	uint64_t size;
	Elf64_Ehdr h;
	uint64_t page; /* largest page this machine may have */

	struct kp_edit_segment *segments; /* in order of the table */
	size_t n_segments;
	struct kp_edit_section *sections; /* [0] is the null section */
	size_t n_sections;
	struct kp_edit_chunk
		*chunks; /* by address; place wants them so in the file too */
	size_t n_chunks;
	struct kp_edit_patch *patches;
	size_t n_patches, patches_cap;

	kp_edit_fill_fn *fill;
	void *fill_arg;

	size_t names;       /* the section of section names */
	uint64_t old_names; /* bytes of it that are kept */
	uint64_t old_head;  /* bytes of a page in front that was dropped, or 0 */
	uint64_t tail_from, tail_size; /* bytes appended to the input */

	/* what place decides, beside the offsets in the tables; h is the output's then */
	uint64_t old_table; /* input offset of the program headers */
	size_t n_old_segments;
	uint64_t tail_to, out_size;

	void *libelf;
};

/*
 * Read and check.  NOT_IMPLEMENTED: an ELF type, machine, or order of segments we do not
 * change.  INVALID_FORMAT: tables that lie.
 */
kpack_error_t kp_edit_open(int fd, uint64_t size, struct kp_edit *out,
			   struct kpackx_error *why);
void kp_edit_close(struct kp_edit *ed); /* accepts a zeroed one */

/* Number of the section NAME, or 0. */
size_t kp_edit_find(const struct kp_edit *ed, const char *name);

/* The PT_LOAD that maps [VADDR, VADDR + SIZE), or -1. */
ptrdiff_t kp_edit_load_of(const struct kp_edit *ed, uint64_t vaddr, uint64_t size);

/* The table of program headers: chunks go with their segments. */
void kp_edit_insert_segment(struct kp_edit *ed, size_t at, struct kp_edit_segment s);
void kp_edit_remove_segment(struct kp_edit *ed, size_t at);
/* FROM comes to be number TO, which is not behind it. */
void kp_edit_move_segment(struct kp_edit *ed, size_t from, size_t to);

/* The table of chunks. */
void kp_edit_insert_chunk(struct kp_edit *ed, size_t at, struct kp_edit_chunk c);
void kp_edit_remove_chunk(struct kp_edit *ed, size_t at);
void kp_edit_mark_moves(struct kp_edit *ed, size_t first); /* and all behind it */

/* The page that nothing else may share with a segment: the largest it can be mapped with. */
uint64_t kp_edit_page(const struct kp_edit *ed, size_t segment);

/* Has it a PT_INTERP: does the kernel start it? */
bool kp_edit_is_program(const struct kp_edit *ed);

/*
 * Take a section's bytes out of the file: it becomes NOBITS, at its address and size.
 * NOT_IMPLEMENTED: it is not mapped as a whole, or others share its bytes.
 */
kpack_error_t kp_edit_cut(struct kp_edit *ed, size_t section, struct kpackx_error *why);

/* The reverse: bytes from FILL for a NOBITS section, SIZE as it has. */
kpack_error_t kp_edit_fill(struct kp_edit *ed, size_t section, kp_edit_fill_fn *fill,
			   void *arg, struct kpackx_error *why);

/* First address behind PT_LOAD SEGMENT that another one may use. */
uint64_t kp_edit_free_until(const struct kp_edit *ed, size_t segment);

/* Give a NOBITS section that has a segment of its own SIZE bytes; false: no room. */
bool kp_edit_widen(struct kp_edit *ed, size_t section, uint64_t size);

/*
 * Give a NOBITS section SIZE bytes of address space behind all segments, in a read-only
 * segment of its own.  NOT_IMPLEMENTED: there is no such space.
 */
kpack_error_t kp_edit_move_behind(struct kp_edit *ed, size_t section, uint64_t size,
				  struct kpackx_error *why);

/* Add a section; ALLOC has it mapped, in a segment of its own.  NAME and BYTES are borrowed until close. */
kpack_error_t kp_edit_add_section(struct kp_edit *ed, const char *name, bool alloc,
				  struct kp_span bytes, struct kpackx_error *why);
/* Numbers above it change. */
void kp_edit_drop_section(struct kp_edit *ed, size_t number);

/* Take away what an earlier place added for the program headers, a page in front too. */
void kp_edit_drop_table(struct kp_edit *ed);

/*
 * That, and the segment that maps SECTION and nothing else.  NOT_IMPLEMENTED: other
 * sections are in that segment too.
 */
kpack_error_t kp_edit_drop_block(struct kp_edit *ed, size_t section,
				 struct kpackx_error *why);

kpack_error_t kp_edit_patch(struct kp_edit *ed, uint64_t from, const void *bytes,
			    size_t size, struct kpackx_error *why);

/* Decide all addresses and offsets; allocated sections come to stand before the others. */
kpack_error_t kp_edit_place(struct kp_edit *ed, struct kpackx_error *why);

/* Write everything to OUT, which is empty. */
kpack_error_t kp_edit_write(const struct kp_edit *ed, struct kp_outfile *out,
			    struct kpackx_error *why);

/* Where the kernel before 5.18 looks for the program headers, and where they are. */
bool kp_edit_table_is_right(const struct kp_edit *ed);

#endif
