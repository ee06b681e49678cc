/* SPDX-License-Identifier: MIT */
/* Copy a file's attributes, all but its bytes, to the file that replaces it. */
#ifndef PACKER_FILES_ATTRIBUTES_H
#define PACKER_FILES_ATTRIBUTES_H

#include <sys/stat.h>
#include "core/base/hash.h"
#include "core/base/errors.h"

/*
 * Give the file open at TO the owner, permissions, ACL, capabilities, extended attributes
 * and times of the file open at FROM, whose stat is ST.  The caller must not write to TO
 * afterwards.  Signatures of the content (IMA, EVM) are left out: they would be wrong.
 *
 * If the process may not change the owner, TO keeps its own owner; then set-user-ID and
 * set-group-ID bits are not set, nor capabilities without the privilege for that.  A
 * caller that needs the owner must check it afterwards.
 * IO_ERROR: another attribute cannot be kept.
 */
kpack_error_t attributes_copy(int from, int to, const struct stat *st,
			      struct kpackx_error *why);

/*
 * Add those attributes of PATH to HASH that the machine does not choose itself: ACLs,
 * capabilities and user attributes, but not labels, signatures or owners.  A symbolic
 * link is not followed.
 * IO_ERROR.
 */
kpack_error_t attributes_hash(const char *path, struct kp_hasher *hash,
			      struct kpackx_error *why);

#endif
