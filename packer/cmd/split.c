/* SPDX-License-Identifier: MIT */
/* kpack split: split a tree, or archives, by architecture. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/command.h"
#include "packer/trees/split_archives.h"
#include "packer/trees/split_report.h"
#include "core/target/target.h"
#include "packer/trees/artifact.h"

/* The report at the end. */
struct reporter {
	const struct split_args *args;
	bool batch;
	struct report_array array;
};

static void report_split(struct reporter *r, const struct split *s)
{
	split_report_notes(s);
	if (!r->args->json) {
		split_report(s);
		return;
	}
	if (r->batch)
		report_array_add(&r->array, split_report_json(s));
	else
		report_json(split_report_json(s));
}

static int split_one(struct reporter *r, const char *input, const char *name)
{
	struct split s;
	int status;

	if (!name) {
		report_error(input, "%s", strerror(errno));
		return EXIT_FAULT;
	}
	status = split_run(&s, r->args, input, name);
	if (!status)
		report_split(r, &s);
	for (size_t i = 0; i < s.n_items; i++)
		if (scan_damaged(&s.items[i].packing.scan))
			status = EXIT_FAULT;
	split_close(&s);
	return status;
}

/* --- batch --------------------------------------------------------------------------- */

static int is_artifact(const struct dirent *e)
{
	static const char generic[] = "_" KP_ARCH_GENERIC;
	size_t n = strlen(e->d_name), m = sizeof(generic) - 1;

	return e->d_name[0] != '.' && (n < m || strcmp(e->d_name + n - m, generic) != 0);
}

/* Split INPUT, which the batch lists, if it is an artifact. */
static int split_input(struct reporter *r, const char *input, const char *name)
{
	char *manifest = xasprintf("%s/" ARTIFACT_MANIFEST, input), *artifact;
	struct kpackx_error why = {0};
	struct stat st;
	bool any = below_stat(manifest, &st) == 0;
	int status;

	free(manifest);
	if (!any)
		return EXIT_OK;
	/* it may be a link to its tree: its paths begin with the link's */
	if (below_root(input, &why)) {
		report_why(input, &why);
		return EXIT_FAULT;
	}
	artifact = split_args_artifact(name);
	status = split_one(r, input, artifact);
	free(artifact);
	return status;
}

static int split_listed(struct reporter *r, const char *name)
{
	char *input = xasprintf("%s/%s", r->args->batch, name);
	int status = split_input(r, input, name);

	free(input);
	return status;
}

static int split_batch(struct reporter *r)
{
	struct dirent **names;
	int status = EXIT_OK, n = below_scandir(r->args->batch, &names, is_artifact);

	if (n < 0) {
		report_error(r->args->batch, "%s", strerror(errno));
		return EXIT_FAULT;
	}
	for (int i = 0; i < n; i++) {
		int one = split_listed(r, names[i]->d_name);

		status = status ? status : one;
		free(names[i]);
	}
	free(names);
	if (r->args->json)
		report_array_end(&r->array);
	return status;
}

/* --- all ----------------------------------------------------------------------------- */

/* Keep the directories that the user named open. */
static bool hold_directories(const struct split_args *args)
{
	for (size_t i = 0; i < args->n_operands; i++)
		if (!below_hold(args->operands[i]))
			return false;
	return (!args->batch || below_hold(args->batch)) &&
	       (!args->input || below_hold(args->input)) && below_hold(args->output);
}

static int run_split(const struct split_args *args)
{
	struct reporter r = {.args = args, .batch = args->batch != NULL};
	char *name;
	int status;

	if (!hold_directories(args))
		return EXIT_FAULT;
	if (args->batch)
		return split_batch(&r);
	if (split_is_archives(args->input))
		return split_archives(args);
	if (args->n_operands > 1)
		return options_usage(&cmd_split_help,
				     "one INPUT is needed, unless all are archives");
	errno = 0;
	name = args->name ? xstrdup(args->name) : split_args_name(args->input);
	status = split_one(&r, args->input, name);
	free(name);
	return status;
}

int cmd_split(int argc, char **argv)
{
	struct split_args args;
	int status = split_args_parse(&args, argc, argv);

	if (!status)
		status = run_split(&args);
	split_args_fini(&args);
	return report_finish(status < 0 ? EXIT_OK : status);
}
