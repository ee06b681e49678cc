/* SPDX-License-Identifier: MIT */
/*
 * The journal of trees that are being renamed: reading gives what was written, or
 * nothing.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tests/unit/unit.h"
#include "packer/files/staging.h"

TEST(test_journal)
{
	static const char *const names[] = {"a_gfx1100", "a\n_generic"};
	char dir[] = "/tmp/kpack-test-journal-XXXXXX";
	struct journal j;
	struct stat st;
	int fd;

	assert_non_null(mkdtemp(dir));
	fd = open(dir, O_RDONLY | O_DIRECTORY);
	assert_true(fd >= 0);
	assert_false(journal_read(&j, fd));
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(mkdirat(fd, names[i], 0700), 0);
	assert_int_equal(journal_write(fd, names, 2, NULL), KPACK_SUCCESS);
	assert_int_equal(fstatat(fd, JOURNAL_NAME, &st, 0), 0);

	assert_true(journal_read(&j, fd));
	assert_int_equal(j.count, 2);
	assert_string_equal(j.items[1].name, names[1]);
	assert_true(journal_given(&j.items[0], fd));
	assert_int_equal(unlinkat(fd, names[0], AT_REMOVEDIR), 0);
	assert_false(journal_given(&j.items[0], fd));
	assert_true(journal_given(&j.items[1], fd));
	journal_fini(&j);

	/* what another user wrote counts for nothing */
	if (geteuid() == 0) {
		assert_int_equal(fchownat(fd, JOURNAL_NAME, 65534, -1, 0), 0);
		assert_false(journal_read(&j, fd));
		assert_int_equal(fchownat(fd, JOURNAL_NAME, 0, -1, 0), 0);
		assert_true(journal_read(&j, fd));
		journal_fini(&j);
	}

	for (off_t size = st.st_size; size-- > 0;) {
		int file = openat(fd, JOURNAL_NAME, O_WRONLY);

		assert_int_equal(ftruncate(file, size), 0);
		close(file);
		assert_false(journal_read(&j, fd));
		assert_int_equal(j.count, 0);
	}
	unlinkat(fd, names[1], AT_REMOVEDIR);
	unlinkat(fd, JOURNAL_NAME, 0);
	close(fd);
	assert_int_equal(rmdir(dir), 0);
}
