/* SPDX-License-Identifier: MIT */
/*
 * kpack inspect: explain or extract the device code in any file.  The file is opened and searched
 * once; a kpack archive, which has no foreign container, only gets a hint at the commands for it.
 *
 * kpack mark, about the markers of converted binaries: a command with commands of its own.
 */
#include <string.h>
#include "core/base/bounds.h"
#include "packer/command.h"
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
	OPTION_SWITCH(0, "kernels", "list kernels even where there are many",
		      struct inspect, kernels),
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
 * Faults of single containers are reported when the file is opened, and do not keep the others
 * from being shown; but then the status is a fault's, also when everything was printed.
 */
int cmd_inspect(int argc, char **argv)
{
	struct inspect in = {0};
	struct inspect_extract *x = &in.extract;
	int n = options_parse(&cmd_inspect_help, argc, &argv, &in), status = EXIT_FAULT;
	struct inspect_file file;
	struct kpackx_error why = {0};
	uint8_t magic[4] = {0};
	kpack_error_t err;

	arch_filter_check(&x->filter, &cmd_inspect_help);
	options_check(
		&cmd_inspect_help,
		(const struct option_rule[]){
			{n != 1, "one FILE is needed"},
			{!x->dir && (x->filter.chosen.limited || x->force),
			 "--arch and --force are for --extract"},
			{x->dir && (in.json || in.kernels), "--extract prints nothing"},
			{0}});
	/* an archive has no foreign container: only a file without any is asked for its first bytes */
	err = inspect_file_open(&file, argv[0], &why);
	if (!err && !file.list.count && file.source.size >= sizeof(magic))
		err = kp_source_read(&file.source, 0, magic, sizeof(magic), &why);
	if (err) {
		report_why(argv[0], &why);
	} else if (memcmp(magic, "KPAK", sizeof(magic)) == 0) {
		status = EXIT_OK;
		if (x->dir)
			status = report_error(
				argv[0], "is a kpack archive: 'kpack extract' writes it");
		else if (in.json)
			report_json(json_pack("{so ss s[] s[] sb s[]}", "file",
					      report_json_text(argv[0]), "format",
					      "kpack", "images", "wrappers", "converted",
					      0, "tree"));
		else
			report_line(argv[0], "kpack archive: 'kpack ls' lists its "
					     "entries, 'kpack info' prints more");
	} else if (!file.device && !file.elf.n_wrappers) {
		if (!file.faults) /* which were reported */
			report_error(argv[0], "no device code in it");
	} else {
		err = in.json  ? inspect_json_print(&file, &why)
		      : x->dir ? inspect_extract_run(x, &file, &why)
			       : inspect_text_print(&file, in.kernels, &why);
		status = file.faults ? EXIT_FAULT : EXIT_OK;
		if (err)
			status = report_why(argv[0], &why);
		else if (x->dir && x->written == 0)
			status = report_error(
				argv[0],
				file.converted
					? "converted: its device code is in archives"
					: "no image of it was written");
	}
	if (!err && file.faults > KP_FAULTS_MAX)
		report_error(argv[0], "and %zu faults more", file.faults - KP_FAULTS_MAX);
	inspect_file_close(&file);
	arch_filter_fini(&x->filter);
	return report_finish(status);
}

/* --- kpack mark ---------------------------------------------------------------------- */

static const struct subcommand {
	command_run *run;
	const struct command_help *help;
} mark_commands[] = {
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
	"  restore     make a converted binary fat again\n"
	"  strip-safe  repair converted binaries after strip and its like\n"
	"\n"
	"'COMMAND --help' lists a command's options.",
};

/* Hand over to the command that argv[1] names, which gets its own name as argv[0]. */
int cmd_mark(int argc, char **argv)
{
	if (argc > 1 && argv[1][0] != '-') {
		struct nearest nearest = {.word = argv[1]};

		for (size_t i = 0; i < KP_COUNT(mark_commands); i++) {
			const char *name = strrchr(mark_commands[i].help->name, ' ') + 1;

			if (strcmp(name, argv[1]) == 0)
				return mark_commands[i].run(argc - 1, argv + 1);
			nearest_try(&nearest, name);
		}
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
