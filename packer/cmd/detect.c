/* SPDX-License-Identifier: MIT */
/*
 * kpack detect: the GPUs of this machine, or those of --arch, and what they need.
 *
 * What is printed is one of: facts about each kind of GPU; the names of archives, packages or
 * wheels for it; the archives among the operands that it can use; one word for pip, or one line
 * for apt; the packages to install and to remove; or all facts and names as JSON.
 */
#include <stdlib.h>
#include <string.h>
#include "packer/cli/program.h"
#include "packer/cli/rows.h"
#include "packer/cli/xalloc.h"
#include "packer/cli/report.h"
#include "packer/command.h"
#include "packer/files/below.h"
#include "packer/gpu/installed.h"
#include "packer/gpu/names.h"

struct detect {
	const char *topology;
	struct gpu_kinds kinds;
	struct gpu_names names;
	const char *status; /* dpkg's file of installed packages; NULL: dpkg is asked */
	bool chosen, pip, apt, json, installed;
	bool failed; /* the reason was reported */
	bool with_archives;
	struct gpu_served served;
};

static int take_arches(const struct options *o, const struct option_help *row, void *slot)
{
	struct detect *d = slot;
	struct kpackx_error why = {0};

	(void)row;
	d->chosen = true;
	if (gpu_kinds_parse(&d->kinds, o->arg, &why))
		return options_usage(o->help, "--arch: %s", why.text);
	return EXIT_OK;
}

static const struct option_help options[] = {
	{0, "topology", "DIR", "where GPUs are looked for",
	 OPTION_PLACE(struct detect, topology)},
	{0, "arch", "LIST", "for these GPUs; auto: this machine's",
	 OPTION_TAKE_ALL(take_arches)},
	{0, "family", NULL, "their families, such as gfx110X",
	 OPTION_PLACE(struct detect, names.family)},
	{0, "group", "NAME", "the archives of a group",
	 OPTION_PLACE(struct detect, names.group)},
	{0, "package", "NAME", "the packages for a base package",
	 OPTION_PLACE(struct detect, names.package)},
	{0, "dist", "NAME", "the extras of a wheel",
	 OPTION_PLACE(struct detect, names.dist)},
	{0, "pip", NULL, "what pip installs, in one word (with --dist)",
	 OPTION_PLACE(struct detect, pip)},
	{0, "apt", NULL, "what apt installs, in one line (with --package)",
	 OPTION_PLACE(struct detect, apt)},
	{0, "installed", NULL, "which Debian packages to install and to remove",
	 OPTION_PLACE(struct detect, installed)},
	{0, "dpkg-status", "FILE", "a file that lists packages as dpkg's status does",
	 OPTION_PLACE(struct detect, status)},
	OPTION_JSON_ARRAY(struct detect, json),
	{0},
};

const struct command_help cmd_detect_help = {
	"detect",
	"[OPTION]... [ARCHIVE|DIR...]",
	"print the GPUs of this machine and what they need",
	options,
	"Without names, a line for each kind of GPU: architecture, sub-family, family,\n"
	"the paper's family, generic target.  With archives: which of them it can use.",
};

/* --- the GPUs --------------------------------------------------------------------- */

static void read_gpus(struct detect *d)
{
	const char *place = d->topology ? d->topology : KP_TOPOLOGY;
	struct kpackx_error why = {0};
	struct kp_gpus gpus;
	kpack_error_t err = kp_gpus_read(d->topology, &gpus, &why);

	for (size_t i = 0; i < gpus.faults.kept; i++)
		report_error(NULL, "%s", gpus.faults.items[i].text);
	for (size_t i = 0; i < gpus.count && !err; i++)
		gpu_kinds_add(&d->kinds, &gpus.list[i].target);
	if (err == KPACK_ERROR_FILE_NOT_FOUND)
		report_error(
			place,
			"no GPU, because the KFD driver is missing: name the GPUs with "
			"--arch");
	else if (err)
		report_why(place, &why);
	else if (gpus.count == 0)
		report_error(place, "no GPU: name the GPUs with --arch");
	d->failed |= err || gpus.count == 0 || (d->installed && gpus.faults.kept);
	kp_gpus_fini(&gpus);
}

