/* SPDX-License-Identifier: MIT */
/* The figures of a page as JSON. */
#ifndef PACKER_HTML_REPORT_JSON_H
#define PACKER_HTML_REPORT_JSON_H

#include "tables.h"

/* Print it on stdout; false, after an error message: it could not be made. */
bool page_json(const struct page *page);

#endif
