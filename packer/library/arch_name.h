/* SPDX-License-Identifier: MIT */
/* Decide which GPU a library's file is for: from its directory, its name, its content. */
#ifndef PACKER_LIBRARY_ARCH_NAME_H
#define PACKER_LIBRARY_ARCH_NAME_H

#include "library.h"

/*
 * Read a whole directory name as a target ID (gfx942, gfx90a-xnack+, gfx9-4-generic) and
 * give its canonical form.  For a stepping's directory (gfx1250-strict, gfx1250v0) OUT is
 * the processor's ID, and *VARIANT is set.  VARIANT may be NULL.  false: no target ID.
 */
bool arch_of_directory(struct kp_span name, char out[KP_TARGET_TEXT_MAX], bool *variant);

/*
 * Find the last target ID in a file's name, with all features that follow it.  It must be
 * delimited by characters other than letters and digits.  A number with further digits
 * (gfx942130, gfx90a68) and a family (gfx11xx) are not target IDs.  false: none found.
 */
bool arch_of_name(struct kp_span name, char out[KP_TARGET_TEXT_MAX]);

/* Whether the path looks like that of a file for one GPU: it contains gfx and a digit. */
bool arch_in_path(const char *path);

/*
 * Whether a file named for A may hold code for B: the processors are equal, or one is the
 * generic target of the other, and no feature is on in one and off in the other.  Both
 * IDs are canonical.
 */
bool arch_agrees(const char *a, const char *b);

/*
 * Give the part of PATH after the first occurrence of the directories DIR
 * ("rocblas/library"), each of which may be a pattern as of fnmatch.  false: PATH does not
 * contain DIR, or ends with it.
 */
bool path_below(const char *path, const char *dir, struct kp_span *rest);
/* The Nth component, counted from 0; empty if there are not so many. */
struct kp_span path_component(struct kp_span rest, size_t n);
size_t path_depth(struct kp_span rest);     /* components */
struct kp_span path_name(const char *path); /* the last component */

/* The kind of a file's bytes, and the targets that they state. */
struct content {
	/* "elf" (AMDGPU), "host-elf", "ccob", "bundle", "msgpack", "zlib", "aks2", "zip",
	 * "sqlite", "kpack", "text"; "" when empty or unknown */
	const char *container;
	char (*arches)[KP_TARGET_TEXT_MAX]; /* of code objects: sorted, each once */
	size_t n_arches;
	/* The code object or bundle ends early or is malformed: no part of it is
	 * trusted, and FAULT says what is wrong. */
	bool damaged;
	struct kpackx_error fault;
};

/* Inspect the content.  IO_ERROR, OUT_OF_MEMORY. */
kpack_error_t content_look(const struct library_question *q, struct content *out,
			   struct kpackx_error *why);
void content_fini(struct content *c);

/* The container only, recognised by the question's first bytes. */
const char *content_container(const struct library_question *q);

/*
 * Combine DIRECTORY, a canonical ID ("": none), with the file name at the end of PATH,
 * and write the result to NAMED ("": neither names a target).  If they contradict each
 * other, the directory wins and OUT gets a warning.
 */
void arch_named(const char *path, const char *directory, char named[KP_TARGET_TEXT_MAX],
		struct library_object *out);

/*
 * Decide which GPUs the file is for, and store that in OUT.  NAMED is the canonical ID
 * from the directory or the name ("": none).  The targets that code objects state are
 * authoritative; OUT gets a warning if they contradict the name or are damaged.  A bundle
 * for several GPUs is for the named one, or neutral if none of its GPUs is named.
 * Without any evidence the file is neutral.  Adds the fact "container".  The errors of
 * content_look.
 */
kpack_error_t arch_decide(struct library_question *q, const char *named,
			  struct kpackx_error *why);
/* The same when the content was looked at before. */
void arch_settle(const struct content *c, const char *named, struct library_object *out);
/* The same for a host library: its GPUs are those of the code in its fat binary. */
kpack_error_t arch_decide_fat(struct library_question *q, const char *named,
			      struct kpackx_error *why);

#endif
