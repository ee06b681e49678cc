/* SPDX-License-Identifier: MIT */
/*
 * The command line of kpack pack: the options, which of them contradict each other, and what
 * INPUT and OUTPUT must be.
 *
 * Options that depend on others are read into struct parser, and combined when all are known:
 * --level has a default for each scheme, --volume-size one for those with a bound, and the mode is
 * that of --in-place, --archives-only, --undo, or none of them.
 */
#include "args.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include "core/archive/naming.h"
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "core/base/scheme.h"
#include "core/base/text.h"
#include "core/writer/effort.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "packer/command.h"
#include "packer/files/below.h"
#include "tree.h"

/* Options that are combined after all were read. */
struct parser {
	struct pack_args args;
	const char *family, *arches; /* --gfx-arch-family, --gfx-arches */
	const char *libraries, *rules;
	unsigned effort; /* 0: not given */
	bool archives_only, in_place, undo;
};

/* The level if none is given, and the seconds of --level auto without --effort. */
enum { LEVEL = 3, EFFORT = 60 };

void pack_args_init(struct pack_args *out)
{
	*out = (struct pack_args){
		.how = {.scheme = KPACK_COMPRESSION_ZSTD_PER_KERNEL,
			.level = LEVEL,
			.jobs = option_jobs()},
		.volume_size = KP_ZSTD_BLOB_MAX,
	};
}

void pack_args_fini(struct pack_args *args)
{
	library_set_close(&args->libraries);
	families_fini(&args->families);
	arch_filter_fini(&args->filter);
	free(args->archive_dir);
	free(args->group);
	free(args->prefix);
}

/* --- options ------------------------------------------------------------------------- */

/* Parse NAME=ARCH,ARCH. */
static int take_family(const struct options *o, const struct option_help *row, void *slot)
{
	struct kpackx_error why = {0};

	(void)row;
	if (families_parse(slot, o->arg, &why))
		options_usage(o->help, "--family %s: %s", o->arg, why.text);
	return EXIT_OK;
}

static int take_level(const struct options *o, const struct option_help *row, void *slot)
{
	struct pack_options *how = slot;
	bool is_auto = strcmp(o->arg, "auto") == 0;
	uint64_t n = 0;

	if (!is_auto && !options_number(o->arg, 1, KP_LEVEL_MAX, &n))
		options_usage(o->help, "--%s %s: not auto or a number from 1 to %d",
			      row->long_name, o->arg, KP_LEVEL_MAX);
	how->level = (int)n;
	how->effort = is_auto ? EFFORT : 0;
	return EXIT_OK;
}

/* I/N in plain digits, 1 <= I <= N. */
static int take_shard(const struct options *o, const struct option_help *row, void *slot)
{
	const char *slash = strchr(o->arg, '/');
	KP_AUTO_FREE char *index = xstrndup(o->arg, slash ? (size_t)(slash - o->arg) : 0);
	uint64_t i, n;

	(void)row;
	if (!slash || !options_number(slash + 1, 1, SHARDS_MAX, &n) ||
	    !options_number(index, 1, n, &i))
		options_usage(o->help, "--shard %s: not I/N with 1 <= I <= N <= %d",
			      o->arg, SHARDS_MAX);
	*(struct shard *)slot = (struct shard){(unsigned)i, (unsigned)n};
	return EXIT_OK;
}

/* Where the argument of an option goes. */
#define AT(member) OPTION_PLACE(struct parser, member)

