/* SPDX-License-Identifier: MIT */
/*
 * The nine weak spots of AMD's reader, each tested through the public calls; then
 * behaviour that both readers must share because callers may depend on it.
 */
#include "tests/unit/amd_fixtures.h"
#include "tests/unit/unit.h"

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

/* ---- 1: AMD's reader throws exceptions through the C calls ---- */

TEST(numbers_of_another_type_are_a_parse_error)
{
	static const char *const types[] = {"'7'",   "1.5", "true",  "nil",
					    "x'07'", "[7]", "{7: 7}"};
	static const char *const tables[] = {
		"{'blobs': [{'offset': %s, 'size': 0}], 'toc': {}}",
		"{'blobs': [{'offset': 0, 'size': %s}], 'toc': {}}",
		"{'compression_scheme': 'zstd-per-kernel', 'zstd_offset': %s, "
		"'zstd_size': 4}",
		"{'compression_scheme': 'zstd-per-kernel', 'zstd_offset': 64, "
		"'zstd_size': %s}",
		"{'toc': {'k': {'x': {'ordinal': %s, 'original_size': 0}}}}",
		"{'toc': {'k': {'x': {'ordinal': 0, 'original_size': %s}}}}",
	};

	for (size_t i = 0; i < COUNT(tables); i++)
		for (size_t j = 0; j < COUNT(types); j++) {
			const char *hole = strchr(tables[i], '%');
			struct ab a = ab_new(64);

			ab_toc(&a, "%.*s%s%s", (int)(hole - tables[i]), tables[i],
			       types[j], hole + 2);
			fx_refused(&a, KPACK_ERROR_MSGPACK_PARSE_FAILED);
		}
}

/* ---- 2: AMD's reader leaves missing fields uninitialised ---- */

/*
 * A blob without an offset or size is invalid; an entry without an ordinal is left out,
 * and the other entries stay usable.
 */
TEST(missing_fields_are_never_guessed)
{
	static const char *const blobs[] = {"{'size': 4}", "{'offset': 64}", "{}", "7"};
	struct ab a = ab_new(64);
	kpack_archive_t archive;

	for (size_t i = 0; i < COUNT(blobs); i++) {
		struct ab bad = ab_new(64);

		ab_toc(&bad, "{'blobs': [%s], 'toc': {}}", blobs[i]);
		fx_refused(&bad, KPACK_ERROR_MSGPACK_PARSE_FAILED);
	}
	ab_put(&a, "0123", 4);
	ab_toc(&a, "{'blobs': [{'offset': 64, 'size': 4}], 'toc': {'k#0': {'x': {}, 'y': "
		   "{'original_size': 4}, 'z': {'ordinal': 0}}}}");
	archive = fx_accepted(&a);
	fx_check_no_kernel(archive, "k#0", "x", KPACK_ERROR_KERNEL_NOT_FOUND);
	fx_check_no_kernel(archive, "k#0", "y", KPACK_ERROR_KERNEL_NOT_FOUND);
	fx_check_kernel(archive, &(struct fx_object){"k#0", "z", "0123", 4, 0});
	kpack_close(archive);
}

/* ---- 3: AMD's reader ignores uncompressed blobs' bounds and original_size ---- */

TEST(plain_blobs_are_checked_at_open)
{
	static const struct {
		uint64_t offset, size;
		kpack_error_t code;
	} cases[] = {
		{64, 4, KPACK_SUCCESS},
		{0, 16, KPACK_SUCCESS},
		{4096, 4, KPACK_ERROR_INVALID_FORMAT},
		{64, 4096, KPACK_ERROR_INVALID_FORMAT},
		{UINT64_MAX, 1, KPACK_ERROR_INVALID_FORMAT},
		{1, UINT64_MAX, KPACK_ERROR_INVALID_FORMAT},
		{UINT64_MAX, UINT64_MAX, KPACK_ERROR_INVALID_FORMAT},
	};
	kpack_archive_t archive;

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct ab a = ab_new(64);

		ab_put(&a, "0123", 4);
		ab_toc(&a, "{'blobs': [{'offset': %llu, 'size': %llu}], 'toc': {}}",
		       (unsigned long long)cases[i].offset,
		       (unsigned long long)cases[i].size);
		assert_int_equal(fx_open_bytes(&a, &archive), cases[i].code);
		kpack_close(archive);
		ab_free(&a);
	}
}

