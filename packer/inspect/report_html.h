/* SPDX-License-Identifier: MIT */
/* A page that shows the biggest parts: one self-contained HTML file. */
#ifndef PACKER_HTML_REPORT_HTML_H
#define PACKER_HTML_REPORT_HTML_H

#include "report_tables.h"

/* Write PAGE to OUT, a stream in memory. */
kpack_error_t page_html(FILE *out, const struct page *page, struct kpackx_error *why);

#endif
