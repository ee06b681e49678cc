/* SPDX-License-Identifier: MIT */
/* kpack thin: free the disk of the code that this machine's GPUs cannot load. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "packer/cli/xalloc.h"
#include "packer/cli/report.h"
#include "packer/command.h"
#include "packer/files/below.h"
#include "packer/gpu/runtimes.h"
#include "packer/pack/tree.h"
#include "packer/thin/packages.h"
#include "packer/thin/thin.h"
#include "packer/thin/keep.h"

struct thin_command {
	struct thin thin;
	const char *undo;
	const char *libraries, *rules;
	bool json, quiet;
};

static const struct option_help options[] = {
	{0, "arch", "LIST", "the GPUs whose code stays; auto: this machine's; or all",
	 OPTION_TAKE(struct thin_command, thin.args.filter, arch_filter_take)},
	{0, "strip-debug", NULL, "remove the debugging information of code that stays",
	 OPTION_PLACE(struct thin_command, thin.args.strip)},
	{0, "debug-to", "DIR", "write what --strip-debug removes to DIR, for debuggers",
	 OPTION_PLACE(struct thin_command, thin.args.debug_to)},
	{0, "compress", NULL, "write the code that stays as compressed bundles",
	 OPTION_PLACE(struct thin_command, thin.args.compress)},
	{0, "runtime", "WHICH", "any: --compress even if HIP runtimes do not read that",
	 OPTION_TAKE(struct thin_command, thin.args.any_runtime, runtime_take_any)},
	{0, "keep", "DIR", "keep in DIR what --undo needs",
	 OPTION_PLACE(struct thin_command, thin.args.keep)},
	{0, "undo", "DIR", "put the originals back that were kept in DIR",
	 OPTION_PLACE(struct thin_command, undo)},
	{'n', "dry-run", NULL, "write nothing: print what would be freed",
	 OPTION_PLACE(struct thin_command, thin.args.dry)},
	{0, "libraries", "LIST", "libraries whose kernel databases are looked for",
	 OPTION_PLACE(struct thin_command, libraries)},
	{0, "library-rules", "FILE", "further libraries; see kpack-pack(1)",
	 OPTION_PLACE(struct thin_command, rules)},
	{'j', "jobs", "N", "threads (one per core)",
	 OPTION_JOBS(struct thin_command, thin.args.jobs)},
	{0, "json", NULL, "print the report as JSON",
	 OPTION_PLACE(struct thin_command, json)},
	{'q', "quiet", NULL, "print only errors",
	 OPTION_PLACE(struct thin_command, quiet)},
	{0},
};

const struct command_help cmd_thin_help = {
	"thin",
	"--arch LIST [OPTION]... TREE [OUTPUT] | --undo DIR [OPTION]... TREE",
	"remove the code that the GPUs of a machine cannot load",
	options,
	"The binaries stay ordinary fat binaries that every HIP runtime loads.\n"
	"Without OUTPUT, TREE itself is changed.",
};

/* --- arguments ----------------------------------------------------------------------- */

/* A link to a directory is a tree; a link to a file is refused, because it would be replaced. */
static bool check_tree(const char *tree)
{
	struct stat st;
	char *real;

	if (below_lstat(tree, &st) < 0 || !S_ISLNK(st.st_mode))
		return true;
	if (below_stat(tree, &st) < 0) {
		report_error(tree, "a symbolic link: %s", strerror(errno));
		return false;
	}
	if (S_ISDIR(st.st_mode))
		return true;
	real = below_real(tree);
	report_error(tree, "a symbolic link, which is not followed: name the file, %s",
		     real ? real : "which it leads to");
	free(real);
	return false;
}

static int take_operands(struct thin_command *c, int n, char **operands)
{
	struct thin_args *args = &c->thin.args;
	struct kpackx_error why = {0};

	if (n < 1 || n > 2)
		return options_usage(&cmd_thin_help,
				     n < 1 ? "no TREE" : "too many operands");
	args->tree = operands[0];
	args->output = n == 2 ? operands[1] : NULL;
	for (int i = 0; i < n; i++) {
		if (below_root_if_directory(operands[i], &why)) {
			report_why(operands[i], &why);
			return EXIT_FAULT;
		}
	}
	if (!check_tree(args->tree))
		return EXIT_FAULT;
	if (!args->output)
		return EXIT_OK;
	switch (output_check(args->tree, args->output, &why)) {
	case KPACK_SUCCESS:
		return EXIT_OK;
	case KPACK_ERROR_INVALID_ARGUMENT:
		return options_usage(&cmd_thin_help, "%s", why.text);
	default:
		report_why(args->tree, &why);
		return EXIT_FAULT;
	}
}

