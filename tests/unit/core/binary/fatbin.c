/* SPDX-License-Identifier: MIT */
#include "core/binary/fatbin.h"
#include "tests/unit/unit.h"
#include "tests/unit/elf_builder.h"

#define FATBIN UINT64_C(0x3000)
#define SEGMENT UINT64_C(0x8000)
#define MARKER UINT64_C(0x9000)
#define N_BUNDLES 5

static struct kpackx_error why;

/* .hip_fatbin with five bundles aligned to 16 bytes; STARTS gets their offsets. */
static struct bytes five_bundles(uint64_t starts[N_BUNDLES])
{
	static const struct entry entries[] = {
		{"host-x86_64-unknown-linux", ""},
		{"hipv4-amdgcn-amd-amdhsa--gfx90a", "code"}};
	struct bytes b = {0};

	for (size_t i = 0; i < N_BUNDLES; i++) {
		put_padding(&b, 16);
		starts[i] = b.size;
		put_bundle(&b, entries, COUNT(entries), 1);
	}
	return b;
}

/* SECTION is the name of the section that holds the wrappers. */
static struct elf_file build(const struct bytes *fatbin, const struct bytes *wrappers,
			     const char *section)
{
	const struct section sections[] = {
		{".hip_fatbin", fatbin->size ? SHT_PROGBITS : SHT_NOBITS, SHF_ALLOC,
		 FATBIN, bytes_span(fatbin), 0, 0, 0},
		{section, SHT_PROGBITS, SHF_ALLOC, SEGMENT, bytes_span(wrappers), 0, 0,
		 0},
		{".rocm_kpack_ref",
		 SHT_PROGBITS,
		 SHF_ALLOC,
		 MARKER,
		 {(const uint8_t *)"marker", 6},
		 0,
		 0,
		 0},
	};

	return elf_build(ET_EXEC, EM_X86_64, sections, COUNT(sections));
}

/* Closes the descriptor first, so that later reads of OUT cannot use the file. */
static kpack_error_t open_bytes(const void *data, size_t size, struct kp_fatbin *out)
{
	int fd = bytes_fd(data, size);
	kpack_error_t err = kp_fatbin_open(fd, size, out, &why);

	close(fd);
	return err;
}

static kpack_error_t open_in(const char *section, struct bytes *fatbin,
			     struct bytes *wrappers, struct kp_fatbin *out)
{
	struct elf_file f = build(fatbin, wrappers, section);
	kpack_error_t err = open_bytes(f.bytes.data, f.bytes.size, out);

	bytes_free(&f.bytes);
	bytes_free(fatbin);
	bytes_free(wrappers);
	return err;
}

static kpack_error_t open_elf(struct bytes *fatbin, struct bytes *wrappers,
			      struct kp_fatbin *out)
{
	return open_in(".hipFatBinSegment", fatbin, wrappers, out);
}

struct indices {
	size_t container; /* whose indices to collect */
	uint32_t value[8];
	size_t n;
	int64_t last; /* of all containers */
};

static void collect(uint32_t index, size_t container, void *arg)
{
	struct indices *got = arg;

	assert_true(index > got->last);
	got->last = index;
	if (container != got->container)
		return;
	assert_true(got->n < COUNT(got->value));
	got->value[got->n++] = index;
}

static void assert_indices(const struct kp_fatbin *fat, size_t container, size_t n,
			   const uint32_t *want)
{
	struct indices got = {.container = container, .last = -1};

	kp_fatbin_places(fat, collect, &got);
	assert_int_equal(got.n, n);
	assert_memory_equal(got.value, want, n * sizeof(*want));
}

#define INDICES(fat, container, ...)                                                     \
	assert_indices(fat, container,                                                   \
		       sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t),             \
		       (const uint32_t[]){__VA_ARGS__})