static const struct option_help options[] = {
	{0, "archives-only", NULL, "write archives, leave the binaries alone",
	 AT(archives_only)},
	{0, "in-place", NULL, "convert the binaries of TREE itself", AT(in_place)},
	{0, "undo", NULL, "make TREE what it was before it was packed", AT(undo)},
	{0, "allow-missing", NULL, "--undo: restore without objects in no archive",
	 AT(args.allow_missing)},
	{0, "keep-device-code", NULL, "converted binaries keep their device code, unused",
	 AT(args.keep_device_code)},
	{0, "keep-containers", NULL, "compressed bundles can be restored bit for bit",
	 AT(args.keep_containers)},
	OPTION_DROP_SIGNATURE(struct parser, args.drop_signature),
	{0, "archive-dir", "DIR", "the archives' directory below OUTPUT (.kpack)",
	 AT(args.archive_dir)},
	{0, "group", "NAME", "name of the archives (from INPUT's name)", AT(args.group)},
	{0, "key-prefix", "PATH", "put PATH/ before every key", AT(args.prefix)},
	ARCH_FILTER_OPTIONS(struct parser, args.filter),
	{0, "family", "NAME=ARCH,...", "these targets share one archive; may be repeated",
	 OPTION_TAKE(struct parser, args.families, take_family)},
	{0, "scheme", "SCHEME", "zstd-per-kernel (default), zstd-shared or none",
	 OPTION_SCHEME(struct parser, args.how.scheme)},
	{0, "level", "N", "zstd level, 1 to 22 (3; zstd-shared: 7), or auto",
	 OPTION_TAKE(struct parser, args.how, take_level)},
	{0, "effort", "SECONDS", "--level auto: CPU time for each GB of device code (60)",
	 OPTION_NUMBER(struct parser, effort, 1, KP_EFFORT_MAX)},
	{0, "chunk", "BYTES", "cut larger objects into chunks that decode alone",
	 OPTION_NUMBER(struct parser, args.how.chunk, KP_CHUNK_MIN, KP_CHUNK_MAX)},
	{0, "volume-size", "BYTES", "begin another volume before a blob passes this (4G)",
	 OPTION_NUMBER(struct parser, args.volume_size, 1, KP_ZSTD_BLOB_MAX)},
	{0, "databases", "WHAT", "kernel databases: packed (default), plain or both",
	 OPTION_WORDS(struct parser, args.databases, DATABASES_PACKED, "packed", "plain",
		      "both")},
	{0, "libraries", "LIST", "the libraries to look for, in that order; or none",
	 AT(libraries)},
	{0, "library-rules", "FILE", "more libraries, which FILE describes", AT(rules)},
	{0, "split-rocfft", NULL, "rocFFT's one database becomes one per target",
	 AT(args.split_rocfft)},
	{0, "rows", NULL, "also an entry for each kernel of rocFFT's databases",
	 AT(args.rows)},
	{0, "check", NULL, "first look for files that databases miss", AT(args.check)},
	{0, "prefer", "SIDE", "which side wins where a path differs: input or output",
	 OPTION_WORDS(struct parser, args.prefer, PREFER_INPUT, "input", "output")},
	{0, "runtime", "WHICH", "any: convert even if HIP runtimes refuse it",
	 OPTION_WORDS(struct parser, args.any_runtime, true, "any")},
	{0, "shard", "I/N", "do the I-th of N parts of the work; kpack merge joins them",
	 OPTION_TAKE(struct parser, args.shard, take_shard)},
	{0, "jobs", "N", "threads (all cores)",
	 OPTION_JOBS(struct parser, args.how.jobs)},
	{0, "force", NULL, "replace existing archives, do not add to them",
	 AT(args.force)},
	{0, "json", NULL, "report as JSON", AT(args.json)},
	{'q', "quiet", NULL, "no progress, no table", AT(args.quiet)},
	{0, "input", "PATH", "INPUT", AT(args.input)},
	{0, "output", "DIR", "OUTPUT", AT(args.output)},
	{0, "group-name", "NAME", "--group", AT(args.group)},
	{0, "gfx-arch-family", "NAME",
	 "with --gfx-arches: --family NAME=LIST --arch LIST", AT(family)},
	{0, "gfx-arches", "LIST", "see --gfx-arch-family", AT(arches)},
	{0},
};

const struct command_help cmd_pack_help = {
	"pack",
	"[OPTION]... INPUT OUTPUT | --in-place [OPTION]... TREE | --undo [OPTION]... "
	"TREE",
	"move the device code of a binary or a tree into archives",
	options,
	"INPUT is a file or a tree.  OUTPUT becomes a copy of it whose binaries find "
	"their\n"
	"device code in OUTPUT/.kpack.\n",
};

/*
 * Check which options were given together, and combine them.  What has no meaning is refused,
 * because the user meant something else.
 */
