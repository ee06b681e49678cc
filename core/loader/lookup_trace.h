/* SPDX-License-Identifier: MIT */
/* Texts of a look-up: the reason of its failure, and the lines of ROCM_KPACK_DEBUG. */
#ifndef KP_CORE_LOADER_LOOKUP_TRACE_H
#define KP_CORE_LOADER_LOOKUP_TRACE_H

#include "lookup.h"
#include "core/base/span.h"

/* Bytes of a path or a key in an error message, which has 240 bytes in all. */
#define KP_SHOWN_MAX 80

/*
 * Format S for printing.  A long S is cut to its end, where names differ, if possible at
 * the beginning of a path component.
 */
char *kp_shown(const char *s, char out[KP_SHOWN_MAX]);

/* Fail with CODE; the message lists the files, with what each offers or why it failed. */
kpack_error_t kp_lookup_fail(const struct kp_lookup *l, const struct kp_lookup_want *want,
			     kpack_error_t code, struct kpackx_error *why);

/* ---- trace lines; they print nothing unless the look-up is traced ---- */

/* F was tried: it was opened or not, and declares a wanted target or not. */
void kp_lookup_trace_tried(const struct kp_lookup *l, const struct kp_lookup_file *f,
			   const struct kp_lookup_want *want);
/* F declares TARGET, but has no entry for it; REFUSAL, unless NULL, says why. */
void kp_lookup_trace_lacks(const struct kp_lookup *l, const struct kp_lookup_file *f,
			   const char *key, const char *target, const char *refusal);
/* F has an entry, but it cannot be decoded. */
void kp_lookup_trace_damaged(const struct kp_lookup *l, const struct kp_lookup_file *f,
			     const char *key, const char *target,
			     const struct kpackx_error *why);
/* The entry of F was decoded, and has SIZE bytes. */
void kp_lookup_trace_chosen(const struct kp_lookup *l, const struct kp_lookup_file *f,
			    const char *key, const char *target, size_t size);

#endif
