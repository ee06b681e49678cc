/* SPDX-License-Identifier: MIT */
#include "core/format/sections.h"
#include "tests/unit/exact_copy.h"
#include "tests/unit/unit.h"
#include "tests/unit/elf_builder.h"
#include "core/base/bounds.h"

#define HEADER(b, field) ((b)->data + offsetof(Elf64_Ehdr, field))

static struct kpackx_error why;

static kpack_error_t read_elf(const struct bytes *b, struct kp_sections *out)
{
	struct kp_source src = exact_copy(b->data, b->size);
	kpack_error_t err = kp_sections_read(&src, out, &why);

	exact_copy_free(&src);
	return err;
}

static kpack_error_t extent(const struct bytes *b, uint64_t *end)
{
	struct kp_source src = kp_source_memory(b->data, b->size);

	return kp_elf_extent(&src, end, &why);
}

static void assert_refused(const struct bytes *b, const char *reason)
{
	struct kp_sections s;

	assert_int_equal(read_elf(b, &s), KPACK_ERROR_INVALID_FORMAT);
	assert_has(why.text, reason);
	assert_null(s.items);
	assert_null(s.names);
}

static struct elf_file example(void)
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
		{".data", SHT_PROGBITS, 3, 0x3000, {(const uint8_t *)"data", 4}, 7, 9, 5},
	};

	return elf_build(ET_DYN, EM_X86_64, sections, COUNT(sections));
}

TEST(sections_are_read)
{
	struct elf_file f = example();
	struct kp_sections s;
	const struct kp_section *data;

	assert_int_equal(read_elf(&f.bytes, &s), KPACK_SUCCESS);
	assert_int_equal(s.count, 5);
	assert_int_equal(s.header.e_machine, EM_X86_64);
	assert_int_equal(s.header.e_type, ET_DYN);
	assert_string_equal(s.items[0].name, "");
	data = kp_sections_find(&s, ".data");
	assert_ptr_equal(data, &s.items[3]);
	assert_int_equal(data->addr, 0x3000);
	assert_int_equal(data->size, 4);
	assert_int_equal(data->link, 7);
	assert_int_equal(data->info, 9);
	assert_int_equal(data->entsize, 5);
	assert_memory_equal(f.bytes.data + data->offset, "data", 4);
	assert_null(kp_sections_find(&s, ".dat"));
	assert_int_equal(s.end, f.bytes.size);
	kp_sections_fini(&s);
	bytes_free(&f.bytes);
}

/* Bytes after the ELF do not belong to it. */
TEST(the_end_is_what_headers_say)
{
	struct elf_file f = example();
	size_t size = f.bytes.size;
	struct kp_sections s;
	uint64_t end;

	put(&f.bytes, "appended", 8);
	assert_int_equal(extent(&f.bytes, &end), KPACK_SUCCESS);
	assert_int_equal(end, size);
	assert_int_equal(read_elf(&f.bytes, &s), KPACK_SUCCESS);
	assert_int_equal(s.end, size);
	kp_sections_fini(&s);
	bytes_free(&f.bytes);
}

/* Add a segment of SIZE bytes at OFFSET, in a program header table at the end. */
static void add_segment(struct elf_file *f, uint64_t offset, uint64_t size)
{
	kp_put_le64(HEADER(&f->bytes, e_phoff), f->bytes.size);
	*HEADER(&f->bytes, e_phnum) = 1;
	put_number(&f->bytes, PT_LOAD, 8);
	put_number(&f->bytes, offset, 8);
	put_zeros(&f->bytes, 16);
	put_number(&f->bytes, size, 8);
	put_zeros(&f->bytes, 16);
}

TEST(segments_count_where_they_are)
{
	struct elf_file f = example();
	struct kp_sections s;
	size_t size;
	uint64_t end;

	add_segment(&f, 0, f.bytes.size + 100);
	size = f.bytes.size;
	put_zeros(&f.bytes, 100);
	assert_int_equal(extent(&f.bytes, &end), KPACK_SUCCESS);
	assert_int_equal(end, size - 56 + 100);
	/* a file of split debug information lacks the bytes of its segments */
	f.bytes.size = size;
	assert_int_equal(extent(&f.bytes, &end), KPACK_ERROR_INVALID_FORMAT);
	assert_has(why.text, "segment 0");
	assert_int_equal(read_elf(&f.bytes, &s), KPACK_SUCCESS);
	assert_int_equal(s.end, size);
	kp_sections_fini(&s);
	bytes_free(&f.bytes);
}

