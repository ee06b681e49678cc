/* SPDX-License-Identifier: MIT */
#include "args.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include "packer/base/xalloc.h"
#include "packer/command.h"
#include "core/base/bounds.h"
#include "packer/cli/option_place.h"
#include "packer/files/below.h"
#include "packer/cli/report.h"
#include "core/base/text.h"
#include "packer/pack/tree/write.h"
#include "core/archive/naming.h"

enum {
	OPT_ARCHIVES_ONLY,
	OPT_IN_PLACE,
	OPT_KEEP_DEVICE_CODE,
	OPT_GROUP,
	OPT_KEY_PREFIX,
	OPT_ARCH,
	OPT_FAMILY,
	OPT_SCHEME,
	OPT_LEVEL,
	OPT_CHUNK,
	OPT_VOLUME_SIZE,
	OPT_DATABASES,
	OPT_LIBRARIES,
	OPT_LIBRARY_RULES,
	OPT_SPLIT_ROCFFT,
	OPT_ROWS,
	OPT_CHECK,
	OPT_PREFER,
	OPT_SHARD,
	OPT_JOBS,
	OPT_FORCE,
	OPT_JSON,
	OPT_QUIET,
	OPT_INPUT,
	OPT_OUTPUT,
	OPT_GROUP_NAME,
	OPT_GFX_ARCH_FAMILY,
	OPT_GFX_ARCHES,
	OPT_COUNT,
};

static const struct option_help options[] = {
	[OPT_ARCHIVES_ONLY] = {0, "archives-only", NULL,
			       "write archives, leave the binaries alone"},
	[OPT_IN_PLACE] = {0, "in-place", NULL, "convert the binaries of TREE itself"},
	[OPT_KEEP_DEVICE_CODE] = {0, "keep-device-code", NULL,
				  "converted binaries keep their device code, unused"},
	[OPT_GROUP] = {0, "group", "NAME", "name of the archives (from INPUT's name)"},
	[OPT_KEY_PREFIX] = {0, "key-prefix", "PATH", "put PATH/ before every key"},
	[OPT_ARCH] = {0, "arch", "LIST", "only these targets, separated by commas"},
	[OPT_FAMILY] = {0, "family", "NAME=ARCH,...",
			"these targets share one archive; may be repeated"},
	[OPT_SCHEME] = {0, "scheme", "SCHEME", "zstd-per-kernel (default) or none"},
	[OPT_LEVEL] = {0, "level", "N", "zstd level, 1 to 22 (3)"},
	[OPT_CHUNK] = {0, "chunk", "BYTES",
		       "cut larger objects into chunks that decode alone"},
	[OPT_VOLUME_SIZE] = {0, "volume-size", "BYTES",
			     "begin another volume before a blob passes this (4G)"},
	[OPT_DATABASES] = {0, "databases", "WHAT",
			   "kernel databases: packed (default), plain or both"},
	[OPT_LIBRARIES] = {0, "libraries", "LIST",
			   "the libraries to look for, in that order; or none"},
	[OPT_LIBRARY_RULES] = {0, "library-rules", "FILE",
			       "more libraries, which FILE describes"},
	[OPT_SPLIT_ROCFFT] = {0, "split-rocfft", NULL,
			      "rocFFT's one database becomes one per target"},
	[OPT_ROWS] = {0, "rows", NULL,
		      "also an entry for each kernel of rocFFT's databases"},
	[OPT_CHECK] = {0, "check", NULL, "first look for files that databases miss"},
	[OPT_PREFER] = {0, "prefer", "SIDE",
			"which side wins where a path differs: input or output"},
	[OPT_SHARD] = {0, "shard", "I/N",
		       "do the I-th of N parts of the work; kpack merge joins them"},
	[OPT_JOBS] = {0, "jobs", "N", "threads (all cores)"},
	[OPT_FORCE] = {0, "force", NULL, "replace existing archives, do not add to them"},
	[OPT_JSON] = {0, "json", NULL, "report as JSON"},
	[OPT_QUIET] = {'q', "quiet", NULL, "no progress, no table"},
	[OPT_INPUT] = {0, "input", "PATH", "INPUT"},
	[OPT_OUTPUT] = {0, "output", "DIR", "OUTPUT"},
	[OPT_GROUP_NAME] = {0, "group-name", "NAME", "--group"},
	[OPT_GFX_ARCH_FAMILY] = {0, "gfx-arch-family", "NAME",
				 "with --gfx-arches: --family NAME=LIST --arch LIST"},
	[OPT_GFX_ARCHES] = {0, "gfx-arches", "LIST", "see --gfx-arch-family"},
	{0},
};

