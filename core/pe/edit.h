/* SPDX-License-Identifier: MIT */
/*
 * Editing a PE32+ file: open, change, place, write.
 *
 *	kp_pe_edit_open -> kp_pe_edit_fill, kp_pe_edit_drop, kp_pe_edit_add ... ->
 *	kp_pe_edit_place -> kp_pe_edit_patch -> kp_pe_edit_write
 *
 * Addresses never change; sections are added behind all others, in memory.  In the file, what is
 * behind a section whose size changes moves, because only the headers and the debug directory
 * name places in the file.  But bytes behind the sections that nothing names may be found by their
 * offset: a file that has some is pinned, that is, nothing moves in it, and what is added goes
 * into a gap.
 */
#ifndef KP_CORE_PE_EDIT_H
#define KP_CORE_PE_EDIT_H

#include "pe.h"

/* A section of the new file. */
struct kp_pe_part {
	struct kp_pe_section s; /* `offset` is set by kp_pe_edit_place */
	uint64_t from;          /* its bytes in the input; 0: none */
	uint32_t room;          /* so many */
	bool is_new;            /* it has other bytes: */
	struct kp_span bytes;   /* these, borrowed; or what FILL writes */
	kpack_error_t (*fill)(void *arg, struct kp_outfile *out, uint64_t offset,
			      struct kpackx_error *why);
	void *fill_arg;
};

/* New values for bytes of the input. */
struct kp_pe_patch {
	uint64_t from;
	uint8_t size, bytes[24];
};

struct kp_pe_edit {
	struct kp_source file;
	struct kp_pe in;
	struct kp_pe_part *parts; /* in order of the table, which is that of addresses */
	size_t n, dropped; /* dropped: of the input, those at the end of the table */
	struct kp_pe_patch *patches;
	size_t n_patches, patches_cap;
	uint64_t tail, tail_end; /* bytes behind all sections, but for the signature */
	bool pinned;
	/* Set by kp_pe_edit_place. */
	uint32_t headers_size;
	uint64_t tail_to, size;
};

/*
 * Read and check the file at FD.  OUT, zeros or an edit that is given up, is replaced.
 * NOT_IMPLEMENTED: an unsupported machine, alignment or order of sections; it is signed, unless
 * UNSIGN.  INVALID_FORMAT: sections that do not fit the file.
 */
kpack_error_t kp_pe_edit_open(int fd, uint64_t size, bool unsign, struct kp_pe_edit *out,
			      struct kpackx_error *why);
void kp_pe_edit_fini(struct kp_pe_edit *ed); /* accepts a zeroed one */

/* The part whose name begins with NAME, or NULL. */
struct kp_pe_part *kp_pe_edit_find(const struct kp_pe_edit *ed, const char *name);

/* Let PART have SIZE bytes in the file, 0 or those that FILL writes; in memory zeros follow. */
void kp_pe_edit_fill(struct kp_pe_edit *ed, struct kp_pe_part *part, uint32_t size,
		     kpack_error_t (*fill)(void *, struct kp_outfile *, uint64_t,
					   struct kpackx_error *),
		     void *arg);
/* Remove the section NAME, if it is the last one, or none.  NOT_IMPLEMENTED: others follow it. */
kpack_error_t kp_pe_edit_drop(struct kp_pe_edit *ed, const char *name,
			      struct kpackx_error *why);
/* Add a section; BYTES are borrowed.  NOT_IMPLEMENTED: there is one; or no room in memory. */
kpack_error_t kp_pe_edit_add(struct kp_pe_edit *ed, const char *name, uint32_t flags,
			     struct kp_span bytes, struct kpackx_error *why);

/* Decide all places in the new file.  NOT_IMPLEMENTED: no room for the headers of sections. */
kpack_error_t kp_pe_edit_place(struct kp_pe_edit *ed, struct kpackx_error *why);

/* Replace SIZE bytes at input offset FROM, which is in a section. */
kpack_error_t kp_pe_edit_patch(struct kp_pe_edit *ed, uint64_t from, const void *bytes,
			       size_t size, struct kpackx_error *why);

/*
 * List which bytes of the input the placed file has where, ascending and without bytes in common.
 * The caller frees *OUT.
 */
kpack_error_t kp_pe_edit_moves(struct kp_pe_edit *ed, struct kp_move **out, size_t *n,
			       struct kpackx_error *why);
/* Write the placed file to OUT, which is empty. */
kpack_error_t kp_pe_edit_write(struct kp_pe_edit *ed, struct kp_outfile *out,
			       struct kpackx_error *why);

#endif
