/* SPDX-License-Identifier: MIT */
/* kpack merge: join archives, or the parts of a run. */
#include "command.h"
#include "report.h"

static const struct option_help options[] = {{0}};

const struct command_help cmd_merge_help = {
	"merge",
	"[OPTION]... ARCHIVE|PART... -o OUT",
	"join archives, or the parts of a run",
	options,
	NULL,
};

int cmd_merge(int argc, char **argv)
{
	(void)argc, (void)argv;
	report_error(NULL, "merge: not built yet");
	return report_finish(EXIT_USAGE);
}
