/* SPDX-License-Identifier: MIT */
/*
 * The command line of clang-offload-bundler: its options, and which of them go together.
 */
#include <stdio.h>
#include <string.h>
#include "packer/command.h"
#include "packer/cli/report.h"
#include "packer/offload/bundler.h"

static const struct option_help no_options[] = {{0}};

const struct command_help cmd_offload_bundler_help = {
	"offload-bundler",
	"OPTION...",
	"bundle and unbundle offload code, as clang-offload-bundler",
	no_options,
	NULL,
};

enum {
	OPT_COMMANDS,
	OPT_MISSING,
	OPT_ALIGN,
	OPT_CHECK,
	OPT_COMPRESS,
	OPT_LEVEL,
	OPT_METHOD,
	OPT_DEBUG,
	OPT_VERSION,
	OPT_HIP_OPENMP,
	OPT_INPUT,
	OPT_INPUTS,
	OPT_LIST,
	OPT_OUTPUT,
	OPT_OUTPUTS,
	OPT_TARGETS,
	OPT_TYPE,
	OPT_UNBUNDLE,
	OPT_VERBOSE,
	N_OPTIONS
};

#define OPTION(name_, kind_, arg_, text_)                                                \
	{                                                                                \
		.name = (name_), .kind = (kind_), .arg = (arg_), .text = (text_)         \
	}

static const struct llvm_option options[N_OPTIONS] = {
	[OPT_COMMANDS] =
		OPTION("###", LLVM_FLAG, NULL,
		       "Print any external commands that are to be executed instead "
		       "of actually executing them - for testing purposes."),
	[OPT_MISSING] =
		OPTION("allow-missing-bundles", LLVM_FLAG, NULL,
		       "Create empty files if bundles are missing when unbundling."),
	[OPT_ALIGN] = {.name = "bundle-align",
		       .kind = LLVM_UNSIGNED,
		       .text = "Alignment of bundle for binary files",
		       .number = 1},
	[OPT_CHECK] = OPTION("check-input-archive", LLVM_FLAG, NULL,
			     "Check if input heterogeneous archive is valid in terms of "
			     "TargetID rules."),
	[OPT_COMPRESS] = OPTION("compress", LLVM_FLAG, NULL,
				"Compress output file when bundling."),
	[OPT_LEVEL] = OPTION("compression-level", LLVM_NUMBER, "n",
			     "Specify the compression level (integer)"),
	[OPT_METHOD] = {.name = "compression-method",
			.kind = LLVM_TEXT,
			.arg = "string",
			.text = "Compress with zstd (default) or zlib",
			.hidden = true},
	[OPT_DEBUG] =
		{.name = "debug-only",
		 .kind = LLVM_COMMAS,
		 .arg = "string",
		 .text = "Print what was compared with what: CodeObjectCompatibility",
		 .hidden = true},
	[OPT_VERSION] = {.name = "format-version",
			 .kind = LLVM_UNSIGNED,
			 .text = "Version of compressed bundles: 1, 2 or 3 (default)",
			 .hidden = true},
	[OPT_HIP_OPENMP] = OPTION("hip-openmp-compatible", LLVM_FLAG, NULL,
				  "Treat hip and hipv4 offload kinds as compatible with "
				  "openmp kind, and vice versa."),
	[OPT_INPUT] =
		OPTION("input", LLVM_LIST, "string",
		       "Input file. Can be specified multiple times for multiple input "
		       "files."),
	[OPT_INPUTS] = OPTION("inputs", LLVM_COMMAS, "string",
			      "[<input file>,...] (deprecated)"),
	[OPT_LIST] =
		OPTION("list", LLVM_FLAG, NULL, "List bundle IDs in the bundled file."),
	[OPT_OUTPUT] = OPTION("output", LLVM_LIST, "string",
			      "Output file. Can be specified multiple times for multiple "
			      "output files."),
	[OPT_OUTPUTS] = OPTION("outputs", LLVM_COMMAS, "string",
			       "[<output file>,...] (deprecated)"),
	[OPT_TARGETS] = OPTION("targets", LLVM_COMMAS, "string",
			       "[<offload kind>-<target triple>,...]"),
	[OPT_TYPE] = {.name = "type",
		      .kind = LLVM_TEXT,
		      .arg = "string",
		      .text = "Type of the files to be bundled/unbundled.\n"
			      "Current supported types are:\n"
			      "  i    - cpp-output\n"
			      "  ii   - c++-cpp-output\n"
			      "  cui  - cuda-cpp-output\n"
			      "  hipi - hip-cpp-output\n"
			      "  d    - dependency\n"
			      "  ll   - llvm\n"
			      "  bc   - llvm-bc\n"
			      "  s    - assembler\n"
			      "  o    - object\n"
			      "  a    - archive of objects\n"
			      "  gch  - precompiled-header\n"
			      "  ast  - clang AST file",
		      .required = true},
	[OPT_UNBUNDLE] = OPTION("unbundle", LLVM_FLAG, NULL,
				"Unbundle bundled file into several output files."),
	[OPT_VERBOSE] = OPTION("verbose", LLVM_FLAG, NULL, "Print debug information."),
};

