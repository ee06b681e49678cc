/* SPDX-License-Identifier: MIT */
/* kpack mark: a command with a table of subcommands of its own. */
#include <stdio.h>
#include <string.h>
#include "packer/inspect/mark.h"
#include "packer/cli/report.h"
#include "packer/command.h"

const struct command_help cmd_mark_help = {
	"mark",
	"COMMAND [OPTION]... FILE...",
	"convert binaries, and look after converted ones",
	NULL,
	NULL,
};

static const struct subcommand {
	int (*run)(int argc, char **argv);
	const struct command_help *help;
} commands[] = {
	{mark_show, &mark_show_help},       {mark_convert, &mark_convert_help},
	{mark_set, &mark_set_help},         {mark_check, &mark_check_help},
	{mark_restore, &mark_restore_help}, {mark_strip_safe, &mark_strip_safe_help},
};

#define N_COMMANDS KP_COUNT(commands)

/* Returns the last word of a name like "mark show". */
static const char *own_name(const struct command_help *help)
{
	return strrchr(help->name, ' ') + 1;
}

static void print_commands(void)
{
	fputs("\ncommands:\n", stdout);
	for (size_t i = 0; i < N_COMMANDS; i++)
		printf("  %-11s %s\n", own_name(commands[i].help),
		       commands[i].help->summary);
	fputs("\n'COMMAND --help' lists a command's options.\n", stdout);
}

/* Print the help, or refuse an option in place of a command. */
static int own_options(char **argv)
{
	struct options o = {.help = &cmd_mark_help, .argc = 2, .argv = argv};
	int status = options_read(&o, NULL);

	if (status < 0)
		return options_usage(&cmd_mark_help, "a command is missing");
	if (status == EXIT_OK)
		print_commands();
	return report_finish(status);
}

int cmd_mark(int argc, char **argv)
{
	if (argc < 2)
		return options_usage(&cmd_mark_help, "a command is missing");
	if (argv[1][0] == '-')
		return own_options(argv);
	for (size_t i = 0; i < N_COMMANDS; i++)
		if (strcmp(own_name(commands[i].help), argv[1]) == 0)
			return commands[i].run(argc - 1, argv + 1);
	return options_usage(&cmd_mark_help, "%s: unknown command", argv[1]);
}
