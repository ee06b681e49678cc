/* SPDX-License-Identifier: MIT */
/*
 * kpack report: show what is big.  The figures are one JSON object.  --json prints it; the page
 * of -o is the template packer/inspect/report.html with its style, its script, and that object,
 * from which the script draws everything; without either option the sums are printed as tables.
 */
#include <inttypes.h>
#include <libgen.h>
#include <openssl/evp.h>
#include <stdlib.h>

#include "core/base/file.h"
#include "core/base/order.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "packer/command.h"
#include "packer/files/below.h"
#include "packer/files/target.h"
#include "packer/inspect/report.h"

struct args {
	const char *output;
	const char *title;
	struct arch_filter filter;
	bool json, quiet;
	int n;
	char **operands;
};

static const struct option_help options[] = {
	{'o', "output", "FILE", "write a page to FILE; -: standard output",
	 OPTION_PLACE(struct args, output)},
	{0, "title", "TEXT", "its title (the operands' names)",
	 OPTION_PLACE(struct args, title)},
	{0, "arch", "LIST",
	 "also the code that stays for these GPUs; auto: this machine's",
	 OPTION_TAKE(struct args, filter, arch_filter_take)},
	{0, "json", NULL, "print the figures as JSON", OPTION_PLACE(struct args, json)},
	{'q', "quiet", NULL, "no progress and no notes",
	 OPTION_PLACE(struct args, quiet)},
	{0},
};

const struct command_help cmd_report_help = {
	"report",
	"[OPTION]... [-o FILE] ARCHIVE|DIR|TREE|LIBRARY...",
	"show what is big",
	options,
	"Prints tables; -o writes a page with a map of all of it, one HTML file that "
	"loads\n"
	"nothing from anywhere. What is not packed yet is measured by packing it into "
	"files\n"
	"without a name in $TMPDIR, or /var/tmp.",
};

/* --- the figures as JSON ----------------------------------------------------------------- */

/* The most objects, and the most duplicates, that are listed. */
enum { MOST_OBJECTS = 100 };

static json_t *number_json(uint64_t n)
{
	return json_integer(n > INT64_MAX ? INT64_MAX : (json_int_t)n);
}

static json_t *sums_json(const struct report_row *r)
{
	return json_pack("{so so so so}", "objects", number_json(r->objects), "entries",
			 number_json(r->entries), "decoded", number_json(r->decoded),
			 "stored", number_json(r->stored));
}

static json_t *named_json(const struct report_row *r, const char *name)
{
	json_t *row = json_pack("{so}", name, report_json_span(r->name)),
	       *sums = sums_json(r);

	json_object_update(row, sums);
	json_decref(sums);
	return row;
}

/* What the library R stores for each architecture: cells are sorted by library. */
static json_t *cells_json(const struct report_figures *f, const struct report_row *r)
{
	json_t *list = json_array();
	size_t at = kp_lower_bound(f->cells.items, f->cells.count, r,
				   KP_BY_SPAN(struct report_row, name),
				   KP_BY_NUMBER(struct report_row, database));

	for (; at < f->cells.count; at++) {
		const struct report_row *cell = &f->cells.items[at];

		if (cell->database != r->database || !kp_span_eq(cell->name, r->name))
			break;
		json_array_append_new(list,
				      json_pack("{so so so}", "arch",
						report_json_span(cell->second), "decoded",
						number_json(cell->decoded), "stored",
						number_json(cell->stored)));
	}
	return list;
}

static json_t *object_json(const struct report_input *in, const struct report_object *o)
{
	const struct report_archive *a = &in->archives[o->archive];
	struct kp_entry_info e;

	kp_archive_entry(a->archive, o->entry, &e);
	return json_pack("{so so so so so so}", "archive", report_json_text(a->name),
			 "key", report_json_span(e.key), "arch", report_json_span(e.arch),
			 "entries", number_json(o->entries), "decoded",
			 number_json(o->size), "stored", number_json(o->stored));
}

static json_t *families_json(const struct report_figures *f)
{
	json_t *list = json_array();

	for (size_t i = 0; i < f->n_families; i++) {
		const struct report_family *family = &f->families[i];
		json_t *arches = json_array();

		for (size_t k = 0; k < family->n_members; k++)
			json_array_append_new(
				arches,
				report_json_span(
					f->arches.items[family->members[k]].name));
		json_array_append_new(list,
				      json_pack("{so ss so so so so so}", "name",
						report_json_text(family->name), "by",
						family->kind, "arches", arches, "apart",
						number_json(family->apart), "together",
						number_json(family->together), "least",
						number_json(family->least), "most",
						number_json(family->most)));
	}
	return list;
}

