/* SPDX-License-Identifier: MIT */
/* The treemap of a page as SVG: libraries, and in each its architectures. */
#ifndef PACKER_HTML_REPORT_MAP_H
#define PACKER_HTML_REPORT_MAP_H

#include <stdio.h>
#include "figures.h"

/* What the area of a box stands for, and the shape of the map. */
struct page_map {
	const char *id;
	bool decoded; /* decoded bytes; false: stored ones */
	double width, height;
	double least; /* boxes below this part of all are shown together */
};

kpack_error_t page_map(FILE *out, const struct page_figures *f,
		       const struct page_map *map, struct kpackx_error *why);

#endif
