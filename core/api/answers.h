/* SPDX-License-Identifier: MIT */
/*
 * What an archive was asked and answers alike each time, until it is closed: lists of
 * names, and metadata as JSON.  An answer is made when it is first asked for and published
 * by one compare-and-swap; of threads that make the same at once one wins, the others take
 * its answer.  No call waits.
 */
#ifndef KP_CORE_API_ANSWERS_H
#define KP_CORE_API_ANSWERS_H

#include <stdatomic.h>
#include "core/base/errors.h"
#include "core/toc/toc.h"

/* An answer, or NULL while nobody has asked for it. */
typedef _Atomic(void *) kp_answer;

struct kp_answers {
	kp_answer arches; /* const char *[] */
	/* A kp_answer for each entry, once one is asked for. */
	kp_answer lists; /* chains of lists, by hash */
	kp_answer texts; /* metadata of the entry */
};

struct kpack_archive;

/* The architectures the archive declares, NULL behind them. */
kpack_error_t kp_answer_arches(struct kpack_archive *a, const char ***arches,
			       struct kpackx_error *why);

/* As kpack_list_kernels. */
kpack_error_t kp_answer_kernels(struct kpack_archive *a, struct kp_span name,
				struct kp_span arch, const char ***names, size_t *count,
				struct kpackx_error *why);

/* As kpack_get_kernel_metadata, of the entry with that number. */
kpack_error_t kp_answer_metadata(struct kpack_archive *a, size_t entry, const char **json,
				 size_t *size, struct kpackx_error *why);

/* Free all answers of an archive with ENTRIES entries. */
void kp_answers_fini(struct kp_answers *answers, size_t entries);

#endif
