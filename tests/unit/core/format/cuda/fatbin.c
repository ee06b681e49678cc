/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"
#include "tests/unit/cuda_vectors.h"
#include "core/base/bounds.h"
#include "core/base/md5.h"

#ifndef KP_WITH_LZ4
#define KP_WITH_LZ4 1
#endif
#if KP_WITH_LZ4
#include <lz4.h>
#endif

/* ---- fatbins made by NVIDIA's tools ---- */

struct expected {
	const char *arch, *kind, *compression;
	size_t size;
	const char *md5;
};

static void assert_md5(const struct bytes *b, const char *md5)
{
	uint8_t digest[16];
	char hex[33];

	kp_md5(span_of(b), digest);
	for (size_t i = 0; i < 16; i++)
		snprintf(hex + 2 * i, 3, "%02x", digest[i]);
	assert_string_equal(hex, md5);
}

static void assert_vector(const char *name, const struct expected *images, size_t n)
{
	struct bytes file = read_vector(name), image;
	struct kp_containers list;

	assert_int_equal(nest(span_of(&file), &list), KPACK_SUCCESS);
	assert_int_equal(list.count, 1);
	assert_ptr_equal(list.items[0].format, &kp_format_fatbin);
	assert_int_equal(list.items[0].size, file.size);
	assert_int_equal(list.n_images, n);
	for (size_t i = 0; i < n; i++) {
		const struct kp_image *m = &list.images[i];
		const char *compression = kp_pairs_find(&m->pairs, "compression");

		assert_string_equal(m->arch, images[i].arch);
		assert_string_equal(m->kind, "cuda");
		assert_null(m->id);
		assert_int_equal(m->size, images[i].size);
		assert_string_equal(kp_pairs_find(&m->pairs, "image kind"),
				    images[i].kind);
		assert_string_equal(compression ? compression : "",
				    images[i].compression);
		image = load_image(&file, &list, i);
		assert_md5(&image, images[i].md5);
		bytes_free(&image);
	}
	kp_containers_fini(&list);
	bytes_free(&file);
}

TEST(what_fatbinary_packed_comes_out)
{
	static const struct expected zstd[] = {{"sm_90a", "cubin", "zstd", 10000,
						"3393493a46b9582101197844b51c249c"},
					       {"sm_75", "cubin", "zstd", 11168,
						"9ec25f2794fd832825554234030d09ec"},
					       {"compute_90a", "ptx", "zstd", 8778,
						"ac510341c3711f93fb72e65e5e28e247"}},
				     blackwell[] = {{"sm_100", "cubin", "zstd", 15184,
						     "39da0297b8c79e4bd6887cfab24ded3b"},
						    {"sm_100a", "cubin", "zstd", 15184,
						     "275ed1ff8e81e9e8fe50220d50a112fe"}},
				     family[] = {{"sm_100f", "cubin", "zstd", 15184,
						  "d70f8872c83f13904b8a133ed269b6b1"},
						 {"sm_121", "cubin", "zstd", 17352,
						  "b6e9d14f1492b008211356076ad3395e"},
						 {"compute_103f", "ptx", "zstd", 8752,
						  "bad8abfb88caccc9758669a90395c8af"}},
				     relocatable[] =
					     {{"sm_90", "cubin", "zstd", 11000,
					       "ecd32cfee670cd356fb14e46b5587106"}},
				     lto[] = {{"lto_90", "lto-ir", "", 2623,
					       "903fdca9a684bc783f601b440eeb5801"}},
				     plain[] = {{"sm_80", "cubin", "", 2984,
						 "d4b3bd0f2e12973460a2201fc9777e5d"},
						{"compute_80", "ptx", "", 85,
						 "b78f9224e78430d4da54ce9b5a55b1e6"}};

	assert_vector("zstd.fatbin", zstd, COUNT(zstd));
	assert_vector("blackwell.fatbin", blackwell, COUNT(blackwell));
	assert_vector("family.fatbin", family, COUNT(family));
	assert_vector("relocatable.fatbin", relocatable, COUNT(relocatable));
	assert_vector("lto.fatbin", lto, COUNT(lto));
	assert_vector("plain.fatbin", plain, COUNT(plain));
}

