/* SPDX-License-Identifier: MIT */
/*
 * What a program asks an open archive for, and what stays of it when it is compacted.  How
 * archives are read, and which are refused, is in tests/golden.
 */
#include "tests/unit/archive_builder.h"
#include "core/archive/entry.h"
#include "core/base/bounds.h"
#include "tests/unit/unit.h"

static struct kpackx_error why;

#define ZSTD                                                                             \
	"'compression_scheme': 'zstd-per-kernel', 'zstd_offset': 64, 'zstd_size': %zu"

/* Most of this archive is a hole. */
TEST(a_plain_archive_may_be_larger_than_4_gib)
{
	static const off_t blob = (INT64_C(5) << 30) + 7, toc = INT64_C(6) << 30;
	struct ab a = ab_new(64);
	struct kpack_archive *archive = NULL;
	char path[32], data[4];
	int fd;

	ab_toc(&a, "{'blobs': [{'offset': %lld, 'size': 4}], 'toc': {'k#0': {'x': @0}}}",
	       (long long)blob);
	kp_put_le64(a.bytes + 8, (uint64_t)toc);
	fd = ab_memfd(a.bytes, 64, path);
	assert_int_equal(pwrite(fd, "far ", 4, blob), 4);
	assert_int_equal(pwrite(fd, a.bytes + 64, a.size - 64, toc), a.size - 64);
	assert_int_equal(kp_archive_open(path, &archive, &why), KPACK_SUCCESS);
	assert_int_equal(kp_entry_read(archive, 0, data, &why), KPACK_SUCCESS);
	assert_memory_equal(data, "far ", 4);
	kp_archive_close(archive);
	/* a table of gigabytes is refused before it is read */
	assert_int_equal(ftruncate(fd, toc + (off_t)KP_TOC_SIZE_MAX + 1), 0);
	assert_int_equal(kp_archive_open(path, &archive, &why),
			 KPACK_ERROR_INVALID_FORMAT);
	assert_has(why.text, "limit");
	close(fd);
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
	{"{'chunk': 4096}", 4096, -1},
	{"{'path': 'p', 'xxh3': " XXH3 ", 'mode': 5, 'chunk': 67108864}", 67108864, 15},
	{"{'chunk': 5, 't': [1, {'xxh3': 2}], 7: {'chunk': 3}, 'xxh3': " XXH3 "}", 5, 15},
	{"{[1]: 2, 'chunk': 18446744073709551615}", UINT64_MAX, -1},
	/* the first counts, of whatever type it is */
	{"{'xxh3': " XXH3
	 ", 'xxh3': x'ff0102030405060708090a0b0c0d0eff', 'chunk': 8,'chunk': 9}",
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
		       "{" ZSTD ", 'toc': {'a': {'v': {'metadata': %s, 'ordinal': 0, "
		       "'original_size': 3}}}}",
		       a.size - 64, facts[i].map);
		archive = ab_opened(&a);
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
	}
}

static void assert_same_entry(const struct kpack_archive *a,
			      const struct kpack_archive *b, size_t entry)
{
	struct kp_decoding_facts f = kp_archive_decoding_facts(a, entry),
				 g = kp_archive_decoding_facts(b, entry);
	struct kp_entry_info x, y;
	char one[8] = "", two[8] = "";
	size_t found;

	kp_archive_entry(a, entry, &x);
	kp_archive_entry(b, entry, &y);
	assert_true(kp_span_eq(x.key, y.key) && kp_span_eq(x.arch, y.arch) &&
		    kp_span_eq(x.type, y.type));
	assert_true(x.ordinal == y.ordinal && x.size == y.size && x.stored == y.stored);
	assert_true(
		kp_span_eq(kp_archive_meta_raw(a, entry), kp_archive_meta_raw(b, entry)));
	assert_true(f.chunk == g.chunk && !f.xxh3 == !g.xxh3);
	if (f.xxh3)
		assert_memory_equal(f.xxh3, g.xxh3, 16);
	assert_true(kp_archive_find(b, x.key, x.arch, &found) && found == entry);
	assert_int_equal(kp_entry_read(a, entry, one, &why), KPACK_SUCCESS);
	assert_int_equal(kp_entry_read(b, entry, two, &why), KPACK_SUCCESS);
	assert_string_equal(one, two);
}

