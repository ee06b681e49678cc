/* SPDX-License-Identifier: MIT */
/*
 * kpack split-wheel: split Python wheels by architecture.  Here is the command line: our own
 * options and, under AMD's names, those of TheRock's program; packer/wheel does the work.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/text.h"
#include "core/host/search_path.h"
#include "packer/command.h"
#include "packer/files/below.h"
#include "packer/wheel/split.h"

/* The libraries that --wheel-type torch-fat means. */
#define TORCH_FAT "rocblas,hipblaslt,hipsparselt,aotriton,miopen"

enum { ZSTD_LEVEL = 3 }; /* unless one is given */

struct parser {
	struct wheel_split_args args;
	struct option_texts inputs, families, requires; /* of ARGS */
	char *libraries;                                /* of --databases NAME... */
	bool names_open; /* after --databases NAME: more names may follow */
	bool host_variant;
	const char *label; /* of the host variant */
};

/* --- single options ------------------------------------------------------------------ */

/* Add NAMES, separated by commas, to the libraries, but those that are there already. */
static void add_libraries(struct parser *p, const char *names)
{
	for (size_t n; *names; names += n + (names[n] == ',')) {
		char *old = p->libraries;
		const char *at = old;

		n = strcspn(names, ",");
		while (at && (strcspn(at, ",") != n || strncmp(at, names, n) != 0)) {
			at = strchr(at, ',');
			at += at != NULL;
		}
		if (at)
			continue;
		p->libraries = xasprintf("%s%s%.*s", old ? old : "", old ? "," : "",
					 (int)n, names);
		free(old);
	}
	p->args.libraries = p->libraries;
}

/*
 * For --databases: how databases are stored, or the libraries whose are looked for; see
 * cmd_split_wheel.
 */
static int take_databases(const struct options *o, const struct option_help *row,
			  void *slot)
{
	struct parser *p = slot;

	(void)row;
	if (strcmp(o->arg, "plain") == 0) {
		p->args.databases = DATABASES_IDENTIFIED;
	} else if (strcmp(o->arg, "packed") == 0) {
		p->args.databases = DATABASES_PACKED;
	} else {
		p->names_open = true;
		add_libraries(p, o->arg);
	}
	return EXIT_OK;
}

/* For AMD's --wheel-type, which stands for a list of libraries. */
static int take_wheel_type(const struct options *o, const struct option_help *row,
			   void *slot)
{
	(void)row;
	if (strcmp(o->arg, "torch-fat") != 0)
		options_usage(o->help, "--wheel-type %s: not torch-fat", o->arg);
	add_libraries(slot, TORCH_FAT);
	return EXIT_OK;
}

/* Whether TEXT can be a requirement: it begins like a name and is printable. */
static bool is_requirement(const char *text)
{
	return isalnum((unsigned char)*text) && kp_text_ok(kp_span_str(text));
}

/*
 * As AMD's program: any number of words, each a requirement, up to an option, a file, or the name
 * of a wheel.
 */
static int take_requirements(const struct options *o, const struct option_help *row,
			     void *slot)
{
	const char *text = o->arg;
	struct stat st;

	(void)row;
	if (o->arg[0] == '-' && o->argv[optind - 1] == o->arg) {
		optind--; /* no word: it is the next option */
		return EXIT_OK;
	}
	/* argparse's "nargs": getopt knows one argument, the others are taken from its words here */
	do {
		option_texts_add(slot, text);
		text = optind < o->argc ? o->argv[optind++] : NULL;
	} while (text && is_requirement(text) &&
		 !kp_span_ends(kp_span_str(text), ".whl") && below_lstat(text, &st) < 0);
	if (text)
		optind--;
	return EXIT_OK;
}

/* Where the argument of an option goes. */
#define AT(member) OPTION_PLACE(struct parser, member)