#if KP_WITH_LZ4
TEST(what_lz4_packed_comes_out)
{
	static const struct expected images[] = {
		{"sm_80", "cubin", "lz4", 8864, "720a1c52b1b1990e6b6a88dc62baff07"},
		{"compute_80", "ptx", "lz4", 8777, "f101683638ea7430cf0096819b433705"}};
	struct bytes file = read_vector("lz4.fatbin");
	struct kp_containers list;

	assert_vector("lz4.fatbin", images, COUNT(images));
	assert_int_equal(nest(span_of(&file), &list), KPACK_SUCCESS);
	assert_string_equal(kp_pairs_find(&list.images[0].pairs, "file"), "vectors.cu");
	assert_null(kp_pairs_find(&list.images[0].pairs, "options"));
	assert_string_equal(kp_pairs_find(&list.images[1].pairs, "options"),
			    "-O3 -lineinfo");
	assert_string_equal(kp_pairs_find(&list.images[1].pairs, "version"), "9.0");
	assert_string_equal(kp_pairs_find(&list.images[1].pairs, "flags"), "0x2011");
	assert_string_equal(kp_pairs_find(&list.images[1].pairs, "stored bytes"), "2946");
	kp_containers_fini(&list);
	bytes_free(&file);
}
#else
TEST(without_lz4_it_is_listed_and_says_so)
{
	struct bytes file = read_vector("lz4.fatbin");
	struct kp_source src = kp_source_memory(file.data, file.size);
	struct kp_containers list = {0};
	struct kp_payload payload;

	assert_int_equal(
		kp_containers_add(&src, 0, &kp_format_fatbin, KP_NOWHERE, &list, &why),
		KPACK_SUCCESS);
	assert_int_equal(list.n_images, 2);
	assert_string_equal(list.images[1].arch, "compute_80");
	assert_int_equal(kp_containers_load(&src, &list, 0, &payload, &why),
			 KPACK_ERROR_NOT_IMPLEMENTED);
	assert_why("entry 0: LZ4: built without LZ4");
	kp_containers_fini(&list);
	bytes_free(&file);
}
#endif

/* ---- handcrafted fatbins ---- */

struct made {
	uint16_t kind;
	uint32_t header, sm; /* header 0: a header of 64 bytes */
	uint64_t flags;
	struct kp_span stored;
	uint64_t compressed, decoded;
};

#define MADE(kind_, sm_, flags_, text)                                                   \
	(struct made)                                                                    \
	{                                                                                \
		.kind = (kind_), .sm = (sm_), .flags = (flags_), .stored = {             \
			(const uint8_t *)(text),                                         \
			sizeof(text) - 1                                                 \
		}                                                                        \
	}

static void put_entry(struct bytes *b, const struct made *e)
{
	size_t room = round_up(e->stored.size, 8);
	uint32_t header = e->header ? e->header : 64;

	put_number(b, e->kind, 2);
	put_number(b, 0x101, 2);
	put_number(b, header, 4);
	put_number(b, room, 8);
	put_number(b, e->compressed, 4);
	put_number(b, 0, 4);
	put_number(b, 3, 2);
	put_number(b, 8, 2);
	put_number(b, e->sm, 4);
	put_zeros(b, 8);
	put_number(b, e->flags, 8);
	put_zeros(b, 8);
	put_number(b, e->decoded, 8);
	put_zeros(b, header < 64 ? 0 : header - 64);
	put(b, e->stored.data, e->stored.size);
	put_zeros(b, room - e->stored.size);
}

static void put_fatbin(struct bytes *b, const struct made *entries, size_t n)
{
	struct bytes all = {0};

	put_zeros(&all, 0);
	for (size_t i = 0; i < n; i++)
		put_entry(&all, &entries[i]);
	put_number(b, 0xba55ed50, 4);
	put_number(b, 1, 2);
	put_number(b, 16, 2);
	put_number(b, all.size, 8);
	put(b, all.data, all.size);
	bytes_free(&all);
}

static void assert_image(const struct bytes *b, const struct kp_containers *list,
			 size_t i, const char *text)
{
	struct bytes image = load_image(b, list, i);

	assert_int_equal(image.size, strlen(text));
	assert_memory_equal(image.data, text, image.size);
	bytes_free(&image);
}

