/* SPDX-License-Identifier: MIT */
/* The keys of a TOC that belong to a binary, found without walking the whole TOC. */
#ifndef KP_CORE_API_KERNEL_LIST_H
#define KP_CORE_API_KERNEL_LIST_H

#include "core/archive/toc.h"

struct kp_kernel_list {
	struct kp_span *keys; /* the caller frees; NULL: no keys */
	size_t n, cap;
};

/*
 * List the keys that have an entry for architecture number ARCH and are NAME itself, NAME
 * with "#n", or below "NAME/"; with an empty NAME all keys that have such an entry.  They
 * are sorted bytewise, but numbers by value.  false: out of memory.
 */
bool kp_kernel_list_make(const struct kp_toc *toc, struct kp_span name, uint16_t arch,
			 struct kp_kernel_list *out);

#endif
