/* SPDX-License-Identifier: MIT */
#include "core/archive/decode.h"
#include "tests/unit/archive_builder.h"
#include "core/codec/codec.h"
#include "core/base/bounds.h"
#include <sys/stat.h>
#include "tests/unit/unit.h"

static struct kpackx_error why;

static struct kpack_archive *opened(const struct ab *a)
{
	struct kpack_archive *archive = NULL;

	why = (struct kpackx_error){0};
	if (ab_open(a, &archive, &why) != KPACK_SUCCESS)
		fail_msg("open: %s", why.text);
	return archive;
}

static void assert_refused(const struct ab *a, kpack_error_t code)
{
	struct kpack_archive *archive = NULL;
	kpack_error_t err;

	why = (struct kpackx_error){0};
	err = ab_open(a, &archive, &why);
	if (err != code)
		fail_msg("%d instead of %d: %s", (int)err, (int)code, why.text);
	assert_null(archive);
	assert_true(why.code == code && why.text[0]);
}

static size_t entry_of(const struct kpack_archive *a, const char *key, const char *arch)
{
	size_t entry = 0;

	if (!kp_archive_find(a, kp_span_str(key), kp_span_str(arch), &entry))
		fail_msg("%s %s is not there", key, arch);
	return entry;
}

static bool has(const struct kpack_archive *a, const char *key, const char *arch)
{
	size_t entry;

	return kp_archive_find(a, kp_span_str(key), kp_span_str(arch), &entry);
}

static kpack_error_t read_entry(const struct kpack_archive *a, size_t entry,
				uint8_t **data, size_t *size)
{
	struct kp_entry_info info;
	kpack_error_t err;

	kp_archive_entry(a, entry, &info);
	*size = (size_t)info.size;
	*data = malloc(*size + 1);
	assert_non_null(*data);
	err = kp_archive_read(a, entry, *data, &why);
	if (err) {
		free(*data);
		*data = NULL;
	}
	return err;
}

static void assert_entry(const struct kpack_archive *a, const char *key, const char *arch,
			 const void *want, size_t size)
{
	uint8_t *data;
	size_t have;

	if (read_entry(a, entry_of(a, key, arch), &data, &have) != KPACK_SUCCESS)
		fail_msg("%s: %s", key, why.text);
	assert_int_equal(have, size);
	assert_memory_equal(data, want, size);
	free(data);
}

static void assert_unreadable(const struct kpack_archive *a, size_t entry,
			      kpack_error_t code)
{
	uint8_t *data;
	size_t size;
	kpack_error_t err = read_entry(a, entry, &data, &size);

	if (err != code)
		fail_msg("%d instead of %d: %s", (int)err, (int)code, why.text);
}

static size_t fault_count(const struct kpack_archive *a)
{
	size_t kept, counted;

	(void)kp_archive_faults(a, &kept, &counted);
	assert_int_equal(kept, counted);
	return counted;
}

#define ZSTD_AT(size)                                                                    \
	"'compression_scheme': 'zstd-per-kernel', 'zstd_offset': 64, 'zstd_size': " size
#define ZSTD ZSTD_AT("%zu")

/* --- both schemes ------------------------------------------------------------------- */

TEST(plain_archives_are_read)
{
	struct ab a = ab_new(64);
	struct kpack_archive *archive;
	struct kp_entry_info info;

	ab_put(&a, "onetwothree", 11);
	ab_toc(&a,
	       "{'format_version': 1, 'group_name': 'test', 'gfx_arch_family': 'gfx900X',"
	       "'gfx_arches': ['gfx906', 'gfx900'], 'toc': {"
	       "'lib/x.so#0': {'gfx900': {'type': 'hsaco', 'ordinal': 2, "
	       "'original_size': 5},"
	       "'gfx906': {'type': 'hsaco', 'ordinal': 0, 'original_size': 3}},"
	       "'bin/y#0': {'gfx900': {'type': 'co', 'ordinal': 1, 'original_size': 3}}},"
	       "'compression_scheme': 'none', 'blobs': [{'offset': 64, 'size': 3},"
	       "{'offset': 67, 'size': 3}, {'size': 5, 'offset': 70}]}");
	archive = opened(&a);
	assert_int_equal(kp_archive_entry_count(archive), 3);
	assert_int_equal(kp_archive_binary_count(archive), 2);
	assert_string_equal(kp_archive_binary(archive, 0), "bin/y#0");
	assert_string_equal(kp_archive_binary(archive, 1), "lib/x.so#0");
	assert_int_equal(kp_archive_arch_count(archive), 2);
	assert_string_equal(kp_archive_arch(archive, 0), "gfx906"); /* as stored */
	assert_string_equal(kp_archive_arch(archive, 1), "gfx900");
	assert_string_equal(kp_archive_scheme(archive), "none");
	assert_true(kp_span_is(kp_archive_group(archive), "test"));
	assert_true(kp_span_is(kp_archive_family(archive), "gfx900X"));
	assert_int_equal(kp_archive_ordinal_count(archive), 3);
	assert_int_equal(kp_archive_blob_size(archive), 11);
	assert_false(kp_archive_has_frame_index(archive));
	assert_int_equal(fault_count(archive), 0);
	assert_int_equal(kp_archive_stat(archive)->st_size, a.size);
	kp_archive_entry(archive, 0, &info);
	assert_true(kp_span_is(info.key, "bin/y#0") && kp_span_is(info.arch, "gfx900") &&
		    kp_span_is(info.type, "co"));
	assert_true(info.ordinal == 1 && info.size == 3 && info.stored == 3);
	assert_entry(archive, "lib/x.so#0", "gfx900", "three", 5);
	assert_entry(archive, "lib/x.so#0", "gfx906", "one", 3);
	assert_entry(archive, "bin/y#0", "gfx900", "two", 3);
	assert_false(has(archive, "bin/y", "gfx900"));
	assert_false(has(archive, "bin/y#0", "gfx906"));
	kp_archive_close(archive);
	ab_free(&a);
}

/* Most of this archive is a hole. */
TEST(a_plain_archive_may_be_larger_than_4_gib)
{
	static const off_t blob = (INT64_C(5) << 30) + 7, toc = INT64_C(6) << 30;
	struct ab a = ab_new(64);
	struct kpack_archive *archive = NULL;
	char path[32], data[4];
	int fd;

	ab_toc(&a,
	       "{'blobs': [{'offset': %lld, 'size': 4}], 'toc': {'k#0': {'x': "
	       "{'ordinal': "
	       "0}}}}",
	       (long long)blob);
	kp_put_le64(a.bytes + 8, (uint64_t)toc);
	fd = ab_memfd(a.bytes, 64, path);
	assert_int_equal(pwrite(fd, "far ", 4, blob), 4);
	assert_int_equal(pwrite(fd, a.bytes + 64, a.size - 64, toc), a.size - 64);
	ab_free(&a);
	assert_int_equal(kpackx_open(path, &archive, &why), KPACK_SUCCESS);
	close(fd);
	assert_int_equal(kpackx_read_entry(archive, 0, data, 4, &why), KPACK_SUCCESS);
	assert_memory_equal(data, "far ", 4);
	kpack_close(archive);
}

