/* SPDX-License-Identifier: MIT */
/*
 * The stand-ins for other people's tools: kpack offload-bundler and offload-packager with the
 * options of clang's programs, and bulk-unbundle with those of AMD's, their names of files, and
 * what they print.
 *
 * With the bundler's own defaults - version 3, zstd at level 3, long-distance matching - the same
 * zstd gives the same bytes as LLVM's tool.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/path.h"
#include "packer/command.h"
#include "packer/inspect/inspect.h"
#include "packer/offload/offload.h"

/* Read the options of HELP in WORDS; returns the number of operands, which *OPERANDS become. */
static int read_options(const struct command_help *help,
			const struct offload_words *words, void *args, char ***operands)
{
	struct options o = {.help = help,
			    .argc = (int)words->count,
			    .argv = words->items,
			    .single_dash = true};

	options_read(&o, args);
	*operands = o.argv + optind;
	return o.argc - optind;
}

/* --- the bundler ------------------------------------------------------------------------ */

struct bundler_args {
	struct bundler job;
	struct option_texts targets;
};

/* As `take` of struct option_place, for several texts with commas between them. */
static int take_list(const struct options *o, const struct option_help *row, void *slot)
{
	char *next = (char *)o->arg, *text; /* of offload_words: it may be cut */

	(void)row;
	while ((text = strsep(&next, ",")))
		option_texts_add(slot, text);
	return EXIT_OK;
}

/* zstd has negative levels, too. */
static bool parse_level(const char *text, int *out)
{
	char *end;
	long n;

	errno = 0;
	n = strtol(text, &end, 10);
	if (end == text || *end || errno || n < INT_MIN || n > INT_MAX)
		return false;
	*out = (int)n;
	return true;
}

/* For --compression-level of the bundler. */
static int take_level(const struct options *o, const struct option_help *row, void *slot)
{
	if (!parse_level(o->arg, slot))
		options_usage(o->help, "--%s %s: not a number", row->long_name, o->arg);
	return EXIT_OK;
}

/* Where the argument of an option goes. */
#define AT(member) OPTION_PLACE(struct bundler_args, job.member)
#define TAKE_LIST(member) OPTION_TAKE(struct bundler_args, member, take_list)

static const struct option_help bundler_options[] = {
	{0, "allow-missing-bundles", NULL,
	 "write empty files for targets without an entry", AT(allow_missing)},
	{0, "bundle-align", "N", "where the entries of a binary bundle begin (1)",
	 OPTION_NUMBER(struct bundler_args, job.align, 1, UINT_MAX)},
	{0, "check-input-archive", NULL, "refuse members with conflicting target IDs",
	 AT(check_archive)},
	{0, "compress", NULL, "compress the bundle with zstd", AT(compress)},
	{0, "compression-level", "N", "level of zstd (3)",
	 OPTION_TAKE(struct bundler_args, job.form.level, take_level)},
	{0, "hip-openmp-compatible", NULL, "treat the kinds hip and openmp as the same",
	 AT(hip_openmp)},
	{0, "input", "FILE", "an input, in the order of the targets; - is stdin",
	 AT(inputs)},
	{0, "inputs", "FILE,...", "all inputs, as older versions have it",
	 TAKE_LIST(job.inputs)},
	{0, "list", NULL, "print the IDs of all entries", AT(list)},
	{0, "output", "FILE", "an output, in the order of the targets; - is stdout",
	 AT(outputs)},
	{0, "outputs", "FILE,...", "all outputs, as older versions have it",
	 TAKE_LIST(job.outputs)},
	{0, "targets", "ID,...", "KIND-TRIPLE-TARGET of each file", TAKE_LIST(targets)},
	{0, "type", "TYPE", "of the files: i ii cui hipi d ll bc s o a gch ast",
	 AT(type)},
	{0, "unbundle", NULL, "take the input apart", AT(unbundle)},
	{0, "verbose", NULL, "report compression and decompression", AT(verbose)},
	{0},
};

