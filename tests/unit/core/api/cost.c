/* SPDX-License-Identifier: MIT */
/* What opening an archive reads, and what memory getting an object takes. */
#include "tests/unit/archive_builder.h"
#include "tests/unit/unit.h"
#include <sys/resource.h>
#include <sys/wait.h>

/* A field of /proc/self/FILE: memory in kB, or bytes read. */
static long long proc(const char *file, const char *field)
{
	size_t n = strlen(field);
	char path[64], line[256];
	long long value = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/%s", file);
	f = fopen(path, "r");
	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f))
		if (strncmp(line, field, n) == 0 && line[n] == ':')
			value = strtoll(line + n + 1, NULL, 10);
	fclose(f);
	return value;
}

/* ---- opening ---- */

enum { FRAMES = 100, FRAME = 1 << 16 };

/* An archive of frames that do not compress, and the size of its table. */
static struct ab many_frames(bool index, size_t *toc)
{
	struct ab a = ab_new_zstd();
	uint8_t *data = malloc(FRAME);
	char *hex;

	assert_non_null(data);
	for (unsigned i = 0; i < FRAMES; i++) {
		uint32_t seed = i + 1;

		for (size_t j = 0; j < FRAME; j++) {
			seed = seed * 1664525 + 1013904223;
			data[j] = (uint8_t)(seed >> 24);
		}
		ab_frame(&a, data, FRAME);
	}
	free(data);
	*toc = a.size;
	hex = ab_frame_index(&a);
	ab_toc(&a,
	       "{'compression_scheme': 'zstd-per-kernel', 'zstd_offset': 64, "
	       "'zstd_size': %zu, %s%s%s 'toc': {'k#0': {'x': {'ordinal': 0, "
	       "'original_size': %d}}}}",
	       a.size - 64, index ? "'frame_index': x'" : "", index ? hex : "",
	       index ? "'," : "", FRAME);
	free(hex);
	*toc = a.size - *toc;
	return a;
}

/* The bytes that opening reads, without those for reading the counter itself. */
static long long read_by_open(const struct ab *a)
{
	long long before, idle, after;
	kpack_archive_t archive = NULL;
	char path[32];
	int fd = ab_memfd(a->bytes, a->size, path);

	before = proc("io", "rchar");
	idle = proc("io", "rchar");
	if (idle < 0)
		skip();
	assert_int_equal(kpack_open(path, &archive), KPACK_SUCCESS);
	after = proc("io", "rchar");
	kpack_close(archive);
	close(fd);
	return after - idle - (idle - before);
}

/* Without an index, as in AMD's archives, also the word with the length of each frame. */
TEST(opening_reads_header_table_and_index_only)
{
	enum { HEADER = 16, SLACK = 4096 };

	for (int index = 0; index <= 1; index++) {
		size_t toc, more = index ? 0 : FRAMES * SLACK;
		struct ab a = many_frames(index, &toc);

		assert_in_range(read_by_open(&a), toc, HEADER + toc + SLACK + more);
		ab_free(&a);
	}
}

/* ---- memory ---- */

enum { MALLOC_FAILS = !UNIT_ASAN && !UNIT_TSAN };

enum { HUGE_OBJECT = 64 << 20 };

/* What a child does with the open archive under a memory limit; 0: success. */
typedef int (*deed)(kpack_archive_t archive, void *buf);

static int get_one(kpack_archive_t archive, void *buf)
{
	size_t size = 0;
	void *data;

	return kpack_get_kernel(archive, "k#0", "gfx900", &data, &size) ||
	       size != HUGE_OBJECT || memcmp(data, "hhhh", 4) != 0;
}

static int get_two(kpack_archive_t archive, void *buf)
{
	return get_one(archive, buf) || get_one(archive, buf);
}

static int read_into_buffer(kpack_archive_t archive, void *buf)
{
	return kpackx_read_entry(archive, 0, buf, HUGE_OBJECT, NULL) ||
	       memcmp(buf, "hhhh", 4) != 0;
}

/* Run D in a process that may use MORE bytes than it does now; the buffer for D is there. */
static int with_memory(rlim_t more, const char *path, deed d)
{
	int status = -1;
	pid_t child = fork();

	if (child == 0) {
		kpack_archive_t archive = NULL;
		void *buf = malloc(HUGE_OBJECT);
		rlim_t most = MALLOC_FAILS
				      ? (rlim_t)proc("status", "VmData") * 1024 + more
				      : RLIM_INFINITY;

		if (!buf || kpack_open(path, &archive) ||
		    setrlimit(RLIMIT_DATA,
			      &(struct rlimit){.rlim_cur = most, .rlim_max = most}))
			_exit(2);
		_exit(d(archive, buf));
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Memory for one and a half objects is enough to get one; reading into a buffer needs none. */
TEST(a_kernel_is_decoded_in_place)
{
	char *huge = malloc(HUGE_OBJECT);

	assert_non_null(huge);
	memset(huge, 'h', HUGE_OBJECT);
	for (int packed = 0; packed <= 1; packed++) {
		struct ab a = packed ? ab_new_zstd() : ab_new(64);
		char path[32];
		int fd;

		if (packed)
			ab_frame(&a, huge, HUGE_OBJECT);
		else
			ab_put(&a, huge, HUGE_OBJECT);
		ab_toc(&a,
		       "{'compression_scheme': '%s', 'zstd_offset': 64, 'zstd_size': "
		       "%zu, "
		       "'blobs': [{'offset': 64, 'size': %zu}], 'toc': {'k#0': "
		       "{'gfx900': "
		       "{'ordinal': 0, 'original_size': %d}}}}",
		       packed ? "zstd-per-kernel" : "none", a.size - 64, a.size - 64,
		       HUGE_OBJECT);
		fd = ab_memfd(a.bytes, a.size, path);
		ab_free(&a);
		assert_int_equal(with_memory(HUGE_OBJECT / 2 * 3, path, get_one), 0);
		assert_int_equal(with_memory(HUGE_OBJECT / 2 * 3, path, get_two),
				 MALLOC_FAILS);
		assert_int_equal(with_memory(HUGE_OBJECT / 2, path, read_into_buffer), 0);
		assert_int_equal(with_memory(HUGE_OBJECT / 2, path, get_one),
				 MALLOC_FAILS);
		close(fd);
	}
	free(huge);
}