TEST(wrappers_lead_to_containers_in_any_order)
{
	static const size_t order[] = {3, 0, 3};
	uint64_t starts[N_BUNDLES];
	struct bytes fatbin = five_bundles(starts), wrappers = {0};
	struct kp_fatbin fat;

	for (size_t i = 0; i < COUNT(order); i++)
		put_wrapper(&wrappers, KP_WRAPPER_HIPF, FATBIN + starts[order[i]]);
	assert_int_equal(open_elf(&fatbin, &wrappers, &fat), KPACK_SUCCESS);
	assert_int_equal(fat.kind, KP_FATBIN_ELF);
	assert_string_equal(fat.format, "elf");
	assert_int_equal(fat.containers.count, N_BUNDLES);
	for (size_t i = 0; i < COUNT(order); i++)
		assert_int_equal(fat.wrapper_container[i], order[i]);
	/*
	 * one bundle has two wrappers; bundles without a wrapper are numbered after the
	 * three wrappers
	 */
	INDICES(&fat, 0, 1);
	INDICES(&fat, 1, 3);
	INDICES(&fat, 2, 4);
	INDICES(&fat, 3, 0, 2);
	INDICES(&fat, 4, 5);
	kp_fatbin_fini(&fat);
	kp_fatbin_fini(&fat);
}

TEST(without_wrappers_the_position_counts)
{
	uint64_t starts[N_BUNDLES];
	struct bytes fatbin = five_bundles(starts), wrappers = {0};
	struct kp_fatbin fat;

	assert_int_equal(open_elf(&fatbin, &wrappers, &fat), KPACK_SUCCESS);
	assert_int_equal(fat.kind, KP_FATBIN_ELF);
	for (uint32_t i = 0; i < N_BUNDLES; i++)
		INDICES(&fat, i, i);
	kp_fatbin_fini(&fat);
}

TEST(a_wrapper_that_leads_nowhere_is_refused)
{
	static const uint64_t bad[] = {0,           FATBIN - 1,    FATBIN + 1,
				       FATBIN + 64, FATBIN + 9999, UINT64_MAX};
	uint64_t starts[N_BUNDLES];
	struct kp_fatbin fat;

	for (size_t i = 0; i < COUNT(bad); i++) {
		struct bytes fatbin = five_bundles(starts), wrappers = {0};

		put_wrapper(&wrappers, KP_WRAPPER_HIPF, FATBIN);
		put_wrapper(&wrappers, KP_WRAPPER_HIPF, bad[i]);
		assert_int_equal(open_elf(&fatbin, &wrappers, &fat),
				 KPACK_ERROR_INVALID_FORMAT);
		assert_has(why.text, "wrapper 1: no container begins");
		assert_null(fat.wrapper_container);
	}
}

TEST(converted_wrappers_lead_elsewhere)
{
	struct bytes fatbin = {0}, wrappers = {0};
	struct kp_fatbin fat;

	put_wrapper(&wrappers, KP_WRAPPER_HIPK, MARKER);
	put_wrapper(&wrappers, KP_WRAPPER_HIPK, MARKER);
	assert_int_equal(open_elf(&fatbin, &wrappers, &fat), KPACK_SUCCESS);
	assert_int_equal(fat.kind, KP_FATBIN_CONVERTED);
	assert_int_equal(fat.containers.count, 0);
	assert_int_equal(fat.wrapper_container[1], -1);
	kp_fatbin_fini(&fat);
}

TEST(converted_with_device_code_is_converted)
{
	static const char *const sections[] = {".hipFatBinSegment", ".data"};
	uint64_t starts[N_BUNDLES];

	for (size_t i = 0; i < COUNT(sections); i++) {
		struct bytes fatbin = five_bundles(starts), wrappers = {0};
		struct kp_fatbin fat;

		put_wrapper(&wrappers, KP_WRAPPER_HIPK, MARKER);
		put_wrapper(&wrappers, KP_WRAPPER_HIPK, MARKER);
		assert_int_equal(open_in(sections[i], &fatbin, &wrappers, &fat),
				 KPACK_SUCCESS);
		assert_int_equal(fat.kind, KP_FATBIN_CONVERTED);
		assert_int_equal(fat.elf.n_wrappers, 2);
		assert_true(fat.elf.has_fatbin);
		assert_int_equal(fat.containers.count, N_BUNDLES);
		assert_int_equal(fat.wrapper_container[0], -1);
		assert_int_equal(fat.wrapper_container[1], -1);
		kp_fatbin_fini(&fat);
	}
}

