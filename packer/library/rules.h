/* SPDX-License-Identifier: MIT */
/*
 * Libraries that a file describes, so that one can be added without recompiling.  A line:
 *
 *	LIBRARY DIRECTORY NAME ARCH [ROLE]
 *
 * separated by blanks or tabs; # begins a comment, and empty lines are passed over.
 *
 *   LIBRARY    its name, [A-Za-z0-9_.-]; lines of the same name belong together
 *   DIRECTORY  components that stand together anywhere in the path, "lib/foo/kernels"; files at any
 *              depth below it are meant
 *   NAME       a glob(7) pattern of the file's name
 *   ARCH       where the GPU stands: "directory" (the component behind DIRECTORY), "name" (the end
 *              of the name), "content" (what the code object says), "generic" (every GPU
 *              needs it), or a target ID itself
 *   ROLE       metadata.role; "file" when it is not given
 *
 * The first line that fits a path counts.
 */
#ifndef RULES_H
#define RULES_H

#include "library.h"

/* Read PATH.  Errors name the line and the word. */
kpack_error_t rules_read(const char *path, struct rules **out, struct kpackx_error *why);
void rules_free(struct rules *rules); /* NULL is fine */

/* Its libraries, in order of their first lines. */
size_t rules_count(const struct rules *rules);
const struct library *rules_library(const struct rules *rules, size_t i);

#endif
