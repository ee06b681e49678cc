/* SPDX-License-Identifier: MIT */
/*
 * kpack detect: the GPUs of this machine, or those of --arch, and what they need.
 *
 * What is printed is one of: facts about each kind of GPU; the names of archives, packages or
 * wheels for it; the archives among the operands that it can use; one word for pip, or one line
 * for apt; the packages to install and to remove; or all facts and names as JSON.  Of an installation
 * it is the other way round: which GPUs it has code for, and whether those of this machine can load it.
 */
#include <stdlib.h>
#include <string.h>
#include "core/archive/naming.h"
#include "core/target/target.h"
#include "core/base/path.h"
#include "packer/archives/operands.h"
#include "packer/cli/process.h"
#include "packer/command.h"
#include "packer/files/below.h"
#include "packer/gpu/installed.h"
#include "packer/gpu/names.h"
#include "packer/scan/scan.h"

struct detect {
	const char *topology;
	struct kp_choice kinds; /* of GPUs: those of this machine, or chosen ones */
	struct gpu_names names;
	const char *status; /* dpkg's file of installed packages; NULL: dpkg is asked */
	bool pip, apt, json, installed;
	bool failed; /* the reason was reported */
};

/* For --arch: add the GPUs of the list to the kinds.  "auto" is remembered, and read later. */
static int take_arches(const struct options *o, const struct option_help *row, void *slot)
{
	struct detect *d = slot;
	struct kpackx_error why = {0};

	(void)row;
	if (kp_choice_add(&d->kinds, o->arg, &why))
		options_usage(o->help, "--arch: %s", why.text);
	if (d->kinds.all)
		options_usage(o->help, "--arch: all: name GPUs");
	return EXIT_OK;
}

/* Where the argument of an option goes. */
#define AT(member) OPTION_PLACE(struct detect, member)

static const struct option_help options[] = {
	{0, "topology", "DIR", "where GPUs are looked for", AT(topology)},
	{0, "arch", "LIST", "for these GPUs; auto: this machine's",
	 OPTION_TAKE_ALL(take_arches)},
	{0, "family", NULL, "their families, such as gfx110X", AT(names.family)},
	{0, "group", "NAME", "the archives of a group", AT(names.group)},
	{0, "package", "NAME", "the packages for a base package", AT(names.package)},
	{0, "dist", "NAME", "the extras of a wheel", AT(names.dist)},
	{0, "pip", NULL, "what pip installs, in one word (with --dist)", AT(pip)},
	{0, "apt", NULL, "what apt installs, in one line (with --package)", AT(apt)},
	{0, "installed", NULL, "which Debian packages to install and to remove",
	 AT(installed)},
	{0, "dpkg-status", "FILE", "a file that lists packages as dpkg's status does",
	 AT(status)},
	OPTION_JSON_ARRAY(struct detect, json),
	{0},
};

const struct command_help cmd_detect_help = {
	"detect",
	"[OPTION]... [ARCHIVE|DIR... | TREE]",
	"print the GPUs of this machine and what they need",
	options,
	"Without names, a line for each kind of GPU: architecture, sub-family, family,\n"
	"the paper's family, generic target.  With archives: which of them it can use.\n"
	"With a TREE, or a file: which GPUs it has code for, and which of it can be "
	"loaded.",
};

/* --- what a kind of GPU is and needs -------------------------------------------------- */

/* Facts and names; NULL: not known, or not asked for. */
struct needs {
	const struct kp_target *gpu;
	char text[KP_TARGET_TEXT_MAX]; /* of ARCH */
	const char *arch, *subfamily, *family, *series, *generic;
	const char *label;             /* of the kind in names */
	char extra[GPU_NAME_PART_MAX]; /* of the label; settings of features share it */
	bool new_label, new_extra;     /* no earlier kind has the same */
	char *archive, *package, *wheel;
	json_t *extras, *archives, *missing;
};

