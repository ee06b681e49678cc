/* SPDX-License-Identifier: MIT */
#include "packer/base/xalloc.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/unit/unit.h"

TEST(memory_is_as_asked_for)
{
	char *a = xstrdup("abc"), *b = xstrndup("abc", 2), *c = xasprintf("%s-%d", a, 7);
	unsigned char *zeros = xcalloc(3, 5);
	uint32_t *list = NULL;
	size_t cap = 0;

	assert_string_equal(a, "abc");
	assert_string_equal(b, "ab");
	assert_string_equal(c, "abc-7");
	for (size_t i = 0; i < 15; i++)
		assert_int_equal(zeros[i], 0);
	for (uint32_t i = 0; i < 1000; i++) {
		xgrow(&list, i, &cap, sizeof(*list));
		list[i] = i;
	}
	assert_int_equal(list[999], 999);
	a = xrealloc(a, 100);
	assert_string_equal(a, "abc");
	free(xmalloc(0));
	free(xcalloc(0, 4));
	free(a);
	free(b);
	free(c);
	free(zeros);
	free(list);
}

TEST(a_failure_is_one_line_and_status_1)
{
	char text[256], want[256];
	int fds[2], status;
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		dup2(fds[1], STDERR_FILENO);
		xalloc_fail(12345);
	}
	close(fds[1]);
	n = read(fds[0], text, sizeof(text) - 1);
	assert_true(n > 0);
	text[n] = '\0';
	snprintf(want, sizeof(want), "%s: out of memory (12345 bytes)\n",
		 program_invocation_short_name);
	assert_string_equal(text, want);
	assert_int_equal(read(fds[0], text, sizeof(text)), 0);
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 1);
}
