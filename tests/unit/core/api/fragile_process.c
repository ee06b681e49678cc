/* SPDX-License-Identifier: MIT */
/*
 * What a library must not do to its process, and must survive from outside: files that
 * change while in use, fork, exec, locales, lists from the environment.
 */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "tests/unit/amd_fixtures.h"
#include "core/rocm_kpack/kpackx.h"
#include "tests/unit/unit.h"

/*
 * Two tests need more than a sanitizer's allocator provides: AddressSanitizer's may stay
 * locked in a child of fork(), and both sanitizers end a process that is out of memory.
 */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#elif __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
enum { FORKS = 0, MALLOC_FAILS = false };
#elif defined(__SANITIZE_THREAD__)
enum { FORKS = 20, MALLOC_FAILS = false };
#else
enum { FORKS = 20, MALLOC_FAILS = true };
#endif

/* ---- names and lists ---- */

#define XNACK "t_gfx90a:sramecc+:xnack-.kpack"
#define XNACK_ESCAPED "t_gfx90a\\:sramecc+\\:xnack-.kpack"

static const struct fx_object colons[] = {
	{"k#0", "gfx90a:sramecc+:xnack-", "COLONS", 6, 0}, {0}};
static const struct fx_ask for_colons = {"k", 0, "gfx90a:sramecc+:xnack-", "no.kpack"};

/* Set NAME to VALUE; @ in VALUE stands for the directory. */
static void set_list(const char *name, const char *value)
{
	char text[4 * FX_PATH] = "";

	for (; *value; value++)
		fx_say(text, sizeof(text), *value == '@' ? "%s" : "%.1s",
		       *value == '@' ? fx_dir : value);
	setenv(name, text, 1);
}

TEST(colons_of_a_path_may_be_escaped, NULL, fx_after)
{
	static const char *const found[] = {
		"@/" XNACK_ESCAPED,
		"/none:@/" XNACK_ESCAPED ":/none",
		"@/" XNACK_ESCAPED ":@/" XNACK_ESCAPED,
	};

	fx_put_packed(XNACK, "'gfx90a:sramecc+:xnack-'", colons);
	for (size_t i = 0; i < COUNT(found); i++) {
		set_list("ROCM_KPACK_PATH", found[i]);
		fx_loads(&for_colons, colons);
		unsetenv("ROCM_KPACK_PATH");
		set_list("ROCM_KPACK_PATH_PREFIX", found[i]);
		fx_loads(&for_colons, colons);
		unsetenv("ROCM_KPACK_PATH_PREFIX");
	}
	/* AMD's loader splits this into three paths, none of which exists */
	set_list("ROCM_KPACK_PATH", "/none:@/" XNACK ":/none");
	fx_loads(&for_colons, colons);
	unsetenv("ROCM_KPACK_PATH");
}

TEST(a_directory_stands_for_its_archives, NULL, fx_after)
{
	static const struct fx_object first[] = {{"k#0", "gfx900", "FIRST", 5, 0}, {0}};
	static const struct fx_object second[] = {
		{"k#0", "gfx900", "SECOND", 6, 0}, {"k#1", "gfx900", "MORE", 4, 0}, {0}};
	static const struct fx_ask q = {"k", 0, "gfx900", "no.kpack"};
	char path[FX_PATH];

	assert_int_equal(mkdir(fx_path("many", path), 0755), 0);
	fx_put_packed("many/b.kpack", "'gfx900'", second);
	fx_put_packed("many/a.kpack", "'gfx900'", first);
	fx_put_packed("many/a.kpack.old", "'gfx900'", second);
	set_list("ROCM_KPACK_PATH", "/none:@/many");
	fx_loads(&q, first);
	fx_loads(&(struct fx_ask){"k", 1, "gfx900", "no.kpack"}, &second[1]);
	set_list("ROCM_KPACK_PATH", "@/many/b.kpack:@/many/");
	fx_loads(&q, second);
}

