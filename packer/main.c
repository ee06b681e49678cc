/* SPDX-License-Identifier: MIT */
/*
 * kpack: one program, a table of subcommands.  Called as kpack-NAME it is the subcommand
 * NAME, and called as one of clang's or AMD's tools it replaces that tool.
 */
#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include "command.h"

static const struct command commands[] = {
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

/*
 * Larger blocks of memory go back to the system at once.  Smaller ones are used again: the
 * system would have to clear new ones, with a page fault for each 4 KiB.  Each thread has a
 * heap, whose free end is given back when it is longer than HEAP_KEEPS, but for HEAP_ENDS:
 * without these an empty heap would be unmapped, and made again for the next object.
 */
static void keep_memory(void)
{
	enum { MALLOC_KEEPS = 32 << 20, HEAP_KEEPS = 4 << 20, HEAP_ENDS = 10 << 20 };

	mallopt(M_MMAP_THRESHOLD, MALLOC_KEEPS);
	mallopt(M_TRIM_THRESHOLD, HEAP_KEEPS);
	mallopt(M_TOP_PAD, HEAP_ENDS);
}

enum { N_COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static void print_commands(FILE *out)
{
	fputs("usage: kpack [--help] [--version] [--color=WHEN] COMMAND "
	      "...\n\ncommands:\n",
	      out);
	for (size_t i = 0; i < N_COMMANDS; i++)
		fprintf(out, "  %-17s %s\n", commands[i].help->name,
			commands[i].help->summary);
	fputs("\n'kpack help COMMAND' lists a command's options; kpack-COMMAND(1) has "
	      "more.\n",
	      out);
}

/* The options before the command's name. */
static const struct option longs[] = {{"help", no_argument, NULL, 'h'},
				      {"version", no_argument, NULL, 'V'},
				      {"color", required_argument, NULL, 'c'},
				      {0}};

/* One of them is wrong, WORD: getopt's WHY is ':' or '?'. */
static int option_error(const char *word, int why)
{
	struct kp_nearest nearest = {.word = word + strspn(word, "-")};

	for (const struct option *o = longs; why == '?' && o->name; o++)
		kp_nearest_try(&nearest, o->name);
	if (nearest.name)
		report_error(NULL, "no option '%.*s'; did you mean '--%s'?",
			     (int)strcspn(word, "="), word, nearest.name);
	else
		report_error(word, "%s; 'kpack --help' lists the options",
			     why == ':' ? "an argument is missing" : "unknown option");
	return EXIT_USAGE;
}

/*
 * The command that a program called NAME is: kpack-COMMAND, or one of the tools that we stand in
 * for, perhaps with a version behind it ("-22").  NULL: the first argument names the command.
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

	for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++) {
		size_t n = strlen(tools[i].tool);

		if (strncmp(name, tools[i].tool, n) == 0 &&
		    (!name[n] ||
		     (name[n] == '-' &&
		      name[n + 1 + strspn(name + n + 1, "0123456789.")] == '\0')))
			return command_find(commands, N_COMMANDS, tools[i].command, NULL);
	}
	return strncmp(name, "kpack-", 6) == 0
		       ? command_find(commands, N_COMMANDS, name + 6, NULL)
		       : NULL;
}

int main(int argc, char **argv)
{
	const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
	const char *name = slash ? slash + 1 : argc > 0 ? argv[0] : "kpack";
	const struct command *c = named_command(name);
	struct kp_nearest nearest = {0};
	char help[] = "--help";
	struct rlimit limit;
	int letter;

	/*
	 * Called as kpack-NAME or as another tool, all arguments are the command's.  Called as kpack,
	 * options before the command's name are ours: "+" lets getopt stop there, so that it
	 * does not take the command's own.
	 */
	if (c) {
		report_set_program(name);
	} else {
		opterr = 0;
		while ((letter = getopt_long(argc, argv, "+:hV", longs, NULL)) != -1) {
			switch (letter) {
			case 'h':
				print_commands(stdout);
				return report_finish(EXIT_OK);
			case 'V':
				printf("kpack %s\n", KP_VERSION);
				return report_finish(EXIT_OK);
			case 'c':
				if (report_color(optarg))
					break;
				report_error(NULL,
					     "--color %s: not auto, always or never",
					     optarg);
				return EXIT_USAGE;
			default:
				return option_error(argv[optind > 1 ? optind - 1 : 1],
						    letter);
			}
		}
		argv += optind;
		argc -= optind;
		if (argc <= 0) {
			report_error(NULL, "a command is missing");
			print_commands(stderr);
			return EXIT_USAGE;
		}
		if (strcmp(argv[0], "help") == 0) {
			if (argc == 1 || strcmp(argv[1], "help") == 0) {
				print_commands(stdout);
				return report_finish(EXIT_OK);
			}
			/* kpack help NAME is kpack NAME --help; mark has commands of its own */
			argc = 1 + (argc > 2 && strcmp(argv[1], cmd_mark_help.name) == 0);
			memmove(argv, argv + 1, (size_t)argc * sizeof(*argv));
			argv[argc++] = help;
		}
		nearest.word = argv[0];
		kp_nearest_try(&nearest, "help");
		c = command_find(commands, N_COMMANDS, argv[0], &nearest);
		/* a misspelt name is answered in one line, without the list of all commands */
		if (!c && nearest.name)
			report_error(NULL, "no command '%s'; did you mean '%s'?", argv[0],
				     nearest.name);
		else if (!c)
			report_error(NULL, "no command '%s'; 'kpack --help' lists them",
				     argv[0]);
		if (!c)
			return EXIT_USAGE;
	}
	keep_memory();
	/* each archive and each directory operand stays open */
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	/* else values that jansson has no memory for are left out of objects without an error */
	json_set_alloc_funcs(xmalloc, free);
	/* so that a write past a limit of file sizes fails, with a message, instead of
	 * killing us; what `kpack run` starts has the signal as we found it */
	if (c->run != cmd_run)
		signal(SIGXFSZ, SIG_IGN);
	return c->run(argc, argv);
}
