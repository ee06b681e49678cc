/* SPDX-License-Identifier: MIT */
#include "fs/mount/read_error_log.h"
#include "tests/unit/archive_builder.h"
#include "tests/unit/unit.h"

enum { ENTRIES = 2 * READ_ERRORS_KNOWN };

static struct origin *first, *second;
static struct read_error_log cs;

static void add(struct origin *o, size_t entry)
{
	struct kpackx_error why = {0};

	kp_fail(&why, KPACK_ERROR_IO_ERROR, "a\\012b: read error");
	read_error_log_add(&cs, (struct origin_entry){o, entry}, &why);
}

/* ---- the log: stderr is a file ---- */

static FILE *out;
static char last[1024];

static int empty_log(void **state)
{
	rewind(out);
	return ftruncate(fileno(out), 0) || lseek(STDERR_FILENO, 0, SEEK_SET);
}

/* The number of lines, of which the last one is in LAST. */
static int lines(void)
{
	int n = 0;

	rewind(out);
	while (fgets(last, sizeof(last), out))
		n++;
	return n;
}

/* An archive with this TOC and one object. */
static struct origin *archive(const char *path, const char *toc)
{
	struct ab a = ab_new(64);
	struct origin *o = NULL;
	struct kpackx_error why;
	char file[32];

	ab_put(&a, "aaaa", 4);
	ab_toc(&a, "{'blobs': [{'offset': 64, 'size': 4}], 'toc': %s}", toc);
	assert_int_equal(origin_new(ab_memfd(a.bytes, a.size, file), path, &o, &why), 0);
	ab_free(&a);
	return o;
}

static int begin_suite(void **state)
{
	char *toc = malloc(64 * ENTRIES), *at = toc;
	int fd = memfd_create("log", MFD_CLOEXEC);

	at += sprintf(at, "{'lib/x.so#0': {'gfx90a:xnack+': {'ordinal': 0}}, ");
	for (int i = 1; i < ENTRIES; i++)
		at += sprintf(at, "'y#%d': {'gfx90a': {'ordinal': 0}}, ", i);
	strcpy(at, "}");
	first = archive("/opt/a\n.kpack", toc);
	second = archive("/opt/b.kpack", "{'x': {'gfx90a': {'ordinal': 0}}}");
	free(toc);
	first->serial = 1;
	second->serial = 2;
	out = fdopen(fd, "r+");
	return !out || dup2(fd, STDERR_FILENO) < 0 || empty_log(state);
}

static int end_suite(void **state)
{
	origin_unref(first);
	origin_unref(second);
	return fclose(out);
}

/* ---- tests ---- */

TEST(one_line_for_each_entry, empty_log)
{
	read_error_log_init(&cs, 20, 1000);
	for (int i = 0; i < 100; i++)
		add(first, 0);
	assert_int_equal(lines(), 1);
	assert_string_equal(last, "kpackfs: /opt/a\\012.kpack: lib/x.so#0 gfx90a:xnack+: "
				  "a\\012b: read error\n");
	add(first, 1);
	add(second, 0);
	read_error_log_fini(&cs);
	assert_int_equal(lines(), 3);
}

TEST(not_too_many_lines, empty_log)
{
	read_error_log_init(&cs, 20, 1000);
	for (size_t i = 0; i < 100; i++)
		add(first, i);
	assert_int_equal(lines(), 20);
	read_error_log_fini(&cs);
	assert_int_equal(lines(), 21);
	assert_string_equal(last, "kpackfs: and 80 more read errors\n");
}

/* The number is logged when the period ends, even if no other read fails. */
TEST(the_number_comes_in_time)
{
	int file = dup(STDERR_FILENO), fds[2];
	FILE *from;

	assert_int_equal(pipe(fds), 0);
	dup2(fds[1], STDERR_FILENO);
	from = fdopen(fds[0], "r");
	read_error_log_init(&cs, 1, 1000);
	for (size_t i = 0; i < 5; i++)
		add(first, i);
	pthread_mutex_lock(&cs.lock);
	cs.since -= 1000;
	pthread_cond_signal(&cs.wanted);
	pthread_mutex_unlock(&cs.lock);
	assert_non_null(fgets(last, sizeof(last), from));
	assert_non_null(fgets(last, sizeof(last), from)); /* waits for the thread */
	assert_string_equal(last, "kpackfs: and 4 more read errors\n");
	read_error_log_fini(&cs);
	dup2(file, STDERR_FILENO);
	close(file);
	close(fds[1]);
	assert_null(fgets(last, sizeof(last), from));
	fclose(from);
}

SUITE(begin_suite, end_suite);
