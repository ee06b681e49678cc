/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>
#include "packer/command.h"
#include "packer/cli/report.h"
#include "packer/offload/packager.h"

const struct command_help cmd_offload_packager_help = {
	.name = "offload-packager",
	.operands = "OPTION... [FILE]",
	.summary = "pack and unpack offload binaries, as clang-offload-packager",
};

enum { IMAGE, OUTPUT, ARCHIVE, COMPRESS, LEVEL, VERSION, HELP, INPUT, N_OPTIONS };

static const struct llvm_option table[N_OPTIONS] = {
	[IMAGE] = {.name = "image",
		   .kind = LLVM_LIST,
		   .arg = "<key>=<value>,...",
		   .text = "List of key and value arguments. Required keywords are "
			   "'file' and 'triple'."},
	[OUTPUT] = {.name = "o",
		    .kind = LLVM_TEXT,
		    .arg = "file",
		    .text = "Write output to <file>."},
	[ARCHIVE] = {.name = "archive",
		     .text = "Write extracted files to a static archive"},
	[COMPRESS] = {.name = "compress",
		      .text = "Compress the output with zstd (format version 3)"},
	[LEVEL] = {.name = "compression-level",
		   .kind = LLVM_NUMBER,
		   .arg = "n",
		   .text = "Specify the compression level (1 to 22)"},
	[VERSION] = {.name = "format-version",
		     .kind = LLVM_UNSIGNED,
		     .arg = "n",
		     .text = "Version of the format to write: 1 (default), 2 or 3"},
	[HELP] = {.name = "h", .hidden = true, .text = "Alias for -help"},
	[INPUT] = {.name = "", .kind = LLVM_TEXT, .text = "Extract from <file>."},
};

/* Returns the heading of the options: LLVM's tools name themselves there. */
static const char *category(const char *name)
{
	if (strncmp(name, "clang-offload-packager", 22) == 0)
		return "clang-offload-packager options";
	if (strncmp(name, "llvm-offload-binary", 19) == 0)
		return "llvm-offload-binary options";
	return "kpack offload-packager options";
}

/* Returns the name that an option gives; an empty one counts as none. */
static const char *name_of(const struct llvm_option *o)
{
	return o->value && o->value[0] ? o->value : NULL;
}

static int take_form(const struct llvm_tool *tool, struct packager *p)
{
	const struct llvm_option *o = tool->options;
	bool compress = o[COMPRESS].flag;
	long long version = o[VERSION].seen ? o[VERSION].number : compress ? 3 : 1;
	long long level = o[LEVEL].number;

	if (version < 1 || version > 3)
		return llvm_error(tool, "format version %lld, known are 1 to 3", version);
	if (compress && version != 3)
		return llvm_error(tool, "format version %lld cannot be compressed",
				  version);
	if (o[LEVEL].seen && (level < 1 || level > 22))
		return llvm_error(tool, "compression level %lld, known are 1 to 22",
				  level);
	p->form.version = (unsigned)version;
	p->form.method = compress ? KP_OFFLOAD_ZSTD : KP_OFFLOAD_PLAIN;
	p->form.level = (int)level;
	p->hash = version == 1 ? LLVM_HASH_CITY : LLVM_HASH_XXH3;
	return 0;
}

int packager_fail(const struct packager *p, const char *file,
		  const struct kpackx_error *why)
{
	if (!file)
		return llvm_error(p->tool, "%s", why->text);
	return llvm_error(p->tool, "'%s': %s", file, why->text);
}

static int run_packager(const struct llvm_tool *tool)
{
	const struct llvm_option *o = tool->options;
	struct packager p = {
		.tool = tool,
		.input = name_of(&o[INPUT]),
		.output = name_of(&o[OUTPUT]),
		.images = o[IMAGE].values,
		.n_images = o[IMAGE].n_values,
		.archive = o[ARCHIVE].flag,
	};

	if (o[HELP].flag || (!p.input && !p.output)) {
		llvm_options_help(tool);
		return 0;
	}
	if (p.input && p.output)
		return llvm_error(tool, "Packaging to an output file and extracting from "
					"an input file are mutually exclusive.");
	if (take_form(tool, &p))
		return EXIT_FAULT;
	return p.output ? packager_pack(&p) : packager_extract(&p);
}

int cmd_offload_packager(int argc, char **argv)
{
	struct llvm_option options[N_OPTIONS];
	struct llvm_tool tool = {
		.name = llvm_tool_name(argv[0]),
		.overview = "A utility for bundling several object files into a single "
			    "binary.\n"
			    "The output binary can then be embedded into the host "
			    "section table\n"
			    "to create a fatbinary containing offloading code.",
		.options = options,
		.n_options = N_OPTIONS,
	};
	int status;

	memcpy(options, table, sizeof(options));
	tool.category = category(tool.name);
	status = llvm_options_read(&tool, argc, argv);
	if (status < 0)
		status = run_packager(&tool);
	llvm_options_fini(&tool);
	return report_finish(status);
}
