/* SPDX-License-Identifier: MIT */
/*
 * Given nanoseconds, not a level: the highest level of a table is taken that suffices for all
 * content, and what is left of the time goes to the next level for the densest content.  The
 * tables have only levels that are worth their time.
 */
#include "effort.h"
#include <stdlib.h>

/* A level, and the nanoseconds that it takes for a byte: for any, and more if it is dense. */
struct cost {
	int level;
	uint32_t any, dense;
};

/*
 * Measured on code objects of librocsparse and rocBLAS (contrib/bench/RESULTS.md).  The levels
 * between these take more time than a mixture of these that saves as much.
 */
static const struct cost of_objects[] = {
	{3, 0, 10}, {7, 0, 37}, {9, 0, 55}, {18, 0, 800}, {19, 0, 1260}};
static const struct cost of_blocks[] = {
	{7, 20, 0}, {9, 30, 0}, {18, 300, 0}, {19, 440, 0}};

/* The density of what cannot be compressed. */
enum { FULL = 65536 };

struct kp_effort kp_effort_fixed(int level)
{
	return (struct kp_effort){.low = level, .high = level};
}

kpack_error_t kp_density(struct kp_encoder *e, const struct kp_source *source,
			 uint32_t *out, struct kpackx_error *why)
{
	size_t size =
		source->size < KP_DENSITY_SIZE ? (size_t)source->size : KP_DENSITY_SIZE;
	size_t cap = kp_encode_bound(KP_DENSITY_SIZE, 0), n = 0;
	uint8_t *buf = malloc(KP_DENSITY_SIZE + cap);
	kpack_error_t err;

	*out = 0;
	if (!buf)
		return kp_fail_memory(why, KP_DENSITY_SIZE + cap, "compressing a sample");
	err = kp_source_read(source, (source->size - size) / 2, buf, size, why);
	if (!err)
		err = kp_encode(e, (struct kp_span){buf, size}, 0, buf + KP_DENSITY_SIZE,
				cap, &n, why);
	free(buf);
	if (!err && n < size)
		*out = (uint32_t)(n * FULL / size);
	return err;
}

/* The nanoseconds that a level takes for S. */
static uint64_t cost_of(const struct cost *level, const struct kp_density_sample *s)
{
	uint32_t density = s->density ? s->density : FULL;
	uint64_t of_kib =
		(level->any * (uint64_t)FULL + level->dense * (uint64_t)density) >> 6;

	return (s->size + 1023) / 1024 * of_kib;
}

static uint64_t cost_of_all(const struct cost *level,
			    const struct kp_density_sample *samples, size_t n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += cost_of(level, &samples[i]);
	return sum;
}

struct kp_effort kp_effort_choose(bool blocks, uint64_t ns,
				  const struct kp_density_sample *samples, size_t n)
{
	const struct cost *cost = blocks ? of_blocks : of_objects;
	const struct cost *last =
		cost + (blocks ? KP_COUNT(of_blocks) : KP_COUNT(of_objects)) - 1;
	uint64_t low = cost_of_all(cost, samples, n), next;
	uint64_t more[KP_DENSITY_CLASSES] = {0};
	struct kp_effort e;

	for (; cost < last; cost++, low = next) {
		next = cost_of_all(cost + 1, samples, n);
		if (next > ns)
			break;
	}
	if (cost == last || ns <= low)
		return kp_effort_fixed(cost->level);
	e = (struct kp_effort){.low = cost->level, .high = cost[1].level};
	/*
	 * The higher level compresses the classes for which the rest of the time suffices: the
	 * densest ones, except each that alone would take more time than is left.  Class 0 has
	 * the content that becomes no smaller, or very small.
	 */
	ns -= low;
	for (size_t i = 0; i < n; i++)
		more[kp_density_class(samples[i].density)] +=
			cost_of(cost + 1, &samples[i]) - cost_of(cost, &samples[i]);
	for (size_t i = KP_DENSITY_CLASSES; --i;)
		if (more[i] && more[i] <= ns) {
			e.chosen[i] = true;
			ns -= more[i];
		}
	return e;
}