/* The paper's example; its two other objects have other sizes. */
TEST(compressed_archives_are_read)
{
	uint8_t *data[3] = {ab_data(7472, 1), ab_data(7488, 2), ab_data(138456, 3)};
	struct ab a = ab_new_zstd();
	struct kpack_archive *archive;

	ab_frame(&a, data[0], 7472);
	ab_frame(&a, data[1], 7488);
	ab_frame(&a, data[2], 138456);
	ab_toc(&a,
	       "{'format_version': 1, 'group_name': 'rocm', 'gfx_arch_family': 'gfx1100',"
	       "'gfx_arches': ['gfx1100', 'gfx1101', 'gfx1102']," ZSTD ", 'toc': {"
	       "'bin/hipcc': {'gfx1100': {'type': 'hsaco', 'ordinal': 0, 'original_size':"
	       "7472}, 'gfx1101': {'type': 'hsaco', 'ordinal': 1, 'original_size': "
	       "7488}},"
	       "'lib/libamdhip64.so.6': {'gfx1100': {'type': 'hsaco', 'ordinal': 2,"
	       "'original_size': 138456}}}}",
	       a.size - 64);
	archive = opened(&a);
	assert_string_equal(kp_archive_scheme(archive), "zstd-per-kernel");
	assert_int_equal(kp_archive_arch_count(archive), 3);
	assert_int_equal(kp_archive_ordinal_count(archive), 3);
	assert_entry(archive, "bin/hipcc", "gfx1100", data[0], 7472);
	assert_entry(archive, "bin/hipcc", "gfx1101", data[1], 7488);
	assert_entry(archive, "lib/libamdhip64.so.6", "gfx1100", data[2], 138456);
	kp_archive_close(archive);
	ab_free(&a);
	for (int i = 0; i < 3; i++)
		free(data[i]);
}

/* AMD's tests build archives of a header and a TOC, without padding or names. */
TEST(the_table_may_follow_the_header)
{
	struct ab a = ab_new(16);
	struct kpack_archive *archive;

	ab_toc(&a, "{'toc': {}}");
	archive = opened(&a);
	assert_int_equal(kp_archive_entry_count(archive), 0);
	assert_int_equal(kp_archive_binary_count(archive), 0);
	assert_int_equal(kp_archive_arch_count(archive), 0);
	assert_string_equal(kp_archive_scheme(archive), "none");
	assert_true(kp_archive_group(archive).size == 0);
	kp_archive_close(archive);
	ab_free(&a);
}

TEST(the_table_may_stand_before_the_blob)
{
	struct ab a = ab_new(16);
	struct kpack_archive *archive;

	ab_toc(&a, "{'blobs': [{'offset': 100, 'size': 5}], 'toc': {'a': {'x': "
		   "{'ordinal': 0}}}}");
	while (a.size < 100)
		ab_put(&a, "", 1);
	ab_put(&a, "bytes", 5);
	archive = opened(&a);
	assert_entry(archive, "a", "x", "bytes", 5);
	kp_archive_close(archive);
	ab_free(&a);
}

TEST(entries_may_say_themselves_where_they_are)
{
	struct ab a = ab_new(64);
	struct kpack_archive *archive;

	ab_put(&a, "onetwo", 6);
	ab_toc(&a,
	       "{'compression_scheme': 'none', 'toc': {'b': {'x': {'offset': 67, 'size': "
	       "3}},"
	       "'a': {'x': {'offset': 64, 'size': 3, 'original_size': 3}, 'y': {'offset':"
	       "64, 'size': 6, 'ordinal': 9}, 'z': {'offset': 1, 'size': 4000}}}}");
	archive = opened(&a);
	assert_entry(archive, "a", "x", "one", 3);
	assert_entry(archive, "a", "y", "onetwo", 6);
	assert_entry(archive, "b", "x", "two", 3);
	assert_false(has(archive, "a", "z"));
	assert_int_equal(fault_count(archive), 1);
	kp_archive_close(archive);
	ab_free(&a);
}

TEST(ordinals_are_shared_and_blobs_overlap)
{
	struct ab a = ab_new(64);
	struct kpack_archive *archive;

	ab_put(&a, "abcdef", 6);
	ab_toc(&a, "{'blobs': [{'offset': 64, 'size': 4}, {'offset': 66, 'size': 4}], "
		   "'toc': {"
		   "'bin/hipcc/gfx1100': {'hash': 'abc123...', 'ordinal': 1},"
		   "'lib/libhip.so/gfx1100': {'hash': 'abc123...', 'ordinal': 1},"
		   "'a': {'x': {'ordinal': 0}}}}");
	archive = opened(&a);
	assert_entry(archive, "bin/hipcc/gfx1100", "gfx1100", "cdef", 4);
	assert_entry(archive, "lib/libhip.so/gfx1100", "gfx1100", "cdef", 4);
	assert_entry(archive, "a", "x", "abcd", 4);
	kp_archive_close(archive);
	ab_free(&a);
}

TEST(empty_kernels_are_read)
{
	struct ab a = ab_new(64);
	struct kpack_archive *archive;

	ab_toc(&a,
	       "{'blobs': [{'offset': 64, 'size': 0}], 'toc': {'a': {'x': {'ordinal': 0,"
	       "'original_size': 0}}}}");
	archive = opened(&a);
	assert_entry(archive, "a", "x", "", 0);
	kp_archive_close(archive);
	ab_free(&a);

	a = ab_new_zstd();
	ab_frame(&a, "", 0);
	ab_stored(&a, "", 0);
	ab_toc(&a,
	       "{" ZSTD ", 'toc': {'a': {'x': {'ordinal': 0, 'original_size': 0}, 'y':"
	       "{'ordinal': 1, 'original_size': 0}, 'z': {'ordinal': 0}}}}",
	       a.size - 64);
	archive = opened(&a);
	assert_entry(archive, "a", "x", "", 0);
	assert_entry(archive, "a", "y", "", 0);
	assert_entry(archive, "a", "z", "", 0);
	kp_archive_close(archive);
	ab_free(&a);
}

TEST(a_missing_size_is_that_of_the_frame)
{
	uint8_t *data = ab_data(300, 1);
	/*
	 * a frame that does not state its content size, with a raw last block of 3 bytes
	 */
	static const uint8_t unsized[] = "\x28\xb5\x2f\xfd\x00\x58\x19\x00\x00yes";
	struct ab a = ab_new_zstd();
	struct kpack_archive *archive;

	ab_frame(&a, data, 300);
	ab_stored(&a, unsized, sizeof(unsized) - 1);
	ab_stored(&a, "garbage", 7);
	ab_toc(&a,
	       "{" ZSTD ", 'toc': {'a': {'v': {'ordinal': 0}, 'w': {'ordinal': 1}, 'x':"
	       "{'ordinal': 1, 'original_size': 3}, 'y': {'ordinal': 2}}}}",
	       a.size - 64);
	archive = opened(&a);
	assert_entry(archive, "a", "v", data, 300);
	assert_entry(archive, "a", "x", "yes", 3);
	assert_false(has(archive, "a", "w"));
	assert_false(has(archive, "a", "y"));
	assert_int_equal(fault_count(archive), 2);
	kp_archive_close(archive);
	ab_free(&a);
	free(data);
}

