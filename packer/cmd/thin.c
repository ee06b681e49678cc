/* SPDX-License-Identifier: MIT */
/*
 * Code that goes: kpack thin frees the disk of the code that this machine's GPUs cannot load, and
 * kpack prune removes the entries that nothing needs from a packed tree's archives.  What goes,
 * and why, is decided in packer/thin; here are the arguments and the reports.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "packer/cli/process.h"
#include "packer/command.h"
#include "packer/files/below.h"
#include "packer/gpu/runtimes.h"
#include "packer/pack/tree.h"
#include "packer/thin/packages.h"
#include "packer/archives/prune.h"
#include "packer/thin/thin.h"
#include "packer/thin/keep.h"

/* --- kpack thin ------------------------------------------------------------------------- */

struct thin_command {
	struct thin thin;
	const char *undo;
	const char *libraries, *rules;
	bool json, quiet;
};

static const struct option_help thin_options[] = {
	{0, "arch", "LIST", "the GPUs whose code stays; auto: this machine's; or all",
	 OPTION_TAKE(struct thin_command, thin.args.filter, arch_filter_take)},
	OPTION_SWITCH(0, "strip-debug",
		      "remove the debugging information of code that stays",
		      struct thin_command, thin.args.strip),
	{0, "debug-to", "DIR", "write what --strip-debug removes to DIR, for debuggers",
	 OPTION_PLACE(struct thin_command, thin.args.debug_to)},
	OPTION_SWITCH(0, "compress", "write the code that stays as compressed bundles",
		      struct thin_command, thin.args.compress),
	{0, "runtime", "WHICH", "any: --compress even if HIP runtimes do not read that",
	 OPTION_TAKE(struct thin_command, thin.args.any_runtime, runtime_take_any)},
	{0, "keep", "DIR", "keep in DIR what --undo needs",
	 OPTION_PLACE(struct thin_command, thin.args.keep)},
	{0, "undo", "DIR", "put the originals back that were kept in DIR",
	 OPTION_PLACE(struct thin_command, undo)},
	OPTION_DRY_RUN(struct thin_command, thin.args.dry),
	{0, "libraries", "LIST", "libraries whose kernel databases are looked for",
	 OPTION_PLACE(struct thin_command, libraries)},
	{0, "library-rules", "FILE", "further libraries; see kpack-pack(1)",
	 OPTION_PLACE(struct thin_command, rules)},
	{'j', "jobs", "N", "threads (one per core)",
	 OPTION_JOBS(struct thin_command, thin.args.jobs)},
	OPTION_JSON_REPORT(struct thin_command, json),
	OPTION_QUIET(struct thin_command, quiet),
	{0},
};

const struct command_help cmd_thin_help = {
	"thin",
	"--arch LIST [OPTION]... TREE [OUTPUT] | --undo DIR [OPTION]... TREE",
	"remove the code that the GPUs of a machine cannot load",
	thin_options,
	"The binaries stay ordinary fat binaries that every HIP runtime loads.\n"
	"Without OUTPUT, TREE itself is changed.",
};

/* Read the command line.  Returns the exit status, after reporting why it cannot be done. */
static int read_thin_arguments(struct thin_command *c, int argc, char **argv)
{
	const struct command_help *help = &cmd_thin_help;
	struct thin_args *args = &c->thin.args;
	struct kpackx_error why = {0};
	kpack_error_t err = KPACK_SUCCESS;
	KP_AUTO_FREE char *real = NULL;
	struct stat st;
	bool limited;
	int n;

	args->jobs = option_jobs();
	n = options_parse(help, argc, &argv, c);
	if (n < 1 || n > 2)
		options_usage(help, n < 1 ? "no TREE" : "too many operands");
	args->tree = argv[0];
	args->output = n == 2 ? argv[1] : NULL;
	for (int i = 0; i < n; i++)
		if (below_root_if_directory(argv[i], &why))
			return report_why(argv[i], &why);
	/* a link to a directory is a tree; a link to a file would be replaced */
	if (below_lstat(args->tree, &st) == 0 && S_ISLNK(st.st_mode)) {
		if (below_stat(args->tree, &st) < 0)
			return report_error(args->tree, "a symbolic link: %s",
					    strerror(errno));
		real = S_ISDIR(st.st_mode) ? NULL : below_real(args->tree);
		if (!S_ISDIR(st.st_mode))
			return report_error(
				args->tree,
				"a symbolic link, which is not followed: name "
				"the file, %s",
				real ? real : "which it leads to");
	}
	if (args->output)
		err = output_check(args->tree, args->output, &why);
	if (err == KPACK_ERROR_INVALID_ARGUMENT)
		options_usage(help, "%s", why.text);
	if (err)
		return report_why(args->tree, &why);
	limited = args->filter.chosen.limited;
	options_check(help,
		      (const struct option_rule[]){
			      {args->debug_to && !args->strip,
			       "--debug-to needs --strip-debug"},
			      {args->keep && args->output,
			       "--keep with an OUTPUT: TREE stays as it is"},
			      {c->undo && (limited || args->strip || args->compress ||
					   args->any_runtime || args->keep || args->dry ||
					   args->output),
			       "--undo DIR goes with TREE, --libraries, --library-rules, "
			       "--jobs, --json and --quiet only"},
			      {!c->undo && !limited, "--arch is missing"},
			      {0}});
	arch_filter_check_known(&args->filter, help);
	if (library_set_open(c->libraries, c->rules, &args->libraries, &why))
		options_usage(help, "%s", why.text);
	args->libraries.plain = true;
	return EXIT_OK;
}

