/* SPDX-License-Identifier: MIT */
#include "options.h"
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "packer/cli/xalloc.h"
#include "packer/cli/report.h"
#include "help.h"
#include "response_file.h"

/* The exit status after any error. */
#define FAILED 1
#define GO_ON (-1)
/* getopt's value for an operand in its place. */
#define OPERAND 1
/* Its value for row N: above every character. */
#define ROW_VALUE(n) (0x100 + (int)(n))

struct reader {
	struct llvm_tool *tool;
	struct option *longs; /* the tool's options with a name, then the generic ones */
	size_t operands, operands_max;
	bool failed;
	int status; /* of --help and --version; else GO_ON */
};

/* ---- messages ---- */

__attribute__((format(printf, 2, 0))) static void
print_message(const char *what, const char *fmt, va_list ap)
{
	char *text;

	if (vasprintf(&text, fmt, ap) < 0)
		xalloc_fail(0);
	report_error(what, "%s", text);
	free(text);
}

int llvm_error(const struct llvm_tool *tool, const char *fmt, ...)
{
	va_list ap;

	(void)tool; /* report_error prints its name */
	va_start(ap, fmt);
	print_message("error", fmt, ap);
	va_end(ap);
	return FAILED;
}

void llvm_warning(const struct llvm_tool *tool, const char *fmt, ...)
{
	va_list ap;

	(void)tool;
	va_start(ap, fmt);
	print_message("warning", fmt, ap);
	va_end(ap);
}

__attribute__((format(printf, 2, 3))) static void fail_usage(struct reader *r,
							     const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	print_message(NULL, fmt, ap);
	va_end(ap);
	r->failed = true;
}

static void fail_unknown(struct reader *r, const char *word)
{
	fail_usage(r, "Unknown command line argument '%s'.  Try: '%s --help'", word,
		   strchr(r->tool->name, ' ') ? r->tool->name : r->tool->words[0]);
}

