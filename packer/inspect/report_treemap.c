/* SPDX-License-Identifier: MIT */
#include "report_treemap.h"

/* The worst aspect ratio of a row along SIDE whose areas are SUM in all. */
static double worst_ratio(double sum, double largest, double smallest, double side)
{
	double wide = side * side * largest / (sum * sum);
	double high = sum * sum / (side * side * smallest);

	return wide > high ? wide : high;
}

/* The number of boxes, from the first on, that make the row nearest to squares. */
static size_t row_length(const uint64_t *sizes, size_t n, double scale, double side,
			 double *sum)
{
	double first = (double)sizes[0] * scale, best;
	size_t i;

	*sum = first;
	best = worst_ratio(first, first, first, side);
	for (i = 1; i < n && sizes[i]; i++) {
		double area = (double)sizes[i] * scale;
		double next = worst_ratio(*sum + area, first, area, side);

		if (next > best)
			break;
		best = next;
		*sum += area;
	}
	return i;
}

/* Lay a row along the shorter side of LEFT, and remove its area from LEFT. */
static void lay_row(const uint64_t *sizes, size_t n, double scale, double sum,
		    struct treemap_box *left, struct treemap_box *out)
{
	double at = 0, thick;

	if (left->w >= left->h) {
		thick = sum / left->h;
		for (size_t i = 0; i < n; i++) {
			double h = (double)sizes[i] * scale / thick;

			out[i] = (struct treemap_box){left->x, left->y + at, thick, h};
			at += h;
		}
		left->x += thick;
		left->w = left->w > thick ? left->w - thick : 0;
		return;
	}
	thick = sum / left->w;
	for (size_t i = 0; i < n; i++) {
		double w = (double)sizes[i] * scale / thick;

		out[i] = (struct treemap_box){left->x + at, left->y, w, thick};
		at += w;
	}
	left->y += thick;
	left->h = left->h > thick ? left->h - thick : 0;
}

void treemap_layout(const uint64_t *sizes, size_t n, const struct treemap_box *in,
		    struct treemap_box *out)
{
	struct treemap_box left = *in;
	double total = 0, scale;
	size_t i = 0;

	for (size_t k = 0; k < n; k++)
		total += (double)sizes[k];
	scale = total > 0 ? in->w * in->h / total : 0;
	while (i < n && sizes[i] && left.w > 0 && left.h > 0) {
		double side = left.w < left.h ? left.w : left.h, sum;
		size_t row = row_length(sizes + i, n - i, scale, side, &sum);

		lay_row(sizes + i, row, scale, sum, &left, out + i);
		i += row;
	}
	for (; i < n; i++)
		out[i] = (struct treemap_box){left.x, left.y, 0, 0};
}