TEST(entries_of_any_kind_are_kept)
{
	struct made entries[] = {MADE(2, 90, 0x100000, "a cubin!"),
				 MADE(1, 100, 0x200000, "some PTX\0\0\0"),
				 MADE(0x40, 80, 0x11, "a thing of 24 bytes     "),
				 MADE(2, 0, 0, "any")};
	static const char *const archs[] = {"sm_90a", "compute_100f", "sm_80", ""};
	struct bytes b = {0};
	struct kp_containers list;

	entries[0].header = 0x48;
	entries[1].header = 0x78;
	entries[2].header = 0x1000;
	put_fatbin(&b, entries, COUNT(entries));
	assert_int_equal(nest(span_of(&b), &list), KPACK_SUCCESS);
	assert_int_equal(list.n_images, COUNT(entries));
	assert_int_equal(list.items[0].payload_size, b.size);
	for (size_t i = 0; i < COUNT(entries); i++)
		assert_string_equal(list.images[i].arch, archs[i]);
	assert_string_equal(kp_pairs_find(&list.images[2].pairs, "image kind"), "0x40");
	assert_string_equal(kp_pairs_find(&list.images[0].pairs, "version"), "8.3");
	assert_image(&b, &list, 0, "a cubin!");
	assert_image(&b, &list, 1, "some PTX");
	assert_image(&b, &list, 2, "a thing of 24 bytes     ");
	kp_containers_fini(&list);
	bytes_free(&b);
}

static struct bytes compressed_with_zstd(struct kp_span plain)
{
	struct bytes out = {0};

	put_zeros(&out, ZSTD_compressBound(plain.size));
	out.size = ZSTD_compress(out.data, out.size, plain.data, plain.size, 3);
	return out;
}

static struct bytes compressed_with_lz4(struct kp_span plain)
{
	struct bytes out = {0};

#if KP_WITH_LZ4
	put_zeros(&out, (size_t)LZ4_compressBound((int)plain.size));
	out.size =
		(size_t)LZ4_compress_default((const char *)plain.data, (char *)out.data,
					     (int)plain.size, (int)out.size);
#else
	put(&out, plain.data, plain.size);
#endif
	return out;
}

static void set_compressed(struct made *e, const struct bytes *stored, uint64_t decoded)
{
	e->stored = span_of(stored);
	e->compressed = stored->size;
	e->decoded = decoded;
}

/* Stored and compressed entries in one container, with offsets in any order. */
TEST(compressed_and_stored_ones_mix)
{
	static const char text[] = ".version 8.0\n.target sm_80\n";
	struct bytes zstd = compressed_with_zstd(
		(struct kp_span){(const uint8_t *)text, sizeof(text)});
	struct made entries[] = {MADE(2, 80, 0, "first 16 bytes.."),
				 MADE(1, 80, 0x8000, ""), MADE(2, 90, 0, "last one")};
	struct kp_containers list;
	struct bytes b = {0};

	set_compressed(&entries[1], &zstd, sizeof(text));
	put_fatbin(&b, entries, COUNT(entries));
	assert_int_equal(nest(span_of(&b), &list), KPACK_SUCCESS);
	assert_int_equal(list.items[0].payload_size, 16 + sizeof(text) + 8);
	assert_image(&b, &list, 0, "first 16 bytes..");
	assert_image(&b, &list, 1, text);
	assert_image(&b, &list, 2, "last one");
	kp_containers_fini(&list);
	bytes_free(&zstd);
	bytes_free(&b);
}

/* A container of the single entry E cannot be read; the message contains TEXT. */
static void assert_not_read(const struct made *e, kpack_error_t code, const char *text)
{
	struct kp_containers list;
	struct bytes b = {0};

	put_fatbin(&b, e, 1);
	assert_int_equal(nest(span_of(&b), &list), code);
	assert_why(text);
	assert_null(list.items);
	bytes_free(&b);
}

TEST(sizes_must_be_true)
{
	static const struct {
		uint64_t flag;
		struct bytes (*compress)(struct kp_span);
		bool built;
	} codecs[] = {{0x8000, compressed_with_zstd, true},
		      {0x2000, compressed_with_lz4, KP_WITH_LZ4}};
	static const uint8_t plain[1000] = "text that compresses well";

	for (size_t i = 0; i < COUNT(codecs); i++) {
		struct bytes stored = codecs[i].compress((struct kp_span){plain, 1000});
		kpack_error_t code = codecs[i].built ? KPACK_ERROR_DECOMPRESSION_FAILED
						     : KPACK_ERROR_NOT_IMPLEMENTED;
		struct made e = MADE(2, 80, codecs[i].flag, "");

		for (uint64_t wrong = 999; wrong <= 1001; wrong += 2) {
			set_compressed(&e, &stored, wrong);
			assert_not_read(&e, code, "entry 0");
		}
		set_compressed(&e, &stored, 1000);
		e.compressed--;
		assert_not_read(&e, code, "entry 0");
		set_compressed(&e, &stored, stored.size * 40000);
		assert_not_read(&e, KPACK_ERROR_INVALID_FORMAT, "cannot come out of");
		e.compressed = round_up(stored.size, 8) + 1;
		assert_not_read(&e, KPACK_ERROR_INVALID_FORMAT, "compressed bytes in");
		bytes_free(&stored);
	}
}

