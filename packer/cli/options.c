/* SPDX-License-Identifier: MIT */
/*
 * A command's table of options becomes getopt's two tables and the help.  A row with a letter
 * has the same value in both tables of getopt, 0x100 and its number; the letter itself leads to
 * the row by a search.  An argument goes where the row's place says, after its check.
 */
#include "options.h"
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "exit.h"
#include "report.h"
#include "xalloc.h"

/* getopt's value for row N: above every character. */
#define ROW_VALUE(n) (0x100 + (n))

#ifndef KP_VERSION
#define KP_VERSION "0.1"
#endif

static const struct option_help help_row = {'h', "help", NULL, "print this text and exit",
					    OPTION_IGNORED};

/* Build systems ask the tools that we stand in for. */
static const struct option_help version_row = {
	0, "version", NULL, "print the version and exit", OPTION_IGNORED};

/* The column at which texts begin. */
#define TEXT_COLUMN 26

static void print_row(FILE *out, const struct option_help *row)
{
	char left[64];

	snprintf(left, sizeof(left), "  %c%c%s--%s%s%s", row->short_name ? '-' : ' ',
		 row->short_name ? row->short_name : ' ', row->short_name ? ", " : "  ",
		 row->long_name, row->arg ? " " : "", row->arg ? row->arg : "");
	if (strlen(left) > TEXT_COLUMN - 2) { /* too long for its text to follow it */
		fprintf(out, "%s\n", left);
		left[0] = '\0';
	}
	fprintf(out, "%-*s%s\n", TEXT_COLUMN, left, row->text);
}

static void print_usage(FILE *out, const struct command_help *help)
{
	const char *rest = strchr(help->name, ' ');

	/* if called as kpack-pack, the program's name is the command */
	if (strcmp(report_program(), "kpack") == 0)
		fprintf(out, "usage: kpack %s %s\n", help->name, help->operands);
	else
		fprintf(out, "usage: %s%s %s\n", report_program(), rest ? rest : "",
			help->operands);
}

static void print_help(const struct options *o)
{
	const struct command_help *help = o->help;

	print_usage(stdout, help);
	printf("\n%s\n\noptions:\n", help->summary);
	for (const struct option_help *row = help->options; row && row->long_name; row++)
		print_row(stdout, row);
	print_row(stdout, &help_row);
	if (o->single_dash)
		print_row(stdout, &version_row);
	if (help->more)
		printf("\n%s\n", help->more);
}

int options_usage(const struct command_help *help, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	report_error(help->name, "%s", text);
	print_usage(stderr, help);
	return 2;
}

/* getopt's two tables. */
struct getopt_tables {
	struct option longs[OPTIONS_MAX + 1];
	char shorts[2 * OPTIONS_MAX + 3];
	size_t rows;
	char *end; /* of shorts */
};

static void add_row(struct getopt_tables *t, const struct option_help *row, int value)
{
	if (t->rows == OPTIONS_MAX)
		abort(); /* a table of this program is too long */
	t->longs[t->rows++] = (struct option){
		row->long_name, row->arg ? required_argument : no_argument, NULL, value};
	if (!row->short_name)
		return;
	*t->end++ = row->short_name;
	if (row->arg)
		*t->end++ = ':';
}

static void fill_tables(struct getopt_tables *t, const struct options *o)
{
	const struct option_help *table = o->help->options;

	memset(t, 0, sizeof(*t));
	t->end = t->shorts;
	if (o->is_prefix)
		*t->end++ = '+'; /* stop at the first operand */
	*t->end++ = ':'; /* distinguish a missing argument from an unknown option */
	for (int row = 0; table && table[row].long_name; row++)
		add_row(t, &table[row], ROW_VALUE(row));
	add_row(t, &help_row, 'h');
	if (o->single_dash)
		add_row(t, &version_row, 'V');
}

