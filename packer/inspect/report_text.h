/* SPDX-License-Identifier: MIT */
/*
 * Print names and numbers as HTML.  No byte of a name can end the element or the
 * attribute it is in.
 */
#ifndef PACKER_HTML_REPORT_TEXT_H
#define PACKER_HTML_REPORT_TEXT_H

#include <stdio.h>
#include "core/base/span.h"

/* The most bytes of names in tables and in labels: longer names lose their middle. */
enum { PAGE_NAME = 240, PAGE_LABEL = 96 };

/*
 * Print NAME, escaped as for a terminal and then for HTML, and shortened to MOST bytes.
 * For element content and attributes in double quotes.
 */
void page_text(FILE *out, struct kp_span name, size_t most);

/* Print a message whose names are escaped already: its backslashes stay. */
void page_words(FILE *out, const char *text);

/* As page_text, but on the heap and not escaped for HTML. */
char *page_shortened(struct kp_span name, size_t most);

/* 1234567 -> "1,234,567". */
void page_number(FILE *out, uint64_t n);
/* 1536 -> "1.5 KiB". */
void page_size(FILE *out, uint64_t bytes);
/* As page_size, with the exact bytes in the title. */
void page_size_exact(FILE *out, uint64_t bytes);
/* 4.25 -> "4.2"; "-" if STORED is 0. */
void page_ratio(FILE *out, uint64_t decoded, uint64_t stored);
/* "12.5%" */
void page_share(FILE *out, uint64_t part, uint64_t whole);

#endif
