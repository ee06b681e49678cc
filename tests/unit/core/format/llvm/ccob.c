/* SPDX-License-Identifier: MIT */
/*
 * Compressed bundles made by Python: zlib and zstandard compressed the streams, hashlib
 * computed the hash.
 */
#include "core/format/llvm/ccob.h"
#include "tests/unit/unit.h"
#include <zstd.h>
#include "tests/unit/bundle_builder.h"
#include "core/format/nest.h"

#ifndef KP_WITH_ZLIB
#define KP_WITH_ZLIB 1
#endif

#define HOST "host-x86_64-unknown-linux-gnu-"
#define GFX(target) "hipv4-amdgcn-amd-amdhsa--" target

static struct kpackx_error why;

/*
 * Both streams decode to an empty host entry, "first object" and "second", with alignment
 * 1.
 */
#define PLAIN_SIZE 231
/* hashlib.md5(plain).digest()[:8] */
static const uint8_t hash[8] = {0x83, 0x89, 0x2e, 0x4c, 0x3f, 0x6a, 0xea, 0x31};

#if KP_WITH_ZLIB
static const uint8_t zlib_data[] = {
	0x78, 0xda, 0x8b, 0x8f, 0x77, 0xf6, 0x71, 0xf4, 0x73, 0x8f, 0xf7, 0x77, 0x73,
	0xf3, 0xf1, 0x77, 0x74, 0x89, 0x77, 0x0a, 0xf5, 0x73, 0xf1, 0x71, 0x8d, 0x8f,
	0x67, 0x66, 0x80, 0x80, 0xab, 0x0c, 0xa8, 0x40, 0x0e, 0x4a, 0x67, 0xe4, 0x17,
	0x97, 0xe8, 0x56, 0x58, 0x98, 0xc5, 0x9b, 0x99, 0xe8, 0x96, 0xe6, 0x65, 0xe7,
	0xe5, 0x97, 0xe7, 0xe9, 0xe6, 0x64, 0xe6, 0x95, 0x56, 0xe8, 0xa6, 0xe7, 0x95,
	0xea, 0xc2, 0x74, 0xf1, 0x40, 0x69, 0x7d, 0x98, 0xae, 0xcc, 0x82, 0x32, 0x13,
	0xdd, 0xc4, 0xdc, 0x94, 0xf4, 0xe4, 0x3c, 0x10, 0x05, 0xc2, 0x19, 0xc5, 0x89,
	0xba, 0xba, 0xe9, 0x69, 0x15, 0x96, 0x06, 0x89, 0x56, 0x15, 0x79, 0x89, 0xc9,
	0xd9, 0xda, 0x56, 0xc5, 0x45, 0x89, 0xb9, 0xa9, 0xc9, 0xc9, 0xba, 0x0f, 0xa1,
	0xda, 0xd8, 0xa0, 0xb4, 0x02, 0x11, 0xc6, 0x18, 0x1a, 0x1a, 0x18, 0xa4, 0x65,
	0x16, 0x15, 0x97, 0x28, 0xe4, 0x27, 0x65, 0xa5, 0x26, 0x97, 0x14, 0xa7, 0x26,
	0xe7, 0xe7, 0xa5, 0x00, 0x00, 0xda, 0xf4, 0x37, 0xf6,
};
#endif
static const uint8_t zstd_data[] = {
	0x28, 0xb5, 0x2f, 0xfd, 0x24, 0xe7, 0xad, 0x04, 0x00, 0xc2, 0xc7, 0x1d, 0x20,
	0x90, 0xcf, 0x01, 0x8f, 0xff, 0xff, 0xff, 0xff, 0x9f, 0x81, 0x1d, 0xc2, 0x56,
	0xcc, 0x30, 0x43, 0x26, 0x65, 0xc9, 0x4d, 0xcd, 0x60, 0xf3, 0xcb, 0xd6, 0xbe,
	0x1e, 0xcd, 0xe3, 0x09, 0x85, 0x02, 0xdb, 0xeb, 0xcc, 0xed, 0x33, 0x73, 0xa1,
	0xa6, 0x8b, 0x73, 0x9b, 0x60, 0x87, 0x20, 0x49, 0x52, 0x08, 0xad, 0xe7, 0xcc,
	0x91, 0xd8, 0xdc, 0x8e, 0x21, 0x66, 0xfc, 0xab, 0x83, 0x91, 0x66, 0xed, 0x3c,
	0x77, 0xbc, 0xbf, 0xcf, 0xde, 0x46, 0x62, 0x57, 0xd2, 0x12, 0x3c, 0x06, 0x47,
	0xdf, 0xf3, 0x15, 0x7d, 0x70, 0xf4, 0x57, 0xf5, 0x8b, 0x8f, 0xba, 0xb2, 0xdc,
	0x85, 0x59, 0xfd, 0xdc, 0xfa, 0x23, 0x00, 0x16, 0x08, 0xee, 0x9d, 0x2c, 0xe9,
	0xca, 0xa0, 0x2b, 0x3d, 0x98, 0x45, 0x51, 0xd8, 0xad, 0xae, 0xc7, 0x8a, 0xee,
	0x0d, 0x0b, 0x00, 0x94, 0x40, 0x64, 0xc5, 0x5d, 0xb4, 0x72, 0xdf, 0x2d, 0x50,
	0x59, 0x0e, 0x1e, 0x03, 0x4e, 0x98, 0xd5, 0xf3, 0xd7, 0xbd, 0x40, 0x62, 0x31,
	0x30, 0x06, 0xc3, 0x1f, 0x6e, 0xd6,
};