TEST(a_plain_blob_must_have_its_entrys_size)
{
	struct ab a = ab_new(64);
	kpack_archive_t archive;

	ab_put(&a, "0123", 4);
	ab_toc(&a, "{'blobs': [{'offset': 64, 'size': 4}], 'toc': {'k#0': {"
		   "'less': {'ordinal': 0, 'original_size': 3}, "
		   "'more': {'ordinal': 0, 'original_size': 5}, "
		   "'same': {'ordinal': 0, 'original_size': 4}}}}");
	archive = fx_accepted(&a);
	fx_check_no_kernel(archive, "k#0", "less", KPACK_ERROR_KERNEL_NOT_FOUND);
	fx_check_no_kernel(archive, "k#0", "more", KPACK_ERROR_KERNEL_NOT_FOUND);
	fx_check_kernel(archive, &(struct fx_object){"k#0", "same", "0123", 4, 0});
	kpack_close(archive);
}

/* ---- 4: AMD's reader allocates the stated size before it decodes anything ---- */

TEST(a_stated_size_is_not_believed)
{
	static const struct {
		const char *size;
		kpack_error_t code;
	} cases[] = {
		/* impossible for a frame of 128 KiB */
		{"18446744073709551615", KPACK_ERROR_KERNEL_NOT_FOUND},
		{"1099511627776", KPACK_ERROR_KERNEL_NOT_FOUND},
		{"4294967297", KPACK_ERROR_KERNEL_NOT_FOUND},
		/* possible, but the frame's own header states another size */
		{"3221225472", KPACK_ERROR_DECOMPRESSION_FAILED},
	};
	static uint8_t data[1 << 18];
	long long before = proc("status", "VmPeak");

	for (size_t i = 0; i < sizeof(data); i++) /* without repetitions */
		data[i] = (uint8_t)(i * i * i >> 7 ^ i >> 9);
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct ab a = ab_new_zstd();
		kpack_archive_t archive;

		ab_frame(&a, data, sizeof(data));
		assert_true(a.size > 1 << 17);
		ab_toc(&a,
		       "{'compression_scheme': 'zstd-per-kernel', 'zstd_offset': 64, "
		       "'zstd_size': %zu, 'toc': {'k#0': {'x': {'ordinal': 0, "
		       "'original_size': %s}}}}",
		       a.size - 64, cases[i].size);
		archive = fx_accepted(&a);
		fx_check_no_kernel(archive, "k#0", "x", cases[i].code);
		kpack_close(archive);
	}
	assert_true(proc("status", "VmPeak") - before < 1 << 20);
}

/* ---- 5: AMD's reader takes an unknown scheme for "none" ---- */

TEST(an_unknown_scheme_is_not_implemented)
{
	static const char *const schemes[] = {"",      "zstd",       "None",
					      "none ", "zstd-solid", "zstd-per-kernel~"};

	for (size_t i = 0; i < COUNT(schemes); i++) {
		struct ab a = ab_new(64);

		ab_put(&a, "0123", 4);
		ab_toc(&a,
		       "{'compression_scheme': '%s', 'blobs': [{'offset': 64, 'size': "
		       "4}], 'toc': {'k#0': {'x': {'ordinal': 0}}}}",
		       schemes[i]);
		fx_refused(&a, KPACK_ERROR_NOT_IMPLEMENTED);
	}
}

/* ---- 6: AMD's reader reads 64 KiB at the marker, whatever is mapped ---- */

