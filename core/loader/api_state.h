/* SPDX-License-Identifier: MIT */
/*
 * State that the public calls attach to an open archive: answers, and reasons of
 * failures.
 */
#ifndef KP_CORE_API_STATE_H
#define KP_CORE_API_STATE_H

#include "cached_results.h"
#include "last_error.h"

/* Attach the state to A, once, before the other two calls.  OUT_OF_MEMORY. */
kpack_error_t kp_api_attach(struct kpack_archive *a, struct kpackx_error *why);

/* Any thread may add to them without a lock. */
struct kp_last_errors *kp_api_errors(const struct kpack_archive *a);
struct kp_cached_results *kp_api_answers(const struct kpack_archive *a);

#endif
