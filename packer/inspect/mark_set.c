/* SPDX-License-Identifier: MIT */
/* kpack mark set: change the marker of converted binaries, in place. */
#include <stdlib.h>
#include "mark.h"
#include "packer/archives/binary.h"
#include "packer/cli/report.h"

static int check_text(const struct options *o, const struct option_help *row)
{
	if (marker_text_ok(o->arg))
		return EXIT_OK;
	return options_usage(o->help,
			     "--%s: is empty, or not UTF-8 without control bytes",
			     row->long_name);
}

int mark_take_name(const struct options *o, const struct option_help *row, void *slot)
{
	int status = check_text(o, row);

	if (!status)
		marker_set_name(slot, o->arg);
	return status;
}

int mark_take_path(const struct options *o, const struct option_help *row, void *slot)
{
	int status = check_text(o, row);

	if (!status)
		marker_add_path(slot, o->arg);
	return status;
}

static const struct option_help options[] = {
	{0, "kernel-name", "NAME", "the new name", OPTION_TAKE_ALL(mark_take_name)},
	{0, "search-path", "PATH",
	 "a new path, in place of all old ones; may be repeated",
	 OPTION_TAKE_ALL(mark_take_path)},
	{0},
};

const struct command_help mark_set_help = {
	"mark set",
	"[--kernel-name NAME] [--search-path PATH]... FILE...",
	"change the marker of converted binaries",
	options,
	"A file that already has the name and the paths is not touched.",
};

static kpack_error_t replace_marker(const struct binary *b,
				    const struct kp_marker *marker, struct rewrite *r,
				    struct kpackx_error *why)
{
	uint8_t *bytes;
	size_t size;
	kpack_error_t err;

	KP_TRY(kp_marker_write(marker, &bytes, &size, why));
	err = binary_set_marker(b, (struct kp_span){bytes, size}, &r->out, why);
	free(bytes);
	return err ? err : rewrite_publish(r, why);
}

static kpack_error_t set_marker(struct binary *b, const struct kp_marker *changes,
				struct kpackx_error *why)
{
	struct kp_marker marker;
	struct rewrite r = {0};
	kpack_error_t err = KPACK_SUCCESS;
	bool same;

	KP_TRY(binary_read_marker(b, why));
	marker_merge(&b->marker, changes, &marker);
	same = kp_marker_same(&b->marker, &marker);
	if (!same)
		err = rewrite_open(&r, b, b->path, why);
	if (!same && !err)
		err = replace_marker(b, &marker, &r, why);
	rewrite_close(&r);
	kp_marker_fini(&marker);
	return err;
}

static int set_all(const struct kp_marker *changes, int n, char **files)
{
	int status = EXIT_OK;

	for (int i = 0; i < n; i++) {
		struct kpackx_error why = {0};
		struct binary b;
		kpack_error_t err = binary_open(files[i], &b, &why);

		if (!err)
			err = set_marker(&b, changes, &why);
		binary_close(&b);
		if (!err)
			continue;
		report_why(files[i], &why);
		status = EXIT_FAULT;
	}
	return status;
}

/* Returns the exit status to leave with, or -1. */
static int read_options(struct kp_marker *changes, struct options *o)
{
	int status = options_read(o, changes);

	if (status >= 0)
		return status;
	if (!changes->kernel_name && changes->n_search_paths == 0)
		return options_usage(o->help, "nothing to set");
	if (optind == o->argc)
		return options_usage(o->help, "a file is missing");
	return -1;
}

int mark_set(int argc, char **argv)
{
	struct options o = {.help = &mark_set_help, .argc = argc, .argv = argv};
	struct kp_marker changes = {0};
	int status = read_options(&changes, &o);

	if (status < 0)
		status = report_finish(set_all(&changes, argc - optind, argv + optind));
	kp_marker_fini(&changes);
	return status;
}