TEST(metadata_is_read)
{
	struct ab a = ab_new(64);
	struct kpack_archive *archive;
	struct kp_span raw;
	struct kp_meta meta;

	ab_toc(&a,
	       "{'blobs': [{'offset': 64, 'size': 0}], 'toc': {'a': {'v': {'ordinal': 0,"
	       "'metadata': {'path': 'p/q', 'new': [1, {}], 7: 8, 'target': 't', 'mode': "
	       "33261,"
	       "'chunk': 4096, 'xxh3': x'000102030405060708090a0b0c0d0e0f'}}, 'w': "
	       "{'ordinal':"
	       "0, 'metadata': {'path': 5, 'mode': -1, 'chunk': 'x', 'xxh3': x'00', "
	       "'target':"
	       "nil}}, 'x': {'metadata': {}, 'ordinal': 0}, 'y': {'ordinal': 0}, 'z': {"
	       "'ordinal': 0, 'metadata': {'path': 'first'}, 'metadata': {'path': "
	       "'second'}}}}}");
	archive = opened(&a);
	kp_archive_meta(archive, 0, &meta);
	assert_true(kp_span_is(meta.path, "p/q") && kp_span_is(meta.target, "t"));
	assert_int_equal(meta.mode, 0755);
	assert_int_equal(meta.chunk, 0); /* scheme none has no frames to split */
	assert_true(meta.has_xxh3 && meta.xxh3[15] == 15);
	raw = kp_archive_meta_raw(archive, 0);
	assert_int_equal(raw.data[0], 0x87);
	assert_int_equal(raw.data[raw.size - 1], 15);
	for (size_t i = 1; i <= 3; i++) {
		kp_archive_meta(archive, i, &meta);
		assert_true(meta.path.size == 0 && meta.target.size == 0 &&
			    meta.mode == 0 && meta.chunk == 0 && !meta.has_xxh3);
	}
	assert_int_equal(kp_archive_meta_raw(archive, 2).size, 1);
	assert_int_equal(kp_archive_meta_raw(archive, 3).size, 0);
	kp_archive_meta(archive, 4, &meta);
	assert_true(kp_span_is(meta.path, "first"));
	kp_archive_close(archive);
	ab_free(&a);
}

#define XXH3 "x'000102030405060708090a0b0c0d0e0f'"

/* Metadata maps, and what they say that decoding needs; HASH: the last byte, -1: none. */
static const struct {
	const char *map;
	uint64_t chunk;
	int hash;
} facts[] = {
	{"{}", 0, -1},
	{"{'path': 'p/q', 'mode': 5}", 0, -1},
	{"{'xxh3': " XXH3 "}", 0, 15},
	{"{'chunk': 4096}", 4096, -1},
	{"{'path': 'p', 'xxh3': " XXH3 ", 'mode': 5, 'chunk': 67108864}", 67108864, 15},
	{"{'chunk': 5, 't': [1, {'xxh3': 2}], 7: {'chunk': 3}, 'xxh3': " XXH3 "}", 5, 15},
	{"{[1]: 2, 'chunk': 18446744073709551615}", UINT64_MAX, -1},
	/* the first counts, of whatever type it is */
	{"{'xxh3': " XXH3 ", 'xxh3': x'ff0102030405060708090a0b0c0d0eff', 'chunk': 8,"
	 "'chunk': 9}",
	 8, 15},
	{"{'xxh3': 'a', 'xxh3': " XXH3 ", 'chunk': [1], 'chunk': 9}", 0, -1},
	{"{'chunk': 0, 'chunk': 9}", 0, -1},
	/* other types and sizes */
	{"{'xxh3': '0123456789abcdef', 'chunk': -1}", 0, -1},
	{"{'xxh3': x'00', 'chunk': 'x'}", 0, -1},
	{"{'xxh3': {'xxh3': " XXH3 "}, 'chunk': {'chunk': 7}}", 0, -1},
	{"{'xxh33': " XXH3 ", 'chunks': 1, 'CHUNK': 1}", 0, -1},
};

TEST(decoding_finds_its_metadata)
{
	for (size_t i = 0; i < COUNT(facts); i++) {
		struct ab a = ab_new_zstd();
		struct kpack_archive *archive;
		struct kp_decoding_facts found;
		struct kp_meta meta;

		ab_frame(&a, "one", 3);
		ab_toc(&a,
		       "{" ZSTD ", 'toc': {'a': {'v': {'metadata': %s, 'ordinal': 0,"
		       "'original_size': 3}}}}",
		       a.size - 64, facts[i].map);
		archive = opened(&a);
		for (int compacted = 0; compacted < 2; compacted++) {
			found = kp_archive_decoding_facts(archive, 0);
			kp_archive_meta(archive, 0, &meta);
			assert_int_equal(found.chunk, facts[i].chunk);
			assert_int_equal(found.xxh3 ? found.xxh3[15] : -1, facts[i].hash);
			assert_int_equal(meta.chunk, facts[i].chunk);
			assert_int_equal(meta.has_xxh3 ? meta.xxh3[15] : -1,
					 facts[i].hash);
			kp_archive_compact(archive);
		}
		kp_archive_close(archive);
		ab_free(&a);
	}
}

TEST(trailing_bytes_are_accepted)
{
	struct ab a = ab_new(64);
	struct kpack_archive *archive;

	ab_toc(&a, "{'blobs': [{'offset': 64, 'size': 0}], 'toc': {'a': {'x': "
		   "{'ordinal': 0}}}}");
	ab_put(&a, "\301\377 garbage", 10);
	archive = opened(&a);
	assert_true(has(archive, "a", "x"));
	kp_archive_close(archive);
	ab_free(&a);
}

/* --- files that are no archives ----------------------------------------------------- */