struct noted_fault {
	size_t count, image;
	struct kpackx_error why;
};

static void note_fault(void *arg, const struct kp_containers *list, size_t image,
		       const struct kpackx_error *fault)
{
	struct noted_fault *noted = arg;

	assert_true(list->images[image].damaged);
	noted->count++;
	noted->image = image;
	noted->why = *fault;
}

/* Callers that were notified of the damage skip exactly the damaged images. */
static bool is_damaged(void *arg, size_t number, const struct kpackx_error *fault)
{
	const struct kp_containers *list = arg;

	return list->images[number].damaged;
}

static void assert_salvaged(const struct bytes *b, const char *reason)
{
	struct kp_source src = exact_copy(b->data, b->size);
	struct kp_payload payload;
	struct kp_containers list;
	struct noted_fault noted = {0};

	assert_int_equal(kp_nest_salvage(&src, note_fault, &noted, &list, &why),
			 KPACK_SUCCESS);
	assert_int_equal(list.n_images, 3);
	assert_int_equal(noted.count, 1);
	assert_int_equal(noted.image, 1);
	assert_has(noted.why.text, reason);
	assert_int_equal(kp_container_load_most(&src, &list.items[0], is_damaged, &list,
						&payload, &why),
			 KPACK_SUCCESS);
	assert_memory_equal(payload.source.mem, "first 16 bytes..", 16);
	for (size_t i = 0; i < list.images[1].size; i++)
		assert_int_equal(payload.source.mem[list.images[1].offset + i], 0);
	assert_memory_equal(payload.source.mem + list.images[2].offset, "last one", 8);
	kp_payload_fini(&payload);
	/* for other callers a load succeeds completely or fails */
	list.images[1].damaged = false;
	assert_int_not_equal(kp_container_load_most(&src, &list.items[0], is_damaged,
						    &list, &payload, &why),
			     KPACK_SUCCESS);
	assert_int_not_equal(kp_containers_load(&src, &list, 0, &payload, &why),
			     KPACK_SUCCESS);
	assert_why("entry 1");
	kp_containers_fini(&list);
	assert_int_not_equal(nest(span_of(b), &list), KPACK_SUCCESS);
	free((void *)(uintptr_t)src.mem);
}

TEST(one_damaged_entry_is_not_all)
{
	static const uint8_t plain[3000] = "text that compresses well";
	struct bytes zstd = compressed_with_zstd((struct kp_span){plain, sizeof(plain)});
	struct made entries[] = {MADE(2, 80, 0, "first 16 bytes.."),
				 MADE(2, 80, 0x8000, ""), MADE(2, 90, 0, "last one")};
	struct bytes b = {0};

	set_compressed(&entries[1], &zstd, sizeof(plain) + 1);
	put_fatbin(&b, entries, COUNT(entries));
	assert_salvaged(&b, "3001");
	bytes_free(&b);
	entries[1].flags = 0x4000;
	put_fatbin(&b, entries, COUNT(entries));
	assert_salvaged(&b, "an unknown method");
	bytes_free(&b);
	bytes_free(&zstd);
}

TEST(an_unknown_method_is_said)
{
	struct made e = MADE(2, 80, 0x4000, "whatever");

	e.compressed = 8;
	e.decoded = 20;
	assert_not_read(&e, KPACK_ERROR_NOT_IMPLEMENTED, "an unknown method");
}

TEST(ptx_is_not_decoded_without_bound)
{
	static const uint8_t some[40000] = {1};
	struct made e = {.kind = 1, .sm = 80, .flags = 0x8000};
	struct bytes stored = {0};

	put(&stored, some, sizeof(some));
	set_compressed(&e, &stored, (uint64_t)KP_PTX_MAX + 1);
	assert_not_read(&e, KPACK_ERROR_INVALID_FORMAT, "bytes of PTX");
	e.kind = 2;
	set_compressed(&e, &stored, KP_FATBIN_MAX + 1);
	assert_not_read(&e, KPACK_ERROR_INVALID_FORMAT, "cannot come out of");
	bytes_free(&stored);
}

