/* SPDX-License-Identifier: MIT */
/*
 * Editing an ELF file through its tables: open, change, place, write.
 *
 *	kp_edit_open -> kp_edit_cut or kp_edit_fill, kp_edit_add_section, ... ->
 *	kp_edit_place -> kp_edit_patch, for bytes that need addresses -> kp_edit_write
 *
 * Mapped bytes never change their address; only their file offsets are decided again.
 * The file consists of: chunks (the bytes that PT_LOADs map); the additions (the marker,
 * and the program headers if they need a new place); sections that are not mapped,
 * including the section names; the section headers; and bytes that no table names, which
 * keep their offset, because a program may find its data by it.
 *
 *	edit.c        opening, and the tables
 *	edit_cut.c    removing bytes and additions, and putting bytes back
 *	edit_place.c  all places in the new file
 *	edit_write.c  writing, and which bytes move where
 *
 * Internal to this folder: convert.c has the conversions.
 */
#ifndef KP_CORE_HOST_EDIT_H
#define KP_CORE_HOST_EDIT_H

#include "convert.h"
#include "core/pe/edit.h"

/* Bytes of the file that a PT_LOAD maps. */
struct kp_edit_chunk {
	uint64_t from; /* offset in the input */
	uint64_t size;
	uint64_t vaddr;
	uint64_t to;    /* offset in the output; set by kp_edit_place */
	size_t segment; /* index of its segment; chunks of one segment stay together */
	bool made;      /* its bytes are not in the input: ed->fill writes them */
	bool moves;     /* a section before it was cut or filled */
	/* bytes of the file behind it, up to the next page, that have others */
	uint64_t used;
	bool page_before, page_after; /* shares no page of the file with that neighbour */
};

struct kp_edit_segment {
	Elf64_Phdr h;
	uint64_t from; /* p_offset in the input */
};

struct kp_edit_section {
	Elf64_Shdr h; /* sh_name and sh_offset are set by kp_edit_place */
	const char *name;
	size_t index; /* in the input; 0 for new sections and the null section */
	bool is_new;
	struct kp_span bytes; /* content of a new section, borrowed */
	uint64_t from;        /* sh_offset in the input */
};

/*
 * This section covers program headers that are not next to the ELF header, because tools
 * that copy a file section by section (dwz, eu-strip) would lose them.
 */
#define KP_TABLE_SECTION ".rocm_kpack_phdr"

struct kp_edit_range {
	uint64_t from, size;
};

/* The sizes of the fields of headers, for kp_edit_swap. */
#define KP_EDIT_EHDR "11111111111111112248884222222"
#define KP_EDIT_PHDR "44888888"
#define KP_EDIT_SHDR "4488884488"

/* New values for bytes of the input. */
struct kp_edit_patch {
	uint64_t from; /* offset in the input */
	uint8_t size, bytes[24];
};

struct kp_edit {
	int fd;
	uint64_t size;
	Elf64_Ehdr h;  /* the output's once it is placed */
	uint64_t page; /* largest page size of the machine */

	struct kp_edit_segment *segments; /* in order of the table */
	size_t n_segments;
	struct kp_edit_section *sections; /* [0] is the null section */
	size_t n_sections;
	struct kp_edit_chunk
		*chunks; /* by address, which is their order in the file, too */
	size_t n_chunks;
	struct kp_edit_patch *patches;
	size_t n_patches, patches_cap;

	kp_convert_fill_fn *fill;
	void *fill_arg;
	bool trimmed; /* the addresses behind the made chunk's segment were given up */
	/*
	 * The place of the section that was cut stays in its segment and in the file, so
	 * that nothing moves: what is added can be there.  Set before or by kp_edit_cut.
	 */
	bool whole;

	size_t names;       /* index of the section of section names */
	uint64_t old_names; /* bytes of that section that are kept */
	/* Bytes that no table names, in order.  Zeros are not kept, but at the file's end. */
	struct kp_edit_range *kept;
	size_t n_kept;
	uint64_t end_zeros; /* zeros that end the file */
	/* 0, or the end of the section headers, behind which kept bytes end the file */
	uint64_t headers_end;
	uint64_t out_size; /* set by kp_edit_place */

	struct kp_sections in; /* the input's, with their names */
	Elf64_Shdr *old_sections;
	Elf64_Phdr *old_segments;
};

/* ---- edit.c ---- */

/*
 * Read and check the file, and find the bytes that no table names.  OUT, zeros or an edit that is
 * given up, is replaced.  NOT_IMPLEMENTED: an
 * unsupported ELF type, machine or order of segments.  INVALID_FORMAT: tables that do not fit
 * the file.
 */
kpack_error_t kp_edit_open(int fd, uint64_t size, struct kp_edit *out,
			   struct kpackx_error *why);
void kp_edit_fini(struct kp_edit *ed); /* accepts a zeroed one */

