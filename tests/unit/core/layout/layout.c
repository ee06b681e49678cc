/* SPDX-License-Identifier: MIT */
#include "core/layout/layout.h"
#include "tests/unit/unit.h"
#include <xxhash.h>
#include <zstd.h>
#include "tests/unit/elf_builder.h"
#include "core/layout/internal.h"
#include "core/base/bounds.h"

#ifndef KP_WITH_ZLIB
#define KP_WITH_ZLIB 1
#endif

#define HOST "host-x86_64-unknown-linux-gnu-"
#define GFX(target) "hipv4-amdgcn-amd-amdhsa--" target

static struct kpackx_error why;

static const struct entry three[] = {{HOST, ""},
				     {GFX("gfx90a:xnack+"), "the first object"},
				     {GFX("gfx1100"), "the second"}};

/* ---- test sections, and what is rebuilt from them ---- */

/* A .hip_fatbin section, its layout, and the objects to rebuild the section from. */
struct subject {
	struct bytes section;
	struct kp_fatbin fat;
	struct kp_layout_bytes bytes;
	struct kp_layout layout;
	struct bytes objects[64]; /* one per image */
	bool have[64];
	size_t n_reads;
	struct kp_layout_source source;
	struct kp_layout_plan plan;
	struct bytes again;
};

static kpack_error_t read_object(void *arg, size_t i, void *buf, struct kpackx_error *e)
{
	struct subject *s = arg;

	s->n_reads++;
	assert_true(s->have[i]);
	assert_int_equal(s->objects[i].size, s->layout.images[i].size);
	memcpy(buf, s->objects[i].data, s->objects[i].size);
	return KPACK_SUCCESS;
}

/*
 * Find the containers; wrapper I points to container N - 1 - I, and the first container
 * has no wrapper.
 */
static void scan(struct subject *s)
{
	size_t n;

	s->fat = (struct kp_fatbin){
		.kind = KP_FATBIN_ELF,
		.source = kp_source_memory(s->section.data, s->section.size)};
	if (kp_containers_scan(&s->fat.source, &s->fat.containers, &why))
		fail_msg("%s", why.text);
	n = s->fat.containers.count;
	s->fat.elf.n_wrappers = n ? n - 1 : 0;
	s->fat.wrapper_container = calloc(n + 1, sizeof(ptrdiff_t));
	assert_non_null(s->fat.wrapper_container);
	for (size_t i = 0; i + 1 < n; i++)
		s->fat.wrapper_container[i] = (ptrdiff_t)(n - 1 - i);
}

static void take_objects(struct subject *s)
{
	const struct kp_containers *list = &s->fat.containers;

	assert_true(list->n_images <= COUNT(s->have));
	for (size_t i = 0; i < list->n_images; i++) {
		const struct kp_image *image = &list->images[i];
		struct bytes *to = &s->objects[i];
		struct kp_payload payload;

		s->have[i] = !image->host && image->size;
		assert_int_equal(kp_container_load(&s->fat.source,
						   &list->items[image->container],
						   &payload, &why),
				 KPACK_SUCCESS);
		put_zeros(to, image->size);
		assert_int_equal(kp_source_read(&payload.source, image->offset, to->data,
						image->size, &why),
				 KPACK_SUCCESS);
		kp_payload_fini(&payload);
	}
	s->source = (struct kp_layout_source){s->have, read_object, s};
}

/* Make and parse the layout of SECTION; S takes ownership. */
static void open_subject(struct subject *s, struct bytes section)
{
	*s = (struct subject){.section = section};
	scan(s);
	take_objects(s);
	if (kp_layout_make(&s->fat, NULL, NULL, true, &s->bytes, &why))
		fail_msg("%s", why.text);
	if (kp_layout_parse((struct kp_span){s->bytes.data, s->bytes.size}, &s->layout,
			    &why))
		fail_msg("%s", why.text);
}

static void close_subject(struct subject *s)
{
	kp_layout_plan_fini(&s->plan);
	kp_layout_fini(&s->layout);
	kp_containers_fini(&s->fat.containers);
	free(s->fat.wrapper_container);
	free(s->bytes.data);
	for (size_t i = 0; i < COUNT(s->objects); i++)
		bytes_free(&s->objects[i]);
	bytes_free(&s->again);
	bytes_free(&s->section);
}

/*
 * Write the section to an outfile at [64, 64 + size); nothing may be written elsewhere.
 */
static void write_section(struct subject *s)
{
	struct kp_outfile out = {
		.fd = memfd_create("out", MFD_CLOEXEC), .dir_fd = -1, .name = "out"};
	uint8_t before[64];

	assert_true(out.fd >= 0);
	if (kp_layout_write(&s->layout, &s->plan, &s->source, &out, sizeof(before), &why))
		fail_msg("%s", why.text);
	assert_int_equal(lseek(out.fd, 0, SEEK_END),
			 s->plan.size ? sizeof(before) + s->plan.size : 0);
	bytes_free(&s->again);
	put_zeros(&s->again, s->plan.size);
	assert_int_equal(
		kp_file_pread(out.fd, sizeof(before), s->again.data, s->plan.size, &why),
		KPACK_SUCCESS);
	if (s->plan.size)
		assert_int_equal(pread(out.fd, before, sizeof(before), 0), 64);
	for (size_t i = 0; s->plan.size && i < sizeof(before); i++)
		assert_int_equal(before[i], 0);
	close(out.fd);
}

static void make_again(struct subject *s)
{
	kp_layout_plan_fini(&s->plan);
	if (kp_layout_plan(&s->layout, &s->source, &s->plan, &why))
		fail_msg("%s", why.text);
	write_section(s);
}

/* SECTION is rebuilt identically; takes ownership. */
static void assert_round_trip(struct bytes section)
{
	struct subject s;

	open_subject(&s, section);
	make_again(&s);
	assert_true(s.plan.exact);
	assert_int_equal(s.plan.n_dropped, 0);
	assert_int_equal(s.plan.n_unpacked, 0);
	assert_int_equal(s.plan.n_recompressed, 0);
	assert_int_equal(s.plan.size, s.section.size);
	if (s.section.size)
		assert_memory_equal(s.again.data, s.section.data, s.section.size);
	close_subject(&s);
}

/*
 * Check that s->again has the containers of the section without the missing images, at
 * the offsets that wrappers point to.
 */
