/* SPDX-License-Identifier: MIT */
/* kpack pack: fat binaries in, archives out. */
#include <inttypes.h>
#include <stdlib.h>
#include "archives.h"
#include "command.h"
#include "limits.h"
#include "pack.h"
#include "report.h"
#include "text.h"

enum {
	OPT_ARCHIVES_ONLY,
	OPT_GROUP,
	OPT_KEY_PREFIX,
	OPT_ARCH,
	OPT_FAMILY,
	OPT_SCHEME,
	OPT_LEVEL,
	OPT_CHUNK,
	OPT_VOLUME_SIZE,
	OPT_JOBS,
	OPT_FORCE,
	OPT_JSON,
	OPT_QUIET,
};

static const struct option_help options[] = {
	[OPT_ARCHIVES_ONLY] = {0, "archives-only", NULL,
			       "write archives, leave the binaries alone"},
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
	[OPT_JOBS] = {0, "jobs", "N", "threads (all cores)"},
	[OPT_FORCE] = {0, "force", NULL, "replace existing archives, do not add to them"},
	[OPT_JSON] = {0, "json", NULL, "report as JSON"},
	[OPT_QUIET] = {'q', "quiet", NULL, "no progress, no table"},
	{0},
};

const struct command_help cmd_pack_help = {
	"pack",
	"--archives-only [OPTION]... INPUT OUTPUT",
	"pack the device code of a binary or a tree into archives",
	options,
	"INPUT is a file or a tree; the archives go to OUTPUT/.kpack.\n",
};

struct pack {
	const char *input, *output;
	bool archives_only, json, quiet;
	char *group, *prefix;
	struct arch_filter filter;
	struct family *families;
	size_t n_families;
	struct pack_options how;
	uint64_t volume_size;
	bool force;
};

/* --- options ------------------------------------------------------------------------- */

static void pack_fini(struct pack *p)
{
	for (size_t i = 0; i < p->n_families; i++) {
		for (size_t k = 0; k < p->families[i].n_arches; k++)
			free(p->families[i].arches[k]);
		free(p->families[i].arches);
		free(p->families[i].name);
	}
	free(p->families);
	free(p->group);
	free(p->prefix);
	arch_filter_fini(&p->filter);
}

static bool arch_taken(const struct pack *p, const char *arch)
{
	for (size_t i = 0; i < p->n_families; i++)
		for (size_t k = 0; k < p->families[i].n_arches; k++)
			if (strcmp(p->families[i].arches[k], arch) == 0)
				return true;
	return false;
}

static int add_member(struct pack *p, struct family *f, struct kp_span text)
{
	struct kpackx_error why = {0};
	char arch[KP_TARGET_TEXT_MAX];
	struct kp_target target;
	char **bigger;

	if (kp_target_parse(text, &target, &why))
		return options_usage(&cmd_pack_help, "--family %s: %s", f->name,
				     why.text);
	kp_target_format(&target, arch);
	if (arch_taken(p, arch))
		return options_usage(&cmd_pack_help,
				     "--family %s: %s is in a family already", f->name,
				     arch);
	bigger = realloc(f->arches, (f->n_arches + 1) * sizeof(char *));
	if (!bigger)
		return EXIT_FAULT;
	f->arches = bigger;
	f->arches[f->n_arches] = strdup(arch);
	return f->arches[f->n_arches++] ? EXIT_OK : EXIT_FAULT;
}

/* May S be part of a file name, and stand in an archive? */
static bool name_ok(struct kp_span s)
{
	return kp_component_ok(s) && kp_text_ok(s);
}

/* NAME=ARCH,ARCH */
static int add_family(struct pack *p, const char *text)
{
	const char *list = strchr(text, '=');
	struct family *bigger, *f;
	int status = EXIT_OK;

	if (!list ||
	    !name_ok((struct kp_span){(const uint8_t *)text, (size_t)(list - text)}))
		return options_usage(&cmd_pack_help, "--family %s: not NAME=ARCH,...",
				     text);
	bigger = realloc(p->families, (p->n_families + 1) * sizeof(*bigger));
	if (!bigger)
		return EXIT_FAULT;
	p->families = bigger;
	f = &bigger[p->n_families++];
	*f = (struct family){.name = strndup(text, (size_t)(list - text))};
	if (!f->name)
		return EXIT_FAULT;
	do {
		const char *item = list + 1;

		list = strchrnul(item, ',');
		status = add_member(
			p, f,
			(struct kp_span){(const uint8_t *)item, (size_t)(list - item)});
	} while (!status && *list);
	return status;
}

