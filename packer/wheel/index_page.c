/* SPDX-License-Identifier: MIT */
#include "index_page.h"
#include <string.h>
#include "packer/cli/markup.h"

void index_page_url(FILE *out, const char *text)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789-._~/";

	for (; *text; text++) {
		if (strchr(plain, *text))
			fputc(*text, out);
		else
			fprintf(out, "%%%02X", (unsigned char)*text);
	}
}

static void put_text(FILE *out, const char *text)
{
	markup_put(out, kp_span_str(text));
}

static void begin_page(FILE *out, const char *title)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	      "<meta name=\"pypi:repository-version\" content=\"1.0\">\n"
	      "<meta name=\"generator\" content=\"kpack index\">\n<title>",
	      out);
	put_text(out, title);
	fputs("</title>\n</head>\n<body>\n", out);
}

static void end_page(FILE *out)
{
	fputs("</body>\n</html>\n", out);
}

static void put_wheel(FILE *out, const struct index_wheel *w, const char *above)
{
	fputs("<a href=\"", out);
	index_page_url(out, above);
	fputc('/', out);
	index_page_url(out, w->file);
	fprintf(out, "#sha256=%s\"", w->sha256);
	if (w->requires_python) {
		fputs(" data-requires-python=\"", out);
		put_text(out, w->requires_python);
		fputc('"', out);
	}
	/* not the older name, data-dist-info-metadata: pip 22.3 to 23.0 fail on it */
	fprintf(out, " data-core-metadata=\"sha256=%s\">", w->metadata);
	put_text(out, w->file);
	fputs("</a><br>\n", out);
}

void index_page_project(FILE *out, const struct index_project *p, const char *above)
{
	begin_page(out, p->wheels->project);
	for (size_t i = 0; i < p->count; i++)
		put_wheel(out, &p->wheels[i], above);
	for (size_t i = 0; i < p->n_extras; i++) {
		fputs("<a href=\"", out);
		index_page_url(out, p->extras[i].file);
		fprintf(out, "#sha256=%s\">", p->extras[i].sha256);
		put_text(out, p->extras[i].file);
		fputs("</a><br>\n", out);
	}
	end_page(out);
}

static void put_link(FILE *out, const char *project)
{
	fputs("<a href=\"", out);
	index_page_url(out, project);
	fputs("/\">", out);
	put_text(out, project);
	fputs("</a><br>\n", out);
}

void index_page_root(FILE *out, const struct index_wheel *wheels, size_t count)
{
	begin_page(out, "Simple index");
	for (size_t i = 0; i < count; i++)
		if (i == 0 || strcmp(wheels[i].project, wheels[i - 1].project) != 0)
			put_link(out, wheels[i].project);
	end_page(out);
}
