/* SPDX-License-Identifier: MIT */
/*
 * Open archives that threads share.  A file is identified by device, inode, size and time
 * of modification, so every path to it gives the same archive, and a replaced file is
 * opened.
 *
 * Every call except init and fini may run concurrently.  No lock is held during stat,
 * open or read: a thread that requests an archive which is being opened waits for that
 * archive only.
 *
 * A child of fork() can use all caches, whatever the parent's other threads did at that
 * moment; entries that those threads used or opened just then stay allocated until the
 * child exits.
 */
#ifndef KP_CORE_LOADER_ARCHIVE_CACHE_H
#define KP_CORE_LOADER_ARCHIVE_CACHE_H

#include "core/archive/archive.h"

struct kp_cached;

struct kp_cache {
	struct kp_cache *next;   /* list of all caches, for fork() */
	struct kp_cached *first; /* list of entries */
};

/* OUT_OF_MEMORY. */
kpack_error_t kp_cache_init(struct kp_cache *c, struct kpackx_error *why);
/* Every archive must have been given back with kp_cache_put. */
void kp_cache_fini(struct kp_cache *c);

/*
 * Get the archive at PATH; the caller gives it back with kp_cache_put.  It stays open
 * until kp_cache_fini or, if another file replaces it at PATH, until the last
 * kp_cache_put.  If the file is missing but was opened at this PATH before, and PATH is
 * absolute, the call returns the open archive, so that a system upgrade does not stop
 * running programs.  Failures are not cached, but threads that waited for the same
 * opening share its failure.  Errors as for kp_archive_open.
 */
kpack_error_t kp_cache_get(struct kp_cache *c, const char *path, struct kp_cached **out,
			   struct kpackx_error *why);
void kp_cache_put(struct kp_cached *e); /* NULL is fine */

struct kpack_archive *kp_cached_archive(const struct kp_cached *e);

#endif
