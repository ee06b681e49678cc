/* SPDX-License-Identifier: MIT */
/* Common beginnings and ends of the public calls on an archive. */
#ifndef KP_CORE_API_CALL_H
#define KP_CORE_API_CALL_H

#include <stdbool.h>
#include "core/base/errors.h"

/* INVALID_ARGUMENT unless OK, which says that no argument is NULL. */
kpack_error_t kp_call_args(bool ok, struct kpackx_error *reason);

/* INVALID_ARGUMENT unless INDEX is below COUNT; the message calls it a WHAT. */
kpack_error_t kp_call_index(size_t index, size_t count, const char *what,
			    struct kpackx_error *reason);

/*
 * Set *ENTRY to the number of the entry that kpack_get_kernel decodes, or
 * KERNEL_NOT_FOUND.
 */
kpack_error_t kp_call_find(kpack_archive_t archive, const char *name, const char *arch,
			   size_t *entry, struct kpackx_error *reason);

/*
 * Decode ENTRY into new memory, which the caller frees with free(); *DATA is not NULL
 * even for an empty entry.  Errors as for kpack_get_kernel; outputs are untouched on
 * failure.
 */
kpack_error_t kp_call_decode(const struct kpack_archive *archive, size_t entry,
			     void **data, size_t *size, struct kpackx_error *why);

/* If ERR is a failure, put the name of ENTRY before its REASON.  Returns ERR. */
kpack_error_t kp_call_name(kpack_archive_t archive, size_t entry, kpack_error_t err,
			   struct kpackx_error *reason);

/*
 * End a call on ARCHIVE that returns ERR.  If ERR is a failure, keep REASON for
 * kpack_get_last_error, unless ARCHIVE is NULL, and copy it to WHY, unless WHY is NULL.
 * Returns ERR.
 */
kpack_error_t kp_call_end(kpack_archive_t archive, kpack_error_t err,
			  const struct kpackx_error *reason, struct kpackx_error *why);

#endif
