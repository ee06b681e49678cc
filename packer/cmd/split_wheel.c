/* SPDX-License-Identifier: MIT */
/* kpack split-wheel: split Python wheels by architecture. */
#include <stdlib.h>
#include <string.h>
#include "packer/base/xalloc.h"
#include "packer/command.h"
#include "packer/cli/option_place.h"
#include "packer/cli/report.h"
#include "core/binary/search_path.h"
#include "core/base/text.h"
#include "packer/wheel/metadata/library_names.h"
#include "packer/wheel/split/metadata.h"
#include "packer/wheel/file/out.h"
#include "packer/wheel/split/split.h"

enum {
	OPT_OUTPUT,
	OPT_GROUP,
	OPT_OVERLAY_ROOT,
	OPT_DEVICE_PREFIX,
	OPT_FAMILY,
	OPT_DATABASES,
	OPT_REQUIRES,
	OPT_PREFER,
	OPT_VARIANTS,
	OPT_OUTPUT_FORMAT,
	OPT_FORCE,
	OPT_LEVEL,
	OPT_ZIP_LEVEL,
	OPT_JOBS,
	OPT_TMP_DIR,
	OPT_JSON,
	OPT_QUIET,
	OPT_INPUT,
	OPT_OUTPUT_DIR,
	OPT_GROUP_NAME,
	OPT_DEVICE_PACKAGE_PREFIX,
	OPT_DEVICE_REQUIRES_DIST,
	OPT_WHEEL_TYPE,
	OPT_COMPRESSION,
	OPT_COMPRESSION_LEVEL,
	OPT_GENERATE_VARIANT_WHEEL,
	OPT_VARIANT_LABEL,
	OPT_CLANG_OFFLOAD_BUNDLER,
	OPT_VERBOSE,
	OPT_COUNT,
};

static const struct option_help options[] = {
	[OPT_OUTPUT] = {'o', "output", "DIST", "directory that gets the wheels"},
	[OPT_GROUP] = {0, "group", "NAME",
		       "name of the archives (from the wheel's name)"},
	[OPT_OVERLAY_ROOT] = {0, "overlay-root", "DIR",
			      "directory in the wheel that gets the archives"},
	[OPT_DEVICE_PREFIX] = {0, "device-prefix", "NAME",
			       "distributions of device wheels (amd-DIST-device)"},
	[OPT_FAMILY] = {0, "family", "NAME=LIST", "one wheel for these targets"},
	[OPT_DATABASES] = {0, "databases", "WHAT",
			   "plain: as files; packed: into archives; or library names"},
	[OPT_REQUIRES] = {0, "requires", "REQUIREMENT",
			  "what device wheels require; @GFXARCH@ is the target"},
	[OPT_PREFER] = {0, "prefer", "WHEEL", "the wheel that wins where several differ"},
	[OPT_VARIANTS] = {0, "variants", NULL, "write wheel variants (PEP 825), too"},
	[OPT_OUTPUT_FORMAT] = {0, "output-format", "FORMAT", "wheel or directory"},
	[OPT_FORCE] = {0, "force", NULL, "replace existing wheels in DIST"},
	[OPT_LEVEL] = {0, "level", "N", "zstd level, 1 to 22 (3)"},
	[OPT_ZIP_LEVEL] = {0, "zip-level", "N", "deflate level, 0 to 9 (6)"},
	[OPT_JOBS] = {'j', "jobs", "N", "threads (all cores)"},
	[OPT_TMP_DIR] = {0, "tmp-dir", "DIR", "where wheels are unpacked (DIST)"},
	[OPT_JSON] = {0, "json", NULL, "report as JSON"},
	[OPT_QUIET] = {'q', "quiet", NULL, "no progress, no table"},
	[OPT_INPUT] = {0, "input", "WHEEL", "WHEEL"},
	[OPT_OUTPUT_DIR] = {0, "output-dir", "DIST", "--output"},
	[OPT_GROUP_NAME] = {0, "group-name", "NAME", "--group"},
	[OPT_DEVICE_PACKAGE_PREFIX] = {0, "device-package-prefix", "NAME",
				       "--device-prefix"},
	[OPT_DEVICE_REQUIRES_DIST] = {0, "device-requires-dist", "REQUIREMENT",
				      "--requires"},
	[OPT_WHEEL_TYPE] = {0, "wheel-type", "TYPE",
			    "torch-fat: --databases with torch's libraries"},
	[OPT_COMPRESSION] = {0, "compression", "HOW",
			     "compression of archives: zstd or none"},
	[OPT_COMPRESSION_LEVEL] = {0, "compression-level", "N", "--level"},
	[OPT_GENERATE_VARIANT_WHEEL] = {0, "generate-variant-wheel", NULL, "--variants"},
	[OPT_VARIANT_LABEL] = {0, "variant-label", "LABEL",
			       "accepted: labels are made from targets"},
	[OPT_CLANG_OFFLOAD_BUNDLER] = {0, "clang-offload-bundler", "PATH",
				       "accepted: it is not needed"},
	[OPT_VERBOSE] = {'v', "verbose", NULL, "accepted: every note is printed"},
	{0},
};

