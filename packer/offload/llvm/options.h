/* SPDX-License-Identifier: MIT */
/*
 * Command lines as LLVM's tools read them: -name=value, --name=value, -name value; lists
 * separated by commas or repeated; @FILE stands for the words in FILE.  --help, --help-list,
 * --help-hidden, --help-list-hidden and --version are answered from the same table.  A tool
 * that is called as LLVM's prints and exits like it.
 */
#ifndef PACKER_OFFLOAD_LLVM_OPTIONS_H
#define PACKER_OFFLOAD_LLVM_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

enum llvm_kind {
	LLVM_FLAG,   /* -x, -x=true, -x=false */
	LLVM_TEXT,   /* the last one counts */
	LLVM_NUMBER, /* of the range of int; LLVM_UNSIGNED: of unsigned int */
	LLVM_UNSIGNED,
	LLVM_LIST,   /* may be repeated */
	LLVM_COMMAS, /* may be repeated, and has commas between values */
};

struct llvm_option {
	/* "targets", "###", "o"; "" the operand, or as a LIST the operands */
	const char *name;
	enum llvm_kind kind;
	const char *arg;   /* "string": shown as <string>; NULL: what the kind has */
	const char *text;  /* help; further lines are separated by '\n' */
	bool hidden;       /* only --help-hidden tells of it */
	const char *alias; /* another name, e.g. -check-input-archive; or NULL */
	bool required;     /* must be specified at least once */
	/* Results: */
	unsigned seen; /* times */
	bool flag;
	const char *value;
	long long number;    /* its default may stand here before */
	const char **values; /* LIST, COMMAS; the texts are the tool's */
	size_t n_values;
};

struct llvm_tool {
	const char *name;     /* as messages begin: llvm_tool_name(argv[0]) */
	const char *overview; /* several lines */
	const char *category; /* "clang-offload-bundler options" */
	struct llvm_option *options;
	size_t n_options;
	/* What the texts of the options are in; owned. */
	char **words;
	size_t n_words;
};

/*
 * The name for messages: ARGV0's last component, or "kpack offload-bundler" where that is the
 * subcommand's name alone.  Borrows from ARGV0, or static.
 */
const char *llvm_tool_name(const char *argv0);

/*
 * Read the command line.  -1: go on; else the exit status: 0 after --help or --version, 1 after a
 * message on stderr.  In any case the caller ends with llvm_options_fini.
 */
int llvm_options_read(struct llvm_tool *tool, int argc, char **argv);
void llvm_options_fini(struct llvm_tool *tool);

/* All options in one list on stdout, as --help-list does. */
void llvm_options_help(const struct llvm_tool *tool);

/* "NAME: error: TEXT" on stderr; returns 1. */
int llvm_error(const struct llvm_tool *tool, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* "NAME: warning: TEXT" */
void llvm_warning(const struct llvm_tool *tool, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