TEST(wrong_headers_are_refused)
{
	static const struct {
		struct kp_span header;
		kpack_error_t code;
	} headers[] = {
#define H(text, code) {{(const uint8_t *)(text), sizeof(text) - 1}, code}
		H("", KPACK_ERROR_IO_ERROR),
		H("K", KPACK_ERROR_INVALID_FORMAT),
		H("KPAK\1\0\0\0\x10\0\0\0\0\0\0", KPACK_ERROR_INVALID_FORMAT),
		H("KPAK\1\0\0\0\x10\0\0\0\0\0\0\0", KPACK_ERROR_INVALID_FORMAT),
		H("KAPK\1\0\0\0\x10\0\0\0\0\0\0\0\x80", KPACK_ERROR_INVALID_FORMAT),
		H("kpak\1\0\0\0\x10\0\0\0\0\0\0\0\x80", KPACK_ERROR_INVALID_FORMAT),
		H("KPAK\2\0\0\0\x10\0\0\0\0\0\0\0\x80", KPACK_ERROR_UNSUPPORTED_VERSION),
		H("KPAK\0\0\0\0\x10\0\0\0\0\0\0\0\x80", KPACK_ERROR_UNSUPPORTED_VERSION),
		H("KPAK\0\0\0\1\x10\0\0\0\0\0\0\0\x80", KPACK_ERROR_UNSUPPORTED_VERSION),
		H("KPAK\1\0\0\0\0\0\0\0\0\0\0\0\x80", KPACK_ERROR_INVALID_FORMAT),
		H("KPAK\1\0\0\0\x0f\0\0\0\0\0\0\0\x80", KPACK_ERROR_INVALID_FORMAT),
		H("KPAK\1\0\0\0\x11\0\0\0\0\0\0\0\x80", KPACK_ERROR_INVALID_FORMAT),
		H("KPAK\1\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\x80",
		  KPACK_ERROR_INVALID_FORMAT),
		H("KPAK\1\0\0\0\x10\0\0\0\0\0\0\0\xc1", KPACK_ERROR_MSGPACK_PARSE_FAILED),
		H("KPAK\1\0\0\0\x10\0\0\0\0\0\0\0\x90", KPACK_ERROR_MSGPACK_PARSE_FAILED),
		H("KPAK\1\0\0\0\x10\0\0\0\0\0\0\0\xdf\xff\xff\xff\xff",
		  KPACK_ERROR_MSGPACK_PARSE_FAILED),
	};

	for (size_t i = 0; i < COUNT(headers); i++) {
		struct ab a = {0};

		ab_put(&a, headers[i].header.data, headers[i].header.size);
		assert_refused(&a, headers[i].code);
		ab_free(&a);
	}
}

TEST(only_regular_files_are_opened)
{
	char fifo[] = "/tmp/kp-archive-XXXXXX";
	struct kpack_archive *archive;

	assert_int_equal(kp_archive_open("/tmp", &archive, &why), KPACK_ERROR_IO_ERROR);
	assert_int_equal(kp_archive_open("/dev/null", &archive, &why),
			 KPACK_ERROR_IO_ERROR);
	assert_int_equal(kp_archive_open("/nonexistent/x", &archive, &why),
			 KPACK_ERROR_FILE_NOT_FOUND);
	assert_int_equal(kp_archive_open("", &archive, &why), KPACK_ERROR_FILE_NOT_FOUND);
	assert_non_null(mkdtemp(fifo));
	assert_int_equal(rmdir(fifo), 0);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_int_equal(kp_archive_open(fifo, &archive, &why), KPACK_ERROR_IO_ERROR);
	unlink(fifo);
}

/* A sparse file whose header promises a TOC of gigabytes is refused before it is read. */
TEST(a_table_has_a_limit)
{
	struct kpack_archive *archive = NULL;
	struct ab a = ab_new(64);
	char path[32];
	int fd;

	ab_toc(&a, "{}");
	fd = ab_memfd(a.bytes, a.size, path);
	assert_int_equal(ftruncate(fd, (off_t)(64 + KP_TOC_SIZE_MAX + 1)), 0);
	assert_int_equal(kp_archive_open(path, &archive, &why),
			 KPACK_ERROR_INVALID_FORMAT);
	assert_has(why.text, "limit");
	close(fd);
	ab_free(&a);
}

/* --- compressed blobs --------------------------------------------------------------- */

TEST(wrong_blobs_are_refused)
{
	static const char *const places[] = {
		"'zstd_offset': 64",
		"'zstd_size': 30",
		"'zstd_offset': 64, 'zstd_size': 3",
		"'zstd_offset': 64, 'zstd_size': 0",
		"'zstd_offset': 64, 'zstd_size': -1",
		"'zstd_offset': -1, 'zstd_size': 30",
		"'zstd_offset': 64, 'zstd_size': 4000",
		"'zstd_offset': 4000, 'zstd_size': 4",
		"'zstd_offset': 64, 'zstd_size': 18446744073709551615",
		"'zstd_offset': 18446744073709551615, 'zstd_size': 30",
		"'zstd_offset': 18446744073709551615, 'zstd_size': 2",
		"'zstd_offset': 64, 'zstd_size': 4294967297",
		"'zstd_offset': 64, 'zstd_size': 30", /* ends inside a frame */
	};

	for (size_t i = 0; i < COUNT(places); i++) {
		uint8_t *data = ab_data(500, 1);
		struct ab a = ab_new_zstd();

		ab_frame(&a, data, 500);
		ab_toc(&a, "{'compression_scheme': 'zstd-per-kernel', %s, 'toc': {}}",
		       places[i]);
		assert_refused(&a, KPACK_ERROR_INVALID_FORMAT);
		ab_free(&a);
		free(data);
	}
}

TEST(wrong_frame_counts_are_refused)
{
	static const uint32_t counts[] = {3, 100, KP_FRAMES_MAX, KP_FRAMES_MAX + 1,
					  UINT32_MAX};

	for (size_t i = 0; i < COUNT(counts); i++) {
		struct ab a = ab_new_zstd();

		ab_frame(&a, "one", 3);
		ab_frame(&a, "two", 3);
		kp_put_le32(a.bytes + 64, counts[i]);
		ab_toc(&a, "{" ZSTD ", 'toc': {}}", a.size - 64);
		assert_refused(&a, KPACK_ERROR_INVALID_FORMAT);
		ab_free(&a);
	}
}

/* The entry y has an ordinal past the last frame; bytes after that frame are padding. */
TEST(bytes_after_the_last_frame_are_accepted)
{
	struct kpack_archive *archive;
	struct ab a = ab_new_zstd();

	ab_frame(&a, "one", 3);
	ab_put(&a, "padding", 7);
	ab_toc(&a, "{" ZSTD ", 'toc': {'a': {'x': {'ordinal': 0}, 'y': {'ordinal': 1}}}}",
	       a.size - 64);
	archive = opened(&a);
	assert_entry(archive, "a", "x", "one", 3);
	assert_false(has(archive, "a", "y"));
	kp_archive_close(archive);
	ab_free(&a);
}

/* --- the frame index ---------------------------------------------------------------- */

/*
 * Three frames; the frame index is made of OFFSETS, in which -1 stands for the blob's
 * size.
 */
static struct ab with_index(const int64_t *offsets, size_t n)
{
	struct ab a = ab_new_zstd();
	uint8_t index[64];
	char *hex;

	ab_stored(&a, "0123456789", 10);
	ab_stored(&a, "0123456789", 10);
	ab_frame(&a, "good", 4);
	for (size_t i = 0; i < n; i++)
		kp_put_le64(index + 8 * i,
			    offsets[i] < 0 ? a.size - 64 : (uint64_t)offsets[i]);
	hex = ab_hex(index, 8 * n);
	ab_toc(&a,
	       "{" ZSTD ", 'frame_index': x'%s', 'toc': {'a': {'v': {'ordinal': 0,"
	       "'original_size': 10}, 'x': {'ordinal': 2, 'original_size': 4}}}}",
	       a.size - 64, hex);
	free(hex);
	return a;
}

