/* SPDX-License-Identifier: MIT */
/*
 * kpack mark strip-safe: in converted programs whose program headers another tool moved,
 * move them back to where every kernel finds them.
 */
#include "mark.h"
#include "packer/cli/report.h"
#include "packer/binary/rewrite.h"

const struct command_help mark_strip_safe_help = {
	"mark strip-safe",
	"FILE...",
	"repair converted programs after strip and its like",
	NULL,
	"Linux before 5.18 does not start a program whose program headers were moved.",
};

static kpack_error_t normalise_file(struct binary *b, bool *changed,
				    struct kpackx_error *why)
{
	struct rewrite r;
	kpack_error_t err;

	KP_TRY(rewrite_open(&r, b, b->path, why));
	err = kp_convert_normalise(b->fd, b->size, &b->fat, &r.out, changed, why);
	if (!err && *changed)
		err = rewrite_publish(&r, why);
	rewrite_close(&r);
	return err;
}

static bool repair_file(const char *path)
{
	struct kpackx_error why = {0};
	struct binary b;
	bool changed = false;
	kpack_error_t err = binary_open(path, &b, &why);

	if (!err)
		err = normalise_file(&b, &changed, &why);
	binary_close(&b);
	if (err) {
		report_why(path, &why);
		return false;
	}
	report_text(path);
	printf(": %s\n", changed ? "repaired" : "ok");
	return true;
}

int mark_strip_safe(int argc, char **argv)
{
	struct options o = {.help = &mark_strip_safe_help, .argc = argc, .argv = argv};
	int status = options_read(&o, NULL);

	if (status >= 0)
		return status;
	if (optind == argc)
		return options_usage(o.help, "a file is missing");
	status = EXIT_OK;
	for (int i = optind; i < argc; i++)
		if (!repair_file(argv[i]))
			status = EXIT_FAULT;
	return report_finish(status);
}
