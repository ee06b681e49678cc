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
	/* a file that was left alone because it is damaged was reported; the trees are whole but for it */
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
 * Split each artifact of the batch.  Its trees have the name of its directory without the target:
 * "blas_lib" for "blas_lib_gfx1100".  Returns the first failure's status.
 */
static int split_batch(const struct split_args *args)
{
	static const char odd[] = "_gfx12_0"; /* the only target with an underscore */
	struct report_array array = {0};
	struct dirent **names;
	int status = EXIT_OK, n = below_scandir(args->batch, &names, is_artifact);

	if (n < 0)
		return report_error(args->batch, "%s", strerror(errno));
	for (int i = 0; i < n; i++) {
		char *artifact = names[i]->d_name, *target = strrchr(artifact, '_');
		KP_AUTO_FREE char *input = xasprintf("%s/%s", args->batch, artifact);
		KP_AUTO_FREE char *manifest = xasprintf("%s/" ARTIFACT_MANIFEST, input);
		struct kpackx_error why = {0};
		struct stat st;
		int one = EXIT_OK;

		/* the target is what follows the last underscore */
		if (strlen(artifact) > strlen(odd) &&
		    kp_span_ends(kp_span_str(artifact), odd))
			target = artifact + strlen(artifact) - strlen(odd);
		if (target > artifact)
			*target = '\0';
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

/*
 * Split what the arguments name: a batch, archives, or a tree.  The directories that the user named
 * are held open first.
 */
int cmd_split(int argc, char **argv)
{
	static struct split_args args;
	int status = split_args_parse(&args, argc, argv);
	KP_AUTO_FREE char *real = NULL;
	bool held = !status;

	/* held before it is known what they are, so that what is looked at is what is split */
	for (size_t i = 0; i < args.n_operands && held; i++)
		held = below_hold(args.operands[i]);
	held = held && (!args.batch || below_hold(args.batch)) &&
	       (!args.input || below_hold(args.input)) && below_hold(args.output);
	if (!held) {
		status = status ? status : EXIT_FAULT;
	} else if (args.batch) {
		status = split_batch(&args);
	} else if (split_is_archives(args.input)) {
		status = split_archives(&args);
	} else {
		if (args.n_operands > 1)
			options_usage(&cmd_split_help,
				      "one INPUT is needed, unless all are archives");
		/* a tree without a name has the last component of its real path */
		real = args.name ? NULL : below_real(args.input);
		status = args.name || real
				 ? split_one(&args, args.input,
					     args.name ? args.name
						       : strrchr(real, '/') + 1,
					     NULL)
				 : report_error(args.input, "%s", strerror(errno));
	}
	return report_finish(status);
}
