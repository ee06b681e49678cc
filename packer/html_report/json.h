/* SPDX-License-Identifier: MIT */
/* The figures of a page as JSON. */
#ifndef PAGE_JSON_H
#define PAGE_JSON_H

#include "tables.h"

/* Print on stdout; false, after telling why: it could not be made. */
bool page_json(const struct page *page);

#endif
