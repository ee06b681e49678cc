/* SPDX-License-Identifier: MIT */
#include "core/format/format.h"
#include "tests/unit/exact_copy.h"
#include "tests/unit/unit.h"
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
#include "tests/unit/elf_builder.h"
#include "core/format/llvm/bundle.h"
#include "core/format/llvm/ccob.h"
#include "core/base/bounds.h"
#include "core/base/md5.h"
#include "core/base/spill.h"

#ifndef KP_WITH_ZLIB
#define KP_WITH_ZLIB 1
#endif

#define HOST "host-x86_64-unknown-linux-gnu-"
#define GFX(target) "hipv4-amdgcn-amd-amdhsa--" target

static struct kpackx_error why;

static const struct entry three[] = {{HOST, ""},
				     {GFX("gfx90a:xnack+:sramecc-"), "first object"},
				     {GFX("gfx1100"), "second"}};

static kpack_error_t scan(const struct bytes *b, struct kp_containers *out)
{
	/* an exactly sized copy, so that a sanitizer detects reads past the end */
	struct kp_source src = exact_copy(b->data, b->size);
	kpack_error_t err = kp_containers_scan(&src, out, &why);

	exact_copy_free(&src);
	return err;
}

/* Scanning B fails with CODE, and the message contains TEXT. */
static void assert_refused(const struct bytes *b, kpack_error_t code, const char *text)
{
	struct kp_containers list;

	assert_int_equal(scan(b, &list), code);
	assert_has(why.text, text);
	assert_null(list.items);
	assert_null(list.images);
}

static void assert_object(const struct bytes *b, const struct kp_containers *list,
			  size_t i, const char *text)
{
	const struct kp_image *image = &list->images[i];
	struct kp_source src = kp_source_memory(b->data, b->size);
	struct kp_payload payload;
	char buf[64] = "";

	assert_int_equal(image->size, strlen(text));
	assert_int_equal(
		kp_container_load(&src, &list->items[image->container], &payload, &why),
		KPACK_SUCCESS);
	assert_int_equal(
		kp_source_read(&payload.source, image->offset, buf, image->size, &why),
		KPACK_SUCCESS);
	assert_string_equal(buf, text);
	kp_payload_fini(&payload);
}

/* Check the three entries above, starting at image I. */
static void assert_three(const struct bytes *b, const struct kp_containers *list,
			 size_t i)
{
	assert_string_equal(list->images[i].id, HOST);
	assert_true(list->images[i].host);
	assert_string_equal(list->images[i].arch, "");
	assert_false(list->images[i + 1].host);
	assert_string_equal(list->images[i + 1].id, three[1].id);
	assert_string_equal(list->images[i + 1].arch, "gfx90a:sramecc-:xnack+");
	assert_string_equal(list->images[i + 2].arch, "gfx1100");
	for (size_t k = 0; k < 3; k++)
		assert_object(b, list, i + k, three[k].object);
}

static struct bytes plain_bundle(size_t align)
{
	struct bytes b = {0};

	put_bundle(&b, three, 3, align);
	return b;
}

/* An AMDGPU code object; it ends with the section headers. */
static struct elf_file code_object(uint8_t abi_version, uint32_t e_flags)
{
	static const struct section sections[] = {
		{".text",
		 SHT_PROGBITS,
		 6,
		 0x1000,
		 {(const uint8_t *)"program!", 8},
		 0,
		 0,
		 0},
		{".bss", SHT_NOBITS, 3, 0x2000, {NULL, 1 << 30}, 0, 0, 0},
	};
	struct elf_file f = elf_build(ET_DYN, EM_AMDGPU, sections, COUNT(sections));

	f.bytes.data[EI_OSABI] = 64;
	f.bytes.data[EI_ABIVERSION] = abi_version;
	kp_put_le32(f.bytes.data + offsetof(Elf64_Ehdr, e_flags), e_flags);
	return f;
}

/* ---- plain bundles ---- */

TEST(a_bundle_is_listed_at_any_alignment)
{
	static const size_t aligns[] = {1, 3, 8, 16, 4096};

	for (size_t i = 0; i < COUNT(aligns); i++) {
		struct bytes b = plain_bundle(aligns[i]);
		struct kp_containers list;

		assert_int_equal(scan(&b, &list), KPACK_SUCCESS);
		assert_int_equal(list.count, 1);
		assert_ptr_equal(list.items[0].format, &kp_format_bundle);
		assert_int_equal(list.items[0].size, b.size);
		assert_int_equal(list.items[0].payload_size, b.size);
		assert_int_equal(list.n_images, 3);
		assert_three(&b, &list, 0);
		kp_containers_fini(&list);
		bytes_free(&b);
	}
}

