/* SPDX-License-Identifier: MIT */
/* kpack merge: join archives, or the parts of a run. */
#include "command.h"
#include "report.h"

enum {
	OPT_OUTPUT,
	OPT_GROUP,
	OPT_FAMILY,
	OPT_PREFER,
	OPT_FORCE,
	OPT_SKIP_FAULTY,
	OPT_VERIFY,
	OPT_JSON,
	OPT_QUIET,
};

static const struct option_help options[] = {
	[OPT_OUTPUT] = {'o', "output", "OUT", "the archive to write"},
	[OPT_GROUP] = {0, "group", "NAME", "its group_name (default: the archives')"},
	[OPT_FAMILY] = {0, "family", "NAME", "its gfx_arch_family (default: see below)"},
	[OPT_PREFER] = {0, "prefer", "SOURCE",
			"take what clashes from this operand; may be repeated"},
	[OPT_FORCE] = {'f', "force", NULL, "replace OUT when it exists"},
	[OPT_SKIP_FAULTY] = {0, "skip-faulty", NULL,
			     "leave out entries that cannot be read"},
	[OPT_VERIFY] = {0, "verify", NULL, "decode everything that is copied"},
	[OPT_JSON] = {0, "json", NULL, "print what was done as one JSON object"},
	[OPT_QUIET] = {'q', "quiet", NULL, "only tell faults"},
	{0},
};

const struct command_help cmd_merge_help = {
	"merge",
	"[OPTION]... ARCHIVE|DIR|PART... -o OUT",
	"join archives, or the parts of a run",
	options,
	"Without --family it is NAME where OUT is <group>-<NAME>.kpack, else the only\n"
	"architecture, else the group.",
};

int cmd_merge(int argc, char **argv)
{
	(void)argc, (void)argv;
	report_error(NULL, "merge: not built yet");
	return report_finish(EXIT_USAGE);
}