/* What a run did, in all; and the rows of its report. */
struct thin_sums {
	const char *tree;
	bool dry;
	size_t binaries, databases;
	uint64_t before, after;
	json_t *files, *packages;
};

static const struct row thin_rows[] = {
	ROW("tree", ROW_JSON, struct thin_sums, tree),
	ROW("dry_run", ROW_JSON, struct thin_sums, dry),
	ROW("files", ROW_JSON, struct thin_sums, files),
	ROW("bytes_before", ROW_JSON, struct thin_sums, before),
	ROW("bytes_after", ROW_JSON, struct thin_sums, after),
	ROW("packages", ROW_JSON, struct thin_sums, packages),
};

struct thinned {
	const char *path, *status;
	uint64_t before, after;
};

static const struct row thinned_rows[] = {
	ROW("path", ROW_JSON, struct thinned, path),
	ROW("status", ROW_JSON, struct thinned, status),
	ROW("size_before", ROW_JSON, struct thinned, before),
	ROW("size_after", ROW_JSON, struct thinned, after),
};

static const char *relative_of(const struct thin *t, const struct thin_file *f)
{
	return t->scan.entries[f->entry].relative;
}

/* The packages of the changed files, each after a space, on the heap. */
static char *find_packages(const struct thin *t)
{
	KP_AUTO_FREE char *root = below_real(t->args.tree);
	char **paths = xcalloc(t->n_files + 1, sizeof(*paths)), *names;
	size_t n = 0;

	for (size_t i = 0; i < t->n_files; i++)
		if (root && t->files[i].after != t->files[i].before)
			paths[n++] = xasprintf("%s/%s", strcmp(root, "/") ? root : "",
					       relative_of(t, &t->files[i]));
	names = packages_of(NULL, paths, n);
	for (size_t i = 0; i < n; i++)
		free(paths[i]);
	free(paths);
	return names;
}

/* Files of which nothing went are left out, as in the table. */
static void print_thin_json(const struct thin *t, struct thin_sums *s)
{
	KP_AUTO_FREE char *names = t->args.output ? xstrdup("") : find_packages(t);
	char *rest = names, *name;

	s->files = json_array();
	for (size_t i = 0; i < t->n_files; i++) {
		const struct thin_file *f = &t->files[i];
		enum fate fate = t->dispositions.items[f->entry].fate;
		struct thinned row = {relative_of(t, f),
				      fate == FATE_CONVERTED ? "thinned"
							     : disposition_name(fate),
				      f->before, f->after};

		if (!f->same)
			json_array_append_new(s->files,
					      rows_object(ROWS(thinned_rows), &row));
	}
	s->packages = json_array();
	while ((name = strsep(&rest, " ")))
		if (*name)
			json_array_append_new(s->packages, report_json_text(name));
	report_json(rows_object(ROWS(thin_rows), s));
}

/* The last line says how to undo it: by what was kept, or by the packages of the files. */
static void print_thin_table(const struct thin *t, const struct thin_sums *s)
{
	const char *freed = s->dry ? "would be freed" : "freed";
	size_t nameless = 0;

	printf("%16s %16s  file\n", freed, "stays");
	for (size_t i = 0; i < t->n_files; i++) {
		const struct thin_file *f = &t->files[i];

		nameless += f->n_nameless;
		if (!f->gone || f->same)
			continue;
		printf("%16" PRIu64 " %16" PRIu64 "  ", f->before - f->after, f->after);
		report_text(relative_of(t, f));
		putchar('\n');
	}
	printf("%zu binaries, %zu files of kernel databases: %" PRIu64 " bytes %s\n",
	       s->binaries, s->databases, s->before - s->after, freed);
	if (t->n_stuck)
		printf("%zu files have more code of other GPUs, in a form that stays\n",
		       t->n_stuck);
	if (t->n_debug_files) {
		printf("debugging information of %zu code objects is in ",
		       t->n_debug_files);
		report_text(t->args.debug_to);
		putchar('\n');
	}
	if (nameless)
		printf("%zu code objects have no build ID to find their debugging "
		       "information by, and keep it\n",
		       nameless);
	if (s->dry || t->args.output || !s->before)
		return;
	if (t->args.keep) {
		KP_AUTO_FREE char *dir = shell_word(t->args.keep);
		KP_AUTO_FREE char *tree = shell_word(s->tree);

		printf("undo: kpack thin --undo %s %s", dir, tree);
	} else {
		KP_AUTO_FREE char *names = find_packages(t);

		fputs("undo: reinstall", stdout);
		report_text(*names ? names : " what the files belong to");
	}
	putchar('\n');
}

