/* SPDX-License-Identifier: MIT */
/*
 * What an edited ELF file gets: a segment for the marker, and room for its program
 * headers, which are more than before.
 *
 * Inside kp_edit_place, in this order: plan, place when the offsets of all chunks are
 * known, settle when those of all PT_LOADs are.
 */
#ifndef KP_CORE_CONVERT_EDIT_ADDED_H
#define KP_CORE_CONVERT_EDIT_ADDED_H

#include "edit.h"

enum kp_table_place {
	KP_TABLE_IN_PLACE,
	KP_TABLE_BEHIND,
	KP_TABLE_HEAD,
	KP_TABLE_SPARSE
};

/* What is added: a PT_LOAD for the marker and one for the program headers. */
struct kp_added {
	enum kp_table_place table;
	size_t marker_segment, table_segment; /* SIZE_MAX: there is none */
	uint64_t marker_size, table_size;
	uint64_t bias; /* address of an offset in the file, as Linux before 5.18 has it */
};

static inline uint64_t kp_round_up(uint64_t n, uint64_t to)
{
	return (n + to - 1) / to * to;
}

static inline bool kp_is_mapped(const Elf64_Shdr *s)
{
	return (s->sh_flags & SHF_ALLOC) != 0;
}

/* Choose where the program headers go, and add segments and sections for it. */
kpack_error_t kp_added_plan(struct kp_edit *ed, struct kp_added *a,
			    struct kpackx_error *why);

/* Place what is added behind *CUR of the file, which becomes its end. */
kpack_error_t kp_added_place(struct kp_edit *ed, struct kp_added *a, uint64_t *cur,
			     struct kpackx_error *why);

/* Extend the first segment over a page in front; PT_PHDR says where the headers are. */
void kp_added_settle(struct kp_edit *ed, const struct kp_added *a);

#endif
