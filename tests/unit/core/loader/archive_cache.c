/* SPDX-License-Identifier: MIT */
#include "core/loader/archive_cache.h"
#include "tests/unit/hooks.h"
#include "tests/unit/archive_builder.h"
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include "tests/unit/unit.h"

static char dir[] = "/tmp/kpack-cache-XXXXXX";

static const char *at(const char *name)
{
	static char paths[4][64];
	static unsigned next;
	char *path = paths[next++ % 4];

	snprintf(path, 64, "%s/%s", dir, name);
	return path;
}

static int make_dir(void **state)
{
	return mkdtemp(dir) == NULL;
}

static int remove_dir(void **state)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

/* Write an archive that offers ARCH, replacing the existing file. */
static void put_archive(const char *name, const char *arch)
{
	struct ab a = ab_new(16);
	FILE *f = fopen(at("tmp"), "w");

	assert_non_null(f);
	ab_toc(&a, "{'gfx_arches': ['%s'], 'toc': {}}", arch);
	assert_int_equal(fwrite(a.bytes, 1, a.size, f), a.size);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(rename(at("tmp"), at(name)), 0);
	ab_free(&a);
}

static size_t open_files(void)
{
	DIR *fds = opendir("/proc/self/fd");
	size_t n = 0;

	assert_non_null(fds);
	while (readdir(fds))
		n++;
	closedir(fds);
	return n;
}

/* Called once, between the stat() of a file and its opening. */
static void (*meanwhile)(void);

static int open_after_that(const char *path, int flags, mode_t mode)
{
	void (*happen)(void) = meanwhile;

	meanwhile = NULL;
	if (happen)
		happen();
	return system_open(path, flags, mode);
}

static struct kp_cached *get(struct kp_cache *c, const char *name)
{
	struct kpackx_error why = {0};
	struct kp_cached *e = NULL;

	if (kp_cache_get(c, at(name), &e, &why))
		fail_msg("%s: %s", name, why.text);
	return e;
}

static const char *arch_of(const struct kp_cached *e)
{
	return kp_archive_arch(kp_cached_archive(e), 0);
}

TEST(a_file_is_opened_once)
{
	struct kp_cached *first, *second;
	struct kp_cache c;

	put_archive("a", "one");
	assert_int_equal(symlink("a", at("linked")), 0);
	assert_int_equal(kp_cache_init(&c, NULL), KPACK_SUCCESS);
	first = get(&c, "a");
	second = get(&c, "a");
	assert_ptr_equal(first, second);
	kp_cache_put(second);
	/* through any path */
	second = get(&c, "linked");
	assert_ptr_equal(first, second);
	kp_cache_put(second);
	kp_cache_put(first);
	/* it stays open when unused */
	second = get(&c, "./a");
	assert_ptr_equal(first, second);
	kp_cache_put(second);
	kp_cache_put(NULL);
	kp_cache_fini(&c);
}

TEST(a_replaced_file_is_opened_anew)
{
	struct kp_cached *old, *new;
	struct kp_cache c;
	size_t n;

	put_archive("r", "old");
	assert_int_equal(kp_cache_init(&c, NULL), KPACK_SUCCESS);
	old = get(&c, "r");
	n = open_files();
	put_archive("r", "new");
	new = get(&c, "r");
	assert_ptr_not_equal(old, new);
	assert_string_equal(arch_of(new), "new");
	/* a user of the old archive can keep using it */
	assert_string_equal(arch_of(old), "old");
	kp_cache_put(old);
	kp_cache_put(new);
	/* an unused old archive is closed at once */
	put_archive("r", "newer");
	new = get(&c, "r");
	assert_string_equal(arch_of(new), "newer");
	assert_int_equal(open_files(), n);
	kp_cache_put(new);
	kp_cache_fini(&c);
	assert_int_equal(open_files(), n - 1);
}

/* Inode, size or time shows the change. */
TEST(a_file_that_was_written_to_is_opened_anew)
{
	static const struct {
		const char *arch;
		struct timespec time;
	} steps[] = {
		{"old", {5, 5}}, {"new", {6, 5}}, {"now", {6, 6}}, {"longer", {6, 6}}};
	struct kp_cache c;

	put_archive("w", "first");
	assert_int_equal(kp_cache_init(&c, NULL), KPACK_SUCCESS);
	for (size_t i = 0; i < COUNT(steps); i++) {
		struct timespec times[] = {steps[i].time, steps[i].time};
		struct ab a = ab_new(16);
		struct kp_cached *e;
		FILE *f = fopen(at("w"), "w");

		assert_non_null(f);
		ab_toc(&a, "{'gfx_arches': ['%s'], 'toc': {}}", steps[i].arch);
		assert_int_equal(fwrite(a.bytes, 1, a.size, f), a.size);
		fclose(f);
		ab_free(&a);
		assert_int_equal(utimensat(AT_FDCWD, at("w"), times, 0), 0);
		e = get(&c, "w");
		assert_string_equal(arch_of(e), steps[i].arch);
		kp_cache_put(e);
	}
	kp_cache_fini(&c);
}