/* The row for VALUE, which getopt returned. */
static const struct option_help *find_row(const struct option_help *table, int value)
{
	if (value >= ROW_VALUE(0))
		return &table[value - ROW_VALUE(0)];
	while (table->short_name != value)
		table++;
	return table;
}

/* The option at which getopt stopped, as the user wrote it. */
static const char *culprit(const struct options *o, char small[3])
{
	const char *word = o->argv[optind > 0 ? optind - 1 : 0];

	if (optopt == 0 || optopt >= ROW_VALUE(0))
		return word;
	small[0] = '-';
	small[1] = (char)optopt;
	small[2] = '\0';
	return small;
}

static unsigned suffix_shift(const char *suffix)
{
	static const char letters[] = "KMG";
	const char *at = *suffix ? strchr(letters, *suffix & ~0x20) : NULL;

	if (*suffix == '\0')
		return 0;
	if (!at || !*at || suffix[1] != '\0')
		return 64;
	return 10 * (unsigned)(at - letters + 1);
}

bool options_number(const char *text, uint64_t low, uint64_t high, uint64_t *out)
{
	unsigned long long n;
	unsigned shift;
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	n = strtoull(text, &end, 10);
	shift = suffix_shift(end);
	if (errno != 0 || shift >= 64 || n > UINT64_MAX >> shift)
		return false;
	n <<= shift;
	if (n < low || n > high)
		return false;
	*out = n;
	return true;
}

/* ---- reading ---- */

static int put_number(const struct options *o, const struct option_help *row, void *slot)
{
	const struct option_place *place = &row->place;
	uint64_t n;

	if (!options_number(o->arg, place->low, place->high, &n))
		return options_usage(o->help,
				     "--%s %s: not a number from %" PRIu64 " to %" PRIu64,
				     row->long_name, o->arg, place->low, place->high);
	if (place->kind == OPTION_INT)
		*(int *)slot = (int)n;
	else if (place->kind == OPTION_UNSIGNED)
		*(unsigned *)slot = (unsigned)n;
	else
		*(uint64_t *)slot = n;
	return EXIT_OK;
}

/* Store the argument of ROW's option in ARGS.  Returns the exit status. */
static int put_option(const struct options *o, const struct option_help *row, void *args)
{
	void *slot = (char *)args + row->place.at;

	switch (row->place.kind) {
	case OPTION_NOWHERE:
		return EXIT_OK;
	case OPTION_FLAG:
		*(bool *)slot = true;
		return EXIT_OK;
	case OPTION_WORD:
		*(const char **)slot = o->arg;
		return EXIT_OK;
	case OPTION_TEXT:
		free(*(char **)slot);
		*(char **)slot = xstrdup(o->arg);
		return EXIT_OK;
	case OPTION_CALL:
		return row->place.take(o, row, slot);
	default:
		return put_number(o, row, slot);
	}
}

int options_read(struct options *o, void *args)
{
	int (*next)(int, char *const *, const char *, const struct option *, int *) =
		o->single_dash ? getopt_long_only : getopt_long;
	struct getopt_tables t;
	int value, status = EXIT_OK;
	char small[3];

	fill_tables(&t, o);
	optind = 0; /* GNU: forget the scan of main's options */
	opterr = 0;
	while (!status &&
	       (value = next(o->argc, o->argv, t.shorts, t.longs, NULL)) != -1) {
		o->arg = optarg;
		if (value == 'h' || value == 'V') {
			if (value == 'h')
				print_help(o);
			else
				printf("kpack %s %s\n", o->help->name, KP_VERSION);
			return report_finish(EXIT_OK);
		}
		if (value == '?' || value == ':')
			return options_usage(o->help, "%s: %s", culprit(o, small),
					     value == '?' ? "unknown option"
							  : "an argument is missing");
		status = put_option(o, find_row(o->help->options, value), args);
	}
	return status ? status : -1;
}

unsigned option_jobs(void)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);

	return cores > 0 ? (unsigned)cores : 1;
}
