/* SPDX-License-Identifier: MIT */
/*
 * Shared by the tests taken from AMD: AMD's archives, rebuilt from their known properties
 * (names, architectures, sizes, first bytes), and look-ups as a foreign program makes
 * them.  Uses only the library's public headers.
 */
#ifndef AMD_FIXTURES_H
#define AMD_FIXTURES_H

#include <dirent.h>
#include <sys/mman.h>
#include <unistd.h>
#include "tests/unit/unit.h"
#include "archive_bytes.h"
#include "core/rocm_kpack/kpack.h"

#define TRIPLE "amdgcn-amd-amdhsa--"

/* ---- archives ---- */

/* An object: TEXT, then FILL up to SIZE bytes.  FX_DAMAGED as FILL: an invalid frame. */
struct fx_object {
	const char *key, *arch, *text;
	size_t size;
	int fill;
};

#define FX_DAMAGED 256

#define FX_OBJECTS(...)                                                                  \
	(const struct fx_object[])                                                       \
	{                                                                                \
		__VA_ARGS__,                                                             \
		{                                                                        \
			0                                                                \
		}                                                                        \
	}

static const struct fx_object fx_noop[] = {
	{"lib/libtest.so#0", "gfx900", "KERNEL1_GFX900_DATA", 119, 0},
	{"lib/libtest.so#0", "gfx906", "KERNEL2_GFX906_DATA", 219, 0},
	{"bin/testapp#0", "gfx900", "KERNEL3_APP_GFX900", 168, 0xff},
	{0}};

static const struct fx_object fx_zstd[] = {
	{"lib/libhip.so#0", "gfx1100", "HIP_KERNEL_GFX1100_", 1019, 'A'},
	{"lib/libhip.so#0", "gfx1101", "HIP_KERNEL_GFX1101_", 619, 'B'},
	{"bin/hiptest#0", "gfx1100", "TEST_APP_KERNEL___", 1018, 'C'},
	{0}};

static const struct fx_object fx_xnack[] = {
	{"lib/libother.so#0", "gfx90a:xnack-", "OTHER_KERNEL_DATA", 17, 0}, {0}};

static const struct fx_object fx_generic[] = {
	{"lib/libtest.so#0", "gfx90a", "GENERIC_GFX90A_KERNEL_DATA", 76, 0}, {0}};

/* The directory of a test program's files. */
static char fx_dir[] = "/tmp/kpack-amd-XXXXXX";

enum { FX_PATH = 256 };

static inline char *fx_path(const char *name, char out[FX_PATH])
{
	if (snprintf(out, FX_PATH, "%s/%s", fx_dir, name) >= FX_PATH)
		abort();
	return out;
}

/* Put a file with these bytes under its name, replacing any existing file. */
static inline void fx_write(const char *name, const void *data, size_t size)
{
	char path[FX_PATH], tmp[FX_PATH];
	FILE *f = fopen(fx_path("tmp", tmp), "w");

	if (!f || fwrite(data, 1, size, f) != size || fclose(f) ||
	    rename(tmp, fx_path(name, path)))
		abort();
}

/* Write an archive to a file and free its bytes. */
static inline void fx_put(const char *name, struct ab *a)
{
	fx_write(name, a->bytes, a->size);
	ab_free(a);
}

static inline uint8_t *fx_bytes(const struct fx_object *o)
{
	uint8_t *data = malloc(o->size + 1);

	if (!data || o->size < strlen(o->text))
		abort();
	memset(data, o->fill, o->size);
	memcpy(data, o->text, strlen(o->text));
	return data;
}

/* Append printf output to TEXT, which has room for CAP bytes. */
__attribute__((format(printf, 3, 4))) static inline void fx_say(char *text, size_t cap,
								const char *fmt, ...)
{
	size_t used = strlen(text);
	va_list ap;

	va_start(ap, fmt);
	if (vsnprintf(text + used, cap - used, fmt, ap) >= (int)(cap - used))
		abort();
	va_end(ap);
}

enum { FX_TEXT = 1 << 16 };

/* The value of "toc"; objects with the same key are adjacent. */
static inline void fx_toc(const struct fx_object *o, char out[FX_TEXT])
{
	out[0] = 0;
	for (unsigned i = 0; o[i].key; i++) {
		if (i == 0 || strcmp(o[i].key, o[i - 1].key) != 0)
			fx_say(out, FX_TEXT, "%s'%s': {", i ? "}, " : "", o[i].key);
		fx_say(out, FX_TEXT,
		       "'%s': {'type': 'hsaco', 'ordinal': %u, 'original_size': %zu}, ",
		       o[i].arch, i, o[i].size);
	}
	fx_say(out, FX_TEXT, "%s", o[0].key ? "}" : "");
}

