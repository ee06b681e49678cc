/* SPDX-License-Identifier: MIT */
/*
 * kpack: one program, a table of subcommands.  Called as kpack-NAME it is the subcommand
 * NAME, and called as one of clang's or AMD's tools it replaces that tool.
 */
#include <getopt.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include "command.h"
#include "packer/cli/xalloc.h"
#include "packer/cli/report.h"

#ifndef KP_VERSION
#define KP_VERSION "0.1"
#endif

static const struct command {
	int (*run)(int argc, char **argv);
	const struct command_help *help;
} commands[] = {
	{cmd_pack, &cmd_pack_help},
	{cmd_mark, &cmd_mark_help},
	{cmd_ls, &cmd_ls_help},
	{cmd_cat, &cmd_cat_help},
	{cmd_extract, &cmd_extract_help},
	{cmd_info, &cmd_info_help},
	{cmd_verify, &cmd_verify_help},
	{cmd_inspect, &cmd_inspect_help},
	{cmd_thin, &cmd_thin_help},
	{cmd_prune, &cmd_prune_help},
	{cmd_apply, &cmd_apply_help},
	{cmd_status, &cmd_status_help},
	{cmd_split, &cmd_split_help},
	{cmd_merge, &cmd_merge_help},
	{cmd_split_wheel, &cmd_split_wheel_help},
	{cmd_detect, &cmd_detect_help},
	{cmd_report, &cmd_report_help},
	{cmd_run, &cmd_run_help},
	{cmd_runtime, &cmd_runtime_help},
	{cmd_offload_bundler, &cmd_offload_bundler_help},
	{cmd_offload_packager, &cmd_offload_packager_help},
	{cmd_bulk_unbundle, &cmd_bulk_unbundle_help},
};

#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static const char usage_line[] = "usage: kpack [--help] [--version] COMMAND ...\n";

static void print_commands(FILE *out)
{
	fprintf(out, "%s\ncommands:\n", usage_line);
	for (size_t i = 0; i < N_COMMANDS; i++)
		fprintf(out, "  %-17s %s\n", commands[i].help->name,
			commands[i].help->summary);
	fputs("\n'kpack COMMAND --help' lists a command's options.\n", out);
}

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < N_COMMANDS; i++)
		if (strcmp(commands[i].help->name, name) == 0)
			return &commands[i];
	return NULL;
}

static int usage_error(const char *what, const char *text)
{
	report_error(what, "%s", text);
	print_commands(stderr);
	return EXIT_USAGE;
}

/*
 * Handle the options before the subcommand.  Returns an exit status, or -1 to go on with
 * the subcommand.
 */
static int main_options(int argc, char **argv)
{
	static const struct option longs[] = {{"help", no_argument, NULL, 'h'},
					      {"version", no_argument, NULL, 'V'},
					      {0}};
	int value;

	opterr = 0;
	while ((value = getopt_long(argc, argv, "+hV", longs, NULL)) != -1) {
		if (value == 'h')
			print_commands(stdout);
		else if (value == 'V')
			printf("kpack %s\n", KP_VERSION);
		else
			return usage_error(argv[optind > 1 ? optind - 1 : 1],
					   "unknown option");
		return report_finish(EXIT_OK);
	}
	return -1;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Whether NAME, perhaps with a version after it ("-22"), is TOOL. */
static bool is_tool(const char *name, const char *tool)
{
	size_t n = strlen(tool);

	return strncmp(name, tool, n) == 0 &&
	       (!name[n] || (name[n] == '-' &&
			     name[n + 1 + strspn(name + n + 1, "0123456789.")] == '\0'));
}

/*
 * Returns the command that a program of that name is; NULL: the first argument names it.
 */
static const struct command *named_command(const char *name)
{
	static const struct {
		const char *tool, *command;
	} tools[] = {
		{"clang-offload-bundler", "offload-bundler"},
		{"clang-offload-packager", "offload-packager"},
		{"llvm-offload-binary", "offload-packager"},
		{"bulk_unbundle", "bulk-unbundle"},
	};

	for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++)
		if (is_tool(name, tools[i].tool))
			return find_command(tools[i].command);
	return strncmp(name, "kpack-", 6) == 0 ? find_command(name + 6) : NULL;
}

/* Raise the limit of open files: each archive and each directory operand stays open. */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static int run_command(const struct command *c, int argc, char **argv)
{
	raise_descriptor_limit();
	/* else values that jansson has no memory for are left out of objects without an error */
	json_set_alloc_funcs(xmalloc, free);
	/* so that a write past a limit of file sizes fails, with a message, instead of
	 * killing us; what `kpack run` starts has the signal as we found it */
	if (c->run != cmd_run)
		signal(SIGXFSZ, SIG_IGN);
	return c->run(argc, argv);
}

int main(int argc, char **argv)
{
	const char *name = argc > 0 ? base_name(argv[0]) : "kpack";
	const struct command *c = named_command(name);
	int status;

	if (c) {
		report_set_program(name);
		return run_command(c, argc, argv);
	}
	status = main_options(argc, argv);
	if (status >= 0)
		return status;
	if (optind >= argc)
		return usage_error(NULL, "a command is missing");
	c = find_command(argv[optind]);
	if (!c)
		return usage_error(argv[optind], "unknown command");
	return run_command(c, argc - optind, argv + optind);
}
