/* SPDX-License-Identifier: MIT */
/*
 * One look-up of a code object: the candidate archives in order, the result for each, and
 * the choice among them.  A look-up belongs to one thread; its cache is shared.
 */
#ifndef KP_CORE_LOADER_LOOKUP_H
#define KP_CORE_LOADER_LOOKUP_H

#include "archive_cache.h"
#include "core/elf/marker.h"
#include "environment.h"

struct kp_lookup_file {
	char *path;
	bool tried;
	struct kp_cached *held;      /* NULL: not tried, or cannot be opened */
	struct kpackx_error why;     /* why it cannot be opened */
	struct kp_lookup_file *next; /* the next open file */
};

struct kp_lookup {
	struct kp_cache *cache; /* borrowed */
	bool strict;            /* a damaged object is final for its arch */
	bool trace;
	struct kp_lookup_file *files;
	size_t n_files, files_cap;
	size_t n_tried;              /* files[0..n_tried) were tried */
	struct kp_lookup_file *open; /* list of the open files, in order */
	void *paths;                 /* the files' paths, a tree of <search.h> */
};

/* The request; its pointers are borrowed. */
struct kp_lookup_want {
	const char *key;          /* "lib/libx.so#3" */
	const char *const *archs; /* best first; NULL members are skipped */
	size_t n_archs;
};

/*
 * Append a file to the candidates, unless its path is one already.  The look-up owns PATH
 * then, on failure too.  A file that is not trusted (trusted.h) becomes a candidate that
 * cannot be opened.  INVALID_ARGUMENT: more than KP_SEARCH_FILES_MAX files.
 * OUT_OF_MEMORY.
 */
kpack_error_t kp_lookup_add(struct kp_lookup *l, char *path, struct kpackx_error *why);

/*
 * Return the open candidate after F, or the first one if F is NULL; opens further
 * candidates as needed.  NULL: there are no more.
 */
struct kp_lookup_file *kp_lookup_next(struct kp_lookup *l, struct kp_lookup_file *f,
				      const struct kp_lookup_want *want);

/* True if the archive declares exactly TARGET. */
bool kp_lookup_declares(const struct kpack_archive *a, struct kp_span target);

/*
 * Find the code object WANT and decode it; the caller frees *data.  An archive is opened
 * when its turn comes, not before.
 *
 * The order is AMD's: archs as listed; for each arch the targets that it can run, the
 * most specific first; for each target the archives as listed.  An archive is searched
 * only for targets that its gfx_arches names.  If it lacks the key, or the object is
 * damaged or cannot be read, the next archive is searched.
 *
 * Strict: the first object found is final for its arch.  If it cannot be decoded, neither
 * the same object in another archive nor an object for a less specific target replaces
 * it, so that a damaged installation is noticed; only the next of the caller's archs is
 * tried.
 *
 * Returns the first of these that applies: success; the error of the first damaged
 * object;
 * OUT_OF_MEMORY: an archive could not be opened for lack of memory; KERNEL_NOT_FOUND:
 * archives declare a target, but none has the key for it; ARCH_NOT_FOUND: no archive
 * declares a target; ARCHIVE_NOT_FOUND: no archive can be opened.
 */
kpack_error_t kp_lookup_load(struct kp_lookup *l, const struct kp_lookup_want *want,
			     void **data, size_t *size, struct kpackx_error *why);

/* Give the archives back to the cache and free L; accepts a zeroed look-up. */
void kp_lookup_fini(struct kp_lookup *l);

/*
 * Append to L the files that the environment and the marker M of the file BINARY name for
 * the targets of WANT, in AMD's order.  Errors as for kp_lookup_add.
 */
kpack_error_t kp_candidates_add(const struct kp_environment *env,
				const struct kp_marker *m, const char *binary,
				const struct kp_lookup_want *want, struct kp_lookup *l,
				struct kpackx_error *why);

#endif
