/* SPDX-License-Identifier: MIT */
/*
 * kpack split: split a tree, a batch of artifacts, or archives, by architecture.  A batch is a
 * directory of artifacts, as TheRock's build leaves them: each is split on its own, and one
 * that fails does not stop the others.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/target/target.h"
#include "packer/command.h"
#include "packer/files/below.h"
#include "packer/trees/split.h"

/* Split INPUT into trees NAME_*; the report is an element of ARRAY, or stands alone. */
static int split_one(const struct split_args *args, const char *input, const char *name,
		     struct report_array *array)
{
	struct split s;
	int status = split_run(&s, args, input, name);

	if (!status) {
		split_report_notes(&s);
		if (!args->json)
			split_report(&s);
		else if (array)
			report_array_add(array, split_report_json(&s));
		else
			report_json(split_report_json(&s));
	}
	for (size_t i = 0; i < s.n_items; i++)
		if (scan_damaged(&s.items[i].packing.scan))
			status = EXIT_FAULT;
	split_close(&s);
	return status;
}

/* --- a batch ------------------------------------------------------------------------- */

/* For scandir: all but hidden files, and generic trees, which have no code to split. */
static int is_artifact(const struct dirent *e)
{
	static const char generic[] = "_" KP_ARCH_GENERIC;

	return e->d_name[0] != '.' && !kp_span_ends(kp_span_str(e->d_name), generic);
}

/*
 * The name of the trees of an artifact in the directory NAME: NAME without its target,
 * "blas_lib" for "blas_lib_gfx1100".
 */
static char *artifact_name(const char *name)
{
	static const char odd[] = "_gfx12_0"; /* the only target with an underscore */
	size_t n = strlen(name), m = sizeof(odd) - 1;
	const char *last = strrchr(name, '_');

	if (n > m && strcmp(name + n - m, odd) == 0)
		last = name + n - m;
	return last && last > name ? xstrndup(name, (size_t)(last - name))
				   : xstrdup(name);
}

/* Split each artifact of the batch.  Returns the first failure's status. */
static int split_batch(const struct split_args *args)
{
	struct report_array array = {0};
	struct dirent **names;
	int status = EXIT_OK, n = below_scandir(args->batch, &names, is_artifact);

	if (n < 0)
		return report_error(args->batch, "%s", strerror(errno));
	for (int i = 0; i < n; i++) {
		KP_AUTO_FREE char *input =
			xasprintf("%s/%s", args->batch, names[i]->d_name);
		KP_AUTO_FREE char *manifest = xasprintf("%s/" ARTIFACT_MANIFEST, input);
		KP_AUTO_FREE char *artifact = artifact_name(names[i]->d_name);
		struct kpackx_error why = {0};
		struct stat st;
		int one = EXIT_OK;

		/* it may be a link to its tree: its paths begin with the link's */
		if (below_stat(manifest, &st) == 0)
			one = below_root(input, &why)
				      ? report_why(input, &why)
				      : split_one(args, input, artifact, &array);
		status = status ? status : one;
		free(names[i]);
	}
	free(names);
	if (args->json)
		report_array_end(&array);
	return status;
}

/* ------------------------------------------------------------------------------------- */

/* Split what the arguments name: a batch, archives, or a tree. */
static int split_operands(const struct split_args *args)
{
	KP_AUTO_FREE char *real = NULL;
	const char *name = args->name;

	/* keep the directories that the user named open */
	for (size_t i = 0; i < args->n_operands; i++)
		if (!below_hold(args->operands[i]))
			return EXIT_FAULT;
	if ((args->batch && !below_hold(args->batch)) ||
	    (args->input && !below_hold(args->input)) || !below_hold(args->output))
		return EXIT_FAULT;
	if (args->batch)
		return split_batch(args);
	if (split_is_archives(args->input))
		return split_archives(args);
	if (args->n_operands > 1)
		options_usage(&cmd_split_help,
			      "one INPUT is needed, unless all are archives");
	if (!name) {
		/* the last component of the input's real path */
		real = below_real(args->input);
		if (!real)
			return report_error(args->input, "%s", strerror(errno));
		name = strrchr(real, '/') + 1;
	}
	return split_one(args, args->input, name, NULL);
}

int cmd_split(int argc, char **argv)
{
	struct split_args args;
	int status = split_args_parse(&args, argc, argv);

	if (!status)
		status = split_operands(&args);
	split_args_fini(&args);
	return report_finish(status);
}
