/* SPDX-License-Identifier: MIT */
/* Freeing the parts of an indexed table of contents that are no longer needed. */
#ifndef KP_CORE_TOC_COMPACT_H
#define KP_CORE_TOC_COMPACT_H

#include "toc.h"

/*
 * Keep only the bytes of keys, metadata and the table's own fields, about half of all
 * bytes.  Afterwards a key may lie inside its metadata, without a NUL after it.  To be
 * called before anything is borrowed from the table.  A table with faults, whose texts
 * quote it, stays as it is, and so does the table when memory runs out.
 */
void kp_toc_compact(struct kp_toc *toc);

#endif