static int set_scheme(struct pack *p, const char *text)
{
	static const char *const names[] = {"none", "zstd-per-kernel"};

	for (int i = 0; i < 2; i++) {
		if (strcmp(text, names[i]) == 0) {
			p->how.scheme = (kpack_compression_t)i;
			return EXIT_OK;
		}
	}
	return options_usage(&cmd_pack_help,
			     "--scheme %s: neither zstd-per-kernel nor none", text);
}

static int set_number(const char *option, const char *text, uint64_t low, uint64_t high,
		      uint64_t *out)
{
	if (options_number(text, low, high, out))
		return EXIT_OK;
	return options_usage(&cmd_pack_help,
			     "--%s %s: not a number from %" PRIu64 " to %" PRIu64, option,
			     text, low, high);
}

static int set_text(char **slot, const char *text)
{
	free(*slot);
	*slot = strdup(text);
	return *slot ? EXIT_OK : EXIT_FAULT;
}

static int set_arch(struct pack *p, const char *text)
{
	struct kpackx_error why = {0};

	if (arch_filter_add(&p->filter, text, &why))
		return EXIT_OK;
	return options_usage(&cmd_pack_help, "--arch %s: %s", text, why.text);
}

static int set_option(struct pack *p, int row, const char *arg)
{
	uint64_t n = 0;
	int status = EXIT_OK;

	switch (row) {
	case OPT_ARCHIVES_ONLY:
		p->archives_only = true;
		break;
	case OPT_GROUP:
		return set_text(&p->group, arg);
	case OPT_KEY_PREFIX:
		return set_text(&p->prefix, arg);
	case OPT_ARCH:
		return set_arch(p, arg);
	case OPT_FAMILY:
		return add_family(p, arg);
	case OPT_SCHEME:
		return set_scheme(p, arg);
	case OPT_LEVEL:
		status = set_number("level", arg, 1, 22, &n);
		p->how.level = (int)n;
		break;
	case OPT_CHUNK:
		return set_number("chunk", arg, KP_CHUNK_MIN, KP_CHUNK_MAX,
				  &p->how.chunk);
	case OPT_VOLUME_SIZE:
		return set_number("volume-size", arg, 1, KP_ZSTD_BLOB_MAX,
				  &p->volume_size);
	case OPT_JOBS:
		status = set_number("jobs", arg, 1, 1024, &n);
		p->how.jobs = (unsigned)n;
		break;
	case OPT_FORCE:
		p->force = true;
		break;
	case OPT_JSON:
		p->json = true;
		break;
	case OPT_QUIET:
		p->quiet = true;
		break;
	}
	return status;
}

