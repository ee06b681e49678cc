/* SPDX-License-Identifier: MIT */
#include "report_html.h"
#include "report_legend.h"
#include "report_map.h"
#include "report_content_policy.h"
#include "report_style.h"
#include "report_text.h"

/* --- figures ------------------------------------------------------------------------ */

static void begin_figure(FILE *out, const char *name)
{
	fprintf(out, "<div><dt>%s</dt><dd>", name);
}

static void end_figure(FILE *out, const char *note)
{
	fprintf(out, "</dd>%s%s%s</div>\n", note ? "<dd class=\"note\">" : "",
		note ? note : "", note ? "</dd>" : "");
}

static void figure_number(FILE *out, const char *name, uint64_t n, const char *note)
{
	begin_figure(out, name);
	page_number(out, n);
	end_figure(out, note);
}

static void figure_size(FILE *out, const char *name, uint64_t bytes, const char *note)
{
	begin_figure(out, name);
	page_size_exact(out, bytes);
	end_figure(out, note);
}

static void figure_ratio(FILE *out, const struct page_figures *f)
{
	begin_figure(out, "Ratio");
	page_ratio(out, f->decoded, f->stored);
	end_figure(out, "decoded to stored");
}

/* Whether a part of the input is packed and another is not. */
static bool is_mixed(const struct page_input *in)
{
	return in->measured && in->archive_bytes > in->measured_bytes;
}

static void figure_host(FILE *out, const struct page_input *in)
{
	bool plain = in->measured && !is_mixed(in);

	if (in->trees)
		figure_size(out, plain ? "Files" : "Host files", in->host_bytes,
			    plain ? "as they are, not packed" : "all but the archives");
}

static void print_figures(FILE *out, const struct page *page)
{
	const struct page_figures *f = page->figures;
	const struct page_input *in = page->in;

	fputs("<dl class=\"figures\">\n", out);
	figure_size(out, "Stored", f->stored, "compressed code");
	figure_size(out, "Decoded", f->decoded, "as programs load it");
	figure_ratio(out, f);
	if (page->choice) {
		figure_size(out, "Kept", page->choice->kept.stored,
			    "what the GPUs can load, stored");
		figure_size(out, "Freed", page->choice->freed.stored,
			    "stored code of other GPUs");
	}
	figure_size(out, "Dedup saved", f->saved, "bytes that several entries share");
	figure_size(out, "Still twice", f->saving, "equal bytes in several archives");
	figure_host(out, in);
	figure_number(out, "Architectures", f->arches.count, NULL);
	figure_number(out, "Binaries", f->binaries, "with device code");
	figure_number(out, "Objects", f->n_objects, "stored");
	figure_number(out, "Entries", f->n_items, "names for them");
	figure_number(out, "Archives", in->count, NULL);
	if (in->trees)
		figure_number(out, "Other files", in->host_files, NULL);
	fputs("</dl>\n", out);
}

/* --- sentences ---------------------------------------------------------------------- */

static void say_summary(FILE *out, const struct page *page)
{
	const struct page_figures *f = page->figures;

	fputs("<p class=\"lead\">", out);
	if (f->n_items == 0) {
		fputs("There is no device code in it.</p>\n", out);
		return;
	}
	page_size_exact(out, f->decoded);
	fputs(" of device code for ", out);
	page_number(out, f->arches.count);
	fprintf(out, " architecture%s, stored in ", f->arches.count == 1 ? "" : "s");
	page_size_exact(out, f->stored);
	fputs(". The largest part is ", out);
	page_text(out, f->libraries.items[0].name, PAGE_LABEL);
	fputs(" with ", out);
	page_share(out, f->libraries.items[0].stored, f->stored);
	fputs(".</p>\n", out);
}

static void say_choice(FILE *out, const struct page *page)
{
	const struct page_choice *c = page->choice;

	if (!c || page->figures->n_items == 0)
		return;
	fputs("<p>For ", out);
	page_text(out, kp_span_str(c->gpus), PAGE_NAME);
	fputs(", ", out);
	page_size_exact(out, c->kept.decoded);
	fputs(" of it stay, stored in ", out);
	page_size_exact(out, c->kept.stored);
	fputs(". Without the rest, ", out);
	page_size_exact(out, c->freed.decoded);
	fputs(" of code would be freed, stored in ", out);
	page_size_exact(out, c->freed.stored);
	fputs(".</p>\n", out);
}

static void say_measured(FILE *out, const struct page *page)
{
	const struct page_input *in = page->in;
	uint64_t rest =
		in->host_bytes > in->coded_bytes ? in->host_bytes - in->coded_bytes : 0;
	uint64_t after = rest;

	if (!in->measured || page->figures->n_items == 0)
		return;
	page_add(&after, in->archive_bytes);
	if (is_mixed(in)) {
		fputs("<p>Not all of it is packed yet: ", out);
		page_number(out, in->coded_files);
		fprintf(out, " file%s measured by packing. Besides archives of ",
			in->coded_files == 1 ? " was" : "s were");
		page_size_exact(out, in->archive_bytes - in->measured_bytes);
		fputs(" files take ", out);
	} else {
		fputs("<p>It is not packed yet; these figures were measured by "
		      "packing it. Its files take ",
		      out);
	}
	page_size_exact(out, in->host_bytes);
	fputs(" now. Packed, they would take about ", out);
	page_size_exact(out, after);
	fputs(": ", out);
	page_size_exact(out, rest);
	fputs(" of files without their device code, and ", out);
	page_size_exact(out, in->archive_bytes);
	fputs(" of archives.</p>\n", out);
}

