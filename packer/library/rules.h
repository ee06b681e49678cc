/* SPDX-License-Identifier: MIT */
/*
 * Libraries whose files are recognised by rules: by directory, by file name, and by where
 * the GPU is named.  A rules file adds libraries without recompiling.  Each of its lines
 * is:
 *
 *	LIBRARY DIRECTORY NAME ARCH [ROLE]
 *
 * separated by blanks or tabs.  # at the start of a line or after a blank begins a
 * comment; empty lines are skipped.
 *
 *   LIBRARY    the library's name, [A-Za-z0-9_.-], not "none"; lines with the same name
 *              form one library.  A library of a name that kpack knows replaces kpack's
 *              own.
 *   DIRECTORY  consecutive components anywhere in the path, "lib/foo/kernels"; the rule
 *              covers files at any depth below it; "." for the root
 *   NAME       a glob(7) pattern for the file's name
 *   ARCH       where the GPU is named: "directory" (the component after DIRECTORY),
 *              "below" (the first component after DIRECTORY that names a GPU, at any
 *              depth), "name" (the file's name), "content" (the code object's target),
 *              "generic" (every GPU needs the file), or a target ID itself
 *   ROLE       metadata.role, [a-z0-9_-]; "file" if omitted
 *
 * A line matches a file if directory and name match and the GPU is named where ARCH says.
 * Libraries are asked in the order of their first lines; a library's first matching line
 * applies.
 */
#ifndef PACKER_LIBRARY_RULES_H
#define PACKER_LIBRARY_RULES_H

#include "library.h"

/* The libraries of a rules file, in the order of their first lines. */
struct rules {
	char *text; /* the file; words are NUL-terminated in place */
	struct rule *items;
	size_t count;
	struct library *libraries;
	size_t n_libraries;
};

/*
 * Read PATH.  INVALID_ARGUMENT: WHY names the line, the word and what it should be.
 * FILE_NOT_FOUND, IO_ERROR.
 */
kpack_error_t rules_read(const char *path, struct rules **out, struct kpackx_error *why);
/* As rules_read, from the bytes of a file. */
kpack_error_t rules_parse(const struct kp_source *source, struct rules **out,
			  struct kpackx_error *why);
void rules_free(struct rules *rules); /* NULL is fine */

#endif