TEST(every_spelling_of_an_id_is_taken)
{
	static const struct {
		const char *id, *arch;
		bool host;
	} cases[] = {
		{"hip-amdgcn-amd-amdhsa-gfx900", "gfx900", false},
		{"hip-amdgcn-amd-amdhsa-unknown-gfx1100", "gfx1100", false},
		{"hip-amdgcn-amd-amdhsa--gfx900:xnack+", "gfx900:xnack+", false},
		{GFX("gfx11-generic"), "gfx11-generic", false},
		{"hip-amdgcn-amd-amdhsa--", "", false},
		{"hipv4-amdgcn-amd-amdhsa--", "", false},
		{"openmp-nvptx64-nvidia-cuda-unknown-sm_80", "sm_80", false},
		{"host-x86_64-unknown-linux", "", true},
		{"nonsense", "", false},
		{"", "", false},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct entry e = {cases[i].id, "x"};
		struct kp_containers list;
		struct bytes b = {0};

		put_bundle(&b, &e, 1, 1);
		assert_int_equal(scan(&b, &list), KPACK_SUCCESS);
		assert_string_equal(list.images[0].id, cases[i].id);
		assert_string_equal(list.images[0].arch, cases[i].arch);
		assert_int_equal(list.images[0].host, cases[i].host);
		kp_containers_fini(&list);
		bytes_free(&b);
	}
}

TEST(an_empty_last_entry_may_lie_past_the_end)
{
	static const struct entry entries[] = {{GFX("gfx90a"), "code"}, {HOST, ""}};
	struct kp_containers list;
	struct bytes b = {0};

	put_bundle(&b, entries, 2, 4096);
	assert_int_equal(b.size, 4096 + 4);
	/* other bytes may be at the offset that it states */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(scan(&b, &list), KPACK_SUCCESS);
		assert_int_equal(list.items[0].size, 4096 + 4);
		assert_object(&b, &list, 1, "");
		kp_containers_fini(&list);
		put_padding(&b, 4096);
		put_bundle(&b, three, 3, 16);
	}
	bytes_free(&b);
}

TEST(a_bundle_without_entries_is_its_header)
{
	struct kp_containers list;
	struct bytes b = {0};

	put_bundle(&b, NULL, 0, 1);
	put_bundle(&b, three, 3, 1);
	assert_int_equal(scan(&b, &list), KPACK_SUCCESS);
	assert_int_equal(list.count, 2);
	assert_int_equal(list.items[0].size, 32);
	assert_int_equal(list.items[0].n_images, 0);
	assert_three(&b, &list, 0);
	kp_containers_fini(&list);
	bytes_free(&b);
}

TEST(a_large_header_is_read_whole)
{
	static struct entry entries[KP_BUNDLE_ENTRIES_MAX];
	static char id[KP_ENTRY_ID_MAX + 1];
	struct bytes b = {0}, c = {0};
	struct kp_containers list;

	memset(id, 'a', KP_ENTRY_ID_MAX);
	for (size_t i = 0; i < COUNT(entries); i++)
		entries[i] = (struct entry){id, "x"};
	put_bundle(&b, entries, COUNT(entries), 1);
	put_ccob(&c, 3, 1, bytes_span(&b));
	assert_int_equal(scan(&b, &list), KPACK_SUCCESS);
	assert_int_equal(list.n_images, COUNT(entries));
	assert_int_equal(list.items[0].size, b.size);
	kp_containers_fini(&list);
	assert_int_equal(scan(&c, &list), KPACK_SUCCESS);
	assert_int_equal(list.n_images, COUNT(entries));
	assert_string_equal(list.images[COUNT(entries) - 1].id, id);
	kp_containers_fini(&list);
	bytes_free(&b);
	bytes_free(&c);
}

TEST(entries_do_not_add_up_for_ever)
{
	static struct entry entries[KP_BUNDLE_ENTRIES_MAX];
	struct bytes plain = {0}, b = {0};

	for (size_t i = 0; i < COUNT(entries); i++)
		entries[i] = (struct entry){"", ""};
	put_bundle(&plain, entries, COUNT(entries), 1);
	for (size_t i = 0; i < KP_IMAGES_MAX / COUNT(entries) + 1; i++)
		put_ccob(&b, 3, 1, bytes_span(&plain));
	assert_refused(&b, KPACK_ERROR_INVALID_FORMAT, "more than 1048576 entries");
	bytes_free(&plain);
	bytes_free(&b);
}

