/* SPDX-License-Identifier: MIT */
/* What a look-up says: the reason of its failure, and the lines of ROCM_KPACK_DEBUG. */
#ifndef KP_CORE_LOADER_LOOKUP_TRACE_H
#define KP_CORE_LOADER_LOOKUP_TRACE_H

#include "lookup.h"
#include "core/base/span.h"

/* Bytes of a path or a key in an error, of which there are 240. */
#define KP_SHOWN_MAX 80

/*
 * S as it is printed; of a long one the end, where names differ, from the beginning of a
 * component where there is one.
 */
char *kp_shown(const char *s, char out[KP_SHOWN_MAX]);

/* CODE, with the files that were looked into, what they offer, or why they could not be. */
kpack_error_t kp_lookup_fail(const struct kp_lookup *l, const struct kp_lookup_want *want,
			     kpack_error_t code, struct kpackx_error *why);

/* ---- lines; nothing unless the look-up is traced ---- */

/* F was tried: it has, or could have, what is wanted, or never. */
void kp_lookup_tell_tried(const struct kp_lookup *l, const struct kp_lookup_file *f,
			  const struct kp_lookup_want *want);
/* It declares TARGET, but has no entry for it; REFUSAL unless NULL says why. */
void kp_lookup_tell_lacks(const struct kp_lookup *l, const struct kp_lookup_file *f,
			  const char *key, const char *target, const char *refusal);
/* It has one that cannot be decoded. */
void kp_lookup_tell_damaged(const struct kp_lookup *l, const struct kp_lookup_file *f,
			    const char *key, const char *target,
			    const struct kpackx_error *why);
void kp_lookup_tell_chosen(const struct kp_lookup *l, const struct kp_lookup_file *f,
			   const char *key, const char *target, size_t size);

#endif
