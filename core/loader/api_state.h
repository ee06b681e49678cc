/* SPDX-License-Identifier: MIT */
/*
 * What the public calls keep of an open archive, without a lock: answers that stay the same
 * until it is closed, and for each thread the reason of its last failed call.
 */
#ifndef KP_CORE_LOADER_API_STATE_H
#define KP_CORE_LOADER_API_STATE_H

#include <stdatomic.h>
#include "core/archive/archive.h"

/* Attach the state to A, once; it ends with A.  OUT_OF_MEMORY. */
kpack_error_t kp_api_attach(struct kpack_archive *a, struct kpackx_error *why);

/* --- answers -------------------------------------------------------------------------- */

/* The architectures that the archive declares, followed by NULL. */
kpack_error_t kp_cached_arches(struct kpack_archive *a, const char ***arches,
			       struct kpackx_error *why);

/* As kpack_list_kernels. */
kpack_error_t kp_cached_kernels(struct kpack_archive *a, struct kp_span name,
				struct kp_span arch, const char ***names, size_t *count,
				struct kpackx_error *why);

/* As kpack_get_kernel_metadata, for entry number ENTRY. */
kpack_error_t kp_cached_metadata(struct kpack_archive *a, size_t entry, const char **json,
				 size_t *size, struct kpackx_error *why);

/* --- reasons of failures ---------------------------------------------------------------- */

struct kp_thread_error;

enum { KP_LAST_ERROR_LISTS = 16 };

struct kp_last_errors {
	uint64_t number; /* of these lists; never reused */
	_Atomic(struct kp_thread_error *) lists[KP_LAST_ERROR_LISTS];
	atomic_uint count;
};

struct kp_last_errors *kp_api_errors(const struct kpack_archive *a);

void kp_last_errors_init(struct kp_last_errors *l);
void kp_last_errors_fini(struct kp_last_errors *l);

/*
 * Keep TEXT as the reason why this thread's call failed.  L is NULL for calls that have
 * no archive yet.  If no node can be made, thread-local memory keeps the text, only for
 * the L of the thread's last such failure.
 */
void kp_last_errors_note(struct kp_last_errors *l, const char *text);

/* Return this thread's last text, or ""; valid until the thread's next note on L. */
const char *kp_last_errors_text(const struct kp_last_errors *l);

#endif