static void combine_options(const struct parser *p, struct pack_args *args)
{
	struct pack_options *how = &args->how;

	options_check(
		&cmd_pack_help,
		(const struct option_rule[]){
			/* what was packed says how; an option that only packing has is a mistake */
			{p->undo &&
				 (p->archives_only || p->in_place || p->family ||
				  p->arches || p->libraries || p->rules || p->effort ||
				  args->output || args->keep_device_code ||
				  args->keep_containers || args->force || args->group ||
				  args->prefix || args->filter.chosen.limited ||
				  args->families.count || args->shard.count ||
				  args->volume_size || args->databases || args->prefer ||
				  args->check || args->split_rocfft || args->rows ||
				  args->any_runtime || how->level || how->chunk ||
				  how->scheme != KPACK_COMPRESSION_ZSTD_PER_KERNEL),
			 "--undo goes with TREE, --archive-dir, --allow-missing, "
			 "--drop-signature, --jobs, --json and --quiet only"},
			{args->allow_missing && !p->undo,
			 "--allow-missing goes with --undo only"},
			{args->databases == DATABASES_PLAIN &&
				 (args->split_rocfft || args->rows),
			 "--databases plain packs none: --split-rocfft and --rows have "
			 "no meaning"},
			{p->effort && !how->effort, "--effort needs --level auto"},
			{how->effort && how->scheme == KPACK_COMPRESSION_NOOP,
			 "--level auto with --scheme none, which compresses nothing"},
			{how->effort && args->shard.count,
			 "--level auto with --shard: how to spend the time is chosen "
			 "from all of INPUT"},
			{p->archives_only && p->in_place,
			 "--archives-only leaves binaries alone, --in-place converts "
			 "them"},
			{p->archives_only && args->keep_device_code,
			 "--archives-only leaves binaries alone: --keep-device-code has "
			 "no meaning"},
			{p->archives_only && args->keep_containers,
			 "--archives-only leaves the device code in binaries: "
			 "--keep-containers has no meaning"},
			{p->archives_only && args->drop_signature,
			 "--archives-only leaves binaries alone: --drop-signature has no "
			 "meaning"},
			{args->keep_device_code && args->keep_containers,
			 "--keep-device-code leaves the device code in binaries: "
			 "--keep-containers has no meaning"},
			{p->in_place && args->shard.count,
			 "--shard with --in-place: a part is a tree of its own, and "
			 "INPUT must stay for the other shards"},
			{p->in_place && args->force,
			 "--force with --in-place would take away what converted "
			 "binaries need"},
			{p->in_place && args->output,
			 "--in-place has no OUTPUT: give one TREE"},
			{how->chunk && how->scheme != KPACK_COMPRESSION_ZSTD_PER_KERNEL,
			 "--chunk needs --scheme zstd-per-kernel"},
			{0}});
	args->mode = p->archives_only ? PACK_ARCHIVES
		     : p->in_place    ? PACK_IN_PLACE
		     : p->undo        ? PACK_UNDO
				      : PACK_TREE;
	if (p->effort)
		how->effort = p->effort;
	if (!how->level)
		how->level = how->scheme == KP_COMPRESSION_ZSTD_SHARED ? KP_SHARED_LEVEL
								       : LEVEL;
	if (!args->volume_size) /* other blobs have no bound of their own */
		args->volume_size = how->scheme == KPACK_COMPRESSION_ZSTD_PER_KERNEL
					    ? KP_ZSTD_BLOB_MAX
					    : UINT64_MAX;
	/* a file in the tree is newer than the entry for its path */
	if (args->mode == PACK_IN_PLACE && args->prefer == PREFER_NONE)
		args->prefer = PREFER_INPUT;
}

/* --- operands ------------------------------------------------------------------------ */

static void trim_slashes(char *path)
{
	size_t n = strlen(path);

	while (n && path[n - 1] == '/')
		path[--n] = 0;
}

bool pack_archive_dir_ok(char *dir)
{
	trim_slashes(dir);
	return kp_path_ok(kp_span_str(dir));
}

/*
 * Returns a directory's name, or a file's name without "lib" and from the first dot on: there the
 * version begins, with which each upgrade would have archives of its own.  NULL, after a message: INPUT
 * cannot be looked at.
 */
static char *default_group(const char *input)
{
	KP_AUTO_FREE char *path = below_real(input);
	struct stat st;
	const char *name;

	if (!path || below_stat(input, &st) < 0) {
		report_error(input, "cannot look at it: %s", strerror(errno));
		return NULL;
	}
	/* for a file, use the name that was given, not that of a link's target */
	name = strrchr(S_ISDIR(st.st_mode) ? path : input, '/');
	name = name ? name + 1 : input;
	if (S_ISDIR(st.st_mode))
		return xstrdup(name);
	if (strncmp(name, "lib", 3) == 0 && name[3] && name[3] != '.')
		name += 3;
	return xstrndup(name, strcspn(name, "."));
}

/*
 * Take INPUT and OUTPUT, and check or make the names in what is written; and that it can be written
 * there, and takes nothing away that is needed.
 */