static void assert_all_there(struct subject *s)
{
	struct kp_source src = kp_source_memory(s->again.data, s->again.size);
	const struct kp_containers *old = &s->fat.containers;
	struct kp_containers list;
	struct kp_payload payload;
	size_t k = 0;

	if (kp_containers_scan(&src, &list, &why))
		fail_msg("%s", why.text);
	for (size_t i = 0; i < old->n_images; i++) {
		uint8_t buf[4096];

		if (!s->have[i] && old->images[i].size && !old->images[i].host)
			continue;
		assert_true(k < list.n_images);
		const struct kp_image *image = &list.images[k++];
		assert_int_equal(image->size, old->images[i].size);
		assert_int_equal(image->container, old->images[i].container);
		if (image->id)
			assert_string_equal(image->id, old->images[i].id);
		assert_int_equal(kp_container_load(&src, &list.items[image->container],
						   &payload, &why),
				 KPACK_SUCCESS);
		assert_int_equal(kp_source_read(&payload.source, image->offset, buf,
						image->size, &why),
				 KPACK_SUCCESS);
		if (image->size)
			assert_memory_equal(buf, s->objects[i].data, image->size);
		kp_payload_fini(&payload);
	}
	assert_int_equal(k, list.n_images);
	assert_int_equal(list.count, old->count);
	for (size_t c = 0; c < list.count; c++)
		assert_int_equal(list.items[c].offset, s->plan.container_offset[c]);
	for (size_t w = 0; w < s->layout.n_wrappers; w++)
		assert_int_equal(
			s->plan.wrapper_offset[w],
			s->plan.container_offset[s->layout.wrapper_container[w]]);
	kp_containers_fini(&list);
}

/* A bundle entry at a given offset. */
struct placed {
	const char *id;
	uint64_t offset, size;
};

static struct bytes placed_bundle(const struct placed *entries, size_t n, size_t size)
{
	struct bytes b = {0};

	put(&b, "__CLANG_OFFLOAD_BUNDLE__", 24);
	put_number(&b, n, 8);
	for (size_t i = 0; i < n; i++) {
		put_number(&b, entries[i].offset, 8);
		put_number(&b, entries[i].size, 8);
		put_number(&b, strlen(entries[i].id), 8);
		put(&b, entries[i].id, strlen(entries[i].id));
	}
	assert_true(b.size <= size);
	put_zeros(&b, size - b.size);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < entries[i].size; k++)
			b.data[entries[i].offset + k] =
				(uint8_t)(1 + (entries[i].offset + k) * 7 % 255);
	return b;
}

static struct elf_file code_object(void)
{
	static const struct section sections[] = {{".text",
						   SHT_PROGBITS,
						   6,
						   0x1000,
						   {(const uint8_t *)"program!", 8},
						   0,
						   0,
						   0}};
	struct elf_file f = elf_build(ET_DYN, EM_AMDGPU, sections, COUNT(sections));

	f.bytes.data[EI_OSABI] = 64;
	f.bytes.data[EI_ABIVERSION] = 4;
	kp_put_le32(f.bytes.data + offsetof(Elf64_Ehdr, e_flags), 0x53f);
	return f;
}

/* ---- identical rebuilds ---- */

TEST(bundles_of_any_alignment_come_back)
{
	static const size_t aligns[] = {1, 3, 8, 16, 4096};

	for (size_t i = 0; i < COUNT(aligns); i++) {
		struct bytes b = {0};

		put_bundle(&b, three, 3, aligns[i]);
		assert_round_trip(b);
	}
}

/* Three containers aligned to ALIGN, each with other architectures. */
static struct bytes unequal(size_t align)
{
	static const struct entry two[] = {{GFX("gfx1201"), "only here"},
					   {GFX("gfx1100"), "here too"}};
	struct bytes b = {0};

	put_bundle(&b, three, 3, align);
	put_padding(&b, align);
	put_bundle(&b, two, 2, align);
	put_padding(&b, align);
	put_bundle(&b, three + 1, 2, align);
	put_zeros(&b, 100);
	return b;
}

TEST(several_containers_come_back)
{
	assert_round_trip(unequal(4096));
	assert_round_trip(unequal(16));
}

TEST(sections_without_entries_come_back)
{
	struct bytes b = {0};

	assert_round_trip(b);
	put_zeros(&b, 5000);
	assert_round_trip(b);
	b = (struct bytes){0};
	put_bundle(&b, NULL, 0, 1);
	put_bundle(&b, NULL, 0, 1);
	assert_round_trip(b);
}

TEST(bytes_of_the_host_come_back)
{
	static const struct entry entries[] = {{GFX("gfx90a"), "device"},
					       {HOST, "bytes of the host"},
					       {"host-aarch64-unknown-linux", "more"}};
	struct bytes b = {0};

	put_bundle(&b, entries, 3, 64);
	assert_round_trip(b);
}

TEST(odd_bundles_come_back)
{
	static const struct placed out_of_order[] = {{GFX("gfx90a"), 500, 40},
						     {GFX("gfx1100"), 300, 60},
						     {GFX("gfx1201"), 400, 50}};
	static const struct placed shared[] = {{GFX("gfx90a"), 300, 100},
					       {GFX("gfx90a:xnack+"), 300, 100},
					       {GFX("gfx1100"), 350, 100},
					       {GFX("gfx1201"), 360, 10}};
	static const struct placed empty[] = {{HOST, 1 << 20, 0},
					      {GFX("gfx90a"), 256, 9},
					      {GFX("gfx1100"), 0, 0},
					      {GFX("gfx1201"), UINT64_MAX, 0}};

	assert_round_trip(placed_bundle(out_of_order, 3, 540));
	assert_round_trip(placed_bundle(shared, 4, 450));
	assert_round_trip(placed_bundle(empty, 4, 265));
}

TEST(what_lies_between_entries_comes_back)
{
	static const struct placed entries[] = {{GFX("gfx90a"), 1000, 10},
						{GFX("gfx1100"), 300, 10}};
	struct bytes b = placed_bundle(entries, 2, 1010);

	b.data[299] = 1;
	b.data[500] = 2;
	b.data[510] = 3;
	b.data[999] = 4;
	assert_round_trip(b);
}

TEST(a_code_object_comes_back)
{
	struct elf_file f = code_object();
	struct bytes b = {0};

	put_zeros(&b, 16);
	put(&b, f.bytes.data, f.bytes.size);
	put_padding(&b, 16);
	put_bundle(&b, three, 3, 16);
	bytes_free(&f.bytes);
	assert_round_trip(b);
}

static struct bytes compressed(unsigned version, unsigned method)
{
	struct bytes plain = unequal(4096), b = {0};

	/* bytes after the first bundle belong to none of its entries */
	put_ccob(&b, version, method, bytes_span(&plain));
	put_padding(&b, 4096);
	bytes_free(&plain);
	put_bundle(&plain, three, 3, 4096);
	put_ccob(&b, version, method, bytes_span(&plain));
	bytes_free(&plain);
	return b;
}

TEST(compressed_containers_come_back)
{
	for (unsigned version = 1; version <= 3; version++) {
		for (unsigned method = !KP_WITH_ZLIB; method <= 1; method++) {
			struct bytes b = compressed(version, method);

			b.data[kp_ccob_header_size(version) - 5] = 0xab; /* the hash */
			assert_round_trip(b);
		}
	}
}

