/* SPDX-License-Identifier: MIT */
/* What the public calls keep with an open archive: answers, and why calls on it failed. */
#ifndef KP_CORE_API_STATE_H
#define KP_CORE_API_STATE_H

#include "answers.h"
#include "last_error.h"

/* Must have succeeded once before the other two are called for A.  OUT_OF_MEMORY. */
kpack_error_t kp_api_attach(struct kpack_archive *a, struct kpackx_error *why);

/* Added to by any thread, without a lock. */
struct kp_last_errors *kp_api_errors(const struct kpack_archive *a);
struct kp_answers *kp_api_answers(const struct kpack_archive *a);

#endif
