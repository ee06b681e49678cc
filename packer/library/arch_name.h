/* SPDX-License-Identifier: MIT */
/* For which GPU a file of a library is: by its directory, by its name, by its content. */
#ifndef PACKER_LIBRARY_ARCH_NAME_H
#define PACKER_LIBRARY_ARCH_NAME_H

#include "library.h"

/*
 * The canonical target ID that a whole directory name is: gfx942, gfx90a-xnack+,
 * gfx9-4-generic; of a stepping's directory (gfx1250-strict, gfx1250v0) that of the
 * processor, with *VARIANT set.  VARIANT may be NULL.  false: it is none.
 */
bool arch_of_directory(struct kp_span name, char out[KP_TARGET_TEXT_MAX], bool *variant);

/*
 * The target ID in a file's name: the last that stands there between characters that are no
 * letters or digits, with all the features that follow it.  A number that goes on (gfx942130,
 * gfx90a68) and a family (gfx11xx) are none.  false: there is none.
 */
bool arch_of_name(struct kp_span name, char out[KP_TARGET_TEXT_MAX]);

/* Does the path look like that of a file for one GPU: gfx and a digit in some component? */
bool arch_in_path(const char *path);

/*
 * May what is named A be code for B?  The same processor, or one the generic target of the
 * other, and no feature stated with both signs.  Both canonical.
 */
bool arch_agrees(const char *a, const char *b);

/*
 * What two canonical IDs that agree say together: the one that says more.
 */
const char *arch_more_exact(const char *a, const char *b);

/* What stands behind the directories DIR ("rocblas/library") of PATH, wherever those stand in
 * it; the first time they do.  false: nowhere, or nothing behind. */
bool path_below(const char *path, const char *dir, struct kp_span *rest);
/* The Nth component, from 0; empty: there is none. */
struct kp_span path_component(struct kp_span rest, size_t n);
size_t path_depth(struct kp_span rest);     /* components */
struct kp_span path_name(const char *path); /* the last component */

/* What a file's bytes are, and the targets that they state. */
struct content {
	/* "elf" (AMDGPU), "host-elf", "ccob", "bundle", "msgpack", "zlib", "aks2", "zip",
	 * "sqlite", "text"; "" when empty or unknown */
	const char *container;
	char (*arches)[KP_TARGET_TEXT_MAX]; /* of code objects: sorted, each once */
	size_t n_arches;
	/* A code object or bundle that ends early or is not well-formed: nothing of
	 * it is believed, and FAULT says what is wrong. */
	bool damaged;
	struct kpackx_error fault;
};

/* Look at the content.  IO_ERROR, OUT_OF_MEMORY. */
kpack_error_t content_look(const struct library_question *q, struct content *out,
			   struct kpackx_error *why);
void content_fini(struct content *c);

/* The container alone, from the question's first bytes. */
const char *content_container(const struct library_question *q);

/*
 * What DIRECTORY, a canonical ID ("" none), and the name at the end of PATH say together, into
 * NAMED ("" nothing).  Where they contradict each other the directory counts, which becomes
 * OUT's warning.  OUT_OF_MEMORY.
 */
kpack_error_t arch_named(const char *path, const char *directory,
			 char named[KP_TARGET_TEXT_MAX], struct library_object *out,
			 struct kpackx_error *why);

/*
 * Decide for which GPUs the file is and put that into OUT: NAMED is what directory or name
 * say, canonical ("" nothing).  What code objects state is authoritative; that they contradict
 * the name, or are damaged, becomes OUT's warning.  A bundle for several GPUs is for
 * the one that is named, else neutral.  Without anything the file is neutral.
 * Adds the fact "container".
 */
kpack_error_t arch_decide(const struct library_question *q, const char *named,
			  struct library_object *out, struct kpackx_error *why);

#endif
