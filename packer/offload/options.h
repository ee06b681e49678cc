/* SPDX-License-Identifier: MIT */
/*
 * Read command lines as LLVM's tools do: -name=value, --name=value, -name value; lists
 * are separated by commas or repeated; @FILE stands for the words in FILE.  getopt reads
 * the words, but names are never abbreviated.  The same table answers --help,
 * --help-list, --help-hidden, --help-list-hidden and --version.  A tool called by the
 * name of LLVM's prints and exits like LLVM's.
 */
#ifndef PACKER_OFFLOAD_LLVM_OPTIONS_H
#define PACKER_OFFLOAD_LLVM_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

enum llvm_kind {
	LLVM_FLAG,   /* -x, -x=true, -x=false */
	LLVM_TEXT,   /* the last value counts */
	LLVM_NUMBER, /* in the range of int; LLVM_UNSIGNED: of unsigned int */
	LLVM_UNSIGNED,
	LLVM_LIST,   /* may be repeated */
	LLVM_COMMAS, /* may be repeated; commas separate values */
};

struct llvm_option {
	/* "targets", "###", "o"; "": the operand, or for LLVM_LIST the operands */
	const char *name;
	enum llvm_kind kind;
	const char *arg;  /* "string": shown as <string>; NULL: the kind's default */
	const char *text; /* help; '\n' separates lines */
	bool hidden;      /* only --help-hidden shows it */
	bool required;    /* must be specified at least once */
	/* Results: */
	unsigned seen; /* times */
	bool flag;
	const char *value;
	long long number;    /* the caller may set a default before */
	const char **values; /* LLVM_LIST, LLVM_COMMAS; the texts belong to the tool */
	size_t n_values;
};

struct llvm_tool {
	const char *name;     /* messages begin with it: llvm_tool_name(argv[0]) */
	const char *overview; /* several lines */
	const char *category; /* "clang-offload-bundler options" */
	struct llvm_option *options;
	size_t n_options;
	/* The command line; the texts of the options point into it; owned. */
	char **words;
	size_t n_words;
};

/*
 * The name for messages: ARGV0's last component, or "kpack offload-bundler" if ARGV0 is
 * only the subcommand's name.  Borrowed from ARGV0, or static.
 */
const char *llvm_tool_name(const char *argv0);

/*
 * Read the command line.  -1: go on.  Any other value is the exit status: 0 after --help
 * or --version, 1 after a message on stderr.  In any case call llvm_options_fini later.
 */
int llvm_options_read(struct llvm_tool *tool, int argc, char **argv);
void llvm_options_fini(struct llvm_tool *tool);

/* Print all options in one list on stdout, as --help-list does. */
void llvm_options_help(const struct llvm_tool *tool);

/* Print "NAME: error: TEXT" on stderr; returns 1. */
int llvm_error(const struct llvm_tool *tool, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Print "NAME: warning: TEXT" on stderr. */
void llvm_warning(const struct llvm_tool *tool, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
