/* SPDX-License-Identifier: MIT */
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

/* getopt's value for row N: above every character. */
#define ROW_VALUE(n) (0x100 + (n))

static const struct option_help help_row = {'h', "help", NULL,
					    "print this text and exit"};

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

static void print_help(const struct command_help *help)
{
	print_usage(stdout, help);
	printf("\n%s\n\noptions:\n", help->summary);
	for (const struct option_help *row = help->options; row && row->long_name; row++)
		print_row(stdout, row);
	print_row(stdout, &help_row);
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
	char shorts[2 * OPTIONS_MAX + 2];
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

static size_t fill_tables(struct getopt_tables *t, const struct option_help *table)
{
	size_t rows = 0;

	memset(t, 0, sizeof(*t));
	t->end = t->shorts;
	*t->end++ = ':'; /* distinguish a missing argument from an unknown option */
	for (; table && table[rows].long_name; rows++)
		add_row(t, &table[rows], ROW_VALUE((int)rows));
	add_row(t, &help_row, 'h');
	return rows;
}

static int row_of(const struct option_help *table, size_t rows, int value)
{
	if (value >= ROW_VALUE(0))
		return value - ROW_VALUE(0);
	for (size_t i = 0; i < rows; i++)
		if (table[i].short_name == value)
			return (int)i;
	return OPTIONS_STOP;
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

static int refuse_option(struct options *o, const char *what)
{
	char small[3];

	o->status = options_usage(o->help, "%s: %s", culprit(o, small), what);
	return OPTIONS_STOP;
}

int options_next(struct options *o)
{
	struct getopt_tables t;
	size_t rows = fill_tables(&t, o->help->options);
	int value;

	if (!o->begun)
		optind = 0; /* GNU: forget the scan of main's options */
	o->begun = true;
	opterr = 0;
	value = getopt_long(o->argc, o->argv, t.shorts, t.longs, NULL);
	o->arg = optarg;
	if (value == -1)
		return OPTIONS_END;
	if (value == '?')
		return refuse_option(o, "unknown option");
	if (value == ':')
		return refuse_option(o, "an argument is missing");
	if (value == 'h') {
		print_help(o->help);
		o->status = report_finish(0);
		return OPTIONS_STOP;
	}
	return row_of(o->help->options, rows, value);
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

int options_take_number(const struct command_help *help, const char *option,
			const char *text, uint64_t low, uint64_t high, uint64_t *out)
{
	if (options_number(text, low, high, out))
		return 0;
	return options_usage(help, "--%s %s: not a number from %" PRIu64 " to %" PRIu64,
			     option, text, low, high);
}
