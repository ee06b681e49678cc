/* SPDX-License-Identifier: MIT */
#include "core/format/llvm/offload_binary.h"
#include "tests/unit/exact_copy.h"
#include "tests/unit/unit.h"
#include <stdio.h>
#include <stdlib.h>
#include <zstd.h>
#include "core/format/nest.h"
#include "tests/unit/offload_builder.h"

#ifndef KP_WITH_ZLIB
#define KP_WITH_ZLIB 1
#endif
#if KP_WITH_ZLIB
#include <zlib.h>
#endif

static struct kpackx_error why;

static const struct ob_string hip_strings[] = {
	{"triple", "amdgcn-amd-amdhsa", 0},
	{"arch", "gfx90a:xnack+:sramecc-", 0},
	{"feature", "", 0},
};
static const struct ob_string cuda_strings[] = {
	{"arch", "sm_90a", 0},
	{"note", "a\0b", 3},
	{"arch", "sm_90a", 0},
};
static const struct ob_entry two[] = {
	{1, 4, 0, hip_strings, 3, "first image", 11},
	{3, 2, 1, cuda_strings, 3, "second", 6},
};

static kpack_error_t scan(const struct ob *b, struct kp_containers *out)
{
	struct kp_source src = exact_copy(b->data, b->size);
	kpack_error_t err = kp_nest_scan(&src, NULL, NULL, out, &why);

	exact_copy_free(&src);
	return err;
}

static void assert_refused(const struct ob *b, kpack_error_t code, const char *text)
{
	struct kp_containers list;

	assert_int_equal(scan(b, &list), code);
	assert_has(why.text, text);
	assert_null(list.items);
}

static void assert_pair(const struct kp_image *image, size_t i, const char *name,
			const char *value, size_t size)
{
	assert_true(i < image->pairs.count);
	assert_string_equal(image->pairs.items[i].name, name);
	assert_int_equal(image->pairs.items[i].size, size);
	assert_memory_equal(image->pairs.items[i].value, value, size + 1);
}

static void assert_bytes(const struct ob *b, const struct kp_containers *list, size_t i,
			 const char *text)
{
	const struct kp_image *image = &list->images[i];
	struct kp_source src = kp_source_memory(b->data, b->size);
	struct kp_payload payload;
	char got[64];

	assert_int_equal(kp_containers_load(&src, list, image->container, &payload, &why),
			 KPACK_SUCCESS);
	assert_int_equal(image->size, strlen(text));
	assert_int_equal(kp_source_read(&payload.source, image->offset, got,
					(size_t)image->size, &why),
			 KPACK_SUCCESS);
	assert_memory_equal(got, text, strlen(text));
	kp_payload_fini(&payload);
}

static void assert_hip(const struct ob *b, const struct kp_containers *list, size_t i)
{
	const struct kp_image *image = &list->images[i];

	assert_null(image->id);
	assert_false(image->host);
	assert_string_equal(image->kind, "hip");
	assert_string_equal(image->arch, "gfx90a:sramecc-:xnack+");
	assert_int_equal(image->pairs.count, 4);
	assert_int_equal(kp_offload_strings(image), 3);
	assert_pair(image, 0, "triple", "amdgcn-amd-amdhsa", 17);
	assert_pair(image, 1, "arch", "gfx90a:xnack+:sramecc-", 22);
	assert_pair(image, 2, "feature", "", 0);
	assert_pair(image, 3, "image kind", "object", 6);
	assert_int_equal(kp_offload_image_kind(image), KP_OFFLOAD_OBJECT);
	assert_bytes(b, list, i, "first image");
}

TEST(reads_version_1)
{
	struct ob b = {0};
	struct kp_containers list;

	ob_build(&b, 1, two, 1);
	assert_int_equal(scan(&b, &list), KPACK_SUCCESS);
	assert_int_equal(list.count, 1);
	assert_ptr_equal(list.items[0].format, &kp_format_offload_binary);
	assert_int_equal(list.items[0].size, b.size);
	assert_int_equal(list.items[0].payload_size, b.size);
	assert_hip(&b, &list, 0);
	kp_containers_fini(&list);
}