TEST(every_level_is_found)
{
	struct bytes plain = {0};
	static char noise[300001];
	struct entry e = {GFX("gfx90a"), noise};
	uint32_t x = 1;

	for (size_t i = 0; i + 1 < sizeof(noise); i++) {
		x = x * 1664525 + 1013904223;
		noise[i] = (char)('a' + (x >> 27));
	}
	put_bundle(&plain, &e, 1, 4096);
	for (int level = 1; level <= 22; level += 7) {
		struct kp_ccob_form form = {3, KP_CCOB_ZSTD, 7, level, level % 2};
		struct bytes b = {0};

		assert_int_equal(
			kp_ccob_encode(&form, bytes_span(&plain), &b.data, &b.size, &why),
			KPACK_SUCCESS);
		assert_round_trip(b);
	}
	bytes_free(&plain);
}

/* ---- hashes ---- */

TEST(known_objects_are_not_read)
{
	struct subject s, blind;
	uint8_t xxh3[64][16];
	bool known[64];

	open_subject(&s, unequal(64));
	for (size_t i = 0; i < s.layout.n_images; i++) {
		known[i] = s.layout.images[i].has_xxh3;
		memcpy(xxh3[i], s.layout.images[i].xxh3, KP_LAYOUT_HASH);
	}
	blind = (struct subject){.section = unequal(64)};
	scan(&blind);
	for (size_t i = 0; i < s.layout.n_images; i++) {
		const struct kp_image *image = &blind.fat.containers.images[i];

		memset(blind.section.data +
			       blind.fat.containers.items[image->container].offset +
			       image->offset,
		       0xee, image->size);
	}
	assert_int_equal(kp_layout_make(&blind.fat, (const uint8_t(*)[16])xxh3, known,
					false, &blind.bytes, &why),
			 KPACK_SUCCESS);
	assert_int_equal(blind.bytes.size, s.bytes.size);
	assert_memory_equal(blind.bytes.data, s.bytes.data, s.bytes.size);
	close_subject(&blind);
	close_subject(&s);
}

TEST(what_is_not_packed_has_no_hash)
{
	static const uint8_t xxh3[16][16];
	static const bool known[16];
	struct subject s;

	open_subject(&s, unequal(64));
	free(s.bytes.data);
	kp_layout_fini(&s.layout);
	assert_int_equal(kp_layout_make(&s.fat, xxh3, known, false, &s.bytes, &why),
			 KPACK_SUCCESS);
	assert_int_equal(kp_layout_parse((struct kp_span){s.bytes.data, s.bytes.size},
					 &s.layout, &why),
			 KPACK_SUCCESS);
	for (size_t i = 0; i < s.layout.n_images; i++)
		assert_false(s.layout.images[i].has_xxh3);
	/* rebuilding still works, but cannot verify that the result is exact */
	make_again(&s);
	assert_false(s.plan.exact);
	assert_memory_equal(s.again.data, s.section.data, s.section.size);
	close_subject(&s);
}

TEST(images_say_what_they_were)
{
	struct subject s;

	open_subject(&s, unequal(16));
	assert_int_equal(s.layout.size, s.section.size);
	assert_int_equal(s.layout.n_containers, 3);
	assert_int_equal(s.layout.n_images, 7);
	for (size_t i = 0; i < s.layout.n_images; i++) {
		const struct kp_image *image = &s.fat.containers.images[i];
		const struct kp_layout_image *got = &s.layout.images[i];
		XXH128_canonical_t hash;

		assert_string_equal(got->id, image->id);
		assert_string_equal(got->arch, image->arch);
		assert_int_equal(got->host, image->host);
		assert_int_equal(got->container, image->container);
		assert_int_equal(got->size, image->size);
		assert_int_equal(got->has_xxh3, image->size > 0);
		XXH128_canonicalFromHash(
			&hash, XXH3_128bits(s.objects[i].data, s.objects[i].size));
		if (got->has_xxh3)
			assert_memory_equal(got->xxh3, hash.digest, KP_LAYOUT_HASH);
	}
	/* two wrappers, in reverse order; the first container is numbered after them */
	assert_int_equal(s.layout.n_wrappers, 2);
	assert_int_equal(kp_layout_index(&s.layout, 0), 2);
	assert_int_equal(kp_layout_index(&s.layout, 1), 1);
	assert_int_equal(kp_layout_index(&s.layout, 2), 0);
	close_subject(&s);
}

TEST(a_large_library_has_a_small_layout)
{
	static const char *const ids[] = {
		HOST,
		GFX("gfx1030"),
		GFX("gfx803"),
		GFX("gfx900:xnack-"),
		GFX("gfx906:xnack-"),
		GFX("gfx908:xnack-"),
		GFX("gfx90a:xnack+"),
		GFX("gfx90a:xnack-"),
	};
	struct subject s = {0};
	static char object[3000];
	struct entry entries[COUNT(ids)];

	memset(object, 'x', sizeof(object) - 1);
	for (size_t i = 0; i < COUNT(ids); i++)
		entries[i] = (struct entry){ids[i], i ? object : ""};
	for (size_t i = 0; i < 111; i++) {
		put_padding(&s.section, 4096);
		put_bundle(&s.section, entries, COUNT(ids), 4096);
	}
	scan(&s);
	assert_int_equal(kp_layout_make(&s.fat, NULL, NULL, true, &s.bytes, &why),
			 KPACK_SUCCESS);
	assert_true(s.bytes.size < 7000);
	close_subject(&s);
}

/* ---- missing objects ---- */

TEST(missing_objects_are_left_out)
{
	struct subject s;

	for (size_t align = 1; align <= 4096; align *= 16) {
		open_subject(&s, unequal(align));
		s.have[2] = s.have[3] = s.have[5] = false;
		make_again(&s);
		assert_false(s.plan.exact);
		assert_int_equal(s.plan.n_dropped, 3);
		assert_int_equal(s.plan.size, s.section.size);
		assert_all_there(&s);
		for (size_t c = 0; c < 3; c++)
			assert_int_equal(s.plan.container_offset[c],
					 s.fat.containers.items[c].offset);
		/* objects keep their alignment */
		struct kp_source src = kp_source_memory(s.again.data, s.again.size);
		struct kp_containers list;
		assert_int_equal(kp_containers_scan(&src, &list, &why), KPACK_SUCCESS);
		for (size_t i = 0; i < list.n_images; i++)
			assert_int_equal(list.images[i].offset % align, 0);
		kp_containers_fini(&list);
		close_subject(&s);
	}
}

TEST(only_the_host_may_remain)
{
	struct subject s;

	open_subject(&s, unequal(16));
	memset(s.have, 0, sizeof(s.have));
	make_again(&s);
	assert_int_equal(s.plan.n_dropped, 6);
	assert_int_equal(s.n_reads, 0);
	assert_all_there(&s);
	close_subject(&s);
}

