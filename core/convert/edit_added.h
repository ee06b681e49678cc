/* SPDX-License-Identifier: MIT */
/*
 * Additions to an edited ELF file: a segment for the marker, and room for the program
 * headers, of which there are more than before.
 *
 * kp_edit_place calls kp_added_plan; then kp_added_place, when the offsets of all chunks
 * are known; then kp_added_settle, when the offsets of all PT_LOADs are known.
 */
#ifndef KP_CORE_CONVERT_EDIT_ADDED_H
#define KP_CORE_CONVERT_EDIT_ADDED_H

#include "edit.h"

/* Places for the program headers; edit_added.c says when each is used. */
enum kp_table_place {
	KP_TABLE_IN_PLACE,
	KP_TABLE_BEHIND,
	KP_TABLE_HEAD,
	KP_TABLE_SPARSE
};

/* The additions: a PT_LOAD for the marker and one for the program headers. */
struct kp_added {
	enum kp_table_place table;
	size_t marker_segment, table_segment; /* SIZE_MAX: none */
	uint64_t marker_size, table_size;
	uint64_t bias; /* address - file offset, as Linux before 5.18 computes it */
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

/* Place the additions after file offset *CUR; *CUR becomes their end. */
kpack_error_t kp_added_place(struct kp_edit *ed, struct kp_added *a, uint64_t *cur,
			     struct kpackx_error *why);

/* Extend the first segment over the page in front, if any, and set PT_PHDR. */
void kp_added_settle(struct kp_edit *ed, const struct kp_added *a);

#endif