TEST(wrong_frame_indices_are_refused)
{
	static const struct {
		int64_t offsets[6];
		size_t n;
	} indices[] = {
		{{0}, 0},                 /* no frames */
		{{4, 18, 32}, 3},         /* does not reach the end */
		{{4, 18, -1}, 3},         /* one frame too few */
		{{4, 18, 32, 40, -1}, 5}, /* one frame too many */
		{{0, 18, 32, -1}, 4},     /* wrong first offset */
		{{5, 18, 32, -1}, 4},
		{{4, 18, 18, -1}, 4}, /* wrong order */
		{{4, 32, 18, -1}, 4},
		{{4, 18, 21, -1}, 4}, /* no room for the length word */
		{{4, 18, INT64_MAX, -1}, 4},
		{{4, 18, 32, INT64_MAX}, 4}, /* wrong last offset */
		{{-1, -1, -1, -1}, 4},
		{{4, 4, 4, -1}, 4},
	};

	for (size_t i = 0; i < COUNT(indices); i++) {
		struct ab a = with_index(indices[i].offsets, indices[i].n);

		assert_refused(&a, KPACK_ERROR_INVALID_FORMAT);
		assert_has(why.text, "frame_index");
		ab_free(&a);
	}
}

TEST(a_frame_index_of_odd_bytes_is_refused)
{
	for (int cut = 1; cut < 8; cut++) {
		struct ab a = ab_new_zstd();
		char *hex;

		ab_frame(&a, "one", 3);
		hex = ab_frame_index(&a);
		hex[strlen(hex) - 2 * (size_t)cut] = 0;
		ab_toc(&a, "{" ZSTD ", 'frame_index': x'%s'}", a.size - 64, hex);
		assert_refused(&a, KPACK_ERROR_INVALID_FORMAT);
		free(hex);
		ab_free(&a);
	}
}

/*
 * A frame index that is consistent in itself but not with the blob; found when the frame
 * is read.
 */
TEST(an_index_that_contradicts_the_blob_is_found_on_reading)
{
	static const int64_t right[] = {4, 18, 32, -1}, wrong[] = {4, 19, 32, -1};
	struct ab a = with_index(right, 4);
	struct kpack_archive *archive = opened(&a);
	struct kp_source source;

	assert_true(kp_archive_has_frame_index(archive));
	assert_entry(archive, "a", "x", "good", 4);
	assert_unreadable(archive, entry_of(archive, "a", "v"),
			  KPACK_ERROR_DECOMPRESSION_FAILED);
	kp_archive_close(archive);
	ab_free(&a);

	a = with_index(wrong, 4);
	archive = opened(&a);
	assert_entry(archive, "a", "x", "good", 4);
	assert_unreadable(archive, entry_of(archive, "a", "v"),
			  KPACK_ERROR_INVALID_FORMAT);
	assert_int_equal(
		kp_archive_source(archive, entry_of(archive, "a", "v"), &source, &why),
		KPACK_ERROR_INVALID_FORMAT);
	kp_archive_close(archive);
	ab_free(&a);
}

TEST(an_index_gives_what_walking_gives)
{
	enum { N = 3000 };
	struct kpack_archive *walked, *indexed;
	struct ab a = ab_new_zstd(), b;
	char *hex;

	for (uint32_t i = 0; i < N;
	     i++) { /* some frames cross a boundary of the walk's read window */
		size_t size = i % 500 == 7 ? 1500000 : i % 90;
		uint8_t *data = ab_data(size, i);

		ab_stored(&a, data, size);
		free(data);
	}
	ab_frame(&a, "last", 4);
	b = ab_new(64);
	ab_put(&b, a.bytes + 64, a.size - 64);
	b.frames = a.frames;
	hex = ab_frame_index(&a);
	ab_toc(&a, "{" ZSTD ", 'toc': {'a': {'x': {'ordinal': %d}}}}", a.size - 64, N);
	ab_toc(&b,
	       "{" ZSTD ", 'frame_index': x'%s', 'toc': {'a': {'x': {'ordinal': %d}}}}",
	       b.size - 64, hex, N);
	free(hex);
	walked = opened(&a);
	indexed = opened(&b);
	assert_int_equal(kp_archive_ordinal_count(walked), N + 1);
	assert_int_equal(kp_archive_ordinal_count(indexed), N + 1);
	assert_entry(walked, "a", "x", "last", 4);
	assert_entry(indexed, "a", "x", "last", 4);
	kp_archive_close(walked);
	kp_archive_close(indexed);
	ab_free(&a);
	ab_free(&b);
}

/* --- false sizes and hashes --------------------------------------------------------- */

TEST(sizes_that_cannot_be_are_refused)
{
	uint8_t *data = ab_data(1000, 1);
	struct ab a = ab_new_zstd();
	struct kpack_archive *archive;

	ab_frame(&a, data, 1000);
	ab_frame(&a, data, 1000);
	ab_toc(&a,
	       "{" ZSTD ", 'toc': {'a': {'absurd': {'ordinal': 0, 'original_size':"
	       "18446744073709551615}, 'huge': {'ordinal': 0, 'original_size': "
	       "1099511627776},"
	       "'negative': {'ordinal': 0, 'original_size': -1}, 'chunked': {'ordinal': "
	       "0,"
	       "'original_size': 1099511627776, 'metadata': {'chunk': 4096}},"
	       "'less': {'ordinal': 0, 'original_size': 999}, 'more': {'ordinal': 0,"
	       "'original_size': 1001}, 'none': {'ordinal': 0, 'original_size': 0},"
	       "'ordinal': {'ordinal': 2, 'original_size': 1000}, 'right': {'ordinal': 1,"
	       "'original_size': 1000}, 'wide': {'ordinal': 4294967295, 'original_size': "
	       "5}}}}",
	       a.size - 64);
	archive = opened(&a);
	assert_int_equal(kp_archive_entry_count(archive), 4);
	assert_int_equal(fault_count(archive), 6);
	assert_unreadable(archive, entry_of(archive, "a", "less"),
			  KPACK_ERROR_DECOMPRESSION_FAILED);
	assert_unreadable(archive, entry_of(archive, "a", "more"),
			  KPACK_ERROR_DECOMPRESSION_FAILED);
	assert_unreadable(archive, entry_of(archive, "a", "none"),
			  KPACK_ERROR_DECOMPRESSION_FAILED);
	assert_entry(archive, "a", "right", data, 1000);
	kp_archive_close(archive);
	ab_free(&a);

	a = ab_new(64);
	ab_put(&a, "data", 4);
	ab_toc(&a, "{'blobs': [{'offset': 64, 'size': 4}], 'toc': {'a': {'less': "
		   "{'ordinal': 0,"
		   "'original_size': 3}, 'more': {'ordinal': 0, 'original_size': 5}, "
		   "'right': {"
		   "'ordinal': 0, 'original_size': 4}, 'z': {'ordinal': 1}}}}");
	archive = opened(&a);
	assert_int_equal(kp_archive_entry_count(archive), 1);
	assert_int_equal(fault_count(archive), 3);
	assert_entry(archive, "a", "right", "data", 4);
	kp_archive_close(archive);
	ab_free(&a);
	free(data);
}

