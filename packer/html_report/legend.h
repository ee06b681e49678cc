/* SPDX-License-Identifier: MIT */
/* What distinguishes the architectures of a map: a colour, and a pattern over it. */
#ifndef PACKER_HTML_REPORT_LEGEND_H
#define PACKER_HTML_REPORT_LEGEND_H

#include <stdio.h>
#include "figures.h"

/* Architectures, by their place among them, with a look of their own; further ones are grey. */
enum { PAGE_KEYS = 32 };

/* The patterns, once for all maps. */
void page_legend_patterns(FILE *out);
/* Which is which. */
void page_legend(FILE *out, const struct page_figures *f);

/* Per cell the number of its architecture, its place among them, on the heap; NULL: no memory. */
uint32_t *page_legend_keys(const struct page_figures *f);

#endif
