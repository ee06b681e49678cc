/* SPDX-License-Identifier: MIT */
/* The keys of a table of contents that belong to a binary, found without walking it. */
#ifndef KP_CORE_API_KERNEL_LIST_H
#define KP_CORE_API_KERNEL_LIST_H

#include "core/toc/toc.h"

struct kp_kernel_list {
	struct kp_span *keys; /* the caller frees; NULL when there are none */
	size_t n, cap;
};

/*
 * The keys that have an entry for architecture number ARCH and are NAME itself, NAME with
 * "#n", or below "NAME/"; all such keys where NAME is empty.  Bytewise, but numbers by their
 * value.  false: out of memory.
 */
bool kp_kernel_list_make(const struct kp_toc *toc, struct kp_span name, uint16_t arch,
			 struct kp_kernel_list *out);

#endif
