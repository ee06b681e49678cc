/* SPDX-License-Identifier: MIT */
/*
 * The original of a converted binary.  The recipe in .rocm_kpack_layout lists the objects; each is
 * looked for in the archives that the marker's search paths reach, or in given ones, and must have the
 * hash that the recipe states.  Then the original is made in one of two ways:
 *
 *	what the recipe copies is still in the file   the whole original, from the recipe
 *	the file was changed since (strip, patchelf)  the changed file, with its device code put back
 */
#ifndef PACKER_ARCHIVES_RESTORE_H
#define PACKER_ARCHIVES_RESTORE_H

#include "reachable_archives.h"

/* An object that no archive has, or that differs in the archives. */
struct missing_object {
	const char *arch;
	bool differs;
	bool unpacked; /* the recipe has no hash of it: it was not packed with the binary */
};

/* How an original was made. */
struct restored {
	bool fits; /* by the recipe alone: the file was not changed */
	bool left; /* the device code was left in the file */
	struct kp_recipe_result result;
};

struct restore {
	struct binary b;
	const struct reach *archives; /* `reach`, or the given ones */
	struct reach reach;
	struct found_object *found; /* per image of the layout */
	bool *have;
	struct missing_object *missing; /* sorted by architecture */
	size_t n_missing;
	uint64_t largest;    /* bytes of the largest object */
	uint64_t bytes;      /* of those that were found */
	struct restored how; /* its result: after restore_write */
};

/*
 * Open the converted binary PATH, which is borrowed, and find its objects in GIVEN, or, if that is
 * NULL, in the archives that it reaches, which join SET.  R is to be closed in any case.
 * NOT_IMPLEMENTED: it has no recipe.  Errors of binary_read_marker, binary_read_layout and
 * installed_reach.
 */
kpack_error_t restore_open(struct restore *r, const char *path, struct installed *set,
			   const struct reach *given, struct kpackx_error *why);
void restore_close(struct restore *r);

/* Write the original to OUT, without missing objects; this may be done on several threads. */
kpack_error_t restore_write(struct restore *r, struct kp_outfile *out,
			    struct kpackx_error *why);

/* Report the missing objects, a line for each architecture; WHAT is what becomes of them. */
void restore_report_missing(const struct restore *r, const char *what);

/*
 * Report what archives have of the binary that its recipe does not know, as of joined builds; it is not
 * restored.  Returns how many architectures that is.
 */
size_t restore_report_unlisted(const struct restore *r);
/*
 * Report in what the original of PATH that was made as HOW says may differ, and return that in words,
 * for the end of a line: ", bit-identical to the original" ...
 */
const char *restore_report(const char *path, const struct restored *how);

#endif
