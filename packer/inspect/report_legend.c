/* SPDX-License-Identifier: MIT */
#include "report_legend.h"
#include <stdlib.h>
#include "report_text.h"
#include "packer/cli/xalloc.h"

/* The number of colours, and of patterns over each. */
enum { COLOURS = 8, PATTERNS = PAGE_KEYS / COLOURS };

void page_legend_patterns(FILE *out)
{
	static const char *const shapes[PATTERNS] = {
		NULL,
		"<path d=\"M-2 2L2-2M0 8L8 0M6 10L10 6\"/>",
		"<path d=\"M-2 6L2 10M0 0L8 8M6-2L10 2\"/>",
		"<path d=\"M0 4H8\"/>",
	};

	fputs("<svg class=\"defs\" width=\"0\" height=\"0\" "
	      "aria-hidden=\"true\"><defs>\n",
	      out);
	for (int i = COLOURS; i < PAGE_KEYS; i++)
		fprintf(out,
			"<pattern id=\"p%d\" width=\"8\" height=\"8\" "
			"patternUnits=\"userSpaceOnUse\"><rect class=\"k%d\" width=\"8\" "
			"height=\"8\"/>%s</pattern>\n",
			i, i % COLOURS, shapes[i / COLOURS]);
	fputs("</defs></svg>\n", out);
}

void page_legend(FILE *out, const struct page_figures *f)
{
	size_t n = f->arches.count < PAGE_KEYS ? f->arches.count : PAGE_KEYS;

	fputs("<ul class=\"legend\" aria-label=\"Architectures\">\n", out);
	for (size_t i = 0; i < n; i++) {
		fprintf(out,
			"<li><svg width=\"14\" height=\"14\" aria-hidden=\"true\"><rect "
			"class=\"k%zu\" width=\"14\" height=\"14\" rx=\"2\"/></svg> ",
			i);
		page_text(out, f->arches.items[i].name, PAGE_LABEL);
		fputs(" <small>", out);
		page_size_exact(out, f->arches.items[i].stored);
		fputs("</small></li>\n", out);
	}
	if (f->arches.count > n)
		fprintf(out, "<li>and %zu more, in grey</li>\n", f->arches.count - n);
	fputs("</ul>\n", out);
}

/* --- keys --------------------------------------------------------------------------- */

static int by_name(const void *pa, const void *pb, void *arg)
{
	const struct page_row *rows = arg;

	return kp_span_cmp(rows[*(const uint32_t *)pa].name,
			   rows[*(const uint32_t *)pb].name);
}

static uint32_t key_of(const struct page_figures *f, const uint32_t *order,
		       struct kp_span arch)
{
	size_t low = 0, high = f->arches.count;

	while (high - low > 1) {
		size_t mid = low + (high - low) / 2;

		if (kp_span_cmp(f->arches.items[order[mid]].name, arch) <= 0)
			low = mid;
		else
			high = mid;
	}
	return order[low];
}

uint32_t *page_legend_keys(const struct page_figures *f)
{
	uint32_t *order = xmalloc(f->arches.count * sizeof(*order));
	uint32_t *keys = xmalloc(f->cells.count * sizeof(*keys));

	for (size_t i = 0; i < f->arches.count; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, f->arches.count, sizeof(*order), by_name, f->arches.items);
	for (size_t i = 0; i < f->cells.count; i++)
		keys[i] = key_of(f, order, f->cells.items[i].second);
	free(order);
	return keys;
}
