/* SPDX-License-Identifier: MIT */
/*
 * Files that a program with more rights than its user may load code from.
 *
 * A marker names archives relative to its binary, and a user can put a hard link to a
 * set-user-ID program, and files of his own, into a directory of his own.  So in such a
 * program (AT_SECURE: set-user-ID, set-group-ID, file capabilities, a change of the
 * security context) the file and every directory above it must belong to root, or to the
 * user that the program became, and nobody else may write to them.  (A directory like
 * /tmp, where only owners may remove their files, can be one of those further above.)
 */
#ifndef KP_CORE_LOADER_TRUSTED_H
#define KP_CORE_LOADER_TRUSTED_H

#include <stdbool.h>
#include "core/base/errors.h"

/* Whether this program has more rights than its user. */
bool kp_is_secure(void);

/*
 * In a program with more rights than its user: replace *PATH, which is on the heap, by its
 * canonical form, and fail unless that file is trusted.  Nobody who is not trusted can
 * change what the canonical path leads to.  In any other program nothing happens.
 * FILE_NOT_FOUND, IO_ERROR: as for stat, and *PATH stays; INVALID_ARGUMENT: not trusted.
 */
kpack_error_t kp_trusted_file(char **path, struct kpackx_error *why);

/*
 * A copy of BINARY.  In a program with more rights than its user: BINARY in the canonical
 * form of its directory, which must be trusted; the binary itself is not looked at, because
 * a link to it can be anywhere.  *OUT is NULL after an error.  The caller frees it.
 */
kpack_error_t kp_trusted_binary(const char *binary, char **out, struct kpackx_error *why);

#endif