/*
 * A flipped byte anywhere in a frame gives an error or, without a checksum, other bytes.
 */
TEST(corrupt_frames_do_no_harm)
{
	uint8_t *data = ab_data(2000, 1), *out, *stream = malloc(2000);
	struct ab a = ab_new_zstd();
	size_t begin = a.size + 4, end, size;

	assert_non_null(stream);
	ab_frame(&a, data, 2000);
	end = a.size;
	ab_toc(&a,
	       "{" ZSTD ", 'toc': {'a': {'x': {'ordinal': 0, 'original_size': 2000}}}}",
	       a.size - 64);
	for (size_t at = begin; at < end; at++) {
		struct kpack_archive *archive;
		struct kp_decode *s = NULL;
		uint64_t ready = 0;
		kpack_error_t err;

		a.bytes[at] ^= 0x55;
		archive = opened(&a);
		err = read_entry(archive, 0, &out, &size);
		assert_true(err == KPACK_SUCCESS ||
			    err == KPACK_ERROR_DECOMPRESSION_FAILED);
		assert_int_equal(kp_decode_open(archive, 0, KP_DECODE_STEPS, &s, &why),
				 KPACK_SUCCESS);
		assert_int_equal(kp_decode_next(s, stream, UINT64_MAX, &ready, &why),
				 err);
		if (!err)
			assert_memory_equal(out, stream, 2000);
		kp_decode_close(s);
		free(out);
		kp_archive_close(archive);
		a.bytes[at] ^= 0x55;
	}
	ab_free(&a);
	free(stream);
	free(data);
}

TEST(content_is_checked_where_a_hash_is)
{
	uint8_t *data = ab_data(5000, 1);
	char *hash = ab_xxh3(data, 5000);
	struct kpack_archive *archive;
	struct ab a;

	for (int scheme = 0; scheme < 2; scheme++) {
		a = scheme ? ab_new_zstd() : ab_new(64);
		if (scheme)
			ab_frame(&a, data, 5000);
		else
			ab_put(&a, data, 5000);
		ab_toc(&a,
		       "{%s, 'zstd_offset': 64, 'zstd_size': %zu, 'blobs': [{'offset': "
		       "64,"
		       "'size': %zu}], 'toc': {'a': {'x': {'ordinal': 0, "
		       "'original_size': 5000,"
		       "'metadata': {'xxh3': x'%s'}}, 'y': {'ordinal': 0, "
		       "'original_size': 5000,"
		       "'metadata': {'xxh3': x'00%s'}}, 'z': {'ordinal': 0, "
		       "'original_size':"
		       "5000, 'metadata': {'xxh3': x'00%.30s'}}}}}",
		       scheme ? "'compression_scheme': 'zstd-per-kernel'"
			      : "'compression_scheme': 'none'",
		       a.size - 64, a.size - 64, hash, hash, hash);
		archive = opened(&a);
		assert_entry(archive, "a", "x", data, 5000);
		assert_entry(archive, "a", "y", data, 5000); /* 17 bytes: not a hash */
		assert_unreadable(archive, 2, KPACK_ERROR_DECOMPRESSION_FAILED);
		kp_archive_close(archive);
		ab_free(&a);
	}
	free(hash);
	free(data);
}

/* --- truncation --------------------------------------------------------------------- */

/* Truncate the file at every length, before and after opening it. */
static void try_every_length(struct ab *a, size_t entries)
{
	struct kpack_archive *whole;
	char path[32];
	int fd = ab_memfd(a->bytes, a->size, path);

	assert_int_equal(kp_archive_open(path, &whole, &why), KPACK_SUCCESS);
	assert_int_equal(kp_archive_entry_count(whole), entries);
	for (size_t size = a->size; size--;) {
		struct kpack_archive *archive = NULL;

		assert_int_equal(ftruncate(fd, (off_t)size), 0);
		why = (struct kpackx_error){0};
		assert_int_not_equal(kp_archive_open(path, &archive, &why),
				     KPACK_SUCCESS);
		assert_null(archive);
		assert_true(why.text[0] != 0);
		for (size_t e = 0; e < entries; e++) {
			uint8_t *data;
			size_t n;
			kpack_error_t err = read_entry(whole, e, &data, &n);

			assert_true(err == KPACK_SUCCESS || err == KPACK_ERROR_IO_ERROR);
			free(data);
		}
	}
	kp_archive_close(whole);
	close(fd);
}

TEST(a_cut_archive_is_refused_at_every_length)
{
	struct ab a = ab_new(64);
	char *hex;

	ab_put(&a, "onetwothree", 11);
	ab_toc(&a,
	       "{'group_name': 'g', 'gfx_arches': ['gfx900'], 'blobs': [{'offset': 64, "
	       "'size':"
	       "6}, {'offset': 70, 'size': 5}], 'toc': {'a': {'x': {'ordinal': 0}, 'y': {"
	       "'ordinal': 1, 'original_size': 5, 'metadata': {'path': 'p'}}}}}");
	try_every_length(&a, 2);
	ab_free(&a);

	a = ab_new_zstd();
	ab_frame(&a, "onetwothree", 11);
	ab_frame(&a, "", 0);
	hex = ab_frame_index(&a);
	ab_toc(&a,
	       "{'gfx_arches': ['gfx900'], 'frame_index': x'%s', " ZSTD
	       ", 'toc': {'a': {'x':"
	       "{'ordinal': 0, 'original_size': 11}, 'y': {'ordinal': 1, 'original_size':"
	       "0}}}}",
	       hex, a.size - 64);
	try_every_length(&a, 2);
	free(hex);
	ab_free(&a);
}

/* Set every byte of an archive to every power of two: no crash, no leak, no hang. */
TEST(a_changed_byte_does_no_harm)
{
	struct ab a = ab_new_zstd();

	ab_frame(&a, "onetwothree", 11);
	ab_toc(&a,
	       "{'gfx_arches': ['gfx900'], " ZSTD ", 'toc': {'b#0': {'x': {'ordinal': 0,"
	       "'original_size': 11, 'type': 'co'}}, 'a/gfx900': {'ordinal': 0}}}",
	       a.size - 64);
	for (size_t at = 0; at < a.size; at++) {
		for (unsigned bit = 0; bit < 8; bit++) {
			struct kpack_archive *archive;

			a.bytes[at] ^= (uint8_t)(1u << bit);
			if (ab_open(&a, &archive, NULL) == KPACK_SUCCESS) {
				for (size_t e = 0; e < kp_archive_entry_count(archive);
				     e++) {
					uint8_t *data;
					size_t size;

					if (!read_entry(archive, e, &data, &size))
						free(data);
				}
				kp_archive_close(archive);
			}
			a.bytes[at] ^= (uint8_t)(1u << bit);
		}
	}
	ab_free(&a);
}

