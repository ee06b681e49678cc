/* SPDX-License-Identifier: MIT */
#include "report_text.h"
#include <inttypes.h>
#include <stdlib.h>
#include "packer/cli/markup.h"
#include "packer/cli/xalloc.h"
#include "packer/cli/report.h"
#include "core/base/text.h"

static bool inside_character(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/* Drop the middle of TEXT: the two ends of a name distinguish it better. */
static char *shorten_text(char *text, size_t most)
{
	size_t n = strlen(text), head = most / 2, tail = n - most / 2;
	char *out;

	if (n <= most)
		return text;
	while (head && inside_character(text[head]))
		head--;
	while (inside_character(text[tail]))
		tail++;
	out = xasprintf("%.*s\u2026%s", (int)head, text, text + tail);
	free(text);
	return out;
}

char *page_shortened(struct kp_span name, size_t most)
{
	char *text = kp_text_escape_new(name);

	if (!text)
		xalloc_fail(0);
	return shorten_text(text, most);
}

void page_text(FILE *out, struct kp_span name, size_t most)
{
	char *text = page_shortened(name, most);

	markup_put(out, kp_span_str(text));
	free(text);
}

void page_words(FILE *out, const char *text)
{
	char *shown = kp_message_escape_new(kp_span_str(text));

	if (!shown)
		xalloc_fail(0);
	markup_put(out, kp_span_str(shown));
	free(shown);
}

void page_number(FILE *out, uint64_t n)
{
	char text[24];
	int digits = snprintf(text, sizeof(text), "%" PRIu64, n);

	for (int i = 0; i < digits; i++) {
		if (i && (digits - i) % 3 == 0)
			putc(',', out);
		putc(text[i], out);
	}
}

void page_size(FILE *out, uint64_t bytes)
{
	char text[24];

	fputs(report_size(bytes, text), out);
}

void page_size_exact(FILE *out, uint64_t bytes)
{
	fputs("<span title=\"", out);
	page_number(out, bytes);
	fputs(" bytes\">", out);
	page_size(out, bytes);
	fputs("</span>", out);
}

void page_ratio(FILE *out, uint64_t decoded, uint64_t stored)
{
	if (stored)
		fprintf(out, "%.1f", (double)decoded / (double)stored);
	else
		fputs("-", out);
}

void page_share(FILE *out, uint64_t part, uint64_t whole)
{
	fprintf(out, "%.1f%%", whole ? 100.0 * (double)part / (double)whole : 0.0);
}
