/* SPDX-License-Identifier: MIT */
/*
 * Options of a subcommand: one table from which both getopt's tables and the help text
 * are made, so that they cannot differ.
 *
 *	enum { OPT_LONG, OPT_ARCH };
 *	static const struct option_help table[] = {
 *		[OPT_LONG] = {'l', "long", NULL, "more columns"},
 *		[OPT_ARCH] = {0, "arch", "LIST", "only these targets"},
 *		{0},
 *	};
 *	const struct command_help cmd_ls_help = {
 *		"ls", "FILE...", "list entries", table, NULL};
 *
 *	struct options o = {.help = &cmd_ls_help, .argc = argc, .argv = argv};
 *	while ((row = options_next(&o)) >= 0) ...  row is OPT_LONG, o.arg its argument
 *	if (row == OPTIONS_STOP)
 *		return o.status;
 *	operands: argv[optind] to argv[argc - 1]
 */
#ifndef PACKER_CLI_OPTIONS_H
#define PACKER_CLI_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <unistd.h> /* optind */

/* Rows of the longest table, --help included. */
#define OPTIONS_MAX 40

struct option_help {
	char short_name;       /* 0: none */
	const char *long_name; /* NULL ends the table */
	const char *arg;       /* name of its argument in the help; NULL: it takes none */
	const char *text;
};

struct command_help {
	const char *name;     /* "ls"; "mark show" for one with subcommands */
	const char *operands; /* "[-l] [--arch LIST] ARCHIVE|DIR..." */
	const char *summary;  /* one line, for `kpack --help` */
	const struct option_help *options;
	const char *more; /* text after the options, without the last newline, or NULL */
};

struct options {
	const struct command_help *help;
	int argc;
	char **argv;
	const char *arg; /* argument of the option that was just read */
	int status;      /* exit status after OPTIONS_STOP */
	bool begun;
};

enum {
	OPTIONS_END = -1,
	OPTIONS_STOP = -2, /* --help was answered, or a usage fault was reported */
};

/*
 * Returns the row of the next option.  Every table also has --help (-h).  Options may
 * follow operands; "--" ends them.
 */
int options_next(struct options *o);

/* Report a usage fault on stderr: "PROGRAM: NAME: TEXT", then the usage.  Returns 2. */
int options_usage(const struct command_help *help, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Parse a decimal number in [LOW, HIGH]; its optional suffix is K, M or G (1024). */
bool options_number(const char *text, uint64_t low, uint64_t high, uint64_t *out);

/* As options_number, for the argument TEXT of --OPTION.  Returns 0, or 2 after reporting
 * a usage fault. */
int options_take_number(const struct command_help *help, const char *option,
			const char *text, uint64_t low, uint64_t high, uint64_t *out);

#endif
