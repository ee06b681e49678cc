/* SPDX-License-Identifier: MIT */
#include "report_cell.h"
#include <inttypes.h>
#include "report_text.h"

void page_cell_head(FILE *out, struct kp_span name)
{
	fputs("<tr><th scope=\"row\">", out);
	page_text(out, name, PAGE_NAME);
	fputs("</th>", out);
}

void page_cell_text(FILE *out, struct kp_span text)
{
	fputs("<td>", out);
	page_text(out, text, PAGE_NAME);
	fputs("</td>", out);
}

void page_cell_number(FILE *out, uint64_t n)
{
	fprintf(out, "<td class=\"n\" data-v=\"%" PRIu64 "\">", n);
	page_number(out, n);
	fputs("</td>", out);
}

void page_cell_size(FILE *out, uint64_t bytes)
{
	fprintf(out, "<td class=\"n\" data-v=\"%" PRIu64 "\" title=\"", bytes);
	page_number(out, bytes);
	fputs(" bytes\">", out);
	page_size(out, bytes);
	fputs("</td>", out);
}

void page_cell_ratio(FILE *out, uint64_t decoded, uint64_t stored)
{
	fprintf(out, "<td class=\"n\" data-v=\"%.4f\">",
		stored ? (double)decoded / (double)stored : 0.0);
	page_ratio(out, decoded, stored);
	fputs("</td>", out);
}

void page_cell_share(FILE *out, uint64_t part, uint64_t whole)
{
	double share = whole ? 100.0 * (double)part / (double)whole : 0.0;

	fprintf(out,
		"<td class=\"n b\" data-v=\"%" PRIu64
		"\"><svg class=\"bar\" viewBox=\"0 0 "
		"100 6\" preserveAspectRatio=\"none\" aria-hidden=\"true\"><rect "
		"width=\"%.2f\" height=\"6\"/></svg>",
		part, share);
	fputs("<span>", out);
	page_share(out, part, whole);
	fputs("</span></td>", out);
}

void page_cell_range(FILE *out, uint64_t least, uint64_t most)
{
	fprintf(out, "<td class=\"n\" data-v=\"%" PRIu64 "\">", most);
	if (least != most) {
		page_size_exact(out, least);
		fputs(" to ", out);
	}
	page_size_exact(out, most);
	fputs("</td>", out);
}