TEST(keys_without_a_number_are_index_0, NULL, fx_after)
{
	static const struct fx_object objects[] = {
		{"a#0", "gfx900", "A0", 2, 0}, {"a#1", "gfx900", "A1", 2, 0},
		{"b", "gfx900", "B", 1, 0},    {"c", "gfx900", "C", 1, 0},
		{"c#0", "gfx900", "C0", 2, 0}, {0}};
	static const struct {
		const char *name;
		size_t object;
	} cases[] = {{"a", 0}, {"a#0", 0}, {"a#1", 1}, {"b", 2}, {"c", 3}, {"c#0", 4}};
	kpack_archive_t archive;

	fx_put_packed("names", "'gfx900'", objects);
	archive = fx_open("names");
	for (size_t i = 0; i < COUNT(cases); i++) {
		void *data = NULL;
		size_t size = 0;

		assert_int_equal(
			kpack_get_kernel(archive, cases[i].name, "gfx900", &data, &size),
			KPACK_SUCCESS);
		assert_true(fx_is(data, size, &objects[cases[i].object]));
		kpack_free_kernel(data);
	}
	fx_check_no_kernel(archive, "a#2", "gfx900", KPACK_ERROR_KERNEL_NOT_FOUND);
	fx_check_no_kernel(archive, "a#", "gfx900", KPACK_ERROR_KERNEL_NOT_FOUND);
	kpack_close(archive);
}

/* ---- files that change ---- */

enum { BIG = 200000, TABLE = 1 << 18, ROUNDS = 60, READERS = 4 };

static uint8_t *contents[2]; /* BIG bytes each; the file alternates between the two */

static int make_contents(void **state)
{
	contents[0] = ab_data(BIG, 1);
	contents[1] = ab_data(BIG, 2);
	return fx_make(state);
}

static int remove_contents(void **state)
{
	free(contents[0]);
	free(contents[1]);
	return fx_remove(state);
}

static bool is_content(const void *data, size_t size)
{
	return size == BIG && (memcmp(data, contents[0], BIG) == 0 ||
			       memcmp(data, contents[1], BIG) == 0);
}

struct reader {
	kpack_archive_t archive; /* NULL: load through the cache */
	kpack_cache_t cache;
	const char *name;
	atomic_bool stop;
	atomic_int right, failed, wrong;
	sem_t begun; /* after the first attempt */
};

/* Whether ERR is an error that a changing file may cause; any other is wrong. */
static bool is_expected(kpack_error_t err)
{
	return err == KPACK_ERROR_IO_ERROR || err == KPACK_ERROR_DECOMPRESSION_FAILED ||
	       err == KPACK_ERROR_INVALID_FORMAT ||
	       err == KPACK_ERROR_MSGPACK_PARSE_FAILED ||
	       err == KPACK_ERROR_ARCHIVE_NOT_FOUND;
}

static void *read_on(void *arg)
{
	struct reader *r = arg;
	const struct fx_ask q = {"k", 0, "gfx900", r->name};

	while (!r->stop) {
		void *data = NULL;
		size_t size = 0;
		kpack_error_t err = r->archive ? kpack_get_kernel(r->archive, "k#0",
								  "gfx900", &data, &size)
					       : fx_load(r->cache, &q, &data, &size);

		if (!err && is_content(data, size))
			r->right++;
		else if (err && is_expected(err) && !data)
			r->failed++;
		else
			r->wrong++;
		kpack_free_kernel(data);
		if (r->right + r->failed + r->wrong == 1)
			sem_post(&r->begun);
	}
	return NULL;
}

/*
 * Truncate to zero, truncate to half, or overwrite the middle of the frame; then always
 * rewrite the whole file in place.
 */
static void disturb(const char *path, const struct ab *a, int round)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	static const char zeros[512];

	assert_true(fd >= 0);
	switch (round % 4) {
	case 0:
		assert_int_equal(ftruncate(fd, 0), 0);
		break;
	case 1:
		assert_int_equal(ftruncate(fd, (off_t)a->size / 2), 0);
		break;
	case 2: /* the middle of the frame changes */
		assert_int_equal(pwrite(fd, zeros, sizeof(zeros), 80), sizeof(zeros));
		break;
	default:
		break;
	}
	assert_int_equal(pwrite(fd, a->bytes, a->size, 0), a->size);
	close(fd);
}

/*
 * The frame has a checksum, so that no damage passes for code.  The table is always at
 * the same offset, so that a mix of both contents fails only with these errors.
 */
