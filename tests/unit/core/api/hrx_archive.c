/* SPDX-License-Identifier: MIT */
/*
 * HRX's tests of archives, KpackArchive of kpack_test.cc, made through the public calls.
 * Above each test is HRX's name for it.  Where HRX, AMD and we differ, AMD's result
 * counts and the comment says so.
 *
 * ZstdWithoutSupportUnimplemented has no test here: every build supports zstd.
 */
#include "tests/unit/amd_fixtures.h"
#include "tests/unit/unit.h"

/*
 * One object k#0 for gfx900 in the blob 0123456789; BLOBS and ENTRY go into the TOC as
 * given.
 */
static struct ab plain(const char *blobs, const char *entry)
{
	struct ab a = ab_new(64);

	ab_put(&a, "0123456789", 10);
	ab_toc(&a,
	       "{'gfx_arches': ['gfx900'], 'compression_scheme': 'none', "
	       "'blobs': [%s], 'toc': {'k#0': {'gfx900': {%s}}}}",
	       blobs, entry);
	return a;
}

/*
 * As plain, with 1000 bytes in one frame; zstd_size in the TOC is MORE bytes too large.
 */
static struct ab packed(const char *entry, long more)
{
	struct ab a = ab_new_zstd();
	uint8_t *data = ab_data(1000, 5);

	ab_frame(&a, data, 1000);
	free(data);
	ab_toc(&a,
	       "{'gfx_arches': ['gfx900'], 'compression_scheme': 'zstd-per-kernel', "
	       "'zstd_offset': 64, 'zstd_size': %ld, 'toc': {'k#0': {'gfx900': {%s}}}}",
	       (long)a.size - 64 + more, entry);
	return a;
}

#define PLACE "{'offset': 64, 'size': 10}"
#define ENTRY "'ordinal': 0, 'original_size': 10"
#define PACKED "'ordinal': 0, 'original_size': 1000"

/* Check that the archive opens and that getting k#0 for gfx900 fails with WANT. */
static void check_get(struct ab a, kpack_error_t want)
{
	kpack_archive_t archive = fx_accepted(&a);

	fx_check_no_kernel(archive, "k#0", "gfx900", want);
	kpack_close(archive);
}

static void check_bytes(struct ab a, const void *want, size_t size)
{
	kpack_archive_t archive = fx_accepted(&a);
	void *data = NULL;
	size_t n = 7;

	assert_int_equal(kpack_get_kernel(archive, "k#0", "gfx900", &data, &n),
			 KPACK_SUCCESS);
	assert_int_equal(n, size);
	assert_non_null(data);
	assert_memory_equal(data, want, size);
	kpack_free_kernel(data);
	kpack_close(archive);
}

/* KpackArchive.NoopGetKernel */
TEST(a_plain_kernel_is_got)
{
	check_bytes(plain(PLACE, ENTRY), "0123456789", 10);
}

/* .NoopKernelNotFound */
TEST(a_kernel_that_is_not_there_is_not_found)
{
	struct ab a = plain(PLACE, ENTRY);
	kpack_archive_t archive = fx_accepted(&a);

	fx_check_no_kernel(archive, "k#1", "gfx900", KPACK_ERROR_KERNEL_NOT_FOUND);
	fx_check_no_kernel(archive, "k#0", "gfx906", KPACK_ERROR_KERNEL_NOT_FOUND);
	kpack_close(archive);
}

/* .BadMagic */
TEST(a_bad_magic_is_refused)
{
	struct ab a = plain(PLACE, ENTRY);

	memcpy(a.bytes, "XPAK", 4);
	fx_refused(&a, KPACK_ERROR_INVALID_FORMAT);
}

/* .UnsupportedVersion */
TEST(another_version_is_refused)
{
	struct ab a = plain(PLACE, ENTRY);

	a.bytes[4] = 2;
	fx_refused(&a, KPACK_ERROR_UNSUPPORTED_VERSION);
}

/* .TruncatedHeader */
TEST(a_cut_header_is_refused)
{
	struct ab a = plain(PLACE, ENTRY);

	a.size = 8;
	fx_refused(&a, KPACK_ERROR_INVALID_FORMAT);
}

