/* SPDX-License-Identifier: MIT */
/*
 * kpack run: a program, with what its HIP runtime needs for converted binaries: the helper
 * libkpack_hip.so, preloaded, and in the environment the GPUs and the places of archives that it
 * is to use.  The program replaces this one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "packer/cli/xalloc.h"
#include "packer/command.h"
#include "packer/archives/arch_filter.h"
#include "packer/cli/report.h"
#include "packer/files/below.h"
#include "packer/gpu/runtimes.h"

struct run_args {
	struct arch_filter gpus;
	char *places; /* a list as ROCM_KPACK_PATH_PREFIX */
	bool verbose;
};

/* As env(1). */
enum { EXIT_NOT_RUN = 126, EXIT_NOT_FOUND = 127 };

static void set_variable(const char *name, const char *value)
{
	if (setenv(name, value, 1) < 0)
		xalloc_fail(0);
}

/* Append VALUE to the list in the variable NAME, whose members SEPARATOR separates. */
static void add_to_variable(const char *name, const char *value, char separator)
{
	const char *old = secure_getenv(name);
	char *list =
		old && *old ? xasprintf("%s%c%s", old, separator, value) : xstrdup(value);

	set_variable(name, list);
	free(list);
}

/* PLACE from the root, with its colons escaped: the program may change its directory. */
static char *path_for_list(const char *place)
{
	char *here = *place == '/' ? NULL : getcwd(NULL, 0);
	char *whole = xasprintf("%s%s%s", here ? here : "", here ? "/" : "", place);
	char *out = xmalloc(2 * strlen(whole) + 1), *to = out;

	for (const char *from = whole; *from; from++) {
		if (*from == ':')
			*to++ = '\\';
		*to++ = *from;
	}
	*to = '\0';
	free(whole);
	free(here);
	return out;
}

static int take_place(const struct options *o, const struct option_help *row, void *slot)
{
	char **list = slot, *path = path_for_list(o->arg);
	char *longer = *list ? xasprintf("%s:%s", *list, path) : xstrdup(path);

	(void)row;
	free(*list);
	free(path);
	*list = longer;
	return EXIT_OK;
}

static const struct option_help options[] = {
	{0, "arch", "LIST", "code for these GPUs, not this machine's (auto)",
	 OPTION_TAKE(struct run_args, gpus, arch_filter_take)},
	{0, "archives", "PLACE", "look first into this archive or directory; repeatable",
	 OPTION_TAKE(struct run_args, places, take_place)},
	{'v', "verbose", NULL, "print where each code object comes from",
	 OPTION_PLACE(struct run_args, verbose)},
	{0},
};

const struct command_help cmd_run_help = {
	"run",
	"[OPTION]... [--] PROGRAM [ARGUMENT]...",
	"run a program whose HIP runtime does not take converted binaries",
	options,
	"It is started with libkpack_hip.so; see libkpack_hip(7).",
};

/* Only found GPUs are left to the library, which also knows what the runtime calls them. */
static int set_gpus(const struct kp_choice *chosen)
{
	char text[KP_TARGET_TEXT_MAX];

	if (chosen->all)
		return options_usage(&cmd_run_help, "--arch all: name the GPUs");
	if (!chosen->limited)
		return EXIT_OK;
	unsetenv("KPACK_HIP_ARCH");
	for (size_t i = 0; i < chosen->count && chosen->named; i++) {
		kp_target_format(&chosen->gpus[i], text);
		add_to_variable("KPACK_HIP_ARCH", text, ',');
	}
	return EXIT_OK;
}

/* Let the dynamic linker load the helper.  Returns the exit status. */
static int preload_helper(void)
{
	char *helper = helper_find();
	int status = EXIT_NOT_RUN;

	if (!helper && errno == ENOENT)
		report_error("libkpack_hip.so", "not found beside this program");
	else if (!helper)
		report_error("libkpack_hip.so", "cannot find it: %s", strerror(errno));
	else if (strpbrk(helper, ": "))
		report_error(helper, "LD_PRELOAD takes no path with a colon or a space");
	else
		status = EXIT_OK;
	/* at the end: a sanitizer's runtime must be the first */
	if (!status)
		add_to_variable("LD_PRELOAD", helper, ':');
	free(helper);
	return status;
}

static int run_program(const struct run_args *args, char **argv)
{
	int status = set_gpus(&args->gpus.chosen), error;

	if (status != EXIT_OK)
		return status;
	if (args->verbose)
		set_variable("KPACK_HIP_DEBUG", "1");
	/* the user's own places come after those of the command line */
	if (args->places) {
		const char *old = secure_getenv("ROCM_KPACK_PATH_PREFIX");
		char *all = old && *old ? xasprintf("%s:%s", args->places, old)
					: xstrdup(args->places);

		set_variable("ROCM_KPACK_PATH_PREFIX", all);
		free(all);
	}
	status = preload_helper();
	if (status)
		return report_finish(status);
	execvp(argv[0], argv);
	error = errno;
	report_error(argv[0], "%s", strerror(error));
	return report_finish(error == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUN);
}

int cmd_run(int argc, char **argv)
{
	struct options o = {
		.help = &cmd_run_help, .argc = argc, .argv = argv, .is_prefix = true};
	struct run_args args = {0};
	int status = options_read(&o, &args);

	if (status < 0 && optind == argc)
		status = options_usage(o.help, "no program");
	if (status < 0)
		status = run_program(&args, argv + optind);
	arch_filter_fini(&args.gpus);
	free(args.places);
	return status;
}
