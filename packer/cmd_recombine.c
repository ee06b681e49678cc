/* SPDX-License-Identifier: MIT */
/* kpack recombine: join split trees of several builds into packages. */
#include "command.h"
#include "report.h"

static const struct option_help options[] = {{0}};

const struct command_help cmd_recombine_help = {
	"recombine",
	"[OPTION]... --config JSON",
	"join split trees of several builds into packages",
	options,
	NULL,
};

int cmd_recombine(int argc, char **argv)
{
	(void)argc, (void)argv;
	report_error(NULL, "recombine: not built yet");
	return report_finish(EXIT_USAGE);
}
