/* SPDX-License-Identifier: MIT */
/*
 * kpack inspect: explain or extract the device code in any file.  The file is opened and searched
 * once; a kpack archive, which has no foreign container, only gets a hint at the commands for it.
 */
#include <errno.h>
#include <fcntl.h>
#include "core/archive/archive.h"
#include "packer/command.h"
#include "packer/inspect/inspect.h"
#include "core/base/bounds.h"
#include "packer/cli/report.h"

struct inspect {
	const char *path;
	struct inspect_extract extract;
	bool json, kernels;
};

static const struct option_help options[] = {
	ARCH_FILTER_OPTIONS(struct inspect, extract.filter),
	{0, "extract", "DIR", "write every image as a file into DIR",
	 OPTION_PLACE(struct inspect, extract.dir)},
	OPTION_FORCE_FILES(struct inspect, extract.force),
	{0, "json", NULL, "print one JSON object", OPTION_PLACE(struct inspect, json)},
	{0, "kernels", NULL, "list kernels even where there are many",
	 OPTION_PLACE(struct inspect, kernels)},
	{0},
};

const struct command_help cmd_inspect_help = {
	"inspect",
	"[--json] [--kernels] [--extract DIR [--arch LIST [--arch-exact]] [--force]] "
	"FILE",
	"print what device code a file holds",
	options,
	"FILE is anything with device code in it: a host binary or object, a static "
	"library, an\n"
	"offload bundle (text, plain or compressed), an offload binary, a CUDA fatbin, a "
	"code\n"
	"object, cubin, PTX, TileIR, LLVM bitcode or SPIR-V.",
};

/* --- kpack's own archives --------------------------------------------------------- */

static int inspect_archive(const struct inspect *in, const struct inspect_file *file)
{
	struct kpackx_error why = {0};
	struct kpack_archive *a = NULL;
	json_t *arches;
	size_t entries;
	int fd;

	if (in->extract.dir) {
		report_error(in->path, "is a kpack archive: 'kpack extract' writes it");
		return EXIT_FAULT;
	}
	/* what was looked at, not what has its name by now */
	fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		kp_fail_errno(&why, errno, "cannot open");
	if (fd < 0 || kp_archive_open_fd(fd, in->path, &a, &why)) {
		report_why(in->path, &why);
		return EXIT_FAULT;
	}
	entries = kp_archive_entry_count(a);
	arches = json_array();
	for (size_t i = 0; i < kp_archive_arch_count(a); i++)
		json_array_append_new(arches, report_json_text(kp_archive_arch(a, i)));
	if (in->json) {
		report_json(json_pack("{so ss s[] s[] sb s[] sI sO}", "file",
				      report_json_text(in->path), "format", "kpack",
				      "images", "wrappers", "converted", 0, "tree",
				      "entries", (json_int_t)entries, "arches", arches));
	} else {
		report_text(in->path);
		printf(": kpack archive, %zu entr%s for", entries,
		       entries == 1 ? "y" : "ies");
		for (size_t i = 0; i < json_array_size(arches); i++) {
			fputs(i ? ", " : " ", stdout);
			report_text(kp_archive_arch(a, i));
		}
		puts("\n'kpack ls' lists them, 'kpack info' prints more");
	}
	json_decref(arches);
	kp_archive_close(a);
	return EXIT_OK;
}

static kpack_error_t find_archive(const struct inspect_file *file, bool *found,
				  struct kpackx_error *why)
{
	uint8_t magic[4];

	*found = false;
	if (file->list.count || file->source.size < sizeof(magic))
		return KPACK_SUCCESS;
	KP_TRY(kp_source_read(&file->source, 0, magic, sizeof(magic), why));
	*found = memcmp(magic, "KPAK", sizeof(magic)) == 0;
	return KPACK_SUCCESS;
}

/* --- the command ------------------------------------------------------------------ */

static kpack_error_t explain_file(struct inspect *in, struct inspect_file *file,
				  struct kpackx_error *why)
{
	if (in->json)
		return inspect_json_print(file, why);
	if (!in->extract.dir)
		return inspect_text_print(file, in->kernels, why);
	KP_TRY(inspect_extract_run(&in->extract, file, why));
	if (in->extract.written == 0)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       file->converted
				       ? "converted: its device code is in archives"
				       : "no image of it was written");
	return KPACK_SUCCESS;
}

static int inspect_opened(struct inspect *in, struct inspect_file *file)
{
	struct kpackx_error why = {0};

	if (!file->device && !file->elf.n_wrappers) {
		if (!file->faults)
			report_error(in->path, "no device code in it");
		return EXIT_FAULT;
	}
	if (explain_file(in, file, &why)) {
		report_why(in->path, &why);
		return EXIT_FAULT;
	}
	if (file->faults > KP_FAULTS_MAX)
		report_error(in->path, "and %zu faults more",
			     file->faults - KP_FAULTS_MAX);
	return file->faults ? EXIT_FAULT : EXIT_OK;
}

static int inspect_path(struct inspect *in)
{
	struct inspect_file file;
	struct kpackx_error why = {0};
	bool archive;
	int status;

	if (inspect_file_open(&file, in->path, &why) ||
	    find_archive(&file, &archive, &why)) {
		report_why(in->path, &why);
		status = EXIT_FAULT;
	} else if (archive) {
		status = inspect_archive(in, &file);
	} else {
		status = inspect_opened(in, &file);
	}
	inspect_file_close(&file);
	return status;
}

/* Returns an exit status, or -1 to go on. */
static int read_options(struct inspect *in, struct options *o)
{
	struct inspect_extract *x = &in->extract;
	int status = arch_filter_read(o, in, &x->filter);

	if (status >= 0)
		return status;
	if (o->argc - optind != 1)
		return options_usage(o->help, "one FILE is needed");
	if (!x->dir && (x->filter.chosen.limited || x->force))
		return options_usage(o->help, "--arch and --force are for --extract");
	if (x->dir && (in->json || in->kernels))
		return options_usage(o->help, "--extract prints nothing");
	return -1;
}

int cmd_inspect(int argc, char **argv)
{
	struct options o = {.help = &cmd_inspect_help, .argc = argc, .argv = argv};
	struct inspect in = {0};
	int status = read_options(&in, &o);

	if (status < 0) {
		in.path = argv[optind];
		status = report_finish(inspect_path(&in));
	}
	arch_filter_fini(&in.extract.filter);
	return status;
}