const struct command_help cmd_split_wheel_help = {
	"split-wheel",
	"[OPTION]... WHEEL... -o DIST",
	"take Python wheels apart by architecture",
	options,
	"WHEEL is a wheel, or one that is unpacked.  Several are builds of one version "
	"for\n"
	"different GPUs, and become one host wheel.\n",
};

/* The libraries that --wheel-type torch-fat means. */
#define TORCH_FAT "rocblas,hipblaslt,hipsparselt,aotriton,miopen"

struct parser {
	struct wheel_split_args *args;
	char **inputs;   /* room for all of the command line */
	char *libraries; /* of --databases NAME... */
	bool names_open; /* after --databases NAME: more names may follow */
};

/* --- single options ------------------------------------------------------------------ */

static int add_word(const char **list, size_t *n, const char *text)
{
	list[(*n)++] = text;
	return EXIT_OK;
}

/* Parse TEXT, which must be FIRST or SECOND; *IS_SECOND says which. */
static int set_choice(const char *option, const char *text, const char *first,
		      const char *second, bool *is_second)
{
	*is_second = strcmp(text, second) == 0;
	if (*is_second || strcmp(text, first) == 0)
		return EXIT_OK;
	return options_usage(&cmd_split_wheel_help, "--%s %s: not %s or %s", option, text,
			     first, second);
}

static int add_libraries(struct parser *p, const char *names)
{
	bool ok = library_names_add(&p->libraries, names);

	p->args->libraries = p->libraries;
	return ok ? EXIT_OK : EXIT_FAULT;
}

static int set_databases(struct parser *p, const char *text)
{
	if (strcmp(text, "plain") == 0 || strcmp(text, "packed") == 0) {
		p->args->databases = text[1] == 'l' ? DATABASES_PLAIN : DATABASES_PACKED;
		return EXIT_OK;
	}
	p->names_open = true;
	return add_libraries(p, text);
}

static int set_wheel_type(struct parser *p, const char *text)
{
	if (strcmp(text, "torch-fat") == 0)
		return add_libraries(p, TORCH_FAT);
	return options_usage(&cmd_split_wheel_help, "--wheel-type %s: not torch-fat",
			     text);
}

static int set_requires(struct parser *p, const char *text)
{
	struct wheel_split_args *args = p->args;

	if (!wheel_requirement_ok(text))
		return options_usage(&cmd_split_wheel_help,
				     "--requires '%s': not a requirement", text);
	return add_word(args->requires, &args->n_requires, text);
}

static int set_family(struct parser *p, const char *text)
{
	struct wheel_split_args *args = p->args;

	if (!strchr(text, '='))
		return options_usage(&cmd_split_wheel_help,
				     "--family %s: not NAME=ARCH,...", text);
	return add_word(args->families, &args->n_families, text);
}

static int set_format(struct parser *p, const char *text)
{
	return set_choice("output-format", text, "wheel", "directory",
			  &p->args->directory);
}

static int set_compression(struct parser *p, const char *text)
{
	bool none;
	int status = set_choice("compression", text, "zstd", "none", &none);

	p->args->scheme =
		none ? KPACK_COMPRESSION_NOOP : KPACK_COMPRESSION_ZSTD_PER_KERNEL;
	return status;
}

static int add_input(struct parser *p, const char *path)
{
	p->inputs[p->args->n_inputs++] = (char *)path;
	return EXIT_OK;
}

static const struct option_place places[] = {
	[OPT_OUTPUT] = OPTION_PLACE(struct wheel_split_args, output),
	[OPT_OUTPUT_DIR] = OPTION_PLACE(struct wheel_split_args, output),
	[OPT_GROUP] = OPTION_PLACE(struct wheel_split_args, group),
	[OPT_GROUP_NAME] = OPTION_PLACE(struct wheel_split_args, group),
	[OPT_OVERLAY_ROOT] = OPTION_PLACE(struct wheel_split_args, overlay),
	[OPT_DEVICE_PREFIX] = OPTION_PLACE(struct wheel_split_args, prefix),
	[OPT_DEVICE_PACKAGE_PREFIX] = OPTION_PLACE(struct wheel_split_args, prefix),
	[OPT_PREFER] = OPTION_PLACE(struct wheel_split_args, prefer),
	[OPT_TMP_DIR] = OPTION_PLACE(struct wheel_split_args, tmp_dir),
	[OPT_VARIANTS] = OPTION_PLACE(struct wheel_split_args, variants),
	[OPT_GENERATE_VARIANT_WHEEL] = OPTION_PLACE(struct wheel_split_args, variants),
	[OPT_FORCE] = OPTION_PLACE(struct wheel_split_args, force),
	[OPT_JSON] = OPTION_PLACE(struct wheel_split_args, json),
	[OPT_QUIET] = OPTION_PLACE(struct wheel_split_args, quiet),
	[OPT_LEVEL] = OPTION_LEVEL(struct wheel_split_args, level),
	[OPT_COMPRESSION_LEVEL] = OPTION_LEVEL(struct wheel_split_args, level),
	[OPT_ZIP_LEVEL] = OPTION_NUMBER(struct wheel_split_args, zip_level, 0, 9),
	[OPT_JOBS] = OPTION_JOBS(struct wheel_split_args, jobs),
	[OPT_COUNT] = {0},
};

