/* SPDX-License-Identifier: MIT */
/*
 * A whole load.  The input is a byte of flags, a byte for the index, five strings with
 * 16-bit little-endian lengths (marker, ROCM_KPACK_PATH, ROCM_KPACK_PATH_PREFIX, archs
 * separated by newlines, archive many/b.kpack), and archive a.kpack as the rest.  \1 in
 * a list stands for the directory of both archives; the binary is lib/x.so in it.
 * Flags: 1 the first list is set, 2 the second is set, 4 a.kpack is truncated at the
 * end, 8 ROCM_KPACK_DEBUG is set.
 */
#include "core/rocm_kpack/kpack.h"
#include "core/rocm_kpack/kpackx.h"
#include "core/base/span.h"
#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARCHS_MAX = 64, PATHS = 1, PREFIX = 2, CUT = 4, TRACE = 8 };

/* Room for a marker, followed by unreadable memory. */
enum { MARKER_ROOM = 1 << 16, GUARD = 1 << 16 };

static char dir[] = "/tmp/kpack-fuzz-XXXXXX";
static char binary[64], archive[64], other[64];
static char *marker_end;
static int null_fd;

/* ---- state kept between inputs ---- */

static void remove_dir(void)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	if (system(command))
		perror(command);
}

static void in_dir(char out[64], const char *name)
{
	snprintf(out, 64, "%s/%s", dir, name);
}

static void prepare(void)
{
	char path[64];

	if (marker_end)
		return;
	assert(mkdtemp(dir));
	atexit(remove_dir);
	in_dir(path, "lib");
	assert(mkdir(path, 0755) == 0);
	in_dir(path, "many");
	assert(mkdir(path, 0755) == 0);
	in_dir(path, "x_gfx900.kpack");
	assert(symlink("a.kpack", path) == 0);
	in_dir(binary, "lib/x.so");
	in_dir(archive, "a.kpack");
	in_dir(other, "many/b.kpack");
	marker_end = mmap(NULL, MARKER_ROOM + GUARD, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert(marker_end != MAP_FAILED);
	marker_end += MARKER_ROOM;
	assert(mprotect(marker_end, GUARD, PROT_NONE) == 0);
	null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	assert(null_fd >= 0);
}

/* ---- parsing an input ---- */

struct input {
	uint8_t flags, index;
	struct kp_span marker, paths, prefix, archs, other, archive;
};

static struct kp_span take(struct kp_span *rest, size_t size)
{
	struct kp_span part = {rest->data, size < rest->size ? size : rest->size};

	*rest = (struct kp_span){rest->data + part.size, rest->size - part.size};
	return part;
}

static struct kp_span take_string(struct kp_span *rest)
{
	struct kp_span size = take(rest, 2);

	return take(rest, size.size == 2 ? kp_le16(size.data) : 0);
}

static bool split(struct kp_span all, struct input *in)
{
	struct kp_span head = take(&all, 2);

	if (head.size < 2)
		return false;
	in->flags = head.data[0];
	in->index = head.data[1];
	in->marker = take_string(&all);
	in->paths = take_string(&all);
	in->prefix = take_string(&all);
	in->archs = take_string(&all);
	in->other = take_string(&all);
	in->archive = all;
	return true;
}

/* S as a string, with \1 replaced by the directory. */
static char *expand(struct kp_span s)
{
	char *out = malloc(s.size * sizeof(dir) + 1), *to = out;

	assert(out);
	for (size_t i = 0; i < s.size; i++) {
		if (s.data[i] == 1)
			to = stpcpy(to, dir);
		else
			*to++ = (char)s.data[i];
	}
	*to = '\0';
	return out;
}

static void set(const char *name, struct kp_span value, bool wanted)
{
	char *text = expand(value);

	if (wanted)
		assert(setenv(name, text, 1) == 0);
	else
		assert(unsetenv(name) == 0);
	free(text);
}

static void write_file(const char *path, struct kp_span bytes)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert(fd >= 0);
	assert(write(fd, bytes.data, bytes.size) == (ssize_t)bytes.size);
	close(fd);
}

/* ---- loading ---- */

struct answer {
	kpack_error_t err;
	void *data;
	size_t size;
};

static struct answer load(kpack_cache_t cache, const struct input *in)
{
	struct answer a = {.data = cache, .size = 7};
	struct kpackx_error why = {0};
	const char *archs[ARCHS_MAX];
	char *text = expand(in->archs), *rest = text;
	size_t n = 0;

	while (rest && n < ARCHS_MAX)
		archs[n++] = strsep(&rest, "\n");
	a.err = kpackx_load_code_object(cache, marker_end - in->marker.size, binary,
					in->index, archs, n, &a.data, &a.size, &why);
	free(text);
	if (a.err) {
		assert(a.data == cache && a.size == 7);
		assert(why.code == a.err && why.text[0]);
		a.data = NULL;
	} else {
		assert(a.data && a.data != cache);
	}
	return a;
}

static bool same(const struct answer *a, const struct answer *b)
{
	return a->err == b->err &&
	       (a->err || (a->size == b->size && memcmp(a->data, b->data, a->size) == 0));
}

/*
 * Load twice with ROCM_KPACK_STRICT set to STRICT; the second load finds all archives
 * open.
 */
static struct answer load_twice(const char *strict, const struct input *in)
{
	struct answer first, second;
	kpack_cache_t cache;

	assert(setenv("ROCM_KPACK_STRICT", strict, 1) == 0);
	assert(kpack_cache_create(&cache) == KPACK_SUCCESS);
	first = load(cache, in);
	second = load(cache, in);
	assert(same(&first, &second));
	free(second.data);
	if (in->flags & CUT) {
		assert(truncate(archive, (off_t)in->archive.size / 2) == 0);
		free(load(cache, in).data);
		write_file(archive, in->archive);
	}
	kpack_cache_destroy(cache);
	return first;
}

static void load_both_ways(const struct input *in)
{
	struct answer lenient = load_twice("0", in), strict = load_twice("1", in);

	/* a strict load stops earlier: it finds no more, and fails at the same damage */
	if (lenient.err)
		assert(strict.err == lenient.err);
	free(lenient.data);
	free(strict.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int saved = -1;
	struct input in;

	prepare();
	if (!split((struct kp_span){data, size}, &in))
		return 0;
	memcpy(marker_end - in.marker.size, in.marker.data, in.marker.size);
	write_file(archive, in.archive);
	write_file(other, in.other);
	set("ROCM_KPACK_PATH", in.paths, in.flags & PATHS);
	set("ROCM_KPACK_PATH_PREFIX", in.prefix, in.flags & PREFIX);
	set("ROCM_KPACK_DEBUG", (struct kp_span){(const uint8_t *)"1", 1},
	    in.flags & TRACE);
	if (in.flags & TRACE) {
		saved = dup(STDERR_FILENO);
		assert(saved >= 0 && dup2(null_fd, STDERR_FILENO) >= 0);
	}
	load_both_ways(&in);
	if (saved >= 0) {
		assert(dup2(saved, STDERR_FILENO) >= 0);
		close(saved);
	}
	return 0;
}
