/* SPDX-License-Identifier: MIT */
/*
 * One look-up of a code object: which archives a binary loads from, in order, the result for
 * each, and the choice among them.  A look-up belongs to one thread; its cache is shared.
 */
#ifndef KP_CORE_LOADER_LOOKUP_H
#define KP_CORE_LOADER_LOOKUP_H

#include "archive_cache.h"
#include "core/host/marker.h"

/* The loader's environment variables; kpack.h says what each variable means. */
struct kp_environment {
	/* lists of paths, each followed by a NUL; NULL: no path */
	struct kp_path_list {
		char *text;
		size_t size;
	} instead, before;            /* ROCM_KPACK_PATH, ROCM_KPACK_PATH_PREFIX */
	bool disabled, strict, trace; /* ROCM_KPACK_DISABLE, _STRICT, _DEBUG */
};

/* Read the variables; in a set-user-ID program they are ignored.  OUT_OF_MEMORY. */
kpack_error_t kp_environment_read(struct kp_environment *out, struct kpackx_error *why);
void kp_environment_fini(struct kp_environment *e); /* accepts a zeroed one */

struct kp_lookup_file {
	char *path;
	bool tried;
	struct kp_cached *held;      /* NULL: not tried, or cannot be opened */
	struct kpackx_error why;     /* why it cannot be opened */
	struct kp_lookup_file *next; /* the next open file */
};

struct kp_lookup {
	/* The request; its pointers are borrowed. */
	struct kp_cache *cache;
	const struct kp_environment *env;
	const char *key;          /* "lib/libx.so#3" */
	const char *const *archs; /* best first; NULL members are skipped */
	size_t n_archs;
	/* The candidates. */
	struct kp_lookup_file *files;
	size_t n_files, files_cap;
	size_t n_tried;              /* files[0..n_tried) were tried */
	struct kp_lookup_file *open; /* list of the open files, in order */
	void *paths;                 /* the files' paths, a tree of <search.h> */
};

/*
 * Append the files that the environment and the marker M of the file BINARY name for the
 * targets of the request, in AMD's order.  Each path is a candidate once; a file that is not
 * trusted (below) becomes one that cannot be opened.  INVALID_ARGUMENT: more than
 * KP_SEARCH_FILES_MAX files.  ARCHIVE_NOT_FOUND: the binary's directory is not trusted.
 * OUT_OF_MEMORY.
 */
kpack_error_t kp_lookup_find(struct kp_lookup *l, const struct kp_marker *m,
			     const char *binary, struct kpackx_error *why);

/*
 * Return the open candidate after F, or the first one if F is NULL; opens further
 * candidates as needed.  NULL: there are no more.
 */
struct kp_lookup_file *kp_lookup_next(struct kp_lookup *l, struct kp_lookup_file *f);

/* True if the archive declares exactly TARGET. */
bool kp_lookup_declares(const struct kpack_archive *a, struct kp_span target);

/*
 * Find the code object of the request and decode it; the caller frees *data.  An archive is
 * opened when its turn comes, not before.
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
kpack_error_t kp_lookup_load(struct kp_lookup *l, void **data, size_t *size,
			     struct kpackx_error *why);

/* Give the archives back to the cache and free L; accepts a zeroed look-up. */
void kp_lookup_fini(struct kp_lookup *l);

/*
 * Decode ENTRY into new memory, which the caller frees with free(); *DATA is not NULL
 * even for an empty entry.  Errors as for kpack_get_kernel; outputs are untouched on
 * failure.
 */
kpack_error_t kp_decode_entry(const struct kpack_archive *archive, size_t entry,
			      void **data, size_t *size, struct kpackx_error *why);

/* --- files that a program with more rights than its user may load code from ------------------ */

/*
 * A marker names archives relative to its binary, and a user can put a hard link to a
 * set-user-ID program, and files of his own, into a directory of his own.  So in such a
 * program (AT_SECURE: set-user-ID, set-group-ID, file capabilities, a change of the
 * security context) the file and every directory above it must belong to root, or to the
 * user that the program became, and nobody else may write to them.  (A directory like
 * /tmp, where only owners may remove their files, can be one of those further above.)
 */
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
