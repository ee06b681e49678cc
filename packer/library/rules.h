/* SPDX-License-Identifier: MIT */
/*
 * Libraries whose files are told by rules: where they stand, what they are called, and what
 * tells their GPU.  A file can add some without recompiling.  A line of it:
 *
 *	LIBRARY DIRECTORY NAME ARCH [ROLE]
 *
 * separated by blanks or tabs; # begins a comment at the begin of a line or behind a
 * blank, and empty lines are passed over.
 *
 *   LIBRARY    its name, [A-Za-z0-9_.-], not "none"; lines of the same name belong together.  A
 *              name that kpack knows replaces what kpack knows of it.
 *   DIRECTORY  components that stand together anywhere in the path, "lib/foo/kernels"; files at any
 *              depth below it are meant; "." for the root
 *   NAME       a glob(7) pattern of the file's name
 *   ARCH       where the GPU stands: "directory" (the component behind DIRECTORY), "below" (the
 *              first component behind DIRECTORY that names a GPU, at any depth), "name" (the
 *              file's name), "content" (what the code object says), "generic" (every
 *              GPU needs it), or a target ID itself
 *   ROLE       metadata.role, [a-z0-9_-]; "file" when it is not given
 *
 * A line fits a file when directory and name do and the GPU stands where ARCH says.  The
 * libraries are asked in order of their first lines; of one the first line that fits counts.
 */
#ifndef PACKER_LIBRARY_RULES_H
#define PACKER_LIBRARY_RULES_H

#include "library.h"

enum rule_where {
	RULE_DIRECTORY,
	RULE_BELOW,
	RULE_NAME,
	RULE_CONTENT,
	RULE_GENERIC,
	RULE_TARGET,
};

struct rule {
	const char *directory; /* "" is the root */
	const char *name;
	enum rule_where where;
	const char *target; /* canonical; of RULE_TARGET */
	const char *role;
};

/* The data of a library that has rules_probe and rules_check. */
struct rule_list {
	const struct rule *items;
	size_t count;
	bool host_files; /* host ELF files are its own, too: somebody wrote a rule for them */
};

bool rules_probe(const struct library *self, const struct library_question *q);
kpack_error_t rules_check(const struct library *self, const struct library_question *q,
			  bool *mine, struct library_object *out,
			  struct kpackx_error *why);

struct rules;

/*
 * Read PATH.  INVALID_ARGUMENT: the line, the word and what it should be are reported.
 * FILE_NOT_FOUND, IO_ERROR, OUT_OF_MEMORY.
 */
kpack_error_t rules_read(const char *path, struct rules **out, struct kpackx_error *why);
/* The same of the bytes of a file. */
kpack_error_t rules_parse(struct kp_span text, struct rules **out,
			  struct kpackx_error *why);
void rules_free(struct rules *rules); /* NULL is fine */

/* Its libraries, in order of their first lines. */
size_t rules_count(const struct rules *rules); /* NULL: none */
const struct library *rules_library(const struct rules *rules, size_t i);

#endif
