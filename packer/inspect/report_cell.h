/* SPDX-License-Identifier: MIT */
/* Print cells of a page's tables; number cells carry the value to sort by. */
#ifndef PACKER_HTML_REPORT_CELL_H
#define PACKER_HTML_REPORT_CELL_H

#include <stdint.h>
#include <stdio.h>
#include "core/base/span.h"

/* Begin a row and print its first cell; the caller ends the row. */
void page_cell_head(FILE *out, struct kp_span name);
void page_cell_text(FILE *out, struct kp_span text);
void page_cell_number(FILE *out, uint64_t n);
void page_cell_size(FILE *out, uint64_t bytes);
void page_cell_ratio(FILE *out, uint64_t decoded, uint64_t stored);
/* The share of PART in WHOLE, with a bar. */
void page_cell_share(FILE *out, uint64_t part, uint64_t whole);
/* "12.3 MiB" or "1.0 MiB to 12.3 MiB", sorted by MOST. */
void page_cell_range(FILE *out, uint64_t least, uint64_t most);

#endif