static json_t *figures_json(const char *title, const struct report_input *in,
			    const struct report_figures *f)
{
	json_t *arches = json_array(), *libraries = json_array(),
	       *databases = json_array();
	json_t *largest = json_array(), *duplicates = json_array(),
	       *archives = json_array();
	json_t *faults = json_array(), *all;

	for (size_t i = 0; i < f->arches.count; i++)
		json_array_append_new(arches, named_json(&f->arches.items[i], "arch"));
	for (size_t i = 0; i < f->libraries.count; i++) {
		const struct report_row *r = &f->libraries.items[i];
		json_t *row = named_json(r, "library");

		json_object_set_new(row, "database", json_boolean(r->database));
		json_object_set_new(row, "arches", cells_json(f, r));
		json_array_append_new(libraries, row);
	}
	for (size_t i = 0; i < f->databases.count; i++) {
		json_t *row = named_json(&f->databases.items[i], "library");

		json_object_set_new(row, "role",
				    report_json_span(f->databases.items[i].second));
		json_array_append_new(databases, row);
	}
	for (size_t i = 0; i < f->n_objects && i < MOST_OBJECTS; i++)
		json_array_append_new(largest, object_json(in, f->largest[i]));
	for (size_t i = 0; i < f->n_duplicates && i < MOST_OBJECTS; i++) {
		const struct report_duplicate *d = &f->duplicates[i];
		json_t *row = object_json(in, d->first);

		json_object_set_new(row, "copies", number_json(d->copies));
		json_object_set_new(row, "saving", number_json(d->saving));
		json_array_append_new(duplicates, row);
	}
	for (size_t i = 0; i < in->count; i++)
		json_array_append_new(
			archives,
			json_pack("{so so so}", "name",
				  report_json_text(in->archives[i].name), "entries",
				  number_json(kp_archive_entry_count(
					  in->archives[i].archive)),
				  "bytes", number_json(in->archives[i].bytes)));
	for (size_t i = 0; i < in->faults.kept; i++)
		json_array_append_new(faults,
				      report_json_message(in->faults.items[i].text));
	if (in->faults.counted > in->faults.kept) {
		char more[64];

		snprintf(more, sizeof(more), "and %zu more",
			 in->faults.counted - in->faults.kept);
		json_array_append_new(faults, json_string(more));
	}
	all = json_pack(
		"{so so so so so so so so so so so so so}", "title",
		report_json_text(title), "archive_bytes", number_json(in->archive_bytes),
		"architectures", number_json(f->arches.count), "binaries",
		number_json(f->binaries), "objects", number_json(f->n_objects), "entries",
		number_json(f->n_entries), "decoded", number_json(f->decoded), "stored",
		number_json(f->stored), "shared", number_json(f->shared), "saved",
		number_json(f->saved), "saving", number_json(f->saving), "host",
		in->trees ? json_pack("{so so}", "files", number_json(in->host_files),
				      "bytes", number_json(in->host_bytes))
			  : json_null(),
		"measured",
		in->measured
			? json_pack("{so so so}", "files", number_json(in->coded_files),
				    "bytes", number_json(in->coded_bytes), "packed",
				    number_json(in->measured_bytes))
			: json_null());
	if (f->gpus) {
		json_object_set_new(all, "gpus", json_string(f->gpus));
		json_object_set_new(all, "kept", sums_json(&f->kept));
		json_object_set_new(all, "freed", sums_json(&f->freed));
	}
	json_object_set_new(all, "arches", arches);
	json_object_set_new(all, "libraries", libraries);
	json_object_set_new(all, "databases", databases);
	json_object_set_new(all, "families", families_json(f));
	json_object_set_new(all, "largest", largest);
	json_object_set_new(all, "duplicates", duplicates);
	json_object_set_new(all, "archives", archives);
	json_object_set_new(all, "faults", faults);
	return all;
}

/* --- the page ------------------------------------------------------------------------------ */

/* Print 'sha256-...', by which a page's content policy allows TEXT to be its style or script. */
static void put_policy_hash(FILE *out, const char *text)
{
	unsigned char hash[EVP_MAX_MD_SIZE], base64[2 * EVP_MAX_MD_SIZE];
	unsigned size = 0;

	if (!EVP_Digest(text, strlen(text), hash, &size, EVP_sha256(), NULL))
		xalloc_fail(0);
	EVP_EncodeBlock(base64, hash, (int)size);
	fprintf(out, "'sha256-%s'", (const char *)base64);
}

/*
 * Print the template, with what its @NAMES@ stand for.  In the JSON every "<" is an escape,
 * because "</script>" in a name would end the element that holds it.
 */
static void put_page(FILE *out, json_t *figures)
{
	char *json = report_json_new(figures, JSON_COMPACT);
	const char *from = report_page_html, *at, *end;

	while ((at = strchr(from, '@'))) {
		end = strchr(at + 1, '@');
		fwrite(from, 1, (size_t)(at - from), out);
		from = end + 1;
		if (strncmp(at, "@STYLE_HASH@", (size_t)(from - at)) == 0) {
			put_policy_hash(out, report_page_css);
		} else if (strncmp(at, "@SCRIPT_HASH@", (size_t)(from - at)) == 0) {
			put_policy_hash(out, report_page_js);
		} else if (strncmp(at, "@STYLE@", (size_t)(from - at)) == 0) {
			fputs(report_page_css, out);
		} else if (strncmp(at, "@SCRIPT@", (size_t)(from - at)) == 0) {
			fputs(report_page_js, out);
		} else {
			for (const char *c = json; *c; c++)
				if (*c == '<')
					fputs("\\u003c", out);
				else
					putc(*c, out);
		}
	}
	fputs(from, out);
	free(json);
}

