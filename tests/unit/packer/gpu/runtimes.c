/* SPDX-License-Identifier: MIT */
#include "packer/gpu/runtimes.h"
#include <stdio.h>
#include <string.h>
#include "tests/unit/unit.h"

struct seen {
	size_t n;
	char last[64];
};

static void keep_library(const char *name, const char *path, void *arg)
{
	struct seen *seen = arg;

	seen->n++;
	snprintf(seen->last, sizeof(seen->last), "%s=%s", name, path);
}

static void put_number(uint8_t *at, uint32_t n)
{
	memcpy(at, &n, sizeof(n));
}

/* A list of one library, after BEFORE bytes of another table. */
static struct kp_span make_list(uint8_t *buf, size_t before)
{
	uint8_t *at = buf + before;

	memset(buf, 'x', before);
	memset(at, 0, 128);
	memcpy(at, "glibc-ld.so.cache1.1", 20);
	put_number(at + 20, 1);
	put_number(at + 48 + 4, 72);
	put_number(at + 48 + 8, 77);
	memcpy(at + 72, "li.s", 5);
	memcpy(at + 77, "/l/li.s", 8);
	return (struct kp_span){buf, before + 85};
}

static bool walk(struct kp_span list, struct seen *seen)
{
	*seen = (struct seen){0};
	return loader_cache_walk(list, keep_library, seen);
}

TEST(libraries_are_listed_whose_strings_end_inside)
{
	struct seen seen;
	struct kp_span list;
	uint8_t buf[256];

	for (size_t before = 0; before < 100; before += 33) {
		assert_true(walk(make_list(buf, before), &seen));
		assert_int_equal(seen.n, 1);
		assert_string_equal(seen.last, "li.s=/l/li.s");
	}
	list = make_list(buf, 0);
	list.size--;
	assert_true(walk(list, &seen) && seen.n == 0);
	list = make_list(buf, 0);
	put_number(buf + 48 + 4, UINT32_MAX);
	assert_true(walk(list, &seen) && seen.n == 0);
}

TEST(other_files_are_refused)
{
	struct seen seen;
	uint8_t buf[256];
	struct kp_span list = make_list(buf, 0);

	put_number(buf + 20, 2);
	assert_false(walk(list, &seen) || seen.n);
	put_number(buf + 20, 0);
	assert_false(walk(kp_span_head(list, 47), &seen) || seen.n);
	buf[0] = 'G';
	assert_false(walk(list, &seen) || seen.n);
	assert_false(walk((struct kp_span){NULL, 0}, &seen) || seen.n);
}
