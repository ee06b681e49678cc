/* SPDX-License-Identifier: MIT */
/*
 * A directory of each test's own, which is the current one meanwhile.  Paths by at() are absolute,
 * for roots of packer/files/below.h, which stay after the test.
 */
#ifndef SCRATCH_H
#define SCRATCH_H

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "unit.h"

static char top[64];

/* A status that is 0, or KPACK_SUCCESS. */
#define assert_ok(call) assert_int_equal(call, 0)
#define assert_io_error(call) assert_int_equal(call, KPACK_ERROR_IO_ERROR)

/* TOP/REST; a few results are valid at once. */
static inline const char *at(const char *rest)
{
	static char paths[8][300];
	static unsigned turn;
	char *path = paths[turn++ % 8];

	snprintf(path, sizeof(paths[0]), "%s/%s", top, rest);
	return path;
}

static inline int scratch_begin(void **state)
{
	umask(022);
	strcpy(top, "/tmp/kpack-test-XXXXXX");
	return !mkdtemp(top) || chdir(top);
}

static inline int scratch_end(void **state)
{
	char command[200];

	snprintf(command, sizeof(command), "chmod -R u+w %s; rm -rf %s", top, top);
	return chdir("/") | system(command);
}

static inline void write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

/* Make what the arguments say, up to NULL: "directory/", "file=text", "link>target". */
static inline void make(const char *what, ...)
{
	va_list more;

	va_start(more, what);
	for (; what; what = va_arg(more, const char *)) {
		char name[100];
		size_t n = strcspn(what, "=>");

		snprintf(name, sizeof(name), "%.*s", (int)n, what);
		if (what[n] == '=')
			write_text(name, what + n + 1);
		else
			assert_ok(what[n] ? symlink(what + n + 1, name)
					  : mkdir(name, 0755));
	}
	va_end(more);
}

/* FD is open for reading TEXT; it is closed. */
static inline void assert_reads(int fd, const char *text)
{
	char buf[16] = "";

	assert_true(fd >= 0);
	assert_int_equal(read(fd, buf, sizeof(buf) - 1), strlen(text));
	assert_string_equal(buf, text);
	close(fd);
}

#endif