TEST(what_overlaps_stays_together)
{
	static const struct placed entries[] = {{GFX("gfx90a"), 512, 100},
						{GFX("gfx90a:xnack+"), 512, 100},
						{GFX("gfx1100"), 560, 100},
						{GFX("gfx1030"), 768, 100},
						{GFX("gfx1201"), 320, 100}};
	struct subject s;

	for (unsigned mask = 0; mask < 32; mask++) {
		open_subject(&s, placed_bundle(entries, 5, 868));
		for (size_t i = 0; i < 5; i++)
			s.have[i] = mask >> i & 1;
		make_again(&s);
		assert_int_equal(s.plan.exact, mask == 31);
		assert_int_equal(s.plan.size, s.section.size);
		assert_true(s.plan.places[0].size <= s.section.size);
		assert_all_there(&s);
		close_subject(&s);
	}
}

TEST(a_compressed_bundle_is_compressed_again)
{
	struct subject s;

	for (unsigned version = 1; version <= 3; version++) {
		for (unsigned method = !KP_WITH_ZLIB; method <= 1; method++) {
			struct kp_container c;
			struct kp_ccob_form form;

			open_subject(&s, compressed(version, method));
			s.have[1] = s.have[5] = false;
			make_again(&s);
			assert_int_equal(s.plan.n_dropped, 2);
			assert_int_equal(s.plan.n_unpacked, 0);
			assert_true(s.plan.places[1].encoded);
			assert_all_there(&s);
			c = s.fat.containers.items[0];
			struct kp_source src =
				kp_source_memory(s.again.data, s.again.size);
			assert_int_equal(kp_ccob_form_read(&src, &c, &form, &why),
					 KPACK_SUCCESS);
			assert_int_equal(form.version, version);
			assert_int_equal(form.method, method);
			assert_int_not_equal(form.hash, 0); /* the builder's */
			close_subject(&s);
		}
	}
}

TEST(a_missing_code_object_leaves_nothing)
{
	struct elf_file f = code_object();
	struct bytes b = {0};
	struct subject s;

	put_bundle(&b, three, 3, 16);
	put_padding(&b, 16);
	put(&b, f.bytes.data, f.bytes.size);
	bytes_free(&f.bytes);
	open_subject(&s, b);
	assert_int_equal(s.layout.n_wrappers, 1);
	s.have[3] = false;
	make_again(&s);
	assert_int_equal(s.plan.n_dropped, 1);
	assert_true(s.plan.wrapper_offset[0] == KP_LAYOUT_NOWHERE);
	assert_true(s.plan.container_offset[1] == KP_LAYOUT_NOWHERE);
	assert_int_equal(s.plan.size, s.section.size);
	for (size_t i = s.fat.containers.items[1].offset; i < s.again.size; i++)
		assert_int_equal(s.again.data[i], 0);
	close_subject(&s);
}

/* ---- compression that cannot be reproduced ---- */

/* A section of two CCOBs of PLAIN that no level makes: their frames have checksums. */
static struct bytes foreign_of(const struct bytes *plain, int level)
{
	ZSTD_CCtx *ctx = ZSTD_createCCtx();
	size_t cap = ZSTD_compressBound(plain->size), n;
	uint8_t *frame = malloc(cap);
	struct bytes b = {0};

	assert_non_null(frame);
	ZSTD_CCtx_setParameter(ctx, ZSTD_c_checksumFlag, 1);
	ZSTD_CCtx_setParameter(ctx, ZSTD_c_compressionLevel, level);
	n = ZSTD_compress2(ctx, frame, cap, plain->data, plain->size);
	ZSTD_freeCCtx(ctx);
	for (unsigned i = 0; i < 2; i++) {
		put_padding(&b, 16);
		put_ccob_header(&b, 3, 1, 32 + n, plain->size);
		put(&b, frame, n);
	}
	free(frame);
	return b;
}

static struct bytes foreign(struct bytes *plain)
{
	put_bundle(plain, three, 3, 4096);
	return foreign_of(plain, 3);
}

/* Container C of what was written is a CCOB with the bytes PLAIN. */
static void assert_compressed(struct subject *s, size_t c, const struct bytes *plain)
{
	uint64_t offset = s->plan.container_offset[c];
	struct kp_source src = kp_source_memory(s->again.data, s->again.size);
	struct kp_container found;
	struct kp_ccob_form form;
	struct kp_payload payload;

	assert_int_equal(kp_ccob_measure(&src, offset, &found, &why), KPACK_SUCCESS);
	assert_int_equal(found.payload_size, plain->size);
	assert_int_equal(kp_ccob_form_read(&src, &found, &form, &why), KPACK_SUCCESS);
	assert_true(form.hash == s->layout.containers[c].form.hash);
	assert_int_equal(kp_container_load(&src, &found, &payload, &why), KPACK_SUCCESS);
	assert_memory_equal(payload.heap, plain->data, plain->size);
	kp_payload_fini(&payload);
}

TEST(what_no_level_makes_is_compressed_again)
{
	struct bytes plain = {0};
	struct subject s;

	open_subject(&s, foreign(&plain));
	for (size_t i = 0; i < 2; i++) {
		/* the likeliest parameters, and the hash by which to know better */
		assert_int_equal(s.layout.containers[i].form.level, 3);
		assert_true(s.layout.containers[i].form.long_range);
		assert_int_not_equal(kp_le64(s.layout.containers[i].xxh3), 0);
	}
	make_again(&s);
	assert_false(s.plan.exact);
	assert_int_equal(s.plan.n_recompressed, 2);
	assert_int_equal(s.plan.n_unpacked, 0);
	assert_int_equal(s.plan.n_dropped, 0);
	assert_int_equal(s.plan.size, s.section.size);
	for (size_t i = 0; i < 2; i++)
		assert_compressed(&s, i, &plain);
	assert_all_there(&s);
	/* without an object it is not expected to have its bytes */
	s.have[2] = s.have[5] = false;
	make_again(&s);
	assert_int_equal(s.plan.n_recompressed, 0);
	assert_int_equal(s.plan.n_dropped, 2);
	assert_all_there(&s);
	bytes_free(&plain);
	close_subject(&s);
}

/* Where the likeliest level needs more room than there was, a higher one is taken. */
TEST(what_is_compressed_again_fits)
{
	static char object[60001];
	const struct entry e[] = {{HOST, ""}, {GFX("gfx90a"), object}};
	struct bytes plain = {0};
	uint32_t random = 1, from = 0;
	struct subject s;

	for (size_t i = 0; i + 1 < sizeof(object); i++) {
		random = random * 1664525 + 1013904223;
		/* with repetitions that a higher level finds more of */
		object[i] = i < 9000 ? (char)(0x40 | (random >> 24 & 0x17))
				     : object[from + i % 13];
		from = i % 13 == 12 ? random >> 8 & 8191 : from;
	}
	put_bundle(&plain, e, 2, 16);
	open_subject(&s, foreign_of(&plain, 9));
	assert_int_equal(s.layout.containers[0].form.level, 3);
	make_again(&s);
	assert_int_equal(s.plan.n_recompressed, 2);
	assert_int_not_equal(s.plan.places[0].level, 0);
	assert_int_equal(s.plan.size, s.section.size);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(s.plan.container_offset[i],
				 s.layout.containers[i].offset);
		assert_compressed(&s, i, &plain);
	}
	bytes_free(&plain);
	close_subject(&s);
}

