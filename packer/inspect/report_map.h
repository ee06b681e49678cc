/* SPDX-License-Identifier: MIT */
/* The treemap of a page as SVG: libraries, and inside each its architectures. */
#ifndef PACKER_HTML_REPORT_MAP_H
#define PACKER_HTML_REPORT_MAP_H

#include <stdio.h>
#include "report_figures.h"

/* The meaning of a box's area, and the shape of the map. */
struct page_map {
	const char *id;
	bool decoded; /* areas are decoded bytes; false: stored bytes */
	double width, height;
	double least; /* boxes with a smaller part of the total are shown as one */
};

void page_map(FILE *out, const struct page_figures *f, const struct page_map *map);

#endif