/* Fields in the order AMD's writer uses; ARCHES as in the TOC: "'gfx900', 'gfx906'". */
static inline struct ab fx_plain(const char *family, const char *arches,
				 const struct fx_object *objects)
{
	struct ab a = ab_new(64);
	char *toc = malloc(FX_TEXT), blobs[FX_PATH * 16] = "";

	if (!toc)
		abort();
	fx_toc(objects, toc);
	for (const struct fx_object *o = objects; o->key; o++) {
		uint8_t *data = fx_bytes(o);

		fx_say(blobs, sizeof(blobs), "{'offset': %zu, 'size': %zu}, ", a.size,
		       o->size);
		ab_put(&a, data, o->size);
		free(data);
	}
	ab_toc(&a,
	       "{'format_version': 1, 'group_name': 'test', 'gfx_arch_family': '%s', "
	       "'gfx_arches': [%s], 'toc': {%s}, 'compression_scheme': 'none', "
	       "'blobs': [%s]}",
	       family, arches, toc, blobs);
	free(toc);
	return a;
}

static inline struct ab fx_packed(const char *family, const char *arches,
				  const struct fx_object *objects)
{
	struct ab a = ab_new_zstd();
	char *toc = malloc(FX_TEXT);

	if (!toc)
		abort();
	fx_toc(objects, toc);
	for (const struct fx_object *o = objects; o->key; o++) {
		uint8_t *data = fx_bytes(o);

		if (o->fill == FX_DAMAGED)
			ab_stored(&a, data, o->size);
		else
			ab_frame(&a, data, o->size);
		free(data);
	}
	ab_toc(&a,
	       "{'format_version': 1, 'group_name': 'test', 'gfx_arch_family': '%s', "
	       "'gfx_arches': [%s], 'toc': {%s}, 'compression_scheme': "
	       "'zstd-per-kernel', 'zstd_offset': 64, 'zstd_size': %zu}",
	       family, arches, toc, a.size - 64);
	free(toc);
	return a;
}

static inline void fx_put_packed(const char *name, const char *arches,
				 const struct fx_object *objects)
{
	struct ab a = fx_packed("test", arches, objects);

	fx_put(name, &a);
}

static inline void fx_unset_environment(void)
{
	unsetenv("ROCM_KPACK_PATH");
	unsetenv("ROCM_KPACK_PATH_PREFIX");
	unsetenv("ROCM_KPACK_DISABLE");
	unsetenv("ROCM_KPACK_DEBUG");
	unsetenv("ROCM_KPACK_STRICT");
}

/* Group setup: make the directory with AMD's four archives. */
static inline int fx_make(void **state)
{
	struct ab noop = fx_plain("gfx900X", "'gfx900', 'gfx906'", fx_noop);
	struct ab zstd = fx_packed("gfx110X", "'gfx1100', 'gfx1101'", fx_zstd);
	struct ab xnack = fx_plain("gfx90a", "'gfx90a:xnack-'", fx_xnack);
	struct ab generic = fx_plain("gfx90a", "'gfx90a'", fx_generic);

	(void)state;
	if (!mkdtemp(fx_dir))
		return -1;
	fx_unset_environment();
	fx_put("test_noop.kpack", &noop);
	fx_put("test_zstd.kpack", &zstd);
	fx_put("test_fallthrough_xnack.kpack", &xnack);
	fx_put("test_fallthrough_generic.kpack", &generic);
	return 0;
}

static inline int fx_remove(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", fx_dir);
	return system(command);
}

/* Test teardown: unset all variables that the test set, even if it failed. */
static inline int fx_after(void **state)
{
	(void)state;
	fx_unset_environment();
	return 0;
}

static inline kpack_archive_t fx_open(const char *name)
{
	kpack_archive_t archive = NULL;
	char path[FX_PATH];

	assert_int_equal(kpack_open(fx_path(name, path), &archive), KPACK_SUCCESS);
	assert_non_null(archive);
	return archive;
}

/* The result of opening an archive of these bytes; on failure the handle must be NULL. */
static inline kpack_error_t fx_open_bytes(const struct ab *a, kpack_archive_t *archive)
{
	char path[FX_PATH];
	kpack_error_t err;

	*archive = NULL;
	fx_write("bytes.kpack", a->bytes, a->size);
	err = kpack_open(fx_path("bytes.kpack", path), archive);
	assert_true((err == KPACK_SUCCESS) == (*archive != NULL));
	return err;
}

static inline void fx_refused(struct ab *a, kpack_error_t want)
{
	kpack_archive_t archive;

	assert_int_equal(fx_open_bytes(a, &archive), want);
	ab_free(a);
}