static void assert_same_archive(struct ab *bytes, size_t entries)
{
	struct ab copy = {0};
	struct kpack_archive *a, *b;

	ab_put(&copy, bytes->bytes, bytes->size);
	a = ab_opened(&copy);
	b = ab_opened(bytes);

	kp_archive_compact(b);
	assert_int_equal(kp_archive_entry_count(a), entries);
	assert_int_equal(kp_archive_entry_count(b), entries);
	for (size_t i = 0; i < entries; i++)
		assert_same_entry(a, b, i);
	assert_int_equal(kp_archive_arch_count(a), kp_archive_arch_count(b));
	for (size_t i = 0; i < kp_archive_arch_count(a); i++)
		assert_string_equal(kp_archive_arch(a, i), kp_archive_arch(b, i));
	assert_true(kp_span_eq(kp_archive_group(a), kp_archive_group(b)));
	assert_true(kp_span_eq(kp_archive_toc(a)->family, kp_archive_toc(b)->family));
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
	char *hex;

	ab_put(&a, "onetwo", 6);
	ab_toc(&a, "{'group_name': 'g', 'gfx_arch_family': '', 'gfx_arches': ['x', "
		   "'y']," ENTRIES ", 'compression_scheme': 'none', 'blobs': [{'offset': "
		   "64, 'size': 3},{'offset': 67, 'size': 3}]}");
	assert_same_archive(&a, 9);
	a = ab_new(64); /* the architectures come last: nothing follows them */
	ab_toc(&a, "{'gfx_arches': ['', 'x']}");
	assert_same_archive(&a, 0);
	a = ab_new_zstd();
	ab_frame(&a, "one", 3);
	ab_frame(&a, "two", 3);
	hex = ab_frame_index(&a);
	ab_toc(&a, "{'frame_index': x'%s', " ZSTD ", " ENTRIES "}", hex, a.size - 64);
	free(hex);
	assert_same_archive(&a, 9);
}

/* Faults quote the TOC, including names of entries that were refused. */
TEST(faults_outlive_compacting)
{
	struct ab a = ab_new(64);
	struct kpack_archive *archive;
	size_t kept, counted;

	ab_toc(&a, "{'toc': {'a#0': {'x': @0, 'y': @1}}, 'blobs': [{'offset': 64, "
		   "'size': 0}], 'compression_scheme': 'none'}");
	archive = ab_opened(&a);
	kp_archive_compact(archive);
	(void)kp_archive_faults(archive, &kept, &counted);
	assert_true(kept == 1 && counted == 1);
	assert_non_null(kp_archive_refusal(archive, kp_span_str("a"), kp_span_str("y")));
	assert_non_null(
		kp_archive_refusal(archive, kp_span_str("a#0"), kp_span_str("y")));
	assert_null(kp_archive_refusal(archive, kp_span_str("a#1"), kp_span_str("y")));
	assert_null(kp_archive_refusal(archive, kp_span_str("a"), kp_span_str("x")));
	kp_archive_close(archive);
}

/* Every change of the file's table is found, also one of its length alone. */
TEST(another_table_is_not_the_same)
{
	struct kpack_archive *archive = NULL;
	struct ab a = ab_new(64);
	char path[32];
	int fd;

	ab_toc(&a, "{'toc': {}, 'group_name': 'group'}");
	fd = ab_memfd(a.bytes, a.size, path);
	assert_int_equal(kp_archive_open(path, &archive, &why), KPACK_SUCCESS);
	assert_true(kp_archive_same_toc(archive));
	for (size_t at = 0; at < a.size; at++) {
		uint8_t byte = a.bytes[at] ^ 1;

		assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
		assert_int_equal(kp_archive_same_toc(archive), at >= 16 && at < 64);
		assert_int_equal(pwrite(fd, a.bytes + at, 1, (off_t)at), 1);
	}
	assert_int_equal(ftruncate(fd, (off_t)a.size + 1), 0);
	assert_false(kp_archive_same_toc(archive));
	assert_int_equal(ftruncate(fd, 3), 0);
	assert_false(kp_archive_same_toc(archive));
	kp_archive_close(archive);
	close(fd);
	ab_free(&a);
}
