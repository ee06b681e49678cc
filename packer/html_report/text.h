/* SPDX-License-Identifier: MIT */
/*
 * Pieces of a page: names and numbers as HTML.  Nothing that a name holds can end the
 * element or the attribute it stands in.
 */
#ifndef PACKER_HTML_REPORT_TEXT_H
#define PACKER_HTML_REPORT_TEXT_H

#include <stdio.h>
#include "core/base/span.h"

/* Bytes of names in tables and in labels: longer ones lose their middle. */
enum { PAGE_NAME = 240, PAGE_LABEL = 96 };

/*
 * NAME, escaped as for a terminal and then for HTML; more than MOST bytes are shortened.
 * In element content and in double quotes.
 */
void page_text(FILE *out, struct kp_span name, size_t most);

/* TEXT, which is fit to be shown, escaped for HTML only. */
void page_markup(FILE *out, struct kp_span text);

/* A message, in which names are escaped already: a backslash in it stays. */
void page_words(FILE *out, const char *text);

/* As page_text, on the heap, not escaped for HTML yet; NULL: out of memory. */
char *page_shortened(struct kp_span name, size_t most);

/* 1234567 -> "1,234,567". */
void page_number(FILE *out, uint64_t n);
/* 1536 -> "1.5 KiB". */
void page_size(FILE *out, uint64_t bytes);
/* The same with the exact bytes in the title. */
void page_size_exact(FILE *out, uint64_t bytes);
/* 4.25 -> "4.2"; of nothing "-". */
void page_ratio(FILE *out, uint64_t decoded, uint64_t stored);
/* "12.5%" */
void page_share(FILE *out, uint64_t part, uint64_t whole);

#endif
