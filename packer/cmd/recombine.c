/* SPDX-License-Identifier: MIT */
/* kpack recombine: join split trees of several builds into packages. */
#include <stdlib.h>
#include "packer/base/xalloc.h"
#include "packer/files/below.h"
#include "packer/command.h"
#include "packer/recombine/recombine.h"

enum {
	OPT_CONFIG,
	OPT_SHARDS,
	OPT_OUTPUT,
	OPT_COMPONENT,
	OPT_PREFER,
	OPT_FORCE,
	OPT_JSON,
	OPT_QUIET,
	OPT_VERBOSE
};

static const struct option_help options[] = {
	[OPT_CONFIG] = {0, "config", "JSON",
			"the groups, the primary shard, what to check"},
	[OPT_SHARDS] = {0, "input-shards-dir", "DIR", "a directory for each shard"},
	[OPT_OUTPUT] = {0, "output-dir", "DIR", "where the trees go"},
	[OPT_COMPONENT] = {0, "component", "NAME",
			   "only this component; may be repeated"},
	[OPT_PREFER] = {0, "prefer", "SHARD", "the shard that wins where files differ"},
	[OPT_FORCE] = {'f', "force", NULL, "replace existing trees"},
	[OPT_JSON] = {0, "json", NULL, "report as JSON"},
	[OPT_QUIET] = {'q', "quiet", NULL, "print nothing but faults"},
	[OPT_VERBOSE] = {'v', "verbose", NULL, "also report what was decided, and why"},
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

static void take_component(struct recombine_args *args, char *name)
{
	args->components =
		xrealloc(args->components, (args->n_components + 1) * sizeof(char *));
	args->components[args->n_components++] = name;
}

static void take_option(struct recombine_args *args, const char **config, int row,
			const char *arg)
{
	const char **texts[] = {[OPT_CONFIG] = config,
				[OPT_SHARDS] = &args->shards,
				[OPT_OUTPUT] = &args->output,
				[OPT_PREFER] = &args->prefer};
	bool *flags[] = {[OPT_FORCE] = &args->force,
			 [OPT_JSON] = &args->json,
			 [OPT_QUIET] = &args->quiet,
			 [OPT_VERBOSE] = &args->verbose};

	if (row == OPT_COMPONENT)
		take_component(args, (char *)arg);
	else if (row >= OPT_FORCE)
		*flags[row] = true;
	else
		*texts[row] = arg;
}

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
	struct recombine_args args = {0};
	const char *config = NULL;
	int row, status = -1;

	while (status < 0 && (row = options_next(&o)) != OPTIONS_END) {
		if (row == OPTIONS_STOP)
			status = o.status;
		else
			take_option(&args, &config, row, o.arg);
	}
	if (status < 0)
		status = take_operands(&args, config, &o);
	if (status < 0)
		status = report_finish(run_recombine(&args, config));
	free(args.components);
	return status;
}