static void fail_label(struct detect *d, const struct gpu_kind *kind)
{
	report_error(NULL, "%s: its family is not known", kind->arch);
	d->failed = true;
}

/*
 * Returns the label of item I in names; NULL: it has none, or an earlier item has the
 * same.
 */
static const char *new_label(struct detect *d, size_t i)
{
	const char *label = gpu_names_label(&d->names, &d->kinds.items[i]);

	if (!label) {
		fail_label(d, &d->kinds.items[i]);
		return NULL;
	}
	for (size_t k = 0; k < i; k++) {
		const char *other = gpu_names_label(&d->names, &d->kinds.items[k]);

		if (other && strcmp(other, label) == 0)
			return NULL;
	}
	return label;
}

/* Whether no item before I has the extra of LABEL: settings of features share one. */
static bool is_new_extra(const struct detect *d, size_t i, const char *label)
{
	char part[GPU_NAME_PART_MAX], other[GPU_NAME_PART_MAX];

	gpu_extra_part(label, part);
	for (size_t k = 0; k < i; k++) {
		label = gpu_names_label(&d->names, &d->kinds.items[k]);
		if (!label)
			continue;
		gpu_extra_part(label, other);
		if (strcmp(part, other) == 0)
			return false;
	}
	return true;
}

/* --- text ------------------------------------------------------------------------- */

/* What is known of a kind of GPU. */
struct kind_facts {
	const char *arch, *subfamily, *family, *series, *generic;
};

static const struct row rows[] = {
	ROW("arch", ROW_LINE | ROW_JSON, struct kind_facts, arch),
	ROW("subfamily", ROW_LINE | ROW_JSON | ROW_NONE, struct kind_facts, subfamily),
	ROW("family", ROW_LINE | ROW_JSON | ROW_NONE, struct kind_facts, family),
	ROW("series", ROW_LINE | ROW_JSON | ROW_NONE, struct kind_facts, series),
	ROW("generic", ROW_LINE | ROW_JSON | ROW_NONE, struct kind_facts, generic),
};

static struct kind_facts facts_of(const struct gpu_kind *kind)
{
	const struct gpu_subfamily *s = kind->subfamily;

	return (struct kind_facts){kind->arch, s ? s->name : NULL, s ? s->family : NULL,
				   s ? s->series : NULL, gpu_kind_generic(kind)};
}

static void print_name(char *name)
{
	puts(name);
	free(name);
}

static void print_names(struct detect *d, size_t i)
{
	const char *label = new_label(d, i);

	if (!label)
		return;
	if (d->names.group)
		print_name(gpu_archive_name(&d->names, label));
	if (d->names.package)
		print_name(gpu_package_name(&d->names, label));
	if (d->names.dist && is_new_extra(d, i, label))
		print_name(gpu_wheel_name(&d->names, label));
	if (!d->names.group && !d->names.package && !d->names.dist)
		puts(label);
}

/* Print the archives that KIND needs, and report the groups that have none. */
static void print_served(struct detect *d, const struct gpu_kind *kind)
{
	const struct gpu_served *served = &d->served;

	for (size_t i = 0; i < served->archives.count; i++) {
		if (!gpu_served_by(served, i, kind))
			continue;
		printf("%s ", kind->arch);
		report_text(kp_archive_path(served->archives.items[i]));
		putchar('\n');
	}
	for (size_t g = 0; g < served->n_groups; g++) {
		const struct kp_span *group = &served->groups[g];

		if (gpu_served_group(served, g, kind))
			continue;
		report_error(NULL, "%s: missing: %.*s_%s.kpack", kind->arch,
			     (int)group->size, (const char *)group->data, kind->arch);
		d->failed = true;
	}
}

static void print_each(struct detect *d)
{
	const struct gpu_names *n = &d->names;

	for (size_t i = 0; i < d->kinds.count; i++) {
		struct kind_facts facts = facts_of(&d->kinds.items[i]);

		if (d->with_archives)
			print_served(d, &d->kinds.items[i]);
		else if (n->family || n->group || n->package || n->dist)
			print_names(d, i);
		else
			rows_line(rows, KP_COUNT(rows), &facts, ROW_LINE, ' ');
	}
}