TEST(another_file_that_is_open_already_takes_the_place)
{
	struct kp_cached *a, *b, *e;
	struct kp_cache c;

	put_archive("p", "p");
	put_archive("q", "q");
	assert_int_equal(kp_cache_init(&c, NULL), KPACK_SUCCESS);
	a = get(&c, "p");
	b = get(&c, "q");
	assert_int_equal(link(at("q"), at("q2")), 0);
	assert_int_equal(rename(at("q2"), at("p")), 0);
	e = get(&c, "p");
	assert_ptr_equal(e, b);
	assert_string_equal(arch_of(a), "p");
	kp_cache_put(a);
	kp_cache_put(b);
	kp_cache_put(e);
	kp_cache_fini(&c);
}

TEST(a_file_that_is_gone_stays_open)
{
	struct kp_cached *first, *second;
	struct kpackx_error why = {0};
	struct kp_cache c;

	put_archive("g", "gone");
	assert_int_equal(kp_cache_init(&c, NULL), KPACK_SUCCESS);
	first = get(&c, "g");
	kp_cache_put(first);
	unlink(at("g"));
	second = get(&c, "g");
	assert_ptr_equal(first, second);
	kp_cache_put(second);
	assert_int_equal(kp_cache_get(&c, at("other"), &second, &why),
			 KPACK_ERROR_FILE_NOT_FOUND);
	put_archive("g", "back");
	second = get(&c, "g");
	assert_string_equal(arch_of(second), "back");
	kp_cache_put(second);
	kp_cache_fini(&c);
}

/* The same relative path, from another directory. */
TEST(a_relative_path_leads_from_where_the_program_is)
{
	struct kp_cached *e = NULL;
	struct kp_cache c;
	char before[4096];

	put_archive("c", "here");
	assert_non_null(getcwd(before, sizeof(before)));
	assert_int_equal(chdir(dir), 0);
	assert_int_equal(kp_cache_init(&c, NULL), KPACK_SUCCESS);
	assert_int_equal(kp_cache_get(&c, "c", &e, NULL), KPACK_SUCCESS);
	kp_cache_put(e);
	assert_int_equal(chdir("/"), 0);
	assert_int_equal(kp_cache_get(&c, "c", &e, NULL), KPACK_ERROR_FILE_NOT_FOUND);
	assert_int_equal(chdir(before), 0);
	kp_cache_fini(&c);
}

static void replace(void)
{
	put_archive("m", "two");
}

static void drop(void)
{
	unlink(at("m"));
}

/*
 * The file is replaced between stat() and open(): the cache records the file that was
 * opened.
 */
TEST(a_file_that_is_replaced_meanwhile_is_known)
{
	struct kp_cached *e, *again;
	struct kp_cache c;

	put_archive("m", "one");
	assert_int_equal(kp_cache_init(&c, NULL), KPACK_SUCCESS);
	hook_open = open_after_that;
	meanwhile = replace;
	e = get(&c, "m");
	assert_string_equal(arch_of(e), "two");
	again = get(&c, "m");
	assert_ptr_equal(e, again);
	kp_cache_put(e);
	kp_cache_put(again);
	kp_cache_fini(&c);
}

/* If the new file disappears before it is opened, the look-up gives the old archive. */
TEST(a_file_that_goes_before_it_is_opened_is_gone)
{
	struct kp_cached *old, *e;
	struct kp_cache c;

	put_archive("m", "one");
	assert_int_equal(kp_cache_init(&c, NULL), KPACK_SUCCESS);
	old = get(&c, "m");
	replace();
	hook_open = open_after_that;
	meanwhile = drop;
	e = get(&c, "m");
	assert_ptr_equal(e, old);
	kp_cache_put(old);
	kp_cache_put(e);
	kp_cache_fini(&c);
}

TEST(failures_are_not_kept)
{
	struct kp_cached *e = NULL;
	struct kpackx_error why = {0};
	struct kp_cache c;
	FILE *f = fopen(at("f"), "w");

	assert_non_null(f);
	fputs("no archive at all", f);
	fclose(f);
	assert_int_equal(kp_cache_init(&c, NULL), KPACK_SUCCESS);
	for (int i = 0; i < 2; i++) {
		why = (struct kpackx_error){0};
		assert_int_equal(kp_cache_get(&c, at("f"), &e, &why),
				 KPACK_ERROR_INVALID_FORMAT);
		assert_true(why.code == KPACK_ERROR_INVALID_FORMAT && why.text[0] && !e);
	}
	assert_int_equal(kp_cache_get(&c, dir, &e, &why), KPACK_ERROR_IO_ERROR);
	assert_int_equal(kp_cache_get(&c, at("none"), &e, NULL),
			 KPACK_ERROR_FILE_NOT_FOUND);
	put_archive("f", "good");
	e = get(&c, "f");
	assert_string_equal(arch_of(e), "good");
	kp_cache_put(e);
	kp_cache_fini(&c);
}

SUITE(make_dir, remove_dir);