static const char overview[] =
	"A tool to bundle several input files of the specified type <type> \n"
	"referring to the same source file but different targets into a single \n"
	"one. The resulting file can also be unbundled into different files by \n"
	"this tool if -unbundle is provided.";

/* ---- messages ---- */

int bundler_fail(const struct bundler *b, const struct kpackx_error *why)
{
	return llvm_error(b->tool, "%s",
			  why->text[0] ? why->text : kpackx_error_name(why->code));
}

int bundler_fail_file(const struct bundler *b, const char *file,
		      const struct kpackx_error *why)
{
	return llvm_error(b->tool, "'%s': %s", file,
			  why->text[0] ? why->text : kpackx_error_name(why->code));
}

int bundler_fail_parts(const struct bundler *b, const char *what, const char *name,
		       const struct kp_source *src, const struct kpackx_error *why)
{
	uint8_t head[4];

	if (src->size >= 4 && !kp_source_read(src, 0, head, 4, NULL) &&
	    memcmp(head, "CCOB", 4) == 0)
		return llvm_error(b->tool, "Failed to decompress %s: %s: '%s'", what,
				  why->text, name);
	return bundler_fail_file(b, name, why);
}

/* ---- from options to the job ---- */

/*
 * Take the files of -input or of the deprecated -inputs, not of both; likewise for
 * outputs.
 */
static int take_files(const struct bundler *b, const struct llvm_option *one,
		      const struct llvm_option *many, const char *const **files,
		      size_t *n)
{
	if (one->seen && many->seen)
		return llvm_error(b->tool,
				  "-%s and -%s cannot be used together, use only -%s "
				  "instead",
				  many->name, one->name, one->name);
	if (many->n_values)
		llvm_warning(b->tool, "-%s is deprecated, use -%s instead", many->name,
			     one->name);
	*files = many->n_values ? many->values : one->values;
	*n = many->n_values ? many->n_values : one->n_values;
	return 0;
}

static void take_flags(struct bundler *b, const struct llvm_option *o)
{
	b->type = o[OPT_TYPE].value;
	b->align = (unsigned)o[OPT_ALIGN].number;
	b->unbundle = o[OPT_UNBUNDLE].flag;
	b->list = o[OPT_LIST].flag;
	b->allow_missing = o[OPT_MISSING].flag;
	b->check_archive = o[OPT_CHECK].flag;
	b->hip_openmp = o[OPT_HIP_OPENMP].flag;
	b->print_commands = o[OPT_COMMANDS].flag;
	for (size_t i = 0; i < o[OPT_DEBUG].n_values; i++)
		b->debug = b->debug ||
			   strcmp(o[OPT_DEBUG].values[i], "CodeObjectCompatibility") == 0;
}

/* The levels are LLVM's defaults for each method. */
static const struct method {
	const char *name;
	struct kp_ccob_form form;
} methods[] = {
	{"zstd", {.version = 3, .method = KP_CCOB_ZSTD, .level = 3, .long_range = true}},
	{"zlib", {.version = 3, .method = KP_CCOB_ZLIB, .level = 6}},
};

static int take_method(struct bundler *b, const struct llvm_option *o)
{
	const char *name = o->seen ? o->value : methods[0].name;

	for (size_t i = 0; i < KP_COUNT(methods); i++) {
		if (strcmp(methods[i].name, name) != 0)
			continue;
		b->form = methods[i].form;
		return 0;
	}
	return llvm_error(b->tool, "compression method '%s', known are zstd and zlib",
			  name);
}

static int check_form(const struct bundler *b)
{
	const struct kp_ccob_form *f = &b->form;

	if (!kp_ccob_header_size(f->version))
		return llvm_error(b->tool, "format version %u, known are 1 to 3",
				  f->version);
	/* zstd takes any level */
	if (f->method == KP_CCOB_ZLIB && !kp_ccob_form_ok(f))
		return llvm_error(b->tool, "compression level %d, zlib has 1 to 9",
				  f->level);
	return 0;
}