static int take_operands(struct pack_args *args, int argc, char **argv)
{
	bool in_place = args->mode == PACK_IN_PLACE || args->mode == PACK_UNDO;
	KP_AUTO_FREE char *archives = NULL;
	struct kpackx_error why = {0};
	struct kp_span group;
	struct stat st;
	kpack_error_t err;
	int at = optind;

	if (!args->input && at < argc)
		args->input = argv[at++];
	if (in_place)
		args->output = args->input;
	else if (!args->output && at < argc)
		args->output = argv[at++];
	if (!args->input || !args->output || at != argc)
		options_usage(&cmd_pack_help, in_place ? "one TREE is needed"
						       : "INPUT and OUTPUT are needed");
	/* from now on they are these directories, whatever their names mean later */
	for (int i = 0; i < 2; i++) {
		const char *path = i ? args->output : args->input;

		if (below_root_if_directory(path, &why)) {
			report_why(path, &why);
			return EXIT_FAULT;
		}
	}
	if (!args->group) /* undoing needs none, and the root of the system gives none */
		args->group = args->mode == PACK_UNDO ? xstrdup("undo")
						      : default_group(args->input);
	if (!args->group)
		return EXIT_FAULT;
	if (!args->prefix)
		args->prefix = xstrdup("");
	trim_slashes(args->prefix);
	if (!args->archive_dir)
		args->archive_dir = xstrdup(KP_ARCHIVES_DIR);
	group = kp_span_str(args->group);
	if (!kp_component_ok(group) || !kp_text_ok(group) || args->group[0] == '.')
		options_usage(&cmd_pack_help,
			      "the group '%s' gives no file name: give --group NAME",
			      args->group);
	if (*args->prefix && !kp_path_ok(kp_span_str(args->prefix)))
		options_usage(&cmd_pack_help, "--key-prefix %s: not a relative path",
			      args->prefix);
	if (!pack_archive_dir_ok(args->archive_dir))
		options_usage(&cmd_pack_help,
			      "--archive-dir %s: not a path relative to OUTPUT",
			      args->archive_dir);
	if (args->shard.count && strcmp(args->archive_dir, KP_ARCHIVES_DIR) != 0)
		options_usage(&cmd_pack_help,
			      "--shard with --archive-dir: the parts of a run are "
			      "joined in " KP_ARCHIVES_DIR);

	if (in_place && below_stat(args->input, &st) == 0 && !S_ISDIR(st.st_mode))
		options_usage(&cmd_pack_help, "%s %s: not a directory",
			      args->mode == PACK_UNDO ? "--undo" : "--in-place",
			      args->input);
	if (args->mode != PACK_TREE)
		return EXIT_OK;
	err = output_check(args->input, args->output, &why);
	if (err == KPACK_ERROR_INVALID_ARGUMENT)
		options_usage(&cmd_pack_help, "%s", why.text);
	if (err) {
		report_why(args->input, &why);
		return EXIT_FAULT;
	}
	archives = xasprintf("%s/%s", args->input, args->archive_dir);
	if (args->force && below_stat(archives, &st) == 0)
		options_usage(&cmd_pack_help,
			      "--force would take away what the converted "
			      "binaries of INPUT need from its archives");
	return EXIT_OK;
}

int pack_args_parse(struct pack_args *args, int argc, char **argv)
{
	struct options o = {.help = &cmd_pack_help, .argc = argc, .argv = argv};
	struct parser p = {0};
	struct kpackx_error why = {0};
	kpack_error_t err;

	pack_args_init(&p.args);
	p.args.volume_size = 0; /* not given */
	p.args.how.level = 0;
	options_read(&o, &p);
	/* the paper's options: one archive for these architectures, and only these */
	if (!p.family != !p.arches)
		options_usage(&cmd_pack_help,
			      "--gfx-arch-family and --gfx-arches need each other");
	if (p.family &&
	    families_add(&p.args.families, kp_span_str(p.family), p.arches, &why))
		options_usage(&cmd_pack_help, "--gfx-arch-family %s: %s", p.family,
			      why.text);
	*args = p.args;
	if (p.family &&
	    arch_filter_put(&args->filter, &cmd_pack_help, "gfx-arches", p.arches))
		return EXIT_FAULT;
	arch_filter_check(&args->filter, &cmd_pack_help);
	err = library_set_open(p.libraries, p.rules, &args->libraries, &why);
	if (err == KPACK_ERROR_INVALID_ARGUMENT && !p.rules)
		options_usage(&cmd_pack_help, "--libraries: %s", why.text);
	/* what the user wrote into a file of rules is a part of the command line */
	if (err) {
		report_why(NULL, &why);
		return err == KPACK_ERROR_INVALID_ARGUMENT ? EXIT_USAGE : EXIT_FAULT;
	}
	combine_options(&p, args);
	return take_operands(args, argc, argv);
}
