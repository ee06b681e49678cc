/* SPDX-License-Identifier: MIT */
/*
 * A command's table of options becomes getopt's two tables and the help.  getopt returns the
 * letter of a short option, and 0x100 and the row's number for a long one; both lead to the row,
 * and an argument goes where the row's place says, after its check.
 */
#include "options.h"
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/alloc.h"
#include "core/base/text.h"
#include "report.h"
#include "xalloc.h"

/* getopt's value for row N: above every character. */
#define ROW_VALUE(n) (0x100 + (n))

static const struct option_help help_row = {'h', "help", NULL, "print this text and exit",
					    OPTION_IGNORED};

/* Build systems ask the tools that we stand in for. */
static const struct option_help version_row = {
	0, "version", NULL, "print the version and exit", OPTION_IGNORED};

/* The column at which texts begin. */
#define TEXT_COLUMN 26

/* Print a line of the help; a long name is a line of its own. */
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

int options_usage(const struct command_help *help, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	report_error(help->name, "%s", text);
	print_usage(stderr, help);
	exit(EXIT_USAGE);
}

void options_check(const struct command_help *help, const struct option_rule *rules)
{
	for (; rules->text; rules++)
		if (rules->broken)
			options_usage(help, "%s", rules->text);
}

bool options_number(const char *text, uint64_t low, uint64_t high, uint64_t *out)
{
	static const char letters[] = "KMG";
	unsigned long long n;
	const char *letter;
	unsigned shift;
	char *end;

	errno = 0;
	n = strtoull(text, &end, 10);
	letter = *end ? strchr(letters, *end & ~0x20) : NULL;
	/* strtoull also takes signs, blanks, and nothing */
	if (*text < '0' || *text > '9' || errno ||
	    (*end && (!letter || !*letter || end[1])))
		return false;
	shift = letter ? 10 * (unsigned)(letter - letters + 1) : 0;
	if (n > UINT64_MAX >> shift || n << shift < low || n << shift > high)
		return false;
	*out = n << shift;
	return true;
}

void option_texts_add(struct option_texts *texts, const char *text)
{
	xgrow(&texts->items, texts->count, &texts->cap, sizeof(*texts->items));
	texts->items[texts->count++] = text;
}

/* Store the argument of ROW's option in ARGS. */
static void put_option(const struct options *o, const struct option_help *row, void *args)
{
	const struct option_place *place = &row->place;
	const char *const *words = place->words;
	void *slot = (char *)args + place->at;
	KP_AUTO(kp_compose) all = {0};
	uint64_t n = 0;
	int status;

	switch (place->kind) {
	case OPTION_NOWHERE:
		break;
	case OPTION_FLAG:
		*(bool *)slot = true;
		break;
	case OPTION_WORD:
		*(const char **)slot = o->arg;
		break;
	case OPTION_TEXT:
		free(*(char **)slot);
		*(char **)slot = xstrdup(o->arg);
		break;
	case OPTION_TEXTS:
		option_texts_add(slot, o->arg);
		break;
	/* range and width are the row's, so that no command checks a number itself */
	case OPTION_DIGITS:
		if (!options_number(o->arg, place->low, place->high, &n))
			options_usage(o->help,
				      "--%s %s: not a number from %" PRIu64
				      " to %" PRIu64,
				      row->long_name, o->arg, place->low, place->high);
		if (place->size == sizeof(uint64_t))
			*(uint64_t *)slot = n;
		else
			*(unsigned *)slot = (unsigned)n;
		break;
	case OPTION_CHOSEN:
		for (; words[n] && strcmp(words[n], o->arg) != 0; n++)
			kp_compose_print(&all, "%s%s",
					 n == 0         ? ""
					 : words[n + 1] ? ", "
							: " or ",
					 words[n]);
		if (!words[n])
			options_usage(o->help, "--%s %s: not %s", row->long_name, o->arg,
				      all.text);
		if (place->size == sizeof(bool))
			*(bool *)slot = n + place->low;
		else
			*(unsigned *)slot = (unsigned)(n + place->low);
		break;
	case OPTION_CALL:
		status = place->take(o, row, slot);
		if (status)
			exit(report_finish(status));
	}
}

/* --- misspelt words ------------------------------------------------------------------- */