/* As open_subject, but containers are kept, and the layout is read as from a file. */
static void open_kept(struct subject *s, struct bytes section)
{
	struct kp_source src;

	open_subject(s, section);
	kp_layout_fini(&s->layout);
	free(s->bytes.data);
	assert_int_equal(kp_layout_make(&s->fat, NULL, NULL,
					KP_LAYOUT_COMPUTE | KP_LAYOUT_KEEP, &s->bytes,
					&why),
			 KPACK_SUCCESS);
	src = kp_source_memory(s->bytes.data, s->bytes.size);
	assert_int_equal(kp_layout_read(&src, &s->layout, &why), KPACK_SUCCESS);
}

TEST(kept_containers_are_identical)
{
	struct bytes plain = {0};
	struct subject s;

	open_kept(&s, foreign(&plain));
	assert_int_equal(s.bytes.n_kept, 2);
	assert_in_range(s.bytes.kept_size, 100, s.section.size + 100);
	make_again(&s);
	assert_true(s.plan.exact);
	assert_int_equal(s.plan.n_recompressed, 0);
	assert_int_equal(s.plan.size, s.section.size);
	assert_memory_equal(s.again.data, s.section.data, s.section.size);
	/* without an object they are compressed */
	s.have[2] = false;
	make_again(&s);
	assert_false(s.plan.exact);
	assert_int_equal(s.plan.n_dropped, 1);
	assert_int_equal(s.plan.n_recompressed, 0);
	assert_all_there(&s);
	s.have[2] = true;
	/* damage: as if it was not kept */
	s.bytes.data[s.bytes.size - 20] ^= 0x55;
	make_again(&s);
	assert_false(s.plan.exact);
	assert_int_equal(s.plan.n_recompressed, 1);
	assert_memory_equal(s.again.data, s.section.data, s.layout.containers[0].size);
	assert_compressed(&s, 1, &plain);
	/* a map alone has nothing kept */
	kp_layout_fini(&s.layout);
	assert_int_equal(kp_layout_parse((struct kp_span){s.bytes.data, s.bytes.size},
					 &s.layout, &why),
			 KPACK_SUCCESS);
	make_again(&s);
	assert_int_equal(s.plan.n_recompressed, 2);
	bytes_free(&plain);
	close_subject(&s);
}

TEST(kept_bytes_must_be_there)
{
	struct bytes plain = {0};
	struct kp_layout layout;
	struct kp_source cut;
	struct subject s;
	uint8_t *map;
	size_t n;

	open_kept(&s, foreign(&plain));
	for (size_t i = 1; i < s.bytes.kept_size; i += 7) {
		cut = kp_source_memory(s.bytes.data, s.bytes.size - i);
		assert_int_equal(kp_layout_read(&cut, &layout, &why),
				 KPACK_ERROR_INVALID_METADATA);
		assert_has(why.text, "its kept bytes are missing");
	}
	/* earlier versions decompress the whole section, which skips what is kept */
	n = (size_t)ZSTD_getFrameContentSize(s.bytes.data, s.bytes.size);
	map = malloc(n);
	assert_non_null(map);
	assert_int_equal(ZSTD_decompress(map, n, s.bytes.data, s.bytes.size), n);
	free(map);
	bytes_free(&plain);
	close_subject(&s);
}

/* Such a container had no level and no hash before, and no other is possible. */
TEST(an_old_layout_is_compressed_too)
{
	struct bytes plain = {0}, b = {0};
	struct subject s;

	open_subject(&s, foreign(&plain));
	for (size_t i = 0; i < 2; i++) {
		s.layout.containers[i].form.level = 0;
		s.layout.containers[i].form.long_range = false;
	}
	free(s.bytes.data);
	assert_int_equal(kp_layout_encode(&s.layout, &s.bytes, &why), KPACK_SUCCESS);
	kp_layout_fini(&s.layout);
	assert_int_equal(kp_layout_parse((struct kp_span){s.bytes.data, s.bytes.size},
					 &s.layout, &why),
			 KPACK_SUCCESS);
	assert_int_equal(s.layout.containers[0].form.level, 0);
	make_again(&s);
	assert_false(s.plan.exact);
	assert_int_equal(s.plan.n_recompressed, 2);
	for (size_t i = 0; i < 2; i++)
		assert_compressed(&s, i, &plain);
	close_subject(&s);
	/* a method that cannot be written */
	put_ccob(&b, 2, 1, bytes_span(&plain));
	open_subject(&s, b);
	s.layout.containers[0].form.method = 7;
	make_again(&s);
	assert_int_equal(s.plan.n_unpacked, 1);
	assert_memory_equal(s.again.data, plain.data, plain.size);
	bytes_free(&plain);
	close_subject(&s);
}

TEST(another_encoder_is_noticed)
{
	struct bytes plain = {0}, b = {0};
	struct subject s;

	put_bundle(&plain, three, 3, 16);
	for (unsigned i = 0; i < 3; i++) {
		put_padding(&b, 4096);
		put_ccob(&b, 2 + i % 2, 1, bytes_span(&plain));
	}
	put_zeros(&b, 4096);
	open_subject(&s, b);
	s.layout.containers[1].xxh3[3] ^= 1;
	make_again(&s);
	assert_false(s.plan.exact);
	assert_int_equal(s.plan.n_recompressed, 1);
	/* its place has room for it */
	assert_int_equal(s.plan.size, s.section.size);
	assert_int_equal(s.plan.container_offset[1], 4096);
	assert_all_there(&s);
	s.layout.containers[2].form.level = 22;
	s.layout.containers[2].form.long_range = true;
	s.layout.containers[2].size++;
	make_again(&s);
	assert_int_equal(s.plan.n_recompressed, 2);
	assert_int_equal(s.plan.n_unpacked, 0);
	for (size_t i = 0; i < 3; i++)
		assert_compressed(&s, i, &plain);
	bytes_free(&plain);
	close_subject(&s);
}

/* ---- failures ---- */

TEST(another_object_is_refused)
{
	struct kp_outfile out = {
		.fd = memfd_create("out", MFD_CLOEXEC), .dir_fd = -1, .name = "out"};
	struct subject s;

	open_subject(&s, unequal(16));
	assert_int_equal(kp_layout_plan(&s.layout, &s.source, &s.plan, &why),
			 KPACK_SUCCESS);
	s.objects[4].data[0] ^= 1;
	assert_int_equal(kp_layout_write(&s.layout, &s.plan, &s.source, &out, 0, &why),
			 KPACK_ERROR_INVALID_METADATA);
	assert_has(why.text, "image 4 gfx1100: not the object that was");
	close_subject(&s);
	open_subject(&s, compressed(3, 1));
	s.objects[1].data[0] ^= 1;
	assert_int_equal(kp_layout_plan(&s.layout, &s.source, &s.plan, &why),
			 KPACK_ERROR_INVALID_METADATA);
	assert_has(why.text, "image 1 ");
	close_subject(&s);
	close(out.fd);
}

