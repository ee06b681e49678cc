/* SPDX-License-Identifier: MIT */
/*
 * kpack verify: check the rules of check.h, then decode every entry, on several threads.
 * The report does not depend on how many there are.  With --tree: check the rules of
 * closure.h.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>
#include "packer/archives/arch_filter.h"
#include "packer/archives/check.h"
#include "packer/archives/content.h"
#include "packer/cli/xalloc.h"
#include "packer/library/closure.h"
#include "packer/command.h"
#include "packer/files/below.h"
#include "packer/trees/artifact.h"
#include "packer/cli/report.h"
#include "core/base/text.h"

struct verify {
	uint64_t jobs;
	bool quiet;
	bool faulty;
	bool tree;
	const char *libraries, *rules; /* as given; or NULL */
	struct arch_filter filter;
};

static const struct option_help options[] = {
	{'j', "jobs", "N", "decode on N threads (default: all cores)",
	 OPTION_JOBS(struct verify, jobs)},
	{'q', "quiet", NULL, "report only faults", OPTION_PLACE(struct verify, quiet)},
	{0, "tree", NULL, "instead look for files that kernel databases miss",
	 OPTION_PLACE(struct verify, tree)},
	ARCH_FILTER_OPTIONS(struct verify, filter),
	{0, "libraries", "LIST", "the libraries to look for, in that order",
	 OPTION_PLACE(struct verify, libraries)},
	{0, "library-rules", "FILE", "more libraries, which FILE describes",
	 OPTION_PLACE(struct verify, rules)},
	{0},
};

const struct command_help cmd_verify_help = {
	"verify",
	"[--jobs N] [--tree [--arch LIST [--arch-exact]] [--libraries LIST] "
	"[--library-rules FILE]] "
	"[-q] "
	"PATH...",
	"check archives: every rule, every byte",
	options,
	NULL,
};

/*
 * The most directories above a library's own that identify the library, as in
 * "rocblas/library/gfx942".
 */
#define ABOVE_MAX 4

/* --- archives -------------------------------------------------------------------- */

static void verify_archive(const char *path, void *arg)
{
	struct verify *v = arg;
	struct check_findings f;
	struct kpackx_error why = {0};
	struct kpack_archive *a = NULL;
	uint64_t bytes = 0;
	bool faulty;

	if (below_archive_open(path, &a, &why)) {
		report_why(path, &why);
		v->faulty = true;
		return;
	}
	check_archive(a, &f);
	for (size_t i = 0; i < f.faults.kept; i++)
		report_error(path, "%s", f.faults.items[i].text);
	if (f.faults.counted > f.faults.kept)
		report_error(path, "and %zu faults more",
			     f.faults.counted - f.faults.kept);
	for (size_t i = 0; i < f.notes.kept && !v->quiet; i++) {
		report_text(path);
		fputs(": note: ", stdout);
		report_message(f.notes.items[i].text);
		putchar('\n');
	}
	faulty = f.faults.counted > 0;
	faulty |= !check_content(a, NULL, CHECK_TYPES, v->jobs);
	check_fini(&f);
	if (!faulty && !v->quiet) {
		size_t n = kp_archive_entry_count(a);

		for (size_t i = 0; i < n; i++) {
			struct kp_entry_info info;

			kp_archive_entry(a, i, &info);
			bytes += info.size;
		}
		report_text(path);
		printf(": ok, %zu entries, %" PRIu64 " bytes\n", n, bytes);
	}
	v->faulty |= faulty;
	kp_archive_close(a);
}

/* --- trees ------------------------------------------------------------------------ */

static void report_missing(void *arg, const char *path, const char *text)
{
	(void)arg;
	report_error(path, "%s", text);
}

/* Returns the last N components of PATH; NULL: it has no more than these. */
static const char *path_tail(const char *path, unsigned n)
{
	const char *at = path + strlen(path);

	while (n && at > path)
		if (*--at == '/')
			n--;
	return n || at == path ? NULL : at + 1;
}

