/* SPDX-License-Identifier: MIT */
/*
 * Options of a subcommand: one table from which getopt's tables and the help text are
 * made, and which says where the argument of each option goes.
 *
 *	struct ls {
 *		bool is_long;
 *		struct arch_filter filter;
 *	};
 *	static const struct option_help table[] = {
 *		{'l', "long", NULL, "more columns", OPTION_PLACE(struct ls, is_long)},
 *		{0, "arch", "LIST", "only these targets",
 *		 OPTION_TAKE(struct ls, filter, arch_filter_take)},
 *		{0},
 *	};
 *	const struct command_help cmd_ls_help = {
 *		"ls", "FILE...", "list entries", table, NULL};
 *
 *	int n = options_parse(&cmd_ls_help, argc, &argv, &ls);
 *	operands: argv[0] to argv[n - 1]
 *
 * A process runs one command, so that its arguments may be static, and need not be freed.
 * Whatever is wrong with a command line ends the process with status 2, before work has begun:
 * options_usage, options_read and options_parse do not return then.
 */
#ifndef PACKER_CLI_OPTIONS_H
#define PACKER_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h> /* optind */
#include "core/base/nearest.h"
#include "core/base/scheme.h"

/* The arguments of an option that can be repeated. */
struct option_texts {
	const char **items;
	size_t count, cap;
};

/* Rows of the longest table, --help included. */
#define OPTIONS_MAX 40

struct options;
struct option_help;

enum option_kind {
	OPTION_NOWHERE, /* accepted without effect */
	OPTION_FLAG,    /* bool, which becomes true */
	OPTION_WORD,    /* const char *: the argument itself */
	OPTION_TEXT,    /* char *: a copy of the argument; frees an earlier one */
	OPTION_TEXTS,   /* struct option_texts, to which the argument is added */
	OPTION_DIGITS,  /* a number: int, unsigned or uint64_t */
	OPTION_CHOSEN,  /* one of some words: bool, enum or number */
	OPTION_CALL,
};

/* Where the argument of an option goes. */
struct option_place {
	enum option_kind kind;
	size_t size, at; /* of the member; AT: in the struct of the command's arguments */
	uint64_t low, high; /* range of a number; of words, what the first stands for */
	/*
	 * OPTION_CALL: put the argument O->arg into SLOT.  Returns the exit status after
	 * reporting a fault, which ends the process, or EXIT_OK.
	 */
	int (*take)(const struct options *o, const struct option_help *row, void *slot);
	const char *const *words; /* for OPTION_CHOSEN, the last is NULL */
};

/* clang-format off */
/* The kind follows from the type of MEMBER, so that the two cannot differ. */
#define OPTION_KIND(type, member)                  \
	_Generic(((type *)NULL)->member,           \
		 bool: OPTION_FLAG,                \
		 const char *: OPTION_WORD,        \
		 char *: OPTION_TEXT,              \
		 struct option_texts: OPTION_TEXTS, \
		 default: OPTION_DIGITS)
#define OPTION_NUMBER(type, member, low, high)     \
	{OPTION_KIND(type, member), sizeof(((type *)NULL)->member), offsetof(type, member), low, high, NULL, NULL}
#define OPTION_PLACE(type, member) OPTION_NUMBER(type, member, 0, 0)
#define OPTION_LEVEL(type, member) OPTION_NUMBER(type, member, 1, KP_LEVEL_MAX)
#define OPTION_JOBS(type, member) OPTION_NUMBER(type, member, 1, 1024)
/* Each word stands for one more than the word before it, the first for LOW. */
#define OPTION_WORDS(type, member, low, ...)       \
	{OPTION_CHOSEN, sizeof(((type *)NULL)->member), offsetof(type, member), low, 0, NULL, \
	 (const char *const[]){__VA_ARGS__, NULL}}
#define OPTION_SCHEME(type, member)                \
	OPTION_WORDS(type, member, KPACK_COMPRESSION_NOOP, "none", "zstd-per-kernel", "zstd-shared")
