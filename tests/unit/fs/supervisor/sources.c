/* SPDX-License-Identifier: MIT */
#include "fs/supervisor/sources.h"
#include "tests/unit/unit.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "fs/base/log.h"

static char dir[64], one[80], two[80];
static char *const sources[] = {one, two};
static size_t hooked;

/* Run a shell command in the directory. */
static void run(const char *command)
{
	char line[512];

	snprintf(line, sizeof(line), "cd %s && %s", dir, command);
	assert_int_equal(system(line), 0);
}

static int setup(void **state)
{
	log_level(-1);
	strcpy(dir, "/tmp/kpackfs-survey-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(one, sizeof(one), "%s/one", dir);
	snprintf(two, sizeof(two), "%s/two", dir);
	return mkdir(one, 0755) || mkdir(two, 0755);
}

static int teardown(void **state)
{
	run("rm -rf \"$PWD\"");
	return 0;
}

static void write_file(const char *name, const char *text)
{
	char path[160];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "we");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void hook(void *user, const char *path)
{
	hooked += path[0] == '/';
}

static bool look(struct source_list *s, bool first, bool forced, bool *changed)
{
	const struct source_list_options o = {
		.sources = sources,
		.count = 2,
		.first = first,
		.forced = forced,
		.hook = hook,
	};

	*changed = false;
	return source_list_run(s, &o, changed);
}

/* Look at the sources; returns whether that changed anything. */
static bool changes(struct source_list *s)
{
	bool changed;

	assert_true(look(s, false, false, &changed));
	return changed;
}

static const char *name_of(const struct source_list *s, size_t item)
{
	assert_true(item < s->count);
	return s->items[item].path + strlen(dir) + 1;
}

TEST(the_order_is_that_of_sources_then_names, setup, teardown)
{
	struct source_list s = {0};
	bool changed;

	write_file("one/b.kpack", "b");
	write_file("one/a.kpack", "a");
	write_file("one/.c.kpack", "no");
	write_file("one/c.kpac", "no");
	write_file("two/A.kpack", "A");
	hooked = 0;
	assert_true(look(&s, true, false, &changed));
	assert_true(changed);
	assert_int_equal(s.count, 3);
	assert_int_equal(hooked, 3);
	assert_string_equal(name_of(&s, 0), "one/a.kpack");
	assert_string_equal(name_of(&s, 1), "one/b.kpack");
	assert_string_equal(name_of(&s, 2), "two/A.kpack");
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(s.items[i].serial, i + 1);
		assert_true(s.items[i].fresh);
	}
	assert_true(S_ISDIR(s.look.st_mode));
	source_list_free(&s);
}

TEST(what_is_the_same_keeps_its_serial, setup, teardown)
{
	struct source_list s = {0};

	write_file("one/a.kpack", "a");
	write_file("one/c.kpack", "c");
	assert_true(changes(&s));
	assert_false(changes(&s));
	assert_false(s.items[0].fresh);
	write_file("one/b.kpack", "b");
	write_file("one/c.kpack", "cc");
	assert_true(changes(&s));
	assert_int_equal(s.items[0].serial, 1);
	assert_false(s.items[0].fresh);
	assert_int_equal(s.items[1].serial, 3);
	assert_true(s.items[1].fresh);
	assert_int_equal(s.items[2].serial, 4);
	assert_false(changes(&s));
	source_list_free(&s);
}

TEST(other_attributes_of_the_same_file, setup, teardown)
{
	struct source_list s = {0};

	write_file("one/a.kpack", "a");
	assert_true(changes(&s));
	assert_int_equal(s.items[0].was, 0);
	run("chmod 600 one/a.kpack");
	assert_true(changes(&s));
	assert_int_equal(s.items[0].serial, 2);
	assert_int_equal(s.items[0].was, 1);
	assert_false(changes(&s));
	assert_int_equal(s.items[0].was, 0);
	write_file("one/a.kpack", "bb");
	assert_true(changes(&s));
	assert_int_equal(s.items[0].serial, 3);
	assert_int_equal(s.items[0].was, 0);
	source_list_free(&s);
}

TEST(another_file_of_the_same_name_is_another, setup, teardown)
{
	struct source_list s = {0};

	write_file("one/a.kpack", "a");
	assert_true(changes(&s));
	run("cp -p one/a.kpack x && mv x one/a.kpack");
	assert_true(changes(&s));
	assert_int_equal(s.items[0].serial, 2);
	source_list_free(&s);
}

TEST(what_is_removed_is_gone, setup, teardown)
{
	struct source_list s = {0};

	write_file("one/a.kpack", "a");
	write_file("two/a.kpack", "b");
	assert_true(changes(&s));
	run("rm one/a.kpack");
	assert_true(changes(&s));
	assert_int_equal(s.count, 1);
	assert_int_equal(s.items[0].serial, 2);
	run("rm two/a.kpack");
	assert_true(changes(&s));
	assert_int_equal(s.count, 0);
	assert_false(changes(&s));
	/* without archives, directories have the first source's attributes */
	run("chmod 700 one");
	assert_true(changes(&s));
	source_list_free(&s);
}

TEST(a_source_that_is_not_there, setup, teardown)
{
	struct source_list s = {0};
	bool changed;

	write_file("two/a.kpack", "a");
	run("rmdir one");
	assert_false(look(&s, true, false, &changed));
	assert_int_equal(s.count, 0);
	assert_true(look(&s, false, false, &changed));
	assert_true(changed);
	assert_int_equal(s.count, 2);
	assert_string_equal(name_of(&s, 0), "one");
	assert_has(s.items[0].error, "No such file");
	assert_int_equal(s.items[0].serial, 0);
	assert_null(s.items[1].error);
	assert_false(changes(&s));
	run("mkdir one");
	assert_true(changes(&s));
	assert_int_equal(s.count, 1);
	assert_int_equal(s.items[0].serial, 1);
	source_list_free(&s);
}

TEST(dangling_links_are_items_with_an_error, setup, teardown)
{
	struct source_list s = {0};

	run("ln -s nowhere one/a.kpack");
	assert_true(changes(&s));
	assert_int_equal(s.count, 1);
	assert_non_null(s.items[0].error);
	assert_false(changes(&s));
	write_file("one/nowhere", "a");
	assert_true(changes(&s));
	assert_null(s.items[0].error);
	assert_int_equal(s.items[0].serial, 1);
	source_list_free(&s);
}

TEST(only_force_tries_again_what_was_refused, setup, teardown)
{
	struct source_list s = {0};
	bool changed;

	write_file("one/a.kpack", "a");
	write_file("one/b.kpack", "b");
	assert_true(changes(&s));
	source_list_refuse(&s, 2);
	source_list_refuse(&s, 99);
	assert_false(changes(&s));
	assert_true(s.items[1].refused);
	assert_true(look(&s, false, true, &changed));
	assert_true(changed);
	assert_int_equal(s.items[0].serial, 1);
	assert_int_equal(s.items[1].serial, 3);
	assert_false(s.items[1].refused);
	source_list_free(&s);
}

TEST(opening_says_why_not, setup, teardown)
{
	struct kpackx_error why = {0};
	struct source_list s = {0};
	int fd;

	write_file("one/a.kpack", "a");
	run("mkfifo one/b.kpack");
	assert_true(changes(&s));
	fd = source_list_open(&s.items[0], &why);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
	assert_int_equal(source_list_open(&s.items[1], &why), -1);
	assert_true(why.text[0]);
	assert_true(s.items[1].refused);
	/* a refused source is not retried at each look */
	assert_false(changes(&s));
	source_list_free(&s);
}