/* Turn the fields of a header from the file's byte order to this machine's, or back. */
void kp_edit_swap(void *row, const char *sizes);
/* Return the end of kept bytes in [AT, AT + SIZE), or 0 if there are none. */
uint64_t kp_edit_kept_end(const struct kp_edit *ed, uint64_t at, uint64_t size);
/* Return the index of the section NAME, or 0, the null section. */
size_t kp_edit_find(const struct kp_edit *ed, const char *name);
/* Return the index of the PT_LOAD that maps [VADDR, VADDR + SIZE), or -1. */
ptrdiff_t kp_edit_load_of(const struct kp_edit *ed, uint64_t vaddr, uint64_t size);
/*
 * Return the largest page size with which a segment can be mapped.  No other segment may
 * share such a page of the file.
 */
uint64_t kp_edit_page(const struct kp_edit *ed, size_t segment);
/* Return the address to which no bytes of the file are mapped from VADDR on in SEGMENT. */
uint64_t kp_edit_gap_end(const struct kp_edit *ed, size_t segment, uint64_t vaddr);
/* Return the address of the next PT_LOAD after SEGMENT: the end of its free space. */
uint64_t kp_edit_free_until(const struct kp_edit *ed, size_t segment);

/* Change the table of program headers; the chunks' segment indexes follow. */
void kp_edit_insert_segment(struct kp_edit *ed, size_t at, struct kp_edit_segment s);
void kp_edit_remove_segment(struct kp_edit *ed, size_t at);
/* Change the table of chunks. */
void kp_edit_insert_chunk(struct kp_edit *ed, size_t at, struct kp_edit_chunk c);
void kp_edit_remove_chunk(struct kp_edit *ed, size_t at);
void kp_edit_mark_moves(struct kp_edit *ed, size_t first); /* all from FIRST on */

/*
 * Add a section; with the flag SHF_ALLOC, it is mapped in a read-only segment of ours, or in the
 * place of the section that was cut.  NAME and BYTES must live until kp_edit_fini.
 * NOT_IMPLEMENTED: a section NAME already exists.
 */
kpack_error_t kp_edit_add_section(struct kp_edit *ed, const char *name, uint64_t flags,
				  struct kp_span bytes, struct kpackx_error *why);
/* Remove a section from the table, if there is one; higher indexes decrease by one. */
void kp_edit_drop_section(struct kp_edit *ed, const char *name);

/* Replace SIZE bytes at input offset FROM, when the file is written. */
kpack_error_t kp_edit_patch(struct kp_edit *ed, uint64_t from, const void *bytes,
			    size_t size, struct kpackx_error *why);

/* ---- edit_cut.c ---- */

/*
 * NOT_IMPLEMENTED: the dynamic linker would point a word other than the wrappers of HOST
 * into section FATBIN, or change a word in it.  Addresses that a program computes, or
 * that are part of code with fixed addresses, are not detected.
 */
kpack_error_t kp_dangling_check(const struct kp_edit *ed, size_t fatbin,
				const struct kp_host *host, struct kpackx_error *why);

/*
 * Remove a section's bytes from the file: it becomes NOBITS, with its address and size.
 * NOT_IMPLEMENTED: the section is not mapped as a whole, or something else uses its
 * bytes.
 */
kpack_error_t kp_edit_cut(struct kp_edit *ed, size_t section, struct kpackx_error *why);
/* The reverse: FILL writes the bytes of a NOBITS section, which keeps its size. */
kpack_error_t kp_edit_fill(struct kp_edit *ed, size_t section, kp_convert_fill_fn *fill,
			   void *arg, struct kpackx_error *why);

/* Remove what an earlier kp_edit_place added for the program headers. */
void kp_edit_drop_table(struct kp_edit *ed);
/*
 * As kp_edit_drop_table, and drop the marker and free its place.  NOT_IMPLEMENTED:
 * neither has it a segment of ours, nor is it in the place of .hip_fatbin.
 */
kpack_error_t kp_edit_drop_marker(struct kp_edit *ed, struct kpackx_error *why);

/* ---- edit_place.c, edit_write.c ---- */

/* Decide all addresses and offsets; mapped sections get lower indexes than the others. */
kpack_error_t kp_edit_place(struct kp_edit *ed, struct kpackx_error *why);

/* Write the placed file to OUT, which is empty. */
kpack_error_t kp_edit_write(const struct kp_edit *ed, struct kp_outfile *out,
			    struct kpackx_error *why);
/*
 * List which bytes of the input the placed file will have where, ascending and without bytes in
 * common.  The caller frees *OUT.
 */
kpack_error_t kp_edit_moves(const struct kp_edit *ed, struct kp_move **out, size_t *n,
			    struct kpackx_error *why);

/* ---- convert_pe.c: the plans of convert.c for PE files ---- */

/*
 * Plan the file with a marker and, unless it is empty, RECIPE.  NOT_IMPLEMENTED: it would become
 * longer; something other than the wrappers leads into the device code that goes; it is signed.
 */
kpack_error_t kp_pe_plan_marked(int fd, uint64_t size, const struct kp_fatbin *fat,
				const struct kp_convert_options *options,
				struct kp_span recipe, struct kp_pe_edit *ed,
				struct kpackx_error *why);
/* Plan the file with other contents of the section, and without a marker. */
kpack_error_t kp_pe_plan_fat(int fd, uint64_t size, const struct kp_fatbin *fat,
			     const struct kp_restore_options *options,
			     struct kp_pe_edit *ed, struct kpackx_error *why);

#endif
