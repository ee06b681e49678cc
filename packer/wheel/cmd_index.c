/* SPDX-License-Identifier: MIT */
/* kpack index: a package index for a directory of wheels. */
#include "../command.h"
#include "../report.h"

static const struct option_help options[] = {{0}};

const struct command_help cmd_index_help = {
	"index",
	"[OPTION]... DIR",
	"a package index for a directory of wheels",
	options,
	NULL,
};

int cmd_index(int argc, char **argv)
{
	(void)argc, (void)argv;
	report_error(NULL, "index: not built yet");
	return report_finish(EXIT_USAGE);
}
