/* SPDX-License-Identifier: MIT */
/* kpack detect: the GPUs of this machine and what they need. */
#include "command.h"
#include "report.h"

static const struct option_help options[] = {{0}};

const struct command_help cmd_detect_help = {
	"detect",
	"[OPTION]...",
	"the GPUs of this machine and what they need",
	options,
	NULL,
};

int cmd_detect(int argc, char **argv)
{
	(void)argc, (void)argv;
	report_error(NULL, "detect: not built yet");
	return report_finish(EXIT_USAGE);
}