/* Options override the environment. */
static int take_settings(struct bundler *b, const struct llvm_option *o)
{
	int status = take_method(b, &o[OPT_METHOD]);

	take_flags(b, o);
	bundler_environment(b);
	if (o[OPT_COMPRESS].seen)
		b->compress = o[OPT_COMPRESS].flag;
	if (o[OPT_VERBOSE].seen)
		b->verbose = o[OPT_VERBOSE].flag;
	if (o[OPT_LEVEL].seen)
		b->form.level = (int)o[OPT_LEVEL].number;
	if (o[OPT_VERSION].seen)
		b->form.version = (unsigned)o[OPT_VERSION].number;
	return status ? status : check_form(b);
}

/* ---- checks, in the order of clang's tool ---- */

static int check_list(const struct bundler *b, const struct llvm_option *o)
{
	const char *fault = NULL;

	if (b->unbundle)
		fault = "-unbundle and -list cannot be used together";
	else if (b->n_inputs != 1)
		fault = "only one input file supported for -list";
	else if (b->n_outputs)
		fault = "-outputs option is invalid for -list";
	else if (o[OPT_TARGETS].n_values)
		fault = "-targets option is invalid for -list";
	return fault ? llvm_error(b->tool, "%s", fault) : 0;
}

static const char *unbundle_fault(const struct bundler *b, size_t n_targets)
{
	if (b->n_inputs != 1)
		return "only one input file supported in unbundling mode";
	if (b->n_outputs != n_targets)
		return "number of output files and targets should match in unbundling "
		       "mode";
	return NULL;
}

static const char *bundle_fault(const struct bundler *b, size_t n_targets)
{
	if (strcmp(b->type, "a") == 0)
		return "Archive files are only supported for unbundling";
	if (b->n_outputs != 1)
		return "only one output file supported in bundling mode";
	if (b->n_inputs != n_targets)
		return "number of input files and targets should match in bundling mode";
	return NULL;
}

static const char *archive_fault(const struct bundler *b)
{
	if (b->check_archive && !b->unbundle)
		return "-check-input-archive cannot be used while bundling";
	if (b->check_archive && strcmp(b->type, "a") != 0)
		return "-check-input-archive can only be used for unbundling archives "
		       "(-type=a)";
	return NULL;
}

static int check_files(const struct bundler *b, const struct llvm_option *o)
{
	size_t n_targets = o[OPT_TARGETS].n_values;
	const char *fault = archive_fault(b);

	if (!fault && b->n_outputs == 0)
		fault = "no output file specified!";
	if (!fault && o[OPT_TARGETS].seen == 0)
		fault = "for the --targets option: must be specified at least once!";
	if (!fault)
		fault = b->unbundle ? unbundle_fault(b, n_targets)
				    : bundle_fault(b, n_targets);
	return fault ? llvm_error(b->tool, "%s", fault) : 0;
}

/* ---- */

static int run_bundler(struct bundler *b, const struct llvm_option *o)
{
	int status;

	if (b->list) {
		status = check_list(b, o);
		return status ? status : bundler_list(b);
	}
	status = check_files(b, o);
	if (!status)
		status = bundler_targets_read(b, o[OPT_TARGETS].values,
					      o[OPT_TARGETS].n_values);
	if (!status && !b->unbundle)
		status = bundler_bundle(b);
	else if (!status)
		status = strcmp(b->type, "a") == 0 ? bundler_unbundle_archive(b)
						   : bundler_unbundle(b);
	bundler_targets_free(b);
	return status;
}

static int run_tool(const struct llvm_tool *tool, const char *program)
{
	const struct llvm_option *o = tool->options;
	struct bundler b = {.tool = tool, .program = program};
	int status = take_settings(&b, o);

	if (!status)
		status = take_files(&b, &o[OPT_INPUT], &o[OPT_INPUTS], &b.inputs,
				    &b.n_inputs);
	if (!status)
		status = take_files(&b, &o[OPT_OUTPUT], &o[OPT_OUTPUTS], &b.outputs,
				    &b.n_outputs);
	return status ? status : run_bundler(&b, o);
}

int cmd_offload_bundler(int argc, char **argv)
{
	struct llvm_option table[N_OPTIONS];
	struct llvm_tool tool = {.name = llvm_tool_name(argv[0]),
				 .overview = overview,
				 .category = "clang-offload-bundler options",
				 .options = table,
				 .n_options = N_OPTIONS};
	int status;

	memcpy(table, options, sizeof(table));
	report_set_program(tool.name);
	status = llvm_options_read(&tool, argc, argv);
	if (status < 0)
		status = run_tool(&tool, argv[0]);
	llvm_options_fini(&tool);
	return report_finish(status);
}
