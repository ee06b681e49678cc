/* SPDX-License-Identifier: MIT */
/* A page that shows what is big: one HTML file that needs nothing else. */
#ifndef PACKER_HTML_REPORT_HTML_H
#define PACKER_HTML_REPORT_HTML_H

#include "tables.h"

/* Write it to OUT, a stream in memory. */
kpack_error_t page_html(FILE *out, const struct page *page, struct kpackx_error *why);

#endif