TEST(numbers_may_stand_in_section_0)
{
	struct elf_file f = example();
	struct kp_sections s;
	uint64_t end;

	add_segment(&f, 0, 8);
	kp_put_le32(HEADER(&f.bytes, e_phnum), PN_XNUM | 64u << 16);
	kp_put_le32(HEADER(&f.bytes, e_shnum), 0 | (unsigned)SHN_XINDEX << 16);
	SET_SH(&f, 0, sh_size, 5);
	kp_put_le32(elf_shdr(&f, 0) + offsetof(Elf64_Shdr, sh_link), 4);
	kp_put_le32(elf_shdr(&f, 0) + offsetof(Elf64_Shdr, sh_info), 1);
	assert_int_equal(extent(&f.bytes, &end), KPACK_SUCCESS);
	assert_int_equal(end, f.bytes.size);
	assert_int_equal(read_elf(&f.bytes, &s), KPACK_SUCCESS);
	assert_int_equal(s.count, 5);
	assert_string_equal(s.items[1].name, ".text");
	kp_sections_fini(&s);
	SET_SH(&f, 0, sh_size, UINT64_MAX / 64);
	assert_refused(&f.bytes, "section headers do not fit");
	bytes_free(&f.bytes);
}

TEST(no_sections_are_fine)
{
	struct elf_file f = example();
	struct kp_sections s;

	kp_put_le64(HEADER(&f.bytes, e_shoff), 0);
	assert_int_equal(read_elf(&f.bytes, &s), KPACK_SUCCESS);
	assert_int_equal(s.count, 0);
	assert_int_equal(s.end, 64);
	assert_null(kp_sections_find(&s, ".text"));
	kp_sections_fini(&s);
	bytes_free(&f.bytes);
}

TEST(no_names_are_fine)
{
	struct elf_file f = example();
	struct kp_sections s;

	f.bytes.data[offsetof(Elf64_Ehdr, e_shstrndx)] = 0;
	assert_int_equal(read_elf(&f.bytes, &s), KPACK_SUCCESS);
	assert_int_equal(s.count, 5);
	assert_string_equal(s.items[1].name, "");
	kp_sections_fini(&s);
	bytes_free(&f.bytes);
}

/* Change one field of a fresh example; reading it must fail. */
#define REFUSED(reason, change)                                                          \
	do {                                                                             \
		struct elf_file f = example();                                           \
		change;                                                                  \
		assert_refused(&f.bytes, reason);                                        \
		bytes_free(&f.bytes);                                                    \
	} while (0)

TEST(damage_is_named)
{
	REFUSED("read of 64 bytes", f.bytes.size = 63);
	REFUSED("not a 64-bit little-endian ELF", f.bytes.data[EI_CLASS] = ELFCLASS32);
	REFUSED("not a 64-bit little-endian ELF", f.bytes.data[EI_DATA] = ELFDATA2MSB);
	REFUSED("pass the end", f.bytes.size--);
	REFUSED("section 1: 8 bytes at offset",
		SET_SH(&f, 1, sh_offset, f.bytes.size - 7));
	REFUSED("section 1", SET_SH(&f, 1, sh_size, UINT64_MAX));
	REFUSED("section headers of 40 bytes, expected 64",
		*HEADER(&f.bytes, e_shentsize) = 40);
	REFUSED("names are in section 9 of 5", *HEADER(&f.bytes, e_shstrndx) = 9);
	REFUSED("holds no names", *HEADER(&f.bytes, e_shstrndx) = 1);
	REFUSED("holds no names", SET_SH(&f, 4, sh_size, 0));
	REFUSED("do not end in a NUL", SET_SH(&f, 4, sh_size, 5));
	REFUSED("section 2: its name at 4096 passes", kp_put_le32(elf_shdr(&f, 2), 4096));
	REFUSED("pass the end", kp_put_le64(HEADER(&f.bytes, e_shoff), UINT64_MAX - 3));
}

TEST(what_is_cut_off_is_refused)
{
	struct elf_file f = example();
	size_t size = f.bytes.size;
	struct kp_sections s;
	uint64_t end;

	for (f.bytes.size = 0; f.bytes.size < size; f.bytes.size++) {
		assert_int_equal(read_elf(&f.bytes, &s), KPACK_ERROR_INVALID_FORMAT);
		assert_int_equal(extent(&f.bytes, &end), KPACK_ERROR_INVALID_FORMAT);
	}
	bytes_free(&f.bytes);
}

TEST(sections_have_a_bound)
{
	static const uint8_t zeros[64];
	struct elf_file f = example();

	kp_put_le64(HEADER(&f.bytes, e_shoff), f.bytes.size);
	*HEADER(&f.bytes, e_shnum) = 0;
	put_zeros(&f.bytes, 32);
	put_number(&f.bytes, KP_SECTIONS_MAX + 1, 8);
	for (size_t i = 0; i <= KP_SECTIONS_MAX; i++)
		put(&f.bytes, zeros, 64);
	assert_refused(&f.bytes, "sections of at most");
	bytes_free(&f.bytes);
}

TEST(heads_are_known)
{
	struct elf_file f = example();
	uint16_t machine = 0;

	assert_true(kp_elf_probe(bytes_span(&f.bytes), &machine));
	assert_int_equal(machine, EM_X86_64);
	assert_true(kp_elf_probe(kp_span_head(bytes_span(&f.bytes), 20), NULL));
	assert_false(kp_elf_probe(kp_span_head(bytes_span(&f.bytes), 19), NULL));
	bytes_free(&f.bytes);
}