/* .TocOffsetOutOfRange */
TEST(a_table_behind_the_file_is_refused)
{
	struct ab a = plain(PLACE, ENTRY);

	ab_set_le(a.bytes + 8, a.size + 100, 8);
	fx_refused(&a, KPACK_ERROR_INVALID_FORMAT);
}

/* .TocOffsetInsideHeader: AMD's reader tries to parse the TOC there */
TEST(a_table_inside_the_header_is_refused)
{
	for (uint64_t offset = 0; offset < 16; offset++) {
		struct ab a = plain(PLACE, ENTRY);

		ab_set_le(a.bytes + 8, offset, 8);
		fx_refused(&a, KPACK_ERROR_INVALID_FORMAT);
	}
}

/* .TocNotAMap */
TEST(a_table_that_is_no_map_is_refused)
{
	static const char *const tables[] = {"[1, 2]", "7",   "nil", "'toc'",
					     "true",   "1.5", "[]",  "x'81'"};

	for (size_t i = 0; i < COUNT(tables); i++) {
		struct ab a = ab_new(64);

		ab_toc(&a, "%s", tables[i]);
		fx_refused(&a, KPACK_ERROR_MSGPACK_PARSE_FAILED);
	}
}

/* .ZeroSizeBlobRejected: AMD's reader accepts empty kernels, and so do we */
TEST(an_empty_kernel_is_got)
{
	check_bytes(
		plain("{'offset': 64, 'size': 0}", "'ordinal': 0, 'original_size': 0"),
		"", 0);
}

/* .UnknownCompressionSchemeRejected: AMD's reader takes it for "none" */
TEST(an_unknown_scheme_is_not_implemented)
{
	struct ab a = ab_new(64);

	ab_toc(&a, "{'compression_scheme': 'lz4', 'blobs': [], 'toc': {}}");
	fx_refused(&a, KPACK_ERROR_NOT_IMPLEMENTED);
}

/* .ExactArchMatchDoesNotFuzzMatch */
TEST(getting_matches_archs_exactly)
{
	static const char *const archs[] = {"gfx90",         "gfx9000", "gfx900:xnack+",
					    TRIPLE "gfx900", "GFX900",  ""};
	struct ab a = plain(PLACE, ENTRY);
	kpack_archive_t archive = fx_accepted(&a);

	for (size_t i = 0; i < COUNT(archs); i++)
		fx_check_no_kernel(archive, "k#0", archs[i],
				   KPACK_ERROR_KERNEL_NOT_FOUND);
	kpack_close(archive);
}

/* .MissingTocKey */
TEST(without_toc_nothing_is_found)
{
	struct ab a = ab_new(64);
	kpack_archive_t archive;
	size_t n = 7;

	ab_toc(&a, "{'gfx_arches': ['gfx900']}");
	archive = fx_accepted(&a);
	assert_int_equal(kpack_get_binary_count(archive, &n), KPACK_SUCCESS);
	assert_int_equal(n, 0);
	fx_check_no_kernel(archive, "k#0", "gfx900", KPACK_ERROR_KERNEL_NOT_FOUND);
	kpack_close(archive);
}

/* .ArchNodeMissingOrdinal: AMD's reader uses an uninitialised ordinal */
TEST(an_entry_without_ordinal_is_not_found)
{
	check_get(plain(PLACE, "'original_size': 10"), KPACK_ERROR_KERNEL_NOT_FOUND);
	check_get(packed("'original_size': 1000", 0), KPACK_ERROR_KERNEL_NOT_FOUND);
}

/* .BlobsArrayShorterThanOrdinal */
TEST(an_ordinal_behind_the_blobs_is_not_found)
{
	check_get(plain(PLACE, "'ordinal': 1, 'original_size': 10"),
		  KPACK_ERROR_KERNEL_NOT_FOUND);
	check_get(plain(PLACE, "'ordinal': 4294967295, 'original_size': 10"),
		  KPACK_ERROR_KERNEL_NOT_FOUND);
	check_get(plain("", ENTRY), KPACK_ERROR_KERNEL_NOT_FOUND);
}

