/* SPDX-License-Identifier: MIT */
/* What all public calls on an archive have in common: how they begin and how they end. */
#ifndef KP_CORE_API_CALL_H
#define KP_CORE_API_CALL_H

#include <stdbool.h>
#include "core/base/errors.h"

/* INVALID_ARGUMENT unless OK: for arguments that must not be NULL. */
kpack_error_t kp_call_args(bool ok, struct kpackx_error *reason);

/* INVALID_ARGUMENT unless INDEX is below COUNT; WHAT is counted. */
kpack_error_t kp_call_index(size_t index, size_t count, const char *what,
			    struct kpackx_error *reason);

/* Number of the entry that kpack_get_kernel decodes.  KERNEL_NOT_FOUND. */
kpack_error_t kp_call_find(kpack_archive_t archive, const char *name, const char *arch,
			   size_t *entry, struct kpackx_error *reason);

/*
 * Decode ENTRY into memory of its own, for free(), which has an address even when it is
 * empty.  Errors as for kpack_get_kernel; outputs are untouched on failure.
 */
kpack_error_t kp_call_decode(const struct kpack_archive *archive, size_t entry,
			     void **data, size_t *size, struct kpackx_error *why);

/* Put what ENTRY is called before the REASON of a failure; returns ERR. */
kpack_error_t kp_call_name(kpack_archive_t archive, size_t entry, kpack_error_t err,
			   struct kpackx_error *reason);

/*
 * The call on ARCHIVE ended with ERR.  Of a failure, REASON is kept for
 * kpack_get_last_error, where there is an archive, and copied to WHY, unless NULL.
 * Returns ERR.
 */
kpack_error_t kp_call_end(kpack_archive_t archive, kpack_error_t err,
			  const struct kpackx_error *reason, struct kpackx_error *why);

#endif
