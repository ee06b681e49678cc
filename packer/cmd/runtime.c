/* SPDX-License-Identifier: MIT */
/*
 * kpack runtime: the HIP runtimes, and whether they take converted binaries.  What its file
 * contains says it of a runtime without running it; with --ask it is loaded and tried.
 */
#include "packer/command.h"
#include "packer/cli/report.h"
#include "packer/cli/rows.h"
#include "packer/files/below.h"
#include "packer/gpu/runtimes.h"

struct runtime_args {
	const char *file;
	bool ask, json;
};

static const struct option_help options[] = {
	{0, "hip", "FILE", "this runtime", OPTION_PLACE(struct runtime_args, file)},
	{0, "ask", NULL, "also load each, and register a wrapper",
	 OPTION_PLACE(struct runtime_args, ask)},
	OPTION_JSON_ARRAY(struct runtime_args, json),
	{0},
};

const struct command_help cmd_runtime_help = {
	"runtime",
	"[--ask] [--json] [TREE | --hip FILE]",
	"list HIP runtimes, and whether they take converted binaries",
	options,
	"Without TREE, this system's: of ROCM_PATH, /opt/rocm* and the dynamic linker's\n"
	"cache.  The status is 0 if one takes them.",
};

/* The last row is that of a runtime that was asked. */
static const struct row rows[] = {
	ROW("path", ROW_LINE | ROW_JSON, struct hip_runtime, path),
	ROW("version", ROW_LINE | ROW_NONE, struct hip_runtime, version),
	ROW("version", ROW_JSON, struct hip_runtime, version),
	ROW_AS("takes_converted", ROW_LINE | ROW_JSON, struct hip_runtime, contains,
	       ROW_ANSWER, NULL),
	ROW_AS("asked", ROW_LINE | ROW_JSON, struct hip_runtime, asked, ROW_ANSWER, NULL),
};

static void print_runtimes(const struct hip_runtimes *list, bool json)
{
	struct report_array array = {0};

	for (size_t i = 0; i < list->count; i++) {
		const struct hip_runtime *r = &list->items[i];
		size_t n = KP_COUNT(rows) - !r->was_asked;

		if (json)
			report_array_add(&array, rows_object(rows, n, r));
		else
			rows_line(rows, n, r, ROW_LINE, '\t');
		if (r->why.code)
			report_why(r->path, &r->why);
	}
	if (json)
		report_array_end(&array);
}

/* How the runtime answered is more certain than what its file contains. */
static bool runtime_takes(const struct hip_runtime *r)
{
	bool asked = r->was_asked && r->asked != RUNTIME_UNKNOWN;

	return (asked ? r->asked : r->contains) == RUNTIME_TAKES;
}

static int runtimes_status(const struct hip_runtimes *list, const char *file)
{
	bool known = false;

	for (size_t i = 0; i < list->count; i++) {
		if (runtime_takes(&list->items[i]))
			return EXIT_OK;
		known |= list->items[i].contains != RUNTIME_UNKNOWN;
	}
	if (list->count && !known)
		return EXIT_FAULT; /* the reason was reported */
	if (list->count)
		report_error(NULL, "no runtime takes converted binaries by itself: "
				   "'kpack run' and libkpack_hip(7) help");
	else
		report_error(file, file ? "not a HIP runtime: it does not have "
					  "__hipRegisterFatBinary"
					: "no HIP runtime");
	return EXIT_FAULT;
}

int cmd_runtime(int argc, char **argv)
{
	struct options o = {.help = &cmd_runtime_help, .argc = argc, .argv = argv};
	struct hip_runtimes list = {0};
	struct runtime_args args = {0};
	int status = options_read(&o, &args);

	if (status >= 0)
		return status;
	if (argc - optind > 1 || (args.file && optind < argc))
		return options_usage(o.help, "one TREE, or --hip FILE");
	status = EXIT_OK;
	if (args.file)
		runtimes_add(&list, args.file);
	else if (optind == argc)
		runtimes_add_system(&list);
	else if (!below_hold(argv[optind]) || !runtimes_add_tree(&list, argv[optind]))
		status = EXIT_FAULT;
	for (size_t i = 0; args.ask && i < list.count; i++)
		runtime_ask(&list.items[i]);
	print_runtimes(&list, args.json);
	if (runtimes_status(&list, args.file) != EXIT_OK)
		status = EXIT_FAULT;
	runtimes_fini(&list);
	return report_finish(status);
}