/* .BlobOffsetPastEof: AMD's reader fails only when it reads the kernel */
TEST(a_blob_behind_the_file_is_refused)
{
	static const char *const places[] = {
		"{'offset': 1000000, 'size': 10}",
		"{'offset': 64, 'size': 1000000}",
		"{'offset': 18446744073709551615, 'size': 10}",
		"{'offset': 64, 'size': 18446744073709551615}",
		"{'offset': 9223372036854775807, 'size': 9223372036854775807}",
	};

	for (size_t i = 0; i < COUNT(places); i++) {
		struct ab a = plain(places[i], ENTRY);

		fx_refused(&a, KPACK_ERROR_INVALID_FORMAT);
	}
}

/* .ZstdGetKernelRoundTrips */
TEST(a_compressed_kernel_is_got)
{
	uint8_t *data = ab_data(1000, 5);

	check_bytes(packed(PACKED, 0), data, 1000);
	free(data);
}

/* .ZstdFrameSizeTruncated */
TEST(a_frame_that_leaves_the_blob_is_refused)
{
	struct ab longer = packed(PACKED, 0), shorter = packed(PACKED, -1);

	ab_set_le(longer.bytes + 68, 1000000, 4);
	fx_refused(&longer, KPACK_ERROR_INVALID_FORMAT);
	fx_refused(&shorter, KPACK_ERROR_INVALID_FORMAT);
}

/* .ZstdFrameCorruptedDataLoss */
TEST(a_damaged_frame_is_reported)
{
	struct ab head = packed(PACKED, 0), block = packed(PACKED, 0);

	memset(head.bytes + 72, 0, 8); /* the frame's magic and header */
	check_get(head, KPACK_ERROR_DECOMPRESSION_FAILED);
	block.bytes[72 + 7] |= 6; /* a block of the reserved type */
	check_get(block, KPACK_ERROR_DECOMPRESSION_FAILED);
}

/* .ZstdOriginalSizeMismatchDataLoss */
TEST(a_wrong_size_is_reported)
{
	check_get(packed("'ordinal': 0, 'original_size': 999", 0),
		  KPACK_ERROR_DECOMPRESSION_FAILED);
	check_get(packed("'ordinal': 0, 'original_size': 1001", 0),
		  KPACK_ERROR_DECOMPRESSION_FAILED);
	check_get(packed("'ordinal': 0, 'original_size': 0", 0),
		  KPACK_ERROR_DECOMPRESSION_FAILED);
}

/* .ZstdOrdinalOutOfRange */
TEST(an_ordinal_behind_the_frames_is_not_found)
{
	check_get(packed("'ordinal': 1, 'original_size': 1000", 0),
		  KPACK_ERROR_KERNEL_NOT_FOUND);
}

/* .ZstdKernelCountCapEnforced */
TEST(too_many_frames_are_refused)
{
	static const uint32_t counts[] = {2, 1048577, UINT32_MAX};

	for (size_t i = 0; i < COUNT(counts); i++) {
		struct ab a = packed(PACKED, 0);

		ab_set_le(a.bytes + 64, counts[i], 4);
		fx_refused(&a, KPACK_ERROR_INVALID_FORMAT);
	}
}

/*
 * .ZstdOriginalSizeCapEnforced: HRX's cap is 256 MiB.  We refuse, before any allocation,
 * a size that a frame of that length cannot decode to, or more than memory can hold.
 */
TEST(a_huge_size_is_not_believed)
{
	static const char *const sizes[] = {"4294967297", "1099511627776",
					    "18446744073709551615", "9223372036854775807",
					    "-1"};

	for (size_t i = 0; i < COUNT(sizes); i++) {
		char entry[80];

		snprintf(entry, sizeof(entry), "'ordinal': 0, 'original_size': %s",
			 sizes[i]);
		check_get(packed(entry, 0), KPACK_ERROR_KERNEL_NOT_FOUND);
	}
}

SUITE(fx_make, fx_remove);
