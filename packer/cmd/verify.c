/* SPDX-License-Identifier: MIT */
/*
 * kpack verify: check the rules of check.h, then decode every entry, on several threads.
 * The report does not depend on how many there are.  With --tree: check the rules of
 * closure.h, which are about the files that kernel databases need.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/path.h"
#include "packer/archives/arch_filter.h"
#include "packer/archives/check.h"
#include "packer/archives/content.h"
#include "packer/command.h"
#include "packer/files/below.h"
#include "packer/library/closure.h"
#include "packer/trees/artifact.h"

struct verify {
	uint64_t jobs;
	bool quiet;
	bool faulty;
	bool tree;
	const char *libraries, *rules; /* as given; or NULL */
	struct arch_filter filter;
};

/* Where the argument of an option goes. */
#define AT(member) OPTION_PLACE(struct verify, member)

static const struct option_help options[] = {
	{'j', "jobs", "N", "decode on N threads (default: all cores)",
	 OPTION_JOBS(struct verify, jobs)},
	{'q', "quiet", NULL, "report only faults", AT(quiet)},
	{0, "tree", NULL, "instead look for files that kernel databases miss", AT(tree)},
	ARCH_FILTER_OPTIONS(struct verify, filter),
	{0, "libraries", "LIST", "the libraries to look for, in that order",
	 AT(libraries)},
	{0, "library-rules", "FILE", "more libraries, which FILE describes", AT(rules)},
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

/* --- archives -------------------------------------------------------------------- */

/* For archives_paths: check one archive, whose faults are counted in ARG, a struct verify. */
static void verify_archive(const char *path, void *arg)
{
	struct verify *v = arg;
	struct check_findings f;
	struct kpackx_error why = {0};
	struct kpack_archive *a = NULL;
	uint64_t bytes = 0;
	size_t n;
	bool whole;

	if (below_archive_open(path, &a, &why)) {
		report_why(path, &why);
		v->faulty = true;
		return;
	}
	check_archive(a, &f);
	/* of faults only the first are kept: a hostile archive can have one per entry */
	for (size_t i = 0; i < f.faults.kept; i++)
		report_error(path, "%s", f.faults.items[i].text);
	if (f.faults.counted > f.faults.kept)
		report_error(path, "and %zu fault%s more",
			     f.faults.counted - f.faults.kept,
			     plural(f.faults.counted - f.faults.kept));
	for (size_t i = 0; i < f.notes.kept && !v->quiet; i++)
		report_line(path, "note: %s", f.notes.items[i].text);
	n = kp_archive_entry_count(a);
	for (size_t i = 0; i < n; i++) {
		struct kp_entry_info info;

		kp_archive_entry(a, i, &info);
		bytes += info.size;
	}
	/* the rules first: they say why entries cannot be decoded */
	progress_begin(kp_path_name(path), bytes, !v->quiet);
	whole = check_content(a, NULL, CHECK_TYPES, v->jobs) && !f.faults.counted;
	progress_end();
	check_fini(&f);
	if (whole && !v->quiet)
		report_line(path, "ok, %zu entr%s, %" PRIu64 " bytes", n, plural_y(n),
			    bytes);
	v->faulty |= !whole;
	kp_archive_close(a);
}

/* --- trees ------------------------------------------------------------------------ */

/*
 * The most directories above a library's own that identify the library, as in
 * "rocblas/library/gfx942".
 */
enum { ABOVE_MAX = 4 };

/* As closure_report; ARG counts. */
static void report_fault(void *arg, const char *file, const char *text)
{
	report_error(file, "%s", text);
	++*(size_t *)arg;
}

/*
 * Check that every file that a loader will ask for exists, in plain files and archives together.
 */
static int verify_tree(const struct verify *v, int n, char **paths)
{
	struct library_set libraries;
	struct install_tree_of of = {
		.n_paths = n, .paths = paths, .prefix = "", .libraries = &libraries};
	struct install_tree tree;
	KP_AUTO_FREE char *real = NULL;
	const char *above;
	struct kpackx_error why = {0};
	size_t faults = 0, reported = 0;
	kpack_error_t err = library_set_open(v->libraries, v->rules, &libraries, &why);

	if (err == KPACK_ERROR_INVALID_ARGUMENT && !v->rules)
		options_usage(&cmd_verify_help, "--libraries: %s", why.text);
	if (err) {
		report_why(NULL, &why);
		return err == KPACK_ERROR_INVALID_ARGUMENT ? EXIT_USAGE : EXIT_FAULT;
	}
	for (int i = 0; i < n; i++)
		if (!below_hold(paths[i])) {
			library_set_close(&libraries);
			return EXIT_FAULT;
		}
	real = n == 1 ? below_real(paths[0]) : NULL;
	err = install_tree_open(&of, &tree, &why);
	/*
	 * The path may be a directory inside a larger tree, and libraries know their files by the
	 * directories above: put as many of these before the names as it takes, at last none.
	 */
	above = real ? real + strlen(real) : NULL;
	for (int k = 0;
	     k <= ABOVE_MAX && !err && above && !tree.n_databases && !tree.n_faults;
	     k++) {
		while (above > real && *--above != '/')
			continue;
		of.prefix = k == ABOVE_MAX || above == real ? "" : above + 1;
		if (above == real)
			k = ABOVE_MAX;
		install_tree_close(&tree);
		err = install_tree_open(&of, &tree, &why);
	}
	/* first what loaders ask for; then fat binaries that a split should have taken apart */
	if (!err)
		err = closure_check(&tree.found, &v->filter.chosen, report_fault,
				    &reported, &faults, &why);
	if (err)
		report_why(NULL, &why);
	faults += tree.n_faults;
	for (int i = 0; i < n && !err; i++)
		generic_tree_check(paths[i], report_fault, &faults);
	/* a misspelt path must not pass as "nothing wrong" */
	if (!err && tree.files.count + faults == 0) {
		report_error(n == 1 ? paths[0] : NULL, "there is no file to check");
		faults++;
	}
	if (!err && !v->quiet) {
		if (tree.n_databases == 0 && faults == 0)
			report_error(NULL,
				     "note: no file of a kernel database was found");
		printf("%zu file%s, %zu of kernel databases, %zu fault%s\n",
		       tree.files.count, plural(tree.files.count), tree.n_databases,
		       faults, plural(faults));
	}
	install_tree_close(&tree);
	library_set_close(&libraries);
	return err || faults ? EXIT_FAULT : EXIT_OK;
}

int cmd_verify(int argc, char **argv)
{
	struct verify v = {.jobs = option_jobs()};
	int n = options_parse(&cmd_verify_help, argc, &argv, &v), status;

	arch_filter_check(&v.filter, &cmd_verify_help);
	if (n == 0)
		options_usage(&cmd_verify_help, "an archive or a directory is missing");
	if (!v.tree && (v.libraries || v.rules || v.filter.chosen.limited))
		options_usage(&cmd_verify_help, "--arch, --libraries and --library-rules "
						"are for --tree");
	if (v.tree)
		status = verify_tree(&v, n, argv);
	else
		status = archives_paths(n, argv, verify_archive, &v) && !v.faulty
				 ? EXIT_OK
				 : EXIT_FAULT;
	arch_filter_fini(&v.filter);
	return report_finish(status);
}