static struct ab checked(const uint8_t *content)
{
	struct ab a = ab_new_zstd();
	size_t cap = ZSTD_compressBound(BIG), n;
	ZSTD_CCtx *zstd = ZSTD_createCCtx();
	uint8_t *frame = calloc(1, TABLE);

	assert_true(zstd && frame && cap <= TABLE);
	ZSTD_CCtx_setParameter(zstd, ZSTD_c_checksumFlag, 1);
	n = ZSTD_compress2(zstd, frame, cap, content, BIG);
	assert_false(ZSTD_isError(n));
	ab_stored(&a, frame, n);
	n = a.size - 64;
	memset(frame, 0, TABLE);
	ab_put(&a, frame, TABLE - a.size);
	ab_toc(&a,
	       "{'gfx_arches': ['gfx900'], 'compression_scheme': 'zstd-per-kernel', "
	       "'zstd_offset': 64, 'zstd_size': %zu, 'toc': {'k#0': {'gfx900': "
	       "{'ordinal': 0, 'original_size': %d}}}}",
	       n, BIG);
	ZSTD_freeCCtx(zstd);
	free(frame);
	return a;
}

/* Returns when every reader has made an attempt. */
static void start(struct reader readers[READERS], pthread_t threads[READERS],
		  kpack_archive_t archive, kpack_cache_t cache, const char *name)
{
	for (int i = 0; i < READERS; i++) {
		readers[i] = (struct reader){
			.archive = i % 2 ? archive : NULL, .cache = cache, .name = name};
		sem_init(&readers[i].begun, 0, 0);
		assert_int_equal(pthread_create(&threads[i], NULL, read_on, &readers[i]),
				 0);
	}
	for (int i = 0; i < READERS; i++)
		while (sem_wait(&readers[i].begun) && errno == EINTR)
			;
}

/* Whether every reader has made this many attempts. */
static bool have_read(const struct reader readers[READERS], int times)
{
	for (int i = 0; i < READERS; i++)
		if (readers[i].right + readers[i].failed + readers[i].wrong < times)
			return false;
	return true;
}

static void stop_readers(struct reader readers[READERS], pthread_t threads[READERS])
{
	for (int i = 0; i < READERS; i++)
		readers[i].stop = true;
	for (int i = 0; i < READERS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(readers[i].wrong, 0);
		assert_true(readers[i].right > 0);
	}
}

TEST(files_that_change_give_errors_or_right_bytes, NULL, fx_after)
{
	struct ab files[] = {checked(contents[0]), checked(contents[1])};
	struct reader readers[READERS];
	pthread_t threads[READERS];
	kpack_cache_t cache = fx_cache();
	kpack_archive_t archive;
	char path[FX_PATH];
	void *data = NULL;
	size_t size = 0;

	fx_write("changes", files[0].bytes, files[0].size);
	archive = fx_open("changes");
	start(readers, threads, archive, cache, "changes");
	for (int i = 0; i < ROUNDS || !have_read(readers, ROUNDS); i++) {
		disturb(fx_path("changes", path), &files[i / 4 % 2], i);
		if (i % 8 == 7) /* also replace the file */
			fx_write("changes", files[0].bytes, files[0].size);
	}
	stop_readers(readers, threads);
	kpack_close(archive);
	/* once the changes stop, the current content is read */
	fx_write("changes", files[1].bytes, files[1].size);
	assert_int_equal(fx_load(cache, &(struct fx_ask){"k", 0, "gfx900", "changes"},
				 &data, &size),
			 KPACK_SUCCESS);
	assert_memory_equal(data, contents[1], BIG);
	kpack_free_code_object(data);
	kpack_cache_destroy(cache);
	ab_free(&files[0]);
	ab_free(&files[1]);
}

/*
 * An open archive survives the removal of its file; a truncated one fails, with an error
 * only.
 */
TEST(an_open_archive_may_lose_its_file, NULL, fx_after)
{
	kpack_archive_t gone, cut;
	char path[FX_PATH];

	fx_put_packed("gone", "'gfx1100'", fx_zstd);
	fx_put_packed("cut", "'gfx1100'", fx_zstd);
	gone = fx_open("gone");
	cut = fx_open("cut");
	assert_int_equal(unlink(fx_path("gone", path)), 0);
	assert_int_equal(truncate(fx_path("cut", path), 70), 0);
	fx_check_kernel(gone, &fx_zstd[1]);
	fx_check_no_kernel(cut, fx_zstd[1].key, fx_zstd[1].arch, KPACK_ERROR_IO_ERROR);
	kpack_close(gone);
	kpack_close(cut);
}

