/* SPDX-License-Identifier: MIT */
/* What is compressed at which level for a given time. */
#include "core/writer/effort.h"
#include "tests/unit/unit.h"
#include <stdlib.h>

enum { N = 200, SIZE = 1 << 20 };

static const uint64_t SECOND = 1000000000;

static void make_samples(struct kp_density_sample samples[N])
{
	for (uint32_t i = 0; i < N; i++)
		samples[i] = (struct kp_density_sample){i * 7919 % N * 300, SIZE};
}

/* With more time all is compressed better, but for what is left of the time. */
TEST(more_time_compresses_more)
{
	uint64_t last = 0;

	for (int blocks = 0; blocks < 2; blocks++, last = 0)
		for (uint64_t ns = 0; ns < 200 * SECOND; ns += SECOND / 2) {
			struct kp_density_sample samples[N];
			struct kp_effort e;
			uint64_t sum = 0;

			make_samples(samples);
			e = kp_effort_choose(blocks, ns, samples, N);
			assert_in_range(e.low, blocks ? 7 : 3, e.high);
			make_samples(samples);
			for (int i = 0; i < N; i++)
				sum += kp_effort_high(&e, samples[i].density)
					       ? (uint64_t)e.high
					       : (uint64_t)e.low;
			assert_true(sum + 40 >= last);
			last = sum;
		}
}

TEST(the_ends)
{
	struct kp_density_sample samples[N];
	struct kp_effort e;

	make_samples(samples);
	e = kp_effort_choose(true, 0, samples, N);
	assert_int_equal(e.low, 7);
	assert_int_equal(e.high, 7);
	e = kp_effort_choose(false, UINT64_MAX, samples, N);
	assert_int_equal(e.low, 19);
	assert_int_equal(e.high, 19);
	e = kp_effort_choose(false, 5, samples, 0);
	assert_int_equal(e.low, e.high);
}

/* The densest content comes first; but what cannot be compressed, or is too large, never. */
TEST(what_is_dense_comes_first)
{
	struct kp_density_sample samples[] = {{9000, SIZE},
					      {40000, SIZE},
					      {0, SIZE},
					      {50000, 10000 * (uint64_t)SIZE},
					      {20000, SIZE}};
	struct kp_effort e;

	/* as much as level 9 takes for all, and a part of what level 18 would for some */
	e = kp_effort_choose(false, 450 * SECOND, samples, 5);
	assert_int_equal(e.low, 9);
	assert_int_equal(e.high, 18);
	assert_false(kp_effort_high(&e, 50000));
	assert_true(kp_effort_high(&e, 40000));
	assert_false(kp_effort_high(&e, 0));
}

TEST(densities_are_of_the_middle)
{
	static uint8_t data[4 * KP_DENSITY_SIZE];
	struct kp_encoder *e;
	struct kp_source source = kp_source_memory(data, sizeof(data));
	uint32_t density, x = 1;

	assert_int_equal(kp_encoder_new(KP_DENSITY_LEVEL, &e, NULL), 0);
	for (size_t i = 0; i < sizeof(data); i++) {
		x = x * 1103515245 + 12345;
		data[i] = (uint8_t)(x >> 16);
	}
	assert_int_equal(kp_density(e, &source, &density, NULL), 0);
	assert_int_equal(density, 0); /* not smaller at all */
	for (size_t i = 0; i < KP_DENSITY_SIZE; i++)
		data[3 * KP_DENSITY_SIZE / 2 + i] &= 15;
	assert_int_equal(kp_density(e, &source, &density, NULL), 0);
	assert_in_range(density, 30000, 40000);
	source.size = 0;
	assert_int_equal(kp_density(e, &source, &density, NULL), 0);
	assert_int_equal(density, 0);
	kp_encoder_free(e);
}
