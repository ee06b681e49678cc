/* SPDX-License-Identifier: MIT */
/* The mounts of packed trees, which the scripts of contrib/mount make and remove. */
#ifndef PACKER_POLICY_MOUNTS_H
#define PACKER_POLICY_MOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include "core/base/errors.h"
#include "core/base/mountinfo.h"
#include "policy.h"

struct mount_now {
	char *path;
	dev_t device;
	bool overlay; /* it is an overlay, else a mount of kpackfs */
};

/* The mounts of kpackfs, and the overlays, below a tree. */
struct mount_table {
	struct mount_now *items;
	size_t count, cap;
};

/* Take the mounts below TREE from MOUNTS.  false: these cannot be read to the end. */
bool mount_table_read(struct kp_mounts *mounts, const char *tree,
		      struct mount_table *out);
/*
 * Find what is mounted below TREE, without an overlay that the tree itself is in.
 * false: it failed, which was reported.  OUT may have an earlier table.
 */
bool mount_table_find(const char *tree, struct mount_table *out);
void mount_table_fini(struct mount_table *m);

/* How many of these are overlays, or are not. */
size_t mount_table_count(const struct mount_table *m, bool overlay);
/* Whether something of these is mounted at PATH or above it. */
bool mount_table_covers(const struct mount_table *m, const char *path);
/* The mount at PATH; NULL: the table has none there. */
const struct mount_now *mount_table_get(const struct mount_table *m, const char *path);

/*
 * Lock the mounts of all trees: wait for other runs, and for scripts, also those that a
 * killed run has left at work.  The scripts that this run calls get the lock, too, so
 * that it is held until they end, even if this run is killed.  Without the right to make
 * the lock, there is none; the scripts then refuse to work where other users could
 * interfere.
 * false: the lock was not given back in time, which was reported.
 */
bool mounts_lock(void);
void mounts_unlock(void);

/*
 * Mount the archives of TREE in the way of KIND, for the GPUs of the list ARCH; nothing to
 * mount is a success.  false: it failed, which was reported.
 */
bool mounts_make(const char *tree, enum policy_mount kind, const char *arch);
/*
 * Unmount all of kpackfs in TREE, lazily what is in use; OVERLAY: an overlay may have left
 * something elsewhere.  false: something stays, which was reported.
 */
bool mounts_remove(const char *tree, bool overlay);

#endif
