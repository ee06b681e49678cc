/* SPDX-License-Identifier: MIT */
/*
 * HIP runtimes and converted binaries.  kpack runtime lists the runtimes, and whether they take
 * converted binaries: what its file contains says it of a runtime without running it; with --ask
 * it is loaded and tried.  kpack run starts a program with what its runtime needs for them: the
 * helper libkpack_hip.so, preloaded, and in the environment the GPUs and the places of archives
 * that it is to use.  The program replaces this one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "packer/archives/arch_filter.h"
#include "packer/command.h"
#include "packer/files/below.h"
#include "packer/gpu/runtimes.h"

/* --- kpack runtime ------------------------------------------------------------------- */

struct runtime_args {
	const char *file;
	bool ask, json;
};

static const struct option_help runtime_options[] = {
	{0, "hip", "FILE", "this runtime", OPTION_PLACE(struct runtime_args, file)},
	OPTION_SWITCH(0, "ask", "also load each, and register a wrapper",
		      struct runtime_args, ask),
	OPTION_JSON_ARRAY(struct runtime_args, json),
	{0},
};

const struct command_help cmd_runtime_help = {
	"runtime",
	"[--ask] [--json] [TREE | --hip FILE]",
	"list HIP runtimes, and whether they take converted binaries",
	runtime_options,
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

/*
 * The status is 0 if one runtime takes converted binaries, so that a script can ask for that.
 */
int cmd_runtime(int argc, char **argv)
{
	struct hip_runtimes list = {0};
	struct runtime_args args = {0};
	int n = options_parse(&cmd_runtime_help, argc, &argv, &args);
	struct report_array array = {0};
	bool whole = true, takes = false, known = false;

	if (n > 1 || (args.file && n))
		options_usage(&cmd_runtime_help, "one TREE, or --hip FILE");
	if (args.file)
		runtimes_add(&list, args.file);
	else if (n)
		whole = below_hold(argv[0]) && runtimes_add_tree(&list, argv[0]);
	else
		runtimes_add_system(&list);
	/* asking runs the code of the runtime, so that it is done only on request */
	for (size_t i = 0; args.ask && i < list.count; i++)
		runtime_ask(&list.items[i]);
	/* known by its file, by its answer, or not at all: each has a row, and a reason if there is one */
	for (size_t i = 0; i < list.count; i++) {
		const struct hip_runtime *r = &list.items[i];
		size_t n_rows = KP_COUNT(rows) - !r->was_asked;
		/* how it answered is more certain than what its file contains */
		bool answered = r->was_asked && r->asked != RUNTIME_UNKNOWN;

		if (args.json)
			report_array_add(&array, rows_object(rows, n_rows, r));
		else
			rows_line(rows, n_rows, r, ROW_LINE, '\t');
		if (r->why.code)
			report_why(r->path, &r->why);
		takes |= (answered ? r->asked : r->contains) == RUNTIME_TAKES;
		known |= r->contains != RUNTIME_UNKNOWN;
	}
	if (args.json)
		report_array_end(&array);
	if (!list.count)
		report_error(args.file, args.file ? "not a HIP runtime: it does not have "
						    "__hipRegisterFatBinary"
						  : "no HIP runtime");
	else if (!takes && known) /* if nothing is known, the reasons were reported */
		report_error(NULL, "no runtime takes converted binaries by itself: "
				   "'kpack run' and libkpack_hip(7) help");
	runtimes_fini(&list);
	return report_finish(takes && whole ? EXIT_OK : EXIT_FAULT);
}

/* --- kpack run ----------------------------------------------------------------------- */

struct run_args {
	struct arch_filter gpus;
	char *places; /* a list as ROCM_KPACK_PATH_PREFIX */
	bool verbose;
};

/* As env(1). */
enum { EXIT_NOT_RUN = 126, EXIT_NOT_FOUND = 127 };

/* Append PLACE, from the root and with its colons escaped: the program may change its directory. */
static int take_place(const struct options *o, const struct option_help *row, void *slot)
{
	char **list = slot, *old = *list;
	KP_AUTO_FREE char *here = *o->arg == '/' ? NULL : getcwd(NULL, 0);
	KP_AUTO_FREE char *whole =
		xasprintf("%s%s%s", here ? here : "", here ? "/" : "", o->arg);
	size_t size;
	FILE *f = xmemstream(list, &size);

	(void)row;
	if (old)
		fprintf(f, "%s:", old);
	for (const char *c = whole; *c; c++)
		fprintf(f, "%s%c", *c == ':' ? "\\" : "", *c);
	fclose(f);
	free(old);
	return EXIT_OK;
}

static const struct option_help run_options[] = {
	{0, "arch", "LIST", "code for these GPUs, not this machine's (auto)",
	 OPTION_TAKE(struct run_args, gpus, arch_filter_take)},
	{0, "archives", "PLACE", "look first into this archive or directory; repeatable",
	 OPTION_TAKE(struct run_args, places, take_place)},
	OPTION_SWITCH('v', "verbose", "print where each code object comes from",
		      struct run_args, verbose),
	{0},
};

const struct command_help cmd_run_help = {
	"run",
	"[OPTION]... [--] PROGRAM [ARGUMENT]...",
	"run a program whose HIP runtime does not take converted binaries",
	run_options,
	"It is started with libkpack_hip.so; see libkpack_hip(7).",
};

static void set_variable(const char *name, const char *value)
{
	if (setenv(name, value, 1) < 0)
		xalloc_fail(0);
}

/* Set the variable NAME to FIRST and SECOND with SEPARATOR between them, or to the one there is. */
static void set_list(const char *name, const char *first, char separator,
		     const char *second)
{
	KP_AUTO_FREE char *list = NULL;

	if (first && *first && second && *second)
		list = xasprintf("%s%c%s", first, separator, second);
	set_variable(name, list ? list : first && *first ? first : second);
}

/*
 * Set the environment, and become the program.  Usage faults are ours; what comes later has
 * env(1)'s exit codes, because the program's own may be anything.
 */
int cmd_run(int argc, char **argv)
{
	struct options o = {
		.help = &cmd_run_help, .argc = argc, .argv = argv, .is_prefix = true};
	static struct run_args args;
	const struct kp_choice *chosen = &args.gpus.chosen;
	KP_AUTO_FREE char *helper = NULL;
	char text[KP_TARGET_TEXT_MAX];
	int status = EXIT_NOT_RUN;

	options_read(&o, &args);
	argv += optind;
	if (optind == argc)
		options_usage(o.help, "no program");
	if (chosen->all)
		options_usage(o.help, "--arch all: name the GPUs");
	/* only found GPUs are left to the library, which also knows what the runtime calls them */
	if (chosen->limited)
		unsetenv("KPACK_HIP_ARCH");
	for (size_t i = 0; i < chosen->count && chosen->named; i++) {
		kp_target_format(&chosen->gpus[i], text);
		set_list("KPACK_HIP_ARCH", secure_getenv("KPACK_HIP_ARCH"), ',', text);
	}
	if (args.verbose)
		set_variable("KPACK_HIP_DEBUG", "1");
	/* the user's own places come after those of the command line */
	if (args.places)
		set_list("ROCM_KPACK_PATH_PREFIX", args.places, ':',
			 secure_getenv("ROCM_KPACK_PATH_PREFIX"));
	/* found beside this program, not by the linker's search, which others can lead elsewhere */
	helper = helper_find();
	if (!helper && errno == ENOENT) {
		report_error("libkpack_hip.so", "not found beside this program");
	} else if (!helper) {
		report_error("libkpack_hip.so", "cannot find it: %s", strerror(errno));
	} else if (strpbrk(helper, ": ")) {
		report_error(helper, "LD_PRELOAD takes no path with a colon or a space");
	} else {
		/* at the end: a sanitizer's runtime must be the first */
		set_list("LD_PRELOAD", secure_getenv("LD_PRELOAD"), ':', helper);
		execvp(argv[0], argv);
		status = errno == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUN;
		report_error(argv[0], "%s", strerror(errno));
	}
	return report_finish(status);
}