static const struct row rows[] = {
	ROW("arch", ROW_LINE | ROW_JSON, struct needs, arch),
	ROW("subfamily", ROW_LINE | ROW_JSON | ROW_NONE, struct needs, subfamily),
	ROW("family", ROW_LINE | ROW_JSON | ROW_NONE, struct needs, family),
	ROW("series", ROW_LINE | ROW_JSON | ROW_NONE, struct needs, series),
	ROW("generic", ROW_LINE | ROW_JSON | ROW_NONE, struct needs, generic),
	ROW("archive", ROW_JSON | ROW_OPTIONAL, struct needs, archive),
	ROW("package", ROW_JSON | ROW_OPTIONAL, struct needs, package),
	ROW("wheel", ROW_JSON | ROW_OPTIONAL, struct needs, wheel),
	ROW("extras", ROW_JSON, struct needs, extras),
	ROW("archives", ROW_JSON, struct needs, archives),
	ROW("missing", ROW_JSON, struct needs, missing),
};

/* Find the names of ITEM for its label; the N kinds before it are EARLIER. */
static void find_names(struct detect *d, struct needs *item, const struct needs *earlier,
		       size_t n)
{
	const struct gpu_names *names = &d->names;

	item->label = !names->family ? item->arch : item->series;
	if (!item->label) {
		report_error(NULL, "%s: its family is not known", item->arch);
		d->failed = true;
		return;
	}
	gpu_extra_part(item->label, item->extra);
	item->new_label = item->new_extra = true;
	for (size_t k = 0; k < n; k++) {
		const char *other = earlier[k].label;

		item->new_label &= !other || strcmp(other, item->label) != 0;
		item->new_extra &= strcmp(earlier[k].extra, item->extra) != 0;
	}
	if (names->group)
		item->archive = xasprintf("%s%c%s" KP_ARCHIVE_SUFFIX, names->group,
					  names->family ? '-' : '_', item->label);
	if (names->package)
		item->package = gpu_package_name(names->package, item->label);
	if (names->dist)
		item->wheel = xasprintf("%s[device-%s]", names->dist, item->extra);
	if (d->json)
		item->extras = json_pack("[o, s]", json_sprintf("device-%s", item->extra),
					 item->extra);
}

/* The group of A; if it states none, its file's name, so that each such file stands for itself. */
static struct kp_span group_of(const struct kpack_archive *a)
{
	struct kp_span group = kp_archive_group(a);

	return group.size ? group : kp_span_str(kp_path_name(kp_archive_path(a)));
}

/* Whether A has entries that are for every GPU (NEUTRAL), or that are not. */
static bool has_entries(const struct kpack_archive *a, bool neutral)
{
	struct kp_target t;

	for (size_t i = 0; i < kp_archive_arch_count(a); i++)
		if ((!kp_target_parse(kp_span_str(kp_archive_arch(a, i)), &t, NULL) &&
		     kp_target_neutral(&t)) == neutral)
			return true;
	return false;
}

/*
 * Say which archives of SET ITEM's kind can use, and which of the groups have none for it: those
 * that have code for some architecture, and GROUP, which was asked for by name.
 */
static void find_served(struct detect *d, struct needs *item, const struct archives *set)
{
	const struct kp_target *gpu = item->gpu;
	struct kp_span *groups = xcalloc(set->count + 1, sizeof(*groups));
	bool *served = xcalloc(set->count + 1, sizeof(*served));
	size_t n = 0, g;

	item->archives = d->json ? json_array() : NULL;
	item->missing = d->json ? json_array() : NULL;
	if (d->names.group)
		groups[n++] = kp_span_str(d->names.group);
	for (size_t i = 0; i < set->count; i++) {
		const struct kpack_archive *a = set->items[i];
		const char *path = kp_archive_path(a);
		bool serves = kp_archive_serves(a, gpu);

		if (d->names.group && !kp_span_is(group_of(a), d->names.group))
			continue;
		/* an archive with neutral entries alone opens no group: it is for every GPU */
		for (g = 0; g < n && !kp_span_eq(groups[g], group_of(a));)
			g++;
		if (g == n && has_entries(a, false))
			groups[n++] = group_of(a);
		served[g] |= g < n && serves;
		if (!serves && !has_entries(a, true))
			continue;
		if (d->json) {
			json_array_append_new(item->archives, report_json_text(path));
			continue;
		}
		printf("%s ", item->arch);
		report_text(path);
		putchar('\n');
	}
	/* a group that has code, but none for this GPU, lacks an archive */
	for (g = 0; g < n; g++) {
		if (served[g])
			continue;
		d->failed = true;
		if (d->json)
			json_array_append_new(item->missing, report_json_span(groups[g]));
		else
			report_error(NULL, "%s: missing: %.*s_%s.kpack", item->arch,
				     (int)groups[g].size, (const char *)groups[g].data,
				     item->arch);
	}
	free(groups);
	free(served);
}

