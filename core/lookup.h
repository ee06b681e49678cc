/* SPDX-License-Identifier: MIT */
/*
 * One look-up of a code object: the archives that may hold it, in order, what became of
 * each, and the choice among them.  For one thread; the cache behind it is shared.
 */
#ifndef KP_LOOKUP_H
#define KP_LOOKUP_H

#include "cache.h"

struct kp_lookup_file {
	char *path;
	bool tried;
	struct kp_cached *held;  /* NULL: not tried, or it cannot be opened */
	struct kpackx_error why; /* why it cannot */
};

struct kp_lookup {
	struct kp_cache *cache; /* borrowed */
	bool trace;
	struct kp_lookup_file *files;
	size_t n_files, files_cap;
	void *paths; /* theirs, a tree of <search.h> */
};

/* What is asked for; borrowed. */
struct kp_lookup_want {
	const char *key;          /* "lib/libx.so#3" */
	const char *const *archs; /* best first; NULL members are left out */
	size_t n_archs;
};

/*
 * Put a file at the end; a path that is there already is left out.  PATH becomes the
 * look-up's, success or not.  INVALID_ARGUMENT: more than KP_SEARCH_FILES_MAX.
 * OUT_OF_MEMORY.
 */
kpack_error_t kp_lookup_add(struct kp_lookup *l, char *path, struct kpackx_error *why);

/*
 * The code object WANT, decoded; the caller frees *data.  Archives are opened when their
 * turn comes, not before.
 *
 * The order is AMD's: archs as listed; for each the targets it can run, most specific
 * first; for each target the archives as listed.  An archive counts for a target that its
 * gfx_arches names and for which it has the key; one that lacks the key is passed over.
 *
 * What is chosen by this is final for its arch: if it cannot be decoded, neither the same
 * object in another archive nor one for a less specific target stands in for it, as that
 * would hide a damaged installation for ever.  Only the caller's next arch is tried.
 * AMD's loader goes on with any archive and reports the last error, which is mostly that
 * the last archive lacks the key.
 *
 * The first of these that holds: success; the error of the first chosen object;
 * KERNEL_NOT_FOUND: archives offer an arch, none has the key for it; ARCH_NOT_FOUND: none
 * offers one; ARCHIVE_NOT_FOUND: none can be opened.
 */
kpack_error_t kp_lookup_load(struct kp_lookup *l, const struct kp_lookup_want *want,
			     void **data, size_t *size, struct kpackx_error *why);

/* Put the archives back; accepts a zeroed one. */
void kp_lookup_fini(struct kp_lookup *l);

#endif