static const struct stream {
	unsigned method;
	const uint8_t *data;
	size_t size;
} streams[] = {
#if KP_WITH_ZLIB
	{0, zlib_data, sizeof(zlib_data)},
#endif
	{1, zstd_data, sizeof(zstd_data)},
};

/* A CCOB of STREAM whose header states SIZE as its total size; 0: the correct size. */
static struct bytes ccob(unsigned version, const struct stream *stream, uint64_t size)
{
	struct bytes b = {0};

	put(&b, "CCOB", 4);
	put_number(&b, version, 2);
	put_number(&b, stream->method, 2);
	if (!size)
		size = ccob_header_size(version) + stream->size;
	if (version > 1)
		put_number(&b, size, version == 2 ? 4 : 8);
	put_number(&b, PLAIN_SIZE, version == 3 ? 8 : 4);
	put(&b, hash, sizeof(hash));
	assert_int_equal(b.size, ccob_header_size(version));
	put(&b, stream->data, stream->size);
	return b;
}

static void assert_text(const struct kp_payload *payload, const struct kp_image *image,
			const char *text)
{
	char buf[32] = "";

	assert_int_equal(image->size, strlen(text));
	assert_int_equal(
		kp_source_read(&payload->source, image->offset, buf, image->size, &why),
		KPACK_SUCCESS);
	assert_string_equal(buf, text);
}

static void assert_decodes(const struct kp_source *src, const struct kp_containers *list,
			   size_t number, bool expected)
{
	const struct kp_image *images = list->images + list->items[number].first_image;
	struct kp_payload payload;
	struct kp_ccob_form form;
	bool fits = !expected;

	assert_int_equal(list->items[number].n_images, 3);
	assert_int_equal(kp_containers_load(src, list, number, &payload, &why),
			 KPACK_SUCCESS);
	assert_int_equal(payload.source.size, PLAIN_SIZE);
	assert_string_equal(images[0].id, HOST);
	assert_text(&payload, &images[0], "");
	assert_string_equal(images[1].arch, "gfx90a:sramecc-:xnack+");
	assert_text(&payload, &images[1], "first object");
	assert_text(&payload, &images[2], "second");
	assert_int_equal(kp_ccob_check(src, list, number, &payload, &form, &fits, &why),
			 KPACK_SUCCESS);
	assert_int_equal(fits, expected);
	kp_payload_fini(&payload);
}

TEST(every_version_and_method_is_read)
{
	for (unsigned version = 1; version <= 3; version++) {
		for (size_t i = 0; i < COUNT(streams); i++) {
			struct bytes b = ccob(version, &streams[i], 0);
			struct kp_source src = kp_source_memory(b.data, b.size);
			struct kp_containers list;

			assert_int_equal(kp_containers_scan(&src, &list, &why),
					 KPACK_SUCCESS);
			assert_int_equal(list.count, 1);
			assert_int_equal(list.items[0].size, b.size);
			assert_decodes(&src, &list, 0, true);
			kp_containers_fini(&list);
			bytes_free(&b);
		}
	}
}

