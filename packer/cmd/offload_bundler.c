/* SPDX-License-Identifier: MIT */
/*
 * kpack offload-bundler: the options of clang-offload-bundler, which of them go together, and
 * the variables of the environment that stand for some.  Options come later, so that they win.
 *
 * With the bundler's own defaults - version 3, zstd at level 3, long-distance matching - the same
 * zstd gives the same bytes as LLVM's tool.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/alloc.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "packer/command.h"
#include "packer/offload/offload.h"

struct bundler_args {
	struct bundler job;
	struct offload_texts targets;
};

static void add_text(struct offload_texts *texts, const char *text)
{
	xgrow(&texts->items, texts->count, &texts->cap, sizeof(*texts->items));
	texts->items[texts->count++] = text;
}

/* As `take` of struct option_place. */
static int take_text(const struct options *o, const struct option_help *row, void *slot)
{
	(void)row;
	add_text(slot, o->arg);
	return EXIT_OK;
}

/* As take_text, for several texts with commas between them. */
static int take_list(const struct options *o, const struct option_help *row, void *slot)
{
	char *next = (char *)o->arg, *text; /* of offload_words: it may be cut */

	(void)row;
	while ((text = strsep(&next, ",")))
		add_text(slot, text);
	return EXIT_OK;
}

static bool parse_int(const char *text, int *out)
{
	char *end;
	long n;

	errno = 0;
	n = strtol(text, &end, 10);
	if (end == text || *end || errno || n < INT_MIN || n > INT_MAX)
		return false;
	*out = (int)n;
	return true;
}

/* zstd has negative levels, too. */
static int take_level(const struct options *o, const struct option_help *row, void *slot)
{
	return parse_int(o->arg, slot) ? EXIT_OK
				       : options_usage(o->help, "--%s %s: not a number",
						       row->long_name, o->arg);
}

static const struct option_help options[] = {
	{0, "allow-missing-bundles", NULL,
	 "write empty files for targets without an entry",
	 OPTION_PLACE(struct bundler_args, job.allow_missing)},
	{0, "bundle-align", "N", "where the entries of a binary bundle begin (1)",
	 OPTION_NUMBER(struct bundler_args, job.align, 1, UINT_MAX)},
	{0, "check-input-archive", NULL, "refuse members with conflicting target IDs",
	 OPTION_PLACE(struct bundler_args, job.check_archive)},
	{0, "compress", NULL, "compress the bundle with zstd",
	 OPTION_PLACE(struct bundler_args, job.compress)},
	{0, "compression-level", "N", "level of zstd (3)",
	 OPTION_TAKE(struct bundler_args, job.form.level, take_level)},
	{0, "hip-openmp-compatible", NULL, "treat the kinds hip and openmp as the same",
	 OPTION_PLACE(struct bundler_args, job.hip_openmp)},
	{0, "input", "FILE", "an input, in the order of the targets; - is stdin",
	 OPTION_TAKE(struct bundler_args, job.inputs, take_text)},
	{0, "inputs", "FILE,...", "all inputs, as older versions have it",
	 OPTION_TAKE(struct bundler_args, job.inputs, take_list)},
	{0, "list", NULL, "print the IDs of all entries",
	 OPTION_PLACE(struct bundler_args, job.list)},
	{0, "output", "FILE", "an output, in the order of the targets; - is stdout",
	 OPTION_TAKE(struct bundler_args, job.outputs, take_text)},
	{0, "outputs", "FILE,...", "all outputs, as older versions have it",
	 OPTION_TAKE(struct bundler_args, job.outputs, take_list)},
	{0, "targets", "ID,...", "KIND-TRIPLE-TARGET of each file",
	 OPTION_TAKE(struct bundler_args, targets, take_list)},
	{0, "type", "TYPE", "of the files: i ii cui hipi d ll bc s o a gch ast",
	 OPTION_PLACE(struct bundler_args, job.type)},
	{0, "unbundle", NULL, "take the input apart",
	 OPTION_PLACE(struct bundler_args, job.unbundle)},
	{0, "verbose", NULL, "report compression and decompression",
	 OPTION_PLACE(struct bundler_args, job.verbose)},
	{0},
};

