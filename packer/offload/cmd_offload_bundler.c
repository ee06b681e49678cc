/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include "../command.h"

static const struct option_help options[] = {{0}};

const struct command_help cmd_offload_bundler_help = {
	"offload-bundler",
	"OPTION...",
	"bundle and unbundle offload code, as clang-offload-bundler",
	options,
	NULL,
};

int cmd_offload_bundler(int argc, char **argv)
{
	(void)argc;
	fprintf(stderr, "%s: not built yet\n", argv[0]);
	return EXIT_USAGE;
}