TEST(reads_several_entries)
{
	for (unsigned version = 2; version <= 3; version++) {
		struct ob b = {0};
		struct kp_containers list;

		ob_build(&b, version, two, 2);
		assert_int_equal(scan(&b, &list), KPACK_SUCCESS);
		assert_int_equal(list.count, 1);
		assert_int_equal(list.n_images, 2);
		assert_hip(&b, &list, 0);
		assert_string_equal(list.images[1].kind, "cuda");
		assert_string_equal(list.images[1].arch, "sm_90a");
		assert_int_equal(kp_offload_strings(&list.images[1]), 3);
		assert_pair(&list.images[1], 1, "note", "a\0b", 3);
		assert_pair(&list.images[1], 2, "arch", "sm_90a", 6);
		assert_pair(&list.images[1], 3, "image kind", "cubin", 5);
		assert_pair(&list.images[1], 4, "image flags", "0x1", 3);
		assert_bytes(&b, &list, 1, "second");
		kp_containers_fini(&list);
	}
}

TEST(reads_one_after_another)
{
	struct ob b = {0};
	struct kp_containers list;

	ob_build(&b, 1, two, 1);
	b.size += 24; /* 24 bytes of zeros between the binaries, and after them */
	ob_build(&b, 3, two, 2);
	ob_build(&b, 1, two + 1, 1);
	b.size += 8;
	assert_int_equal(scan(&b, &list), KPACK_SUCCESS);
	assert_int_equal(list.count, 3);
	assert_int_equal(list.n_images, 4);
	assert_int_equal(list.items[0].next, 1);
	assert_hip(&b, &list, 1);
	assert_bytes(&b, &list, 3, "second");
	kp_containers_fini(&list);
}

TEST(names_kinds)
{
	static const struct {
		uint16_t kind, image_kind;
		const char *name, *image;
	} cases[] = {
		{0, 0, "none", "none"},      {1, 2, "openmp", "bitcode"},
		{2, 4, "cuda", "fatbinary"}, {3, 5, "hip", "ptx"},
		{4, 6, "hip", "spirv"},      {8, 7, "sycl", "7"},
		{16, 65535, "16", "65535"},  {65535, 1, "65535", "object"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct ob_entry e = {.kind = cases[i].kind,
				     .image_kind = cases[i].image_kind,
				     .image = "x",
				     .image_size = 1};
		struct ob b = {0};
		struct kp_containers list;

		ob_build(&b, 1, &e, 1);
		assert_int_equal(scan(&b, &list), KPACK_SUCCESS);
		assert_string_equal(list.images[0].kind, cases[i].name);
		assert_string_equal(list.images[0].arch, "");
		assert_string_equal(kp_pairs_find(&list.images[0].pairs, "image kind"),
				    cases[i].image);
		assert_int_equal(kp_offload_image_kind(&list.images[0]),
				 cases[i].image_kind);
		kp_containers_fini(&list);
	}
}

/* A file's keys that are named like our own pairs are not taken for them. */
TEST(distinguishes_keys_from_its_own)
{
	static const struct ob_string strings[] = {{"image kind", "mine", 0},
						   {"image flags", "too", 0}};
	struct ob_entry e = {2, 1, 0, strings, 2, "x", 1};
	struct ob b = {0};
	struct kp_containers list;

	ob_build(&b, 1, &e, 1);
	e.flags = 3;
	ob_build(&b, 1, &e, 1);
	assert_int_equal(scan(&b, &list), KPACK_SUCCESS);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(kp_offload_strings(&list.images[i]), 2);
		assert_int_equal(kp_offload_image_kind(&list.images[i]),
				 KP_OFFLOAD_BITCODE);
		assert_string_equal(
			kp_offload_string(&list.images[i], "image kind")->value, "mine");
	}
	assert_null(kp_offload_string(&list.images[0], "arch"));
	kp_containers_fini(&list);
}

TEST(finds_nested_ones)
{
	struct ob inner = {0}, b = {0};
	struct ob_entry e = {0, 8, 0, hip_strings, 1, inner.data, 0};
	struct kp_containers list;

	ob_build(&inner, 2, two, 2);
	e.image_size = inner.size;
	ob_build(&b, 1, &e, 1);
	assert_int_equal(scan(&b, &list), KPACK_SUCCESS);
	assert_int_equal(list.count, 2);
	assert_int_equal(list.n_images, 3);
	assert_int_equal(list.images[0].inside, 1);
	assert_int_equal(list.items[1].inside, 0);
	assert_hip(&b, &list, 1);
	assert_bytes(&b, &list, 2, "second");
	kp_containers_fini(&list);
}