static int (*const setters[])(struct parser *p, const char *text) = {
	[OPT_FAMILY] = set_family,
	[OPT_DATABASES] = set_databases,
	[OPT_WHEEL_TYPE] = set_wheel_type,
	[OPT_REQUIRES] = set_requires,
	[OPT_DEVICE_REQUIRES_DIST] = set_requires,
	[OPT_OUTPUT_FORMAT] = set_format,
	[OPT_COMPRESSION] = set_compression,
	[OPT_INPUT] = add_input,
	[OPT_COUNT] = NULL,
};

/* An option that is in neither table is accepted without effect. */
static int set_option(struct parser *p, int row, const char *arg)
{
	if (setters[row])
		return setters[row](p, arg);
	return option_put(&cmd_split_wheel_help, row, &places[row], p->args, arg);
}

/* --- all together -------------------------------------------------------------------- */

/* Take an operand.  Names of libraries may follow --databases as separate words. */
static int set_operand(struct parser *p, char *text)
{
	struct library_set set = {0};
	bool name = p->names_open && !library_set_open(text, NULL, &set, NULL);

	library_set_close(&set);
	if (name)
		return add_libraries(p, text);
	return add_input(p, text);
}

/* Check the families and libraries before work begins. */
static int check_lists(const struct wheel_split_args *args)
{
	struct families families = {0};
	struct library_set set = {0};
	struct kpackx_error why = {0};
	int status = EXIT_OK;

	for (size_t i = 0; !status && i < args->n_families; i++) {
		const char *text = args->families[i];
		struct kp_span name = {(const uint8_t *)text, strcspn(text, "=")};

		if (families_add(&families, name, text + name.size + 1, &why))
			status = options_usage(&cmd_split_wheel_help, "--family %s: %s",
					       text, why.text);
	}
	if (!status && library_set_open(args->libraries, NULL, &set, &why))
		status =
			options_usage(&cmd_split_wheel_help, "--databases: %s", why.text);
	families_fini(&families);
	library_set_close(&set);
	return status;
}

static bool names_file(const char *group)
{
	struct kp_span name = kp_span_str(group);

	return kp_component_ok(name) && kp_text_ok(name) && *group != '.' &&
	       !strstr(group, KP_SEARCH_ARCH);
}

static int check_names(const struct wheel_split_args *args)
{
	if (args->group && !names_file(args->group))
		return options_usage(&cmd_split_wheel_help,
				     "--group '%s' gives no file name", args->group);
	if (args->prefix && !dist_name_ok(args->prefix))
		return options_usage(&cmd_split_wheel_help,
				     "--device-prefix '%s': not a name of a distribution",
				     args->prefix);
	return EXIT_OK;
}

static bool is_input(const struct wheel_split_args *args, const char *path)
{
	for (size_t i = 0; i < args->n_inputs; i++)
		if (strcmp(args->inputs[i], path) == 0)
			return true;
	return false;
}

static int check_args(const struct wheel_split_args *args)
{
	if (args->n_inputs == 0 || !args->output)
		return options_usage(&cmd_split_wheel_help,
				     "WHEEL and -o DIST are needed");
	if (args->prefer && !is_input(args, args->prefer))
		return options_usage(&cmd_split_wheel_help,
				     "--prefer %s: not one of the wheels", args->prefer);
	return check_names(args);
}

static int parse_args(struct parser *p, int argc, char **argv)
{
	struct options o = {.help = &cmd_split_wheel_help, .argc = argc, .argv = argv};
	int row, status;

	while ((row = options_next(&o)) >= 0) {
		status = set_option(p, row, o.arg);
		if (status)
			return status;
	}
	if (row == OPTIONS_STOP)
		return o.status ? o.status : -1;
	for (int i = optind; i < argc; i++) {
		status = set_operand(p, argv[i]);
		if (status)
			return status;
	}
	status = check_args(p->args);
	return status ? status : check_lists(p->args);
}

int cmd_split_wheel(int argc, char **argv)
{
	size_t room = (size_t)argc + 1;
	struct wheel_split_args args = {
		.scheme = KPACK_COMPRESSION_ZSTD_PER_KERNEL,
		.level = 3,
		.zip_level = WHEEL_LEVEL_DEFAULT,
		.jobs = option_jobs(),
		.databases = DATABASES_PLAIN,
		.inputs = xcalloc(room, sizeof(char *)),
		.families = xcalloc(room, sizeof(char *)),
		.requires = xcalloc(room, sizeof(char *)),
	};
	struct parser p = {.args = &args, .inputs = args.inputs};
	int status = parse_args(&p, argc, argv);

	if (status == EXIT_OK)
		status = wheel_split_run(&args);
	free(args.inputs);
	free(args.families);
	free(args.requires);
	free(p.libraries);
	return report_finish(status < 0 ? EXIT_OK : status);
}
