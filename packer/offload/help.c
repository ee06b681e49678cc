/* SPDX-License-Identifier: MIT */
#include "help.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/span.h"
#include "packer/cli/xalloc.h"

#ifndef KP_VERSION
#define KP_VERSION "0.1"
#endif

/* Options of every tool. */
static const struct llvm_option generic[] = {
	[LLVM_HELP] = {.name = "help",
		       .text = "Display available options (--help-hidden for more)"},
	[LLVM_HELP_HIDDEN] = {.name = "help-hidden",
			      .hidden = true,
			      .text = "Display all available options"},
	[LLVM_HELP_LIST] = {.name = "help-list",
			    .text = "Display list of available options "
				    "(--help-list-hidden for more)"},
	[LLVM_HELP_LIST_HIDDEN] = {.name = "help-list-hidden",
				   .hidden = true,
				   .text = "Display list of all available options"},
	[LLVM_PRINT_ALL_OPTIONS] = {.name = "print-all-options",
				    .hidden = true,
				    .text = "Print all option values after command line "
					    "parsing"},
	[LLVM_PRINT_OPTIONS] = {.name = "print-options",
				.hidden = true,
				.text = "Print non-default options after command line "
					"parsing"},
	[LLVM_VERSION] = {.name = "version",
			  .text = "Display the version of this program"},
};

const struct llvm_option *llvm_generic_option(size_t number)
{
	return number < KP_COUNT(generic) ? &generic[number] : NULL;
}

const char *llvm_dashes(const char *name)
{
	return strlen(name) == 1 ? "-" : "--";
}

/* The name of the option's value in help: "<file>"; NULL: it takes no value. */
static const char *value_name(const struct llvm_option *o)
{
	static const char *const names[] = {
		[LLVM_TEXT] = "string",   [LLVM_NUMBER] = "int",
		[LLVM_UNSIGNED] = "uint", [LLVM_LIST] = "string",
		[LLVM_COMMAS] = "string",
	};

	return o->arg ? o->arg : names[o->kind];
}

/* Print "--type=<string>" or "-o <file>" to OUT, if not NULL; returns the width. */
static int print_name(FILE *out, const struct llvm_option *o)
{
	const char *value = value_name(o);
	char text[256];
	int n;

	if (!value)
		n = snprintf(text, sizeof(text), "  %s%s", llvm_dashes(o->name), o->name);
	else
		n = snprintf(text, sizeof(text), "  %s%s%c<%s>", llvm_dashes(o->name),
			     o->name, o->name[1] ? '=' : ' ', value);
	if (out)
		fputs(text, out);
	return n;
}

static void print_option(const struct llvm_option *o, int width)
{
	const char *text = o->text ? o->text : "", *end = strchr(text, '\n');
	int n = print_name(stdout, o);

	printf("%*s - %.*s\n", width - n, "",
	       (int)(end ? end - text : (long)strlen(text)), text);
	while (end) {
		text = end + 1;
		end = strchr(text, '\n');
		printf("%*s%.*s\n", width + 3, "",
		       (int)(end ? end - text : (long)strlen(text)), text);
	}
}

/* ---- the list ---- */

static int by_name(const void *a, const void *b)
{
	return strcmp((*(const struct llvm_option *const *)a)->name,
		      (*(const struct llvm_option *const *)b)->name);
}

/* Add those of N OPTIONS that are shown, not the one called LESS; returns how many. */
static size_t add_rows(const struct llvm_option **rows, const struct llvm_option *options,
		       size_t n, bool all, const char *less)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		if (options[i].name[0] && (all || !options[i].hidden) &&
		    strcmp(options[i].name, less) != 0)
			rows[count++] = &options[i];
	return count;
}

static void print_rows(const struct llvm_option **rows, size_t count, int width)
{
	qsort(rows, count, sizeof(rows[0]), by_name);
	for (size_t i = 0; i < count; i++)
		print_option(rows[i], width);
}

void llvm_help_print(const struct llvm_tool *tool, enum llvm_generic which)
{
	bool all = which == LLVM_HELP_HIDDEN || which == LLVM_HELP_LIST_HIDDEN;
	const struct llvm_option **rows =
		xcalloc(tool->n_options + LLVM_GENERICS, sizeof(*rows));
	/* as in LLVM, --help-list leaves itself out */
	size_t n = add_rows(rows, generic, LLVM_GENERICS, all,
			    which == LLVM_HELP_LIST ? "help-list" : "");
	size_t count = n + add_rows(rows + n, tool->options, tool->n_options, all, "");
	int width = 0;

	printf("OVERVIEW: %s\n\nUSAGE: %s [options]", tool->overview, tool->name);
	for (size_t i = 0; i < tool->n_options; i++)
		if (!tool->options[i].name[0])
			printf(" %s", tool->options[i].text);
	fputs("\n\nOPTIONS:\n", stdout);
	for (size_t i = 0; i < count; i++) {
		int wide = print_name(NULL, rows[i]);

		width = wide > width ? wide : width;
	}
	if (which == LLVM_HELP_LIST || which == LLVM_HELP_LIST_HIDDEN) {
		print_rows(rows, count, width);
	} else {
		fputs("\nGeneric Options:\n\n", stdout);
		print_rows(rows, n, width);
		printf("\n%s:\n\n", tool->category);
		print_rows(rows + n, count - n, width);
	}
	free(rows);
}

void llvm_options_help(const struct llvm_tool *tool)
{
	llvm_help_print(tool, LLVM_HELP_LIST);
}

void llvm_version_print(const struct llvm_tool *tool)
{
	bool ours = strncmp(tool->name, "kpack", 5) == 0;

	printf("%s%s version %s\n", ours ? "" : "kpack ", tool->name, KP_VERSION);
}
