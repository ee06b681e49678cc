/* SPDX-License-Identifier: MIT */
/* kpack report: a page that shows what is big. */
#include "command.h"
#include "report.h"

static const struct option_help options[] = {{0}};

const struct command_help cmd_report_help = {
	"report",
	"[OPTION]... -o FILE DIR|TREE",
	"a page that shows what is big",
	options,
	NULL,
};

int cmd_report(int argc, char **argv)
{
	(void)argc, (void)argv;
	report_error(NULL, "report: not built yet");
	return report_finish(EXIT_USAGE);
}
