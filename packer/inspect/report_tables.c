/* SPDX-License-Identifier: MIT */
#include "report_tables.h"
#include "report_cell.h"
#include "report_text.h"

/* --- tables ------------------------------------------------------------------------- */

struct column {
	const char *name;
	bool number;
};

struct table {
	const char *id, *title;
	const char *text; /* a sentence below the title */
	const struct column *columns;
	int n_columns, sorted; /* SORTED: the column it is sorted by */
	size_t (*count)(const struct page *page);
	void (*row)(FILE *out, const struct page *page, size_t i);
	/* Print the rows from I on as one; NULL: only their number is printed. */
	void (*rest)(FILE *out, const struct page *page, size_t i);
	size_t most;
};

static void print_head(FILE *out, const struct table *t)
{
	fprintf(out,
		"<section id=\"s-%s\"><h2>%s</h2>\n<p>%s</p>\n<div class=\"scroll\" "
		"tabindex=\"0\" role=\"region\" aria-label=\"%s\"><table id=\"%s\">"
		"<caption>%s</caption>\n<thead><tr>",
		t->id, t->title, t->text, t->title, t->id, t->title);
	for (int i = 0; i < t->n_columns; i++)
		fprintf(out, "<th scope=\"col\"%s%s>%s</th>",
			t->columns[i].number ? " class=\"n\"" : "",
			i != t->sorted         ? ""
			: t->columns[i].number ? " aria-sort=\"descending\""
					       : " aria-sort=\"ascending\"",
			t->columns[i].name);
	fputs("</tr></thead>\n<tbody>\n", out);
}

static void print_rest(FILE *out, const struct page *page, const struct table *t,
		       size_t n)
{
	char text[64];

	snprintf(text, sizeof(text), "%zu others", n - t->most);
	fputs("<tfoot>", out);
	page_cell_head(out, kp_span_str(text));
	if (t->rest)
		t->rest(out, page, t->most);
	else
		fprintf(out, "<td colspan=\"%d\"></td>", t->n_columns - 1);
	fputs("</tr></tfoot>\n", out);
}

static void print_table(FILE *out, const struct page *page, const struct table *t)
{
	size_t n = t->count(page);

	if (n == 0)
		return;
	print_head(out, t);
	for (size_t i = 0; i < n && i < t->most; i++) {
		t->row(out, page, i);
		fputs("</tr>\n", out);
	}
	fputs("</tbody>\n", out);
	if (n > t->most)
		print_rest(out, page, t, n);
	fputs("</table></div></section>\n", out);
}

/* --- sums --------------------------------------------------------------------------- */

static void sum_cells(FILE *out, const struct page *page, const struct page_row *r)
{
	page_cell_number(out, r->objects);
	page_cell_number(out, r->entries);
	page_cell_size(out, r->decoded);
	page_cell_size(out, r->stored);
	page_cell_ratio(out, r->decoded, r->stored);
	page_cell_share(out, r->stored, page->figures->stored);
}

static struct page_row sum_from(const struct page_rows *rows, size_t i)
{
	struct page_row sum = {0};

	for (; i < rows->count; i++) {
		const struct page_row *r = &rows->items[i];

		page_add(&sum.objects, r->objects);
		page_add(&sum.entries, r->entries);
		page_add(&sum.decoded, r->decoded);
		page_add(&sum.stored, r->stored);
	}
	return sum;
}

static size_t arches_count(const struct page *page)
{
	return page->figures->arches.count;
}

static void arches_row(FILE *out, const struct page *page, size_t i)
{
	const struct page_row *r = &page->figures->arches.items[i];

	page_cell_head(out, r->name);
	sum_cells(out, page, r);
}

static void arches_rest(FILE *out, const struct page *page, size_t i)
{
	struct page_row sum = sum_from(&page->figures->arches, i);

	sum_cells(out, page, &sum);
}

static size_t libraries_count(const struct page *page)
{
	return page->figures->libraries.count;
}

static void libraries_row(FILE *out, const struct page *page, size_t i)
{
	const struct page_row *r = &page->figures->libraries.items[i];

	page_cell_head(out, r->name);
	fprintf(out, "<td>%s</td>", r->database ? "database" : "binary");
	sum_cells(out, page, r);
}

static void libraries_rest(FILE *out, const struct page *page, size_t i)
{
	struct page_row sum = sum_from(&page->figures->libraries, i);

	fputs("<td></td>", out);
	sum_cells(out, page, &sum);
}

static size_t databases_count(const struct page *page)
{
	return page->figures->databases.count;
}

static void databases_row(FILE *out, const struct page *page, size_t i)
{
	const struct page_row *r = &page->figures->databases.items[i];

	page_cell_head(out, r->name);
	page_cell_text(out, r->second);
	sum_cells(out, page, r);
}

static void databases_rest(FILE *out, const struct page *page, size_t i)
{
	struct page_row sum = sum_from(&page->figures->databases, i);

	fputs("<td></td>", out);
	sum_cells(out, page, &sum);
}

/* --- objects ------------------------------------------------------------------------ */

static void first_entry(const struct page *page, const struct page_object *o,
			struct kp_entry_info *e)
{
	kp_archive_entry(page->in->archives[o->archive].archive, o->entry, e);
}

static size_t largest_count(const struct page *page)
{
	return page->figures->n_objects;
}

static void largest_row(FILE *out, const struct page *page, size_t i)
{
	const struct page_figures *f = page->figures;
	const struct page_object *o = &f->objects[f->largest[i]];
	struct kp_entry_info e;

	first_entry(page, o, &e);
	page_cell_head(out, e.key);
	page_cell_text(out, e.arch);
	page_cell_number(out, o->entries);
	page_cell_size(out, o->size);
	page_cell_size(out, o->stored);
	page_cell_ratio(out, o->size, o->stored);
	page_cell_share(out, o->stored, f->stored);
}