/* ---- exec, fork, signals ---- */

static bool is_below(const char *fd, const char *directory)
{
	char link[300], to[FX_PATH] = "";

	snprintf(link, sizeof(link), "/proc/self/fd/%s", fd);
	return readlink(link, to, sizeof(to) - 1) > 0 &&
	       strncmp(to, directory, strlen(directory)) == 0;
}

TEST(files_are_closed_on_exec, NULL, fx_after)
{
	kpack_archive_t archive = fx_open("test_noop.kpack");
	kpack_cache_t cache = fx_cache();
	struct dirent *d;
	int n = 0;
	DIR *fds;

	fx_check_load(cache,
		      &(struct fx_ask){"lib/libhip.so", 0, "gfx1100", "test_zstd.kpack"},
		      &fx_zstd[0]);
	fds = opendir("/proc/self/fd");
	assert_non_null(fds);
	while ((d = readdir(fds)))
		if (is_below(d->d_name, fx_dir)) {
			assert_true(fcntl(atoi(d->d_name), F_GETFD) & FD_CLOEXEC);
			n++;
		}
	closedir(fds);
	assert_int_equal(n, 2);
	kpack_cache_destroy(cache);
	kpack_close(archive);
}

/* Returns 0 if the child loads through both the inherited cache and its own. */
static int load_in_child(kpack_cache_t inherited)
{
	static const struct fx_ask asks[] = {
		{"lib/libtest.so", 0, "gfx900", "test_noop.kpack"},
		{"lib/libhip.so", 0, "gfx1100", "test_zstd.kpack"}};
	static const struct fx_object *const want[] = {&fx_noop[0], &fx_zstd[0]};
	kpack_cache_t caches[] = {inherited, NULL};

	if (kpack_cache_create(&caches[1]))
		return 1;
	for (size_t c = 0; c < 2; c++)
		for (size_t i = 0; i < 2; i++) {
			void *data = NULL;
			size_t size = 0;

			if (fx_load(caches[c], &asks[i], &data, &size))
				return 2;
			if (!fx_is(data, size, want[i]))
				return 3;
			kpack_free_code_object(data);
		}
	kpack_cache_destroy(caches[1]);
	return 0;
}

TEST(a_child_loads_while_threads_of_its_parent_do, NULL, fx_after)
{
	struct reader readers[READERS];
	pthread_t threads[READERS];
	kpack_cache_t cache;
	struct ab a;

	a = checked(contents[0]);
	cache = fx_cache();
	fx_write("busy", a.bytes, a.size);
	start(readers, threads, NULL, cache, "busy");
	for (int i = 0; i < FORKS; i++) {
		int status = -1;
		pid_t child;

		fx_write("busy", a.bytes, a.size); /* a new file: to be reopened */
		child = fork();
		if (child == 0)
			_exit(load_in_child(cache));
		if (waitpid(child, &status, 0) == child && status == 0)
			continue;
		stop_readers(readers, threads);
		fail_msg("child %d: status %#x", i, status);
	}
	stop_readers(readers, threads);
	for (int i = 0; i < READERS; i++)
		assert_int_equal(readers[i].failed, 0);
	kpack_cache_destroy(cache);
	ab_free(&a);
}

TEST(signal_handlers_stay, NULL, fx_after)
{
	struct sigaction before[NSIG], after;

	for (int s = 1; s < NSIG; s++)
		sigaction(s, NULL, &before[s]);
	fx_loads(&(struct fx_ask){"lib/libhip.so", 0, "gfx1100", "test_zstd.kpack"},
		 &fx_zstd[0]);
	for (int s = 1; s < NSIG; s++)
		if (sigaction(s, NULL, &after) == 0)
			assert_ptr_equal(after.sa_handler, before[s].sa_handler);
}

/* ---- memory ---- */

enum { HUGE_OBJECT = 64 << 20 };