/* Sum up the files that became smaller, and print that. */
static void report_thin(const struct thin_command *c)
{
	const struct thin *t = &c->thin;
	struct thin_sums s = {.tree = t->args.tree, .dry = t->args.dry};

	for (size_t i = 0; i < t->n_files; i++) {
		const struct thin_file *f = &t->files[i];
		bool database = t->scan.entries[f->entry].database;

		if (f->after == f->before)
			continue;
		s.binaries += !database;
		s.databases += database;
		s.before += f->before;
		s.after += f->after;
	}
	if (c->json)
		print_thin_json(t, &s);
	else if (!c->quiet)
		print_thin_table(t, &s);
}

static const char *const undo_states[] = {[UNDO_RESTORED] = "restored",
					  [UNDO_ORIGINAL] = "original",
					  [UNDO_LINK] = "link",
					  [UNDO_REFUSED] = "refused"};

static const struct row undo_rows[] = {
	ROW("path", ROW_JSON, struct undo_file, path),
	ROW_WORDS("status", ROW_JSON, struct undo_file, state, undo_states),
};

/* Put the originals back.  The libraries of --libraries are handed over to the run. */
static int undo_thin(struct thin_command *c)
{
	struct thin_args *args = &c->thin.args;
	struct undo u = {.args = {.dir = c->undo,
				  .tree = args->tree,
				  .libraries = args->libraries,
				  .jobs = args->jobs}};
	size_t n[UNDO_REFUSED + 1] = {0};
	int status;

	args->libraries = (struct library_set){0};
	status = below_hold(c->undo) ? undo_run(&u) : EXIT_FAULT;
	for (size_t i = 0; i < u.n_files; i++)
		n[u.files[i].state]++;
	if (u.done && c->json)
		report_json(json_pack("{so so}", "tree", report_json_text(u.args.tree),
				      "files",
				      rows_array(ROWS(undo_rows), u.files, u.n_files,
						 sizeof(*u.files))));
	else if (u.done && !c->quiet)
		printf("%zu files restored, %zu were the originals, %zu left as they "
		       "are\n",
		       n[UNDO_RESTORED], n[UNDO_ORIGINAL], n[UNDO_REFUSED]);
	undo_close(&u);
	return status;
}

/*
 * A run that only left damaged files alone is EXIT_LEFT, which kpack apply takes for a success.
 */
int cmd_thin_changed(int argc, char **argv, const struct scan_skip *skip)
{
	struct thin_command c = {0};
	int status;

	if (skip)
		c.thin.args.skip = *skip;
	status = read_thin_arguments(&c, argc, argv);
	if (!status) {
		status = c.undo ? undo_thin(&c) : thin_run(&c.thin);
		if (!status && !c.undo)
			report_thin(&c);
		if (!status && c.thin.damaged)
			status = EXIT_LEFT;
	}
	thin_close(&c.thin);
	return report_finish(status);
}

int cmd_thin(int argc, char **argv)
{
	int status = cmd_thin_changed(argc, argv, NULL);

	return status == EXIT_LEFT ? EXIT_FAULT : status;
}

/* --- kpack prune ------------------------------------------------------------------------ */

struct prune_command {
	struct prune prune;
	bool json, quiet;
};

static const struct option_help prune_options[] = {
	ARCH_FILTER_OPTIONS_TO("keep ", struct prune_command, prune.args.filter),
	OPTION_DRY_RUN(struct prune_command, prune.args.dry),
	OPTION_SWITCH(0, "force", "also if no archive would be left",
		      struct prune_command, prune.args.force),
	OPTION_JSON_REPORT(struct prune_command, json),
	OPTION_QUIET(struct prune_command, quiet),
	{0},
};

const struct command_help cmd_prune_help = {
	"prune",
	"[--arch LIST [--arch-exact]] [OPTION]... TREE",
	"remove from a packed tree's archives what nothing needs",
	prune_options,
	"Without --arch, only what TREE no longer asks for goes.",
};

/* What became of an archive; the sums of all are in one of these, too. */
struct pruned {
	const char *path, *status;
	uint64_t n[PRUNE_REASONS];
	uint64_t before, after, copied, encoded;
};

