/* SPDX-License-Identifier: MIT */
/* kpack runtime: the HIP runtimes, and whether they take converted binaries. */
#include "packer/command.h"
#include "packer/cli/report.h"
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
	{0, "json", NULL, "print one JSON array of objects",
	 OPTION_PLACE(struct runtime_args, json)},
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

static const char *answer_word(enum runtime_answer answer)
{
	static const char *const words[] = {
		[RUNTIME_REFUSES] = "no",
		[RUNTIME_TAKES] = "yes",
		[RUNTIME_UNKNOWN] = "unknown",
	};

	return words[answer];
}

static void print_line(const struct hip_runtime *r)
{
	report_text(r->path);
	printf("\t");
	report_text(*r->version ? r->version : "-");
	printf("\t%s", answer_word(r->contains));
	if (r->was_asked)
		printf("\t%s", answer_word(r->asked));
	putchar('\n');
}

static json_t *answer_value(enum runtime_answer answer)
{
	return answer == RUNTIME_UNKNOWN ? json_null()
					 : json_boolean(answer == RUNTIME_TAKES);
}

static json_t *runtime_object(const struct hip_runtime *r)
{
	json_t *o = json_object();

	json_object_set_new(o, "path", report_json_text(r->path));
	json_object_set_new(o, "version", report_json_text(r->version));
	json_object_set_new(o, "takes_converted", answer_value(r->contains));
	if (r->was_asked)
		json_object_set_new(o, "asked", answer_value(r->asked));
	return o;
}

static bool print_all(const struct hip_runtimes *list, bool json)
{
	struct report_array array = {0};

	for (size_t i = 0; i < list->count; i++) {
		const struct hip_runtime *r = &list->items[i];

		if (json)
			report_array_add(&array, runtime_object(r));
		else
			print_line(r);
		if (r->why.code)
			report_why(r->path, &r->why);
	}
	return !json || report_array_end(&array);
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

static bool find_all(struct hip_runtimes *list, const char *tree, const char *file)
{
	if (file)
		runtimes_add(list, file);
	else if (tree)
		return below_hold(tree) && runtimes_add_tree(list, tree);
	else
		runtimes_add_system(list);
	return true;
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
	status = find_all(&list, argv[optind], args.file) ? EXIT_OK : EXIT_FAULT;
	for (size_t i = 0; args.ask && i < list.count; i++)
		runtime_ask(&list.items[i]);
	if (!print_all(&list, args.json) || runtimes_status(&list, args.file) != EXIT_OK)
		status = EXIT_FAULT;
	runtimes_fini(&list);
	return report_finish(status);
}
