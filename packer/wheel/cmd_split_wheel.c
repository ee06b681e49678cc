/* SPDX-License-Identifier: MIT */
/* kpack split-wheel: take Python wheels apart by architecture. */
#include "../command.h"
#include "../report.h"

static const struct option_help options[] = {{0}};

const struct command_help cmd_split_wheel_help = {
	"split-wheel",
	"[OPTION]... WHEEL... -o DIST",
	"take Python wheels apart by architecture",
	options,
	NULL,
};

int cmd_split_wheel(int argc, char **argv)
{
	(void)argc, (void)argv;
	report_error(NULL, "split-wheel: not built yet");
	return report_finish(EXIT_USAGE);
}
