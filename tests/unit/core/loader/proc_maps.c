/* SPDX-License-Identifier: MIT */
#include "core/loader/process.h"
#include <fcntl.h>
#include "tests/unit/unit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[] = "/tmp/kpack-maps-XXXXXX";
static size_t page;

static int enter_dir(void **state)
{
	page = (size_t)sysconf(_SC_PAGESIZE);
	return mkdtemp(root) == NULL || chdir(root);
}

static int leave_dir(void **state)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

/* Map three pages of a new file NAME. */
static char *map_file(const char *name)
{
	int fd = open(name, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	char *pages;

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)(3 * page)), 0);
	pages = mmap(NULL, 3 * page, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_true(pages != MAP_FAILED);
	close(fd);
	return pages;
}

static void check(const char *pages, const char *name)
{
	struct kpackx_error why = {0};
	char want[512], *path = NULL;
	uint64_t offset = 0;

	snprintf(want, sizeof(want), "%s/%s", root, name);
	if (kp_maps_find(pages + 7, &path, &offset, &why))
		fail_msg("%s: %s", name, why.text);
	assert_string_equal(path, want);
	assert_int_equal(offset, 7);
	free(path);
}

TEST(files_are_found_by_any_of_their_addresses)
{
	char *pages = map_file("a"), *path;
	uint64_t offset;

	for (size_t at = 0; at < 3 * page; at += at % page ? 1 : page - 1) {
		assert_int_equal(kp_maps_find(pages + at, &path, &offset, NULL),
				 KPACK_SUCCESS);
		assert_int_equal(offset, at);
		free(path);
	}
	/* a mapping that does not begin at the start of the file */
	munmap(pages, page);
	assert_int_equal(kp_maps_find(pages + page + 1, &path, &offset, NULL),
			 KPACK_SUCCESS);
	assert_int_equal(offset, page + 1);
	free(path);
	assert_int_equal(kp_maps_find(pages, &path, &offset, NULL),
			 KPACK_ERROR_PATH_DISCOVERY_FAILED);
	/* a mapping that does not reach the end of the file */
	munmap(pages + 2 * page, page);
	assert_int_equal(kp_maps_find(pages + 2 * page, &path, &offset, NULL),
			 KPACK_ERROR_PATH_DISCOVERY_FAILED);
	munmap(pages + page, page);
}

TEST(names_are_reported_as_they_are)
{
	static const char *const names[] = {
		"b c",
		"  spaces  ",
		"new\nline\n",
		"back\\slash",
		"\\012",
		"x (deleted)",
		"x (deleted) (deleted)",
		" (deleted)",
		"\n (deleted)",
		"\xff\xfe",
		"t\tab",
		"[in brackets]",
		"7f00-7f01 r-xp",
	};

	for (size_t i = 0; i < COUNT(names); i++) {
		char *pages = map_file(names[i]);

		check(pages, names[i]);
		munmap(pages, 3 * page);
		unlink(names[i]);
	}
}

TEST(of_files_that_are_gone_the_name_they_had)
{
	char *pages = map_file("lib.so");

	unlink("lib.so");
	check(pages, "lib.so");
	/* replaced: the new file has the old file's name */
	munmap(map_file("lib.so"), 3 * page);
	check(pages, "lib.so");
	/* another file has the longer name */
	munmap(map_file("lib.so (deleted)"), 3 * page);
	check(pages, "lib.so");
	munmap(pages, 3 * page);

	pages = map_file("new\nline");
	unlink("new\nline");
	check(pages, "new\nline");
	munmap(pages, 3 * page);

	/*
	 * the kernel reports it as deleted, since it knows only one name, but the file
	 * exists
	 */
	pages = map_file("\\012");
	assert_int_equal(link("\\012", "other"), 0);
	unlink("\\012");
	assert_int_equal(link("other", "\\012"), 0);
	check(pages, "\\012");
	munmap(pages, 3 * page);
}

TEST(long_paths_are_reported_whole)
{
	enum { DEPTH = 30, SIZE = 200 };
	char name[SIZE + 1], *pages, *path;
	uint64_t offset;

	memset(name, 'n', SIZE);
	name[SIZE] = '\0';
	for (int i = 0; i < DEPTH; i++)
		assert_int_equal(mkdir(name, 0700) | chdir(name), 0);
	pages = map_file("deep");
	assert_int_equal(chdir(root), 0);
	assert_int_equal(kp_maps_find(pages, &path, &offset, NULL), KPACK_SUCCESS);
	assert_int_equal(strlen(path),
			 strlen(root) + DEPTH * (SIZE + 1) + strlen("/deep"));
	assert_string_equal(path + strlen(path) - 5, "/deep");
	free(path);
	munmap(pages, 3 * page);
}

TEST(memory_that_is_no_file_is_refused)
{
	char *anonymous = mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct kpackx_error why = {0};
	uint64_t offset;
	char *path = NULL;

	assert_int_equal(kp_maps_find(anonymous, &path, &offset, &why),
			 KPACK_ERROR_PATH_DISCOVERY_FAILED);
	assert_has(why.text, "no file is mapped at 0x");
	assert_int_equal(kp_maps_find((void *)8, &path, &offset, &why),
			 KPACK_ERROR_PATH_DISCOVERY_FAILED);
	assert_string_equal(why.text, "nothing is mapped at 0x8");
	assert_int_equal(kp_maps_find(&why, &path, &offset, NULL),
			 KPACK_ERROR_PATH_DISCOVERY_FAILED);
	assert_null(path);
	munmap(anonymous, page);
}

SUITE(enter_dir, leave_dir);