/*
 * Print what each kind needs.  For pip and apt it is one line: "torch[device-gfx942,device-gfx1100]",
 * or packages.
 */
static void print_needs(struct detect *d, int n, char **operands)
{
	const struct gpu_names *names = &d->names;
	bool named = names->family || names->group || names->package || names->dist;
	struct needs *list = xcalloc(d->kinds.count, sizeof(*list));
	struct report_array array = {0};
	struct archives set = {0};
	size_t printed = 0;

	/* without any archive of the group nothing can be said, which is a fault */
	if (n) {
		size_t count = 0;

		archives_open(&set, n, operands);
		for (size_t i = 0; i < set.count; i++)
			count += !names->group ||
				 kp_span_is(group_of(set.items[i]), names->group);
		d->failed |= set.failed || count == 0;
	}
	for (size_t i = 0; i < d->kinds.count; i++) {
		const struct kp_target *gpu = &d->kinds.gpus[i];
		const struct gpu_subfamily *s =
			gpu_subfamily_of(kp_span_str(gpu->processor));
		struct needs *item = &list[i];

		*item = (struct needs){
			.gpu = gpu,
			.arch = item->text,
			.subfamily = s ? s->name : NULL,
			.family = s ? s->family : NULL,
			.series = s ? s->series : NULL,
			.generic = kp_processor_generic(kp_span_str(gpu->processor))};
		kp_target_format(gpu, item->text);
		if (d->json || (!n && named))
			find_names(d, item, list, i);
		if (n)
			find_served(d, item, &set);
		if (d->json) {
			report_array_add(&array, rows_object(ROWS(rows), item));
		} else if (d->pip && item->new_extra) {
			printf("%s%sdevice-%s", printed ? "" : names->dist,
			       printed ? "," : "[", item->extra);
			printed++;
		} else if (d->apt && item->new_label) {
			printf("%s%s", printed ? " " : "", item->package);
			printed++;
		} else if (!d->pip && !d->apt && !n && item->new_label) {
			if (item->archive)
				puts(item->archive);
			if (item->package)
				puts(item->package);
			if (item->wheel && item->new_extra)
				puts(item->wheel);
			if (!item->archive && !item->package && !item->wheel)
				puts(item->label);
		} else if (!n && !named) {
			rows_line(ROWS(rows), item, ROW_LINE, ' ');
		}
	}
	/* pip takes one word, whose list of extras ends here */
	if (d->json)
		report_array_end(&array);
	else if (printed)
		puts(d->pip ? "]" : "");
	for (size_t i = 0; i < d->kinds.count; i++) {
		free(list[i].archive);
		free(list[i].package);
		free(list[i].wheel);
	}
	free(list);
	archives_close(&set);
}

/* --- the code in a tree ------------------------------------------------------------------ */

static bool has_archives(const char *dir)
{
	char **paths = NULL;
	size_t n = 0;
	bool any = !below_archives_find(dir, &paths, &n, NULL) && n;

	while (n)
		free(paths[--n]);
	free(paths);
	return any;
}

/*
 * Whether PATH is an archive, or a directory with some, or with PACKED a tree that has them in its
 * .kpack.  What is missing counts as an archive, and is reported as one.
 */
