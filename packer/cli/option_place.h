/* SPDX-License-Identifier: MIT */
/*
 * Places of options: the variable that the argument of an option goes to, for options
 * that only set a variable.  The table has the same rows as that of struct option_help.
 *
 *	static const struct option_place places[] = {
 *		[OPT_LONG] = OPTION_PLACE(struct args, is_long),
 *		[OPT_LEVEL] = OPTION_LEVEL(struct args, level),
 *		[OPT_COUNT] = {0},
 *	};
 *	status = option_put(&cmd_ls_help, row, &places[row], &args, o.arg);
 */
#ifndef PACKER_CLI_OPTION_PLACE_H
#define PACKER_CLI_OPTION_PLACE_H

#include <stddef.h>
#include "options.h"

enum option_kind {
	OPTION_NOWHERE, /* a row that the table omits: the option has no place */
	OPTION_FLAG,    /* bool, which becomes true */
	OPTION_WORD,    /* const char *: the argument itself */
	OPTION_TEXT,    /* char *: a copy of the argument; frees an earlier one */
	OPTION_INT,
	OPTION_UNSIGNED,
	OPTION_U64,
};

struct option_place {
	enum option_kind kind;
	size_t at;          /* offset in the struct of the command's arguments */
	uint64_t low, high; /* range of a number */
};

/* The kind follows from the type of MEMBER, so that the two cannot differ. */
/* clang-format off */
#define OPTION_KIND(type, member)                  \
	_Generic(((type *)NULL)->member,           \
		 bool: OPTION_FLAG,                \
		 const char *: OPTION_WORD,        \
		 char *: OPTION_TEXT,              \
		 int: OPTION_INT,                  \
		 unsigned: OPTION_UNSIGNED,        \
		 uint64_t: OPTION_U64)
#define OPTION_NUMBER(type, member, low, high)     \
	{OPTION_KIND(type, member), offsetof(type, member), low, high}
/* clang-format on */
#define OPTION_PLACE(type, member) OPTION_NUMBER(type, member, 0, 0)
#define OPTION_LEVEL(type, member) OPTION_NUMBER(type, member, 1, 22) /* of zstd */
#define OPTION_JOBS(type, member) OPTION_NUMBER(type, member, 1, 1024)

/*
 * Store ARG, the argument of the option in row ROW of HELP's table, at PLACE in ARGS.
 * Errors are reported.  Returns the exit status.
 */
int option_put(const struct command_help *help, int row, const struct option_place *place,
	       void *args, const char *arg);

/* The default of --jobs: a thread for each core. */
unsigned option_jobs(void);

#endif