const struct command_help cmd_pack_help = {
	"pack",
	"[OPTION]... INPUT OUTPUT | --in-place [OPTION]... TREE",
	"move the device code of a binary or a tree into archives",
	options,
	"INPUT is a file or a tree.  OUTPUT becomes a copy of it whose binaries find "
	"their\n"
	"device code in OUTPUT/.kpack.\n",
};

/* Options that are combined after all were read. */
struct parser {
	struct pack_args args;
	const char *family, *arches; /* --gfx-arch-family, --gfx-arches */
	const char *libraries, *rules;
	bool archives_only, in_place;
};

void pack_args_fini(struct pack_args *args)
{
	library_set_close(&args->libraries);
	families_fini(&args->families);
	arch_filter_fini(&args->filter);
	free(args->group);
	free(args->prefix);
}

/* --- single options ------------------------------------------------------------------ */

/* Parse NAME=ARCH,ARCH. */
static int set_family(struct pack_args *args, const char *text)
{
	const char *equals = strchr(text, '=');
	struct kpackx_error why = {0};

	if (!equals)
		return options_usage(&cmd_pack_help, "--family %s: not NAME=ARCH,...",
				     text);
	if (families_add(&args->families,
			 (struct kp_span){(const uint8_t *)text, (size_t)(equals - text)},
			 equals + 1, &why))
		return options_usage(&cmd_pack_help, "--family %s: %s", text, why.text);
	return EXIT_OK;
}

/*
 * Returns the number of TEXT among NAMES, which a NULL ends; -1: it is none of them,
 * which was reported.
 */
static int choose_name(const char *option, const char *text, const char *const *names)
{
	char known[128] = "";

	for (int i = 0; names[i]; i++) {
		if (strcmp(text, names[i]) == 0)
			return i;
		snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%s",
			 i == 0         ? ""
			 : names[i + 1] ? ", "
					: " or ",
			 names[i]);
	}
	options_usage(&cmd_pack_help, "--%s %s: not %s", option, text, known);
	return -1;
}

static int set_scheme(struct pack_args *args, const char *text)
{
	static const char *const names[] = {"none", "zstd-per-kernel", NULL};
	int n = choose_name("scheme", text, names);

	args->how.scheme = (kpack_compression_t)n;
	return n < 0 ? EXIT_USAGE : EXIT_OK;
}

static int set_databases(struct pack_args *args, const char *text)
{
	static const char *const names[] = {"packed", "plain", "both", NULL};
	int n = choose_name("databases", text, names);

	args->databases = (enum pack_databases)n;
	return n < 0 ? EXIT_USAGE : EXIT_OK;
}

static int set_prefer(struct pack_args *args, const char *text)
{
	static const char *const names[] = {"input", "output", NULL};
	int n = choose_name("prefer", text, names);

	args->prefer = n ? PREFER_OUTPUT : PREFER_INPUT;
	return n < 0 ? EXIT_USAGE : EXIT_OK;
}

static int set_arch(struct pack_args *args, const char *option, const char *text)
{
	struct kpackx_error why = {0};

	if (arch_filter_add(&args->filter, text, &why))
		return EXIT_OK;
	return options_usage(&cmd_pack_help, "--%s %s: %s", option, text, why.text);
}