/* TAKE gets the address of MEMBER, or with OPTION_TAKE_ALL that of the arguments. */
#define OPTION_TAKE(type, member, function) {.kind = OPTION_CALL, .at = offsetof(type, member), .take = function}
#define OPTION_TAKE_ALL(function) {.kind = OPTION_CALL, .take = function}
#define OPTION_IGNORED {.kind = OPTION_NOWHERE}
/* The command's arguments are only this bool, or this const char *. */
#define OPTION_FLAG_ALONE {.kind = OPTION_FLAG}
#define OPTION_WORD_ALONE {.kind = OPTION_WORD}

/* Rows that commands share: MEMBER, a bool of the command's arguments TYPE, becomes true. */
#define OPTION_SWITCH(letter, name, text, type, member) {letter, name, NULL, text, OPTION_PLACE(type, member)}
#define OPTION_JSON_ARRAY(type, member)            \
	OPTION_SWITCH(0, "json", "print one JSON array of objects", type, member)
#define OPTION_JSON_REPORT(type, member)           \
	OPTION_SWITCH(0, "json", "print the report as JSON", type, member)
#define OPTION_QUIET(type, member)                 \
	OPTION_SWITCH('q', "quiet", "print only errors", type, member)
#define OPTION_DRY_RUN(type, member)               \
	OPTION_SWITCH('n', "dry-run", "write nothing: print what would be freed", type, member)
#define OPTION_DROP_SIGNATURE(type, member)        \
	OPTION_SWITCH(0, "drop-signature", "change signed Windows files, too", type, member)
#define OPTION_FORCE_FILES(type, member)           \
	OPTION_SWITCH('f', "force", "replace files that exist", type, member)
/* clang-format on */

struct option_help {
	char short_name;       /* 0: none */
	const char *long_name; /* NULL ends the table */
	const char *arg;       /* name of its argument in the help; NULL: it takes none */
	const char *text;
	struct option_place place;
};

struct command_help {
	const char *name;     /* "ls"; "mark show" for one with subcommands */
	const char *operands; /* "[-l] [--arch LIST] ARCHIVE|DIR..." */
	const char *summary;  /* one line, for `kpack --help` */
	const struct option_help *options;
	const char *more; /* text after the options, without the last newline, or NULL */
};

/* A command, which gets its own name as argv[0] and returns the exit status. */
typedef int command_run(int argc, char **argv);
struct command {
	command_run *run;
	const struct command_help *help;
};

struct options {
	const struct command_help *help;
	int argc;
	char **argv;
	bool is_prefix; /* the first operand is a program, whose arguments follow it */
	bool single_dash; /* "-long" is "--long", as in clang's tools, which also have --version */
	const char *arg; /* argument of the option that was just read */
};

/*
 * Read all options into ARGS, which gets the offsets of the table.  Every table also has --help
 * (-h), which is answered and ends the process.  Options may follow operands, but not a program;
 * "--" ends them.  argv[optind] is the first operand.
 */
void options_read(struct options *o, void *args);

/* The same for the command HELP.  *ARGV becomes the operands; returns how many there are. */
int options_parse(const struct command_help *help, int argc, char ***argv, void *args);

/* Report a usage fault on stderr, "PROGRAM: NAME: TEXT", then the usage, and exit. */
int options_usage(const struct command_help *help, const char *fmt, ...)
	__attribute__((noreturn, format(printf, 2, 3)));

void option_texts_add(struct option_texts *texts, const char *text);

/*
 * The command of COMMANDS that is called NAME, or has it as its second word ("mark show"); NULL:
 * none.  NEAREST, unless it is NULL, tries the names of the others.
 */
const struct command *command_find(const struct command *commands, size_t n,
				   const char *name, struct kp_nearest *nearest);

/* What a command line must not be. */
struct option_rule {
	bool broken;
	const char *text; /* NULL ends the rules */
};

/* Report the first of RULES that is broken, as options_usage does. */
void options_check(const struct command_help *help, const struct option_rule *rules);

/* The default of --jobs: a thread for each core. */
unsigned option_jobs(void);

/* Parse a decimal number in [LOW, HIGH]; its optional suffix is K, M or G (1024). */
bool options_number(const char *text, uint64_t low, uint64_t high, uint64_t *out);

#endif