TEST(a_lying_bundle_is_refused)
{
	/* the u64 at OFFSET of the plain bundle with alignment 16 becomes VALUE */
	static const struct {
		size_t offset;
		uint64_t value;
		const char *text;
	} cases[] = {
		{24, 1000, "1000 entries do not fit"},
		{24, 4097, "4097 entries of at most 4096"},
		{24, UINT64_MAX, "entries of at most 4096"},
		{24, 4, "entry 3: ID of"},
		{48, 513, "entry 0: ID of 513 bytes, at most 512"},
		{48, UINT64_MAX, "entry 0: ID of"},
		{48, 400, "passes the end"},
		{86, 16, "entry 1: offset 16 is inside the header"},
		{86, UINT64_MAX - 2, "entry 1: 12 bytes at offset"},
		{94, UINT64_MAX, "entry 1: 18446744073709551615 bytes at offset"},
		{94, 1000, "entry 1: 1000 bytes at offset"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct bytes b = plain_bundle(16);

		kp_put_le64(b.data + cases[i].offset, cases[i].value);
		assert_refused(&b, KPACK_ERROR_INVALID_FORMAT, cases[i].text);
		assert_has(why.text, "bundle at offset 0: ");
		bytes_free(&b);
	}
}

TEST(an_id_with_a_nul_is_refused)
{
	struct bytes b = plain_bundle(1);

	b.data[60] = 0;
	assert_refused(&b, KPACK_ERROR_INVALID_FORMAT, "NUL");
	bytes_free(&b);
}

/* ---- compressed bundles ---- */

TEST(a_ccob_of_each_version_and_method_is_read)
{
	struct bytes plain = plain_bundle(4096);

	for (unsigned version = 1; version <= 3; version++) {
		for (unsigned method = !KP_WITH_ZLIB; method <= 1; method++) {
			struct kp_containers list;
			struct bytes b = {0};

			put_ccob(&b, version, method, bytes_span(&plain));
			size_t size = b.size;
			put_zeros(&b, 5);
			put_ccob(&b, version, method, bytes_span(&plain));
			assert_int_equal(scan(&b, &list), KPACK_SUCCESS);
			assert_int_equal(list.count, 2);
			assert_int_equal(list.items[0].size, size);
			assert_int_equal(list.items[0].payload_size, plain.size);
			assert_int_equal(list.items[1].offset, size + 5);
			assert_three(&b, &list, 0);
			assert_three(&b, &list, 3);
			kp_containers_fini(&list);
			bytes_free(&b);
		}
	}
	bytes_free(&plain);
}

TEST(an_unknown_ccob_is_unsupported_and_not_corrupt)
{
	struct bytes plain = plain_bundle(1), b = {0};

	put_ccob(&b, 3, 1, bytes_span(&plain));
	b.data[4] = 4;
	assert_refused(&b, KPACK_ERROR_NOT_IMPLEMENTED, "version 4");
	b.data[4] = 0;
	assert_refused(&b, KPACK_ERROR_NOT_IMPLEMENTED, "version 0");
	b.data[4] = 3;
	b.data[6] = 2;
	assert_refused(&b, KPACK_ERROR_NOT_IMPLEMENTED, "method 2");
#if !KP_WITH_ZLIB
	b.data[6] = 0;
	assert_refused(&b, KPACK_ERROR_NOT_IMPLEMENTED, "without zlib");
#endif
	bytes_free(&b);
	bytes_free(&plain);
}

/*
 * A v3 CCOB with PLAIN as zstd data; the header states DECODED, and a size wrong by SIZE.
 */
static struct bytes lying_ccob(struct kp_span plain, int64_t size, uint64_t decoded)
{
	struct bytes data = zstd_frame(plain), b = {0};

	put_ccob_header(&b, 3, 1, (uint64_t)((int64_t)(32 + data.size) + size), decoded);
	put(&b, data.data, data.size);
	bytes_free(&data);
	return b;
}

TEST(a_ccob_that_lies_about_its_sizes_is_refused)
{
	struct bytes plain = plain_bundle(1);
	const struct {
		int64_t size;
		uint64_t decoded;
		const char *text;
	} cases[] = {
		{1, plain.size, "exist"},
		{INT64_MAX - 100000, plain.size, "exist"},
		{-100000, plain.size, "exist"},
		{0, plain.size - 1, "the zstd frame says"},
		{0, 31, "decoded size 31"},
		{0, KP_CCOB_MAX + 1, "decoded size 4294967297"},
		{0, KP_CCOB_MAX, "cannot come out of"},
		{0, UINT64_MAX, "decoded size"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct bytes b =
			lying_ccob(bytes_span(&plain), cases[i].size, cases[i].decoded);

		assert_refused(&b, KPACK_ERROR_INVALID_FORMAT, cases[i].text);
		bytes_free(&b);
	}
	bytes_free(&plain);
}

/* Container 0 of B can be listed, but loading it fails with CODE. */
static void assert_load_refused(const struct bytes *b, kpack_error_t code,
				const char *text)
{
	struct kp_source src = kp_source_memory(b->data, b->size);
	struct kp_containers list;
	struct kp_payload payload;

	assert_int_equal(kp_containers_scan(&src, &list, &why), KPACK_SUCCESS);
	assert_int_equal(kp_container_load(&src, &list.items[0], &payload, &why), code);
	assert_has(why.text, text);
	assert_null(payload.heap);
	kp_containers_fini(&list);
}

TEST(bytes_after_the_frame_are_a_fault)
{
	struct bytes plain = plain_bundle(1), data = zstd_frame(bytes_span(&plain)),
		     b = {0};

	put_ccob_header(&b, 2, 1, 24 + data.size + 3, plain.size);
	put(&b, data.data, data.size);
	put_zeros(&b, 3);
	assert_load_refused(&b, KPACK_ERROR_DECOMPRESSION_FAILED, "frame");
	bytes_free(&b);
	bytes_free(&data);
	bytes_free(&plain);
}

/* A bundle with one large incompressible object. */
static struct bytes noisy_bundle(void)
{
	static char object[300001];
	struct entry e = {GFX("gfx90a"), object};
	struct bytes b = {0};
	uint32_t x = 1;

	for (size_t i = 0; i + 1 < sizeof(object); i++) {
		x = x * 1664525 + 1013904223;
		object[i] = (char)(1 + (x >> 24) % 255);
	}
	put_bundle(&b, &e, 1, 16);
	return b;
}

TEST(listing_decodes_only_the_beginning)
{
	struct bytes plain = noisy_bundle();

	for (unsigned method = !KP_WITH_ZLIB; method <= 1; method++) {
		struct bytes b = {0};

		put_ccob(&b, 3, method, bytes_span(&plain));
		memset(b.data + b.size - 200, 0x55, 200);
		/* a raw block can hold any bytes, so also cut off the end */
		kp_put_le64(b.data + 8, b.size - 100);
		b.size -= 100;
		assert_load_refused(&b, KPACK_ERROR_DECOMPRESSION_FAILED, ": ");
		bytes_free(&b);
	}
	bytes_free(&plain);
}

TEST(a_zlib_stream_of_another_length_is_refused)
{
#if KP_WITH_ZLIB
	struct bytes plain = noisy_bundle(), data = deflated(bytes_span(&plain)), b = {0};

	put_ccob_header(&b, 3, 0, 32 + data.size, plain.size + 1);
	put(&b, data.data, data.size);
	assert_load_refused(&b, KPACK_ERROR_INVALID_FORMAT, "the header says more");
	kp_put_le64(b.data + 16, plain.size - 1);
	/* now the object is cut, as the entries show */
	assert_refused(&b, KPACK_ERROR_INVALID_FORMAT, "entry 0");
	bytes_free(&b);
	put_ccob_header(&b, 1, 0, 0, plain.size + 1);
	put(&b, data.data, data.size);
	assert_refused(&b, KPACK_ERROR_INVALID_FORMAT, "zlib: ");
	bytes_free(&b);
	bytes_free(&data);
	bytes_free(&plain);
#else
#endif
}

TEST(a_bomb_is_refused_before_it_is_lit)
{
	struct kp_span text =
		kp_span_str("no bundle, but long enough to be one, one thinks");
	struct bytes b = {0};

	/* 20 bytes of data that claim to decode to 4 GiB */
	put_ccob_header(&b, 3, 1, 32 + 20, KP_CCOB_MAX);
	put_zeros(&b, 20);
	assert_refused(&b, KPACK_ERROR_INVALID_FORMAT,
		       "cannot come out of 20 bytes of zstd");
	bytes_free(&b);
	put_ccob(&b, 3, 1, text);
	assert_refused(&b, KPACK_ERROR_INVALID_FORMAT, "not an offload bundle");
	bytes_free(&b);
	/* a CCOB inside a CCOB */
	put_ccob(&b, 3, 1, text);
	struct bytes outer = {0};
	put_ccob(&outer, 3, 1, bytes_span(&b));
	assert_refused(&outer, KPACK_ERROR_INVALID_FORMAT, "not an offload bundle");
	bytes_free(&outer);
	bytes_free(&b);
}

TEST(a_v1_ends_with_its_frame)
{
	struct bytes plain = noisy_bundle(), b = {0};
	struct kp_containers list;

	put_ccob(&b, 1, 1, bytes_span(&plain));
	size_t end = b.size;
	put_bundle(&b, three, 3, 1);
	assert_int_equal(scan(&b, &list), KPACK_SUCCESS);
	assert_int_equal(list.items[0].size, end);
	assert_int_equal(list.items[1].offset, end);
	kp_containers_fini(&list);
	b.size = end - 1;
	assert_refused(&b, KPACK_ERROR_INVALID_FORMAT, "passes the end");
	bytes_free(&b);
	bytes_free(&plain);
}

/* ---- code objects ---- */

TEST(a_code_object_reaches_as_far_as_its_headers)
{
	struct elf_file f = code_object(4, 0x53f); /* gfx90a, any xnack, any sramecc */
	struct bytes b = {0};
	struct kp_containers list;

	put(&b, f.bytes.data, f.bytes.size);
	put_zeros(&b, 33);
	put_bundle(&b, three, 3, 1);
	assert_int_equal(scan(&b, &list), KPACK_SUCCESS);
	assert_int_equal(list.count, 2);
	assert_ptr_equal(list.items[0].format, &kp_format_code_object);
	assert_int_equal(list.items[0].size, f.bytes.size);
	assert_null(list.images[0].id);
	assert_string_equal(list.images[0].arch, "gfx90a");
	assert_int_equal(list.images[0].size, f.bytes.size);
	assert_three(&b, &list, 1);
	kp_containers_fini(&list);
	bytes_free(&b);
	bytes_free(&f.bytes);
}

TEST(a_code_object_that_does_not_say_has_no_arch)
{
	/* v2 without a processor in the flags */
	struct elf_file f = code_object(0, 0x01);
	struct kp_containers list;

	assert_int_equal(scan(&f.bytes, &list), KPACK_SUCCESS);
	assert_string_equal(list.images[0].arch, "");
	kp_containers_fini(&list);
	bytes_free(&f.bytes);
}

TEST(section_counts_can_stand_in_section_0)
{
	struct elf_file f = code_object(4, 0x53f);
	struct kp_containers list;

	SET_SH(&f, 0, sh_size, f.bytes.data[offsetof(Elf64_Ehdr, e_shnum)]);
	f.bytes.data[offsetof(Elf64_Ehdr, e_shnum)] = 0;
	assert_int_equal(scan(&f.bytes, &list), KPACK_SUCCESS);
	assert_int_equal(list.items[0].size, f.bytes.size);
	kp_containers_fini(&list);
	SET_SH(&f, 0, sh_size, UINT64_MAX);
	assert_refused(&f.bytes, KPACK_ERROR_INVALID_FORMAT,
		       "section headers do not fit");
	bytes_free(&f.bytes);
}

TEST(a_lying_code_object_is_refused)
{
	static const struct {
		size_t offset, size;
		uint64_t value;
		const char *text;
	} cases[] = {
		{offsetof(Elf64_Ehdr, e_shoff), 8, 1 << 20, "section 0: "},
		{offsetof(Elf64_Ehdr, e_shoff), 8, UINT64_MAX, "section 0: "},
		{offsetof(Elf64_Ehdr, e_shnum), 2, 0xffff,
		 "65535 section headers do not"},
		{offsetof(Elf64_Ehdr, e_shentsize), 2, 63, "section headers of 63 bytes"},
		{offsetof(Elf64_Ehdr, e_phnum), 2, 7, "segment"},
		{offsetof(Elf64_Ehdr, e_phnum), 2, 9999, "segment headers do not fit"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct elf_file f = code_object(4, 0x53f);
		uint8_t le[8];

		kp_put_le64(le, cases[i].value);
		memcpy(f.bytes.data + cases[i].offset, le, cases[i].size);
		assert_refused(&f.bytes, KPACK_ERROR_INVALID_FORMAT, cases[i].text);
		bytes_free(&f.bytes);
	}
	struct elf_file f = code_object(4, 0x53f);
	SET_SH(&f, 1, sh_size, UINT64_MAX);
	assert_refused(&f.bytes, KPACK_ERROR_INVALID_FORMAT, "section 1: ");
	bytes_free(&f.bytes);
}

/* ---- many containers ---- */

/* One container of each kind at unaligned places; STARTS and ENDS get their offsets. */
static struct bytes mixture(size_t *starts, size_t *ends, size_t *count)
{
	struct bytes b = {0}, plain = plain_bundle(64);
	struct elf_file f = code_object(4, 0x53f);
	size_t n = 0;

	for (unsigned i = 0; i < 9; i++) {
		put_zeros(&b, i * 3 % 7);
		starts[n] = b.size;
		if (i == 0 || i == 4)
			put_bundle(&b, three, 3, 16);
		else if (i == 5)
			put(&b, f.bytes.data, f.bytes.size);
		else
			put_ccob(&b, 1 + i % 3, !KP_WITH_ZLIB || i > 4,
				 bytes_span(&plain));
		ends[n++] = b.size;
	}
	put_zeros(&b, 100);
	bytes_free(&plain);
	bytes_free(&f.bytes);
	*count = n;
	return b;
}

TEST(containers_mix)
{
	size_t starts[16], ends[16], n;
	struct bytes b = mixture(starts, ends, &n);
	struct kp_containers list;

	assert_int_equal(scan(&b, &list), KPACK_SUCCESS);
	assert_int_equal(list.count, n);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(list.items[i].offset, starts[i]);
		assert_int_equal(list.items[i].offset + list.items[i].size, ends[i]);
		for (size_t k = 0; k < list.items[i].n_images; k++)
			assert_int_equal(
				list.images[list.items[i].first_image + k].container, i);
		if (i != 5)
			assert_three(&b, &list, list.items[i].first_image);
	}
	kp_containers_fini(&list);
	bytes_free(&b);
}

TEST(a_cut_anywhere_is_noticed)
{
	size_t starts[16], ends[16], n, whole = 0;
	struct bytes b = mixture(starts, ends, &n), cut = b;
	struct kp_containers list;

	for (cut.size = 0; cut.size <= b.size; cut.size++) {
		while (whole < n && ends[whole] <= cut.size)
			whole++;
		kpack_error_t err = scan(&cut, &list);

		/* valid only if the cut is in padding */
		if (whole == n || cut.size <= starts[whole]) {
			assert_int_equal(err, KPACK_SUCCESS);
			assert_int_equal(list.count, whole);
		} else {
			assert_int_not_equal(err, KPACK_SUCCESS);
			assert_null(list.items);
		}
		kp_containers_fini(&list);
	}
	bytes_free(&b);
}

TEST(zeros_hold_nothing_and_garbage_is_named)
{
	struct kp_containers list;
	struct bytes b = {0};

	assert_int_equal(scan(&b, &list), KPACK_SUCCESS);
	assert_int_equal(list.count, 0);
	b.data = calloc(3, 1 << 20);
	b.size = 3 << 20;
	assert_int_equal(scan(&b, &list), KPACK_SUCCESS);
	assert_int_equal(list.count, 0);
	b.data[b.size - 2] = 0xab;
	assert_refused(&b, KPACK_ERROR_INVALID_FORMAT,
		       "offset 3145726: no container begins with ab 00");
	bytes_free(&b);
	put_bundle(&b, three, 3, 1);
	put(&b, "\1junk", 5);
	assert_refused(&b, KPACK_ERROR_INVALID_FORMAT, "begins with 01 6a 75 6e 6b");
	bytes_free(&b);
}

TEST(payload_bytes_that_look_like_a_magic_split_nothing)
{
	static const struct entry e = {GFX("gfx90a"), "__CLANG_OFFLOAD_BUNDLE__CCOB"};
	struct kp_containers list;
	struct bytes b = {0};

	put_bundle(&b, &e, 1, 16);
	assert_int_equal(scan(&b, &list), KPACK_SUCCESS);
	assert_int_equal(list.count, 1);
	assert_object(&b, &list, 0, e.object);
	kp_containers_fini(&list);
	bytes_free(&b);
}

TEST(objects_are_known_by_their_first_bytes)
{
	static const struct {
		const char *head;
		size_t size;
		const char *type;
	} cases[] = {
		{"BC\xc0\xde", 4, "bc"},
		{"\xde\xc0\x17\x0b", 4, "bc"},
		{"\x03\x02\x23\x07", 4, "spv"},
		{"\x7fTileIR\0\x0d", 9, "tileirbc"},
		{"\n\n// x\n.version 9.0\n", 20, "ptx"},
		{"//\n// Generated by LLVM NVPTX Back-End\n//\n\n.version 7.0\n", 57,
		 "ptx"},
		{"//\n// Generated by NVIDIA NVVM Compiler\n//\n// Compiler Build", 60,
		 "ptx"},
		{".versions 1", 11, "co"},
		{"// a comment", 12, "co"},
		{"\n\n", 2, "co"},
		{"", 0, "co"},
		{"\x7f"
		 "ELF",
		 4, "co"},
	};
	uint8_t elf[20] = "\x7f"
			  "ELF\2\1\1";

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct kp_span head = {(const uint8_t *)cases[i].head, cases[i].size};

		assert_string_equal(kp_object_type(head), cases[i].type);
	}
	elf[18] = 224;
	assert_string_equal(kp_object_type((struct kp_span){elf, 20}), "hsaco");
	assert_string_equal(kp_object_type((struct kp_span){elf, 19}), "co");
	elf[18] = 190;
	assert_string_equal(kp_object_type((struct kp_span){elf, 20}), "cubin");
	elf[18] = 62;
	assert_string_equal(kp_object_type((struct kp_span){elf, 20}), "co");
}

/* ---- writing ---- */

TEST(a_header_is_written_as_it_is_read)
{
	struct bytes b = plain_bundle(64);
	struct kp_containers list;
	struct kp_bundle_row rows[3];
	uint8_t header[256];

	assert_int_equal(scan(&b, &list), KPACK_SUCCESS);
	for (size_t i = 0; i < 3; i++)
		rows[i] = (struct kp_bundle_row){kp_span_str(list.images[i].id),
						 list.images[i].offset,
						 list.images[i].size};
	assert_in_range(kp_bundle_header_size(rows, 3), 64, sizeof(header));
	kp_bundle_header_write(rows, 3, header);
	assert_memory_equal(header, b.data, kp_bundle_header_size(rows, 3));
	assert_int_equal(kp_bundle_header_size(NULL, 0), 32);
	kp_containers_fini(&list);
	bytes_free(&b);
}

TEST(md5_is_md5)
{
	static const struct {
		const char *text;
		const char *digest;
	} cases[] = {
		/* RFC 1321, A.5 */
		{"", "\xd4\x1d\x8c\xd9\x8f\x00\xb2\x04"
		     "\xe9\x80\x09\x98\xec\xf8\x42\x7e"},
		{"abc", "\x90\x01\x50\x98\x3c\xd2\x4f\xb0"
			"\xd6\x96\x3f\x7d\x28\xe1\x7f\x72"},
		{"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
		 "\xd1\x74\xab\x98\xd2\x77\xd9\xf5"
		 "\xa5\x61\x1c\x2c\x9f\x41\x9d\x9f"},
		{"1234567890123456789012345678901234567890"
		 "1234567890123456789012345678901234567890",
		 "\x57\xed\xf4\xa2\x2b\xe3\xc9\x55"
		 "\xac\x49\xda\x2e\x21\x07\xb6\x7a"},
	};
	uint8_t digest[16];

	for (size_t i = 0; i < COUNT(cases); i++) {
		kp_md5(kp_span_str(cases[i].text), digest);
		assert_memory_equal(digest, cases[i].digest, 16);
	}
	assert_true(kp_ccob_hash(kp_span_str("abc")) == UINT64_C(0xb04fd23c98500190));
}

/* Find the compression level of the only container in B, whose payload is PLAIN. */
static void find_level(const struct bytes *b, struct kp_span plain,
		       struct kp_ccob_search *search, struct kp_ccob_form *form)
{
	struct kp_source src = kp_source_memory(b->data, b->size);
	struct kp_payload payload = {.source = kp_source_memory(plain.data, plain.size),
				     .heap = (void *)plain.data};
	struct kp_containers list;

	assert_int_equal(kp_containers_scan(&src, &list, &why), KPACK_SUCCESS);
	assert_int_equal(kp_ccob_form_read(&src, &list.items[0], form, &why),
			 KPACK_SUCCESS);
	assert_int_equal(
		kp_ccob_find_level(&src, &list.items[0], &payload, search, form, &why),
		KPACK_SUCCESS);
	kp_containers_fini(&list);
}

TEST(a_ccob_is_written_as_it_was)
{
	struct bytes plain = noisy_bundle();

	for (unsigned version = 1; version <= 3; version++) {
		for (unsigned method = !KP_WITH_ZLIB; method <= 1; method++) {
			struct bytes b = {0}, again = {0};
			struct kp_ccob_search search = {0};
			struct kp_ccob_form form;

			put_ccob(&b, version, method, bytes_span(&plain));
			b.data[ccob_header_size(version) - 1] = 0x77;
			find_level(&b, bytes_span(&plain), &search, &form);
			assert_int_equal(form.version, version);
			assert_int_equal(form.method, method);
			assert_true(form.hash == UINT64_C(0x77) << 56);
			assert_int_equal(form.level, method ? 3 : 6);
			assert_int_equal(kp_ccob_encode(&form, bytes_span(&plain),
							&again.data, &again.size, &why),
					 KPACK_SUCCESS);
			assert_int_equal(again.size, b.size);
			assert_memory_equal(again.data, b.data, b.size);
			bytes_free(&again);
			bytes_free(&b);
		}
	}
	bytes_free(&plain);
}

static void set_ccob(struct bytes *b, const struct kp_ccob_form *form,
		     const struct bytes *plain)
{
	bytes_free(b);
	assert_int_equal(
		kp_ccob_encode(form, bytes_span(plain), &b->data, &b->size, &why),
		KPACK_SUCCESS);
}

TEST(a_level_is_looked_for_when_asked)
{
	struct kp_ccob_form form = {3, KP_CCOB_ZSTD, 0, 7, false}, found;
	struct kp_ccob_search search = KP_CCOB_SEARCH;
	struct bytes plain = noisy_bundle(), b = {0};

	/* compressible, so that levels give different results */
	for (size_t i = 100; i < plain.size; i++)
		plain.data[i] &= 0x17;
	set_ccob(&b, &form, &plain);
	find_level(&b, bytes_span(&plain), &search, &found);
	assert_int_equal(found.level, 7);
	assert_int_equal(search.like.level, 7);
	assert_int_equal(search.searches, 15);
	/* the level before is tried first, even without a search */
	search.searches = 0;
	find_level(&b, bytes_span(&plain), &search, &found);
	assert_int_equal(found.level, 7);
	search = (struct kp_ccob_search){0};
	find_level(&b, bytes_span(&plain), &search, &found);
	assert_int_equal(found.level, 3);
	assert_int_equal(search.failures, 1);
	bytes_free(&b);
	bytes_free(&plain);
}

/* A container that no level makes gets the likeliest one, and soon nothing is tried. */
TEST(what_no_level_makes_is_given_up)
{
	struct kp_ccob_form form = {3, KP_CCOB_ZSTD, 0, 7, true}, found;
	struct kp_ccob_search search = KP_CCOB_SEARCH;
	struct bytes plain = noisy_bundle(), good = {0}, bad = {0};

	for (size_t i = 100; i < plain.size; i++)
		plain.data[i] &= 0x17;
	set_ccob(&good, &form, &plain);
	set_ccob(&bad, &form, &plain);
	/* a byte near the end is changed */
	bad.data[bad.size - 5] ^= 1;
	find_level(&bad, bytes_span(&plain), &search, &found);
	assert_int_equal(found.level, 3);
	assert_true(found.long_range);
	assert_int_equal(search.failures, 1);
	/* all levels are not tried again */
	assert_int_equal(search.searches, 0);
	find_level(&good, bytes_span(&plain), &search, &found);
	assert_int_equal(found.level, 3);
	assert_int_equal(search.failures, 2);
	search.searches = 1;
	find_level(&good, bytes_span(&plain), &search, &found);
	assert_int_equal(found.level, 7);
	assert_int_equal(search.failures, 0);
	for (unsigned i = 1; i <= KP_CCOB_FAILURES_MAX; i++) {
		find_level(&bad, bytes_span(&plain), &search, &found);
		assert_int_equal(found.level, 7);
		assert_int_equal(search.failures, i);
	}
	/* given up: not even the right one is found */
	search.searches = 1;
	search.like.level = 0;
	find_level(&good, bytes_span(&plain), &search, &found);
	assert_int_equal(found.level, 3);
	assert_int_equal(search.searches, 1);
	bytes_free(&good);
	bytes_free(&bad);
	bytes_free(&plain);
}

/*
 * Of a payload that the budget does not cover only the first bytes are compared, and of a
 * large one first the first block.
 */
TEST(a_level_is_known_by_its_first_bytes)
{
	static const int levels[] = {1, 3, 5, 13};
	struct bytes plain = noisy_bundle(), large = {0}, b = {0};
	uint32_t random = 1;

	put(&large, plain.data, 100);
	while (large.size < 2000000) {
		random = random * 1103515245 + 12345;
		put(&large, &plain.data[100 + (random >> 16) % 30000], 17);
		large.data[large.size - 1] &= 0x17;
	}
	for (size_t i = 0; i < COUNT(levels); i++) {
		struct kp_ccob_form form = {3, KP_CCOB_ZSTD, 0, levels[i], i % 2}, found;
		struct kp_ccob_search search = {.searches = 1};

		set_ccob(&b, &form, &large);
		b.data[b.size - 5] ^= 1;
		find_level(&b, bytes_span(&large), &search, &found);
		assert_int_equal(search.failures, 0);
		assert_int_equal(found.level, levels[i]);
		/* with a budget the change is seen */
		search = (struct kp_ccob_search){.budget = UINT64_C(1) << 30};
		find_level(&b, bytes_span(&large), &search, &found);
		assert_int_equal(found.level, 3);
		assert_int_equal(search.failures, 1);
		assert_true(levels[i] != 3 || search.budget < UINT64_C(1) << 30);
	}
	/* a large one */
	put_zeros(&large, (size_t)32 << 20);
	for (unsigned method = !KP_WITH_ZLIB; method <= 1; method++) {
		struct kp_ccob_form form = {3, method, 0, 4, false}, found;
		struct kp_ccob_search search = KP_CCOB_SEARCH;

		set_ccob(&b, &form, &large);
		find_level(&b, bytes_span(&large), &search, &found);
		assert_int_equal(found.level, 4);
		assert_int_equal(search.failures, 0);
		b.data[3000] ^= 1;
		search = (struct kp_ccob_search){.like = form};
		find_level(&b, bytes_span(&large), &search, &found);
		assert_int_equal(found.level, 4);
		assert_int_equal(search.failures, 1);
	}
	bytes_free(&b);
	bytes_free(&large);
	bytes_free(&plain);
}

/* A large payload is on disk when the program asks for it, and else in memory. */
TEST(a_large_payload_is_spilled)
{
	int dir = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct bytes plain = noisy_bundle(), b = {0};

	assert_true(dir >= 0);
	put_zeros(&plain, KP_SPILL_MIN);
	plain.data[plain.size - 1] = 7;
	for (unsigned method = !KP_WITH_ZLIB; method <= 1; method++) {
		struct kp_ccob_form form = {3, method, 0, 1, false};
		struct kp_containers list;
		struct kp_payload payload;
		struct kp_source src;

		set_ccob(&b, &form, &plain);
		src = kp_source_memory(b.data, b.size);
		assert_int_equal(kp_containers_scan(&src, &list, &why), KPACK_SUCCESS);
		for (unsigned i = 0; i < 2; i++) {
			struct kp_span map = {0};

			kp_spill_into(i ? dir : -1);
			assert_int_equal(
				kp_containers_load(&src, &list, 0, &payload, &why),
				KPACK_SUCCESS);
			assert_int_equal(payload.spilled, i);
			assert_int_equal(payload.heap != NULL, !i);
			assert_int_equal(kp_payload_memory(&list.items[0]),
					 i ? 0 : plain.size);
			assert_int_equal(payload.source.size, plain.size);
			assert_int_equal(kp_payload_map(&payload, &map, &why), 0);
			assert_int_equal(map.size, plain.size);
			assert_memory_equal(map.data, plain.data, plain.size);
			kp_payload_fini(&payload);
		}
		/* damage is found in a file, too, which is closed */
		memset(b.data + b.size - 60, 0x55, 60);
		kp_spill_into(dir);
		assert_int_not_equal(kp_containers_load(&src, &list, 0, &payload, &why),
				     KPACK_SUCCESS);
		assert_false(payload.spilled);
		kp_containers_fini(&list);
		kp_spill_into(-1);
	}
	assert_int_equal(open("/dev/null", O_RDONLY | O_CLOEXEC), dir + 1);
	close(dir + 1);
	close(dir);
	bytes_free(&b);
	bytes_free(&plain);
}

TEST(what_cannot_be_written_is_said)
{
	static const struct kp_ccob_form bad[] = {
		{.version = 0, .method = 1},
		{.version = 4, .method = 1},
		{.version = 3, .method = 2},
		{.version = 3, .method = 1, .level = 23},
		{.version = 3, .method = 0, .level = 10},
		{.version = 3, .method = 1, .level = -1},
	};
	struct kp_ccob_form none = {.version = 3, .method = 2};
	uint8_t *out = NULL;
	size_t size;

	for (size_t i = 0; i < COUNT(bad); i++)
		assert_false(kp_ccob_form_ok(&bad[i]));
	assert_int_equal(kp_ccob_encode(&none, kp_span_str("x"), &out, &size, &why),
			 KPACK_ERROR_NOT_IMPLEMENTED);
	assert_null(out);
#if !KP_WITH_ZLIB
	none.method = 0;
	assert_int_equal(kp_ccob_encode(&none, kp_span_str("x"), &out, &size, &why),
			 KPACK_ERROR_NOT_IMPLEMENTED);
#endif
}