static const struct option_help options[] = {
	{'o', "output", "DIST", "directory that gets the wheels", AT(args.output)},
	{0, "group", "NAME", "name of the archives (from the wheel's name)",
	 AT(args.group)},
	{0, "overlay-root", "DIR", "directory in the wheel that gets the archives",
	 AT(args.overlay)},
	{0, "device-prefix", "NAME", "distributions of device wheels (amd-DIST-device)",
	 AT(args.prefix)},
	{0, "family", "NAME=LIST", "one wheel for these targets", AT(families)},
	{0, "databases", "WHAT",
	 "plain: as files; packed: into archives; or library names",
	 OPTION_TAKE_ALL(take_databases)},
	{0, "requires", "REQUIREMENT",
	 "what device wheels require; @GFXARCH@ is the target", AT(requires)},
	{0, "prefer", "WHEEL", "the wheel that wins where several differ",
	 AT(args.prefer)},
	{0, "output-format", "FORMAT", "wheel or directory",
	 OPTION_WORDS(struct parser, args.directory, false, "wheel", "directory")},
	OPTION_DROP_SIGNATURE(struct parser, args.drop_signature),
	{0, "force", NULL, "replace wheels in DIST that are no earlier run's, too",
	 AT(args.force)},
	{0, "scheme", "SCHEME", "zstd-per-kernel (default), zstd-shared or none",
	 OPTION_SCHEME(struct parser, args.scheme)},
	{0, "level", "N", "zstd level, 1 to 22 (3; zstd-shared: 7)",
	 OPTION_LEVEL(struct parser, args.level)},
	{0, "zip-level", "N", "deflate level, 0 to 9 (6)",
	 OPTION_NUMBER(struct parser, args.zip_level, 0, 9)},
	{'j', "jobs", "N", "threads (all cores)", OPTION_JOBS(struct parser, args.jobs)},
	{0, "tmp-dir", "DIR", "where wheels are unpacked (DIST)", AT(args.tmp_dir)},
	{0, "json", NULL, "report as JSON", AT(args.json)},
	{'q', "quiet", NULL, "no progress, no table", AT(args.quiet)},
	{0, "input", "WHEEL", "WHEEL", AT(inputs)},
	{0, "output-dir", "DIST", "--output", AT(args.output)},
	{0, "group-name", "NAME", "--group", AT(args.group)},
	{0, "device-package-prefix", "NAME", "--device-prefix", AT(args.prefix)},
	{0, "device-requires-dist", "REQUIREMENT...",
	 "--requires, of any number of words",
	 OPTION_TAKE(struct parser, requires, take_requirements)},
	{0, "wheel-type", "TYPE", "torch-fat: --databases with torch's libraries",
	 OPTION_TAKE_ALL(take_wheel_type)},
	{0, "compression", "HOW", "compression of archives: zstd or none",
	 OPTION_WORDS(struct parser, args.scheme, KPACK_COMPRESSION_NOOP, "none",
		      "zstd")},
	{0, "compression-level", "N", "--level", OPTION_LEVEL(struct parser, args.level)},
	{0, "generate-variant-wheel", NULL,
	 "also a host wheel that picks device wheels (PEP 817)", AT(host_variant)},
	{0, "variant-label", "LABEL", "the end of its name (variant)", AT(label)},
	{0, "clang-offload-bundler", "PATH", "accepted: it is not needed",
	 OPTION_IGNORED},
	{'v', "verbose", NULL, "accepted: every note is printed", OPTION_IGNORED},
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

/* --- all together -------------------------------------------------------------------- */

/* AMD's options and ours fill the same arguments; the last one wins, as with our own. */
int cmd_split_wheel(int argc, char **argv)
{
	static struct parser p = {.label = "variant",
				  .args = {.scheme = KPACK_COMPRESSION_ZSTD_PER_KERNEL,
					   .zip_level = WHEEL_LEVEL_DEFAULT,
					   .databases = DATABASES_IDENTIFIED}};
	const struct command_help *help = &cmd_split_wheel_help;
	struct wheel_split_args *args = &p.args;
	int n, status;
	struct kp_span group;
	struct families families = {0};
	struct library_set set = {0};
	struct kpackx_error why = {0};
	bool preferred = false;

	args->jobs = option_jobs();
	n = options_parse(help, argc, &argv, &p);
	group = kp_span_str(args->group ? args->group : "");
	for (int i = 0; i < n; i++) {
		/* names of libraries may follow --databases as separate words */
		if (p.names_open && !library_set_open(argv[i], NULL, &set, NULL))
			add_libraries(&p, argv[i]);
		else
			option_texts_add(&p.inputs, argv[i]);
		library_set_close(&set);
	}
	/* the lists stay those of the parser */
	args->inputs = (char **)p.inputs.items;
	args->n_inputs = p.inputs.count;
	args->families = p.families.items;
	args->n_families = p.families.count;
	args->requires = p.requires.items;
	args->n_requires = p.requires.count;
	args->host_label = p.host_variant ? p.label : NULL;
	if (!args->level)
		args->level = args->scheme == KP_COMPRESSION_ZSTD_SHARED ? KP_SHARED_LEVEL
									 : ZSTD_LEVEL;

	/* refuse what would only come out when work has begun */
	if (args->n_inputs == 0 || !args->output)
		options_usage(help, "WHEEL and -o DIST are needed");
	for (size_t i = 0; i < args->n_inputs; i++)
		preferred |= args->prefer && strcmp(args->inputs[i], args->prefer) == 0;
	if (args->prefer && !preferred)
		options_usage(help, "--prefer %s: not one of the wheels", args->prefer);
	if (args->group && (!kp_component_ok(group) || !kp_text_ok(group) ||
			    *args->group == '.' || strstr(args->group, KP_SEARCH_ARCH)))
		options_usage(help, "--group '%s' gives no file name", args->group);
	if (args->prefix && !dist_name_ok(args->prefix))
		options_usage(help, "--device-prefix '%s': not a name of a distribution",
			      args->prefix);
	if (args->host_label && !wheel_label_ok(args->host_label))
		options_usage(help, "--variant-label '%s': not made of [0-9a-z_.]",
			      args->host_label);
	for (size_t i = 0; i < args->n_requires; i++)
		if (!is_requirement(args->requires[i]))
			options_usage(help, "--requires '%s': not a requirement",
				      args->requires[i]);
	for (size_t i = 0; i < args->n_families; i++)
		if (families_parse(&families, args->families[i], &why))
			options_usage(help, "--family %s: %s", args->families[i],
				      why.text);
	if (library_set_open(args->libraries, NULL, &set, &why))
		options_usage(help, "--databases: %s", why.text);
	families_fini(&families);
	library_set_close(&set);
	status = wheel_split_run(args);
	return report_finish(status);
}
