/* SPDX-License-Identifier: MIT */
#include "fs/mount/memory_pressure.c" /* its cgroups are static */
#include "tests/unit/unit.h"
#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <limits.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB UINT64_C(1048576)

/* A faked system in a directory of its own. */
static char root[] = "/tmp/kpackfs-pressure-XXXXXX";

static void put(const char *name, const char *text)
{
	char path[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s%s", root, name);
	for (char *c = path + sizeof(root); *c; c++)
		if (*c == '/') {
			*c = '\0';
			assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
			*c = '/';
		}
	f = fopen(path, "we");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void put_number(const char *name, uint64_t number)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64 "\n", number);
	put(name, text);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static int set_up(void **state)
{
	strcpy(root + sizeof(root) - 7, "XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int tear_down(void **state)
{
	return nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* cgroup version 2, as systemd sets it up: a service in a slice. */
static void put_version_2(void)
{
	put("/proc/self/cgroup", "1:name=systemd:/elsewhere\n0::/a.slice/b.service\n");
	put("/proc/self/mountinfo",
	    "25 1 0:22 / /sys rw - sysfs sysfs rw\n"
	    "31 25 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n");
	put("/sys/fs/cgroup/cgroup.procs", "");
	put("/sys/fs/cgroup/a.slice/memory.max", "max\n");
	put("/sys/fs/cgroup/a.slice/memory.high", "max\n");
	put_number("/sys/fs/cgroup/a.slice/memory.current", 300 * MIB);
	put("/sys/fs/cgroup/a.slice/b.service/memory.max", "max\n");
	put("/sys/fs/cgroup/a.slice/b.service/memory.high", "max\n");
	put_number("/sys/fs/cgroup/a.slice/b.service/memory.current", 200 * MIB);
	put("/sys/fs/cgroup/a.slice/b.service/memory.stat",
	    "anon 1\ninactive_anon 2\nactive_file 4\ninactive_file 52428800\n");
}

static uint64_t limit(void)
{
	struct cgroup c;
	uint64_t bytes;

	cgroup_open(&c, root);
	bytes = cgroup_limit(&c);
	close_files(c.levels[0], (int)c.count * LEVEL_FILES);
	close_files(&c.stalls, 1);
	return bytes;
}

static bool full(unsigned percent)
{
	struct cgroup c;
	bool is;

	cgroup_open(&c, root);
	is = cgroup_is_full(&c, percent);
	close_files(c.levels[0], (int)c.count * LEVEL_FILES);
	close_files(&c.stalls, 1);
	return is;
}

TEST(no_limit_is_found_where_there_is_none, set_up, tear_down)
{
	assert_true(limit() == CGROUP_NO_LIMIT);
	assert_false(full(0));
	put_version_2();
	assert_true(limit() == CGROUP_NO_LIMIT);
	assert_false(full(0));
}

TEST(the_smallest_limit_counts, set_up, tear_down)
{
	put_version_2();
	put_number("/sys/fs/cgroup/a.slice/memory.max", 400 * MIB);
	assert_int_equal(limit(), 400 * MIB);
	put_number("/sys/fs/cgroup/a.slice/b.service/memory.max", 500 * MIB);
	assert_int_equal(limit(), 400 * MIB);
	put_number("/sys/fs/cgroup/a.slice/b.service/memory.high", 350 * MIB);
	assert_int_equal(limit(), 350 * MIB);
}

TEST(page_cache_not_in_use_is_no_usage, set_up, tear_down)
{
	put_version_2();
	put_number("/sys/fs/cgroup/a.slice/b.service/memory.max", 200 * MIB);
	assert_true(full(74));
	assert_false(full(75));
	put_number("/sys/fs/cgroup/a.slice/memory.max", 310 * MIB);
	assert_true(full(85));
}

TEST(version_1_is_read_too, set_up, tear_down)
{
	put("/proc/self/cgroup", "4:cpu,memory:/jobs/one\n0::/x\n");
	put("/proc/self/mountinfo",
	    "30 25 0:25 / /sys/fs/cgroup/cpu rw - cgroup c rw,cpu\n"
	    "31 25 0:26 / /sys/fs/cgroup/memory rw - cgroup "
	    "cgroup rw,memory\n");
	put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
	put_number("/sys/fs/cgroup/memory/memory.usage_in_bytes", 9000 * MIB);
	put_number("/sys/fs/cgroup/memory/jobs/memory.limit_in_bytes", 100 * MIB);
	put_number("/sys/fs/cgroup/memory/jobs/memory.usage_in_bytes", 90 * MIB);
	put("/sys/fs/cgroup/memory/jobs/memory.stat",
	    "inactive_file 1\ntotal_inactive_file 10485760\n");
	put("/sys/fs/cgroup/memory/jobs/one/memory.limit_in_bytes",
	    "9223372036854771712\n");
	put_number("/sys/fs/cgroup/memory/jobs/one/memory.usage_in_bytes", 80 * MIB);
	assert_int_equal(limit(), 100 * MIB);
	assert_true(full(79));
	assert_false(full(80));
}

/* A container sees its own cgroup as the root, but names as seen from outside. */
TEST(containers_are_seen_from_inside, set_up, tear_down)
{
	put("/proc/self/cgroup", "0::/a\\x2db/0123/inner\n");
	put("/proc/self/mountinfo",
	    "31 25 0:26 /a\\134x2db/0123 /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
	put_number("/sys/fs/cgroup/memory.max", 100 * MIB);
	put_number("/sys/fs/cgroup/memory.current", 90 * MIB);
	put_number("/sys/fs/cgroup/inner/memory.max", 80 * MIB);
	put_number("/sys/fs/cgroup/inner/memory.current", 10 * MIB);
	assert_int_equal(limit(), 80 * MIB);
	assert_true(full(85));
	put("/proc/self/cgroup", "0::/somewhere/else\n");
	assert_int_equal(limit(), 100 * MIB);
}

TEST(the_budget_fits_the_limit, set_up, tear_down)
{
	static const struct {
		uint64_t limit, wanted, budget;
	} cases[] = {
		{1024 * MIB, 256 * MIB, 256 * MIB}, {512 * MIB, 256 * MIB, 224 * MIB},
		{100 * MIB, 256 * MIB, 18 * MIB},   {100 * MIB, 10 * MIB, 10 * MIB},
		{64 * MIB, 256 * MIB, 4 * MIB},     {8 * MIB, 256 * MIB, 4 * MIB},
		{8 * MIB, 1 * MIB, 1 * MIB},        {8 * MIB, 0, 0},
	};
	struct pressure *p;

	put_version_2();
	p = pressure_open(root);
	assert_non_null(p);
	assert_true(pressure_budget(p, UINT64_MAX / 2) == UINT64_MAX / 2);
	for (size_t i = 0; i < COUNT(cases); i++) {
		put_number("/sys/fs/cgroup/a.slice/memory.max", cases[i].limit);
		assert_int_equal(pressure_budget(p, cases[i].wanted), cases[i].budget);
	}
	pressure_free(p);
}

TEST(stalls_halve_it_and_calm_restores_it, set_up, tear_down)
{
	static const struct {
		int64_t now;
		bool stalled;
		unsigned percent;
	} steps[] = {
		{1000, false, 100}, {1001, true, 50},  {1002, true, 50},
		{1003, true, 25},   {1004, false, 25}, {1005, true, 12},
		{1007, true, 12},   {1036, false, 12}, {1037, false, 100},
		{1038, true, 50},   {1067, false, 50}, {1068, false, 100},
	};
	struct pressure *p = pressure_open(root);

	assert_non_null(p);
	for (size_t i = 0; i < COUNT(steps); i++)
		assert_int_equal(pressure_percent(p, steps[i].now, steps[i].stalled),
				 steps[i].percent);
	pressure_free(p);
}

TEST(a_full_cgroup_is_a_sign, set_up, tear_down)
{
	struct pressure *p;

	put_version_2();
	put_number("/sys/fs/cgroup/a.slice/memory.max", 400 * MIB);
	p = pressure_open(root);
	assert_non_null(p);
	assert_int_equal(pressure_percent(p, 1, false), 100);
	put_number("/sys/fs/cgroup/a.slice/memory.current", 350 * MIB);
	assert_int_equal(pressure_percent(p, 2, false), 50);
	assert_int_equal(pressure_percent(p, 40, false), 25);
	put_number("/sys/fs/cgroup/a.slice/memory.current", 300 * MIB);
	assert_int_equal(pressure_percent(p, 69, false), 25);
	assert_int_equal(pressure_percent(p, 70, false), 100);
	pressure_free(p);
}

struct calls {
	sem_t called;
	unsigned percent;
};

static void note(void *user, unsigned percent)
{
	struct calls *c = user;

	c->percent = percent;
	sem_post(&c->called);
}

TEST(the_thread_says_so, set_up, tear_down)
{
	struct calls calls = {.percent = 0};
	struct pressure *p;

	sem_init(&calls.called, 0, 0);
	put_version_2();
	put_number("/sys/fs/cgroup/a.slice/memory.max", 100 * MIB);
	p = pressure_open(root);
	assert_non_null(p);
	assert_true(pressure_start(p, note, &calls));
	sem_wait(&calls.called);
	pressure_free(p);
	assert_int_equal(calls.percent, 50);
	sem_destroy(&calls.called);
}
