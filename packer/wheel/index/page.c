/* SPDX-License-Identifier: MIT */
#include "page.h"
#include <string.h>

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

static void put_escaped(FILE *out, const char *text)
{
	static const struct {
		char c;
		const char *entity;
	} table[] = {{'&', "&amp;"},
		     {'<', "&lt;"},
		     {'>', "&gt;"},
		     {'"', "&quot;"},
		     {'\'', "&#39;"}};

	for (; *text; text++) {
		size_t i = 0, n = sizeof(table) / sizeof(table[0]);

		while (i < n && table[i].c != *text)
			i++;
		if (i < n)
			fputs(table[i].entity, out);
		else
			fputc(*text, out);
	}
}

static void begin_page(FILE *out, const char *title)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	      "<meta name=\"pypi:repository-version\" content=\"1.0\">\n"
	      "<meta name=\"generator\" content=\"kpack index\">\n<title>",
	      out);
	put_escaped(out, title);
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
		put_escaped(out, w->requires_python);
		fputc('"', out);
	}
	/* not the older name, data-dist-info-metadata: pip 22.3 to 23.0 fail on it */
	fprintf(out, " data-core-metadata=\"sha256=%s\">", w->metadata);
	put_escaped(out, w->file);
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
		put_escaped(out, p->extras[i].file);
		fputs("</a><br>\n", out);
	}
	end_page(out);
}

void index_page_root(FILE *out, const struct index_wheel *wheels, size_t count)
{
	begin_page(out, "Simple index");
	for (size_t i = 0; i < count; i++)
		if (i == 0 || strcmp(wheels[i].project, wheels[i - 1].project) != 0)
			fprintf(out, "<a href=\"%s/\">%s</a><br>\n", wheels[i].project,
				wheels[i].project);
	end_page(out);
}