#define fail_option(r, name, fmt, ...)                                                   \
	fail_usage(r, "for the %s%s option: " fmt, llvm_dashes(name), name, ##__VA_ARGS__)

const char *llvm_tool_name(const char *argv0)
{
	static const char *const commands[] = {"kpack offload-bundler",
					       "kpack offload-packager"};
	const char *slash = strrchr(argv0, '/');

	for (size_t i = 0; i < KP_COUNT(commands); i++)
		if (strcmp(argv0, strchr(commands[i], ' ') + 1) == 0)
			return commands[i];
	return slash ? slash + 1 : argv0;
}

/* ---- values ---- */

static void add_value(struct llvm_option *o, const char *value)
{
	o->values = xrealloc(o->values, (o->n_values + 1) * sizeof(*o->values));
	o->values[o->n_values++] = value;
}

/* Split VALUE at its commas, in place: the words are ours. */
static void add_values(struct llvm_option *o, char *value)
{
	char *item;

	while ((item = strsep(&value, ",")))
		add_value(o, item);
}

static bool parse_flag(const char *text, bool *flag)
{
	static const char *const texts[] = {"",      "true",  "TRUE",  "True", "1",
					    "false", "FALSE", "False", "0"};

	for (size_t i = 0; i < KP_COUNT(texts); i++) {
		*flag = i < 5;
		if (strcmp(texts[i], text) == 0)
			return true;
	}
	return false;
}

/* Parse a number with LLVM's prefixes: 0x, 0b, 0o, 0. */
static bool parse_number(const char *text, long long low, long long high, long long *out)
{
	static const struct {
		char letter;
		int base;
	} prefixes[] = {{'x', 16}, {'b', 2}, {'o', 8}};
	bool minus = *text == '-';
	const char *digits = text + minus;
	int base = digits[0] == '0' && digits[1] ? 8 : 10;
	char *end;

	for (size_t i = 0; i < KP_COUNT(prefixes); i++) {
		if (digits[0] == '0' && (digits[1] | 0x20) == prefixes[i].letter) {
			base = prefixes[i].base;
			digits += 2;
		}
	}
	/* strtoll would take spaces, signs and a prefix of its own */
	if (!strchr("0123456789abcdefABCDEF", *digits) || !*digits ||
	    (digits[1] | 0x20) == 'x')
		return false;
	errno = 0;
	*out = strtoll(digits, &end, base);
	if (minus)
		*out = -*out;
	return !*end && !errno && *out >= low && *out <= high;
}

/* Give option O its VALUE; NULL: a flag without one. */
static void set_option(struct reader *r, struct llvm_option *o, char *value)
{
	bool is_unsigned = o->kind == LLVM_UNSIGNED;

	o->seen++;
	switch (o->kind) {
	case LLVM_FLAG:
		if (!parse_flag(value ? value : "", &o->flag))
			fail_option(r, o->name,
				    "'%s' is invalid value for boolean argument! "
				    "Try 0 or 1",
				    value);
		break;
	case LLVM_TEXT:
		o->value = value;
		break;
	case LLVM_NUMBER:
	case LLVM_UNSIGNED:
		if (!parse_number(value, is_unsigned ? 0 : INT_MIN,
				  is_unsigned ? UINT_MAX : INT_MAX, &o->number))
			fail_option(r, o->name, "'%s' value invalid for %s argument!",
				    value, is_unsigned ? "uint" : "integer");
		break;
	case LLVM_LIST:
		add_value(o, value);
		break;
	case LLVM_COMMAS:
		add_values(o, value);
		break;
	}
}

static void answer_generic(struct reader *r, enum llvm_generic which)
{
	if (which == LLVM_PRINT_OPTIONS || which == LLVM_PRINT_ALL_OPTIONS)
		return;
	if (which == LLVM_VERSION)
		llvm_version_print(r->tool);
	else
		llvm_help_print(r->tool, which);
	r->status = report_finish(0);
}

/* ---- words ---- */

static void read_operand(struct reader *r, char *text)
{
	for (size_t i = 0; i < r->tool->n_options; i++) {
		struct llvm_option *o = &r->tool->options[i];

		if (o->name[0])
			continue;
		r->operands_max = o->kind == LLVM_LIST ? SIZE_MAX : 1;
		if (r->operands++ < r->operands_max)
			set_option(r, o, text);
		return;
	}
	fail_unknown(r, text);
}

/* getopt also takes the beginning of a name, which LLVM's tools refuse. */
static bool is_abbreviated(const char *word, const char *name)
{
	size_t size = strlen(name);

	word += strspn(word, "-");
	return strncmp(word, name, size) != 0 || (word[size] && word[size] != '=');
}

/* Handle what getopt says of WORD: ROW is the index of its option in LONGS. */
static void read_option(struct reader *r, const char *word, int value, int row)
{
	size_t n = r->tool->n_options;

	if (value == OPERAND)
		read_operand(r, optarg);
	else if (value == ':')
		fail_usage(r, "for the %s option: requires a value!", word);
	else if (value == '?' || (row >= 0 && is_abbreviated(word, r->longs[row].name)))
		fail_unknown(r, word);
	else if ((size_t)(value - ROW_VALUE(0)) < n)
		set_option(r, &r->tool->options[value - ROW_VALUE(0)], optarg);
	else
		answer_generic(r, (enum llvm_generic)(value - ROW_VALUE(n)));
}

static void fill_longs(struct reader *r)
{
	/* LLVM_FLAG may have a value behind '=' only, as getopt's optional arguments */
	const struct llvm_tool *tool = r->tool;
	struct option *to = r->longs;

	for (size_t i = 0; i < tool->n_options; i++)
		if (tool->options[i].name[0])
			*to++ = (struct option){tool->options[i].name,
						tool->options[i].kind == LLVM_FLAG
							? optional_argument
							: required_argument,
						NULL, ROW_VALUE(i)};
	for (size_t i = 0; llvm_generic_option(i); i++)
		*to++ = (struct option){llvm_generic_option(i)->name, no_argument, NULL,
					ROW_VALUE(tool->n_options + i)};
}

static void read_words(struct reader *r)
{
	struct llvm_tool *tool = r->tool;
	int value, row;

	optind = 0; /* GNU: forget the scan of main's options */
	opterr = 0;
	while (r->status == GO_ON) {
		const char *word = tool->words[optind > 0 ? optind : 1];

		row = -1;
		/* '-': operands in their places; ':': a missing argument is no '?' */
		value = getopt_long_only((int)tool->n_words, tool->words, "-:", r->longs,
					 &row);
		if (value == -1)
			break;
		read_option(r, word, value, row);
	}
	while (r->status == GO_ON && optind < (int)tool->n_words)
		read_operand(r, tool->words[optind++]);
}

static void check_all(struct reader *r)
{
	if (r->operands > r->operands_max)
		fail_usage(r,
			   "Too many positional arguments specified! "
			   "Can specify at most %zu positional arguments: See: %s --help",
			   r->operands_max, r->tool->words[0]);
	for (size_t i = 0; i < r->tool->n_options; i++) {
		const struct llvm_option *o = &r->tool->options[i];

		if (o->required && !o->seen)
			fail_option(r, o->name, "must be specified at least once!");
	}
}

int llvm_options_read(struct llvm_tool *tool, int argc, char **argv)
{
	struct reader r = {.tool = tool, .status = GO_ON};
	struct kpackx_error why = {0};

	report_set_program(tool->name);
	if (response_words(argc, argv, &tool->words, &tool->n_words, &why))
		return llvm_error(tool, "%s", why.text);
	r.longs = xcalloc(tool->n_options + LLVM_GENERICS + 1, sizeof(*r.longs));
	fill_longs(&r);
	read_words(&r);
	free(r.longs);
	if (r.status != GO_ON)
		return r.status;
	check_all(&r);
	return r.failed ? FAILED : GO_ON;
}

void llvm_options_fini(struct llvm_tool *tool)
{
	for (size_t i = 0; i < tool->n_options; i++) {
		free(tool->options[i].values);
		tool->options[i].values = NULL;
		tool->options[i].n_values = 0;
	}
	response_words_free(tool->words, tool->n_words);
	tool->words = NULL;
	tool->n_words = 0;
}