/* Markers of every length end right before unreadable memory. */
TEST(a_marker_is_not_read_beyond_its_memory)
{
	static const size_t lengths[] = {0, 1, 100, 4000, 4096, 5000, 60000};
	kpack_cache_t cache = fx_cache();
	const char *archs[] = {"gfx900"};
	char binary[FX_PATH];

	for (size_t i = 0; i < COUNT(lengths); i++) {
		char *text = malloc(lengths[i] + 200);
		struct fx_marker m;
		void *data = NULL;
		size_t size;
		int n;

		assert_non_null(text);
		n = sprintf(text, "{'padding': '");
		memset(text + n, 'p', lengths[i]);
		strcpy(text + n + lengths[i],
		       "', 'kpack_search_paths': ['test_noop.kpack'], "
		       "'kernel_name': 'lib/libtest.so'}");
		m = fx_marker(text);
		assert_int_equal(kpack_load_code_object(cache, m.at,
							fx_path("fake.so", binary), 0,
							archs, 1, &data, &size),
				 KPACK_SUCCESS);
		assert_true(fx_is(data, size, &fx_noop[0]));
		kpack_free_code_object(data);
		fx_marker_free(&m);
		free(text);
	}
	kpack_cache_destroy(cache);
}

/* ---- 7: AMD's reader makes 2^n targets of n features, counted with 1u << n ---- */

TEST(many_features_do_not_take_forever)
{
	kpack_cache_t cache = fx_cache();
	struct fx_marker m = fx_marker_of("lib/libtest.so", "test_noop.kpack");
	char arch[4096] = TRIPLE "gfx900", binary[FX_PATH];
	const char *archs[] = {arch};

	for (int n = 1; n <= 100; n++) {
		void *data = NULL;
		size_t size;

		fx_say(arch, sizeof(arch), ":feature%d+", n);
		if (n > 5 && n < 30)
			continue; /* shifts by 31..33 bits: undefined or 0 */
		assert_int_equal(kpack_load_code_object(cache, m.at,
							fx_path("fake.so", binary), 0,
							archs, 1, &data, &size),
				 KPACK_SUCCESS);
		assert_true(fx_is(data, size, &fx_noop[0]));
		kpack_free_code_object(data);
	}
	fx_marker_free(&m);
	kpack_cache_destroy(cache);
}

/* ---- 8: AMD's reader treats a kernel without bytes as a failure ---- */

TEST(an_empty_kernel_has_an_address)
{
	static const struct fx_object empty[] = {{"k#0", "gfx900", "", 0, 0}, {0}};
	static const char *const names[] = {"plain", "packed"};
	struct ab archives[] = {fx_plain("f", "'gfx900'", empty),
				fx_packed("f", "'gfx900'", empty)};

	for (size_t i = 0; i < COUNT(names); i++) {
		kpack_archive_t archive;

		fx_put(names[i], &archives[i]);
		archive = fx_open(names[i]);
		fx_check_kernel(archive, empty); /* and that it is not NULL */
		kpack_close(archive);
		fx_loads(&(struct fx_ask){"k", 0, "gfx900", names[i]}, empty);
	}
}

/* ---- 9: AMD's reader reads the whole blob at open ---- */

/*
 * The number of bytes that opening reads, without those for reading the counter itself.
 */
static long long read_by_open(const char *name)
{
	kpack_archive_t archive = NULL;
	char path[FX_PATH];
	long long before, idle, after;

	fx_path(name, path);
	before = proc("io", "rchar");
	idle = proc("io", "rchar");
	if (idle < 0)
		skip();
	assert_int_equal(kpack_open(path, &archive), KPACK_SUCCESS);
	after = proc("io", "rchar");
	kpack_close(archive);
	return after - idle - (idle - before);
}

/* An archive of FRAMES incompressible frames of 64 KiB; returns the size of its TOC. */
static size_t put_large(const char *name, unsigned frames, bool index)
{
	struct ab a = ab_new_zstd();
	size_t n = 1 << 16, toc;
	uint8_t *data = malloc(n);
	char *hex;

	if (!data)
		abort();
	for (unsigned i = 0; i < frames; i++) {
		uint32_t seed = i + 1;

		for (size_t j = 0; j < n; j++) {
			seed = seed * 1664525 + 1013904223;
			data[j] = (uint8_t)(seed >> 24);
		}
		ab_frame(&a, data, n);
	}
	free(data);
	toc = a.size;
	hex = ab_frame_index(&a);
	ab_toc(&a,
	       "{'compression_scheme': 'zstd-per-kernel', 'zstd_offset': 64, "
	       "'zstd_size': %zu, %s%s%s 'toc': {'k#0': {'x': {'ordinal': 0, "
	       "'original_size': 65536}}}}",
	       a.size - 64, index ? "'frame_index': x'" : "", index ? hex : "",
	       index ? "'," : "");
	free(hex);
	toc = a.size - toc;
	fx_put(name, &a);
	return toc;
}