/* A frame of the SIZE decoded bytes at AT; SIZED: it states their number. */
static void put_frame(struct bytes *b, const uint8_t *decoded, size_t at, size_t size,
		      bool sized)
{
	uint8_t frame[2 * PLAIN_SIZE];
	ZSTD_CCtx *z = ZSTD_createCCtx();
	size_t n;

	ZSTD_CCtx_setParameter(z, ZSTD_c_contentSizeFlag, sized);
	ZSTD_CCtx_setParameter(z, ZSTD_c_windowLog, 27);
	n = ZSTD_compress2(z, frame, sizeof(frame), decoded + at, size);
	assert_false(ZSTD_isError(n));
	put(b, frame, n);
	ZSTD_freeCCtx(z);
}

/* Data of form NUMBER that ZSTD_decompress takes; false: there is no such form. */
static bool zstd_form(unsigned number, const uint8_t *plain, struct bytes *b)
{
	static const uint8_t skip[] = "\x5f\x2a\x4d\x18\7\0\0\0CCOB\0\0\0";
	size_t half = PLAIN_SIZE / 2, rest = PLAIN_SIZE - half;

	if (number == 0 || number == 6)
		put(b, skip, sizeof(skip) - 1);
	put_frame(b, plain, 0, number < 2 ? PLAIN_SIZE : half, number != 4);
	if (number == 1 || number == 6)
		put(b, skip, sizeof(skip) - 1);
	if (number >= 2)
		put_frame(b, plain, half, rest, number < 4 || number == 6);
	if (number == 3) /* an empty frame, and a skippable one without a byte */
		put_frame(b, plain, 0, 0, true), put(b, skip, 4), put_zeros(b, 4);
	return number < 7;
}

/* Also in version 1, which ends where its frames do, before padding and another bundle. */
TEST(all_that_zstd_decompresses_is_read)
{
	uint8_t plain[PLAIN_SIZE];
	struct bytes data = {0};

	ZSTD_decompress(plain, sizeof(plain), zstd_data, sizeof(zstd_data));
	for (unsigned i = 0; zstd_form(i, plain, &data); i++, bytes_free(&data)) {
		const struct stream stream = {1, data.data, data.size};

		for (unsigned version = 1; version <= 3; version++) {
			struct bytes b = ccob(version, &stream, 0), next = b;
			struct kp_source src;
			struct kp_containers list;
			size_t size = b.size;

			next = ccob(3, &streams[COUNT(streams) - 1], 0);
			put_zeros(&b, 13);
			put(&b, next.data, next.size);
			src = kp_source_memory(b.data, b.size);
			assert_int_equal(kp_containers_scan(&src, &list, &why),
					 KPACK_SUCCESS);
			assert_int_equal(list.count, 2);
			assert_int_equal(list.items[0].size, size);
			assert_decodes(&src, &list, 0, true);
			assert_decodes(&src, &list, 1, true);
			kp_containers_fini(&list);
			bytes_free(&next);
			bytes_free(&b);
		}
	}
	bytes_free(&data);
}

#if KP_WITH_ZLIB
/* zlib's uncompress, which LLVM calls, ignores them. */
TEST(bytes_behind_zlibs_stream_are_ignored)
{
	struct bytes data = {0}, b;
	struct kp_containers list;
	struct kp_source src;

	put(&data, zlib_data, sizeof(zlib_data));
	put(&data, "more", 4);
	b = ccob(2, &(struct stream){0, data.data, data.size}, 0);
	src = kp_source_memory(b.data, b.size);
	assert_int_equal(kp_containers_scan(&src, &list, &why), KPACK_SUCCESS);
	assert_int_equal(list.items[0].size, b.size);
	assert_decodes(&src, &list, 0, true);
	kp_containers_fini(&list);
	bytes_free(&b);
	bytes_free(&data);
}
#endif

/* A wrong hash is noticed, but the bundle is still read. */
TEST(a_wrong_hash_is_noticed)
{
	for (unsigned version = 1; version <= 3; version++) {
		for (size_t byte = 0; byte < 8; byte++) {
			struct bytes b = ccob(version, &streams[0], 0);
			struct kp_source src = kp_source_memory(b.data, b.size);
			struct kp_containers list;

			b.data[ccob_header_size(version) - 1 - byte] ^= 0x10;
			assert_int_equal(kp_containers_scan(&src, &list, &why),
					 KPACK_SUCCESS);
			assert_decodes(&src, &list, 0, false);
			kp_containers_fini(&list);
			bytes_free(&b);
		}
	}
}