static int take_lists(struct thin_command *c)
{
	struct thin_args *args = &c->thin.args;
	struct kpackx_error why = {0};

	if (args->debug_to && !args->strip)
		return options_usage(&cmd_thin_help, "--debug-to needs --strip-debug");
	if (args->keep && args->output)
		return options_usage(&cmd_thin_help,
				     "--keep with an OUTPUT: TREE stays as it is");
	if (c->undo && (args->filter.chosen.limited || args->strip || args->compress ||
			args->any_runtime || args->keep || args->dry || args->output))
		return options_usage(&cmd_thin_help,
				     "--undo DIR goes with TREE, --libraries, "
				     "--library-rules, --jobs, --json and --quiet only");
	if (!c->undo && !args->filter.chosen.limited)
		return options_usage(&cmd_thin_help, "--arch is missing");
	if (arch_filter_check_known(&args->filter, &cmd_thin_help))
		return EXIT_USAGE;
	if (library_set_open(c->libraries, c->rules, &args->libraries, &why))
		return options_usage(&cmd_thin_help, "%s", why.text);
	args->libraries.plain = true;
	return EXIT_OK;
}

static int parse_command(struct thin_command *c, int argc, char **argv)
{
	struct options o = {.help = &cmd_thin_help, .argc = argc, .argv = argv};
	int status;

	c->thin.args.jobs = option_jobs();
	status = options_read(&o, c);
	if (status >= 0)
		return status ? status : -1;
	status = take_operands(c, argc - optind, argv + optind);
	return status ? status : take_lists(c);
}

/* --- the report ---------------------------------------------------------------------- */

struct sums {
	size_t binaries, databases;
	uint64_t before, after;
};

static struct sums sum_up(const struct thin *t)
{
	struct sums s = {0};

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
	return s;
}

/* The packages of the changed files, each after a space, on the heap. */
static char *find_packages(const struct thin *t)
{
	char *root = below_real(t->args.tree), *names;
	char **paths = xcalloc(t->n_files + 1, sizeof(*paths));
	size_t n = 0;

	for (size_t i = 0; i < t->n_files; i++) {
		const char *relative = t->scan.entries[t->files[i].entry].relative;

		if (root && t->files[i].after != t->files[i].before)
			paths[n++] = xasprintf("%s/%s", strcmp(root, "/") ? root : "",
					       relative);
	}
	names = packages_of(NULL, paths, n);
	for (size_t i = 0; i < n; i++)
		free(paths[i]);
	free(paths);
	free(root);
	return names;
}

static void print_undo(const struct thin *t)
{
	char *names;

	if (t->args.keep) {
		fputs("to undo this: kpack thin --undo ", stdout);
		report_text(t->args.keep);
		putchar(' ');
		report_text(t->args.tree);
		putchar('\n');
		return;
	}
	names = find_packages(t);
	fputs("to undo this, reinstall", stdout);
	if (*names)
		putchar(':');
	report_text(*names ? names : " what the files belong to");
	putchar('\n');
	free(names);
}

static void print_debug_files(const struct thin *t)
{
	size_t nameless = 0;

	for (size_t i = 0; i < t->n_files; i++)
		nameless += t->files[i].n_nameless;
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
}

static void print_table(const struct thin *t)
{
	struct sums s = sum_up(t);

	printf("%16s %16s  %s\n", t->args.dry ? "would be freed" : "freed", "stays",
	       "file");
	for (size_t i = 0; i < t->n_files; i++) {
		const struct thin_file *f = &t->files[i];

		if (!f->gone || f->same)
			continue;
		printf("%16" PRIu64 " %16" PRIu64 "  ", f->before - f->after, f->after);
		report_text(t->scan.entries[f->entry].relative);
		putchar('\n');
	}
	printf("%zu binaries, %zu files of kernel databases: %" PRIu64 " bytes %s\n",
	       s.binaries, s.databases, s.before - s.after,
	       t->args.dry ? "would be freed" : "freed");
	if (t->n_stuck)
		printf("%zu files have more code of other GPUs, in a form that stays\n",
		       t->n_stuck);
	print_debug_files(t);
	if (!t->args.dry && !t->args.output && s.before)
		print_undo(t);
}