static long long data_kib(void)
{
	long long kib = -1;
	char line[256];
	FILE *f = fopen("/proc/self/status", "r");

	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "VmData: %lld", &kib);
	if (f)
		fclose(f);
	return kib;
}

/* What a child does with the open archive under a memory limit; 0: success. */
typedef int (*deed)(kpack_archive_t archive, void *buf);

static int get_one(kpack_archive_t archive, void *buf)
{
	size_t size = 0;
	void *data;

	(void)buf;
	return kpack_get_kernel(archive, "k#0", "gfx900", &data, &size) ||
	       size != HUGE_OBJECT || memcmp(data, "HUGEhhhh", 8) != 0;
}

static int get_two(kpack_archive_t archive, void *buf)
{
	return get_one(archive, buf) || get_one(archive, buf);
}

static int read_into_buffer(kpack_archive_t archive, void *buf)
{
	size_t entry;

	return kpackx_find_entry(archive, "k#0", "gfx900", &entry) ||
	       kpackx_read_entry(archive, entry, buf, HUGE_OBJECT, NULL) ||
	       memcmp(buf, "HUGEhhhh", 8) != 0;
}

/*
 * Run D in a process that may use MORE bytes than it does now; the buffer for D is
 * already allocated.
 */
static int with_memory(rlim_t more, const char *name, deed d)
{
	int status = -1;
	pid_t child = fork();

	if (child == 0) {
		kpack_archive_t archive = fx_open(name);
		void *buf = malloc(HUGE_OBJECT);
		rlim_t most = (rlim_t)data_kib() * 1024 + more;

		if (!MALLOC_FAILS)
			most = RLIM_INFINITY;
		if (!buf || setrlimit(RLIMIT_DATA, &(struct rlimit){.rlim_cur = most,
								    .rlim_max = most}))
			_exit(2);
		_exit(d(archive, buf));
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/*
 * Memory for one and a half objects is enough to get one; reading into a buffer needs
 * none.
 */
TEST(a_kernel_is_decoded_in_place, NULL, fx_after)
{
	static const struct fx_object huge[] = {
		{"k#0", "gfx900", "HUGE", HUGE_OBJECT, 'h'}, {0}};
	static const char *const names[] = {"plain", "packed"};
	struct ab archives[] = {fx_plain("f", "'gfx900'", huge),
				fx_packed("f", "'gfx900'", huge)};

	for (size_t i = 0; i < COUNT(names); i++)
		fx_put(names[i], &archives[i]);
	for (size_t i = 0; i < COUNT(names); i++) {
		assert_int_equal(with_memory(HUGE_OBJECT / 2 * 3, names[i], get_one), 0);
		assert_int_equal(with_memory(HUGE_OBJECT / 2 * 3, names[i], get_two),
				 MALLOC_FAILS);
		assert_int_equal(with_memory(HUGE_OBJECT / 2, names[i], read_into_buffer),
				 0);
		assert_int_equal(with_memory(HUGE_OBJECT / 2, names[i], get_one),
				 MALLOC_FAILS);
	}
}

/* ---- locales ---- */

TEST(locales_change_nothing, NULL, fx_after)
{
	static const char *const locales[] = {"de_DE.UTF-8", "tr_TR.UTF-8", "C.UTF-8",
					      "POSIX"};
	char *before = strdup(setlocale(LC_ALL, NULL));
	char *text = strdup(kpack_error_string(KPACK_ERROR_FILE_NOT_FOUND));

	assert_true(before && text);
	for (size_t i = 0; i < COUNT(locales); i++) {
		const char *name = setlocale(LC_ALL, locales[i]);
		char *now;

		if (!name) /* the locale is not installed */
			continue;
		now = strdup(name);
		fx_loads(&(struct fx_ask){"lib/libhip.so", 0, "gfx1100",
					  "test_zstd.kpack"},
			 &fx_zstd[0]);
		assert_string_equal(kpack_error_string(KPACK_ERROR_FILE_NOT_FOUND), text);
		assert_string_equal(setlocale(LC_ALL, NULL), now);
		free(now);
	}
	setlocale(LC_ALL, before);
	free(before);
	free(text);
}

SUITE(make_contents, remove_contents);
