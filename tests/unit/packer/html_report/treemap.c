/* SPDX-License-Identifier: MIT */
/* Boxes proportional to sizes that fill a box and do not overlap. */
#include "packer/html_report/treemap.h"
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include "tests/unit/unit.h"

enum { MOST = 2000 };

static const struct treemap_box in = {10, 20, 300, 200};
static struct treemap_box out[MOST];

static bool apart(const struct treemap_box *a, const struct treemap_box *b)
{
	const double near = 1e-6;

	return a->x + a->w <= b->x + near || b->x + b->w <= a->x + near ||
	       a->y + a->h <= b->y + near || b->y + b->h <= a->y + near;
}

static void expect_proportional(const uint64_t *sizes, size_t n)
{
	const double near = 1e-6;
	double total = 0;

	for (size_t i = 0; i < n; i++)
		total += (double)sizes[i];
	for (size_t i = 0; i < n; i++) {
		double want = in.w * in.h * (double)sizes[i] / total;

		assert_true(fabs(out[i].w * out[i].h - want) <= 1e-6 * in.w * in.h);
		assert_true(out[i].x >= in.x - near && out[i].y >= in.y - near);
		assert_true(out[i].x + out[i].w <= in.x + in.w + near);
		assert_true(out[i].y + out[i].h <= in.y + in.h + near);
		for (size_t k = 0; k < i; k++)
			assert_true(apart(&out[i], &out[k]));
	}
}

static void expect_layout(const uint64_t *sizes, size_t n)
{
	treemap_layout(sizes, n, &in, out);
	expect_proportional(sizes, n);
}

TEST(one_fills_all)
{
	const uint64_t sizes[] = {7};

	expect_layout(sizes, 1);
	assert_true(fabs(out[0].w - in.w) < 1e-9 && fabs(out[0].h - in.h) < 1e-9);
}

/* The paper's example: areas 6 6 4 3 2 2 1 in a box of 6 by 4. */
TEST(papers_example)
{
	const uint64_t sizes[] = {6, 6, 4, 3, 2, 2, 1};
	const struct treemap_box box = {0, 0, 6, 4};

	treemap_layout(sizes, 7, &box, out);
	assert_true(fabs(out[0].w - 3) < 1e-9 && fabs(out[0].h - 2) < 1e-9);
	assert_true(fabs(out[1].w - 3) < 1e-9 && fabs(out[1].y - 2) < 1e-9);
	assert_true(fabs(out[2].x - 3) < 1e-9 && fabs(out[2].h - 7.0 / 3) < 1e-9);
	assert_true(fabs(out[2].w * out[2].h - 4) < 1e-9);
}

TEST(equal_ones_are_square)
{
	uint64_t sizes[6] = {5, 5, 5, 5, 5, 5};

	expect_layout(sizes, 6);
	for (int i = 0; i < 6; i++)
		assert_true(fabs(out[i].w - 100) < 1e-6 && fabs(out[i].h - 100) < 1e-6);
}

TEST(nothing_has_no_area)
{
	const uint64_t some[] = {3, 1, 0, 0}, none[] = {0, 0};

	expect_layout(some, 4);
	treemap_layout(none, 2, &in, out);
	assert_true(out[0].w == 0 && out[1].w == 0);
	treemap_layout(none, 0, &in, out);
}

TEST(far_apart_sizes)
{
	const uint64_t sizes[] = {UINT64_MAX, UINT64_MAX / 2, 1000, 10, 1};

	expect_layout(sizes, 5);
}

TEST(many)
{
	static uint64_t sizes[MOST];
	double worst = 0;

	for (size_t i = 0; i < MOST; i++)
		sizes[i] = 1 + (MOST - i) * (MOST - i) / 7;
	expect_layout(sizes, MOST);
	for (size_t i = 0; i < MOST / 2; i++) {
		double ratio =
			out[i].w > out[i].h ? out[i].w / out[i].h : out[i].h / out[i].w;

		worst = ratio > worst ? ratio : worst;
	}
	assert_true(worst < 4);
}
