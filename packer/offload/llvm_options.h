/* SPDX-License-Identifier: MIT */
/*
 * Command lines as LLVM's tools read them: -name=value, --name=value, -name value; lists
 * separated by commas or repeated; @FILE stands for the words in FILE.  --help, --help-list,
 * --help-hidden, --help-list-hidden and --version are answered from the same table.  A tool
 * that is called as LLVM's prints and exits like it.
 */
#ifndef LLVM_OPTIONS_H
#define LLVM_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

enum llvm_kind {
	LLVM_FLAG,   /* -x, -x=true, -x=false */
	LLVM_TEXT,   /* the last one counts unless it is a list */
	LLVM_NUMBER, /* of the range of int; LLVM_UNSIGNED: of unsigned int */
	LLVM_UNSIGNED,
	LLVM_LIST,   /* may be repeated */
	LLVM_COMMAS, /* may be repeated, and has commas between values */
};

struct llvm_option {
	const char *name; /* "targets", "###", "o"; "" the operands (a list) */
	enum llvm_kind kind;
	const char *arg;  /* "string": shown as <string>; NULL: what the kind has */
	const char *text; /* help; further lines are separated by '\n' */
	bool hidden;
	const char *alias; /* another name, e.g. -check-input-archive; or NULL */
	/* Results: */
	unsigned seen; /* times */
	bool flag;
	const char *value;
	long long number;
	char **values; /* LIST, COMMAS; owned */
	size_t n_values;
};

struct llvm_tool {
	const char *name;     /* as messages begin: argv[0]'s last component */
	const char *overview; /* several lines */
	const char *category; /* "clang-offload-bundler options" */
	struct llvm_option *options;
	size_t n_options;
};

/*
 * Read the command line.  -1: go on; else the exit status: 0 after --help or --version, 1 after a
 * message on stderr.
 */
int llvm_options_read(struct llvm_tool *tool, int argc, char **argv);
void llvm_options_fini(struct llvm_tool *tool);

/* "NAME: error: TEXT" on stderr; returns 1. */
int llvm_error(const struct llvm_tool *tool, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* "NAME: warning: TEXT" */
void llvm_warning(const struct llvm_tool *tool, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