TEST(opening_reads_header_table_and_index_only)
{
	enum { FRAMES = 100, HEADER = 16, SLACK = 4096 };
	size_t toc = put_large("indexed", FRAMES, true);
	long long n = read_by_open("indexed");

	assert_in_range(n, toc, HEADER + toc + SLACK);
	/*
	 * AMD's archives have no frame index, so opening reads the length word of each
	 * frame
	 */
	toc = put_large("walked", FRAMES, false);
	n = read_by_open("walked");
	assert_in_range(n, toc, HEADER + toc + SLACK + FRAMES * SLACK);
}

/* ---- shared behaviour ---- */

/* Empty file, short file, bad magic, unknown version, TOC past the end, TOC not a map. */
TEST(what_is_no_archive_has_its_error)
{
	static const struct {
		const char *bytes;
		size_t size;
		kpack_error_t code;
	} cases[] = {
		{"", 0, KPACK_ERROR_IO_ERROR},
		{"K", 1, KPACK_ERROR_INVALID_FORMAT},
		{"KPAK\1\0\0\0\x10\0\0\0\0\0\0", 15, KPACK_ERROR_INVALID_FORMAT},
		{"KAPK\1\0\0\0\x10\0\0\0\0\0\0\0\x80", 17, KPACK_ERROR_INVALID_FORMAT},
		{"KPAK\2\0\0\0\x10\0\0\0\0\0\0\0\x80", 17,
		 KPACK_ERROR_UNSUPPORTED_VERSION},
		{"KPAK\1\0\0\0\x11\0\0\0\0\0\0\0\x80", 17, KPACK_ERROR_INVALID_FORMAT},
		{"KPAK\1\0\0\0\xff\0\0\0\0\0\0\0\x80", 17, KPACK_ERROR_INVALID_FORMAT},
		{"KPAK\1\0\0\0\x10\0\0\0\0\0\0\0\x90", 17,
		 KPACK_ERROR_MSGPACK_PARSE_FAILED},
		{"KPAK\1\0\0\0\x10\0\0\0\0\0\0\0\x80", 17, KPACK_SUCCESS},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct ab a = {0};
		kpack_archive_t archive;

		ab_put(&a, cases[i].bytes, cases[i].size);
		assert_int_equal(fx_open_bytes(&a, &archive), cases[i].code);
		kpack_close(archive);
		ab_free(&a);
	}
}

TEST(archs_keep_their_order_and_binaries_are_sorted)
{
	static const char *const archs[] = {"gfx942", "gfx1100", "gfx90a", "a", "Z"};
	static const char *const names[] = {"A", "a", "a#0", "a#10", "a#2", "a/b", "b"};
	struct ab a = ab_new(64);
	kpack_archive_t archive;
	const char *text = NULL;

	ab_put(&a, "0123", 4);
#define ONE "{'x': {'ordinal': 0}}"
	ab_toc(&a, "{'gfx_arches': ['gfx942', 'gfx1100', 'gfx90a', 'a', 'Z'], 'blobs': "
		   "[{'offset': 64, 'size': 4}], 'toc': {'b': " ONE ", 'a#2': " ONE
		   ", 'a/b': " ONE ", 'a': " ONE ", 'A': " ONE ", 'a#10': " ONE
		   ", 'a#0': " ONE "}}");
	archive = fx_accepted(&a);
	for (size_t i = 0; i < COUNT(archs); i++) {
		assert_int_equal(kpack_get_architecture(archive, i, &text),
				 KPACK_SUCCESS);
		assert_string_equal(text, archs[i]);
	}
	for (size_t i = 0; i < COUNT(names); i++) {
		assert_int_equal(kpack_get_binary(archive, i, &text), KPACK_SUCCESS);
		assert_string_equal(text, names[i]);
	}
	kpack_close(archive);
}

SUITE(fx_make, fx_remove);