const struct command_help cmd_offload_bundler_help = {
	"offload-bundler",
	"--type TYPE [--unbundle|--list] [--targets ID,...] --input FILE... [--output "
	"FILE]...",
	"bundle and unbundle offload code, as clang-offload-bundler",
	bundler_options,
	"A long option may begin with one hyphen.  @FILE stands for the words in FILE.",
};

/*
 * Whether the variable of the environment is 1; kpack takes none when it runs with more rights
 * than its user.
 */
static bool is_set(const char *variable)
{
	const char *text = secure_getenv(variable);

	return text && strcmp(text, "1") == 0;
}

/* The first rule that is broken is reported: those behind it rely on those before. */
int cmd_offload_bundler(int argc, char **argv)
{
	static const char level[] = "OFFLOAD_BUNDLER_COMPRESSION_LEVEL";
	static const char version[] = "COMPRESSED_BUNDLE_FORMAT_VERSION";
	static struct bundler_args a = {.job = {.align = 1,
						.form = {.version = 3,
							 .method = KP_CCOB_ZSTD,
							 .level = 3,
							 .long_range = true}}};
	struct bundler *b = &a.job;
	KP_AUTO(offload_words) words = {0};
	struct kpackx_error why = {0};
	bool archive, bundle;
	const char *text;
	int status, n;

	if (offload_words_read(&words, argc, argv, &why))
		return report_why(NULL, &why);
	/* options come after the environment, so that they win */
	if (!is_set("OFFLOAD_BUNDLER_IGNORE_ENV_VAR")) {
		b->verbose = is_set("OFFLOAD_BUNDLER_VERBOSE");
		b->compress = is_set("OFFLOAD_BUNDLER_COMPRESS");
		text = secure_getenv(level);
		if (text && !parse_level(text, &b->form.level))
			report_error(NULL, "warning: %s=%s is ignored: not a number",
				     level, text);
		text = secure_getenv(version);
		if (text && (strcmp(text, "2") == 0 || strcmp(text, "3") == 0))
			b->form.version = (unsigned)(*text - '0');
		else if (text)
			report_error(NULL, "warning: %s=%s is ignored: not 2 or 3",
				     version, text);
	}
	n = read_options(&cmd_offload_bundler_help, &words, &a, &argv);
	archive = b->type && strcmp(b->type, "a") == 0;
	bundle = !b->list && !b->unbundle;
	options_check(&cmd_offload_bundler_help,
		      (const struct option_rule[]){
			      {n > 0, "there are no operands"},
			      {!b->type, "--type is missing"},
			      {b->type && !bundler_type_known(b->type),
			       "--type is none of i ii cui hipi d ll bc s o a gch ast"},
			      {b->list && b->unbundle,
			       "--list and --unbundle exclude each other"},
			      {!bundle && b->inputs.count != 1,
			       "--list and --unbundle need one --input"},
			      {b->list && (b->outputs.count || a.targets.count),
			       "--list has no --output and no --targets"},
			      {!b->list && b->check_archive && !(b->unbundle && archive),
			       "--check-input-archive needs --unbundle and --type a"},
			      {!b->list && !a.targets.count, "--targets is missing"},
			      {bundle && archive, "an archive can only be unbundled"},
			      {b->unbundle && b->outputs.count != a.targets.count,
			       "an --output for each target is needed"},
			      {bundle && b->outputs.count != 1, "one --output is needed"},
			      {bundle && b->inputs.count != a.targets.count,
			       "an --input for each target is needed"},
			      {0}});
	/* a list has no targets to read; each of the others has one per file */
	status = b->list ? EXIT_OK : bundler_targets_read(b, &a.targets);
	if (!status)
		status = b->list       ? bundler_list(b)
			 : b->unbundle ? bundler_unbundle(b)
				       : bundler_bundle(b);
	return report_finish(status);
}

/* --- the packager ----------------------------------------------------------------------- */

struct packager_args {
	struct packager job;
	bool compress;
	unsigned version; /* 0: not given */
};

