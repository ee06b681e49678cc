/* SPDX-License-Identifier: MIT */
/* kpack split: take a tree, or an archive, apart by architecture. */
#include "command.h"
#include "report.h"

static const struct option_help options[] = {{0}};

const struct command_help cmd_split_help = {
	"split",
	"[OPTION]... INPUT OUTPUT",
	"take a tree, or an archive, apart by architecture",
	options,
	NULL,
};

int cmd_split(int argc, char **argv)
{
	(void)argc, (void)argv;
	report_error(NULL, "split: not built yet");
	return report_finish(EXIT_USAGE);
}
