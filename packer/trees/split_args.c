/* SPDX-License-Identifier: MIT */
/*
 * The command line of kpack split: its own options, and those of TheRock's split_artifacts,
 * some of which take several words.  Everything that can be wrong about it is reported before
 * a file is looked at; what packing needs is made of it for each prefix anew.
 */
#include <stdlib.h>
#include "core/archive/naming.h"
#include "core/base/text.h"
#include "core/target/target.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "packer/command.h"
#include "split.h"

/* --- options ----------------------------------------------------------------------- */

/*
 * Add the argument to a list.  As TheRock's script, some options also take the words that
 * follow it.
 */
static int take_list(const struct options *o, const struct option_help *row, void *slot)
{
	bool targets = strcmp(row->long_name, "gpu-targets") == 0;
	bool libraries = strcmp(row->long_name, "split-databases") == 0;
	char **list = slot;
	bool more = true;

	for (const char *word = o->arg; more;) {
		struct library_set set = {0};
		struct kp_target target;
		char *longer =
			xasprintf("%s%s%s", *list ? *list : "", *list ? "," : "", word);

		free(*list);
		*list = longer;
		word = optind < o->argc ? o->argv[optind] : "";
		/* any other word is an operand already */
		more = (targets && strncmp(word, "gfx", 3) == 0 &&
			!kp_target_parse(kp_span_str(word), &target, NULL)) ||
		       (libraries && !library_set_open(word, NULL, &set, NULL));
		library_set_close(&set);
		optind += more;
	}
	return EXIT_OK;
}

/* What its name and its targets must be is checked when the families are made. */
static int take_family(const struct options *o, const struct option_help *row, void *slot)
{
	(void)row;
	if (!strchr(o->arg, '='))
		return options_usage(o->help, "--family %s: not NAME=ARCH,...", o->arg);
	option_texts_add(slot, o->arg);
	return EXIT_OK;
}

/* Scripts for other splitters give it; there is nothing here that it could mean. */
static int ignore_option(const struct options *o, const struct option_help *row,
			 void *slot)
{
	(void)o;
	(void)slot;
	report_error(NULL, "note: --%s is ignored", row->long_name);
	return EXIT_OK;
}

/* Where the argument of an option goes. */
#define AT(member) OPTION_PLACE(struct split_args, member)

static const struct option_help options[] = {
	{0, "prefix-manifest", NULL, "INPUT must have an artifact_manifest.txt",
	 AT(manifest)},
	{0, "name", "NAME", "name of the trees (from INPUT's name)", AT(name)},
	{0, "archive-dir", "DIR", "the archives' directory in each tree (.kpack)",
	 AT(archive_dir)},
	{0, "gpu-targets", "LIST", "only what these GPUs can load; auto: this machine's",
	 OPTION_TAKE(struct split_args, targets, take_list)},
	{0, "arch-exact", NULL, "with --gpu-targets: only code for these very targets",
	 AT(exact)},
	{0, "family", "NAME=ARCH,...", "these targets share one tree; may be repeated",
	 OPTION_TAKE(struct split_args, families, take_family)},
	{0, "databases", "WHAT", "kernel databases: plain (default) or packed",
	 OPTION_WORDS(struct split_args, packed, false, "plain", "packed")},
	{0, "keys", "WHAT", "root of the paths in keys: artifact or prefix",
	 OPTION_WORDS(struct split_args, keys, KEYS_ARTIFACT, "artifact", "prefix")},
	{0, "libraries", "LIST", "the libraries to look for, in that order; or none",
	 OPTION_TAKE(struct split_args, libraries, take_list)},
	{0, "library-rules", "FILE", "more libraries, which FILE describes", AT(rules)},
	{0, "level", "N", "zstd level, 1 to 22 (3)",
	 OPTION_LEVEL(struct split_args, level)},
	{0, "jobs", "N", "threads (all cores)", OPTION_JOBS(struct split_args, jobs)},
	OPTION_DROP_SIGNATURE(struct split_args, drop_signature),
	{0, "force", NULL, "replace existing trees", AT(force)},
	{0, "json", NULL, "report as JSON", AT(json)},
	{'q', "quiet", NULL, "no progress, no table", AT(quiet)},
	{0, "batch-artifact-parent-dir", "DIR",
	 "split every artifact in DIR that is not *_generic", AT(batch)},
	{0, "artifact-dir", "DIR", "same as INPUT", AT(input)},
	{0, "output-dir", "DIR", "same as OUTPUT", AT(output)},
	{0, "artifact-prefix", "NAME", "same as --name", AT(name)},
	{0, "split-databases", "NAME...", "same as --libraries",
	 OPTION_TAKE(struct split_args, libraries, take_list)},
	{0, "tmp-dir", "DIR", "accepted and ignored", OPTION_TAKE_ALL(ignore_option)},
	{0, "verbose", NULL, "accepted and ignored: every message is printed",
	 OPTION_IGNORED},
	{0, "clang-offload-bundler", "PATH", "accepted and ignored",
	 OPTION_TAKE_ALL(ignore_option)},
	{0},
};

