/* SPDX-License-Identifier: MIT */
#include "options.h"
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "packer/base/xalloc.h"
#include "packer/cli/report.h"
#include "help.h"
#include "response_file.h"

/* The exit status after any error. */
#define FAILED 1
#define GO_ON (-1)

struct reader {
	struct llvm_tool *tool;
	const char *argv0;
	size_t next; /* word */
	size_t operands, operands_max;
	bool only_operands; /* behind "--" */
	bool failed;
	int status; /* of --help and --version; else GO_ON */
};

/* A word split into its parts: "--NAME=VALUE". */
struct word {
	const char *whole;
	const char *name;
	size_t name_size;
	const char *value; /* behind '='; NULL: the word has no '=' */
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

#define fail_option(r, name, fmt, ...)                                                   \
	fail_usage(r, "for the %s%s option: " fmt, llvm_dashes(name), name, ##__VA_ARGS__)

const char *llvm_tool_name(const char *argv0)
{
	static const char *const commands[] = {"kpack offload-bundler",
					       "kpack offload-packager"};
	const char *slash = strrchr(argv0, '/');

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(argv0, strchr(commands[i], ' ') + 1) == 0)
			return commands[i];
	return slash ? slash + 1 : argv0;
}

/* ---- values ---- */

static void set_list(struct reader *r, struct llvm_option *o, const char *value)
{
	(void)r;
	o->values = xrealloc(o->values, (o->n_values + 1) * sizeof(*o->values));
	o->values[o->n_values++] = value;
}

/* Split VALUE at its commas, in place: the words are ours. */
static void set_commas(struct reader *r, struct llvm_option *o, const char *value)
{
	char *comma;

	while ((comma = strchr(value, ','))) {
		*comma = '\0';
		set_list(r, o, value);
		value = comma + 1;
	}
	set_list(r, o, value);
}

static void set_text(struct reader *r, struct llvm_option *o, const char *value)
{
	(void)r;
	o->value = value;
}

static void set_flag(struct reader *r, struct llvm_option *o, const char *value)
{
	static const struct {
		const char *text;
		bool flag;
	} texts[] = {{"", true},       {"true", true},   {"TRUE", true},
		     {"True", true},   {"1", true},      {"false", false},
		     {"FALSE", false}, {"False", false}, {"0", false}};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (strcmp(texts[i].text, value) == 0) {
			o->flag = texts[i].flag;
			return;
		}
	}
	fail_option(r, o->name, "'%s' is invalid value for boolean argument! Try 0 or 1",
		    value);
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

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
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

static void set_number(struct reader *r, struct llvm_option *o, const char *value)
{
	bool is_unsigned = o->kind == LLVM_UNSIGNED;
	long long number;

	if (parse_number(value, is_unsigned ? 0 : INT_MIN,
			 is_unsigned ? UINT_MAX : INT_MAX, &number))
		o->number = number;
	else
		fail_option(r, o->name, "'%s' value invalid for %s argument!", value,
			    is_unsigned ? "uint" : "integer");
}

static const struct {
	bool wants_value;
	void (*set)(struct reader *r, struct llvm_option *o, const char *value);
} kinds[] = {
	[LLVM_FLAG] = {false, set_flag},    [LLVM_TEXT] = {true, set_text},
	[LLVM_NUMBER] = {true, set_number}, [LLVM_UNSIGNED] = {true, set_number},
	[LLVM_LIST] = {true, set_list},     [LLVM_COMMAS] = {true, set_commas},
};

/*
 * Give option O its VALUE; NULL: none was given with '=', so the next word is the value.
 */
static void provide_value(struct reader *r, struct llvm_option *o, const char *value)
{
	if (!value && kinds[o->kind].wants_value) {
		if (r->next == r->tool->n_words) {
			fail_option(r, o->name, "requires a value!");
			return;
		}
		value = r->tool->words[r->next++];
	}
	o->seen++;
	kinds[o->kind].set(r, o, value ? value : "");
}

/* ---- options of every tool ---- */

static void answer_generic(struct reader *r, enum llvm_generic which,
			   const struct word *w)
{
	if (which == LLVM_PRINT_OPTIONS || which == LLVM_PRINT_ALL_OPTIONS)
		return;
	if (w->value) {
		fail_option(r, llvm_generic_option(which)->name,
			    "does not allow a value! '%s' specified.", w->value);
		return;
	}
	if (which == LLVM_VERSION)
		llvm_version_print(r->tool);
	else
		llvm_help_print(r->tool, which);
	r->status = report_finish(0);
}

/* Handle W if it is an option that every tool has; false: it is not. */
static bool try_generic(struct reader *r, const struct word *w)
{
	const struct llvm_option *o;

	for (size_t i = 0; (o = llvm_generic_option(i)); i++) {
		if (strlen(o->name) == w->name_size &&
		    memcmp(o->name, w->name, w->name_size) == 0) {
			answer_generic(r, (enum llvm_generic)i, w);
			return true;
		}
	}
	return false;
}

/* ---- names ---- */

static bool is_name(const char *name, const char *text, size_t size)
{
	return name && *name && strlen(name) == size && memcmp(name, text, size) == 0;
}

static struct llvm_option *find_option(struct llvm_tool *tool, const char *name,
				       size_t size)
{
	for (size_t i = 0; i < tool->n_options; i++) {
		struct llvm_option *o = &tool->options[i];

		if (is_name(o->name, name, size) || is_name(o->alias, name, size))
			return o;
	}
	return NULL;
}

/* The number of bytes to add, remove or change to turn A into B. */
static size_t edit_distance(const char *a, size_t a_size, const char *b, size_t b_size)
{
	size_t row[65], left, above;

	if (b_size > 64)
		return a_size > b_size ? a_size : b_size;
	for (size_t j = 0; j <= b_size; j++)
		row[j] = j;
	for (size_t i = 1; i <= a_size; i++) {
		above = row[0];
		row[0] = i;
		for (size_t j = 1; j <= b_size; j++) {
			left = row[j - 1] < row[j] ? row[j - 1] : row[j];
			left++;
			above += a[i - 1] != b[j - 1];
			left = left < above ? left : above;
			above = row[j];
			row[j] = left;
		}
	}
	return row[b_size];
}

/* The option whose name is closest to W's; of equally close ones the first by name. */
static const struct llvm_option *nearest_option(struct llvm_tool *tool,
						const struct word *w)
{
	const struct llvm_option *best = NULL, *o;
	size_t least = SIZE_MAX, d;

	for (size_t i = 0; i < tool->n_options + LLVM_GENERICS; i++) {
		o = i < tool->n_options ? &tool->options[i]
					: llvm_generic_option(i - tool->n_options);
		if (!o->name[0])
			continue;
		d = edit_distance(w->name, w->name_size, o->name, strlen(o->name));
		if (d < least || (d == least && strcmp(o->name, best->name) < 0)) {
			best = o;
			least = d;
		}
	}
	return best;
}

/* Suggest NAME.  With a value LLVM always prints two dashes. */
static void suggest_option(struct reader *r, const char *name, const char *value)
{
	if (value)
		fail_usage(r, "Did you mean '--%s=%s'?", name, value);
	else
		fail_usage(r, "Did you mean '%s%s'?", llvm_dashes(name), name);
}

static void fail_unknown(struct reader *r, const struct word *w)
{
	bool is_command = strchr(r->tool->name, ' ');
	const struct llvm_option *near = w->name ? nearest_option(r->tool, w) : NULL;

	fail_usage(r, "Unknown command line argument '%s'.  Try: '%s --help'", w->whole,
		   is_command ? r->tool->name : r->argv0);
	if (near)
		suggest_option(r, near->name, w->value && *w->value ? w->value : NULL);
}

/* ---- words ---- */

static void split_word(const char *text, struct word *w)
{
	const char *name = text + 1 + (text[1] == '-'), *equals = strchr(name, '=');

	*w = (struct word){text, name, equals ? (size_t)(equals - name) : strlen(name),
			   equals ? equals + 1 : NULL};
}

/* Handle "-ab" as "-a -b" if these take no value; false: W is not such a group. */
static bool try_group(struct reader *r, const struct word *w)
{
	struct llvm_option *o;

	for (size_t i = 0; i < w->name_size; i++) {
		o = find_option(r->tool, w->name + i, 1);
		if (!o || w->name_size == 1)
			return false;
		if (kinds[o->kind].wants_value) {
			fail_option(r, o->name, "may not occur within a group!");
			return false;
		}
		provide_value(r, o, i + 1 == w->name_size ? w->value : NULL);
	}
	return w->name_size > 1;
}

static void read_option(struct reader *r, const char *text)
{
	struct llvm_option *o;
	struct word w;

	split_word(text, &w);
	o = find_option(r->tool, w.name, w.name_size);
	if (o)
		provide_value(r, o, w.value);
	else if (!try_generic(r, &w) && !try_group(r, &w))
		fail_unknown(r, &w);
}

static void read_operand(struct reader *r, const char *text)
{
	for (size_t i = 0; i < r->tool->n_options; i++) {
		struct llvm_option *o = &r->tool->options[i];

		if (o->name[0])
			continue;
		r->operands_max = o->kind == LLVM_LIST ? SIZE_MAX : 1;
		if (r->operands++ < r->operands_max)
			provide_value(r, o, text);
		return;
	}
	fail_unknown(r, &(struct word){.whole = text});
}

static void read_word(struct reader *r, const char *text)
{
	if (r->only_operands || text[0] != '-' || !text[1])
		read_operand(r, text);
	else if (strcmp(text, "--") == 0)
		r->only_operands = true;
	else
		read_option(r, text);
}

static void check_all(struct reader *r)
{
	if (r->operands > r->operands_max)
		fail_usage(r,
			   "Too many positional arguments specified! "
			   "Can specify at most %zu positional arguments: See: %s --help",
			   r->operands_max, r->argv0);
	for (size_t i = 0; i < r->tool->n_options; i++) {
		const struct llvm_option *o = &r->tool->options[i];

		if (o->required && !o->seen)
			fail_option(r, o->name, "must be specified at least once!");
	}
}

int llvm_options_read(struct llvm_tool *tool, int argc, char **argv)
{
	struct reader r = {
		.tool = tool, .argv0 = argc > 0 ? argv[0] : "", .status = GO_ON};
	struct kpackx_error why = {0};

	report_set_program(tool->name);
	if (response_words(argc, argv, &tool->words, &tool->n_words, &why))
		return llvm_error(tool, "%s", why.text);
	while (r.next < tool->n_words && r.status == GO_ON)
		read_word(&r, tool->words[r.next++]);
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