static bool is_archives(const char *path, bool packed)
{
	KP_AUTO_FREE char *inner = xasprintf("%s/" KP_ARCHIVES_DIR, path);
	struct kpack_archive *a = NULL;
	struct kpackx_error why = {0};
	struct stat st;
	bool is;

	if (below_root_if_directory(path, &why) || below_stat(path, &st) < 0)
		return true;
	if (S_ISDIR(st.st_mode))
		return has_archives(path) || (packed && has_archives(inner));
	is = kp_is_archive_name(path) || !below_archive_open(path, &a, NULL);
	kp_archive_close(a);
	return is;
}

/* Print which GPUs the tree, or the file, PATH has code for, and what our kinds can load of it. */
static void print_code(struct detect *d, const char *path)
{
	KP_AUTO(code_table) table = {0};
	struct library_set libraries = {0};
	struct report_array array = {0};
	struct kpackx_error why = {0};
	struct scan scan = {.progress = !d->json};

	if (library_set_open(NULL, NULL, &libraries, &why) ||
	    scan_open(path, "", SCAN_TO_MEASURE, &libraries, SCAN_IDENTIFY, &scan, &why))
		d->failed = report_why(path, &why);
	scan_report_left(&scan, true);
	scan_count_code(&scan, &table);
	code_table_match(&table, &d->kinds);
	for (size_t i = 0; i < table.count && d->json; i++) {
		const struct code_table_row *row = &table.rows[i];

		report_array_add(&array, json_pack("{so sI sI so}", "arch",
						   report_json_text(row->arch), "files",
						   (json_int_t)row->count, "bytes",
						   (json_int_t)row->bytes, "loadable",
						   row->loads == CODE_UNKNOWN
							   ? json_null()
							   : json_boolean(row->loads)));
	}
	if (d->json)
		report_array_end(&array);
	else if (table.count)
		code_table_print(&table, stdout, "files", CODE_TABLE_LOADS, SIZE_MAX);
	d->failed |= scan.n_faults || scan_damaged(&scan);
	if (!table.count && !d->failed)
		d->failed = report_error(path, "no code for GPUs in it");
	scan_close(&scan);
	library_set_close(&libraries);
}

/* --- installed packages -------------------------------------------------------------- */

/* A machine has a few thousand packages, of some kilobytes each. */
enum { STATUS_MAX = 1 << 28 };

/* As dpkg's file has them, the fields that gpu_installed_parse takes. */
#define FIELD(name) name ": ${" name "}\\n"

/* "apt install NAME-" removes NAME. */
static void print_advice(const struct detect *d, bool removes, const char *name,
			 const char **between)
{
	if (d->apt)
		printf("%s%s%s", *between, name, removes ? "-" : "");
	else
		printf("%s %s\n", removes ? "remove" : "install", name);
	*between = " ";
}

/* Print the packages that the GPUs lack, and those that are for other GPUs only. */
static void print_installed(struct detect *d)
{
	const char *between = "";
	char name[] = "dpkg-query", show[] = "-W";
	char format[] = "-f=" FIELD("Package") FIELD("Status") FIELD("Enhances")
		FIELD("Suggests") FIELD("X-Rocm-Gpu-Architecture") "\\n";
	char *argv[] = {name, show, format, NULL};
	KP_AUTO(gpu_installed) list = {0};
	KP_AUTO_FREE uint8_t *data = NULL;
	size_t size = 0, cap = 0, n = 1;
	struct kpackx_error why = {0};
	kpack_error_t err = KPACK_SUCCESS;
	struct program dpkg;
	int failed;

	/* packages of a GPU that was not found must not go */
	if (d->kinds.count == 0 || d->failed)
		return;
	if (d->status) {
		/* a file like dpkg's may be that of another root directory */
		err = below_file_load(d->status, STATUS_MAX, "the list of packages",
				      &data, &size, &why);
	} else {
		/* where dpkg keeps its packages is its own matter: it is asked */
		failed = program_start(&dpkg, "/usr/bin/dpkg-query", argv);
		while (!failed && n && size < STATUS_MAX) {
			xgrow(&data, size + 65535, &cap, 1);
			n = fread(data + size, 1, cap - size, dpkg.output);
			size += n;
		}
		if (failed || program_end(&dpkg))
			err = kp_fail(&why, KPACK_ERROR_IO_ERROR, "%s",
				      failed ? strerror(failed) : "failed");
	}
	if (err) {
		report_why(d->status ? d->status : "dpkg-query", &why);
		d->failed = true;
		return;
	}
	gpu_installed_parse((struct kp_span){data, size}, &list);
	/*
	 * For each package with code for GPUs: which of its base our GPUs lack, and whether it is for
	 * none of them.
	 */
	for (size_t i = 0; i < list.count; i++) {
		const struct gpu_installed_package *p = &list.items[i];

		for (size_t k = 0; k < d->kinds.count; k++) {
			KP_AUTO_FREE char *lacks =
				gpu_installed_lacks(&list, p, &d->kinds.gpus[k]);

			if (lacks)
				print_advice(d, false, lacks, &between);
			d->failed |= lacks != NULL;
		}
		if (p->base && !gpu_installed_serves(p, &d->kinds))
			print_advice(d, true, p->name, &between);
	}
	if (d->apt && *between)
		putchar('\n');
}