const struct command_help cmd_offload_bundler_help = {
	"offload-bundler",
	"--type TYPE [--unbundle|--list] [--targets ID,...] --input FILE... [--output "
	"FILE]...",
	"bundle and unbundle offload code, as clang-offload-bundler",
	options,
	"A long option may begin with one hyphen.  @FILE stands for the words in FILE.",
};

/* Warn that TEXT, of the variable NAME, is not what is WANTED. */
static void warn_variable(const char *name, const char *text, const char *wanted)
{
	report_error(NULL, "warning: %s=%s is ignored: not %s", name, text, wanted);
}

/* Apply the variables of the environment to B. */
static void read_environment(struct bundler *b)
{
	static const char level[] = "OFFLOAD_BUNDLER_COMPRESSION_LEVEL";
	static const char version[] = "COMPRESSED_BUNDLE_FORMAT_VERSION";
	const char *text = secure_getenv("OFFLOAD_BUNDLER_IGNORE_ENV_VAR");

	if (text && strcmp(text, "1") == 0)
		return;
	text = secure_getenv("OFFLOAD_BUNDLER_VERBOSE");
	b->verbose = text && strcmp(text, "1") == 0;
	text = secure_getenv("OFFLOAD_BUNDLER_COMPRESS");
	b->compress = text && strcmp(text, "1") == 0;
	text = secure_getenv(level);
	if (text && !parse_int(text, &b->form.level))
		warn_variable(level, text, "a number");
	text = secure_getenv(version);
	if (text && (strcmp(text, "2") == 0 || strcmp(text, "3") == 0))
		b->form.version = (unsigned)(*text - '0');
	else if (text)
		warn_variable(version, text, "2 or 3");
}

/* What is wrong with the options together; NULL: nothing. */
static const char *find_fault(const struct bundler_args *a)
{
	const struct bundler *b = &a->job;
	bool archive = b->type && strcmp(b->type, "a") == 0;

	if (!b->type)
		return "--type is missing";
	if (!bundler_type_known(b->type))
		return "--type is none of i ii cui hipi d ll bc s o a gch ast";
	if (b->list && b->unbundle)
		return "--list and --unbundle exclude each other";
	if ((b->list || b->unbundle) && b->inputs.count != 1)
		return "--list and --unbundle need one --input";
	if (b->list)
		return b->outputs.count || a->targets.count
			       ? "--list has no --output and no --targets"
			       : NULL;
	if (b->check_archive && !(b->unbundle && archive))
		return "--check-input-archive needs --unbundle and --type a";
	if (!a->targets.count)
		return "--targets is missing";
	if (archive && !b->unbundle)
		return "an archive can only be unbundled";
	if (b->unbundle && b->outputs.count != a->targets.count)
		return "an --output for each target is needed";
	if (!b->unbundle && b->outputs.count != 1)
		return "one --output is needed";
	if (!b->unbundle && b->inputs.count != a->targets.count)
		return "an --input for each target is needed";
	return NULL;
}

int cmd_offload_bundler(int argc, char **argv)
{
	struct bundler_args a = {.job = {.align = 1,
					 .form = {.version = 3,
						  .method = KP_CCOB_ZSTD,
						  .level = 3,
						  .long_range = true}}};
	KP_AUTO(offload_words) words = {0};
	struct kpackx_error why = {0};
	struct options o = {.help = &cmd_offload_bundler_help, .single_dash = true};
	const char *fault;
	int status;

	if (offload_words_read(&words, argc, argv, &why))
		return offload_fail(NULL, &why);
	o.argc = (int)words.count;
	o.argv = words.items;
	read_environment(&a.job);
	status = options_read(&o, &a);
	if (status >= 0)
		goto out;
	fault = optind < o.argc ? "there are no operands" : find_fault(&a);
	if (fault) {
		status = options_usage(o.help, "%s", fault);
		goto out;
	}
	if (a.job.list) {
		status = bundler_list(&a.job);
	} else {
		status = bundler_targets_read(&a.job, &a.targets);
		if (!status)
			status = a.job.unbundle ? bundler_unbundle(&a.job)
						: bundler_bundle(&a.job);
		bundler_targets_fini(&a.job);
	}
	status = report_finish(status);
out:
	free(a.job.inputs.items);
	free(a.job.outputs.items);
	free(a.targets.items);
	return status;
}
