/* SPDX-License-Identifier: MIT */
/*
 * For tests of the loader: archives in a directory of their own, requests, and results.
 */
#ifndef LOADING_H
#define LOADING_H

#include "core/rocm_kpack/kpack.h"
#include "archive_builder.h"
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include "unit.h"
#include "core/rocm_kpack/kpackx.h"

static char dir[] = "/tmp/kpack-loader-XXXXXX";

/* ---- archives ---- */

struct object {
	const char *key, *arch, *data; /* data NULL: a frame that does not decode */
};

#define OBJECTS(...)                                                                     \
	(const struct object[])                                                          \
	{                                                                                \
		__VA_ARGS__,                                                             \
		{                                                                        \
			0                                                                \
		}                                                                        \
	}

static inline void text_add(char *text, size_t cap, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static inline void text_add(char *text, size_t cap, const char *fmt, ...)
{
	size_t used = strlen(text);
	va_list ap;

	va_start(ap, fmt);
	assert_true(vsnprintf(text + used, cap - used, fmt, ap) < (int)(cap - used));
	va_end(ap);
}

/* The path of NAME in the directory; the last two of a thread stay. */
static inline const char *in_dir(const char *name)
{
	static _Thread_local char paths[2][128];
	static _Thread_local unsigned next;
	char *path = paths[next++ % 2];

	snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
	return path;
}

/* Write a file with these bytes into the directory, atomically. */
static inline void write_file(const char *name, const void *data, size_t size)
{
	FILE *f;

	f = fopen(in_dir("tmp"), "w");
	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, size, f), size);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(rename(in_dir("tmp"), in_dir(name)), 0);
}

/* GFX_ARCHES as in the TOC: "'a', 'b'". */
static inline void write_archive(const char *name, const char *gfx_arches,
				 const struct object *objects)
{
	struct ab a = ab_new_zstd();
	char toc[4096] = "";

	for (unsigned i = 0; objects[i].key; i++) {
		const char *data = objects[i].data ? objects[i].data : "damaged";

		if (objects[i].data)
			ab_frame(&a, data, strlen(data));
		else
			ab_stored(&a, data, strlen(data));
		text_add(toc, sizeof(toc),
			 "'%s': {'%s': {'type': 'hsaco', 'ordinal': %u, "
			 "'original_size': %zu}}, ",
			 objects[i].key, objects[i].arch, i, strlen(data));
	}
	ab_toc(&a,
	       "{'gfx_arches': [%s], 'compression_scheme': 'zstd-per-kernel', "
	       "'zstd_offset': 64, 'zstd_size': %zu, 'toc': {%s}}",
	       gfx_arches, a.size - 64, toc);
	write_file(name, a.bytes, a.size);
	ab_free(&a);
}

static inline int make_dir(void **state)
{
	assert_non_null(mkdtemp(dir));
	unsetenv("ROCM_KPACK_PATH");
	unsetenv("ROCM_KPACK_PATH_PREFIX");
	unsetenv("ROCM_KPACK_DISABLE");
	unsetenv("ROCM_KPACK_STRICT");
	unsetenv("ROCM_KPACK_DEBUG");
	return 0;
}

static inline int remove_dir(void **state)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

/* ---- requests ---- */

/* A marker packed from an archive builder's text, at the end of readable memory. */
struct marker {
	char *pages, *at;
};

static inline struct marker marker(const char *text)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	msgpack_sbuffer out;
	msgpack_packer pk;
	struct marker m;

	msgpack_sbuffer_init(&out);
	msgpack_packer_init(&pk, &out, msgpack_sbuffer_write);
	mp_pack_value(&pk, text);
	assert_true(out.size <= page);
	m.pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(m.pages != MAP_FAILED);
	m.at = m.pages + page - out.size;
	memcpy(m.at, out.data, out.size);
	assert_int_equal(mprotect(m.pages + page, page, PROT_NONE), 0);
	msgpack_sbuffer_destroy(&out);
	return m;
}

static inline void marker_free(struct marker *m)
{
	munmap(m->pages, 2 * (size_t)sysconf(_SC_PAGESIZE));
}

/* A marker with NAME and the search paths in PATHS, separated by spaces. */
static inline struct marker marker_of(const char *name, const char *paths)
{
	char text[1024] = "", path[256];
	int n;

	text_add(text, sizeof(text), "{'kpack_search_paths': [");
	for (; sscanf(paths, " %255s%n", path, &n) == 1; paths += n)
		text_add(text, sizeof(text), "'%s', ", path);
	text_add(text, sizeof(text), "], 'kernel_name': '%s'}", name);
	return marker(text);
}

