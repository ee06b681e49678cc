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
	const char *target; /* canonical; for RULE_TARGET */
	const char *role;
};

/* The data of a library that uses rules_probe and rules_check. */
struct rule_list {
	const struct rule *items;
	size_t count;
	bool host_files; /* also accept host ELF files: a user wrote a rule for them */
};

bool rules_probe(const struct library *self, const struct library_question *q);
kpack_error_t rules_check(const struct library *self, const struct library_question *q,
			  bool *mine, struct library_object *out,
			  struct kpackx_error *why);

struct rules;

/*
 * Read PATH.  INVALID_ARGUMENT: WHY names the line, the word and what it should be.
 * FILE_NOT_FOUND, IO_ERROR.
 */
kpack_error_t rules_read(const char *path, struct rules **out, struct kpackx_error *why);
/* As rules_read, from the bytes of a file. */
kpack_error_t rules_parse(struct kp_span text, struct rules **out,
			  struct kpackx_error *why);
void rules_free(struct rules *rules); /* NULL is fine */

/* The libraries of RULES, in the order of their first lines. */
size_t rules_count(const struct rules *rules); /* NULL: none */
const struct library *rules_library(const struct rules *rules, size_t i);

#endif
