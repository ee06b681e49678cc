/* SPDX-License-Identifier: MIT */
/* For which GPU a file of a library is: by its directory, by its name, by its content. */
#ifndef ARCH_NAME_H
#define ARCH_NAME_H

#include "library.h"

/*
 * The canonical target ID that a whole directory name is: gfx942, gfx90a-xnack+,
 * gfx9-4-generic; of a stepping's directory (gfx1250-strict, gfx1250v0) that of the
 * processor, with *VARIANT set.  VARIANT may be NULL.  false: it is none.
 */
bool arch_of_directory(struct kp_span name, char out[KP_TARGET_TEXT_MAX], bool *variant);

/*
 * The target ID at the end of a file name's stem: the last and longest that is there, before
 * or after the endings (.dat.zlib) and words like _Mapping.  false: there is none.
 */
bool arch_of_name(struct kp_span name, char out[KP_TARGET_TEXT_MAX]);

/* Does the path look like that of a file for one GPU: gfx and digits in some component? */
bool arch_in_path(const char *path);

/* The Nth component after the directories DIR ("rocblas/library") of PATH, wherever those
 * stand in it; N 0 is the first.  Empty: there is none.  REST: all behind DIR. */
bool path_below(const char *path, const char *dir, struct kp_span *rest);
struct kp_span path_component(struct kp_span rest, size_t n);
size_t path_depth(struct kp_span rest);     /* components */
struct kp_span path_name(const char *path); /* the last component */

/* What a file's bytes are, and the targets that they state. */
struct content {
	const char
		*container; /* "elf", "ccob", "bundle", "msgpack", "zlib", "aks2", "zip",
				* "sqlite", "text"; "" when unknown */
	char (*arches)[KP_TARGET_TEXT_MAX]; /* of code objects: sorted, each once */
	size_t n_arches;
};

/* Look at the content.  A damaged bundle or code object is an error. */
kpack_error_t content_look(const struct library_question *q, struct content *out,
			   struct kpackx_error *why);
void content_fini(struct content *c);

/*
 * Decide for which GPUs the file is and put that into OUT: NAMED is what directory or name
 * say ("" nothing).  What code objects state is authoritative; that they contradict the
 * name becomes OUT's warning.  Without anything the file is neutral.  Adds the fact "container".
 */
kpack_error_t arch_decide(const struct library_question *q, const char *named,
			  struct library_object *out, struct kpackx_error *why);

#endif