static kpack_error_t fail_object(void *arg, size_t i, void *buf, struct kpackx_error *e)
{
	(void)arg, (void)i, (void)buf;
	return kp_fail(e, KPACK_ERROR_NOT_IMPLEMENTED, "no such luck");
}

TEST(a_failure_to_read_is_passed_on)
{
	struct kp_outfile out = {
		.fd = memfd_create("out", MFD_CLOEXEC), .dir_fd = -1, .name = "out"};
	struct subject s;

	open_subject(&s, compressed(3, 1));
	assert_int_equal(kp_layout_plan(&s.layout, &s.source, &s.plan, &why),
			 KPACK_SUCCESS);
	s.source.read = fail_object;
	assert_int_equal(kp_layout_write(&s.layout, &s.plan, &s.source, &out, 0, &why),
			 KPACK_ERROR_NOT_IMPLEMENTED);
	assert_string_equal(why.text, "container 0: no such luck");
	kp_layout_plan_fini(&s.plan);
	assert_int_equal(kp_layout_plan(&s.layout, &s.source, &s.plan, &why),
			 KPACK_ERROR_NOT_IMPLEMENTED);
	close_subject(&s);
	close(out.fd);
}

/* Making the layout of S fails with CODE, and the message contains TEXT. */
static void assert_not_made(struct subject *s, kpack_error_t code, const char *text)
{
	assert_int_equal(kp_layout_make(&s->fat, NULL, NULL, true, &s->bytes, &why),
			 code);
	assert_has(why.text, text);
	assert_null(s->bytes.data);
	close_subject(s);
}

TEST(what_would_make_it_large_is_refused)
{
	static const struct placed host[] = {{HOST, 128, KP_LAYOUT_INLINE_MAX + 1}};
	static const struct placed far[] = {
		{GFX("gfx90a"), KP_LAYOUT_INLINE_MAX + 99, 1}};
	struct subject s = {
		.section = placed_bundle(host, 1, 128 + KP_LAYOUT_INLINE_MAX + 1)};

	scan(&s);
	assert_not_made(&s, KPACK_ERROR_NOT_IMPLEMENTED,
			"bundle at offset 0: 1048577 bytes more that are in no code");
	s = (struct subject){.section = placed_bundle(far, 1, far[0].offset + 1)};
	memset(s.section.data + 99, 1, far[0].offset - 99);
	scan(&s);
	assert_not_made(&s, KPACK_ERROR_NOT_IMPLEMENTED, "that are in no code");
	s = (struct subject){.section = unequal(16)};
	scan(&s);
	for (size_t i = 0; i < 2; i++) /* as if both images shared their bytes */
		s.fat.containers.images[i].size = KP_LAYOUT_SECTION_MAX / 2 + 1;
	assert_not_made(&s, KPACK_ERROR_NOT_IMPLEMENTED, "device code of more than");
	/* zeros cost nothing */
	assert_round_trip(placed_bundle(far, 1, far[0].offset + 1));
}

TEST(a_wrapper_must_lead_somewhere)
{
	struct subject s = {.section = unequal(16)};

	scan(&s);
	s.fat.wrapper_container[1] = -1;
	assert_not_made(&s, KPACK_ERROR_NOT_IMPLEMENTED, "wrapper 1 leads to no");
}

TEST(a_broken_frame_is_refused)
{
	struct bytes plain = {0}, b = {0};
	struct subject s;

	put_bundle(&plain, three, 3, 4096);
	put_ccob(&b, 3, 1, bytes_span(&plain));
	put_number(&b, 0, 1);
	kp_put_le64(b.data + 8, b.size);
	s = (struct subject){.section = b};
	scan(&s);
	assert_not_made(&s, KPACK_ERROR_DECOMPRESSION_FAILED, "frame");
	bytes_free(&plain);
}

/* ---- hostile layouts ---- */

static kpack_error_t parse(const void *data, size_t size)
{
	uint8_t *copy = malloc(size + !size);
	struct kp_layout l = {.n_images = 77};
	kpack_error_t err;

	assert_non_null(copy);
	if (size)
		memcpy(copy, data, size);
	err = kp_layout_parse((struct kp_span){copy, size}, &l, &why);
	free(copy);
	if (err)
		assert_int_equal(l.n_images, 77);
	else
		kp_layout_fini(&l);
	return err;
}

/* The uncompressed MessagePack of the layout. */
static struct bytes unpacked(const struct subject *s)
{
	struct bytes b = {0};

	put_zeros(&b, (size_t)ZSTD_getFrameContentSize(s->bytes.data, s->bytes.size));
	assert_int_equal(ZSTD_decompress(b.data, b.size, s->bytes.data, s->bytes.size),
			 b.size);
	return b;
}

TEST(a_cut_layout_is_refused)
{
	struct subject s;
	struct bytes b;

	open_subject(&s, compressed(3, 1));
	for (size_t i = 0; i < s.bytes.size; i++)
		assert_int_not_equal(parse(s.bytes.data, i), KPACK_SUCCESS);
	b = unpacked(&s);
	for (size_t i = 0; i < b.size; i++)
		assert_int_not_equal(parse(b.data, i), KPACK_SUCCESS);
	assert_int_equal(parse(b.data, b.size), KPACK_SUCCESS);
	bytes_free(&b);
	close_subject(&s);
}

TEST(a_lying_frame_is_refused)
{
	struct subject s;

	open_subject(&s, unequal(16));
	/* magic, then a descriptor: single segment, content size in 8 bytes */
	static const uint8_t bomb[64] = "\x28\xb5\x2f\xfd\xe0\0\0\0\x10",
			     huge[64] = "\x28\xb5\x2f\xfd\xe0\0\0\0\0\1",
			     none[64] = "\x28\xb5\x2f\xfd\0\x58";
	assert_int_equal(parse(bomb, sizeof(bomb)), KPACK_ERROR_INVALID_METADATA);
	assert_int_equal(parse(huge, sizeof(huge)), KPACK_ERROR_INVALID_METADATA);
	assert_int_equal(parse(none, sizeof(none)), KPACK_ERROR_INVALID_METADATA);
	for (size_t i = 0; i < s.bytes.size; i++) {
		s.bytes.data[i] ^= 0x55;
		(void)parse(s.bytes.data, s.bytes.size);
		s.bytes.data[i] ^= 0x55;
	}
	assert_int_equal(parse(s.bytes.data, s.bytes.size), KPACK_SUCCESS);
	close_subject(&s);
}

/* Gives any bytes as object I, in the size that the layout states. */
static kpack_error_t give_anything(void *arg, size_t i, void *buf, struct kpackx_error *e)
{
	const struct kp_layout *l = arg;

	memset(buf, (int)i, l->images[i].size);
	return KPACK_SUCCESS;
}

