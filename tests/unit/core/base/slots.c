/* SPDX-License-Identifier: MIT */
#include "core/base/slots.h"
#include "tests/unit/unit.h"
#include <stdlib.h>

enum { COUNT = 1000 };

/* Few hashes: most numbers share theirs with others. */
static uint64_t hash_number(const void *arg, uint32_t number)
{
	return number % 7;
}

static bool is_found(const struct kp_slots *s, uint32_t number)
{
	uint32_t *slot = kp_slots_first(s, hash_number(NULL, number));

	while (*slot && *slot - 1 != number)
		slot = kp_slots_next(s, slot);
	return *slot;
}

static void put_number(struct kp_slots *s, uint32_t number)
{
	uint32_t *slot;

	assert_true(kp_slots_grow(s, hash_number, NULL));
	assert_true(2 * s->used < s->size);
	slot = kp_slots_first(s, hash_number(NULL, number));
	while (*slot)
		slot = kp_slots_next(s, slot);
	kp_slots_put(s, slot, number);
}

TEST(numbers_are_found)
{
	struct kp_slots s = {0};

	for (uint32_t i = 0; i < COUNT; i++)
		put_number(&s, i);
	for (uint32_t i = 0; i < 2 * COUNT; i++)
		assert_int_equal(is_found(&s, i), i < COUNT);
	free(s.slots);
}

TEST(reserved_tables_do_not_grow)
{
	struct kp_slots s = {0};
	size_t size;

	assert_true(kp_slots_reserve(&s, COUNT, NULL, NULL));
	size = s.size;
	assert_true(size >= 2 * COUNT);
	s.used = COUNT - 1;
	assert_true(kp_slots_grow(&s, hash_number, NULL));
	assert_int_equal(s.size, size);
	free(s.slots);
}

TEST(tables_with_numbers_get_room)
{
	struct kp_slots s = {0};
	size_t size;

	for (uint32_t i = 0; i < 20; i++)
		put_number(&s, i);
	assert_true(kp_slots_reserve(&s, COUNT, hash_number, NULL));
	size = s.size;
	assert_true(size >= 2 * COUNT);
	/* room for fewer changes nothing */
	assert_true(kp_slots_reserve(&s, 20, hash_number, NULL));
	for (uint32_t i = 20; i < COUNT; i++)
		put_number(&s, i);
	assert_int_equal(s.size, size);
	for (uint32_t i = 0; i < 2 * COUNT; i++)
		assert_int_equal(is_found(&s, i), i < COUNT);
	free(s.slots);
}
