/* SPDX-License-Identifier: MIT */
/* Remove what killed runs left in a tree: links and files under temporary names. */
#ifndef PACKER_FILES_LEFTOVERS_H
#define PACKER_FILES_LEFTOVERS_H

#include "core/base/errors.h"

/*
 * Wait until no other run writes the tree ROOT, a directory, and lock it.  The caller
 * unlocks it by lock_close(LOCK); -1: the file system has no locks.  The errors of
 * lock_wait, and of opening ROOT.
 */
kpack_error_t leftovers_lock(const char *root, int *lock, struct kpackx_error *why);

/* Remove leftovers in the directory PATH of ROOT ("": ROOT itself), which is locked. */
kpack_error_t leftovers_remove(const char *root, const char *path,
			       struct kpackx_error *why);

#endif
