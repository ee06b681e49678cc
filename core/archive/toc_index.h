/* SPDX-License-Identifier: MIT */
/* Sorting a parsed table of contents, so that entries can be looked up in it. */
#ifndef KP_CORE_TOC_INDEX_H
#define KP_CORE_TOC_INDEX_H

#include "toc.h"

/*
 * Sort binaries by key and entries by arch, merge equal keys, drop all but the last of
 * equal architectures, and add the sentinel after the last binary.  A sorted table takes
 * only one pass.  OUT_OF_MEMORY.
 */
kpack_error_t kp_toc_index(struct kp_toc *toc, struct kpackx_error *why);

#endif