static int set_shard(struct pack_args *args, const char *text)
{
	if (shard_parse(text, &args->shard))
		return EXIT_OK;
	return options_usage(&cmd_pack_help, "--shard %s: not I/N with 1 <= I <= N <= %d",
			     text, SHARDS_MAX);
}

static const struct option_place places[] = {
	[OPT_ARCHIVES_ONLY] = OPTION_PLACE(struct parser, archives_only),
	[OPT_IN_PLACE] = OPTION_PLACE(struct parser, in_place),
	[OPT_KEEP_DEVICE_CODE] = OPTION_PLACE(struct parser, args.keep_device_code),
	[OPT_GROUP] = OPTION_PLACE(struct parser, args.group),
	[OPT_GROUP_NAME] = OPTION_PLACE(struct parser, args.group),
	[OPT_KEY_PREFIX] = OPTION_PLACE(struct parser, args.prefix),
	[OPT_LIBRARIES] = OPTION_PLACE(struct parser, libraries),
	[OPT_LIBRARY_RULES] = OPTION_PLACE(struct parser, rules),
	[OPT_SPLIT_ROCFFT] = OPTION_PLACE(struct parser, args.split_rocfft),
	[OPT_ROWS] = OPTION_PLACE(struct parser, args.rows),
	[OPT_CHECK] = OPTION_PLACE(struct parser, args.check),
	[OPT_FORCE] = OPTION_PLACE(struct parser, args.force),
	[OPT_JSON] = OPTION_PLACE(struct parser, args.json),
	[OPT_QUIET] = OPTION_PLACE(struct parser, args.quiet),
	[OPT_INPUT] = OPTION_PLACE(struct parser, args.input),
	[OPT_OUTPUT] = OPTION_PLACE(struct parser, args.output),
	[OPT_GFX_ARCH_FAMILY] = OPTION_PLACE(struct parser, family),
	[OPT_GFX_ARCHES] = OPTION_PLACE(struct parser, arches),
	[OPT_LEVEL] = OPTION_LEVEL(struct parser, args.how.level),
	[OPT_JOBS] = OPTION_JOBS(struct parser, args.how.jobs),
	[OPT_CHUNK] =
		OPTION_NUMBER(struct parser, args.how.chunk, KP_CHUNK_MIN, KP_CHUNK_MAX),
	[OPT_VOLUME_SIZE] =
		OPTION_NUMBER(struct parser, args.volume_size, 1, KP_ZSTD_BLOB_MAX),
	[OPT_COUNT] = {0},
};

static int set_option(struct parser *p, int row, const char *arg)
{
	struct pack_args *args = &p->args;

	switch (row) {
	case OPT_ARCH:
		return set_arch(args, "arch", arg);
	case OPT_FAMILY:
		return set_family(args, arg);
	case OPT_SCHEME:
		return set_scheme(args, arg);
	case OPT_DATABASES:
		return set_databases(args, arg);
	case OPT_PREFER:
		return set_prefer(args, arg);
	case OPT_SHARD:
		return set_shard(args, arg);
	default:
		return option_put(&cmd_pack_help, row, &places[row], p, arg);
	}
}

/* --- all together -------------------------------------------------------------------- */

/* The paper's options: one archive for these architectures, and only these. */
static int set_gfx_arch_family(struct parser *p)
{
	struct kpackx_error why = {0};

	if (!p->family && !p->arches)
		return EXIT_OK;
	if (!p->family || !p->arches)
		return options_usage(
			&cmd_pack_help,
			"--gfx-arch-family and --gfx-arches need each other");
	if (families_add(&p->args.families, kp_span_str(p->family), p->arches, &why))
		return options_usage(&cmd_pack_help, "--gfx-arch-family %s: %s",
				     p->family, why.text);
	return set_arch(&p->args, "gfx-arches", p->arches);
}

