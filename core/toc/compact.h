/* SPDX-License-Identifier: MIT */
/* Letting go of what nobody asks of a table of contents that is in order. */
#ifndef KP_CORE_TOC_COMPACT_H
#define KP_CORE_TOC_COMPACT_H

#include "toc.h"

/*
 * Keep of the bytes only keys, metadata and what the table as a whole says: half of them.
 * Keys may lie within their metadata from then on, without a NUL behind them.  Before
 * anybody has borrowed anything.  A table with faults, which quote it, and one for
 * which there is no memory stay as they are.
 */
void kp_toc_compact(struct kp_toc *toc);

#endif
