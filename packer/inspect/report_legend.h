/* SPDX-License-Identifier: MIT */
/* The look of the architectures of a map: a colour, and a pattern over it. */
#ifndef PACKER_HTML_REPORT_LEGEND_H
#define PACKER_HTML_REPORT_LEGEND_H

#include <stdio.h>
#include "report_figures.h"

/* The first architectures have a look of their own; further ones are grey. */
enum { PAGE_KEYS = 32 };

/* Print the patterns, once for all maps. */
void page_legend_patterns(FILE *out);
/* Print the legend: the look of each architecture. */
void page_legend(FILE *out, const struct page_figures *f);

/* For each cell the row of its architecture, on the heap. */
uint32_t *page_legend_keys(const struct page_figures *f);

#endif