/*
 * Open the tree.  Its path may be a directory inside a larger tree, and libraries know
 * their files by the directories above: put as many of these before the names as it
 * takes.
 */
static kpack_error_t open_tree(struct install_tree_of *of, char *real,
			       struct install_tree *tree, struct kpackx_error *why)
{
	kpack_error_t err = install_tree_open(of, tree, why);

	for (unsigned n = 1; real && n <= ABOVE_MAX + 1; n++) {
		const char *above = n <= ABOVE_MAX ? path_tail(real, n) : "";

		if (err || tree->n_databases || tree->n_faults)
			return err;
		if (!above)
			continue;
		install_tree_close(tree);
		of->prefix = above;
		err = install_tree_open(of, tree, why);
	}
	return err;
}

static void report_left(void *arg, const char *file, const char *text)
{
	report_error(file, "%s", text);
	++*(size_t *)arg;
}

static int check_tree(const struct verify *v, int n, char **paths,
		      const struct library_set *libraries)
{
	struct install_tree_of of = {
		.n_paths = n, .paths = paths, .prefix = "", .libraries = libraries};
	char *real = n == 1 ? below_real(paths[0]) : NULL;
	struct install_tree tree;
	struct kpackx_error why = {0};
	size_t faults = 0;
	kpack_error_t err = open_tree(&of, real, &tree, &why);

	if (!err)
		err = closure_check(&tree.found, &v->filter.chosen, report_missing, NULL,
				    &faults, &why);
	if (err)
		report_why(NULL, &why);
	faults += tree.n_faults;
	for (int i = 0; i < n && !err; i++)
		generic_tree_check(paths[i], report_left, &faults);
	if (!err && tree.files.count + faults == 0) {
		report_error(n == 1 ? paths[0] : NULL, "there is no file to check");
		faults++;
	}
	if (!err && !v->quiet) {
		if (tree.n_databases == 0 && faults == 0)
			report_error(NULL,
				     "note: no file of a kernel database was found");
		printf("%zu files, %zu of kernel databases, %zu fault%s\n",
		       tree.files.count, tree.n_databases, faults,
		       faults == 1 ? "" : "s");
	}
	install_tree_close(&tree);
	free(real);
	return err || faults ? EXIT_FAULT : EXIT_OK;
}

static int verify_tree(const struct verify *v, int n, char **paths)
{
	struct library_set libraries;
	struct kpackx_error why = {0};
	kpack_error_t err = library_set_open(v->libraries, v->rules, &libraries, &why);
	bool held = true;
	int status;

	if (err == KPACK_ERROR_INVALID_ARGUMENT && !v->rules)
		return options_usage(&cmd_verify_help, "--libraries: %s", why.text);
	if (err) {
		report_why(NULL, &why);
		return err == KPACK_ERROR_INVALID_ARGUMENT ? EXIT_USAGE : EXIT_FAULT;
	}
	for (int i = 0; i < n && held; i++)
		held = below_hold(paths[i]);
	status = held ? check_tree(v, n, paths, &libraries) : EXIT_FAULT;
	library_set_close(&libraries);
	return status;
}

/* --- the command ------------------------------------------------------------------ */

int cmd_verify(int argc, char **argv)
{
	struct options o = {.help = &cmd_verify_help, .argc = argc, .argv = argv};
	struct verify v = {.jobs = option_jobs()};
	int status = arch_filter_read(&o, &v, &v.filter);

	if (status >= 0)
		goto out;
	if (optind == argc) {
		status = options_usage(o.help, "an archive or a directory is missing");
	} else if (!v.tree && (v.libraries || v.rules || v.filter.chosen.limited)) {
		status = options_usage(o.help, "--arch, --libraries and --library-rules "
					       "are for --tree");
	} else if (v.tree) {
		status = report_finish(verify_tree(&v, argc - optind, argv + optind));
	} else {
		if (!archives_paths(argc - optind, argv + optind, verify_archive, &v))
			v.faulty = true;
		status = report_finish(v.faulty ? EXIT_FAULT : EXIT_OK);
	}
out:
	arch_filter_fini(&v.filter);
	return status;
}