static inline kpack_archive_t fx_accepted(struct ab *a)
{
	kpack_archive_t archive;

	assert_int_equal(fx_open_bytes(a, &archive), KPACK_SUCCESS);
	ab_free(a);
	return archive;
}

/* Whether DATA is the object WANT. */
static inline bool fx_is(const void *data, size_t size, const struct fx_object *want)
{
	uint8_t *bytes = fx_bytes(want);
	bool same = data && size == want->size && memcmp(data, bytes, size) == 0;

	free(bytes);
	return same;
}

static inline void fx_check_kernel(kpack_archive_t archive, const struct fx_object *want)
{
	void *data = NULL;
	size_t size = 0;

	assert_int_equal(kpack_get_kernel(archive, want->key, want->arch, &data, &size),
			 KPACK_SUCCESS);
	assert_true(fx_is(data, size, want));
	kpack_free_kernel(data);
}

static inline void fx_check_no_kernel(kpack_archive_t archive, const char *key,
				      const char *arch, kpack_error_t code)
{
	void *data = NULL;
	size_t size = 7;

	assert_int_equal(kpack_get_kernel(archive, key, arch, &data, &size), code);
	assert_true(!data && size == 7);
}

/* ---- loading ---- */

/* Bytes at the end of readable memory: a read past them kills the process. */
struct fx_marker {
	char *pages, *at;
	size_t size, mapped;
};

static inline struct fx_marker fx_marker_bytes(const void *bytes, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct fx_marker m = {.size = size};

	m.mapped = (size + page - 1) / page * page + page;
	m.pages = mmap(NULL, m.mapped, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (m.pages == MAP_FAILED)
		abort();
	m.at = m.pages + m.mapped - page - size;
	memcpy(m.at, bytes, size);
	if (mprotect(m.pages + m.mapped - page, page, PROT_NONE))
		abort();
	return m;
}

static inline struct fx_marker fx_marker(const char *text)
{
	struct fx_marker m;
	msgpack_sbuffer out;
	msgpack_packer pk;

	msgpack_sbuffer_init(&out);
	msgpack_packer_init(&pk, &out, msgpack_sbuffer_write);
	mp_pack_value(&pk, text);
	m = fx_marker_bytes(out.data, out.size);
	msgpack_sbuffer_destroy(&out);
	return m;
}

static inline void fx_marker_free(struct fx_marker *m)
{
	munmap(m->pages, m->mapped);
}

/* The marker of a binary NAME with search PATHS, separated by spaces. */
static inline struct fx_marker fx_marker_of(const char *name, const char *paths)
{
	char text[4096] = "", path[FX_PATH];
	int n;

	fx_say(text, sizeof(text), "{'kpack_search_paths': [");
	for (; sscanf(paths, " %255s%n", path, &n) == 1; paths += n)
		fx_say(text, sizeof(text), "'%s', ", path);
	fx_say(text, sizeof(text), "], 'kernel_name': '%s'}", name);
	return fx_marker(text);
}

static inline kpack_cache_t fx_cache(void)
{
	kpack_cache_t cache = NULL;

	assert_int_equal(kpack_cache_create(&cache), KPACK_SUCCESS);
	assert_non_null(cache);
	return cache;
}

/*
 * A look-up of NAME#INDEX for ARCHS with the marker's PATHS; both are separated by
 * spaces.
 */
struct fx_ask {
	const char *name;
	uint32_t index;
	const char *archs, *paths;
};

/* Load for a binary in the directory.  Thread-safe. */
static inline kpack_error_t fx_load(kpack_cache_t cache, const struct fx_ask *q,
				    void **data, size_t *size)
{
	char binary[FX_PATH], text[8][64];
	struct fx_marker m = fx_marker_of(q->name, q->paths);
	const char *archs[COUNT(text)], *from = q->archs;
	size_t n_archs = 0;
	kpack_error_t err;
	int n;

	for (; sscanf(from, " %63s%n", text[n_archs], &n) == 1; from += n, n_archs++)
		archs[n_archs] = text[n_archs];
	err = kpack_load_code_object(cache, m.at, fx_path("fake.so", binary), q->index,
				     archs, n_archs, data, size);
	fx_marker_free(&m);
	return err;
}

static inline void fx_check_load(kpack_cache_t cache, const struct fx_ask *q,
				 const struct fx_object *want)
{
	void *data = NULL;
	size_t size = 0;

	assert_int_equal(fx_load(cache, q, &data, &size), KPACK_SUCCESS);
	assert_true(fx_is(data, size, want));
	kpack_free_code_object(data);
}

/* As fx_check_load, with a new cache made in the current environment. */
static inline void fx_loads(const struct fx_ask *q, const struct fx_object *want)
{
	kpack_cache_t cache = fx_cache();

	fx_check_load(cache, q, want);
	kpack_cache_destroy(cache);
}

#endif
