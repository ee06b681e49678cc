/* SPDX-License-Identifier: MIT */
/*
 * A squarified treemap: a box divided in proportion to sizes into boxes that are as
 * square as possible, so that they can be compared by eye.
 * Source of the method: Bruls, Huizing and van Wijk, "Squarified treemaps" (2000).
 */
#ifndef PACKER_HTML_REPORT_TREEMAP_H
#define PACKER_HTML_REPORT_TREEMAP_H

#include <stddef.h>
#include <stdint.h>

struct treemap_box {
	double x, y, w, h;
};

/*
 * Divide IN among N SIZES, the largest first, into OUT.  A size of 0 gets a box without
 * an area.
 */
void treemap_layout(const uint64_t *sizes, size_t n, const struct treemap_box *in,
		    struct treemap_box *out);

#endif
