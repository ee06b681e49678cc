/* SPDX-License-Identifier: MIT */
/* kpack apply: bring trees to what their policies say. */
#include "packer/cli/report.h"
#include "packer/command.h"
#include "packer/thin/policy_apply.h"

struct apply_command {
	struct apply apply;
	bool mounts, unmount, unit;
};

static const struct option_help options[] = {
	{0, "policy-dir", "DIR", "the policies (" POLICY_DIR ")",
	 OPTION_PLACE(struct apply_command, apply.places.policies)},
	{0, "state-dir", "DIR", "the state of each tree (" STATE_DIR ")",
	 OPTION_PLACE(struct apply_command, apply.places.states)},
	{0, "topology", "DIR", "where arch=auto looks for GPUs",
	 OPTION_PLACE(struct apply_command, apply.places.topology)},
	{'n', "dry-run", NULL, "change nothing: print what would be done",
	 OPTION_PLACE(struct apply_command, apply.dry)},
	{0, "mounts", NULL, "only mount what has to be mounted",
	 OPTION_PLACE(struct apply_command, mounts)},
	{0, "no-mounts", NULL, "mount nothing: another program does",
	 OPTION_PLACE(struct apply_command, apply.no_mounts)},
	{0, "unit", NULL, "only print the systemd unit that mounts at boot",
	 OPTION_PLACE(struct apply_command, unit)},
	{0, "unmount", NULL, "only unmount, so that packages can be installed",
	 OPTION_PLACE(struct apply_command, unmount)},
	{'q', "quiet", NULL, "print only errors",
	 OPTION_PLACE(struct apply_command, apply.quiet)},
	{0},
};

const struct command_help cmd_apply_help = {
	"apply",
	"[OPTION]... [NAME...]",
	"bring trees to what their policies say",
	options,
	"Only files that changed since the last run are looked at.\n"
	"NAME is a policy of " POLICY_DIR "/NAME.conf; without names, all.",
};

int cmd_apply(int argc, char **argv)
{
	struct options o = {.help = &cmd_apply_help, .argc = argc, .argv = argv};
	struct apply_command c = {0};
	int status = options_read(&o, &c);
	const char *dir = c.apply.places.policies ? c.apply.places.policies : POLICY_DIR;
	struct policies list;
	bool fine;

	if (status >= 0)
		return status;
	if (c.mounts + c.unmount + c.unit + (c.apply.dry || c.apply.no_mounts) > 1)
		return options_usage(&cmd_apply_help,
				     "--mounts, --unmount, --unit, and --dry-run or "
				     "--no-mounts exclude each other");
	c.apply.what = c.mounts ? APPLY_MOUNTS : c.unmount ? APPLY_UNMOUNT : APPLY_ALL;
	c.apply.named = optind < argc;
	fine = policies_read(dir, argv + optind, (size_t)(argc - optind), &list);
	status = EXIT_OK;
	/*
	 * A wrong policy may be for a part of another one's tree, so no tree is changed.
	 * But mounts are removed in any case, and mounted again, because programs need them.
	 */
	if (!fine && c.apply.what == APPLY_ALL)
		c.apply.what = APPLY_MOUNTS;
	if (c.unit)
		status = unit_print(dir, &list) ? EXIT_OK : EXIT_FAULT;
	else if (fine || !(c.apply.dry || c.apply.no_mounts))
		status = apply_policies(&c.apply, &list);
	/* whoever installs packages wants to know what is still mounted, and no more */
	if (!fine && (!c.unmount || c.apply.named))
		status = EXIT_FAULT;
	policies_fini(&list);
	return report_finish(status);
}