/* Print "torch[device-gfx942,device-gfx1100]" for pip, or the packages in a line for apt. */
static void print_installable(struct detect *d)
{
	size_t n = 0;

	for (size_t i = 0; i < d->kinds.count; i++) {
		const char *label = new_label(d, i);

		if (!label || (d->pip && !is_new_extra(d, i, label)))
			continue;
		if (d->pip) {
			char part[GPU_NAME_PART_MAX];

			gpu_extra_part(label, part);
			printf("%s%sdevice-%s", n ? "" : d->names.dist, n ? "," : "[",
			       part);
		} else {
			char *name = gpu_package_name(&d->names, label);

			printf("%s%s", n ? " " : "", name);
			free(name);
		}
		n++;
	}
	if (n)
		puts(d->pip ? "]" : "");
}

/* --- JSON ------------------------------------------------------------------------- */

/* Set NAME to the string TEXT, which is on the heap. */
static void set_text(json_t *o, const char *name, char *text)
{
	json_object_set_new(o, name, json_string(text));
	free(text);
}

/* Set the names for KIND, whose label is LABEL. */
static void set_names(const struct detect *d, json_t *o, const char *label)
{
	char part[GPU_NAME_PART_MAX];

	if (d->names.group)
		set_text(o, "archive", gpu_archive_name(&d->names, label));
	if (d->names.package)
		set_text(o, "package", gpu_package_name(&d->names, label));
	if (d->names.dist)
		set_text(o, "wheel", gpu_wheel_name(&d->names, label));
	gpu_extra_part(label, part);
	json_object_set_new(o, "extras",
			    json_pack("[o, s]", json_sprintf("device-%s", part), part));
}

static void set_served(struct detect *d, json_t *o, const struct gpu_kind *kind)
{
	const struct gpu_served *served = &d->served;
	json_t *archives = json_array(), *missing = json_array();

	for (size_t i = 0; i < served->archives.count; i++)
		if (gpu_served_by(served, i, kind))
			json_array_append_new(archives,
					      report_json_text(kp_archive_path(
						      served->archives.items[i])));
	for (size_t g = 0; g < served->n_groups; g++) {
		if (gpu_served_group(served, g, kind))
			continue;
		json_array_append_new(missing, report_json_span(served->groups[g]));
		d->failed = true;
	}
	json_object_set_new(o, "archives", archives);
	json_object_set_new(o, "missing", missing);
}

static void print_json(struct detect *d)
{
	struct report_array array = {0};

	for (size_t i = 0; i < d->kinds.count; i++) {
		const struct gpu_kind *kind = &d->kinds.items[i];
		const char *label = gpu_names_label(&d->names, kind);
		struct kind_facts facts = facts_of(kind);
		json_t *o = rows_object(rows, KP_COUNT(rows), &facts);

		if (label)
			set_names(d, o, label);
		else
			fail_label(d, kind);
		if (d->with_archives)
			set_served(d, o, kind);
		report_array_add(&array, o);
	}
	report_array_end(&array);
}

/* --- installed packages -------------------------------------------------------------- */

/* A machine has a few thousand packages, of some kilobytes each. */
enum { STATUS_MAX = 1 << 28 };

static kpack_error_t read_status(const char *path, struct gpu_installed *out,
				 struct kpackx_error *why)
{
	uint8_t *data;
	size_t size;

	KP_TRY(below_file_load(path, STATUS_MAX, "the list of packages", &data, &size,
			       why));
	gpu_installed_parse((struct kp_span){data, size}, out);
	free(data);
	return KPACK_SUCCESS;
}

/* As the file has them, the fields that gpu_installed_parse takes. */
#define FIELD(name) name ": ${" name "}\\n"
static const char packages_format[] = FIELD("Package") FIELD("Status") FIELD("Enhances")
	FIELD("Suggests") FIELD("X-Rocm-Gpu-Architecture") "\\n";

static kpack_error_t ask_dpkg(struct gpu_installed *out, struct kpackx_error *why)
{
	static const char program[] = "/usr/bin/dpkg-query";
	char name[] = "dpkg-query", show[] = "-W", *format;
	char *argv[] = {name, show, NULL, NULL}, *data = NULL;
	size_t size = 0, cap = 0, n = 1;
	struct program p;
	int err;

	argv[2] = format = xasprintf("-f=%s", packages_format);
	err = program_start(&p, program, argv);
	free(format);
	if (err)
		return kp_fail(why, KPACK_ERROR_IO_ERROR, "%s", strerror(err));
	while (n && size < STATUS_MAX) {
		xgrow(&data, size + 65535, &cap, 1);
		n = fread(data + size, 1, cap - size, p.output);
		size += n;
	}
	err = program_end(&p);
	if (!err)
		gpu_installed_parse((struct kp_span){(uint8_t *)data, size}, out);
	free(data);
	return err ? kp_fail(why, KPACK_ERROR_IO_ERROR, "failed") : KPACK_SUCCESS;
}

