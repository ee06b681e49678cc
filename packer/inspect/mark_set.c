/* SPDX-License-Identifier: MIT */
/* kpack mark set: change the marker of converted binaries, in place. */
#include <stdlib.h>
#include "core/base/alloc.h"
#include "mark.h"
#include "packer/archives/binary.h"
#include "packer/cli/report.h"

/* Returns an exit status, EXIT_OK if a marker can hold the option's argument. */
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

/* Apply CHANGES to the marker of the file PATH, unless it has them already. */
static kpack_error_t set_marker(const char *path, const struct kp_marker *changes,
				struct kpackx_error *why)
{
	struct kp_marker marker = {0};
	struct rewrite r = {0};
	KP_AUTO_FREE uint8_t *bytes = NULL;
	struct binary b;
	size_t size;
	kpack_error_t err = binary_open(path, &b, why);

	if (!err)
		err = binary_read_marker(&b, why);
	if (err)
		goto out;
	marker_merge(&b.marker, changes, &marker);
	if (kp_marker_same(&b.marker, &marker))
		goto out;
	err = rewrite_open(&r, &b, path, why);
	if (!err)
		err = kp_marker_write(&marker, &bytes, &size, why);
	if (!err)
		err = binary_set_marker(&b, (struct kp_span){bytes, size}, &r.out, why);
	if (!err)
		err = rewrite_publish(&r, why);
out:
	rewrite_close(&r);
	kp_marker_fini(&marker);
	binary_close(&b);
	return err;
}

int mark_set(int argc, char **argv)
{
	struct options o = {.help = &mark_set_help, .argc = argc, .argv = argv};
	struct kp_marker changes = {0};
	int status = options_read(&o, &changes);

	if (status >= 0)
		goto out;
	if (!changes.kernel_name && changes.n_search_paths == 0) {
		status = options_usage(o.help, "nothing to set");
		goto out;
	}
	if (optind == argc) {
		status = options_usage(o.help, "a file is missing");
		goto out;
	}
	status = EXIT_OK;
	for (int i = optind; i < argc; i++) {
		struct kpackx_error why = {0};

		if (set_marker(argv[i], &changes, &why)) {
			report_why(argv[i], &why);
			status = EXIT_FAULT;
		}
	}
	status = report_finish(status);
out:
	kp_marker_fini(&changes);
	return status;
}
