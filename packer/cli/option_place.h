/* SPDX-License-Identifier: MIT */
/*
 * Places of options: where the argument of each goes, for those that mean no more than
 * that.  A table beside the one of struct option_help, with the same rows.
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
	OPTION_NOWHERE, /* a row that the table leaves out: it has no place */
	OPTION_FLAG,    /* bool, which becomes true */
	OPTION_WORD,    /* const char *: the argument itself */
	OPTION_TEXT,    /* char *: a copy of it, in place of the one before */
	OPTION_INT,
	OPTION_UNSIGNED,
	OPTION_U64,
};

struct option_place {
	enum option_kind kind;
	size_t at;          /* in the struct of the command's arguments */
	uint64_t low, high; /* of a number */
};

/* The kind follows from what MEMBER is, so that the two cannot differ. */
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
 * Put ARG, of the option that is ROW of HELP's table, at PLACE of ARGS: exit status, after
 * telling what is wrong.
 */
int option_put(const struct command_help *help, int row, const struct option_place *place,
	       void *args, const char *arg);

/* What --jobs is when nobody says: a thread for each core. */
unsigned option_jobs(void);

#endif