TEST(headers_are_checked)
{
	struct made e = MADE(2, 80, 0, "whatever");
	struct kp_containers list;
	struct bytes b = {0};

	e.header = 56;
	assert_not_read(&e, KPACK_ERROR_INVALID_FORMAT, "header of 56 bytes");
	e.header = 0;
	put_fatbin(&b, &e, 1);
	b.data[4] = 2;
	assert_int_equal(nest(span_of(&b), &list), KPACK_ERROR_NOT_IMPLEMENTED);
	assert_why("version 2");
	b.data[4] = 1;
	b.data[6] = 15;
	assert_int_equal(nest(span_of(&b), &list), KPACK_ERROR_INVALID_FORMAT);
	b.data[6] = 16;
	kp_put_le64(b.data + 8, UINT64_MAX - 8);
	assert_int_equal(nest(span_of(&b), &list), KPACK_ERROR_INVALID_FORMAT);
	kp_put_le64(b.data + 8, 72);
	kp_put_le64(b.data + 24, UINT64_MAX - 64);
	assert_int_equal(nest(span_of(&b), &list), KPACK_ERROR_INVALID_FORMAT);
	assert_why("pass the end");
	kp_put_le64(b.data + 24, 8);
	kp_put_le32(b.data + 16 + 32, 60); /* a file name at offset 60 */
	kp_put_le32(b.data + 16 + 36, 5);
	assert_int_equal(nest(span_of(&b), &list), KPACK_ERROR_INVALID_FORMAT);
	assert_why("file name of 5 bytes at 60 in a header of 64");
	kp_put_le32(b.data + 16 + 32, 0);
	kp_put_le32(b.data + 16 + 20, 57); /* the options record */
	assert_int_equal(nest(span_of(&b), &list), KPACK_ERROR_INVALID_FORMAT);
	assert_why("options record");
	bytes_free(&b);
}

TEST(no_part_of_a_file_is_more)
{
	struct bytes b = read_vector("zstd.fatbin");
	struct kp_containers list;

	for (size_t size = 0; size < b.size; size++) {
		kpack_error_t err = nest((struct kp_span){b.data, size}, &list);

		assert_int_equal(err,
				 size < 4 ? KPACK_SUCCESS : KPACK_ERROR_INVALID_FORMAT);
		assert_int_equal(list.count, 0);
		kp_containers_fini(&list);
	}
	bytes_free(&b);
}

/* ---- fatbins in host libraries ---- */

/* Linkers concatenate the input's containers, aligned to 8 bytes. */
TEST(libraries_hold_any_number_of_them)
{
	struct made one = MADE(2, 80, 0, "whatever"), none = {0};
	struct bytes all = {0}, image;
	struct section section = {".nv_fatbin", SHT_PROGBITS, 2, 0x1000, {0}, 0, 0, 0};
	struct kp_containers list;
	struct elf_file f;

	put_fatbin(&all, &one, 1);
	put_fatbin(&all, &one, 1);
	put_zeros(&all, 8);
	put_fatbin(&all, &none, 0);
	put_fatbin(&all, &one, 1);
	put_zeros(&all, 24);
	section.content = span_of(&all);
	f = elf_build(ET_DYN, EM_X86_64, &section, 1);
	assert_int_equal(nest(span_of(&f.bytes), &list), KPACK_SUCCESS);
	assert_int_equal(list.count, 5);
	assert_ptr_equal(list.items[0].format, &kp_format_host_elf);
	for (size_t i = 1; i < 5; i++) {
		assert_ptr_equal(list.items[i].format, &kp_format_fatbin);
		assert_int_equal(list.items[i].inside, 0);
		assert_int_equal(list.items[i].n_images, i == 3 ? 0 : 1);
		assert_int_equal(list.items[i].next, i < 4 ? i + 1 : KP_NOWHERE);
	}
	assert_int_equal(list.images[0].inside, 1);
	image = load_image(&f.bytes, &list, 3);
	assert_int_equal(image.size, 8);
	assert_memory_equal(image.data, "whatever", 8);
	bytes_free(&image);
	kp_containers_fini(&list);
	bytes_free(&f.bytes);
	bytes_free(&all);
}
