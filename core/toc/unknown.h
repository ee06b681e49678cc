/* SPDX-License-Identifier: MIT */
/* What a table says that is not known: noted when it is read, found by entry later. */
#ifndef KP_CORE_TOC_UNKNOWN_H
#define KP_CORE_TOC_UNKNOWN_H

#include "parser.h"

/*
 * The pair from START to the cursor is not known: RUN says whose it is.  Of an entry: the
 * offset of its key, how many entries were read before it, and, once known, its arch.
 */
bool kp_toc_more_add(struct kp_toc_parser *p, struct kp_toc_more *list,
		     struct kp_more_run run, size_t start);

/* Entries are in order: bring what they say into that, with numbers of keys for offsets. */
void kp_toc_more_index(struct kp_toc *toc);

#endif
