/* SPDX-License-Identifier: MIT */
/* Bringing a parsed table of contents into order, and looking things up in it. */
#ifndef KP_CORE_TOC_INDEX_H
#define KP_CORE_TOC_INDEX_H

#include "toc.h"

/*
 * Sort binaries by key and entries by arch, merge equal keys, drop all but the last of
 * equal architectures, and put the sentinel behind the last binary.  A table that
 * is in order already costs one pass.
 */
kpack_error_t kp_toc_index(struct kp_toc *toc, struct kpackx_error *why);

#endif