static kpack_error_t write_page(const char *path, json_t *figures,
				struct kpackx_error *why)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = xmemstream(&text, &size);
	bool stream = true;
	kpack_error_t err = KPACK_SUCCESS;

	put_page(out, figures);
	fclose(out);
	if (strcmp(path, "-") != 0)
		err = output_open(path, &stream, why);
	if (!err && stream)
		fwrite(text, 1, size, stdout); /* report_finish reports what goes wrong */
	else if (!err)
		err = below_file_write(
			path, 0666, (struct kp_span){(const uint8_t *)text, size}, why);
	free(text);
	return err;
}

/* --- tables -------------------------------------------------------------------------------- */

static void print_sums(const struct report_row *r, const char *name)
{
	char stored[24], decoded[24];

	printf("%10s  %10s  %8" PRIu64 "  ", report_size(r->stored, stored),
	       report_size(r->decoded, decoded), r->entries);
	if (name)
		report_text(name);
	else
		report_span(r->name);
	putchar('\n');
}

static void print_rows(const char *title, const struct report_rows *rows)
{
	printf("\n%10s  %10s  %8s  %s\n", "stored", "decoded", "entries", title);
	for (size_t i = 0; i < rows->count; i++)
		print_sums(&rows->items[i], NULL);
}

static void print_tables(const struct report_input *in, const struct report_figures *f)
{
	struct report_row all = {
		.entries = f->n_entries, .decoded = f->decoded, .stored = f->stored};
	char size[24];

	printf("%10s  %10s  %8s  %s\n", "stored", "decoded", "entries", "in all");
	print_sums(&all, in->measured ? "device code, as kpack pack would store it"
				      : "device code");
	if (f->gpus) {
		print_sums(&f->kept, "for the GPUs of --arch");
		print_sums(&f->freed, "for others only");
	}
	if (f->saving)
		printf("%10s  are stored more than once, in several archives\n",
		       report_size(f->saving, size));
	print_rows("architecture", &f->arches);
	print_rows("library", &f->libraries);
}

/* --- the run ------------------------------------------------------------------------------- */

/* The last component of OPERAND's name; for "." that of the directory that it is. */
static char *name_of(const char *operand)
{
	char *path = xstrdup(operand), *name = basename(path), *real = NULL;

	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
		real = below_real(operand);
		name = real ? basename(real) : name;
	}
	name = xstrdup(name);
	free(path);
	free(real);
	return name;
}

static char *default_title(const struct args *args)
{
	char *title = xstrdup("");

	for (int i = 0; i < args->n; i++) {
		char *name = name_of(args->operands[i]);
		char *longer = xasprintf("%s%s%s", title, i ? ", " : "", name);

		free(name);
		free(title);
		title = longer;
	}
	return title;
}

static int run_report(struct args *args)
{
	bool printed = args->json || !args->output;
	struct report_input in;
	struct report_figures figures = {0};
	struct kpackx_error why = {0};
	char *title = args->title ? xstrdup(args->title) : default_title(args);
	int status = EXIT_FAULT;

	report_input_open(args->n, args->operands, args->quiet || printed, &in);
	if (report_figures_open(&in, &args->filter, !args->quiet && !printed, &figures,
				&why)) {
		report_why(NULL, &why);
		goto out;
	}
	if (args->json) {
		report_json(figures_json(title, &in, &figures));
	} else if (!args->output) {
		print_tables(&in, &figures);
	} else if (write_page(args->output, figures_json(title, &in, &figures), &why)) {
		report_why(args->output, &why);
		goto out;
	}
	status = in.faults.counted ? EXIT_FAULT : EXIT_OK;
out:
	report_figures_close(&figures);
	report_input_close(&in);
	free(title);
	return status;
}

int cmd_report(int argc, char **argv)
{
	struct options o = {.help = &cmd_report_help, .argc = argc, .argv = argv};
	struct args args = {0};
	int status = options_read(&o, &args);

	if (status >= 0)
		goto out;
	args.n = argc - optind;
	args.operands = argv + optind;
	status = EXIT_USAGE;
	if (arch_filter_check_known(&args.filter, o.help))
		goto out;
	if (args.n == 0)
		options_usage(o.help, "ARCHIVE, DIR, TREE or LIBRARY is needed");
	else if (args.output && !*args.output)
		options_usage(o.help, "-o needs the name of a file");
	else
		status = report_finish(run_report(&args));
out:
	arch_filter_fini(&args.filter);
	return status;
}
