/* SPDX-License-Identifier: MIT */
/*
 * Open archives that threads share.  A file is known by inode, size and time of change,
 * so every path to it finds the one archive, and a file that was replaced is opened anew.
 *
 * Every call but init and fini may run concurrently.  No lock is held while a file is
 * looked at, opened or read: whoever wants an archive that is being opened waits for that
 * one only.
 *
 * A child of fork() goes on with all caches, whatever the parent's other threads did at
 * that moment; what they used or opened just then is left to the child's exit.
 */
#ifndef KP_CORE_LOADER_ARCHIVE_CACHE_H
#define KP_CORE_LOADER_ARCHIVE_CACHE_H

#include <pthread.h>
#include "core/archive/archive.h"

struct kp_cached;

struct kp_cache {
	struct kp_cache *next; /* all caches that live, for fork() */
	pthread_mutex_t lock;
	pthread_cond_t opened;   /* an entry is not being opened any more */
	struct kp_cached *first; /* a list */
};

/* OUT_OF_MEMORY. */
kpack_error_t kp_cache_init(struct kp_cache *c, struct kpackx_error *why);
/* All archives must have been put back. */
void kp_cache_fini(struct kp_cache *c);

/*
 * The archive at PATH, to be given to kp_cache_put.  It stays open until fini, unless
 * another file takes its place under PATH: then until the last put.  A file that is
 * missing and was opened under this PATH before, an absolute one, is still that archive:
 * who upgrades a system does not stop what runs.  Failures are not kept; threads that
 * waited share one.  Errors as for kp_archive_open.
 */
kpack_error_t kp_cache_get(struct kp_cache *c, const char *path, struct kp_cached **out,
			   struct kpackx_error *why);
void kp_cache_put(struct kp_cache *c, struct kp_cached *e); /* NULL is fine */

struct kpack_archive *kp_cached_archive(const struct kp_cached *e);

#endif