static inline kpack_cache_t new_cache(void)
{
	kpack_cache_t cache = NULL;

	assert_int_equal(kpack_cache_create(&cache), KPACK_SUCCESS);
	assert_non_null(cache);
	return cache;
}

struct request {
	const char *name;
	uint32_t index;
	const char *archs; /* separated by spaces */
	const char *paths;
	const char *data; /* expected data; NULL: CODE is expected */
	kpack_error_t code;
};

/* The last two of a request that fails. */
#define NO_ARCH NULL, KPACK_ERROR_ARCH_NOT_FOUND
#define NO_KERNEL NULL, KPACK_ERROR_KERNEL_NOT_FOUND
#define NO_ARCHIVE NULL, KPACK_ERROR_ARCHIVE_NOT_FOUND
#define DAMAGE NULL, KPACK_ERROR_DECOMPRESSION_FAILED

static inline kpack_error_t ask(kpack_cache_t cache, const struct request *r, void **data,
				size_t *size, struct kpackx_error *why)
{
	char text[4][64];
	const char *archs[4];
	struct marker m = marker_of(r->name, r->paths);
	size_t n = (size_t)sscanf(r->archs, "%63s %63s %63s %63s", text[0], text[1],
				  text[2], text[3]);
	kpack_error_t err;

	for (size_t i = 0; i < n; i++)
		archs[i] = text[i];
	err = kpackx_load_code_object(cache, m.at, in_dir("fake.so"), r->index, archs, n,
				      data, size, why);
	marker_free(&m);
	return err;
}

static inline void check(kpack_cache_t cache, const struct request *r)
{
	struct kpackx_error why = {0};
	void *data = NULL;
	size_t size = 0;
	kpack_error_t err = ask(cache, r, &data, &size, &why);

	if (err != r->code)
		fail_msg("%s#%u %s in %s: %s, not %s: %s", r->name, r->index, r->archs,
			 r->paths, kpackx_error_name(err), kpackx_error_name(r->code),
			 why.text);
	if (r->data) {
		assert_int_equal(size, strlen(r->data));
		assert_memory_equal(data, r->data, size);
		assert_true(why.code == KPACK_SUCCESS && !why.text[0]);
	} else {
		assert_true(!data && size == 0);
		assert_true(why.code == err && why.text[0]);
	}
	kpack_free_code_object(data);
}

static inline void check_alone(const struct request *r)
{
	kpack_cache_t cache = new_cache();

	check(cache, r);
	kpack_cache_destroy(cache);
}

/* TEXT with @ replaced by the directory. */
static inline const char *with_dir(const char *text)
{
	static char out[1024];

	out[0] = '\0';
	for (; *text; text++)
		text_add(out, sizeof(out), *text == '@' ? "%s" : "%.1s",
			 *text == '@' ? dir : text);
	return out;
}

/* Set the variable NAME, and check a request. */
static inline void check_with(const char *name, const char *value,
			      const struct request *r)
{
	setenv(name, with_dir(value), 1);
	check_alone(r);
	unsetenv(name);
}

/* Check the exact message of a failure. */
static inline void check_text(const struct request *r, const char *text)
{
	kpack_cache_t cache = new_cache();
	struct kpackx_error why = {0};
	void *data = NULL;
	size_t size;

	assert_int_equal(ask(cache, r, &data, &size, &why), r->code);
	if (strncmp(why.text, with_dir(text), sizeof(why.text) - 1) != 0)
		fail_msg("%s, not %s", why.text, with_dir(text));
	kpack_cache_destroy(cache);
}

/* A list of N different files that do not exist, each listed twice. */
static inline char *missing_files(int n)
{
	char *list = NULL;
	size_t size;
	FILE *f = open_memstream(&list, &size);

	assert_non_null(f);
	for (int i = 0; i < n; i++)
		fprintf(f, "/no/%d:/no/%d:", i, i);
	assert_int_equal(fclose(f), 0);
	return list;
}

/* ---- open files ---- */

/*
 * The number of descriptors open for NAME in the directory; each must be close-on-exec.
 */
static inline size_t count_open(const char *name)
{
	DIR *fds = opendir("/proc/self/fd");
	struct dirent *d;
	size_t n = 0;
	char path[300];

	assert_non_null(fds);
	while ((d = readdir(fds))) {
		char link[300];
		ssize_t size;

		snprintf(link, sizeof(link), "/proc/self/fd/%s", d->d_name);
		size = readlink(link, path, sizeof(path) - 1);
		if (size <= 0)
			continue;
		path[size] = '\0';
		if (strcmp(path, in_dir(name)) != 0)
			continue;
		assert_true(fcntl(atoi(d->d_name), F_GETFD) & FD_CLOEXEC);
		n++;
	}
	closedir(fds);
	return n;
}

#endif