const struct command *command_find(const struct command *commands, size_t n,
				   const char *name, struct kp_nearest *nearest)
{
	for (const struct command *c = commands; c < commands + n; c++) {
		const char *blank = strchr(c->help->name, ' ');
		const char *word = blank ? blank + 1 : c->help->name;

		if (strcmp(word, name) == 0)
			return c;
		if (nearest)
			kp_nearest_try(nearest, word);
	}
	return NULL;
}

/* Report that WORD, from the command line, is none of the options ROWS, and end the process. */
static _Noreturn void fail_unknown(const struct command_help *help, const char *word,
				   const struct option_help *const *rows, size_t n)
{
	int dashes = (int)strspn(word, "-");
	struct kp_nearest nearest = {.word = word + dashes};

	for (size_t i = 0; i < n; i++)
		kp_nearest_try(&nearest, rows[i]->long_name);
	if (!nearest.name)
		options_usage(help, "%s: unknown option", word);
	report_error(help->name, "no option '%.*s'; did you mean '%.*s%s'?",
		     (int)strcspn(word, "="), word, dashes, word, nearest.name);
	exit(report_finish(EXIT_USAGE));
}

/* --- reading -------------------------------------------------------------------------- */

/*
 * The tables for getopt are built on the stack for each call: a command reads its options once.
 */
void options_read(struct options *o, void *args)
{
	int (*next)(int, char *const *, const char *, const struct option *, int *) =
		o->single_dash ? getopt_long_only : getopt_long;
	const struct option_help *rows[OPTIONS_MAX];
	struct option longs[OPTIONS_MAX + 1] = {0};
	char shorts[2 * OPTIONS_MAX + 3], *end = shorts;
	size_t n = 0, i;
	int value;

	/* the rows of the table, and those that every command has */
	for (const struct option_help *r = o->help->options; r && r->long_name; r++) {
		if (n + 2 == OPTIONS_MAX)
			abort(); /* a table of this program is too long */
		rows[n++] = r;
	}
	rows[n++] = &help_row;
	if (o->single_dash)
		rows[n++] = &version_row;
	/* A row becomes an entry of LONGS, whose index is the row's number, and a letter of SHORTS. */
	if (o->is_prefix)
		*end++ = '+'; /* stop at the first operand */
	*end++ = ':';         /* distinguish a missing argument from an unknown option */
	for (i = 0; i < n; i++) {
		longs[i] = (struct option){rows[i]->long_name,
					   rows[i]->arg ? required_argument : no_argument,
					   NULL, ROW_VALUE((int)i)};
		if (rows[i]->short_name)
			*end++ = rows[i]->short_name;
		if (rows[i]->short_name && rows[i]->arg)
			*end++ = ':';
	}
	*end = '\0';
	optind = 0; /* GNU: forget the scan of main's options */
	opterr = 0;
	/*
	 * Options of other people's tools may begin with one dash, for which getopt_long_only is made;
	 * it also takes unambiguous beginnings of names, as getopt_long does.
	 */
	while ((value = next(o->argc, o->argv, shorts, longs, NULL)) != -1) {
		if (value == '?' || value == ':') {
			/* of a short option getopt left the letter, of a long one the word */
			char letter[] = {'-', (char)optopt, '\0'};
			bool is_word = optopt == 0 || optopt >= ROW_VALUE(0);

			const char *word =
				is_word ? o->argv[optind > 0 ? optind - 1 : 0] : letter;

			if (value == '?' && is_word)
				fail_unknown(o->help, word, rows, n);
			options_usage(o->help, "%s: %s", word,
				      value == '?' ? "unknown option"
						   : "an argument is missing");
		}
		for (i = 0; rows[i]->short_name != value && ROW_VALUE((int)i) != value;)
			i++;
		o->arg = optarg;
		if (rows[i] == &help_row) {
			print_usage(stdout, o->help);
			printf("\n%s\n\noptions:\n", o->help->summary);
			for (i = 0; i < n; i++)
				print_row(stdout, rows[i]);
			if (o->help->more)
				printf("\n%s\n", o->help->more);
			exit(report_finish(EXIT_OK));
		}
		if (rows[i] == &version_row) {
			printf("kpack %s %s\n", o->help->name, KP_VERSION);
			exit(report_finish(EXIT_OK));
		}
		put_option(o, rows[i], args);
	}
}

int options_parse(const struct command_help *help, int argc, char ***argv, void *args)
{
	struct options o = {.help = help, .argc = argc, .argv = *argv};

	options_read(&o, args);
	*argv += optind;
	return argc - optind;
}

unsigned option_jobs(void)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);

	return cores > 0 ? (unsigned)cores : 1;
}
