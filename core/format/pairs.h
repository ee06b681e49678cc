/* SPDX-License-Identifier: MIT */
/* Names and values, in the order in which they were found. */
#ifndef KP_CORE_FORMAT_PAIRS_H
#define KP_CORE_FORMAT_PAIRS_H

#include "core/base/errors.h"
#include "core/base/span.h"

struct kp_pair {
	char *name;
	char *value; /* SIZE bytes, which may include NULs, and a final NUL */
	size_t size;
};

struct kp_pairs {
	struct kp_pair *items;
	size_t count;
};

/* Append a pair; name and value are copied. */
kpack_error_t kp_pairs_add(struct kp_pairs *pairs, struct kp_span name,
			   struct kp_span value, struct kpackx_error *why);
kpack_error_t kp_pairs_print(struct kp_pairs *pairs, struct kpackx_error *why,
			     const char *name, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Return the value of the first pair named NAME, or NULL. */
const char *kp_pairs_find(const struct kp_pairs *pairs, const char *name);

void kp_pairs_fini(struct kp_pairs *pairs);

#endif
