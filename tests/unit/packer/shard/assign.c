/* SPDX-License-Identifier: MIT */
/* Assigning work to shards. */
#include "packer/shard/assign.h"
#include <stdlib.h>
#include "tests/unit/unit.h"

TEST(numbers_are_plain)
{
	static const char *const bad[] = {
		"",     "1",
		"/",    "1/",
		"/1",   "0/1",
		"1/0",  "2/1",
		"1/2/", "1/2/3",
		" 1/2", "+1/2",
		"1/+2", "-1/2",
		"1/2 ", "1 /2",
		"1/2K", "0x1/2",
		"1//2", "1/65537",
		"a/b",  "99999999999999999999/99999999999999999999"};
	struct shard shard = {7, 8};

	for (size_t i = 0; i < COUNT(bad); i++) {
		assert_false(shard_parse(bad[i], &shard));
		assert_int_equal(shard.index, 7);
	}
	assert_true(shard_parse("3/5", &shard));
	assert_int_equal(shard.index, 3);
	assert_int_equal(shard.count, 5);
	assert_true(shard_parse("65536/65536", &shard));
	assert_true(shard_parse("01/002", &shard));
	assert_int_equal(shard.count, 2);
}

TEST(the_largest_goes_first)
{
	static const uint64_t costs[] = {1, 9, 5, 9, 5, 0, 5};
	/*
	 * 9 and 9; 5 to the third; 5 to the third (10); 5 to the first; 1 to the second;
	 * 0
	 */
	static const unsigned want[] = {2, 1, 3, 2, 3, 2, 1};
	unsigned owner[7];

	shard_spread(costs, 7, 3, owner);
	for (int i = 0; i < 7; i++)
		assert_int_equal(owner[i], want[i]);
}

/* Find the least loaded shard by linear search; the heap must give the same. */
static void spread_slowly(const uint64_t *costs, size_t n, unsigned count,
			  unsigned *owner, uint64_t *load)
{
	memset(load, 0, (count + 1) * sizeof(*load));
	memset(owner, 0, n * sizeof(*owner));
	for (size_t round = 0; round < n; round++) {
		unsigned least = 1;
		size_t best = n;

		for (size_t i = 0; i < n; i++)
			if (!owner[i] && (best == n || costs[i] > costs[best]))
				best = i;
		for (unsigned s = 2; s <= count; s++)
			if (load[s] < load[least])
				least = s;
		owner[best] = least;
		load[least] += costs[best];
	}
}

TEST(nobody_has_too_much)
{
	uint64_t costs[200], load[41], sum, most;
	unsigned owner[200], want[200];

	srand(1);
	for (unsigned count = 1; count <= 40; count++) {
		sum = most = 0;
		for (int i = 0; i < 200; i++) {
			costs[i] = (uint64_t)(rand() % 20 ? rand() % 50 : rand() % 5000);
			sum += costs[i];
			most = costs[i] > most ? costs[i] : most;
		}
		shard_spread(costs, 200, count, owner);
		spread_slowly(costs, 200, count, want, load);
		assert_memory_equal(owner, want, sizeof(want));
		for (unsigned s = 1; s <= count; s++)
			assert_true(load[s] <= sum / count + most);
	}
}

TEST(nothing_to_spread)
{
	unsigned owner[1] = {7};

	shard_spread(NULL, 0, 65536, owner);
	assert_int_equal(owner[0], 7);
}
