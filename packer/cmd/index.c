/* SPDX-License-Identifier: MIT */
/* kpack index: write a package index for a directory of wheels. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "packer/command.h"
#include "packer/cli/report.h"
#include "packer/wheel/index_tree.h"
#include "packer/cli/xalloc.h"
#include "packer/cli/progress.h"
#include "packer/files/below.h"

struct indexing {
	const char *dir, *out;
	char *default_out;
	bool json, quiet;
	char **files;
	size_t n_files;
	struct index_wheel *wheels;
	size_t count;
	struct progress progress;
};

static const struct option_help options[] = {
	{'o', "output", "OUT", "the index's directory; default DIR/simple",
	 OPTION_PLACE(struct indexing, out)},
	{0, "json", NULL, "print the wheels as one JSON array of objects",
	 OPTION_PLACE(struct indexing, json)},
	{'q', "quiet", NULL, "print nothing but faults",
	 OPTION_PLACE(struct indexing, quiet)},
	{0},
};

const struct command_help cmd_index_help = {
	"index",
	"[OPTION]... DIR",
	"write a package index for a directory of wheels",
	options,
	"Links are relative: DIR can be served from anywhere, or read in place with\n"
	"pip install --index-url file:///PATH/OF/DIR/simple/ NAME",
};

static void indexing_fini(struct indexing *x)
{
	for (size_t i = 0; i < x->n_files; i++)
		free(x->files[i]);
	for (size_t i = 0; i < x->count; i++)
		index_wheel_fini(&x->wheels[i]);
	free(x->files);
	free(x->wheels);
	free(x->default_out);
}

/* Whether the name is a wheel's.  Hidden files such as "._x.whl" are not meant for users. */
static int is_wheel(const struct dirent *e)
{
	const char *name = e->d_name;
	size_t n = strlen(name);

	return n > 4 && name[0] != '.' && strcmp(name + n - 4, ".whl") == 0;
}

static kpack_error_t list_wheels(struct indexing *x, struct kpackx_error *why)
{
	struct dirent **names;
	int n = below_scandir(x->dir, &names, is_wheel);

	if (n < 0)
		return below_fail(why, "cannot be listed");
	x->files = xcalloc((size_t)n, sizeof(*x->files));
	for (int i = 0; i < n; i++) {
		x->files[x->n_files++] = xstrdup(names[i]->d_name);
		free(names[i]);
	}
	free(names);
	return KPACK_SUCCESS;
}

static int by_project(const void *a, const void *b)
{
	const struct index_wheel *x = a, *y = b;
	int c = strcmp(x->project, y->project);

	return c ? c : strcmp(x->file, y->file);
}

static void add_progress(void *arg, uint64_t bytes)
{
	progress_add(arg, bytes);
}

static uint64_t total_size(const struct indexing *x)
{
	uint64_t total = 0;

	for (size_t i = 0; i < x->n_files; i++) {
		char *path = xasprintf("%s/%s", x->dir, x->files[i]);
		struct stat st;

		if (below_stat(path, &st) == 0)
			total += (uint64_t)st.st_size;
		free(path);
	}
	return total;
}

/* Read all wheels, and report every wheel that is refused; false: there were some. */
static bool read_wheels(struct indexing *x)
{
	struct kpackx_error why = {0};
	bool ok = true;

	x->wheels = xcalloc(x->n_files, sizeof(*x->wheels));
	progress_begin(&x->progress, "indexing", total_size(x), !x->quiet);
	for (; x->count < x->n_files; x->count++) {
		if (index_wheel_read(x->dir, x->files[x->count], add_progress,
				     &x->progress, &x->wheels[x->count], &why)) {
			progress_end(&x->progress);
			report_why(x->files[x->count], &why);
			ok = false;
		}
		why = (struct kpackx_error){0};
	}
	progress_end(&x->progress);
	if (x->count)
		qsort(x->wheels, x->count, sizeof(*x->wheels), by_project);
	return ok;
}

static void report_notes(const struct indexing *x)
{
	for (size_t i = 0; i < x->count && !x->quiet; i++)
		if (*x->wheels[i].tag_fault)
			report_error(x->wheels[i].file, "note: %s",
				     x->wheels[i].tag_fault);
}

static void print_json(const struct indexing *x)
{
	struct report_array array = {0};

	for (size_t i = 0; i < x->count; i++) {
		const struct index_wheel *w = &x->wheels[i];
		json_t *o = json_pack("{ss ss ss sI ss ss* ss*}", "wheel", w->file,
				      "name", w->project, "version", w->version, "size",
				      (json_int_t)w->size, "sha256", w->sha256,
				      "requires_python", w->requires_python, "variant",
				      *w->name.variant ? w->name.variant : NULL);

		report_array_add(&array, o);
	}
	report_array_end(&array);
}

static void print_result(const struct indexing *x)
{
	size_t projects = 0;

	if (x->json) {
		print_json(x);
		return;
	}
	if (x->quiet)
		return;
	for (size_t i = 0; i < x->count; i++)
		projects += i == 0 ||
			    strcmp(x->wheels[i].project, x->wheels[i - 1].project) != 0;
	report_text(x->out);
	printf(": %zu wheels of %zu projects\n", x->count, projects);
}

static int run_index(struct indexing *x)
{
	struct kpackx_error why = {0};

	if (below_root_if_directory(x->dir, &why) || list_wheels(x, &why)) {
		report_why(x->dir, &why);
		return EXIT_FAULT;
	}
	if (!read_wheels(x))
		return EXIT_FAULT;
	report_notes(x);
	if (x->count == 0) {
		report_error(x->dir, "there are no wheels");
		return EXIT_FAULT;
	}
	if (index_tree_write(x->dir, x->out, x->wheels, x->count, &why)) {
		report_why(x->out, &why);
		return EXIT_FAULT;
	}
	print_result(x);
	return EXIT_OK;
}

int cmd_index(int argc, char **argv)
{
	struct options o = {.help = &cmd_index_help, .argc = argc, .argv = argv};
	struct indexing x = {0};
	int status = options_read(&o, &x);

	if (status >= 0)
		return status;
	if (argc - optind != 1)
		return options_usage(o.help, "one DIR is needed");
	x.dir = argv[optind];
	if (!x.out)
		x.out = x.default_out = xasprintf("%s/simple", x.dir);
	status = run_index(&x);
	indexing_fini(&x);
	return report_finish(status);
}
