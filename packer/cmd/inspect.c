/* SPDX-License-Identifier: MIT */
/*
 * kpack inspect: explain or extract the device code in any file.  The file is opened and searched
 * once; a kpack archive, which has no foreign container, only gets a hint at the commands for it.
 *
 * kpack mark, about the markers of converted binaries: a command with commands of its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include "core/archive/archive.h"
#include "core/base/bounds.h"
#include "packer/command.h"
#include "packer/gpu/code_table.h"
#include "packer/inspect/inspect.h"
#include "packer/inspect/mark.h"

struct inspect {
	struct inspect_extract extract;
	bool json, kernels;
};

static const struct option_help inspect_options[] = {
	ARCH_FILTER_OPTIONS(struct inspect, extract.filter),
	{0, "extract", "DIR", "write every image as a file into DIR",
	 OPTION_PLACE(struct inspect, extract.dir)},
	OPTION_FORCE_FILES(struct inspect, extract.force),
	OPTION_SWITCH(0, "json", "print one JSON object", struct inspect, json),
	OPTION_SWITCH(0, "kernels", "list the kernels", struct inspect, kernels),
	{0},
};

const struct command_help cmd_inspect_help = {
	"inspect",
	"[--json] [--kernels] [--extract DIR [--arch LIST [--arch-exact]] [--force]] "
	"FILE",
	"print what device code a file holds",
	inspect_options,
	"FILE is anything with device code in it: a host binary or object, a static "
	"library, an\n"
	"offload bundle (text, plain or compressed), an offload binary, a CUDA fatbin, a "
	"code\n"
	"object, cubin, PTX, TileIR, LLVM bitcode or SPIR-V.",
};

/*
 * Print or extract what FILE has.  Faults of single containers were reported when it was opened,
 * and do not keep the others from being shown.
 */
static kpack_error_t explain_file(struct inspect *in, struct inspect_file *file,
				  struct kpackx_error *why)
{
	KP_AUTO(code_table) table = {0};
	struct kpack_archive *a = NULL;
	uint8_t magic[4] = {0};
	size_t entries;
	json_t *arches;
	int fd;

	if (!file->list.count && file->source.size >= sizeof(magic))
		KP_TRY(kp_source_read(&file->source, 0, magic, sizeof(magic), why));
	if (memcmp(magic, "KPAK", sizeof(magic)) != 0) {
		if (!file->device && !file->host.n_wrappers)
			return file->faults ? KPACK_SUCCESS /* which were reported */
					    : kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
						      "no device code in it");
		if (in->json)
			return inspect_json_print(file, why);
		if (!in->extract.dir)
			return inspect_text_print(file, in->kernels, why);
		KP_TRY(inspect_extract_run(&in->extract, file, why));
		if (in->extract.written)
			return KPACK_SUCCESS;
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       file->converted
				       ? "converted: its device code is in archives"
				       : "no image of it was written");
	}
	/* of a kpack archive what was opened is read, not what has its name by now */
	if (in->extract.dir)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "is a kpack archive: 'kpack extract' writes it");
	fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return kp_fail_errno(why, errno, "cannot open");
	KP_TRY(kp_archive_open_fd(fd, file->path, &a, why));
	entries = kp_archive_entry_count(a);
	if (in->json) {
		arches = json_array();
		for (size_t i = 0; i < kp_archive_arch_count(a); i++)
			json_array_append_new(arches,
					      report_json_text(kp_archive_arch(a, i)));
		report_json(json_pack("{so ss s[] s[] sb s[] sI so}", "file",
				      report_json_text(file->path), "format", "kpack",
				      "images", "wrappers", "converted", 0, "tree",
				      "entries", (json_int_t)entries, "arches", arches));
	} else {
		report_text(file->path);
		printf(": kpack archive, %zu entr%s\n", entries, plural_y(entries));
		code_table_add_archive(&table, a, 0, true);
		code_table_match(&table, NULL);
		code_table_print(&table, stdout, "objects", CODE_TABLE_SHORT, SIZE_MAX);
		puts("'kpack ls' lists them, 'kpack info' prints more");
	}
	kp_archive_close(a);
	return KPACK_SUCCESS;
}

/*
 * The status is a fault's also when everything was printed, but something in the file was
 * damaged.
 */
int cmd_inspect(int argc, char **argv)
{
	static struct inspect in;
	struct inspect_extract *x = &in.extract;
	int n = options_parse(&cmd_inspect_help, argc, &argv, &in), status;
	struct inspect_file file;
	struct kpackx_error why = {0};

	arch_filter_check(&x->filter, &cmd_inspect_help);
	options_check(
		&cmd_inspect_help,
		(const struct option_rule[]){
			{n != 1, "one FILE is needed"},
			{!x->dir && (x->filter.chosen.limited || x->force),
			 "--arch and --force are for --extract"},
			{x->dir && (in.json || in.kernels), "--extract prints nothing"},
			{0}});
	if (inspect_file_open(&file, argv[0], &why) || explain_file(&in, &file, &why)) {
		status = report_why(argv[0], &why);
	} else {
		if (file.faults > KP_FAULTS_MAX)
			report_error(argv[0], "and %zu fault%s more",
				     file.faults - KP_FAULTS_MAX,
				     plural(file.faults - KP_FAULTS_MAX));
		status = file.faults ? EXIT_FAULT : EXIT_OK;
	}
	inspect_file_close(&file);
	return report_finish(status);
}

/* --- kpack mark ---------------------------------------------------------------------- */

static const struct command mark_commands[] = {
	{mark_show, &mark_show_help},       {mark_convert, &mark_convert_help},
	{mark_set, &mark_set_help},         {mark_check, &mark_check_help},
	{mark_restore, &mark_restore_help}, {mark_strip_safe, &mark_strip_safe_help},
};

const struct command_help cmd_mark_help = {
	"mark",
	"COMMAND [OPTION]... FILE...",
	"convert binaries, and look after converted ones",
	NULL,
	"commands:\n"
	"  show        print what files carry: marker, wrappers, layout\n"
	"  convert     convert one fat binary: device code out, marker in\n"
	"  set         change the marker of converted binaries\n"
	"  check       check that converted binaries find their objects\n"
	"  restore     make converted binaries fat again\n"
	"  strip-safe  repair converted binaries after strip and its like\n"
	"\n"
	"'COMMAND --help' lists a command's options.",
};

/* Hand over to the command that argv[1] names, which gets its own name as argv[0]. */
int cmd_mark(int argc, char **argv)
{
	if (argc > 1 && argv[1][0] != '-') {
		struct kp_nearest nearest = {.word = argv[1]};
		const struct command *c = command_find(
			mark_commands, KP_COUNT(mark_commands), argv[1], &nearest);

		if (c)
			return c->run(argc - 1, argv + 1);
		if (!nearest.name)
			options_usage(&cmd_mark_help, "%s: unknown command", argv[1]);
		report_error("mark", "no command '%s'; did you mean '%s'?", argv[1],
			     nearest.name);
		return EXIT_USAGE;
	}
	/* --help is answered, and an option in place of a command is refused */
	options_parse(&cmd_mark_help, argc > 1 ? 2 : 1, &argv, NULL);
	options_usage(&cmd_mark_help, "a command is missing");
}
