/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include "../command.h"

static const struct option_help options[] = {{0}};

const struct command_help cmd_offload_packager_help = {
	"offload-packager",
	"OPTION...",
	"pack and unpack offload binaries, as clang-offload-packager",
	options,
	NULL,
};

int cmd_offload_packager(int argc, char **argv)
{
	(void)argc;
	fprintf(stderr, "%s: not built yet\n", argv[0]);
	return EXIT_USAGE;
}