/* A directory's name; a file's without "lib" and from the first dot on. */
static char *default_group(const char *input)
{
	char *path = realpath(input, NULL);
	struct stat st;
	const char *name;
	char *group;

	if (!path || stat(path, &st) < 0) {
		free(path);
		return strdup("none"); /* the scan tells what is wrong with it */
	}
	/* of a file the name that was given counts, not that of a link's target */
	name = strrchr(S_ISDIR(st.st_mode) ? path : input, '/');
	name = name ? name + 1 : input;
	if (S_ISDIR(st.st_mode)) {
		group = strdup(name);
	} else {
		if (strncmp(name, "lib", 3) == 0 && name[3] && name[3] != '.')
			name += 3;
		group = strndup(name, strcspn(name, "."));
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

static int check_options(struct pack *p)
{
	if (!p->archives_only) {
		report_error("pack", "rewriting the binaries is not built: give "
				     "--archives-only to write the archives");
		return EXIT_USAGE;
	}
	if (p->json && !report_json_ok())
		return EXIT_USAGE;
	if (p->how.chunk && p->how.scheme == KPACK_COMPRESSION_NOOP)
		return options_usage(&cmd_pack_help,
				     "--chunk needs --scheme zstd-per-kernel");
	if (!p->volume_size) /* plain blobs have no bound of their own */
		p->volume_size = p->how.scheme == KPACK_COMPRESSION_NOOP
					 ? UINT64_MAX
					 : KP_ZSTD_BLOB_MAX;
	if (!p->group)
		p->group = default_group(p->input);
	if (!p->prefix)
		p->prefix = strdup("");
	if (!p->group || !p->prefix)
		return EXIT_FAULT;
	trim_slashes(p->prefix);
	if (!name_ok(kp_span_str(p->group)) || p->group[0] == '.')
		return options_usage(
			&cmd_pack_help,
			"the group '%s' gives no file name: give --group NAME", p->group);
	if (*p->prefix && !kp_path_ok(kp_span_str(p->prefix)))
		return options_usage(&cmd_pack_help,
				     "--key-prefix %s: not a relative path", p->prefix);
	return EXIT_OK;
}

static int parse_options(struct pack *p, int argc, char **argv)
{
	struct options o = {.help = &cmd_pack_help, .argc = argc, .argv = argv};
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	int row, status;

	*p = (struct pack){0};
	p->how = (struct pack_options){.scheme = KPACK_COMPRESSION_ZSTD_PER_KERNEL,
				       .level = 3,
				       .jobs = cores > 0 ? (unsigned)cores : 1};
	while ((row = options_next(&o)) >= 0) {
		status = set_option(p, row, o.arg);
		if (status)
			return status;
	}
	if (row == OPTIONS_STOP)
		return o.status ? o.status : -1; /* -1: --help was answered */
	if (argc - optind != 2)
		return options_usage(&cmd_pack_help, "INPUT and OUTPUT are needed");
	p->input = argv[optind];
	p->output = argv[optind + 1];
	return check_options(p);
}

/* --- the report ---------------------------------------------------------------------- */

static void print_table(const struct archive_stats *stats, size_t n)
{
	struct archive_stats all = {0};

	printf("%-28s %10s %16s %16s %12s\n", "arch", "objects", "bytes in", "bytes out",
	       "deduplicated");
	for (size_t i = 0; i < n; i++) {
		printf("%-28s %10zu %16" PRIu64 " %16" PRIu64 " %12zu\n", stats[i].arch,
		       stats[i].objects, stats[i].bytes_in, stats[i].bytes_out,
		       stats[i].deduplicated);
		all.objects += stats[i].objects;
		all.bytes_in += stats[i].bytes_in;
		all.bytes_out += stats[i].bytes_out;
		all.deduplicated += stats[i].deduplicated;
	}
	printf("%-28s %10zu %16" PRIu64 " %16" PRIu64 " %12zu\n", "total", all.objects,
	       all.bytes_in, all.bytes_out, all.deduplicated);
}

#if KP_WITH_JSON
static json_t *json_stats(const struct archive_stats *stats, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(
			list, json_pack("{so sI sI sI sI}", "arch",
					report_json_text(stats[i].arch), "objects",
					(json_int_t)stats[i].objects, "bytes_in",
					(json_int_t)stats[i].bytes_in, "bytes_out",
					(json_int_t)stats[i].bytes_out, "deduplicated",
					(json_int_t)stats[i].deduplicated));
	return list;
}

static json_t *json_names(const struct archive_set *set)
{
	json_t *list = json_array();
	size_t n;
	const char *const *names = archive_set_names(set, &n);

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, report_json_text(names[i]));
	return list;
}

static json_t *json_files(const struct scan *scan)
{
	json_t *list = json_array();

	for (size_t i = 0; i < scan->n_inputs; i++)
		json_array_append_new(
			list, json_pack("{so so ss}", "path",
					report_json_text(scan->inputs[i]->path), "key",
					report_json_text(scan->inputs[i]->key), "status",
					"packed"));
	for (size_t i = 0; i < scan->n_notes; i++)
		json_array_append_new(list,
				      json_pack("{so sn ss}", "path",
						report_json_text(scan->notes[i].path),
						"key", "status", scan->notes[i].text));
	return list;
}

static int print_json(const struct pack *p, const struct scan *scan,
		      const struct archive_set *set)
{
	size_t n;
	const struct archive_stats *stats = archive_set_stats(set, &n);
	json_t *all = json_pack("{so so so so so}", "output", report_json_text(p->output),
				"group", report_json_text(p->group), "archives",
				json_names(set), "arches", json_stats(stats, n), "files",
				json_files(scan));

	return report_json(all) ? EXIT_OK : EXIT_FAULT;
}
#else
static int print_json(const struct pack *p, const struct scan *scan,
		      const struct archive_set *set)
{
	(void)p, (void)scan, (void)set;
	return EXIT_FAULT; /* check_options refused --json */
}
#endif

static int report(const struct pack *p, const struct scan *scan,
		  const struct archive_set *set)
{
	size_t n;
	const struct archive_stats *stats = archive_set_stats(set, &n);

	if (p->json)
		return print_json(p, scan, set);
	if (!p->quiet)
		print_table(stats, n);
	return EXIT_OK;
}

/* --- the work ------------------------------------------------------------------------ */

static int fail(const struct kpackx_error *why)
{
	report_why(NULL, why);
	return EXIT_FAULT;
}

static bool stores(const void *plan, struct kp_span key, struct kp_span arch)
{
	return plan_stores(plan, key, arch);
}

static int write_archives(const struct pack *p, const struct scan *scan,
			  const struct plan *plan, const char *dir)
{
	struct archive_set_options where = {
		.dir = dir,
		.group = p->group,
		.scheme = p->how.scheme,
		.level = p->how.level,
		.volume_size = p->volume_size,
		.force = p->force,
		.families = p->families,
		.n_families = p->n_families,
		.stores = stores,
		.stores_arg = plan,
	};
	struct kpackx_error why = {0};
	struct archive_set *set = NULL;
	struct progress progress;
	kpack_error_t err;
	int status;

	err = kp_mkdirs(dir, 0777, &why);
	if (!err)
		err = archive_set_open(&where, &set, &why);
	if (!err) {
		progress_begin(&progress, "packing", plan->bytes, !p->quiet && !p->json);
		err = pack_run(plan, &p->how, set, &progress, &why);
		progress_end(&progress);
	}
	if (!err)
		err = archive_set_publish(set, &why);
	status = err ? fail(&why) : report(p, scan, set);
	archive_set_close(set);
	return status;
}

static void tell_notes(const struct scan *scan)
{
	for (size_t i = 0; i < scan->n_notes; i++)
		report_error(scan->notes[i].path, "note: %s", scan->notes[i].text);
}

static int pack_scanned(struct pack *p, const struct scan *scan)
{
	struct kpackx_error why = {0};
	struct plan plan;
	char *dir = NULL;
	int status = EXIT_FAULT;

	if (!p->quiet)
		tell_notes(scan);
	if (plan_open(scan, &p->filter, p->how.chunk, &plan, &why))
		return fail(&why);
	if (scan->n_faults || plan.n_faults)
		report_error(NULL, "nothing was packed because of the faults above");
	else if (scan->n_inputs == 0)
		report_error(p->input, "no device code found in %zu files",
			     scan->n_files);
	else if (plan.n_objects == 0)
		report_error(p->input, "no code object of the targets asked for");
	else if (asprintf(&dir, "%s/.kpack", p->output) < 0)
		dir = NULL;
	if (dir)
		status = write_archives(p, scan, &plan, dir);
	for (size_t i = 0; i < p->filter.count && dir && !p->quiet; i++) {
		char arch[KP_TARGET_TEXT_MAX];

		kp_target_format(&p->filter.targets[i], arch);
		if (!p->filter.matched[i])
			report_error(p->input, "warning: no code object for %s", arch);
	}
	free(dir);
	plan_close(&plan);
	return status;
}

int cmd_pack(int argc, char **argv)
{
	struct kpackx_error why = {0};
	struct scan scan;
	struct pack p;
	int status = parse_options(&p, argc, argv);

	if (!status) {
		if (scan_open(p.input, p.prefix, &scan, &why)) {
			report_why(p.input, &why);
			status = EXIT_FAULT;
		} else {
			status = pack_scanned(&p, &scan);
			scan_close(&scan);
		}
	}
	pack_fini(&p);
	return report_finish(status < 0 ? EXIT_OK : status);
}
