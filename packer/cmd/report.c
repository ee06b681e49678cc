/* SPDX-License-Identifier: MIT */
/* kpack report: write a page that shows what is big. */
#include <libgen.h>
#include <stdlib.h>
#include "packer/cli/xalloc.h"
#include "packer/command.h"
#include "packer/files/below.h"
#include "packer/files/output.h"
#include "core/base/file.h"
#include "packer/inspect/report_html.h"
#include "packer/inspect/report_json.h"
#include "packer/cli/report.h"

struct args {
	const char *output;
	const char *title;
	struct arch_filter filter;
	bool json, quiet;
	int n;
	char **operands;
};

static const struct option_help options[] = {
	{'o', "output", "FILE", "write the page to FILE; -: standard output",
	 OPTION_PLACE(struct args, output)},
	{0, "title", "TEXT", "its title (the operands' names)",
	 OPTION_PLACE(struct args, title)},
	{0, "arch", "LIST",
	 "also the code that stays for these GPUs; auto: this machine's",
	 OPTION_TAKE(struct args, filter, arch_filter_take)},
	{0, "json", NULL, "print the figures as JSON instead",
	 OPTION_PLACE(struct args, json)},
	{'q', "quiet", NULL, "no progress and no notes",
	 OPTION_PLACE(struct args, quiet)},
	{0},
};

const struct command_help cmd_report_help = {
	"report",
	"[OPTION]... -o FILE ARCHIVE|DIR|TREE|LIBRARY...",
	"write a page that shows what is big",
	options,
	"The page is one HTML file that loads nothing from anywhere. What is not packed "
	"yet\n"
	"is measured by packing it into files without a name in $TMPDIR, or /var/tmp.",
};

/* --- writing ------------------------------------------------------------------------- */

static kpack_error_t write_page(const char *path, const char *text, size_t size,
				struct kpackx_error *why)
{
	bool stream = true;

	if (strcmp(path, "-") != 0)
		KP_TRY(output_open(path, &stream, why));
	if (!stream)
		return below_file_write(
			path, 0666, (struct kp_span){(const uint8_t *)text, size}, why);
	fwrite(text, 1, size, stdout); /* report_finish reports what goes wrong */
	return KPACK_SUCCESS;
}

static kpack_error_t make_page(const struct page *page, char **text, size_t *size,
			       struct kpackx_error *why)
{
	FILE *out = xmemstream(text, size);
	kpack_error_t err = page_html(out, page, why);

	fclose(out);
	return err;
}

static int output_page(const struct args *args, const struct page *page)
{
	struct kpackx_error why = {0};
	char *text = NULL;
	size_t size = 0;
	int status = EXIT_OK;

	if (args->json)
		return page_json(page) ? EXIT_OK : EXIT_FAULT;
	if (make_page(page, &text, &size, &why) ||
	    write_page(args->output, text, size, &why)) {
		report_why(args->output, &why);
		status = EXIT_FAULT;
	}
	free(text);
	return status;
}

/* --- looking ------------------------------------------------------------------------- */

/*
 * Returns the last component of OPERAND's name; for "." that of the directory that it is.
 */
static char *name_of(const char *operand)
{
	char *path = xstrdup(operand), *name = basename(path);
	char *real = NULL;

	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
		real = below_real(operand);
		name = real ? basename(real) : name;
	}
	name = xstrdup(name);
	free(path);
	free(real);
	return name;
}

static char *default_title(const struct args *args)
{
	char *title = NULL;

	for (int i = 0; i < args->n; i++) {
		char *name = name_of(args->operands[i]);
		char *longer =
			xasprintf("%s%s%s", title ? title : "", title ? ", " : "", name);

		free(name);
		free(title);
		title = longer;
	}
	return title;
}

static int report_on(struct args *args, struct page_input *in, const char *title)
{
	struct kpackx_error why = {0};
	struct page_figures figures = {0};
	struct page_families families = {0};
	struct page_choice choice = {0};
	struct page page = {
		.title = title, .in = in, .figures = &figures, .families = &families};
	int status;

	if (page_figures_open(in, !args->quiet && !args->json, &figures, &why)) {
		report_why(NULL, &why);
		page_figures_close(&figures);
		return EXIT_FAULT;
	}
	page_families_open(&figures, &families);
	if (arch_filter_given(&args->filter)) {
		page_choice_open(&figures, &args->filter, &choice);
		page.choice = &choice;
	}
	status = output_page(args, &page);
	page_choice_close(&choice);
	page_families_close(&families);
	page_figures_close(&figures);
	return status || in->faults.counted ? EXIT_FAULT : EXIT_OK;
}

static int run_report(struct args *args)
{
	struct page_input in = {0};
	char *title = args->title ? xstrdup(args->title) : default_title(args);
	int status;

	page_input_open(args->n, args->operands, args->quiet || args->json, &in);
	status = report_on(args, &in, title);
	page_input_close(&in);
	free(title);
	return status;
}

static int read_operands(struct args *args, const struct options *o)
{
	args->n = o->argc - optind;
	args->operands = o->argv + optind;
	if (arch_filter_check_known(&args->filter, o->help))
		return EXIT_USAGE;
	if (args->n == 0)
		return options_usage(o->help, "ARCHIVE, DIR, TREE or LIBRARY is needed");
	if (!args->json && (!args->output || !*args->output))
		return options_usage(o->help, "-o FILE is needed");
	return EXIT_OK;
}

int cmd_report(int argc, char **argv)
{
	struct options o = {.help = &cmd_report_help, .argc = argc, .argv = argv};
	struct args args = {0};
	int status = options_read(&o, &args);

	if (status < 0) {
		status = read_operands(&args, &o);
		if (!status)
			status = report_finish(run_report(&args));
	}
	arch_filter_fini(&args.filter);
	return status;
}