/* ---- compressed ---- */

/* Copy B, a version 3, to OUT with CODED as its compressed body. */
static void compress_with(const struct ob *b, const void *coded, size_t size,
			  struct ob *out)
{
	memset(out, 0, sizeof(*out));
	memcpy(out->data, b->data, 40);
	ob_put(out, 8, 40 + size, 8);
	ob_put(out, 32, b->size, 8);
	memcpy(out->data + 40, coded, size);
	out->size = (40 + size + 7) / 8 * 8;
}

static void compress_zstd(const struct ob *b, struct ob *out)
{
	uint8_t coded[OB_MAX];
	size_t n = ZSTD_compress(coded, sizeof(coded), b->data + 40, b->size - 40, 5);

	assert_false(ZSTD_isError(n));
	compress_with(b, coded, n, out);
}

static void reads_compressed(const struct ob *compressed)
{
	struct ob b = *compressed;
	struct kp_containers list;

	ob_build(&b, 1, two, 1);
	assert_int_equal(scan(&b, &list), KPACK_SUCCESS);
	assert_int_equal(list.count, 2);
	assert_int_equal(list.n_images, 3);
	assert_hip(&b, &list, 0);
	assert_bytes(&b, &list, 1, "second");
	assert_hip(&b, &list, 2);
	kp_containers_fini(&list);
}

TEST(inflates_zstd)
{
	struct ob b = {0}, z;

	ob_build(&b, 3, two, 2);
	compress_zstd(&b, &z);
	reads_compressed(&z);
}

TEST(inflates_zlib)
{
#if KP_WITH_ZLIB
	struct ob b = {0}, z;
	uint8_t coded[OB_MAX];
	uLong size = sizeof(coded);

	ob_build(&b, 3, two, 2);
	assert_int_equal(compress2(coded, &size, b.data + 40, b.size - 40, 9), Z_OK);
	compress_with(&b, coded, size, &z);
	reads_compressed(&z);
	z.data[60] ^= 1;
	assert_refused(&z, KPACK_ERROR_DECOMPRESSION_FAILED, "no zlib stream");
#else
#endif
}

TEST(refuses_bad_compression)
{
	struct ob b = {0}, z, bad;

	ob_build(&b, 3, two, 2);
	compress_zstd(&b, &z);
	bad = z;
	ob_put(&bad, 32, b.size + 8, 8);
	assert_refused(&bad, KPACK_ERROR_DECOMPRESSION_FAILED, "");
	bad = z;
	ob_put(&bad, 32, b.size - 8, 8);
	assert_refused(&bad, KPACK_ERROR_DECOMPRESSION_FAILED, "");
	bad = z;
	ob_put(&bad, 32, 39, 8);
	assert_refused(&bad, KPACK_ERROR_INVALID_FORMAT, "inflated size 39");
	bad = z;
	ob_put(&bad, 32, UINT64_C(1) << 40, 8);
	assert_refused(&bad, KPACK_ERROR_INVALID_FORMAT, "possible are 40 to 4294967296");
	bad = z;
	ob_put(&bad, 32, UINT64_C(1) << 32, 8);
	assert_refused(&bad, KPACK_ERROR_INVALID_FORMAT, "cannot come out of");
	/* only the inflated size has room for this many entries */
	bad = z;
	ob_put(&bad, 24, 1000, 8);
	assert_refused(&bad, KPACK_ERROR_INVALID_FORMAT, "1000 entries");
}

/* ---- hostile files ---- */

struct change {
	size_t at;
	size_t bytes;
	uint64_t value;
	kpack_error_t code;
	const char *text;
};

static void refuse_all(const struct ob *good, const struct change *changes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct ob bad = *good;

		ob_put(&bad, changes[i].at, changes[i].value, changes[i].bytes);
		assert_refused(&bad, changes[i].code, changes[i].text);
	}
}

