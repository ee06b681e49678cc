/* SPDX-License-Identifier: MIT */
/* What a file has besides its bytes, given to the file that takes its place. */
#ifndef PACKER_FILES_ATTRIBUTES_H
#define PACKER_FILES_ATTRIBUTES_H

#include <sys/stat.h>
#include "core/writer/store.h"
#include "core/base/errors.h"

/*
 * Give the file open at TO the owner, permissions, ACL, capabilities, extended attributes
 * and times of the one open at FROM, whose stat is ST.  Nothing may be written to TO
 * afterwards.  Signatures of the content (IMA, EVM) are left out: they would be wrong.
 *
 * Who may not give files away keeps them, and then set-user-ID and set-group-ID bits
 * are not set, nor capabilities without the privilege to; a caller to whom that matters looks at the owner afterwards.
 * IO_ERROR: another attribute cannot be kept.  OUT_OF_MEMORY.
 */
kpack_error_t attributes_copy(int from, int to, const struct stat *st,
			      struct kpackx_error *why);

/*
 * Add what PATH, which is not followed, has of these and a machine does not choose by itself:
 * ACLs, capabilities and attributes of users, not labels, signatures or owners.
 * IO_ERROR, OUT_OF_MEMORY.
 */
kpack_error_t attributes_hash(const char *path, struct kp_content_hash *hash,
			      struct kpackx_error *why);

#endif