TEST(words_that_lead_to_no_container_are_no_wrappers)
{
	uint64_t starts[N_BUNDLES];
	struct bytes fatbin = five_bundles(starts), wrappers = {0};
	struct kp_fatbin fat;

	put_wrapper(&wrappers, KP_WRAPPER_HIPF, FATBIN + 1);
	put_wrapper(&wrappers, KP_WRAPPER_HIPF, FATBIN + starts[1]);
	put_wrapper(&wrappers, KP_WRAPPER_HIPF, FATBIN + 8);
	put_wrapper(&wrappers, KP_WRAPPER_HIPF, FATBIN + starts[4]);
	assert_int_equal(open_in(".data", &fatbin, &wrappers, &fat), KPACK_SUCCESS);
	assert_int_equal(fat.kind, KP_FATBIN_ELF);
	assert_true(fat.elf.wrappers_scanned);
	assert_int_equal(fat.elf.n_wrappers, 2);
	assert_int_equal(fat.elf.wrappers[0].vaddr, SEGMENT + 24);
	assert_int_equal(fat.wrapper_container[0], 1);
	assert_int_equal(fat.wrapper_container[1], 4);
	INDICES(&fat, 0, 2);
	INDICES(&fat, 1, 0);
	INDICES(&fat, 4, 1);
	kp_fatbin_fini(&fat);

	/* without wrappers, indices count the containers */
	fatbin = five_bundles(starts);
	put_wrapper(&wrappers, KP_WRAPPER_HIPF, FATBIN + 1);
	assert_int_equal(open_in(".data", &fatbin, &wrappers, &fat), KPACK_SUCCESS);
	assert_int_equal(fat.kind, KP_FATBIN_ELF);
	assert_int_equal(fat.elf.n_wrappers, 0);
	INDICES(&fat, 4, 4);
	kp_fatbin_fini(&fat);
}

/* A word that only looked like a wrapper was not converted. */
TEST(converted_is_known_in_spite_of_such_words)
{
	uint64_t starts[N_BUNDLES];

	for (int kept = 0; kept < 2; kept++) {
		struct bytes fatbin = {0}, wrappers = {0};
		struct kp_fatbin fat;

		if (kept)
			fatbin = five_bundles(starts);
		put_wrapper(&wrappers, KP_WRAPPER_HIPF, FATBIN + 1);
		put_wrapper(&wrappers, KP_WRAPPER_HIPK, MARKER);
		assert_int_equal(open_in(".data", &fatbin, &wrappers, &fat),
				 KPACK_SUCCESS);
		assert_int_equal(fat.kind, KP_FATBIN_CONVERTED);
		assert_int_equal(fat.elf.n_wrappers, 1);
		assert_int_equal(fat.elf.wrappers[0].vaddr, SEGMENT + 24);
		kp_fatbin_fini(&fat);
	}
}

TEST(half_converted_is_still_fat)
{
	static const char *const sections[] = {".hipFatBinSegment", ".data"};
	uint64_t starts[N_BUNDLES];

	for (size_t i = 0; i < COUNT(sections); i++) {
		struct bytes fatbin = five_bundles(starts), wrappers = {0};
		struct kp_fatbin fat;

		put_wrapper(&wrappers, KP_WRAPPER_HIPK, MARKER);
		put_wrapper(&wrappers, KP_WRAPPER_HIPF, FATBIN);
		assert_int_equal(open_in(sections[i], &fatbin, &wrappers, &fat),
				 KPACK_SUCCESS);
		assert_int_equal(fat.kind, KP_FATBIN_ELF);
		assert_int_equal(fat.wrapper_container[0], -1);
		assert_int_equal(fat.wrapper_container[1], 0);
		INDICES(&fat, 0, 1);
		INDICES(&fat, 1, 2);
		kp_fatbin_fini(&fat);
	}
}