static size_t twice_count(const struct page *page)
{
	return page->figures->n_twice;
}

static void twice_row(FILE *out, const struct page *page, size_t i)
{
	const struct page_twice *t = &page->figures->twice[i];
	const struct page_object *o = &page->figures->objects[t->first];
	struct kp_entry_info e;

	first_entry(page, o, &e);
	page_cell_head(out, e.key);
	page_cell_text(out, e.arch);
	page_cell_number(out, t->copies);
	page_cell_size(out, o->size);
	page_cell_size(out, o->stored);
	page_cell_size(out, t->saving);
}

/* --- families ----------------------------------------------------------------------- */

static size_t families_count(const struct page *page)
{
	return page->families->count;
}

static void family_members(FILE *out, const struct page *page,
			   const struct page_family *family)
{
	enum { MOST = 32 };

	fputs("<td>", out);
	for (size_t i = 0; i < family->n_members && i < MOST; i++) {
		fputs(i ? ", " : "", out);
		page_text(out, page->figures->arches.items[family->members[i]].name,
			  PAGE_LABEL);
	}
	if (family->n_members > MOST)
		fprintf(out, " and %zu more", family->n_members - MOST);
	fputs("</td>", out);
}

static void families_row(FILE *out, const struct page *page, size_t i)
{
	const struct page_family *f = &page->families->items[i];

	page_cell_head(out, kp_span_str(f->name));
	fprintf(out, "<td>%s</td>", f->kind);
	family_members(out, page, f);
	page_cell_size(out, f->apart);
	page_cell_size(out, f->together);
	page_cell_size(out, f->apart - f->together);
	page_cell_range(out, f->least, f->most);
	page_cell_range(out, f->together - f->most, f->together - f->least);
}

/* --- archives, faults --------------------------------------------------------------- */

static size_t archives_count(const struct page *page)
{
	return page->in->count;
}

static void archives_row(FILE *out, const struct page *page, size_t i)
{
	const struct page_archive *a = &page->in->archives[i];

	page_cell_head(out, kp_span_str(a->name));
	page_cell_number(out, kp_archive_entry_count(a->archive));
	page_cell_number(out, kp_archive_ordinal_count(a->archive));
	page_cell_size(out, a->bytes);
}

/* --- all ---------------------------------------------------------------------------- */

#define SUMS                                                                             \
	{"Objects", true}, {"Entries", true}, {"Decoded", true}, {"Stored", true},       \
		{"Ratio", true},                                                         \
	{                                                                                \
		"Share", true                                                            \
	}
#define N(columns) (int)(KP_COUNT(columns))

static const struct column arches_columns[] = {{"Architecture", false}, SUMS};
static const struct column libraries_columns[] = {
	{"Library", false}, {"Kind", false}, SUMS};
static const struct column databases_columns[] = {
	{"Library", false}, {"Role", false}, SUMS};
static const struct column largest_columns[] = {
	{"Name", false},  {"Architecture", false}, {"Entries", true}, {"Decoded", true},
	{"Stored", true}, {"Ratio", true},         {"Share", true}};
static const struct column twice_columns[] = {
	{"First name", false}, {"First architecture", false},
	{"Copies", true},      {"Decoded", true},
	{"Stored", true},      {"Would save", true}};
static const struct column families_columns[] = {{"Family", false},
						 {"By", false},
						 {"Architectures", false},
						 {"Apart", true},
						 {"Together", true},
						 {"Saves", true},
						 {"A user downloads now", true},
						 {"and more", true}};
static const struct column archives_columns[] = {
	{"Archive", false}, {"Entries", true}, {"Objects", true}, {"Size", true}};

static const struct table tables[] = {
	{"arches", "Architectures",
	 "What each architecture takes. Stored bytes that several entries share count "
	 "for "
	 "the first of them.",
	 arches_columns, N(arches_columns), 4, arches_count, arches_row, arches_rest,
	 PAGE_ROWS},
	{"libraries", "Libraries",
	 "Binaries by their path, and the files of each kernel database together.",
	 libraries_columns, N(libraries_columns), 5, libraries_count, libraries_row,
	 libraries_rest, PAGE_ROWS},
	{"databases", "Kernel databases",
	 "The files that libraries open by name, by what they are for.",
	 databases_columns, N(databases_columns), 5, databases_count, databases_row,
	 databases_rest, PAGE_ROWS},
	{"families", "Families",
	 "What one archive for several architectures would change: the distribution gets "
	 "smaller by what its members have in common; a user with one GPU downloads the "
	 "whole family.",
	 families_columns, N(families_columns), 5, families_count, families_row, NULL,
	 PAGE_ROWS},
	{"largest", "Largest objects", "One by one, with the first name of each.",
	 largest_columns, N(largest_columns), 4, largest_count, largest_row, NULL,
	 PAGE_LARGEST},
	{"twice", "Duplicates",
	 "The same bytes in several archives. Inside an archive they are stored once "
	 "already.",
	 twice_columns, N(twice_columns), 5, twice_count, twice_row, NULL, PAGE_LARGEST},
	{"archives", "Archives", "The files themselves, tables of contents included.",
	 archives_columns, N(archives_columns), -1, archives_count, archives_row, NULL,
	 PAGE_ROWS},
};

void page_tables(FILE *out, const struct page *page)
{
	for (size_t i = 0; i < KP_COUNT(tables); i++)
		print_table(out, page, &tables[i]);
}
