/* SPDX-License-Identifier: MIT */
/* kpack status: how far the trees of policies are. */
#include "packer/cli/report.h"
#include "packer/command.h"
#include "packer/thin/policy_apply.h"

struct status_command {
	struct policy_places places;
	bool json;
};

static const struct option_help options[] = {
	{0, "policy-dir", "DIR", "the policies (" POLICY_DIR ")",
	 OPTION_PLACE(struct status_command, places.policies)},
	{0, "state-dir", "DIR", "the state of each tree (" STATE_DIR ")",
	 OPTION_PLACE(struct status_command, places.states)},
	{0, "topology", "DIR", "where arch=auto looks for GPUs",
	 OPTION_PLACE(struct status_command, places.topology)},
	{0, "json", NULL, "print one JSON array of objects",
	 OPTION_PLACE(struct status_command, json)},
	{0},
};

const struct command_help cmd_status_help = {
	"status",
	"[OPTION]... [NAME...]",
	"print how far the trees of policies are, and what they saved",
	options,
	NULL,
};

int cmd_status(int argc, char **argv)
{
	struct options o = {.help = &cmd_status_help, .argc = argc, .argv = argv};
	struct status_command c = {0};
	int status = options_read(&o, &c);
	const char *dir = c.places.policies ? c.places.policies : POLICY_DIR;
	struct policies list;
	bool fine;

	if (status >= 0)
		return status;
	fine = policies_read(dir, argv + optind, (size_t)(argc - optind), &list);
	status = status_print(&list, &c.places, c.json);
	policies_fini(&list);
	return report_finish(fine ? status : EXIT_FAULT);
}