TEST(refuses_bad_headers)
{
	static const struct change changes[] = {
		{4, 4, 0, KPACK_ERROR_NOT_IMPLEMENTED, "version 0, known are 1 to 3"},
		{4, 4, 4, KPACK_ERROR_NOT_IMPLEMENTED, "version 4"},
		{8, 8, 31, KPACK_ERROR_INVALID_FORMAT, "size 31"},
		{8, 8, 10000, KPACK_ERROR_INVALID_FORMAT, "size 10000"},
		{8, 8, UINT64_MAX, KPACK_ERROR_INVALID_FORMAT, "size"},
		{16, 8, 31, KPACK_ERROR_INVALID_FORMAT, "entries at 31"},
		{16, 8, UINT64_MAX, KPACK_ERROR_INVALID_FORMAT, "entries at"},
		{16, 8, 190, KPACK_ERROR_INVALID_FORMAT, "do not fit"},
		{24, 8, 39, KPACK_ERROR_INVALID_FORMAT, "an entry of 39 bytes"},
		{24, 8, UINT64_MAX, KPACK_ERROR_INVALID_FORMAT, "an entry of 1844"},
	};
	struct ob b = {0};

	ob_build(&b, 1, two, 1);
	refuse_all(&b, changes, COUNT(changes));
	for (size_t size = 4; size < b.size; size++) {
		struct ob cut = b;

		cut.size = size;
		assert_refused(&cut, KPACK_ERROR_INVALID_FORMAT, "");
	}
}

TEST(refuses_bad_entries)
{
	static const struct change changes[] = {
		{24, 8, UINT64_MAX / 40 + 2, KPACK_ERROR_INVALID_FORMAT, "entries at 32"},
		{40, 8, UINT64_MAX, KPACK_ERROR_INVALID_FORMAT, "entry 0: 3 strings at"},
		{48, 8, UINT64_MAX / 24 + 2, KPACK_ERROR_INVALID_FORMAT,
		 "strings at 112"},
		{48, 8, 15, KPACK_ERROR_INVALID_FORMAT, ""},
		{56, 8, UINT64_MAX, KPACK_ERROR_INVALID_FORMAT, "an image of 11 bytes"},
		{64, 8, UINT64_MAX, KPACK_ERROR_INVALID_FORMAT, "passes the end"},
		{56, 8, 0, KPACK_ERROR_INVALID_FORMAT, "header or the entries in it"},
		{56, 8, 31, KPACK_ERROR_INVALID_FORMAT, "header or the entries in it"},
		{56, 8, 111, KPACK_ERROR_INVALID_FORMAT, "header or the entries in it"},
		{112, 8, UINT64_MAX, KPACK_ERROR_INVALID_FORMAT, "does not end"},
		{120, 8, UINT64_MAX, KPACK_ERROR_INVALID_FORMAT, "a value of 17 bytes"},
		{128, 8, UINT64_MAX, KPACK_ERROR_INVALID_FORMAT, "a value of"},
		{128, 8, 1 << 20, KPACK_ERROR_INVALID_FORMAT, "a value of 1048576"},
	};
	struct ob b = {0};

	ob_build(&b, 2, two, 2);
	refuse_all(&b, changes, COUNT(changes));
}

TEST(refuses_endless_strings)
{
	static const struct ob_string s = {"key", "value", 0};
	struct ob_entry e = {1, 4, 0, &s, 1, "xxxxxxxx", 8};
	struct ob b = {0};

	ob_build(&b, 1, &e, 1);
	ob_put(&b, 72, b.size - 8, 8); /* the key points to the image, which has no NUL */
	assert_refused(&b, KPACK_ERROR_INVALID_FORMAT, "does not end within");
}

/* Many entries share the same strings, which fill the file. */
TEST(bounds_strings_in_all)
{
	enum { N = 40 };
	struct ob_entry entries[N] = {0};
	struct ob_string strings[20];
	struct ob b = {0};

	for (size_t i = 0; i < 20; i++)
		strings[i] = (struct ob_string){"k", "v", 0};
	entries[0] = (struct ob_entry){.strings = strings, .n_strings = 20};
	for (size_t i = 0; i < N; i++)
		entries[i].image = "";
	ob_build(&b, 2, entries, N);
	for (size_t i = 1; i < N; i++) {
		memcpy(b.data + 32 + 40 * i + 8, b.data + 32 + 8, 16);
	}
	assert_refused(&b, KPACK_ERROR_INVALID_FORMAT, "more strings in all");
	/* few entries whose values each span the whole file */
	for (size_t i = 1; i < N; i++)
		ob_put(&b, 32 + 40 * i + 16, 0, 8);
	for (size_t i = 0; i < 20; i++) {
		ob_put(&b, 32 + 40 * N + 24 * i + 8, 0, 8);
		ob_put(&b, 32 + 40 * N + 24 * i + 16, b.size, 8);
	}
	assert_refused(&b, KPACK_ERROR_INVALID_FORMAT,
		       "its strings have more bytes in all");
}

