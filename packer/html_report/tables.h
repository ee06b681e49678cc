/* SPDX-License-Identifier: MIT */
/* The tables of a page.  Each is whole without a script; a script lets them be sorted. */
#ifndef PACKER_HTML_REPORT_TABLES_H
#define PACKER_HTML_REPORT_TABLES_H

#include <stdio.h>
#include "families.h"
#include "figures.h"

/* All figures of a page. */
struct page {
	const char *title;
	const struct page_input *in;
	const struct page_figures *figures;
	const struct page_families *families;
};

void page_tables(FILE *out, const struct page *page);

/* Rows of a table that are shown; the rest is one row. */
enum { PAGE_ROWS = 300, PAGE_LARGEST = 100 };

#endif
