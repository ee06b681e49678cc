/* SPDX-License-Identifier: MIT */
/*
 * Additions to an edited ELF file: the marker, and room for the program headers, of which
 * there may be more than before.
 *
 * kp_edit_place calls kp_added_plan; then kp_added_inside before each chunk, and
 * kp_added_place when the offsets of all chunks are known; then kp_added_settle, when the
 * offsets of all PT_LOADs are known.
 */
#ifndef KP_CORE_CONVERT_EDIT_ADDED_H
#define KP_CORE_CONVERT_EDIT_ADDED_H

#include "edit.h"

struct kp_added {
	bool apart;     /* the program headers have a new place, in our segment */
	bool in_gap;    /* the marker is in the place of the section that was cut */
	size_t segment; /* index of our PT_LOAD; SIZE_MAX: none, or it is placed */
	uint64_t marker_size, table_size;
	uint64_t bias; /* of the ELF header: address - file offset */
};

static inline uint64_t kp_round_up(uint64_t n, uint64_t to)
{
	return (n + to - 1) / to * to;
}

static inline bool kp_is_mapped(const Elf64_Shdr *s)
{
	return (s->sh_flags & SHF_ALLOC) != 0;
}

/* Choose a place for the program headers, and add the segments and sections needed. */
kpack_error_t kp_added_plan(struct kp_edit *ed, struct kp_added *a,
			    struct kpackx_error *why);

/*
 * Place our segment at the addresses of the section that was cut, if SEGMENT, whose bytes
 * come next in the file, at *CUR, follows them, and if they suffice.
 */
void kp_added_inside(struct kp_edit *ed, struct kp_added *a, size_t segment,
		     uint64_t *cur);

/* Place what is not placed yet, after file offset *CUR; *CUR becomes its end. */
kpack_error_t kp_added_place(struct kp_edit *ed, struct kp_added *a, uint64_t *cur,
			     struct kpackx_error *why);

/* Set PT_PHDR. */
void kp_added_settle(struct kp_edit *ed, const struct kp_added *a);

#endif