TEST(refuses_other_bytes_behind)
{
	struct ob b = {0};

	ob_build(&b, 1, two, 1);
	b.size += 8;
	b.data[b.size++] = 'x';
	assert_refused(&b, KPACK_ERROR_INVALID_FORMAT, "no container begins there");
}

/* ---- writing ---- */

struct written {
	uint8_t data[OB_MAX];
	size_t size;
};

static kpack_error_t take(void *arg, const void *data, size_t size,
			  struct kpackx_error *e)
{
	struct written *w = arg;

	assert_true(size <= sizeof(w->data) - w->size);
	memcpy(w->data + w->size, data, size);
	w->size += size;
	return KPACK_SUCCESS;
}

/* Rewrite the images that LIST found in B. */
static kpack_error_t write_again(const struct ob *b, const struct kp_containers *list,
				 const struct kp_offload_form *form, struct ob *out)
{
	struct kp_offload_image images[8];
	struct kp_pairs strings[8];
	struct kp_payload payloads[8];
	struct kp_source src = kp_source_memory(b->data, b->size);
	struct written w = {.size = 0};
	struct kp_sink sink = {.write = take, .arg = &w};
	kpack_error_t err;

	for (size_t i = 0; i < list->n_images; i++) {
		const struct kp_image *image = &list->images[i];

		assert_int_equal(kp_containers_load(&src, list, image->container,
						    &payloads[i], &why),
				 KPACK_SUCCESS);
		strings[i] = image->pairs;
		strings[i].count = kp_offload_strings(image);
		images[i] = (struct kp_offload_image){
			.image_kind = (uint16_t)kp_offload_image_kind(image),
			.offload_kind = (uint16_t)kp_offload_kind_number(image->kind),
			.flags = (uint32_t)i, /* as in two[] */
			.strings = &strings[i],
		};
		kp_source_sub(&payloads[i].source, image->offset, image->size,
			      &images[i].bytes);
	}
	err = kp_offload_write(images, list->n_images, form, &sink, &why);
	for (size_t i = 0; i < list->n_images; i++)
		kp_payload_fini(&payloads[i]);
	assert_true(err || sink.size == w.size);
	memcpy(out->data, w.data, w.size);
	out->size = w.size;
	return err;
}

TEST(writes_every_form)
{
	static const struct kp_offload_form forms[] = {
		{.version = 2},
		{.version = 3},
		{.version = 3, .method = KP_OFFLOAD_ZSTD},
		{.version = 3, .method = KP_OFFLOAD_ZSTD, .level = 19},
#if KP_WITH_ZLIB
		{.version = 3, .method = KP_OFFLOAD_ZLIB},
#endif
	};
	struct kp_containers list, again;
	struct ob b = {0}, made, same;

	ob_build(&b, 2, two, 2);
	assert_int_equal(scan(&b, &list), KPACK_SUCCESS);
	for (size_t i = 0; i < COUNT(forms); i++) {
		assert_int_equal(write_again(&b, &list, &forms[i], &made), KPACK_SUCCESS);
		assert_int_equal(made.size % 8, 0);
		assert_int_equal(kp_le32(made.data + 4), forms[i].version);
		assert_int_equal(kp_le64(made.data + 16), forms[i].version < 3 ? 32 : 40);
		assert_int_equal(scan(&made, &again), KPACK_SUCCESS);
		assert_int_equal(again.n_images, 2);
		assert_hip(&made, &again, 0);
		assert_pair(&again.images[1], 1, "note", "a\0b", 3);
		assert_pair(&again.images[1], 4, "image flags", "0x1", 3);
		assert_bytes(&made, &again, 1, "second");
		assert_int_equal(write_again(&made, &again, &forms[i], &same),
				 KPACK_SUCCESS);
		assert_int_equal(same.size, made.size);
		assert_memory_equal(same.data, made.data, made.size);
		kp_containers_fini(&again);
	}
	kp_containers_fini(&list);
}

/*
 * Output of llvm-offload-binary 22.1.8 for file=x.o,triple=t-hsa,arch=hsa,a=,kind=hip.
 * Strings are sorted by their ends and share them; the empty string comes first.
 */