TEST(a_fat_object_is_read_too)
{
	uint64_t starts[N_BUNDLES];
	struct bytes fatbin = five_bundles(starts), wrappers = {0}, relocs = {0},
		     syms = {0};
	struct kp_fatbin fat;

	put_wrapper(&wrappers, KP_WRAPPER_HIPF, 0);
	put_rela(&relocs, 8, 1, R_X86_64_64, starts[2]);
	put_symbol(&syms, 0, 0);
	put_symbol(&syms, 1, 0);
	const struct section sections[] = {
		{".hip_fatbin", SHT_PROGBITS, SHF_ALLOC, 0, bytes_span(&fatbin), 0, 0, 0},
		{".hipFatBinSegment", SHT_PROGBITS, SHF_ALLOC, 0, bytes_span(&wrappers),
		 0, 0, 0},
		{".rela.hipFatBinSegment", SHT_RELA, 0, 0, bytes_span(&relocs), 4, 2, 24},
		{".symtab", SHT_SYMTAB, 0, 0, bytes_span(&syms), 0, 0, 24},
	};
	struct elf_file f = elf_build(ET_REL, EM_X86_64, sections, COUNT(sections));

	assert_int_equal(open_bytes(f.bytes.data, f.bytes.size, &fat), KPACK_SUCCESS);
	assert_int_equal(fat.kind, KP_FATBIN_ELF);
	assert_int_equal(fat.wrapper_container[0], 2);
	kp_fatbin_fini(&fat);
	bytes_free(&f.bytes);
	bytes_free(&fatbin);
	bytes_free(&wrappers);
	bytes_free(&relocs);
	bytes_free(&syms);
}

TEST(bare_containers_are_files_too)
{
	uint64_t starts[N_BUNDLES];
	struct bytes plain = five_bundles(starts), b = {0};
	struct kp_fatbin fat;

	assert_int_equal(open_bytes(plain.data, plain.size, &fat), KPACK_SUCCESS);
	assert_int_equal(fat.kind, KP_FATBIN_BARE);
	assert_string_equal(fat.format, "bundle");
	assert_int_equal(fat.containers.count, N_BUNDLES);
	INDICES(&fat, 4, 4);
	kp_fatbin_fini(&fat);
	put_ccob(&b, 3, 1, bytes_span(&plain));
	assert_int_equal(open_bytes(b.data, b.size, &fat), KPACK_SUCCESS);
	assert_int_equal(fat.kind, KP_FATBIN_BARE);
	assert_string_equal(fat.format, "ccob");
	kp_fatbin_fini(&fat);
	bytes_free(&plain);
	bytes_free(&b);
}

TEST(other_files_have_no_device_code)
{
	static const char *const texts[] = {"", "a", "#!/bin/sh\n", "\177ELF", "CCO"};
	static const struct section text = {
		".text", SHT_PROGBITS, SHF_ALLOC, 0, {(const uint8_t *)"x", 1}, 0, 0, 0};
	struct elf_file f = elf_build(ET_DYN, EM_X86_64, &text, 1);
	struct kp_fatbin fat;

	for (size_t i = 0; i < COUNT(texts); i++) {
		assert_int_equal(open_bytes(texts[i], strlen(texts[i]), &fat),
				 KPACK_SUCCESS);
		assert_int_equal(fat.kind, KP_FATBIN_NONE);
		assert_null(fat.format);
		kp_fatbin_fini(&fat);
	}
	assert_int_equal(open_bytes(f.bytes.data, f.bytes.size, &fat), KPACK_SUCCESS);
	assert_int_equal(fat.kind, KP_FATBIN_NONE);
	kp_fatbin_fini(&fat);
	bytes_free(&f.bytes);
}

TEST(faults_of_the_section_are_the_files)
{
	struct bytes fatbin = {0}, wrappers = {0};
	struct kp_fatbin fat;

	put(&fatbin, "no bundle", 9);
	assert_int_equal(open_elf(&fatbin, &wrappers, &fat), KPACK_ERROR_INVALID_FORMAT);
	assert_has(why.text, "offset 0: no container begins with 6e 6f");
}
