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
#include "core/base/order.h"
#include "packer/command.h"
#include "packer/files/below.h"
#include "packer/files/target.h"
#include "packer/inspect/report.h"

struct args {
	const char *output;
	const char *title;
	struct arch_filter filter;
	bool json, quiet;
};

/* Where the argument of an option goes. */
#define AT(member) OPTION_PLACE(struct args, member)

static const struct option_help options[] = {
	{'o', "output", "FILE", "write a page to FILE; -: standard output", AT(output)},
	{0, "title", "TEXT", "its title (the operands' names)", AT(title)},
	{0, "arch", "LIST",
	 "also the code that stays for these GPUs; auto: this machine's",
	 OPTION_TAKE(struct args, filter, arch_filter_take)},
	{0, "json", NULL, "print the figures as JSON", AT(json)},
	{'q', "quiet", NULL, "no progress and no notes", AT(quiet)},
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

static const struct row figure_rows[] = {
	ROW("architectures", ROW_JSON, struct report_figures, arches.count),
	ROW("binaries", ROW_JSON, struct report_figures, binaries),
	ROW("objects", ROW_JSON, struct report_figures, n_objects),
	ROW("entries", ROW_JSON, struct report_figures, n_entries),
	ROW("decoded", ROW_JSON, struct report_figures, decoded),
	ROW("stored", ROW_JSON, struct report_figures, stored),
	ROW("shared", ROW_JSON, struct report_figures, shared),
	ROW("saved", ROW_JSON, struct report_figures, saved),
	ROW("saving", ROW_JSON, struct report_figures, saving),
};

static const struct row sum_rows[] = {
	ROW("objects", ROW_JSON, struct report_row, objects),
	ROW("entries", ROW_JSON, struct report_row, entries),
	ROW("decoded", ROW_JSON, struct report_row, decoded),
	ROW("stored", ROW_JSON, struct report_row, stored),
};

static const struct row cell_rows[] = {
	ROW("arch", ROW_JSON, struct report_row, second),
	ROW("decoded", ROW_JSON, struct report_row, decoded),
	ROW("stored", ROW_JSON, struct report_row, stored),
};

static const struct row family_rows[] = {
	ROW("apart", ROW_JSON, struct report_family, apart),
	ROW("together", ROW_JSON, struct report_family, together),
	ROW("least", ROW_JSON, struct report_family, least),
	ROW("most", ROW_JSON, struct report_family, most),
};

static const struct row object_rows[] = {
	ROW("entries", ROW_JSON, struct report_object, entries),
	ROW("decoded", ROW_JSON, struct report_object, size),
	ROW("stored", ROW_JSON, struct report_object, stored),
};

static const struct row duplicate_rows[] = {
	ROW("copies", ROW_JSON, struct report_duplicate, copies),
	ROW("saving", ROW_JSON, struct report_duplicate, saving),
};

/* The sums of R, whose name is called NAME. */
static json_t *named_json(const struct report_row *r, const char *name)
{
	json_t *row = json_pack("{so}", name, report_json_span(r->name));

	rows_add(row, ROWS(sum_rows), r);
	return row;
}

/* The sums of a library, and its sums for each architecture. */
static json_t *library_json(const struct report_figures *f, const struct report_row *r)
{
	json_t *row = named_json(r, "library"), *arches = json_array();
	/* what it stores for each architecture: cells are sorted by library */
	size_t at = kp_lower_bound(f->cells.items, f->cells.count, r,
				   KP_BY_SPAN(struct report_row, name),
				   KP_BY_NUMBER(struct report_row, database));

	for (; at < f->cells.count; at++) {
		const struct report_row *cell = &f->cells.items[at];

		if (cell->database != r->database || !kp_span_eq(cell->name, r->name))
			break;
		json_array_append_new(arches, rows_object(ROWS(cell_rows), cell));
	}
	json_object_set_new(row, "database", json_boolean(r->database));
	json_object_set_new(row, "arches", arches);
	return row;
}

/* A stored object is shown by its first entry. */
static json_t *object_json(const struct report_input *in, const struct report_object *o)
{
	const struct report_archive *a = &in->archives[o->archive];
	struct kp_entry_info e;
	json_t *row;

	kp_archive_entry(a->archive, o->entry, &e);
	row = json_pack("{so so so}", "archive", report_json_text(a->name), "key",
			report_json_span(e.key), "arch", report_json_span(e.arch));
	rows_add(row, ROWS(object_rows), o);
	return row;
}

/*
 * All figures.  The page's script reads this object by the names in it: a name that changes here
 * changes in packer/inspect/report.js.
 */
static json_t *figures_json(const char *title, const struct report_input *in,
			    const struct report_figures *f)
{
	json_t *all = json_pack("{so sI}", "title", report_json_text(title),
				"archive_bytes", (json_int_t)in->archive_bytes);
	json_t *list;

	/* first the sums, then what was looked at, and how */
	rows_add(all, ROWS(figure_rows), f);
	json_object_set_new(all, "host",
			    in->trees ? json_pack("{sI sI}", "files",
						  (json_int_t)in->host_files, "bytes",
						  (json_int_t)in->host_bytes)
				      : json_null());
	json_object_set_new(all, "measured",
			    in->measured
				    ? json_pack("{sI sI sI}", "files",
						(json_int_t)in->coded_files, "bytes",
						(json_int_t)in->coded_bytes, "packed",
						(json_int_t)in->measured_bytes)
				    : json_null());
	if (f->gpus) {
		json_object_set_new(all, "gpus", json_string(f->gpus));
		json_object_set_new(all, "kept", rows_object(ROWS(sum_rows), &f->kept));
		json_object_set_new(all, "freed", rows_object(ROWS(sum_rows), &f->freed));
	}
	/* the tables, each sorted by what it stores */
	json_object_set_new(all, "arches", list = json_array());
	for (size_t i = 0; i < f->arches.count; i++)
		json_array_append_new(list, named_json(&f->arches.items[i], "arch"));
	json_object_set_new(all, "libraries", list = json_array());
	for (size_t i = 0; i < f->libraries.count; i++)
		json_array_append_new(list, library_json(f, &f->libraries.items[i]));
	json_object_set_new(all, "databases", list = json_array());
	for (size_t i = 0; i < f->databases.count; i++) {
		const struct report_row *r = &f->databases.items[i];
		json_t *row = named_json(r, "library");

		json_object_set_new(row, "role", report_json_span(r->second));
		json_array_append_new(list, row);
	}
	json_object_set_new(all, "families", list = json_array());
	for (size_t i = 0; i < f->n_families; i++) {
		const struct report_family *family = &f->families[i];
		json_t *arches = json_array(), *row;

		for (size_t k = 0; k < family->n_members; k++)
			json_array_append_new(
				arches,
				report_json_span(
					f->arches.items[family->members[k]].name));
		row = json_pack("{so ss so}", "name", report_json_text(family->name),
				"by", family->kind, "arches", arches);
		rows_add(row, ROWS(family_rows), family);
		json_array_append_new(list, row);
	}
	/* the longest lists are cut: the page is for people, and kpack ls has all */
	json_object_set_new(all, "largest", list = json_array());
	for (size_t i = 0; i < f->n_objects && i < MOST_OBJECTS; i++)
		json_array_append_new(list, object_json(in, f->largest[i]));
	json_object_set_new(all, "duplicates", list = json_array());
	for (size_t i = 0; i < f->n_duplicates && i < MOST_OBJECTS; i++) {
		json_t *row = object_json(in, f->duplicates[i].first);

		rows_add(row, ROWS(duplicate_rows), &f->duplicates[i]);
		json_array_append_new(list, row);
	}
	json_object_set_new(all, "archives", list = json_array());
	for (size_t i = 0; i < in->count; i++) {
		const struct report_archive *a = &in->archives[i];

		json_array_append_new(
			list, json_pack("{so sI sI}", "name", report_json_text(a->name),
					"entries",
					(json_int_t)kp_archive_entry_count(a->archive),
					"bytes", (json_int_t)a->bytes));
	}
	json_object_set_new(all, "faults", list = json_array());
	for (size_t i = 0; i < in->faults.kept; i++)
		json_array_append_new(list,
				      report_json_message(in->faults.items[i].text));
	if (in->faults.counted > in->faults.kept)
		json_array_append_new(list,
				      json_sprintf("and %zu more",
						   in->faults.counted - in->faults.kept));
	return all;
}

/* --- the page ------------------------------------------------------------------------------ */

/*
 * Print 'sha256-...', by which a page's content policy allows TEXT to be its style or script.
 */
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
 * Write the template, with what its @NAMES@ stand for, to PATH, which is replaced when the page is
 * whole, or to standard output ("-", or a device).  In the JSON every "<" is an escape, because
 * "</script>" in a name would end the element that holds it.
 */
static kpack_error_t write_page(const char *path, json_t *figures,
				struct kpackx_error *why)
{
	KP_AUTO_FREE char *json = report_json_new(figures, JSON_COMPACT), *page = NULL;
	const char *from = report_page_html, *at;
	bool stream = true;
	size_t size;
	FILE *out = xmemstream(&page, &size);

	/* the template is ours, so that each @ has its partner */
	while ((at = strchr(from, '@'))) {
		const char *name = at + 1, *end = strchr(name, '@');
		struct kp_span word = {(const uint8_t *)name, (size_t)(end - name)};

		fwrite(from, 1, (size_t)(at - from), out);
		from = end + 1;
		if (kp_span_is(word, "STYLE_HASH"))
			put_policy_hash(out, report_page_css);
		else if (kp_span_is(word, "SCRIPT_HASH"))
			put_policy_hash(out, report_page_js);
		else if (kp_span_is(word, "STYLE"))
			fputs(report_page_css, out);
		else if (kp_span_is(word, "SCRIPT"))
			fputs(report_page_js, out);
		else
			for (const char *c = json; *c; c++)
				if (*c == '<')
					fputs("\\u003c", out);
				else
					putc(*c, out);
	}
	fputs(from, out);
	fclose(out);
	if (strcmp(path, "-") != 0)
		KP_TRY(output_open(path, &stream, why));
	if (!stream)
		return below_file_write(
			path, 0666, (struct kp_span){(const uint8_t *)page, size}, why);
	fwrite(page, 1, size, stdout); /* report_finish reports what goes wrong */
	return KPACK_SUCCESS;
}

/* --- tables -------------------------------------------------------------------------------- */

static void print_heading(const char *what)
{
	printf("%10s  %10s  %8s  %s\n", "stored", "decoded", "entries", what);
}

static void print_sums(const struct report_row *r, struct kp_span name)
{
	char stored[24], decoded[24];

	printf("%10s  %10s  %8" PRIu64 "  ", report_size(r->stored, stored),
	       report_size(r->decoded, decoded), r->entries);
	report_span(name);
	putchar('\n');
}

/* The tables have what the page shows first; the rest is in the page and in the JSON. */
static void print_tables(const struct report_input *in, const struct report_figures *f)
{
	struct report_row all = {
		.entries = f->n_entries, .decoded = f->decoded, .stored = f->stored};
	char size[24];

	print_heading("in all");
	print_sums(&all,
		   kp_span_str(in->measured ? "device code, as kpack pack would store it"
					    : "device code"));
	if (f->gpus) {
		print_sums(&f->kept, kp_span_str("for the GPUs of --arch"));
		print_sums(&f->freed, kp_span_str("for others only"));
	}
	if (f->saving)
		printf("%10s  are stored more than once, in several archives\n",
		       report_size(f->saving, size));
	putchar('\n');
	print_heading("architecture");
	for (size_t i = 0; i < f->arches.count; i++)
		print_sums(&f->arches.items[i], f->arches.items[i].name);
	putchar('\n');
	print_heading("library");
	for (size_t i = 0; i < f->libraries.count; i++)
		print_sums(&f->libraries.items[i], f->libraries.items[i].name);
}

/* --- the run ------------------------------------------------------------------------------- */

/*
 * What is not packed yet is packed for its figures, which takes time: a bar shows it.
 */
int cmd_report(int argc, char **argv)
{
	static struct args args;
	int n = options_parse(&cmd_report_help, argc, &argv, &args), status = EXIT_FAULT;
	bool quiet = args.quiet || args.json;
	KP_AUTO_FREE char *names = NULL;
	const char *title = args.title;
	struct report_input in;
	struct report_figures figures = {0};
	struct kpackx_error why = {0};

	arch_filter_check_known(&args.filter, &cmd_report_help);
	if (n == 0)
		options_usage(&cmd_report_help,
			      "ARCHIVE, DIR, TREE or LIBRARY is needed");
	if (args.output && !*args.output)
		options_usage(&cmd_report_help, "-o needs the name of a file");
	if (!title) {
		size_t size;
		FILE *out = xmemstream(&names, &size);

		/* the last components of the operands; of "." that of the directory it is */
		for (int i = 0; i < n; i++) {
			KP_AUTO_FREE char *path = xstrdup(argv[i]), *real = NULL;
			const char *name = basename(path);

			if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
				real = below_real(argv[i]);
				name = real ? basename(real) : name;
			}
			fprintf(out, "%s%s", i ? ", " : "", name);
		}
		fclose(out);
		title = names;
	}
	report_input_open(n, argv, quiet, &in);
	if (report_figures_open(&in, &args.filter, !quiet, &figures, &why)) {
		report_why(NULL, &why);
	} else if (args.output && !args.json &&
		   write_page(args.output, figures_json(title, &in, &figures), &why)) {
		report_why(args.output, &why);
	} else {
		if (args.json)
			report_json(figures_json(title, &in, &figures));
		else if (!args.output)
			print_tables(&in, &figures);
		status = in.faults.counted ? EXIT_FAULT : EXIT_OK;
	}
	report_figures_close(&figures);
	report_input_close(&in);
	return report_finish(status);
}
