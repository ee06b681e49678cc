/* SPDX-License-Identifier: MIT */
#include "core/pe/pe.h"
#include "core/base/alloc.h"
#include "tests/unit/unit.h"

/* ---- a file of two sections: .a has 32 bytes at RVA 4096, .b has relocations ---- */

enum { AT = 64, TABLE = AT + 24 + 240, A = 512, B = 1024, SIZE = 1536 };

struct image {
	uint8_t bytes[SIZE];
};

static void put(struct image *m, size_t at, uint64_t value, unsigned size)
{
	for (unsigned i = 0; i < size; i++)
		m->bytes[at + i] = (uint8_t)(value >> 8 * i);
}

static void put_section(struct image *m, unsigned i, const char *name, uint32_t memory,
			uint32_t rva, uint32_t size, uint32_t offset)
{
	size_t row = TABLE + 40 * i;

	memcpy(m->bytes + row, name, strlen(name));
	put(m, row + 8, memory, 4);
	put(m, row + 12, rva, 4);
	put(m, row + 16, size, 4);
	put(m, row + 20, offset, 4);
}

static struct image make_image(void)
{
	struct image m = {"MZ"};

	put(&m, 60, AT, 4);
	memcpy(m.bytes + AT, "PE\0\0", 4);
	put(&m, AT + 4, KP_PE_X86_64, 2);
	put(&m, AT + 6, 2, 2);
	put(&m, AT + 20, 240, 2);
	put(&m, AT + 22, 0x2000, 2);
	put(&m, AT + 24, 0x20b, 2);
	put(&m, AT + 48, 0x180000000, 8);
	put(&m, AT + 24 + 108, 16, 4);
	put(&m, AT + 24 + 112 + 8 * KP_PE_RELOCS, 8192, 4);
	put(&m, AT + 24 + 112 + 8 * KP_PE_RELOCS + 4, 24, 4);
	put_section(&m, 0, ".a", 32, 4096, 512, A);
	put_section(&m, 1, ".b", 600, 8192, 512, B);
	/* a block of two words and padding, and one of a half of a word */
	put(&m, B, 4096, 4);
	put(&m, B + 4, 14, 4);
	put(&m, B + 8, 0xa008, 2);
	put(&m, B + 10, 0xa010, 2);
	put(&m, B + 14, 8192, 4);
	put(&m, B + 18, 10, 4);
	put(&m, B + 22, 0x1004, 2);
	return m;
}

static struct kp_source source_of(const struct image *m)
{
	return kp_source_memory(m->bytes, SIZE);
}

TEST(headers_and_sections_are_read)
{
	struct image m = make_image();
	struct kp_source src = source_of(&m);
	KP_AUTO(kp_pe) pe;

	assert_int_equal(kp_pe_open(&src, &pe, NULL), KPACK_SUCCESS);
	assert_true(pe.wide && pe.library && !pe.fixed);
	assert_int_equal(pe.base, 0x180000000);
	assert_int_equal(pe.n, 2);
	assert_string_equal(pe.sections[1].name, ".b");
	assert_int_equal(pe.directories[KP_PE_RELOCS].size, 24);
	/* the rest of 512 bytes is not in memory, and of 600 not in the file */
	assert_int_equal(kp_pe_bytes(&pe.sections[0]), 32);
	assert_int_equal(kp_pe_bytes(&pe.sections[1]), 512);
}

TEST(long_names_are_in_the_string_table)
{
	struct image m = make_image();
	struct kp_source src = source_of(&m);
	KP_AUTO(kp_pe) pe;

	put(&m, AT + 12, A + 100, 4); /* symbols, of which there are 2 */
	put(&m, AT + 16, 2, 4);
	put(&m, A + 136, 40, 4);
	strcpy((char *)m.bytes + A + 140, ".hip_fatbin");
	memcpy(m.bytes + TABLE, "/4\0", 3);
	assert_int_equal(kp_pe_open(&src, &pe, NULL), KPACK_SUCCESS);
	assert_string_equal(pe.sections[0].name, ".hip_fatbin");
	assert_int_equal(pe.symbols_end, A + 136 + 40);
}

TEST(addresses_are_found_in_the_bytes_of_sections)
{
	struct image m = make_image();
	struct kp_source src = source_of(&m);
	KP_AUTO(kp_pe) pe;
	uint64_t at = 0;

	assert_int_equal(kp_pe_open(&src, &pe, NULL), KPACK_SUCCESS);
	assert_true(kp_pe_find(&pe, 4096 + 24, 8, &at));
	assert_int_equal(at, A + 24);
	assert_false(kp_pe_find(&pe, 4096 + 25, 8, &at));
	assert_false(kp_pe_find(&pe, 100, 8, &at));
	assert_false(kp_pe_find(&pe, 8192 + 510, 8, &at));
	assert_false(kp_pe_find(&pe, UINT32_MAX, 8, &at));
}

static kpack_error_t note(void *arg, uint32_t rva, unsigned size,
			  struct kpackx_error *why)
{
	char *text = arg;

	(void)why;
	snprintf(text + strlen(text), 32, "%u:%u ", rva, size);
	return KPACK_SUCCESS;
}

static const char *relocs_of(const struct image *m)
{
	static char text[256];
	struct kp_source src = source_of(m);
	struct kpackx_error why = {0};
	struct kp_pe pe;

	*text = '\0';
	assert_int_equal(kp_pe_open(&src, &pe, NULL), KPACK_SUCCESS);
	if (kp_pe_each_reloc(&src, &pe, note, text, &why))
		snprintf(text, sizeof(text), "%s", why.text);
	kp_pe_fini(&pe);
	return text;
}

TEST(base_relocations_are_walked)
{
	struct image m = make_image();

	assert_string_equal(relocs_of(&m), "4104:8 4112:8 8196:0 ");
	put(&m, B + 18, 11, 4);
	assert_has(relocs_of(&m), "a block of 11 bytes");
	put(&m, B + 18, 7, 4);
	assert_has(relocs_of(&m), "a block of 7 bytes");
	put(&m, AT + 24 + 112 + 8 * KP_PE_RELOCS, 8192 + 600, 4);
	assert_has(relocs_of(&m), "not in a section");
}

TEST(what_passes_the_end_is_refused)
{
	struct image m = make_image();
	struct kpackx_error why;
	struct kp_pe pe;

	for (size_t size = 0; size < TABLE + 80; size++) {
		struct kp_source src = kp_source_memory(m.bytes, size);

		assert_int_not_equal(kp_pe_open(&src, &pe, &why), KPACK_SUCCESS);
	}
	put(&m, 60, UINT32_MAX, 4);
	assert_false(kp_pe_probe((struct kp_span){m.bytes, SIZE}));
	assert_false(kp_pe_host_probe((struct kp_span){m.bytes, SIZE}));
}