const struct command_help cmd_split_help = {
	"split",
	"[OPTION]... INPUT OUTPUT\n       kpack split [OPTION]... ARCHIVE... OUTPUT",
	"take a tree, or archives, apart by architecture",
	options,
	"INPUT is an install tree, or an artifact with an artifact_manifest.txt.\n"
	"OUTPUT/NAME_generic gets what every GPU needs, OUTPUT/NAME_ARCH the rest.",
};

/* --- all together ------------------------------------------------------------------ */

int split_args_parse(struct split_args *args, int argc, char **argv)
{
	struct options o = {.help = &cmd_split_help, .argc = argc, .argv = argv};
	struct kpackx_error why = {0};
	struct pack_args pack = {0};
	struct kp_span name;
	kpack_error_t err;
	int end = argc;

	*args = (struct split_args){.level = 3, .jobs = option_jobs()};
	options_read(&o, args);
	/* the last operand is OUTPUT, unless an option set it; those before it are INPUT */
	if (!args->output && optind < end)
		args->output = argv[--end];
	args->operands = argv + optind;
	args->n_operands = (size_t)(end - optind);
	if (args->input || args->batch) {
		if (args->n_operands || (args->input && args->batch))
			return options_usage(&cmd_split_help,
					     "INPUT is given more than once");
	} else if (args->n_operands) {
		args->input = args->operands[0];
	}
	if (!args->output || (!args->input && !args->batch))
		return options_usage(&cmd_split_help, "INPUT and OUTPUT are needed");
	if (args->batch && args->name)
		return options_usage(&cmd_split_help,
				     "--name: each artifact of a batch has its own");
	name = kp_span_str(args->name ? args->name : "x");
	if (!kp_component_ok(name) || !kp_text_ok(name) || name.data[0] == '.')
		return options_usage(&cmd_split_help,
				     "the name '%s' cannot be part of a file name",
				     args->name);
	if (args->archive_dir && !pack_archive_dir_ok(args->archive_dir))
		return options_usage(&cmd_split_help,
				     "--archive-dir %s: not a path relative to INPUT",
				     args->archive_dir);
	/* faults of families, targets and libraries, before anything is done */
	err = split_args_pack(args, "", "", &pack, &why);
	pack_args_fini(&pack);
	if (err == KPACK_ERROR_INVALID_ARGUMENT)
		return options_usage(&cmd_split_help, "%s", why.text);
	if (err)
		report_why(NULL, &why);
	return err ? EXIT_FAULT : EXIT_OK;
}

/* --- for a run --------------------------------------------------------------------- */

kpack_error_t split_args_pack(const struct split_args *args, const char *input,
			      const char *output, struct pack_args *out,
			      struct kpackx_error *why)
{
	kpack_error_t err;

	pack_args_init(out);
	out->input = input;
	out->output = output;
	out->archive_dir =
		xstrdup(args->archive_dir ? args->archive_dir : KP_ARCHIVES_DIR);
	out->mode = PACK_TREE;
	out->databases = args->packed ? DATABASES_PACKED : DATABASES_IDENTIFIED;
	out->json = args->json;
	out->quiet = args->quiet;
	out->drop_signature = args->drop_signature;
	out->how.level = args->level;
	out->how.jobs = args->jobs;
	out->prefix = xstrdup("");
	for (size_t i = 0; i < args->families.count; i++) {
		const char *text = args->families.items[i];
		struct kp_span name = {(const uint8_t *)text, strcspn(text, "=")};

		/* its tree must not have the name of the generic tree or of a GPU's tree */
		if (kp_span_is(name, KP_ARCH_GENERIC))
			err = kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				      "that is the name of the generic tree");
		else if (kp_processor_by_name(name))
			err = kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				      "that is the name of a GPU");
		else
			err = families_parse(&out->families, text, why);
		if (err)
			return kp_fail_prefix(why, err, "--family %s", text);
	}
	if (args->exact && !args->targets)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "--arch-exact needs --gpu-targets, which is missing");
	out->filter.chosen.exact = args->exact;
	for (const char *item = args->targets, *end; item; item = *end ? end + 1 : NULL) {
		char base[KP_TARGET_TEXT_MAX];
		struct kp_target target;
		size_t n;

		end = item + strcspn(item, ",;");
		/*
		 * Unless it is meant to the letter its features are ignored, as TheRock's script
		 * does: the trees are for machines whose settings are not known.
		 */
		n = args->exact ? (size_t)(end - item) : strcspn(item, ",;:");
		err = kp_target_parse((struct kp_span){(const uint8_t *)item, n}, &target,
				      why);
		if (!err && !args->exact)
			target.sramecc = target.xnack = KP_FEATURE_ANY;
		if (!err) {
			kp_target_format(&target, base);
			err = arch_filter_add(&out->filter, base, why);
		}
		if (err)
			return kp_fail_prefix(why, err, "--gpu-targets %s",
					      args->targets);
	}
	err = library_set_open(args->libraries, args->rules, &out->libraries, why);
	out->libraries.plain = !args->packed;
	return err ? kp_fail_prefix(why, err, "--libraries") : KPACK_SUCCESS;
}
