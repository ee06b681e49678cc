/* SPDX-License-Identifier: MIT */
/* Unknown pairs of a table of contents: noted while parsing, found by entry later. */
#ifndef KP_CORE_TOC_UNKNOWN_H
#define KP_CORE_TOC_UNKNOWN_H

#include "toc_parser.h"

/*
 * Note that the pair from START to the cursor is unknown.  RUN has its owner; for an
 * entry, the offset of its key, the number of entries before it, and, once known, its
 * arch.
 */
bool kp_toc_more_add(struct kp_toc_parser *p, struct kp_toc_more *list,
		     struct kp_more_run run, size_t start);

/*
 * After sorting entries: replace key offsets by key numbers, and sort the runs likewise.
 */
void kp_toc_more_index(struct kp_toc *toc);

#endif