/*
 * Bytes after a CCOB belong to the next container; only v1 must be decoded to find its
 * end.
 */
TEST(each_ends_where_it_does)
{
	for (unsigned version = 1; version <= 3; version++) {
		for (size_t i = 0; i < COUNT(streams); i++) {
			struct bytes b = ccob(version, &streams[i], 0);
			struct bytes next = ccob(4 - version, &streams[i], 0);
			struct kp_containers list;
			size_t end = b.size, padding;

			put_padding(&b, 64);
			padding = b.size;
			put(&b, next.data, next.size);
			put_zeros(&b, 100);
			struct kp_source src = kp_source_memory(b.data, b.size);
			assert_int_equal(kp_containers_scan(&src, &list, &why),
					 KPACK_SUCCESS);
			assert_int_equal(list.count, 2);
			assert_int_equal(list.items[0].size, end);
			assert_int_equal(list.items[1].offset, padding);
			assert_int_equal(list.items[1].size, next.size);
			assert_decodes(&src, &list, 0, true);
			assert_decodes(&src, &list, 1, true);
			kp_containers_fini(&list);
			bytes_free(&next);
			bytes_free(&b);
		}
	}
}

/* B is refused when it is listed or when it is decoded. */
static void assert_refused(const struct bytes *b)
{
	struct kp_source src = kp_source_memory(b->data, b->size);
	struct kp_containers list;
	struct kp_payload payload;

	if (kp_containers_scan(&src, &list, &why) != KPACK_SUCCESS)
		return;
	assert_int_equal(list.count, 1);
	assert_true(kp_containers_load(&src, &list, 0, &payload, &why) != KPACK_SUCCESS);
	kp_containers_fini(&list);
}

TEST(another_total_size_is_refused)
{
	for (unsigned version = 2; version <= 3; version++) {
		for (size_t i = 0; i < COUNT(streams); i++) {
			uint64_t right = ccob_header_size(version) + streams[i].size;

			for (uint64_t size = 1; size < right + 20; size++) {
				struct bytes b = ccob(version, &streams[i], size);

				if (size != right)
					assert_refused(&b);
				bytes_free(&b);
			}
		}
	}
	/* zstd's frames are decodable, but 8 zeros follow them */
	const struct stream *zstd = &streams[COUNT(streams) - 1];
	struct bytes b = ccob(3, zstd, 32 + zstd->size + 8);
	put_zeros(&b, 8);
	assert_refused(&b);
	bytes_free(&b);
}

/* One byte more or less than the header says, in the second of two frames. */
TEST(frames_of_another_size_are_refused)
{
	uint8_t plain[PLAIN_SIZE + 1] = {0};

	ZSTD_decompress(plain, PLAIN_SIZE, zstd_data, sizeof(zstd_data));
	for (int more = -1; more <= 1; more += 2) {
		struct bytes data = {0}, b;

		put_frame(&data, plain, 0, 100, true);
		put_frame(&data, plain, 100, (size_t)(PLAIN_SIZE - 100 + more), true);
		b = ccob(3, &(struct stream){1, data.data, data.size}, 0);
		assert_refused(&b);
		bytes_free(&b);
		bytes_free(&data);
	}
}

/* A CCOB in a bundle's entry, as in a section of an object. */
TEST(its_place_does_not_matter)
{
	struct bytes inner = ccob(3, &streams[0], 0), b = {0};
	struct kp_containers list;

	put(&b, "__CLANG_OFFLOAD_BUNDLE__", 24);
	put_number(&b, 1, 8);
	put_number(&b, 96, 8);
	put_number(&b, inner.size, 8);
	put_number(&b, strlen(GFX("gfx90a")), 8);
	put(&b, GFX("gfx90a"), strlen(GFX("gfx90a")));
	put_padding(&b, 96);
	put(&b, inner.data, inner.size);
	struct kp_source src = kp_source_memory(b.data, b.size);
	assert_int_equal(kp_nest_scan(&src, NULL, NULL, &list, &why), KPACK_SUCCESS);
	assert_int_equal(list.count, 2);
	assert_int_equal(list.items[1].inside, 0);
	assert_decodes(&src, &list, 1, true);
	kp_containers_fini(&list);
	bytes_free(&b);
	bytes_free(&inner);
}
