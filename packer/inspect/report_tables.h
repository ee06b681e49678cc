/* SPDX-License-Identifier: MIT */
/* The tables of a page.  They are complete without the script, which only sorts them. */
#ifndef PACKER_HTML_REPORT_TABLES_H
#define PACKER_HTML_REPORT_TABLES_H

#include <stdio.h>
#include "report_families.h"
#include "report_figures.h"

/* All figures of a page. */
struct page {
	const char *title;
	const struct page_input *in;
	const struct page_figures *figures;
	const struct page_families *families;
	const struct page_choice *choice; /* NULL: of no GPUs */
};

void page_tables(FILE *out, const struct page *page);

/* The number of rows that a table shows; the rest is one row. */
enum { PAGE_ROWS = 300, PAGE_LARGEST = 100 };

#endif
