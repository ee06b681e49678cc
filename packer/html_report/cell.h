/* SPDX-License-Identifier: MIT */
/* Cells of a page's tables; numbers carry the value they are sorted by. */
#ifndef PACKER_HTML_REPORT_CELL_H
#define PACKER_HTML_REPORT_CELL_H

#include <stdint.h>
#include <stdio.h>
#include "core/base/span.h"

/* The first of a row, which it begins; the row is to be ended. */
void page_cell_head(FILE *out, struct kp_span name);
void page_cell_text(FILE *out, struct kp_span text);
void page_cell_number(FILE *out, uint64_t n);
void page_cell_size(FILE *out, uint64_t bytes);
void page_cell_ratio(FILE *out, uint64_t decoded, uint64_t stored);
/* PART of WHOLE, with a bar. */
void page_cell_share(FILE *out, uint64_t part, uint64_t whole);
/* "12.3 MiB" or "1.0 MiB to 12.3 MiB", sorted by the most. */
void page_cell_range(FILE *out, uint64_t least, uint64_t most);

#endif
