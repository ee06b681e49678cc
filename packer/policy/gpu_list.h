/* SPDX-License-Identifier: MIT */
/* The GPUs that a policy is for, as a list that is the same text for the same GPUs. */
#ifndef PACKER_POLICY_GPU_LIST_H
#define PACKER_POLICY_GPU_LIST_H

#include <stdbool.h>
#include "core/base/errors.h"

/*
 * Set *OUT to the GPUs of LIST, sorted and separated by commas, on the heap.  With "auto"
 * they are also this machine's, by TOPOLOGY (NULL: the system's), and those of EARLIER, an
 * earlier result or NULL: a GPU that is only missing now keeps its code.  *GONE gets these
 * on the heap, or NULL.  ARCH_NOT_FOUND: there is no GPU at all.
 */
kpack_error_t gpu_list_make(const char *list, const char *topology, const char *earlier,
			    char **out, char **gone, struct kpackx_error *why);

/* Whether the list has GPU, of SIZE bytes. */
bool gpu_list_has(const char *list, const char *gpu, size_t size);
/* Whether B has all GPUs of A. */
bool gpu_list_covers(const char *b, const char *a);
/* The GPUs that both lists have, on the heap; "-": none. */
char *gpu_list_common(const char *a, const char *b);

#endif
