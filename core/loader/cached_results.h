/* SPDX-License-Identifier: MIT */
/*
 * Answers of an archive that stay the same until it is closed: lists of names, and
 * metadata as JSON.  An answer is made at the first request and published by one
 * compare-and-swap; if several threads make the same answer at once, one wins and the
 * others return its answer.  No call waits.
 */
#ifndef KP_CORE_LOADER_CACHED_RESULTS_H
#define KP_CORE_LOADER_CACHED_RESULTS_H

#include <stdatomic.h>
#include "core/archive/toc.h"
#include "core/base/errors.h"
#include "last_error.h"

/* An answer, or NULL before the first request. */
typedef _Atomic(void *) kp_cached;

struct kp_cached_results {
	kp_cached arches; /* const char *[] */
	/* Arrays with a kp_cached for each entry, made at the first request. */
	kp_cached lists; /* chains of lists, by hash */
	kp_cached texts; /* metadata of the entry */
};

struct kpack_archive;

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

/* Free all answers of an archive with ENTRIES entries. */
void kp_cached_results_fini(struct kp_cached_results *answers, size_t entries);

/*
 * Attach to A, once, what the public calls keep of an open archive: answers, and reasons of
 * failures.  OUT_OF_MEMORY.
 */
kpack_error_t kp_api_attach(struct kpack_archive *a, struct kpackx_error *why);

/* Any thread may add to them without a lock. */
struct kp_last_errors *kp_api_errors(const struct kpack_archive *a);
struct kp_cached_results *kp_api_answers(const struct kpack_archive *a);

#endif