static const struct option_help packager_options[] = {
	OPTION_SWITCH(0, "archive", "write the selected images to a static library",
		      struct packager_args, job.archive),
	OPTION_SWITCH(0, "compress", "compress the output with zstd (format version 3)",
		      struct packager_args, compress),
	{0, "compression-level", "N", "level of zstd, 1 to 22 (5)",
	 OPTION_NUMBER(struct packager_args, job.form.level, 1, 22)},
	{0, "format-version", "N", "version to write: 1 (default), 2 or 3",
	 OPTION_NUMBER(struct packager_args, version, 1, 3)},
	{0, "image", "KEY=VALUE,...", "an image to pack, or to select",
	 OPTION_PLACE(struct packager_args, job.images)},
	{'o', "output", "FILE", "write the offload binary FILE",
	 OPTION_PLACE(struct packager_args, job.output)},
	{0},
};

const struct command_help cmd_offload_packager_help = {
	"offload-packager",
	"-o FILE --image KEY=VALUE,... | FILE [--archive] [--image KEY=VALUE,...]",
	"pack and unpack offload binaries, as clang-offload-packager",
	packager_options,
	"A long option may begin with one hyphen.  @FILE stands for the words in FILE.",
};

/* With --output the images are packed, without it FILE is taken apart. */
int cmd_offload_packager(int argc, char **argv)
{
	KP_AUTO(offload_words) words = {0};
	struct kpackx_error why = {0};
	static struct packager_args a;
	struct packager *p = &a.job;
	int n, status;

	if (offload_words_read(&words, argc, argv, &why))
		return report_why(NULL, &why);
	n = read_options(&cmd_offload_packager_help, &words, &a, &argv);
	p->input = n ? argv[0] : NULL;
	/* compression is a feature of version 3; otherwise what every LLVM reads */
	p->form.version = a.version ? a.version : a.compress ? 3 : 1;
	p->form.method = a.compress ? KP_OFFLOAD_ZSTD : KP_OFFLOAD_PLAIN;
	options_check(
		&cmd_offload_packager_help,
		(const struct option_rule[]){
			{n > 1, "one FILE is read"},
			{p->input && p->output, "FILE and --output exclude each other"},
			{!p->input && !p->output, "FILE or --output is missing"},
			{a.compress && p->form.version != 3,
			 "--compress needs --format-version 3"},
			{0}});
	/* as in clang's program, what is given decides the direction */
	status = p->output ? packager_pack(p) : packager_extract(p);
	return report_finish(status);
}

/* --- AMD's bulk_unbundle ---------------------------------------------------------------- */

struct bulk_unbundle {
	const char *dir, *arch;
};

static const struct option_help unbundle_options[] = {
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
	unbundle_options,
	"FILE is a fat binary or an offload bundle.  Without -o its files go into a "
	"directory\n"
	"called like FILE, with .unbundled in place of its last suffix.",
};

/*
 * Write the device code of the file PATH, and print the names of its files as AMD's program does.
 */
static int unbundle_file(const char *path, const struct bulk_unbundle *u)
{
	const char *name = kp_path_name(path), *dot = strrchr(name, '.');
	size_t n = dot && dot > name && dot[1] ? (size_t)(dot - path) : strlen(path);
	KP_AUTO_FREE char *dir =
		u->dir ? xstrdup(u->dir) : xasprintf("%.*s.unbundled", (int)n, path);
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
	return err ? EXIT_FAULT : EXIT_OK;
}

/* As AMD's program, stop at the first file that fails. */
int cmd_bulk_unbundle(int argc, char **argv)
{
	struct bulk_unbundle u = {0};
	int n = options_parse(&cmd_bulk_unbundle_help, argc, &argv, &u), status = EXIT_OK;

	options_check(&cmd_bulk_unbundle_help,
		      (const struct option_rule[]){
			      {n == 0, "FILE is missing"},
			      {u.dir && n > 1, "--output-dir is for a single FILE"},
			      {u.arch && strchr(u.arch, ':'),
			       "--gfx-arch takes a processor without features"},
			      {0}});
	for (int i = 0; i < n && !status; i++)
		status = unbundle_file(argv[i], &u);
	return report_finish(status);
}
