/* SPDX-License-Identifier: MIT */
/*
 * One look-up of a code object: the archives that may hold it, in order, what became of
 * each, and the choice among them.  For one thread; the cache behind it is shared.
 */
#ifndef KP_CORE_LOADER_LOOKUP_H
#define KP_CORE_LOADER_LOOKUP_H

#include "archive_cache.h"

struct kp_lookup_file {
	char *path;
	bool tried;
	struct kp_cached *held;      /* NULL: not tried, or it cannot be opened */
	struct kpackx_error why;     /* why it cannot */
	struct kp_lookup_file *next; /* of those that are open, in order */
};

struct kp_lookup {
	struct kp_cache *cache; /* borrowed */
	bool strict;            /* damage is final for its arch */
	bool trace;
	struct kp_lookup_file *files;
	size_t n_files, files_cap;
	size_t n_tried;              /* the first of them */
	struct kp_lookup_file *open; /* the first that is */
	void *paths;                 /* theirs, a tree of <search.h> */
};

/* What is asked for; borrowed. */
struct kp_lookup_want {
	const char *key;          /* "lib/libx.so#3" */
	const char *const *archs; /* best first; NULL members are left out */
	size_t n_archs;
};

/*
 * Put a file at the end; a path that already exists is left out.  PATH becomes the
 * look-up's, success or not.  INVALID_ARGUMENT: more than KP_SEARCH_FILES_MAX.
 * OUT_OF_MEMORY.
 */
kpack_error_t kp_lookup_add(struct kp_lookup *l, char *path, struct kpackx_error *why);

/*
 * Put a place at the end: a file, or all archives of a directory (kp_archives_find).  The
 * directory is listed now; what cannot be listed is a file that cannot be opened.
 * Errors as for kp_lookup_add.
 */
kpack_error_t kp_lookup_add_place(struct kp_lookup *l, const char *place,
				  struct kpackx_error *why);

/* Does the archive declare TARGET, exactly? */
bool kp_lookup_declares(const struct kpack_archive *a, struct kp_span target);

/*
 * The code object WANT, decoded; the caller frees *data.  Archives are opened when their
 * turn comes, not before.
 *
 * The order is AMD's: archs as listed; for each the targets it can run, most specific
 * first; for each target the archives as listed.  An archive is asked for a target that
 * its gfx_arches names.  Whatever keeps it from answering - it lacks the key, the object
 * is damaged, it cannot be read - the next one is asked.
 *
 * Strict: the first object found is final for its arch.  If it cannot be decoded, neither
 * the same object in another archive nor one for a less specific target stands in for it,
 * so that a damaged installation is seen; only the caller's next arch is tried.
 *
 * The first of these that holds: success; the error of the first damaged object;
 * OUT_OF_MEMORY: for want of it an archive cannot be opened; KERNEL_NOT_FOUND: archives
 * declare a target, none has the key for it; ARCH_NOT_FOUND: none declares one;
 * ARCHIVE_NOT_FOUND: none can be opened.
 */
kpack_error_t kp_lookup_load(struct kp_lookup *l, const struct kp_lookup_want *want,
			     void **data, size_t *size, struct kpackx_error *why);

/* Put the archives back; accepts a zeroed one. */
void kp_lookup_fini(struct kp_lookup *l);

#endif