/*
 * What goes together is checked before the machine is looked at: the reasons then name options
 * only.
 */
int cmd_detect(int argc, char **argv)
{
	static struct detect d;
	int n = options_parse(&cmd_detect_help, argc, &argv, &d);
	const struct gpu_names *names = &d.names;
	const char *place = d.topology ? d.topology : KP_TOPOLOGY;
	struct kpackx_error why = {0};
	struct kp_gpus gpus;
	kpack_error_t err;
	bool tree = n == 1 && !is_archives(argv[0], true);
	const struct option_rule rules[] = {
		{d.kinds.limited && !d.kinds.find && d.topology,
		 "--arch and --topology exclude each other, except for --arch auto"},
		{d.pip + d.apt + d.json + (n && !d.json) > 1,
		 "--pip, --apt, --json and archives exclude each other"},
		{d.pip && !names->dist, "--pip needs --dist"},
		{d.apt && !names->package && !d.installed,
		 "--apt needs --package or --installed"},
		{d.status && !d.installed, "--dpkg-status needs --installed"},
		{d.installed && (d.pip || d.json || n || names->family || names->group ||
				 names->package || names->dist),
		 "--installed excludes names, archives, --pip and --json"},
		{tree && (names->family || names->group || names->package || names->dist),
		 "--family, --group, --package and --dist are not for a TREE"},
		{0},
	};

	if (gpu_names_check(names, &why))
		options_usage(&cmd_detect_help, "%s", why.text);
	options_check(&cmd_detect_help, rules);
	if (!d.kinds.limited || d.kinds.find) {
		err = kp_gpus_read(d.topology, &gpus, &why);
		for (size_t i = 0; i < gpus.faults.kept; i++)
			report_error(NULL, "%s", gpus.faults.items[i].text);
		if (!err)
			err = kp_choice_add_found(&d.kinds, &gpus, &why);
		/* what a packed tree has can be told without a GPU, too */
		tree |= !d.kinds.count && n == 1 && !names->group &&
			!is_archives(argv[0], false);
		if (tree)
			err = KPACK_SUCCESS;
		else if (err == KPACK_ERROR_FILE_NOT_FOUND)
			report_error(place, "no GPU, because the KFD driver is missing: "
					    "name the GPUs with --arch");
		else if (err)
			report_why(place, &why);
		else if (gpus.count == 0)
			report_error(place, "no GPU: name the GPUs with --arch");
		/* packages of a GPU that cannot be read must not go, either */
		d.failed |= err || (gpus.count == 0 && !tree) ||
			    (d.installed && gpus.faults.kept);
		kp_gpus_fini(&gpus);
	}
	if (tree)
		print_code(&d, argv[0]);
	else if (d.installed)
		print_installed(&d);
	else
		print_needs(&d, n, argv);
	return report_finish(d.failed ? EXIT_FAULT : EXIT_OK);
}