/* --- streaming ---------------------------------------------------------------------- */

/* Decode in steps; bytes reported ready are correct. */
static kpack_error_t stream(const struct kpack_archive *a, size_t entry, uint64_t step,
			    const uint8_t *want, uint64_t size)
{
	uint8_t *buf = malloc((size_t)size + 1);
	uint64_t ready = 0, before;
	struct kp_decode *s = NULL;
	kpack_error_t err;

	assert_non_null(buf);
	err = kp_decode_open(a, entry, KP_DECODE_STEPS, &s, &why);
	if (!err) {
		do {
			before = ready;
			err = kp_decode_next(s, buf, step, &ready, &why);
			assert_true(ready <= size);
			assert_memory_equal(buf + before, want + before, ready - before);
		} while (!err && ready < size);
		if (!err) { /* one step more than needed */
			err = kp_decode_next(s, buf, step, &ready, &why);
			assert_int_equal(ready, size);
		}
	}
	kp_decode_close(s);
	free(buf);
	return err;
}

static const uint64_t steps[] = {1, 4096, 100000, UINT64_MAX};

static void assert_streams(const struct kpack_archive *a, size_t entry,
			   const uint8_t *want, size_t size)
{
	uint8_t *data;
	size_t n;

	if (read_entry(a, entry, &data, &n) != KPACK_SUCCESS)
		fail_msg("read: %s", why.text);
	assert_int_equal(n, size);
	assert_memory_equal(data, want, size);
	free(data);
	for (size_t i = 0; i < COUNT(steps); i++)
		if (stream(a, entry, steps[i], want, size) != KPACK_SUCCESS)
			fail_msg("entry %zu, step %llu: %s", entry,
				 (unsigned long long)steps[i], why.text);
}

TEST(streaming_gives_what_reading_gives)
{
	static const size_t sizes[] = {0, 1, 4095, 4096, 4097, 131072, 131073, 700000};
	uint8_t *data = ab_data(700000, 5);
	struct kpack_archive *archive;

	for (size_t i = 0; i < COUNT(sizes); i++) {
		char *hash = ab_xxh3(data, sizes[i]);
		struct ab a = ab_new_zstd(),
			  chunked = ab_seekable(data, sizes[i], 4096, false);
		size_t blob;

		ab_frame(&a, data, sizes[i]);
		ab_stored(&a, chunked.bytes, chunked.size);
		blob = a.size - 64;
		ab_toc(&a,
		       "{" ZSTD
		       ", 'toc': {'a': {'v': {'ordinal': 0, 'original_size': %zu},"
		       "'w': {'ordinal': 0, 'original_size': %zu, 'metadata': {'xxh3': "
		       "x'%s'}},"
		       "'x': {'ordinal': 1, 'original_size': %zu, 'metadata': {'chunk': "
		       "4096,"
		       "'xxh3': x'%s'}}}}}",
		       blob, sizes[i], sizes[i], hash, sizes[i], hash);
		archive = opened(&a);
		for (size_t e = 0; e < 3; e++)
			assert_streams(archive, e, data, sizes[i]);
		kp_archive_close(archive);
		ab_free(&a);
		a = ab_new(64);
		ab_put(&a, data, sizes[i]);
		ab_toc(&a,
		       "{'blobs': [{'offset': 64, 'size': %zu}], 'toc': {'a': {'x': "
		       "{'ordinal':"
		       "0, 'metadata': {'xxh3': x'%s', 'chunk': 4096}}}}}",
		       sizes[i], hash);
		archive = opened(&a);
		assert_streams(archive, 0, data, sizes[i]);
		kp_archive_close(archive);
		ab_free(&a);
		ab_free(&chunked);
		free(hash);
	}
	free(data);
}

/*
 * Entries of several frames, which other readers of the format decode too, with or
 * without our metadata.
 */
TEST(entries_of_several_frames_stream_too)
{
	uint8_t *data = ab_data(300000, 5);
	struct ab a = ab_new_zstd(), chunked = ab_seekable(data, 300000, 65536, true);
	struct ab two = {0};
	struct kpack_archive *archive;

	ab_put(&two, "\x50\x2a\x4d\x18\3\0\0\0abc", 11); /* a skippable frame */
	ab_put_frame(&two, "", 0);
	ab_put_frame(&two, data, 100000);
	ab_put_frame(&two, data + 100000, 200000);
	ab_put_frame(&two, "", 0);
	ab_stored(&a, chunked.bytes, chunked.size);
	ab_stored(&a, two.bytes, two.size);
	ab_stored(&a, "", 0);
	ab_toc(&a,
	       "{" ZSTD
	       ", 'toc': {'a': {'v': {'ordinal': 0, 'original_size': 300000}, 'w': {"
	       "'ordinal': 1, 'original_size': 300000}, 'x': {'ordinal': 2, "
	       "'original_size':"
	       "0}}}}",
	       a.size - 64);
	archive = opened(&a);
	assert_streams(archive, 0, data, 300000);
	assert_streams(archive, 1, data, 300000);
	assert_streams(archive, 2, data, 0);
	kp_archive_close(archive);
	ab_free(&two);
	ab_free(&chunked);
	ab_free(&a);
	free(data);
}

/*
 * A window of 1 GiB costs nothing, because the object's own memory serves as the window.
 */
TEST(wide_windows_stream_too)
{
	enum { BLOCK = 100000 };
	uint8_t *data = ab_data(2 * BLOCK, 5);
	struct ab a = ab_new_zstd(), frame = {0};
	struct kpack_archive *archive;

	ab_put(&frame, "\x28\xb5\x2f\xfd\x80\xa0", 6);
	ab_put32(&frame, 2 * BLOCK);
	for (uint32_t last = 0; last < 2; last++) {
		ab_put32(&frame, BLOCK << 3 | last); /* a header of 3 bytes */
		frame.size--;
		ab_put(&frame, data + last * BLOCK, BLOCK);
	}
	ab_stored(&a, frame.bytes, frame.size);
	ab_toc(&a, "{" ZSTD ", 'toc': {'a': {'x': {'ordinal': 0, 'original_size': %d}}}}",
	       a.size - 64, 2 * BLOCK);
	archive = opened(&a);
	assert_streams(archive, 0, data, 2 * BLOCK);
	kp_archive_close(archive);
	ab_free(&frame);
	ab_free(&a);
	free(data);
}

