/* SPDX-License-Identifier: MIT */
#include "core/format/nest.h"
#include "tests/unit/exact_copy.h"
#include "tests/unit/unit.h"
#include <inttypes.h>
#include <stdio.h>
#include "tests/unit/elf_builder.h"
#include "core/base/bounds.h"

#define HOST "host-x86_64-unknown-linux-gnu-"
#define GFX(target) "hipv4-amdgcn-amd-amdhsa--" target
#define TYPE_OFFLOADING 0x6fff4c0b

static struct kpackx_error why;

/* ---- printing the tree ---- */

struct text {
	char data[16384];
	size_t size;
};

static void say(struct text *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static void say(struct text *t, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	t->size += (size_t)vsnprintf(t->data + t->size, sizeof(t->data) - t->size, fmt,
				     args);
	va_end(args);
	assert_true(t->size < sizeof(t->data));
}

static void say_containers(struct text *t, const struct kp_containers *list, size_t i,
			   int depth);

static void say_image(struct text *t, const struct kp_containers *list, size_t i,
		      int depth)
{
	const struct kp_image *image = &list->images[i];

	say(t, "%*s%s%s%s%s%s%s%s\n", depth, "", image->id ? image->id : "-",
	    *image->kind ? " kind=" : "", image->kind, *image->arch ? " arch=" : "",
	    image->arch, image->host ? " host" : "", image->stream ? " stream" : "");
	say_containers(t, list, image->inside, depth + 1);
}

static void say_containers(struct text *t, const struct kp_containers *list, size_t i,
			   int depth)
{
	for (; i != KP_NOWHERE; i = list->items[i].next) {
		const struct kp_container *c = &list->items[i];

		say(t, "%*s[%s]\n", depth, "", c->format->name);
		for (size_t k = 0; k < c->n_images; k++) {
			assert_int_equal(list->images[c->first_image + k].container, i);
			say_image(t, list, c->first_image + k, depth + 1);
		}
	}
}

/* Every container can be loaded, and its images lie within it. */
static void load_all(const struct kp_source *src, const struct kp_containers *list)
{
	struct kp_payload payload;
	uint8_t byte;

	for (size_t i = 0; i < list->count; i++) {
		const struct kp_container *c = &list->items[i];

		if (kp_containers_load(src, list, i, &payload, &why))
			fail_msg("%s", why.text);
		assert_int_equal(payload.source.size, c->payload_size);
		for (size_t k = c->first_image; k < c->first_image + c->n_images; k++) {
			const struct kp_image *image = &list->images[k];

			assert_true(
				kp_range_ok(c->payload_size, image->offset, image->size));
			if (image->size)
				assert_int_equal(kp_source_read(&payload.source,
								image->offset, &byte, 1,
								&why),
						 KPACK_SUCCESS);
		}
		kp_payload_fini(&payload);
	}
}

static void on_fault(void *arg, const struct kp_containers *list, size_t image,
		     const struct kpackx_error *fault)
{
	say(arg, "fault in %s: %s\n",
	    image == KP_NOWHERE ? "the source" : list->images[image].id, fault->text);
}

static void scan(const struct bytes *b, struct text *t)
{
	struct kp_source src = exact_copy(b->data, b->size);
	struct kp_containers list;

	t->size = 0;
	t->data[0] = '\0';
	if (kp_nest_scan(&src, on_fault, t, &list, &why))
		fail_msg("%s", why.text);
	say_containers(t, &list, list.count ? 0 : KP_NOWHERE, 0);
	load_all(&src, &list);
	kp_containers_fini(&list);
	exact_copy_free(&src);
}

static void assert_tree(const struct bytes *b, const char *expected)
{
	struct text t;

	scan(b, &t);
	assert_string_equal(t.data, expected);
}

static void assert_strict(const struct bytes *b, kpack_error_t code, const char *reason)
{
	struct kp_source src = kp_source_memory(b->data, b->size);
	struct kp_containers list;

	assert_int_equal(kp_nest_scan(&src, NULL, NULL, &list, &why), code);
	if (code && !strstr(why.text, reason))
		fail_msg("\"%s\" is not in \"%s\"", reason, why.text);
	if (code)
		assert_null(list.items);
	kp_containers_fini(&list);
}

/* ---- parts of trees ---- */

static struct bytes bundle(const char *id, struct kp_span object)
{
	struct bytes b = {0};

	put(&b, "__CLANG_OFFLOAD_BUNDLE__", 24);
	put_number(&b, 2, 8);
	put_number(&b, 4096, 8);
	put_number(&b, 0, 8);
	put_number(&b, strlen(HOST), 8);
	put(&b, HOST, strlen(HOST));
	put_number(&b, 4096, 8);
	put_number(&b, object.size, 8);
	put_number(&b, strlen(id), 8);
	put(&b, id, strlen(id));
	put_zeros(&b, 4096 - b.size);
	put(&b, object.data, object.size);
	return b;
}

static struct bytes ccob(struct kp_span plain)
{
	struct bytes b = {0};

	put_ccob(&b, 3, 1, plain);
	return b;
}

static struct bytes code_object(void)
{
	struct elf_file f = elf_build(ET_DYN, EM_AMDGPU, NULL, 0);

	f.bytes.data[EI_OSABI] = 64;
	f.bytes.data[EI_ABIVERSION] = 4;
	kp_put_le32(f.bytes.data + offsetof(Elf64_Ehdr, e_flags), 0x41); /* gfx1100 */
	return f.bytes;
}

/* An offload binary of one image without strings, version 1. */
static struct bytes offload_binary(struct kp_span object)
{
	struct bytes b = {0};
	uint64_t size = 80 + round_up(object.size, 8);

	put(&b, "\x10\xff\x10\xad\1\0\0\0", 8);
	put_number(&b, size, 8);
	put_number(&b, 32, 8);
	put_number(&b, 40, 8);
	put_number(&b, 1, 2); /* an object */
	put_number(&b, 4, 2); /* HIP */
	put_number(&b, 0, 4);
	put_number(&b, 72, 8);
	put_number(&b, 0, 8);
	put_number(&b, 80, 8);
	put_number(&b, object.size, 8);
	put_zeros(&b, 8);
	put(&b, object.data, object.size);
	put_padding(&b, 8);
	return b;
}

static struct bytes empty_archive(void)
{
	struct bytes b = {0};

	put(&b, "!<arch>\n", 8);
	return b;
}

static void add_member(struct bytes *ar, const char *name, struct kp_span content)
{
	char header[61];

	snprintf(header, sizeof(header), "%-16s%-12s%-6s%-6s%-8s%-10zu`\n", name, "0",
		 "0", "0", "644", content.size);
	put(ar, header, 60);
	put(ar, content.data, content.size);
	if (content.size & 1)
		put(ar, "\n", 1);
}

static struct bytes host_object(const struct section *sections, size_t n)
{
	return elf_build(ET_REL, EM_X86_64, sections, n).bytes;
}

static struct bytes host_with(const char *name, uint32_t type, struct kp_span content)
{
	const struct section sections[] = {{name, type, 0, 0, content, 0, 0, 0}};

	return host_object(sections, 1);
}

/* ---- trees ---- */

/* A static library of fat objects of each kind. */
TEST(a_library_is_a_tree)
{
	struct bytes co = code_object(), b = bundle(GFX("gfx1100"), bytes_span(&co));
	struct bytes z = ccob(bytes_span(&b)), off = offload_binary(bytes_span(&co));
	struct bytes stream = {0}, both = {0}, fat, ar = empty_archive();

	put_zeros(&stream, 16);
	put(&stream, b.data, b.size);
	put_padding(&stream, 4096);
	put(&stream, z.data, z.size);
	put_zeros(&stream, 5);
	put(&both, off.data, off.size);
	put(&both, off.data, off.size);
	const struct section sections[] = {
		{".text", SHT_PROGBITS, 0, 0, {(const uint8_t *)"x", 1}, 0, 0, 0},
		{".hip_fatbin", SHT_PROGBITS, 0, 0, bytes_span(&stream), 0, 0, 0},
		{"__CLANG_OFFLOAD_BUNDLE__" HOST,
		 SHT_PROGBITS,
		 0,
		 0,
		 {(const uint8_t *)"", 1},
		 0,
		 0,
		 0},
		{"__CLANG_OFFLOAD_BUNDLE__hip-amdgcn-amd-amdhsa--gfx900",
		 SHT_PROGBITS,
		 0,
		 0,
		 {(const uint8_t *)"BC\xc0\xde", 4},
		 0,
		 0,
		 0},
		{"any name", TYPE_OFFLOADING, 0, 0, bytes_span(&both), 0, 0, 0},
		{".nv_fatbin", SHT_NOBITS, 0, 0, {NULL, 100}, 0, 0, 0},
		{"__nv_relfatbin", SHT_PROGBITS, 0, 0, {NULL, 0}, 0, 0, 0},
	};
	fat = host_object(sections, COUNT(sections));
	add_member(&ar, "fat.o/", bytes_span(&fat));
	add_member(&ar, "hip-a-b-c--gfx9/", bytes_span(&z));
	add_member(&ar, "co.o/", bytes_span(&co));
	add_member(&ar, "text/", kp_span_str("odd"));
	add_member(&ar, "empty/", kp_span_str(""));
	assert_tree(
		&ar,
		"[archive]\n"
		" fat.o\n"
		"  [elf]\n"
		"   .hip_fatbin kind=hip stream\n"
		"    [bundle]\n"
		"     " HOST " kind=host host\n"
		"     " GFX(
			"gfx1100") " kind=hipv4 arch=gfx1100\n"
				   "    [ccob]\n"
				   "     " HOST " kind=host host\n"
				   "     " GFX(
					   "gfx1100") " kind=hipv4 arch=gfx1100\n"
						      "   " HOST " kind=host host\n"
						      "   hip-amdgcn-amd-amdhsa--gfx900 "
						      "kind=hip arch=gfx900\n"
						      "   any name stream\n"
						      "    [offload-binary]\n"
						      "     - kind=hip\n"
						      "    [offload-binary]\n"
						      "     - kind=hip\n"
						      " hip-a-b-c--gfx9\n"
						      "  [ccob]\n"
						      "   " HOST " kind=host host\n"
						      "   " GFX(
							      "gfx1100") " kind=hipv4 "
									 "arch=gfx1100\n"
									 " co.o\n"
									 " text\n"
									 " empty\n");
	assert_strict(&ar, KPACK_SUCCESS, "");
	bytes_free(&co);
	bytes_free(&b);
	bytes_free(&z);
	bytes_free(&off);
	bytes_free(&stream);
	bytes_free(&both);
	bytes_free(&fat);
	bytes_free(&ar);
}

/*
 * Compressed containers in compressed ones, and an offload binary that holds one; all are
 * read through both layers.
 */
TEST(compressed_containers_nest)
{
	struct bytes co = code_object(), inner = bundle(GFX("gfx1100"), bytes_span(&co));
	struct bytes z = ccob(bytes_span(&inner)), off = offload_binary(bytes_span(&z));
	struct bytes outer = bundle(GFX("gfx900"), bytes_span(&off));
	struct bytes zz = ccob(bytes_span(&outer));

	assert_tree(
		&zz,
		"[ccob]\n"
		" " HOST " kind=host host\n"
		" " GFX("gfx900") " kind=hipv4 arch=gfx900\n"
				  "  [offload-binary]\n"
				  "   - kind=hip\n"
				  "    [ccob]\n"
				  "     " HOST " kind=host host\n"
				  "     " GFX("gfx1100") " kind=hipv4 arch=gfx1100\n");
	bytes_free(&co);
	bytes_free(&inner);
	bytes_free(&z);
	bytes_free(&off);
	bytes_free(&outer);
	bytes_free(&zz);
}

/* In a file or a stream an object is a container of its own; elsewhere it is an image. */
TEST(objects_stand_alone)
{
	struct bytes co = code_object(), two = {0}, fat;

	assert_tree(&co, "[code-object]\n - arch=gfx1100\n");
	put(&two, co.data, co.size);
	put_zeros(&two, 4096 - two.size % 4096);
	put(&two, co.data, co.size);
	assert_tree(&two, "[code-object]\n - arch=gfx1100\n"
			  "[code-object]\n - arch=gfx1100\n");
	fat = host_with(".hip_fatbin", SHT_PROGBITS, bytes_span(&two));
	assert_tree(&fat, "[elf]\n .hip_fatbin kind=hip stream\n"
			  "  [code-object]\n   - arch=gfx1100\n"
			  "  [code-object]\n   - arch=gfx1100\n");
	bytes_free(&fat);
	fat = host_with("__CLANG_OFFLOAD_BUNDLE__hip-amdgcn-amd-amdhsa--gfx1100",
			SHT_PROGBITS, bytes_span(&co));
	assert_tree(&fat, "[elf]\n"
			  " hip-amdgcn-amd-amdhsa--gfx1100 kind=hip arch=gfx1100\n");
	bytes_free(&fat);
	bytes_free(&co);
	bytes_free(&two);
}

TEST(other_files_have_none)
{
	static const char *const files[] = {"", "text\n", "\177ELF", "!<arch", "BC"};
	struct bytes b = {0}, plain = host_object(NULL, 0), ar = empty_archive();

	for (size_t i = 0; i < COUNT(files); i++) {
		b.size = 0;
		put(&b, files[i], strlen(files[i]));
		assert_tree(&b, "");
	}
	put_zeros(&b, 100000);
	assert_tree(&b, "");
	assert_tree(&plain, "[elf]\n");
	assert_tree(&ar, "[archive]\n");
	bytes_free(&ar);
	bytes_free(&plain);
	bytes_free(&b);
}

/* Programs can have appended bytes that no header covers. */
TEST(bytes_behind_a_program_are_nobodys)
{
	struct bytes co = code_object(), elf, ar = empty_archive();

	elf = host_with(".hip_fatbin", SHT_PROGBITS, bytes_span(&co));
	put_zeros(&elf, 10);
	put(&elf, "~Module signature appended~\n", 28);
	add_member(&ar, "a.o/", bytes_span(&elf));
	assert_tree(&elf, "[elf]\n .hip_fatbin kind=hip stream\n"
			  "  [code-object]\n   - arch=gfx1100\n");
	assert_tree(&ar, "[archive]\n a.o\n  [elf]\n   .hip_fatbin kind=hip stream\n"
			 "    [code-object]\n     - arch=gfx1100\n");
	bytes_free(&ar);
	bytes_free(&elf);
	bytes_free(&co);
}

/* ---- damage ---- */

TEST(damage_is_reported_and_the_rest_is_read)
{
	struct bytes co = code_object(), b = bundle(GFX("gfx1100"), bytes_span(&co));
	struct bytes stream = {0}, bad, ar = empty_archive();

	put(&stream, b.data, b.size);
	put(&stream, "garbage", 7);
	bad = host_with(".hip_fatbin", SHT_PROGBITS, bytes_span(&stream));
	add_member(&ar, "bad.o/", bytes_span(&bad));
	kp_put_le64(bad.data + offsetof(Elf64_Ehdr, e_shoff), UINT64_MAX / 2);
	add_member(&ar, "worse.o/", bytes_span(&bad));
	b.data[32] = 1; /* where the empty entry lies does not matter */
	b.data[40] = 255;
	add_member(&ar, "cut/", kp_span_head(bytes_span(&b), b.size - 200));
	b.data[40] = 0;
	add_member(&ar, "good/", bytes_span(&b));
	struct text t;

	scan(&ar, &t);
	assert_has(t.data, "fault in .hip_fatbin: offset ");
	assert_has(t.data, "fault in worse.o: elf at offset 0: ");
	assert_has(t.data, "fault in cut: bundle at offset 0: ");
	assert_has(t.data, " bad.o\n  [elf]\n   .hip_fatbin kind=hip stream\n"
			   "    [bundle]\n     " HOST);
	assert_has(t.data, " worse.o\n cut\n good\n  [bundle]\n");
	assert_strict(&ar, KPACK_ERROR_INVALID_FORMAT, "no container begins there");
	bytes_free(&co);
	bytes_free(&b);
	bytes_free(&stream);
	bytes_free(&bad);
	bytes_free(&ar);
}

TEST(thin_archives_are_reported)
{
	struct bytes b = {0};

	put(&b, "!<thin>\n", 8);
	assert_tree(&b, "fault in the source: archive at offset 0: a thin archive: its "
			"members are other files, which are not looked for\n");
	assert_strict(&b, KPACK_ERROR_NOT_IMPLEMENTED, "thin archive");
	bytes_free(&b);
}

TEST(depth_is_bounded)
{
	struct bytes inner = code_object(), outer;
	struct text t;

	for (int i = 0; i <= KP_NEST_MAX; i++) {
		if (i == KP_NEST_MAX) {
			scan(&inner, &t);
			assert_null(strstr(t.data, "fault"));
		}
		outer = empty_archive();
		add_member(&outer, "a/", bytes_span(&inner));
		bytes_free(&inner);
		inner = outer;
	}
	scan(&inner, &t);
	assert_has(t.data, "fault in a: containers are nested deeper than");
	bytes_free(&inner);
}

/* A bundle of N entries that all have the same bytes CONTENT. */
static struct bytes overlapping(size_t n, struct kp_span content)
{
	struct bytes b = {0};
	const char *id = GFX("gfx900");

	put(&b, "__CLANG_OFFLOAD_BUNDLE__", 24);
	put_number(&b, n, 8);
	for (size_t i = 0; i < n; i++) {
		put_number(&b, 32 + n * (24 + strlen(id)), 8);
		put_number(&b, content.size, 8);
		put_number(&b, strlen(id), 8);
		put(&b, id, strlen(id));
	}
	put(&b, content.data, content.size);
	return b;
}

/* Overlapping entries let a small file contain many large ones. */
TEST(work_is_bounded)
{
	struct bytes filler = {0}, inner, outer, all;

	put(&filler, "leaf", 4);
	filler.data = realloc(filler.data, 64 << 20);
	assert_non_null(filler.data);
	memset(filler.data + 4, 1, (64 << 20) - 4);
	filler.size = 64 << 20;
	inner = overlapping(1, bytes_span(&filler));
	bytes_free(&filler);
	outer = overlapping(KP_NEST_WORK_MAX >> 26, bytes_span(&inner));
	bytes_free(&inner);
	all = empty_archive();
	add_member(&all, "a/", bytes_span(&outer));
	bytes_free(&outer);
	assert_strict(&all, KPACK_ERROR_INVALID_FORMAT, "containers in containers have");
	bytes_free(&all);
}

/* A CCOB that claims to decode to SIZE bytes; its data begins like PLAIN. */
static struct bytes boasting_ccob(struct kp_span plain, uint64_t size)
{
	struct bytes b = {0}, data = {0};
	ZSTD_CCtx *z = ZSTD_createCCtx();

	data.size = ZSTD_compressBound(plain.size);
	data.data = malloc(data.size);
	if (!z || !data.data)
		abort();
	ZSTD_CCtx_setParameter(z, ZSTD_c_contentSizeFlag, 0);
	data.size = ZSTD_compress2(z, data.data, data.size, plain.data, plain.size);
	ZSTD_freeCCtx(z);
	put_ccob_header(&b, 3, 1, 32 + (1 << 18), size);
	put(&b, data.data, data.size);
	put_zeros(&b, (1 << 18) - data.size);
	bytes_free(&data);
	return b;
}

/* Decoded bytes of nested containers are in memory at the same time. */
TEST(memory_is_bounded)
{
	struct bytes plain = bundle(GFX("gfx900"), kp_span_str("leaf"));
	struct bytes inner = boasting_ccob(bytes_span(&plain), KP_CCOB_MAX);
	struct bytes outer = bundle(GFX("gfx900"), bytes_span(&inner));
	struct bytes z = ccob(bytes_span(&outer));

	assert_strict(&z, KPACK_ERROR_INVALID_FORMAT, "decoded bytes inside of");
	bytes_free(&plain);
	bytes_free(&inner);
	bytes_free(&outer);
	bytes_free(&z);
}

/* 4096 images in each of 4096 images: the number of images has its own limit. */
TEST(images_are_bounded)
{
	struct bytes inner = overlapping(4096, kp_span_str("leaf")), outer;

	outer = overlapping(4096, bytes_span(&inner));
	assert_strict(&outer, KPACK_ERROR_INVALID_FORMAT, "in all");
	bytes_free(&inner);
	bytes_free(&outer);
}