/* Plan L and write it; the output is never larger than planned. */
static void apply(struct kp_layout *l)
{
	struct kp_outfile out = {
		.fd = memfd_create("out", MFD_CLOEXEC), .dir_fd = -1, .name = "out"};
	bool *have = calloc(l->n_images + 1, sizeof(*have));
	struct kp_layout_source source = {have, give_anything, l};
	struct kp_layout_plan plan;
	kpack_error_t err;

	assert_non_null(have);
	for (size_t i = 0; i < l->n_images; i++) {
		have[i] = i % 3;
		l->images[i].has_xxh3 = false;
	}
	assert_int_equal(kp_layout_plan(l, &source, &plan, &why), KPACK_SUCCESS);
	err = kp_layout_write(l, &plan, &source, &out, 0, &why);
	if (err)
		fail_msg("%s", why.text);
	assert_int_equal(lseek(out.fd, 0, SEEK_END), plan.size);
	kp_layout_plan_fini(&plan);
	free(have);
	close(out.fd);
}

static uint64_t payload_bytes(const struct kp_layout *l)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < l->n_containers; i++)
		sum += l->containers[i].payload_size;
	return sum;
}

TEST(a_changed_byte_does_no_harm)
{
	struct bytes b = unequal(16), z = compressed(3, 1);
	struct subject s;
	size_t good = 0;

	put_padding(&b, 4096);
	put(&b, z.data, z.size);
	bytes_free(&z);
	open_subject(&s, b);
	b = unpacked(&s);
	for (size_t i = 0; i < 8 * b.size; i += 11) {
		struct kp_layout l;

		b.data[i / 8] ^= (uint8_t)(1 << i % 8);
		if (kp_layout_parse(bytes_span(&b), &l, &why) == KPACK_SUCCESS) {
			if (l.size < 1 << 20 && payload_bytes(&l) < 1 << 20) {
				apply(&l);
				good++;
			}
			kp_layout_fini(&l);
		}
		b.data[i / 8] ^= (uint8_t)(1 << i % 8);
	}
	assert_true(good > 10);
	bytes_free(&b);
	close_subject(&s);
}

/*
 * MessagePack as readable pieces.  The header for one entry "a-b" takes 59 bytes, so that
 * ENTRY's gap is 59 - 4096; the entry ends at 64.
 */
#define TARGETS "\223\223\243a-b\246gfx90a\302\223\300\240\302\223\243h-x\240\303"
#define SHAPE(format, size) "\246format" format "\246offset\0\244size" size "\247entries"
#define BUNDLE "\204" SHAPE("\246bundle", "\0")
#define ENTRY "\221\224\0\321\360\73\5\303"
#define BARE "\204" SHAPE("\253code-object", "\5")
#define CCOB(size, form) "\205" SHAPE("\244ccob", size) "\220\244ccob" form
#define FORM(version, method, payload, level)                                            \
	"\205\247version" version "\246method" method "\244hash\1\247payload" payload    \
	"\245level" level
#define FOUR_GIB_AND_1 "\317\0\0\0\1\0\0\0\1"
#define FOUR_GIB_ENTRY "\224\0\0\317\0\0\0\1\0\0\0\0\303"
#define EIGHT(text) text text text text text text text text

struct parts {
	struct kp_span version, size, targets, wrappers, containers, hashes;
};

#define SPAN(text)                                                                       \
	{                                                                                \
		(const uint8_t *)(text), sizeof(text) - 1                                \
	}

/* Fields that GIVEN leaves out get the valid value. */
static struct bytes build(const struct parts *given)
{
	static const struct parts good = {SPAN("\1"),
					  SPAN("\120"),
					  SPAN(TARGETS),
					  SPAN("\221\0"),
					  SPAN("\221" BUNDLE ENTRY),
					  SPAN("\304\6a hash")};
	static const char *const keys[] = {"\247version",    "\244size",
					   "\247targets",    "\250wrappers",
					   "\252containers", "\244xxh3"};
	const struct kp_span *from = &given->version, *else_from = &good.version;
	struct bytes b = {0};

	put(&b, "\206", 1);
	for (size_t i = 0; i < COUNT(keys); i++) {
		const struct kp_span *value = from[i].data ? &from[i] : &else_from[i];

		put(&b, keys[i], strlen(keys[i]));
		put(&b, value->data, value->size);
	}
	return b;
}

/* One container: with an entry that is an object (ONE), or without entries (NONE). */
#define ONE(text)                                                                        \
	{                                                                                \
		.containers = SPAN("\221" text)                                          \
	}
#define NONE(text)                                                                       \
	{                                                                                \
		.containers = SPAN("\221" text), .hashes = SPAN("\304\0")                \
	}

