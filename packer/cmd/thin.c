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
#include "packer/pack/tree.h"
#include "packer/thin/policy.h"
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

/* Where the argument of an option goes. */
#define AT(member) OPTION_PLACE(struct thin_command, member)

static const struct option_help thin_options[] = {
	{0, "arch", "LIST", "the GPUs whose code stays; auto: this machine's; or all",
	 OPTION_TAKE(struct thin_command, thin.args.filter, arch_filter_take)},
	{0, "strip-debug", NULL, "remove the debugging information of code that stays",
	 AT(thin.args.strip)},
	{0, "debug-to", "DIR", "write what --strip-debug removes to DIR, for debuggers",
	 AT(thin.args.debug_to)},
	{0, "compress", NULL, "write the code that stays as compressed bundles",
	 AT(thin.args.compress)},
	{0, "runtime", "WHICH", "any: --compress even if HIP runtimes do not read that",
	 OPTION_WORDS(struct thin_command, thin.args.any_runtime, true, "any")},
	OPTION_DROP_SIGNATURE(struct thin_command, thin.args.drop_signature),
	{0, "keep", "DIR", "keep in DIR what --undo needs", AT(thin.args.keep)},
	{0, "undo", "DIR", "put the originals back that were kept in DIR", AT(undo)},
	OPTION_DRY_RUN(struct thin_command, thin.args.dry),
	{0, "libraries", "LIST", "libraries whose kernel databases are looked for",
	 AT(libraries)},
	{0, "library-rules", "FILE", "further libraries; see kpack-pack(1)", AT(rules)},
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

/*
 * Print what became of the files, a row or an object each; files of which nothing went are left
 * out.  The last line says how to undo it: by what was kept, or by the packages of the files.
 */
static void report_thin(const struct thin_command *c)
{
	const struct thin *t = &c->thin;
	const struct thin_args *args = &t->args;
	const char *freed = args->dry ? "would be freed" : "freed";
	KP_AUTO_FREE char *root = below_real(args->tree), *names = NULL;
	KP_AUTO_FREE const char **changed = xcalloc(t->n_files + 1, sizeof(*changed));
	char *rest, *name;
	json_t *files = c->json ? json_array() : NULL, *packages;
	size_t n = 0, n_rows = 0, binaries = 0, databases = 0, nameless = 0;
	uint64_t before = 0, after = 0;
	char less[24], stays[24];

	for (size_t i = 0; i < t->n_files; i++) {
		const struct thin_file *f = &t->files[i];
		const char *path = t->scan.entries[f->entry].relative;
		enum fate fate = t->dispositions.items[f->entry].fate;

		nameless += f->n_nameless;
		if (f->after != f->before) {
			binaries += !t->scan.entries[f->entry].database;
			databases += t->scan.entries[f->entry].database;
			before += f->before;
			after += f->after;
			changed[n++] = path;
		}
		if (f->same)
			continue;
		if (c->json)
			json_array_append_new(
				files,
				json_pack("{so ss sI sI}", "path", report_json_text(path),
					  "status",
					  fate == FATE_CONVERTED ? "thinned"
								 : disposition_name(fate),
					  "size_before", (json_int_t)f->before,
					  "size_after", (json_int_t)f->after));
		else if (f->gone) { /* else a file of a database, which went whole */
			if (!n_rows++)
				printf("%16s %16s  file\n", freed, "stays");
			printf("%16s %16s  ", report_size(f->before - f->after, less),
			       report_size(f->after, stays));
			report_text(path);
			putchar('\n');
		}
	}
	/* the package managers take their time, and are asked for what is printed only */
	if (!args->output && (c->json || (!args->dry && !args->keep && before)))
		names = packages_of(NULL, root, changed, root ? n : 0);
	if (c->json) {
		packages = json_array();
		for (rest = names; (name = strsep(&rest, " "));)
			if (*name)
				json_array_append_new(packages, report_json_text(name));
		report_json(json_pack("{so sb so sI sI so}", "tree",
				      report_json_text(args->tree), "dry_run", args->dry,
				      "files", files, "bytes_before", (json_int_t)before,
				      "bytes_after", (json_int_t)after, "packages",
				      packages));
		return;
	}
	printf("%zu binar%s, %zu file%s of kernel databases: %s %s\n", binaries,
	       plural_y(binaries), databases, plural(databases),
	       report_size(before - after, less), freed);
	if (t->n_stuck)
		printf("%zu file%s more code of other GPUs, in a form that stays\n",
		       t->n_stuck, t->n_stuck == 1 ? " has" : "s have");
	if (t->n_debug_files) {
		printf("debugging information of %zu code object%s is in ",
		       t->n_debug_files, plural(t->n_debug_files));
		report_text(args->debug_to);
		putchar('\n');
	}
	if (nameless)
		printf("%zu code object%s no build ID to find debugging information by, "
		       "and keep%s it\n",
		       nameless, nameless == 1 ? " has" : "s have",
		       nameless == 1 ? "s" : "");
	if (args->keep && !args->dry && !args->output && before) {
		fputs("undo: kpack thin --undo", stdout);
		shell_put(stdout, args->keep);
		shell_put(stdout, args->tree);
		putchar('\n');
	} else if (names) {
		fputs("undo: reinstall", stdout);
		report_text(*names ? names : " what the files belong to");
		putchar('\n');
	}
}

static json_t *json_undone(const struct undo *u)
{
	static const char *const states[] = {[UNDO_RESTORED] = "restored",
					     [UNDO_ORIGINAL] = "original",
					     [UNDO_LINK] = "link",
					     [UNDO_REFUSED] = "refused"};
	json_t *files = json_array();

	for (size_t i = 0; i < u->n_files; i++)
		json_array_append_new(files,
				      json_pack("{so ss}", "path",
						report_json_span(u->files[i].path),
						"status", states[u->files[i].state]));
	return json_pack("{so so}", "tree", report_json_text(u->args.tree), "files",
			 files);
}

/* Put the originals back.  The libraries of --libraries are handed over to the run. */
static int undo_thin(struct thin_command *c)
{
	struct thin_args *args = &c->thin.args;
	struct undo u = {.args = {.dir = c->undo,
				  .tree = args->tree,
				  .libraries = args->libraries,
				  .jobs = args->jobs,
				  .progress = args->progress}};
	size_t n[UNDO_REFUSED + 1] = {0};
	int status;

	args->libraries = (struct library_set){0};
	status = below_hold(c->undo) ? undo_run(&u) : EXIT_FAULT;
	for (size_t i = 0; i < u.n_files; i++)
		n[u.files[i].state]++;
	if (u.done && c->json)
		report_json(json_undone(&u));
	else if (u.done && !c->quiet) {
		printf("%zu file%s restored, %zu already the original, %zu left alone\n",
		       n[UNDO_RESTORED], plural(n[UNDO_RESTORED]), n[UNDO_ORIGINAL],
		       n[UNDO_REFUSED]);
		/* a copy of the tree says nothing about the tree */
		if (!status && !keep_claim(c->undo, u.args.tree, NULL)) {
			report_text(c->undo);
			puts(": not needed any more, and may be deleted");
		}
	}
	undo_close(&u);
	return status;
}

/*
 * A run that only left damaged files alone is EXIT_LEFT, which kpack apply takes for a success.
 */
int cmd_thin_changed(int argc, char **argv, const struct scan_skip *skip)
{
	const struct command_help *help = &cmd_thin_help;
	struct thin_command c = {.thin.args.jobs = option_jobs()};
	struct thin_args *args = &c.thin.args;
	struct kpackx_error why = {0};
	kpack_error_t err = KPACK_SUCCESS;
	KP_AUTO_FREE char *real = NULL;
	int n = options_parse(help, argc, &argv, &c), status = EXIT_FAULT;
	bool limited = args->filter.chosen.limited;
	struct stat st;

	if (n < 1 || n > 2)
		options_usage(help, n < 1 ? "no TREE" : "too many operands");
	if (skip)
		args->skip = *skip;
	args->tree = argv[0];
	args->output = n == 2 ? argv[1] : NULL;
	for (int i = 0; i < n; i++)
		if (!below_hold(argv[i]))
			goto out;
	/* a link to a directory is a tree; a link to a file would be replaced */
	if (below_lstat(args->tree, &st) == 0 && S_ISLNK(st.st_mode)) {
		if (below_stat(args->tree, &st) < 0) {
			report_error(args->tree, "a symbolic link: %s", strerror(errno));
			goto out;
		}
		real = S_ISDIR(st.st_mode) ? NULL : below_real(args->tree);
		if (!S_ISDIR(st.st_mode)) {
			report_error(args->tree,
				     "a symbolic link, which is not followed: name "
				     "the file, %s",
				     real ? real : "which it leads to");
			goto out;
		}
	}
	if (args->output)
		err = output_check(args->tree, args->output, &why);
	if (err == KPACK_ERROR_INVALID_ARGUMENT)
		options_usage(help, "%s", why.text);
	if (err) {
		report_why(args->tree, &why);
		goto out;
	}
	/* what goes together, and what --undo, which is another job, does not take */
	options_check(help,
		      (const struct option_rule[]){
			      {args->debug_to && !args->strip,
			       "--debug-to needs --strip-debug"},
			      {args->keep && args->output,
			       "--keep with an OUTPUT: TREE stays as it is"},
			      {c.undo && (limited || args->strip || args->compress ||
					  args->any_runtime || args->keep || args->dry ||
					  args->drop_signature || args->output),
			       "--undo DIR goes with TREE, --libraries, --library-rules, "
			       "--jobs, --json and --quiet only"},
			      {!c.undo && !limited, "--arch is missing"},
			      {0}});
	arch_filter_check_known(&args->filter, help);
	if (library_set_open(c.libraries, c.rules, &args->libraries, &why))
		options_usage(help, "%s", why.text);
	/* databases stay files, whose content the scan need not check */
	args->libraries.plain = true;
	args->progress = !c.quiet && !c.json;
	if (args->progress && !c.undo && !args->dry && !args->output && !args->keep)
		report_error(args->tree,
			     "note: without --keep, what goes comes back only by "
			     "reinstalling");
	status = c.undo ? undo_thin(&c) : thin_run(&c.thin);
	if (!status && !c.undo && (c.json || !c.quiet))
		report_thin(&c);
	if (!status && c.thin.damaged)
		status = EXIT_LEFT;
out:
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

/* The sums of all archives are in one of these, too. */
static const struct row pruned_rows[] = {
	ROW("entries", ROW_JSON, struct prune_archive, n_entries[PRUNE_STAYS]),
	ROW("other_gpus", ROW_JSON, struct prune_archive, n_entries[PRUNE_OTHER_GPU]),
	ROW("gone", ROW_JSON, struct prune_archive, n_entries[PRUNE_GONE]),
	ROW("not_asked_for", ROW_JSON, struct prune_archive, n_entries[PRUNE_UNASKED]),
	ROW("size_before", ROW_JSON, struct prune_archive, before),
	ROW("size_after", ROW_JSON, struct prune_archive, after),
	ROW("blocks_copied", ROW_JSON, struct prune_archive, blocks_copied),
	ROW("blocks_encoded", ROW_JSON, struct prune_archive, blocks_encoded),
};

/* An archive of another writer may become a few bytes larger. */
static uint64_t freed_bytes(const struct prune_archive *a)
{
	return a->before > a->after ? a->before - a->after : 0;
}

/*
 * Without --arch nothing is for another GPU, and only what the tree no longer asks for goes.  In the
 * report an archive is a row of the table, or an object; the sums of all come last.
 */
int cmd_prune(int argc, char **argv)
{
	static const char *const reasons[] = {
		[PRUNE_OTHER_GPU] = "for other GPUs",
		[PRUNE_GONE] = "of files that do not exist any more",
		[PRUNE_UNASKED] = "that nothing asks for",
	};
	const struct command_help *help = &cmd_prune_help;
	struct prune_command c = {0};
	struct prune *p = &c.prune;
	struct prune_archive sum = {0};
	int n = options_parse(help, argc, &argv, &c), status = EXIT_FAULT;
	const char *freed = p->args.dry ? "would be freed" : "freed";
	struct kpackx_error why = {0};
	json_t *archives = NULL;
	size_t n_changed = 0;
	struct stat st;

	arch_filter_check(&p->args.filter, help);
	arch_filter_check_known(&p->args.filter, help);
	if (n != 1)
		options_usage(help, n == 0 ? "no TREE" : "too many operands");
	p->args.tree = argv[0];
	if (below_stat(argv[0], &st) == 0 && !S_ISDIR(st.st_mode))
		options_usage(help, "%s: not a directory", argv[0]);
	if (below_root(argv[0], &why)) {
		report_why(argv[0], &why);
		goto out;
	}
	status = prune_run(p);
	if (status)
		goto out;
	if (c.quiet && !c.json)
		goto note;

	archives = c.json ? json_array() : NULL;
	if (!c.json)
		printf("%16s %16s  archive\n", freed, "stays");
	for (size_t i = 0; i < p->n_archives; i++) {
		const struct prune_archive *a = &p->archives[i];
		bool changes = prune_changes(a);
		json_t *row;

		for (int k = 0; k < PRUNE_REASONS; k++)
			sum.n_entries[k] += a->n_entries[k];
		n_changed += changes;
		sum.before += a->before;
		sum.after += a->after;
		sum.blocks_copied += a->blocks_copied;
		sum.blocks_encoded += a->blocks_encoded;
		if (c.json) {
			row = json_pack("{so ss}", "path", report_json_text(a->relative),
					"status",
					!changes                    ? "unchanged"
					: a->n_entries[PRUNE_STAYS] ? "pruned"
								    : "removed");
			rows_add(row, ROWS(pruned_rows), a);
			json_array_append_new(archives, row);
			continue;
		}
		printf("%16" PRIu64 " %16" PRIu64 "  ", freed_bytes(a), a->after);
		report_text(a->relative);
		putchar('\n');
	}
	if (c.json) {
		report_json(json_pack(
			"{so sb so sI sI}", "tree", report_json_text(argv[0]), "dry_run",
			p->args.dry, "archives", archives, "bytes_before",
			(json_int_t)sum.before, "bytes_after", (json_int_t)sum.after));
		goto note;
	}
	/* why entries went, of all archives together */
	for (int k = PRUNE_STAYS + 1; k < PRUNE_REASONS; k++)
		if (sum.n_entries[k])
			printf("%zu entr%s %s\n", sum.n_entries[k],
			       plural_y(sum.n_entries[k]), reasons[k]);
	if (sum.blocks_copied || sum.blocks_encoded)
		printf("%" PRIu64 " block%s copied, %" PRIu64 " compressed\n",
		       sum.blocks_copied, plural(sum.blocks_copied), sum.blocks_encoded);
	printf("%zu of %zu archive%s: %" PRIu64 " bytes %s\n", n_changed, p->n_archives,
	       plural(p->n_archives), freed_bytes(&sum), freed);
note:
	if (p->n_archives == 0)
		report_error(argv[0], "note: it has no archives");
	else
		arch_filter_unmatched(&p->args.filter, "entry");
out:
	prune_close(p);
	return report_finish(status);
}