TEST(wrong_frames_do_not_stream)
{
	uint8_t *data = ab_data(200000, 5);
	char *hash = ab_xxh3(data, 199999);
	struct ab a = ab_new_zstd(), one = {0};
	struct kpack_archive *archive;

	ab_put_frame(&one, data, 200000);
	ab_stored(&a, one.bytes, one.size);
	ab_stored(&a, one.bytes, one.size - 1);
	ab_put(&one, "x", 1);
	ab_stored(&a, one.bytes, one.size);
	ab_stored(&a, "", 0);
	ab_toc(&a,
	       "{" ZSTD ", 'toc': {'a': {"
	       "'p': {'ordinal': 0, 'original_size': 199999},"
	       "'q': {'ordinal': 0, 'original_size': 200001},"
	       "'r': {'ordinal': 1, 'original_size': 200000},"
	       "'s': {'ordinal': 2, 'original_size': 200000},"
	       "'t': {'ordinal': 0, 'original_size': 200000, 'metadata': {'xxh3': "
	       "x'%s'}},"
	       "'u': {'ordinal': 3, 'original_size': 5}}}}",
	       a.size - 64, hash);
	archive = opened(&a);
	assert_int_equal(kp_archive_entry_count(archive), 6);
	for (size_t e = 0; e < 6; e++) {
		struct kp_entry_info info;

		kp_archive_entry(archive, e, &info);
		assert_unreadable(archive, e, KPACK_ERROR_DECOMPRESSION_FAILED);
		for (size_t i = 0; i < COUNT(steps); i++)
			assert_int_equal(stream(archive, e, steps[i], data, info.size),
					 KPACK_ERROR_DECOMPRESSION_FAILED);
	}
	kp_archive_close(archive);
	ab_free(&one);
	ab_free(&a);
	free(hash);
	free(data);
}

/* --- compacting --------------------------------------------------------------------- */

static void assert_same_text(struct kp_span a, struct kp_span b)
{
	assert_true(kp_span_eq(a, b));
}

static void assert_same_facts(struct kp_decoding_facts a, struct kp_decoding_facts b)
{
	assert_int_equal(a.chunk, b.chunk);
	assert_int_equal(a.xxh3 != NULL, b.xxh3 != NULL);
	if (a.xxh3)
		assert_memory_equal(a.xxh3, b.xxh3, 16);
}

static void assert_same_entry(const struct kpack_archive *a,
			      const struct kpack_archive *b, size_t entry)
{
	struct kp_entry_info x, y;
	uint8_t *data;
	size_t size, found;

	kp_archive_entry(a, entry, &x);
	kp_archive_entry(b, entry, &y);
	assert_same_text(x.key, y.key);
	assert_same_text(x.arch, y.arch);
	assert_same_text(x.type, y.type);
	assert_true(x.ordinal == y.ordinal && x.size == y.size && x.stored == y.stored);
	assert_same_text(kp_archive_meta_raw(a, entry), kp_archive_meta_raw(b, entry));
	assert_same_facts(kp_archive_decoding_facts(a, entry),
			  kp_archive_decoding_facts(b, entry));
	assert_true(kp_archive_find(b, x.key, x.arch, &found) && found == entry);
	assert_int_equal(read_entry(a, entry, &data, &size), KPACK_SUCCESS);
	assert_entry(b, (const char *)x.key.data, (const char *)x.arch.data, data, size);
	free(data);
}

static void assert_same_archive(const struct ab *bytes, size_t entries)
{
	struct kpack_archive *a = opened(bytes), *b = opened(bytes);

	kp_archive_compact(b);
	assert_int_equal(kp_archive_entry_count(a), entries);
	assert_int_equal(kp_archive_entry_count(b), entries);
	for (size_t i = 0; i < entries; i++)
		assert_same_entry(a, b, i);
	assert_int_equal(kp_archive_arch_count(a), kp_archive_arch_count(b));
	for (size_t i = 0; i < kp_archive_arch_count(a); i++)
		assert_string_equal(kp_archive_arch(a, i), kp_archive_arch(b, i));
	assert_same_text(kp_archive_group(a), kp_archive_group(b));
	assert_same_text(kp_archive_family(a), kp_archive_family(b));
	assert_int_equal(fault_count(a), fault_count(b));
	kp_archive_close(a);
	kp_archive_close(b);
}

/*
 * Paths that equal the key, share its beginning, are invalid, come second, or are under
 * another arch.
 */
#define ENTRIES                                                                          \
	"'toc': {'p/q': {"                                                               \
	"'x': {'ordinal': 0, 'original_size': 3, 'metadata': {'path': 'p/q', 'mode': "   \
	"5}},"                                                                           \
	"'y': {'ordinal': 1, 'original_size': 3, 'metadata': {'path': 'p/q'}}},"         \
	"'p/a': {'x': {'metadata': {'path': 'p/'}, 'ordinal': 0, 'original_size': 3}},"  \
	"'p': {'x': {'ordinal': 1, 'original_size': 3, 'metadata': {'path': 'p/q'}}},"   \
	"'n': {'x': {'ordinal': 1, 'original_size': 3},"                                 \
	"'w': {'ordinal': 0, 'original_size': 3, 'metadata': {'path': 'n'}}},"           \
	"'m': {'x': {'ordinal': 0, 'original_size': 3, 'metadata': {}}},"                \
	"'l': {'x': {'ordinal': 0, 'original_size': 3, 'metadata': "                     \
	"{'t': [1, {2: nil}], 'path': 'l', 'chunk': 4096}}},"                            \
	"'k': {'x': {'ordinal': 0, 'original_size': 3, 'metadata': {'path': 7}}}}"

TEST(compacted_archives_answer_the_same)
{
	struct ab a = ab_new(64);

	ab_put(&a, "onetwo", 6);
	ab_toc(&a, "{'group_name': 'g', 'gfx_arch_family': '', 'gfx_arches': ['x', "
		   "'y']," ENTRIES
		   ", 'compression_scheme': 'none', 'blobs': [{'offset': 64, 'size': 3},"
		   "{'offset': 67, 'size': 3}]}");
	assert_same_archive(&a, 9);
	ab_free(&a);
	a = ab_new(64); /* the architectures come last: nothing follows them */
	ab_toc(&a, "{'gfx_arches': ['', 'x']}");
	assert_same_archive(&a, 0);
	ab_free(&a);
}

TEST(compacted_archives_keep_their_frame_index)
{
	struct ab a = ab_new_zstd();
	char *hex;

	ab_frame(&a, "one", 3);
	ab_frame(&a, "two", 3);
	hex = ab_frame_index(&a);
	ab_toc(&a, "{'frame_index': x'%s', " ZSTD ", " ENTRIES "}", hex, a.size - 64);
	free(hex);
	assert_same_archive(&a, 9);
	ab_free(&a);
}

/* Faults quote the TOC, including names of entries that were refused. */
TEST(faults_outlive_compacting)
{
	struct ab a = ab_new(64);
	struct kpack_archive *archive;

	ab_put(&a, "one", 3);
	ab_toc(&a, "{'toc': {'a': {'x': {'ordinal': 0}, 'y': {'ordinal': 1}}}, 'blobs': "
		   "[{'offset': 64, 'size': 3}], 'compression_scheme': 'none'}");
	archive = opened(&a);
	kp_archive_compact(archive);
	assert_int_equal(fault_count(archive), 1);
	assert_non_null(kp_archive_refusal(archive, kp_span_str("a"), kp_span_str("y")));
	assert_entry(archive, "a", "x", "one", 3);
	kp_archive_close(archive);
	ab_free(&a);
}
