/* SPDX-License-Identifier: MIT */
/*
 * kpack bulk-unbundle: write the device code of fat binaries, as AMD's bulk_unbundle does, with
 * its names of files and directories and what it prints.
 */
#include <stdlib.h>
#include <string.h>
#include "core/base/path.h"
#include "packer/cli/xalloc.h"
#include "packer/cli/report.h"
#include "packer/command.h"
#include "packer/inspect/inspect.h"

struct bulk_unbundle {
	const char *dir, *arch;
};

static const struct option_help options[] = {
	{'o', "output-dir", "DIR", "where the files of the only FILE go",
	 OPTION_PLACE(struct bulk_unbundle, dir)},
	{0, "gfx-arch", "ARCH", "only code for this processor, with any features",
	 OPTION_PLACE(struct bulk_unbundle, arch)},
	{0},
};

const struct command_help cmd_bulk_unbundle_help = {
	"bulk-unbundle",
	"[-o DIR] [--gfx-arch ARCH] FILE...",
	"write the device code in bundles, as AMD's bulk_unbundle",
	options,
	"FILE is a fat binary or an offload bundle.  Without -o its files go into a "
	"directory\n"
	"called like FILE, with .unbundled in place of its last suffix.",
};

static int unbundle_file(const char *path, const struct bulk_unbundle *u)
{
	const char *name = kp_path_name(path), *dot = strrchr(name, '.');
	size_t n = dot && dot > name && dot[1] ? (size_t)(dot - path) : strlen(path);
	char *dir = u->dir ? xstrdup(u->dir) : xasprintf("%.*s.unbundled", (int)n, path);
	struct inspect_extract x = {.dir = dir, .force = true};
	struct unbundle_names names = {0};
	struct kpackx_error why = {0};
	struct inspect_file file;
	kpack_error_t err = inspect_file_open(&file, path, &why);

	if (!err)
		err = unbundle_names_make(&file, u->arch, &names, &why);
	x.names = names.items;
	if (!err)
		err = inspect_extract_run(&x, &file, &why);
	if (!err && x.written < names.count)
		err = kp_fail(&why, KPACK_ERROR_IO_ERROR,
			      "only %zu of %zu code objects were written", x.written,
			      names.count);
	if (err) {
		report_why(path, &why);
	} else {
		fputs("Unbundled ", stdout);
		report_text(dir);
		for (size_t i = 0; i < names.count; i++) {
			fputs(i ? ", " : ": ", stdout);
			report_text(names.items[names.images[i]]);
		}
		putchar('\n');
	}
	err = err || file.faults;
	unbundle_names_fini(&names, file.list.n_images);
	inspect_file_close(&file);
	free(dir);
	return err ? EXIT_FAULT : EXIT_OK;
}

int cmd_bulk_unbundle(int argc, char **argv)
{
	struct options o = {.help = &cmd_bulk_unbundle_help, .argc = argc, .argv = argv};
	struct bulk_unbundle u = {0};
	int status = options_read(&o, &u);

	if (status >= 0)
		return status;
	if (optind == argc)
		return options_usage(o.help, "FILE is missing");
	if (u.dir && argc - optind > 1)
		return options_usage(o.help, "--output-dir is for a single FILE");
	if (u.arch && strchr(u.arch, ':'))
		return options_usage(o.help,
				     "--gfx-arch takes a processor without features");
	status = EXIT_OK;
	for (int i = optind; i < argc && !status; i++)
		status = unbundle_file(argv[i], &u);
	return report_finish(status);
}