TEST(what_cannot_be_is_refused)
{
	static const struct {
		struct parts parts;
		kpack_error_t code;
		const char *text;
	} cases[] = {
		{{.version = SPAN("\2")}, KPACK_ERROR_UNSUPPORTED_VERSION, "version 2"},
		{{.version = SPAN("\300")}, 0, "not a number"},
		{{.size = SPAN("\317\1\0\0\0\0\0\0\0")}, 0, "at most 68719476736"},
		{{.size = SPAN("\77")}, 0, "container 0: is empty, passes"},
		{{.targets = SPAN("\220")}, 0, "a target that was not listed"},
		{{.targets = SPAN("\335\0\21\0\0")},
		 KPACK_ERROR_MSGPACK_PARSE_FAILED,
		 "layout: "},
		{{.targets = SPAN("\221\222\300\240")}, 0, "members are missing"},
		{{.targets = SPAN("\221\223\242a\0\240\302")}, 0, "a NUL inside"},
		{{.targets = SPAN("\221\223\300\331\100"
				  "0123456789012345678901234567890123456789012345678901"
				  "234567890123\302")},
		 0,
		 "too long"},
		{{.targets = SPAN("\221\223\1\240\302")}, 0, "not a string"},
		{{.targets = SPAN("\221\223\300\240\1")}, 0, "neither true nor false"},
		{{.wrappers = SPAN("\221\1")}, 0, "wrapper 0: container 1 of 1"},
		{{.wrappers = SPAN("\200")}, 0, "not an array"},
		{{.hashes = SPAN("\304\5short")}, 0, "fewer hashes"},
		{{.hashes = SPAN("\304\7longest")}, 0, "more hashes"},
		{{.hashes = SPAN("\241x")}, 0, "not bytes"},
		{{.containers = SPAN("\200")}, 0, "not an array"},
		{ONE("\1"), 0, "not a map"},
		{ONE("\200"), 0, "format is missing"},
		{ONE("\201\246format\246bundle"), 0, "offset is missing"},
		{ONE("\202\246format\246bundle\246format\246bundle"), 0,
		 "format for the second time"},
		{ONE("\201\246format\243zip"), KPACK_ERROR_NOT_IMPLEMENTED,
		 "a format that is not known"},
		{NONE("\204" SHAPE("\246bundle", "\340") "\220"), 0,
		 "is empty, passes the end"},
		{NONE("\204" SHAPE("\246bundle", "\320\337") "\220"), 0,
		 "is empty, passes the end"},
		{NONE("\204" SHAPE("\246bundle", "\377") "\220"), 0,
		 "smaller than its entries"},
		{NONE("\204" SHAPE("\246bundle", "\61") "\220"), 0,
		 "is empty, passes the end"},
		{NONE("\204\246format\246bundle\246offset\100\244size\0\247entries"
		      "\220"),
		 0, "is empty, passes the end"},
		{NONE("\204\246format\246bundle\246offset\377\244size\0\247entries"
		      "\220"),
		 0, "is empty, passes the end"},
		{ONE("\204" SHAPE("\246bundle", "\377") "\221\224\0\321\360\73\6\303"), 0,
		 "an entry lies outside it"},
		{ONE(BUNDLE "\221\224\0\321\360\72\5\303"), 0,
		 "an entry lies outside it"},
		{ONE(BUNDLE "\221\224\0\0\5\303"), 0, "is empty, passes the end"},
		{ONE(BUNDLE "\221\224\3\0\5\303"), 0, "a target that was not"},
		{ONE(BUNDLE "\221\224\1\0\5\303"), 0, "without an ID, or"},
		{ONE(BUNDLE "\221\224\0\0\5\304\4hash"), 0, "neither true nor"},
		{ONE(BUNDLE "\221\224\0\0\5\302"), 0, "neither true nor nil"},
		{ONE(BUNDLE "\221\224\0\240\5\303"), 0, "not a number"},
		{ONE(BUNDLE "\221\224\0\0" FOUR_GIB_AND_1 "\303"), 0,
		 "at most 4294967296"},
		{ONE(BUNDLE "\334\0\21" EIGHT(FOUR_GIB_ENTRY) EIGHT(FOUR_GIB_ENTRY)
			     FOUR_GIB_ENTRY),
		 0, "too many bytes of entries"},
		{ONE(BUNDLE "\221\224\2\0\5\300"), 0, "without its bytes"},
		{ONE(BUNDLE "\221\224\2\0\5\304\4host"), 0, "do not have its size"},
		{ONE(BUNDLE "\221\223\0\0\5"), 0, "members are missing"},
		{NONE(BARE "\220"), 0, "more than a code object"},
		{ONE(BARE "\221\224\1\0\4\303"), 0, "more than a code object"},
		{ONE(BARE "\221\224\0\0\5\303"), 0, "without an ID, or"},
		{NONE("\205" SHAPE("\246bundle",
				   "\40") "\220\245bytes\221\222\77\304\2ab"),
		 0, "bytes lie outside it"},
		{NONE("\205" SHAPE("\246bundle",
				   "\40") "\220\245bytes\221\222\37\304\2ab"),
		 0, "bytes lie outside it"},
		{NONE("\204" SHAPE("\244ccob", "\100") "\220"), 0,
		 "format and \"ccob\" contradict"},
		{NONE("\205" SHAPE("\246bundle",
				   "\40") "\220\244ccob" FORM("\3", "\1", "\100", "\3")),
		 0, "format and \"ccob\" contradict"},
		{NONE(CCOB("\100", "\201\245level\3")), 0, "version is missing"},
		{NONE(CCOB("\100", FORM("\4", "\1", "\100", "\3"))),
		 KPACK_ERROR_NOT_IMPLEMENTED, "version 4"},
		{NONE(CCOB("\100", FORM("\3", "\2", "\100", "\3"))),
		 KPACK_ERROR_NOT_IMPLEMENTED, "method 2"},
		{NONE(CCOB("\100", FORM("\3", "\1", "\100", "\27"))),
		 KPACK_ERROR_NOT_IMPLEMENTED, "level 23"},
		{NONE(CCOB("\40", FORM("\3", "\1", "\100", "\3"))), 0,
		 "smaller than its header"},
		{NONE(CCOB("\100", FORM("\3", "\0", "\316\0\2\0\0", "\3"))), 0,
		 "cannot stand for"},
		{NONE(CCOB("\100", FORM("\3", "\1", FOUR_GIB_AND_1, "\3"))), 0,
		 "at most 4294967296"},
		{NONE(CCOB("\100", FORM("\3", "\1", "\37", "\3"))), 0,
		 "smaller than its entries"},
	};
	struct bytes b = build(&(struct parts){0});

	assert_int_equal(parse(b.data, b.size), KPACK_SUCCESS);
	bytes_free(&b);
	for (size_t i = 0; i < COUNT(cases); i++) {
		kpack_error_t err;

		b = build(&cases[i].parts);
		err = parse(b.data, b.size);
		if (!err || !strstr(why.text, cases[i].text))
			fail_msg("%zu: %d, \"%s\" is not in \"%s\"", i, err,
				 cases[i].text, why.text);
		assert_int_equal(err, cases[i].code ? cases[i].code
						    : KPACK_ERROR_INVALID_METADATA);
		bytes_free(&b);
	}
}

/* Two containers with N runs of zero bytes each. */
static struct bytes with_runs(uint16_t n)
{
	static const struct kp_span head =
		SPAN("\205" SHAPE("\246bundle", "\0") "\220\245bytes");
	struct parts parts = {.hashes = SPAN("\304\0")};
	struct bytes containers = {0}, b;

	put(&containers, "\222", 1);
	for (int i = 0; i < 2; i++) {
		put(&containers, head.data, head.size);
		put(&containers, (uint8_t[]){0xdc, (uint8_t)(n >> 8), (uint8_t)n}, 3);
		for (unsigned k = 0; k < n; k++)
			put(&containers, "\222\40\304\0", 4);
	}
	parts.containers = bytes_span(&containers);
	b = build(&parts);
	bytes_free(&containers);
	return b;
}

TEST(runs_of_bytes_are_counted)
{
	struct bytes b = with_runs(UINT16_MAX);

	assert_int_equal(parse(b.data, b.size), KPACK_ERROR_INVALID_METADATA);
	if (!strstr(why.text, "too many runs"))
		fail_msg("\"%s\"", why.text);
	bytes_free(&b);
}

TEST(other_keys_are_skipped)
{
	static const struct parts parts = {
		.version = SPAN("\1\243new\223\1\2\300"),
		.containers =
			SPAN("\221\205\243new\201\1\2" SHAPE("\246bundle", "\0") ENTRY)};
	struct bytes b = build(&parts);

	b.data[0]++;
	assert_int_equal(parse(b.data, b.size), KPACK_SUCCESS);
	bytes_free(&b);
	assert_int_equal(parse(NULL, 0), KPACK_ERROR_MSGPACK_PARSE_FAILED);
	assert_int_equal(parse("\220", 1), KPACK_ERROR_INVALID_METADATA);
	assert_int_equal(parse("\200", 1), KPACK_ERROR_INVALID_METADATA);
	assert_int_equal(parse("\301", 1), KPACK_ERROR_MSGPACK_PARSE_FAILED);
}