static const struct row pruned_rows[] = {
	ROW("path", ROW_JSON, struct pruned, path),
	ROW("status", ROW_JSON, struct pruned, status),
	ROW("entries", ROW_JSON, struct pruned, n[PRUNE_STAYS]),
	ROW("other_gpus", ROW_JSON, struct pruned, n[PRUNE_OTHER_GPU]),
	ROW("gone", ROW_JSON, struct pruned, n[PRUNE_GONE]),
	ROW("not_asked_for", ROW_JSON, struct pruned, n[PRUNE_UNASKED]),
	ROW("size_before", ROW_JSON, struct pruned, before),
	ROW("size_after", ROW_JSON, struct pruned, after),
	ROW("blocks_copied", ROW_JSON, struct pruned, copied),
	ROW("blocks_encoded", ROW_JSON, struct pruned, encoded),
};

/* An archive of another writer may become a few bytes larger. */
static uint64_t freed_bytes(const struct pruned *p)
{
	return p->before > p->after ? p->before - p->after : 0;
}

/* An archive is a row of the table, or an object; the sums of all come last. */
static void report_prune(const struct prune_command *c)
{
	static const char *const reasons[] = {
		[PRUNE_OTHER_GPU] = "for other GPUs",
		[PRUNE_GONE] = "of files that do not exist any more",
		[PRUNE_UNASKED] = "that nothing asks for",
	};
	const struct prune *p = &c->prune;
	const char *freed = p->args.dry ? "would be freed" : "freed";
	struct pruned sum = {0};
	json_t *archives = json_array();
	size_t n_changed = 0;

	if (!c->json)
		printf("%16s %16s  archive\n", freed, "stays");
	for (size_t i = 0; i < p->n_archives; i++) {
		const struct prune_archive *a = &p->archives[i];
		bool changes = prune_changes(a);
		struct pruned row = {.path = a->relative,
				     .status = !changes                    ? "unchanged"
					       : a->n_entries[PRUNE_STAYS] ? "pruned"
									   : "removed",
				     .before = a->before,
				     .after = a->after,
				     .copied = a->blocks_copied,
				     .encoded = a->blocks_encoded};

		for (int k = 0; k < PRUNE_REASONS; k++)
			sum.n[k] += row.n[k] = a->n_entries[k];
		n_changed += changes;
		sum.before += row.before;
		sum.after += row.after;
		sum.copied += row.copied;
		sum.encoded += row.encoded;
		if (c->json) {
			json_array_append_new(archives,
					      rows_object(ROWS(pruned_rows), &row));
			continue;
		}
		printf("%16" PRIu64 " %16" PRIu64 "  ", freed_bytes(&row), row.after);
		report_text(row.path);
		putchar('\n');
	}
	if (c->json) {
		report_json(json_pack(
			"{so sb so sI sI}", "tree", report_json_text(p->args.tree),
			"dry_run", p->args.dry, "archives", archives, "bytes_before",
			(json_int_t)sum.before, "bytes_after", (json_int_t)sum.after));
		return;
	}
	json_decref(archives);
	for (int k = PRUNE_STAYS + 1; k < PRUNE_REASONS; k++)
		if (sum.n[k])
			printf("%" PRIu64 " entries %s\n", sum.n[k], reasons[k]);
	if (sum.copied || sum.encoded)
		printf("%" PRIu64 " blocks copied, %" PRIu64 " compressed\n", sum.copied,
		       sum.encoded);
	printf("%zu of %zu archives: %" PRIu64 " bytes %s\n", n_changed, p->n_archives,
	       freed_bytes(&sum), freed);
}

/* Without --arch nothing is for another GPU, and only what the tree no longer asks for goes. */
int cmd_prune(int argc, char **argv)
{
	struct prune_command c = {0};
	struct prune_args *args = &c.prune.args;
	int n = options_parse(&cmd_prune_help, argc, &argv, &c), status;
	struct kpackx_error why = {0};
	struct stat st;

	arch_filter_check(&args->filter, &cmd_prune_help);
	arch_filter_check_known(&args->filter, &cmd_prune_help);
	if (n != 1)
		options_usage(&cmd_prune_help, n == 0 ? "no TREE" : "too many operands");
	args->tree = argv[0];
	if (below_stat(args->tree, &st) == 0 && !S_ISDIR(st.st_mode))
		options_usage(&cmd_prune_help, "%s: not a directory", args->tree);
	if (below_root(args->tree, &why)) {
		status = report_why(args->tree, &why);
	} else {
		status = prune_run(&c.prune);
		if (!status) {
			if (!c.quiet || c.json)
				report_prune(&c);
			if (c.prune.n_archives == 0)
				report_error(args->tree, "note: it has no archives");
			else
				arch_filter_unmatched(&args->filter, "entry");
		}
	}
	prune_close(&c.prune);
	return report_finish(status);
}
