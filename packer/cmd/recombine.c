/* SPDX-License-Identifier: MIT */
/* kpack recombine: join split trees of several builds into packages. */
#include <stdlib.h>
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/command.h"
#include "packer/trees/recombine.h"

struct recombine_run {
	struct recombine_args args;
	const char *config;
};

static int take_component(const struct options *o, const struct option_help *row,
			  void *slot)
{
	struct recombine_args *args = slot;

	(void)row;
	args->components =
		xrealloc(args->components, (args->n_components + 1) * sizeof(char *));
	args->components[args->n_components++] = (char *)o->arg;
	return EXIT_OK;
}

static const struct option_help options[] = {
	{0, "config", "JSON", "the groups, the primary shard, what to check",
	 OPTION_PLACE(struct recombine_run, config)},
	{0, "input-shards-dir", "DIR", "a directory for each shard",
	 OPTION_PLACE(struct recombine_run, args.shards)},
	{0, "output-dir", "DIR", "where the trees go",
	 OPTION_PLACE(struct recombine_run, args.output)},
	{0, "component", "NAME", "only this component; may be repeated",
	 OPTION_TAKE(struct recombine_run, args, take_component)},
	{0, "prefer", "SHARD", "the shard that wins where files differ",
	 OPTION_PLACE(struct recombine_run, args.prefer)},
	{'f', "force", NULL, "replace existing trees",
	 OPTION_PLACE(struct recombine_run, args.force)},
	{0, "json", NULL, "report as JSON",
	 OPTION_PLACE(struct recombine_run, args.json)},
	{'q', "quiet", NULL, "print nothing but faults",
	 OPTION_PLACE(struct recombine_run, args.quiet)},
	{'v', "verbose", NULL, "also report what was decided, and why",
	 OPTION_PLACE(struct recombine_run, args.verbose)},
	{0},
};

const struct command_help cmd_recombine_help = {
	"recombine",
	"[OPTION]... --config JSON SHARDS OUTPUT",
	"join split trees of several builds into packages",
	options,
	"SHARDS has <shard>/<component>_<target> for each tree of each build.  OUTPUT "
	"gets\n"
	"<component>_generic and <component>_<group> for each group of the "
	"configuration.",
};

/*
 * Take SHARDS and OUTPUT from the operands if no option named them.  Returns an exit
 * status, or -1 to go on.
 */
static int take_operands(struct recombine_args *args, const char *config,
			 const struct options *o)
{
	char **operand = o->argv + optind, **end = o->argv + o->argc;

	if (!args->shards && operand < end)
		args->shards = *operand++;
	if (!args->output && operand < end)
		args->output = *operand++;
	if (operand < end)
		return options_usage(o->help, "%s: one operand too many", *operand);
	if (!config)
		return options_usage(o->help, "--config is missing");
	if (!args->shards || !args->output)
		return options_usage(o->help, "%s is missing",
				     args->shards ? "the output's directory"
						  : "the shards' directory");
	return -1;
}

static int run_recombine(const struct recombine_args *args, const char *path)
{
	struct recombine_args all = *args;
	struct recombine_config config = {0};
	struct kpackx_error why = {0};
	kpack_error_t err;
	int status = EXIT_FAULT;

	if (!below_hold(args->shards) || !below_hold(args->output))
		return EXIT_FAULT;
	err = recombine_config_read(path, &config, &why);
	for (size_t i = 0; i < config.warnings.kept; i++)
		report_error(path, "%s", config.warnings.items[i].text);
	if (err) {
		report_why(path, &why);
	} else {
		all.config = &config;
		status = recombine(&all);
	}
	recombine_config_fini(&config);
	return status;
}

int cmd_recombine(int argc, char **argv)
{
	struct options o = {.help = &cmd_recombine_help, .argc = argc, .argv = argv};
	struct recombine_run run = {0};
	int status = options_read(&o, &run);

	if (status < 0)
		status = take_operands(&run.args, run.config, &o);
	if (status < 0)
		status = report_finish(run_recombine(&run.args, run.config));
	free(run.args.components);
	return status;
}