static const char *status_of(const struct thin *t, const struct thin_file *f)
{
	enum fate fate = t->dispositions.items[f->entry].fate;

	return fate == FATE_CONVERTED ? "thinned" : disposition_name(fate);
}

static json_t *json_file(const struct thin *t, const struct thin_file *f)
{
	return json_pack("{so ss sI sI}", "path",
			 report_json_text(t->scan.entries[f->entry].relative), "status",
			 status_of(t, f), "size_before", (json_int_t)f->before,
			 "size_after", (json_int_t)f->after);
}

static void print_json(const struct thin *t)
{
	struct sums s = sum_up(t);
	json_t *files = json_array(), *packages = json_array();
	char *names = t->args.output ? NULL : find_packages(t), *rest = NULL;

	for (size_t i = 0; i < t->n_files; i++)
		if (!t->files[i].same)
			json_array_append_new(files, json_file(t, &t->files[i]));
	for (char *name = names ? strtok_r(names, " ", &rest) : NULL; name;
	     name = strtok_r(NULL, " ", &rest))
		json_array_append_new(packages, report_json_text(name));
	free(names);
	report_json(json_pack("{so sb so sI sI so}", "tree",
			      report_json_text(t->args.tree), "dry_run", t->args.dry,
			      "files", files, "bytes_before", (json_int_t)s.before,
			      "bytes_after", (json_int_t)s.after, "packages", packages));
}

/* --- undoing ------------------------------------------------------------------------- */

static const char *const states[] = {[UNDO_RESTORED] = "restored",
				     [UNDO_ORIGINAL] = "original",
				     [UNDO_LINK] = "link",
				     [UNDO_REFUSED] = "refused"};

static void print_undone_json(const struct undo *u)
{
	json_t *files = json_array();

	for (size_t i = 0; i < u->n_files; i++)
		json_array_append_new(files,
				      json_pack("{so ss}", "path",
						report_json_span(u->files[i].path),
						"status", states[u->files[i].state]));
	report_json(json_pack("{so so}", "tree", report_json_text(u->args.tree), "files",
			      files));
}

static void print_undone(const struct undo *u)
{
	size_t n[UNDO_REFUSED + 1] = {0};

	for (size_t i = 0; i < u->n_files; i++)
		n[u->files[i].state]++;
	printf("%zu files restored, %zu were the originals, %zu left as they are\n",
	       n[UNDO_RESTORED], n[UNDO_ORIGINAL], n[UNDO_REFUSED]);
}

static int undo_thin(struct thin_command *c)
{
	struct thin_args *args = &c->thin.args;
	struct undo u = {.args = {.dir = c->undo,
				  .tree = args->tree,
				  .libraries = args->libraries,
				  .jobs = args->jobs}};
	int status;

	args->libraries = (struct library_set){0};
	status = below_hold(c->undo) ? undo_run(&u) : EXIT_FAULT;
	if (u.done && c->json)
		print_undone_json(&u);
	else if (u.done && !c->quiet)
		print_undone(&u);
	undo_close(&u);
	return status;
}

/* EXIT_LEFT: all is done but for damaged files. */
static int run_thin(struct thin_command *c, int argc, char **argv)
{
	int status = parse_command(c, argc, argv);

	if (!status && c->undo) {
		status = undo_thin(c);
	} else if (!status) {
		status = thin_run(&c->thin);
		if (!status && c->json)
			print_json(&c->thin);
		else if (!status && !c->quiet)
			print_table(&c->thin);
		if (!status && c->thin.damaged)
			status = EXIT_LEFT;
	}
	thin_close(&c->thin);
	return report_finish(status < 0 ? EXIT_OK : status);
}

int cmd_thin(int argc, char **argv)
{
	struct thin_command c = {0};
	int status = run_thin(&c, argc, argv);

	return status == EXIT_LEFT ? EXIT_FAULT : status;
}

int cmd_thin_changed(int argc, char **argv, const struct scan_skip *skip)
{
	struct thin_command c = {0};

	if (skip)
		c.thin.args.skip = *skip;
	return run_thin(&c, argc, argv);
}