static void print_advice(const struct detect *d, const char *what, const char *name,
			 const char **between)
{
	if (d->apt) /* "apt install NAME-" removes NAME */
		printf("%s%s%s", *between, name, *what == 'r' ? "-" : "");
	else
		printf("%s %s\n", what, name);
	*between = " ";
}

/* Print the packages that the GPUs lack, and those that are for other GPUs only. */
static void print_installed(struct detect *d)
{
	const char *between = "";
	struct gpu_installed list = {0};
	struct kpackx_error why = {0};

	/* packages of a GPU that was not found must not go */
	if (d->kinds.count == 0 || d->failed)
		return;
	if (d->status ? read_status(d->status, &list, &why) : ask_dpkg(&list, &why)) {
		report_why(d->status ? d->status : "dpkg-query", &why);
		d->failed = true;
		return;
	}
	for (size_t i = 0; i < list.count; i++) {
		for (size_t k = 0; k < d->kinds.count; k++) {
			char *name = gpu_installed_lacks(&list, &list.items[i],
							 &d->kinds.items[k]);

			if (name)
				print_advice(d, "install", name, &between);
			d->failed |= name != NULL;
			free(name);
		}
		if (list.items[i].base &&
		    !gpu_installed_serves(&list.items[i], &d->kinds))
			print_advice(d, "remove", list.items[i].name, &between);
	}
	if (d->apt && *between)
		putchar('\n');
	gpu_installed_fini(&list);
}

/* --- the command ------------------------------------------------------------------ */

static int detect_gpus(struct detect *d, int n, char **operands)
{
	if (!d->chosen || d->kinds.find)
		read_gpus(d);
	d->with_archives = n > 0;
	if (n)
		gpu_served_open(&d->served, n, operands, d->names.group);
	d->failed |= d->served.archives.failed || (n && d->served.archives.count == 0);
	if (d->installed)
		print_installed(d);
	else if (d->json)
		print_json(d);
	else if (d->pip || d->apt)
		print_installable(d);
	else
		print_each(d);
	return d->failed ? EXIT_FAULT : EXIT_OK;
}

/* Returns an exit status, or -1 to go on. */
static int check_options(const struct detect *d, const struct options *o)
{
	bool operands = optind < o->argc;
	struct kpackx_error why = {0};

	if (gpu_names_check(&d->names, &why))
		return options_usage(o->help, "%s", why.text);
	if (d->chosen && !d->kinds.find && d->topology)
		return options_usage(o->help, "--arch and --topology exclude each other, "
					      "except for --arch auto");
	if (d->pip + d->apt + d->json + (operands && !d->json) > 1)
		return options_usage(
			o->help, "--pip, --apt, --json and archives exclude each other");
	if (d->pip && !d->names.dist)
		return options_usage(o->help, "--pip needs --dist");
	if (d->apt && !d->names.package && !d->installed)
		return options_usage(o->help, "--apt needs --package or --installed");
	if (d->status && !d->installed)
		return options_usage(o->help, "--dpkg-status needs --installed");
	if (d->installed && (d->pip || d->json || operands || d->names.family ||
			     d->names.group || d->names.package || d->names.dist))
		return options_usage(
			o->help,
			"--installed excludes names, archives, --pip and --json");
	return -1;
}

int cmd_detect(int argc, char **argv)
{
	struct options o = {.help = &cmd_detect_help, .argc = argc, .argv = argv};
	struct detect d = {0};
	int status = options_read(&o, &d);

	if (status < 0)
		status = check_options(&d, &o);
	if (status < 0)
		status = report_finish(detect_gpus(&d, argc - optind, argv + optind));
	gpu_served_close(&d.served);
	gpu_kinds_fini(&d.kinds);
	return status;
}