static int set_libraries(struct parser *p)
{
	struct pack_args *args = &p->args;
	struct kpackx_error why = {0};
	kpack_error_t err;

	if (args->databases == DATABASES_PLAIN && (args->split_rocfft || args->rows))
		return options_usage(&cmd_pack_help,
				     "--databases plain packs none: --split-rocfft and "
				     "--rows have no meaning");
	err = library_set_open(p->libraries, p->rules, &args->libraries, &why);
	if (!err)
		return EXIT_OK;
	if (err == KPACK_ERROR_INVALID_ARGUMENT && !p->rules)
		return options_usage(&cmd_pack_help, "--libraries: %s", why.text);
	report_why(NULL, &why);
	return err == KPACK_ERROR_INVALID_ARGUMENT ? EXIT_USAGE : EXIT_FAULT;
}

/* Take from the operands what no option gave. */
static int set_operands(struct pack_args *args, int argc, char **argv)
{
	bool in_place = args->mode == PACK_IN_PLACE;
	int at = optind;

	if (in_place && args->output)
		return options_usage(&cmd_pack_help,
				     "--in-place has no OUTPUT: give one TREE");
	if (!args->input && at < argc)
		args->input = argv[at++];
	if (in_place)
		args->output = args->input;
	else if (!args->output && at < argc)
		args->output = argv[at++];
	if (args->input && args->output && at == argc)
		return EXIT_OK;
	return options_usage(&cmd_pack_help, in_place ? "one TREE is needed"
						      : "INPUT and OUTPUT are needed");
}

static int set_mode(struct parser *p)
{
	struct pack_args *args = &p->args;

	if (p->archives_only && p->in_place)
		return options_usage(&cmd_pack_help,
				     "--archives-only leaves binaries alone, --in-place "
				     "converts them");
	if (p->archives_only && args->keep_device_code)
		return options_usage(&cmd_pack_help,
				     "--archives-only leaves binaries alone: "
				     "--keep-device-code has no meaning");
	args->mode = p->archives_only ? PACK_ARCHIVES
		     : p->in_place    ? PACK_IN_PLACE
				      : PACK_TREE;
	return EXIT_OK;
}

/*
 * Returns a directory's name, or a file's name without "lib" and from the first dot on.
 */
static char *default_group(const char *input)
{
	char *path = below_real(input);
	struct stat st;
	const char *name;
	char *group;

	if (!path || below_stat(input, &st) < 0) {
		free(path);
		return xstrdup("none"); /* the scan reports what is wrong with INPUT */
	}
	/* for a file, use the name that was given, not that of a link's target */
	name = strrchr(S_ISDIR(st.st_mode) ? path : input, '/');
	name = name ? name + 1 : input;
	if (S_ISDIR(st.st_mode)) {
		group = xstrdup(name);
	} else {
		if (strncmp(name, "lib", 3) == 0 && name[3] && name[3] != '.')
			name += 3;
		group = xstrndup(name, strcspn(name, "."));
	}
	free(path);
	return group;
}

static void trim_slashes(char *path)
{
	size_t n = strlen(path);

	while (n && path[n - 1] == '/')
		path[--n] = 0;
}

static int check_names(struct pack_args *args)
{
	struct kp_span group;

	if (!args->group)
		args->group = default_group(args->input);
	if (!args->prefix)
		args->prefix = xstrdup("");
	trim_slashes(args->prefix);
	group = kp_span_str(args->group);
	if (!kp_component_ok(group) || !kp_text_ok(group) || args->group[0] == '.')
		return options_usage(
			&cmd_pack_help,
			"the group '%s' gives no file name: give --group NAME",
			args->group);
	if (*args->prefix && !kp_path_ok(kp_span_str(args->prefix)))
		return options_usage(&cmd_pack_help,
				     "--key-prefix %s: not a relative path",
				     args->prefix);
	return EXIT_OK;
}