/* The family that saves the most; the family of all GPUs only if there is no other. */
static const struct page_family *best_family(const struct page_families *all)
{
	const struct page_family *best = NULL;

	for (size_t i = 0; i < all->count; i++)
		if (!best || (best->all && !all->items[i].all))
			best = &all->items[i];
	return best;
}

static void say_family(FILE *out, const struct page *page)
{
	const struct page_family *f = best_family(page->families);

	if (!f)
		return;
	if (f->apart == f->together) {
		fputs("<p>Archives for families of GPUs would save nothing: their "
		      "architectures have no code in common.</p>\n",
		      out);
		return;
	}
	fputs("<p>One archive for ", out);
	page_text(out, kp_span_str(f->name), PAGE_LABEL);
	fputs(" instead of ", out);
	page_number(out, f->n_members);
	fputs(" would take ", out);
	page_size_exact(out, f->together);
	fputs(" instead of ", out);
	page_size_exact(out, f->apart);
	fputs(": the distribution saves ", out);
	page_size_exact(out, f->apart - f->together);
	fputs(", and a user with one of these GPUs downloads ", out);
	page_size_exact(out, f->together);
	fputs(" instead of ", out);
	page_size_exact(out, f->most);
	fputs(f->least == f->most ? ".</p>\n" : " at most.</p>\n", out);
}

static void print_faults(FILE *out, const struct page_input *in)
{
	enum { MOST = 100 };
	const struct kp_faults *faults = &in->faults;
	size_t n = faults->kept < MOST ? faults->kept : MOST;

	if (faults->counted == 0)
		return;
	fputs("<section id=\"faults\"><h2>Faults</h2>\n<p>Not everything could be read; "
	      "what "
	      "could be is shown.</p>\n<ul>\n",
	      out);
	for (size_t i = 0; i < n; i++) {
		fputs("<li>", out);
		page_words(out, faults->items[i].text);
		fputs("</li>\n", out);
	}
	if (faults->counted > n)
		fprintf(out, "<li>and %zu more</li>\n", faults->counted - n);
	fputs("</ul></section>\n", out);
}

/* --- maps --------------------------------------------------------------------------- */

/* Maps for wide and for narrow screens; small boxes are shown as one. */
static const struct page_map maps[] = {
	{"stored-wide", false, 1200, 640, 1.0 / 1200},
	{"stored-tall", false, 400, 640, 1.0 / 300},
	{"decoded-wide", true, 1200, 640, 1.0 / 1200},
	{"decoded-tall", true, 400, 640, 1.0 / 300},
};

static void print_maps(FILE *out, const struct page *page)
{
	if (page->figures->n_items == 0)
		return;
	page_legend_patterns(out);
	fputs("<section id=\"maps\"><h2>What is big</h2>\n"
	      "<p>A box for each library, in it one for each architecture. "
	      "The area stands for bytes.</p>\n"
	      "<input type=\"radio\" name=\"by\" id=\"by-stored\" checked>"
	      "<label for=\"by-stored\">Stored</label>\n"
	      "<input type=\"radio\" name=\"by\" id=\"by-decoded\">"
	      "<label for=\"by-decoded\">Decoded</label>\n<div class=\"maps\">\n",
	      out);
	for (size_t i = 0; i < KP_COUNT(maps); i++)
		page_map(out, page->figures, &maps[i]);
	fputs("</div>\n", out);
	page_legend(out, page->figures);
	fputs("</section>\n", out);
}

/* --- page --------------------------------------------------------------------------- */

static kpack_error_t print_head(FILE *out, const struct page *page,
				struct kpackx_error *why)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
	      out);
	KP_TRY(page_policy(out, page_style, page_script, why));
	fputs("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	      "<meta name=\"referrer\" content=\"no-referrer\">\n"
	      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>",
	      out);
	page_text(out, kp_span_str(page->title), PAGE_NAME);
	fprintf(out, " \u2013 kpack report</title>\n<style>%s</style>\n</head>\n",
		page_style);
	return KPACK_SUCCESS;
}

kpack_error_t page_html(FILE *out, const struct page *page, struct kpackx_error *why)
{
	KP_TRY(print_head(out, page, why));
	fputs("<body>\n<header><p class=\"kind\">kpack report</p>\n<h1>", out);
	page_text(out, kp_span_str(page->title), PAGE_NAME);
	fputs("</h1>\n", out);
	say_summary(out, page);
	say_choice(out, page);
	say_measured(out, page);
	say_family(out, page);
	fputs("</header>\n<main>\n", out);
	print_faults(out, page->in);
	print_figures(out, page);
	print_maps(out, page);
	page_tables(out, page);
	fprintf(out, "</main>\n<script>%s</script>\n</body>\n</html>\n", page_script);
	return KPACK_SUCCESS;
}
