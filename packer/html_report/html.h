/* SPDX-License-Identifier: MIT */
/* A page that shows what is big: one HTML file that needs nothing else. */
#ifndef PAGE_HTML_H
#define PAGE_HTML_H

#include "tables.h"

/* Write it to OUT, a stream in memory. */
kpack_error_t page_html(FILE *out, const struct page *page, struct kpackx_error *why);

#endif