static const char from_llvm[] = "\x10\xff\x10\xad\x01\x00\x00\x00\x98\x00\x00\x00"
				"\x00\x00\x00\x00\x20\x00\x00\x00\x00\x00\x00\x00"
				"\x28\x00\x00\x00\x00\x00\x00\x00\x01\x00\x04\x00"
				"\x00\x00\x00\x00\x48\x00\x00\x00\x00\x00\x00\x00"
				"\x03\x00\x00\x00\x00\x00\x00\x00\x90\x00\x00\x00"
				"\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00"
				"\x79\x00\x00\x00\x00\x00\x00\x00\x87\x00\x00\x00"
				"\x00\x00\x00\x00\x7e\x00\x00\x00\x00\x00\x00\x00"
				"\x85\x00\x00\x00\x00\x00\x00\x00\x89\x00\x00\x00"
				"\x00\x00\x00\x00\x78\x00\x00\x00\x00\x00\x00\x00"
				"\x00\x61\x72\x63\x68\x00\x74\x72\x69\x70\x6c\x65"
				"\x00\x74\x2d\x68\x73\x61\x00\x00\x00\x00\x00\x00"
				"\x68\x65\x6c\x6c\x6f\x00\x00\x00";

TEST(writes_what_llvm_writes)
{
	static const char *const pairs[][2] = {
		{"arch", "hsa"}, {"triple", "t-hsa"}, {"a", ""}};
	struct kp_pairs strings = {0};
	struct kp_offload_image image = {1, 4, 0, &strings, kp_source_memory("hello", 5)};
	struct kp_offload_form form = {.version = 1};
	struct written w = {.size = 0};
	struct kp_sink sink = {.write = take, .arg = &w};

	for (size_t i = 0; i < COUNT(pairs); i++)
		assert_int_equal(kp_pairs_add(&strings, kp_span_str(pairs[i][0]),
					      kp_span_str(pairs[i][1]), &why),
				 KPACK_SUCCESS);
	assert_int_equal(kp_offload_write(&image, 1, &form, &sink, &why), KPACK_SUCCESS);
	assert_int_equal(w.size, sizeof(from_llvm) - 1);
	assert_memory_equal(w.data, from_llvm, w.size);
	/* one binary per image; no images give no output */
	assert_int_equal(kp_offload_write(&image, 0, &form, &sink, &why), KPACK_SUCCESS);
	assert_int_equal(kp_offload_write(&image, 1, &form, &sink, &why), KPACK_SUCCESS);
	assert_int_equal(w.size, 2 * (sizeof(from_llvm) - 1));
	assert_memory_equal(w.data + w.size / 2, from_llvm, w.size / 2);
	kp_pairs_fini(&strings);
}

TEST(refuses_to_write)
{
	static const struct kp_offload_form forms[] = {
		{.version = 0},
		{.version = 4},
		{.version = 1, .method = KP_OFFLOAD_ZSTD},
		{.version = 2, .method = KP_OFFLOAD_ZLIB},
		{.version = 1}, /* one of the values contains a NUL */
	};
	struct kp_containers list;
	struct ob b = {0}, made;

	ob_build(&b, 2, two, 2);
	assert_int_equal(scan(&b, &list), KPACK_SUCCESS);
	for (size_t i = 0; i < COUNT(forms); i++)
		assert_int_equal(write_again(&b, &list, &forms[i], &made),
				 KPACK_ERROR_INVALID_ARGUMENT);
	kp_containers_fini(&list);
}

TEST(names_of_kinds)
{
	assert_int_equal(kp_offload_kind_number("hip"), 4);
	assert_int_equal(kp_offload_kind_number("openmp"), 1);
	assert_int_equal(kp_offload_kind_number("3"), 0);
	assert_null(kp_offload_kind_name(5));
	assert_int_equal(kp_offload_image_kind_by_ext("s"), KP_OFFLOAD_PTX);
	assert_int_equal(kp_offload_image_kind_by_ext("spv"), KP_OFFLOAD_SPIRV);
	assert_int_equal(kp_offload_image_kind_by_ext(""), KP_OFFLOAD_NONE);
	assert_int_equal(kp_offload_image_kind_by_ext("O"), KP_OFFLOAD_NONE);
	assert_string_equal(kp_offload_image_kind_ext(KP_OFFLOAD_FATBINARY), "fatbin");
	assert_string_equal(kp_offload_image_kind_ext(77), "");
}