static int check_in_place(const struct pack_args *args)
{
	struct stat st;

	if (args->shard.count)
		return options_usage(&cmd_pack_help,
				     "--shard with --in-place: a part is a tree of its "
				     "own, and INPUT must stay for the other shards");
	if (args->force)
		return options_usage(&cmd_pack_help,
				     "--force with --in-place would take away what "
				     "converted binaries need");
	if (args->filter.count)
		return options_usage(&cmd_pack_help,
				     "--in-place with a choice of targets would lose the "
				     "code of the others");
	if (below_stat(args->input, &st) == 0 && !S_ISDIR(st.st_mode))
		return options_usage(&cmd_pack_help, "--in-place %s: not a directory",
				     args->input);
	return EXIT_OK;
}

static int check_tree(const struct pack_args *args)
{
	struct kpackx_error why = {0};
	struct stat st;
	char *archives;
	bool has;

	switch (output_check(args->input, args->output, &why)) {
	case KPACK_SUCCESS:
		break;
	case KPACK_ERROR_INVALID_ARGUMENT:
		return options_usage(&cmd_pack_help, "%s", why.text);
	default:
		report_why(args->input, &why);
		return EXIT_FAULT;
	}
	if (!args->force)
		return EXIT_OK;
	archives = xasprintf("%s/" KP_ARCHIVES_DIR, args->input);
	has = below_stat(archives, &st) == 0;
	free(archives);
	return has ? options_usage(&cmd_pack_help,
				   "--force would take away what the converted binaries "
				   "of INPUT need from its archives")
		   : EXIT_OK;
}

/* From now on, INPUT and an OUTPUT that exists are these directories, whatever their
 * names mean later. */
static int hold_directories(const struct pack_args *args)
{
	struct kpackx_error why = {0};
	const char *paths[] = {args->input, args->output};

	for (int i = 0; i < 2; i++)
		if (below_root_if_directory(paths[i], &why)) {
			report_why(paths[i], &why);
			return EXIT_FAULT;
		}
	return EXIT_OK;
}

static int check_args(struct pack_args *args)
{
	int status;

	if (args->how.chunk && args->how.scheme == KPACK_COMPRESSION_NOOP)
		return options_usage(&cmd_pack_help,
				     "--chunk needs --scheme zstd-per-kernel");
	if (!args->volume_size) /* uncompressed blobs have no bound of their own */
		args->volume_size = args->how.scheme == KPACK_COMPRESSION_NOOP
					    ? UINT64_MAX
					    : KP_ZSTD_BLOB_MAX;
	status = hold_directories(args);
	if (!status)
		status = check_names(args);
	if (!status && args->mode == PACK_IN_PLACE)
		status = check_in_place(args);
	if (!status && args->mode == PACK_TREE)
		status = check_tree(args);
	return status;
}

void pack_args_init(struct pack_args *out)
{
	*out = (struct pack_args){
		.how = {.scheme = KPACK_COMPRESSION_ZSTD_PER_KERNEL,
			.level = 3,
			.jobs = option_jobs()},
		.volume_size = KP_ZSTD_BLOB_MAX,
	};
}

static int parse_args(struct parser *p, int argc, char **argv)
{
	struct options o = {.help = &cmd_pack_help, .argc = argc, .argv = argv};
	int row, status;

	while ((row = options_next(&o)) >= 0) {
		status = set_option(p, row, o.arg);
		if (status)
			return status;
	}
	if (row == OPTIONS_STOP)
		return o.status ? o.status : -1;
	status = set_gfx_arch_family(p);
	if (!status)
		status = set_libraries(p);
	if (!status)
		status = set_mode(p);
	if (!status)
		status = set_operands(&p->args, argc, argv);
	return status ? status : check_args(&p->args);
}

int pack_args_parse(struct pack_args *args, int argc, char **argv)
{
	struct parser p = {0};
	int status;

	pack_args_init(&p.args);
	p.args.volume_size = 0; /* not given */
	status = parse_args(&p, argc, argv);
	*args = p.args;
	return status;
}
