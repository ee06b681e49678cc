/* SPDX-License-Identifier: MIT */
/* The figures of a page as JSON. */
#ifndef PAGE_JSON_H
#define PAGE_JSON_H

#include "tables.h"

/* Print it on stdout; false, after an error message: it could not be made. */
bool page_json(const struct page *page);

#endif
