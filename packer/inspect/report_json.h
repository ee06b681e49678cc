/* SPDX-License-Identifier: MIT */
/* The figures of a page as JSON. */
#ifndef PACKER_HTML_REPORT_JSON_H
#define PACKER_HTML_REPORT_JSON_H

#include "report_tables.h"

/* Print PAGE on stdout; false: that failed, after an error message. */
bool page_json(const struct page *page);

#endif
