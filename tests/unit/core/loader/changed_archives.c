/* SPDX-License-Identifier: MIT */
/* Archives that are damaged, truncated, replaced or removed while in use. */
#include "tests/unit/hooks.h"
#include "tests/unit/loading.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include "tests/unit/unit.h"

/* Large enough to be truncated while it is decoded. */
enum { LARGE = 300000 };

/*
 * Offset of the first frame in an archive: after the header, the frame count and the
 * length word.
 */
enum { FRAME = 64 + 4 + 4 };

static char large[LARGE + 1];

static const struct request whole = {"lib/x.so", 0, "gfx900", "a.kpack", large, 0};
static const struct request copied = {"lib/x.so",        0,     "gfx900",
				      "a.kpack b.kpack", large, 0};

static int open_file(const char *name)
{
	int fd = open(in_dir(name), O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static void drop(const char *name)
{
	assert_int_equal(unlink(in_dir(name)), 0);
}

static void put(const char *name)
{
	write_archive(name, "'gfx900'", OBJECTS({"lib/x.so#0", "gfx900", large}));
}

/* Letters that do not compress too well. */
static int make_archives(void **state)
{
	uint32_t seed = 1;

	make_dir(state);
	for (size_t i = 0; i < LARGE; i++) {
		seed = seed * 1664525 + 1013904223;
		large[i] = (char)('A' + (seed >> 24) % 26);
	}
	put("a.kpack");
	put("b.kpack");
	return 0;
}

static kpack_error_t load(kpack_cache_t cache, const struct request *r)
{
	void *data = NULL;
	size_t size = 0;
	kpack_error_t err = ask(cache, r, &data, &size, NULL);

	if (err)
		assert_true(!data && size == 0);
	else
		assert_true(size == LARGE && memcmp(data, large, LARGE) == 0);
	kpack_free_code_object(data);
	return err;
}

/* ---- one change at a time ---- */

/* Change the start of the frame but not the file's size and time, like a bad disk. */
static void spoil(const char *name)
{
	int fd = open_file(name);
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(pwrite(fd, "spoiled", 7, FRAME), 7);
	assert_int_equal(futimens(fd, (struct timespec[]){st.st_atim, st.st_mtim}), 0);
	close(fd);
}

TEST(a_spoiled_archive_is_damaged)
{
	kpack_cache_t cache = new_cache();

	assert_int_equal(load(cache, &whole), KPACK_SUCCESS);
	spoil("a.kpack");
	assert_int_equal(load(cache, &whole), KPACK_ERROR_DECOMPRESSION_FAILED);
	assert_int_equal(load(cache, &copied), KPACK_SUCCESS);
	put("a.kpack");
	assert_int_equal(load(cache, &whole), KPACK_SUCCESS);
	kpack_cache_destroy(cache);
}

/* Decoding uses the open file, not the name. */
TEST(a_cut_archive_that_is_open_cannot_be_read)
{
	struct kpackx_error why = {0};
	kpack_archive_t a;
	void *data = NULL;
	size_t size = 0;
	int fd = open_file("a.kpack");

	assert_int_equal(kpack_open(in_dir("a.kpack"), &a), KPACK_SUCCESS);
	assert_int_equal(ftruncate(fd, LARGE / 4), 0);
	close(fd);
	assert_int_equal(kpackx_get_kernel(a, "lib/x.so#0", "gfx900", &data, &size, &why),
			 KPACK_ERROR_IO_ERROR);
	assert_has(why.text, "the file ends");
	assert_true(!data && size == 0);
	kpack_close(a);
	put("a.kpack");
}

/* ---- one file after another under a name ---- */

static void publish(const char *name, const char *says)
{
	write_archive(name, "'gfx900'", OBJECTS({"k#0", "gfx900", says}));
}

/* Write into the file that is there, and set its time. */
static void overwrite(const char *says, time_t sec, long nsec)
{
	struct timespec times[] = {{sec, nsec}, {sec, nsec}};
	char bytes[8192];
	int fd;
	ssize_t n;

	publish("new", says);
	fd = open_file("new");
	n = read(fd, bytes, sizeof(bytes));
	close(fd);
	fd = open_file("c.kpack");
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(write(fd, bytes, (size_t)n), n);
	assert_int_equal(futimens(fd, times), 0);
	close(fd);
	drop("new");
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

static void replace_meanwhile(void)
{
	publish("c.kpack", "MEANWHILE");
}

static void drop_meanwhile(void)
{
	drop("c.kpack");
}

enum step {
	NOTHING,
	REPLACE,
	TIME,
	SECONDS,
	NANOSECONDS,
	SIZE,
	LINK, /* to what is open already, by its own name */
	GONE,
	REPLACED_MEANWHILE,
	GONE_MEANWHILE,
	JUNK,
	CUT
};

static void change(enum step step)
{
	int fd;

	switch (step) {
	case NOTHING:
		return;
	case REPLACE:
		return publish("c.kpack", "REPLACED");
	case TIME:
		return overwrite("OVER.", 5, 5);
	case SECONDS:
		return overwrite("FIVES", 6, 5);
	case NANOSECONDS:
		return overwrite("SIXES", 6, 6);
	case SIZE:
		return overwrite("LONGER", 6, 6);
	case LINK:
		assert_int_equal(link(in_dir("d.kpack"), in_dir("new")), 0);
		assert_int_equal(rename(in_dir("new"), in_dir("c.kpack")), 0);
		return;
	case GONE:
		return drop("c.kpack");
	case REPLACED_MEANWHILE:
		publish("c.kpack", "BEFORE");
		meanwhile = replace_meanwhile;
		return;
	case GONE_MEANWHILE:
		publish("c.kpack", "NEVER OPENED");
		meanwhile = drop_meanwhile;
		return;
	case JUNK:
		return write_file("c.kpack", "no archive", 10);
	case CUT:
		fd = open_file("c.kpack");
		assert_int_equal(ftruncate(fd, 100), 0);
		close(fd);
	}
}

TEST(the_file_that_a_name_leads_to_is_read)
{
	static const struct {
		enum step step;
		const char *says; /* NULL: there is none */
	} steps[] = {
		{REPLACE, "REPLACED"},
		{NOTHING, "REPLACED"},
		{TIME, "OVER."},
		{SECONDS, "FIVES"},
		{NANOSECONDS, "SIXES"},
		{SIZE, "LONGER"},
		{LINK, "OTHER"},
		/* by this name it was not opened */
		{GONE, NULL},
		/* what was read before is still open */
		{REPLACE, "REPLACED"},
		{GONE, "REPLACED"},
		{REPLACED_MEANWHILE, "MEANWHILE"},
		{NOTHING, "MEANWHILE"},
		{GONE_MEANWHILE, "MEANWHILE"},
		/* failures are not kept */
		{JUNK, NULL},
		{REPLACE, "REPLACED"},
		{CUT, NULL},
		{REPLACE, "REPLACED"},
	};
	kpack_cache_t cache = new_cache();

	hook_open = open_after_that;
	publish("d.kpack", "OTHER");
	check(cache, &(struct request){"k", 0, "gfx900", "d.kpack", "OTHER", 0});
	for (size_t i = 0; i < COUNT(steps); i++) {
		change(steps[i].step);
		check(cache, &(struct request){
				     "k", 0, "gfx900", "c.kpack", steps[i].says,
				     steps[i].says ? 0 : KPACK_ERROR_ARCHIVE_NOT_FOUND});
		/* once, whatever it was before */
		assert_true(count_open("c.kpack") <= 1);
		assert_int_equal(count_open("d.kpack"), 1);
	}
	hook_open = NULL;
	kpack_cache_destroy(cache);
	assert_int_equal(count_open("c.kpack") + count_open("d.kpack"), 0);
}

/* The same relative path, from another directory. */
TEST(a_relative_path_leads_from_where_the_program_is)
{
	kpack_cache_t cache;
	char before[4096];

	assert_non_null(getcwd(before, sizeof(before)));
	assert_int_equal(chdir(dir), 0);
	setenv("ROCM_KPACK_PATH", "a.kpack", 1);
	cache = new_cache();
	unsetenv("ROCM_KPACK_PATH");
	assert_int_equal(load(cache, &whole), KPACK_SUCCESS);
	assert_int_equal(chdir("/"), 0);
	assert_int_equal(load(cache, &whole), KPACK_ERROR_ARCHIVE_NOT_FOUND);
	assert_int_equal(chdir(before), 0);
	kpack_cache_destroy(cache);
}

/* ---- all at once ---- */

struct crowd {
	kpack_cache_t cache;
	const struct request *request;
	atomic_bool done;
};

static bool may_happen(kpack_error_t err)
{
	return err == KPACK_SUCCESS || err == KPACK_ERROR_ARCHIVE_NOT_FOUND ||
	       err == KPACK_ERROR_IO_ERROR || err == KPACK_ERROR_INVALID_FORMAT ||
	       err == KPACK_ERROR_DECOMPRESSION_FAILED;
}

static void *load_all_the_time(void *arg)
{
	struct crowd *c = arg;
	bool good = true;

	while (!c->done) {
		void *data = NULL;
		size_t size = 0;
		kpack_error_t err = ask(c->cache, c->request, &data, &size, NULL);

		good &= may_happen(err);
		/* without a checksum, data overwritten during the read may be anything */
		good &= err ? !data && size == 0 : data && size == LARGE;
		kpack_free_code_object(data);
	}
	return good ? c : NULL;
}

/* Change the file NAME in way number WHAT. */
static void upset(const char *name, int what)
{
	int fd;

	switch (what % 4) {
	case 0:
		drop(name);
		assert_int_equal(link(in_dir("b.kpack"), in_dir(name)), 0);
		break;
	case 1:
		put(name);
		break;
	case 2:
		fd = open_file(name);
		assert_int_equal(ftruncate(fd, LARGE / 4), 0);
		close(fd);
		put(name);
		break;
	default:
		spoil(name);
		put(name);
	}
}

TEST(threads_load_what_changes)
{
	struct crowd c = {.cache = new_cache(), .request = &whole};
	pthread_t threads[4];
	bool good = true;

	for (size_t i = 0; i < COUNT(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, load_all_the_time, &c),
				 0);
	for (int i = 1; i <= 200; i++)
		upset("a.kpack", i);
	c.done = true;
	for (size_t i = 0; i < COUNT(threads); i++) {
		void *result;

		pthread_join(threads[i], &result);
		good &= result != NULL;
	}
	assert_true(good);
	put("a.kpack");
	assert_int_equal(load(c.cache, &whole), KPACK_SUCCESS);
	kpack_cache_destroy(c.cache);
}

/* ---- signals ---- */

/* Every other call is interrupted. */
static unsigned calls;

static bool interrupted(void)
{
	if (calls++ % 2)
		return false;
	errno = EINTR;
	return true;
}

static ssize_t pread_or_not(int fd, void *buf, size_t size, off_t offset)
{
	return interrupted() ? -1 : system_pread(fd, buf, size, offset);
}

static int open_or_not(const char *path, int flags, mode_t mode)
{
	return interrupted() ? -1 : system_open(path, flags, mode);
}

TEST(signals_do_not_stop_a_load)
{
	kpack_cache_t cache = new_cache();
	kpack_error_t err;

	hook_pread = pread_or_not;
	hook_open = open_or_not;
	err = load(cache, &whole);
	hook_pread = NULL;
	hook_open = NULL;
	assert_int_equal(err, KPACK_SUCCESS);
	assert_true(calls >= 10);
	kpack_cache_destroy(cache);
}

SUITE(make_archives, remove_dir);
