/* SPDX-License-Identifier: MIT */
#include "core/binary/elf_file.h"
#include "tests/unit/unit.h"
#include "tests/unit/elf_builder.h"
#include "core/base/bounds.h"

#define HIPF KP_WRAPPER_HIPF
#define HIPK KP_WRAPPER_HIPK
#define ALLOC SHF_ALLOC
#ifndef SHT_RELR
#define SHT_RELR 19
#endif
#ifndef EM_LOONGARCH
#define EM_LOONGARCH 258
#endif
#ifndef R_LARCH_RELATIVE
#define R_LARCH_64 2
#define R_LARCH_RELATIVE 3
#endif

/* Addresses of the sections of every file in this test. */
#define FATBIN UINT64_C(0x3000)
#define SEGMENT UINT64_C(0x8000)
#define MARKER UINT64_C(0x9000)
#define EXTRA UINT64_C(0xa000)

/* Section numbers in files from build(). */
enum { S_FATBIN = 1, S_SEGMENT, S_RELOCS, S_SYMBOLS, S_MARKER, S_EXTRA };

static struct kpackx_error why;

/* The usual sections; sections that are not set are empty. */
struct parts {
	uint16_t type, machine;
	struct bytes wrappers;
	bool merged;         /* the wrappers are in .data */
	bool without_fatbin; /* .hip_fatbin is NOBITS */
	uint32_t reloc_type; /* SHT_RELA, SHT_REL or SHT_RELR */
	struct bytes relocs;
	struct bytes symbols;
	struct bytes marker;              /* .rocm_kpack_ref */
	struct bytes extra;               /* more data */
	uint64_t extra_flags, extra_addr; /* 0: ALLOC and EXTRA */
};

static struct elf_file build(const struct parts *p)
{
	bool object = p->type == ET_REL;
	uint64_t row = p->reloc_type == SHT_RELA ? 24 : p->reloc_type == SHT_REL ? 16 : 8;
	const struct section sections[] = {
		{".hip_fatbin",
		 p->without_fatbin ? SHT_NOBITS : SHT_PROGBITS,
		 ALLOC,
		 object ? 0 : FATBIN,
		 {(const uint8_t *)"sixteen bytes ok", 16},
		 0,
		 0,
		 0},
		{p->merged ? ".data" : ".hipFatBinSegment", SHT_PROGBITS,
		 ALLOC | SHF_WRITE, object ? 0 : SEGMENT, bytes_span(&p->wrappers), 0, 0,
		 0},
		{".rela.dyn", p->reloc_type ? p->reloc_type : SHT_PROGBITS,
		 object ? 0 : ALLOC, 0x100, bytes_span(&p->relocs), S_SYMBOLS,
		 object ? S_SEGMENT : 0, row},
		{".dynsym", object ? SHT_SYMTAB : SHT_DYNSYM, ALLOC, 0x200,
		 bytes_span(&p->symbols), 0, 0, 24},
		{p->marker.size ? ".rocm_kpack_ref" : ".rodata", SHT_PROGBITS, ALLOC,
		 object ? 0 : MARKER, bytes_span(&p->marker), 0, 0, 0},
		{".data.extra", SHT_PROGBITS, p->extra_flags ? p->extra_flags : ALLOC,
		 p->extra_addr ? p->extra_addr : EXTRA, bytes_span(&p->extra), 0, 0, 0},
	};

	return elf_build(p->type, p->machine, sections, COUNT(sections));
}

static void parts_free(struct parts *p)
{
	bytes_free(&p->wrappers);
	bytes_free(&p->relocs);
	bytes_free(&p->symbols);
	bytes_free(&p->marker);
	bytes_free(&p->extra);
}

static kpack_error_t read_elf(const struct elf_file *f, struct kp_elf *out)
{
	int fd = bytes_fd(f->bytes.data, f->bytes.size);
	kpack_error_t err = kp_elf_read(fd, f->bytes.size, out, &why);

	close(fd);
	return err;
}

static void assert_refused(struct elf_file *f, kpack_error_t code, const char *text)
{
	struct kp_elf elf;

	assert_int_equal(read_elf(f, &elf), code);
	assert_has(why.text, text);
	assert_null(elf.wrappers);
	bytes_free(&f->bytes);
}

/* Build and read P, and free it. */
static struct kp_elf read_parts(struct parts *p)
{
	struct elf_file f = build(p);
	struct kp_elf elf;

	if (read_elf(&f, &elf) != KPACK_SUCCESS)
		fail_msg("%s", why.text);
	bytes_free(&f.bytes);
	parts_free(p);
	return elf;
}

static void assert_wrapper(const struct kp_elf *elf, size_t i,
			   enum kp_pointer_source source, uint64_t target)
{
	assert_true(i < elf->n_wrappers);
	assert_int_equal(elf->wrappers[i].source, source);
	assert_int_equal(elf->wrappers[i].target, target);
}

static void assert_reloc(const struct kp_elf *elf, size_t i, uint64_t offset,
			 unsigned size)
{
	assert_true(i < elf->n_wrappers);
	assert_int_equal(elf->wrappers[i].reloc_offset, offset);
	assert_int_equal(elf->wrappers[i].reloc_size, size);
}

/* One wrapper whose pointer is stored as STORED. */
static struct parts one_wrapper(uint16_t machine, uint64_t stored, uint32_t reloc_type)
{
	struct parts p = {.type = ET_DYN, .machine = machine, .reloc_type = reloc_type};

	put_wrapper(&p.wrappers, HIPF, stored);
	return p;
}

TEST(in_place_pointers_are_taken)
{
	struct parts p = {.type = ET_EXEC, .machine = EM_X86_64};
	struct kp_elf elf;

	put_wrapper(&p.wrappers, HIPF, FATBIN);
	put_wrapper(&p.wrappers, HIPK, 0x1234);
	elf = read_parts(&p);
	assert_int_equal(elf.type, ET_EXEC);
	assert_int_equal(elf.machine, EM_X86_64);
	assert_true(elf.has_fatbin);
	assert_false(elf.fatbin_nobits);
	assert_int_equal(elf.fatbin_vaddr, FATBIN);
	assert_int_equal(elf.fatbin_size, 16);
	assert_int_equal(elf.fatbin_offset, 64);
	assert_int_equal(elf.n_wrappers, 2);
	assert_wrapper(&elf, 0, KP_POINTER_IN_PLACE, FATBIN);
	assert_wrapper(&elf, 1, KP_POINTER_IN_PLACE, 0x1234);
	assert_int_equal(elf.wrappers[0].vaddr, SEGMENT);
	assert_int_equal(elf.wrappers[0].offset, 64 + 16);
	assert_int_equal(elf.wrappers[1].offset, 64 + 16 + 24);
	assert_int_equal(elf.wrappers[1].fields.magic, HIPK);
	kp_elf_fini(&elf);
	kp_elf_fini(&elf);
}

TEST(relative_relocations_give_the_addend)
{
	static const struct {
		uint16_t machine;
		uint32_t type;
		uint64_t stored;
	} cases[] = {
		{EM_X86_64, R_X86_64_RELATIVE, 0},
		{EM_X86_64, R_X86_64_RELATIVE, 0x77},
		{EM_AARCH64, R_AARCH64_RELATIVE, 0},
		{EM_AARCH64, R_AARCH64_RELATIVE, 0x77},
		{EM_PPC64, R_PPC64_RELATIVE, 0},
		{EM_RISCV, R_RISCV_RELATIVE, 0x77},
		{EM_LOONGARCH, R_LARCH_RELATIVE, 0},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct parts p = one_wrapper(cases[i].machine, cases[i].stored, SHT_RELA);
		struct kp_elf elf;

		/* other relocations around it, unsorted */
		put_rela(&p.relocs, SEGMENT + 24, 0, cases[i].type, 1);
		put_rela(&p.relocs, SEGMENT + 8, 0, cases[i].type, FATBIN);
		put_rela(&p.relocs, SEGMENT - 8, 0, cases[i].type, 2);
		elf = read_parts(&p);
		assert_wrapper(&elf, 0, KP_POINTER_RELATIVE, FATBIN);
		assert_int_equal(elf.wrappers[0].fields.pointer, cases[i].stored);
		/* header, .hip_fatbin, one wrapper, the preceding row */
		assert_reloc(&elf, 0, 64 + 16 + 24 + 24, 24);
		kp_elf_fini(&elf);
	}
}

TEST(rel_adds_to_what_is_stored)
{
	struct parts p = one_wrapper(EM_X86_64, FATBIN, SHT_REL);
	struct kp_elf elf;

	put_rel(&p.relocs, SEGMENT + 8, 0, R_X86_64_RELATIVE);
	elf = read_parts(&p);
	assert_wrapper(&elf, 0, KP_POINTER_RELATIVE, FATBIN);
	assert_reloc(&elf, 0, 64 + 16 + 24, 16);
	kp_elf_fini(&elf);

	p = one_wrapper(EM_X86_64, 0x10, SHT_REL);
	put_rel(&p.relocs, SEGMENT + 8, 1, R_X86_64_64);
	put_symbol(&p.symbols, 0, 0);
	put_symbol(&p.symbols, S_FATBIN, FATBIN);
	elf = read_parts(&p);
	assert_wrapper(&elf, 0, KP_POINTER_SYMBOL, FATBIN + 0x10);
	kp_elf_fini(&elf);
}

TEST(relr_marks_words_by_address_and_by_bit)
{
	struct parts p = {.type = ET_DYN, .machine = EM_X86_64, .reloc_type = SHT_RELR};
	struct kp_elf elf;

	for (uint64_t i = 0; i < 30; i++)
		put_wrapper(&p.wrappers, HIPF, FATBIN + i);
	/*
	 * the word before the segment, then every pointer: words 2, 5, 8 ... of the
	 * segment
	 */
	put_number(&p.relocs, SEGMENT - 8, 8);
	for (unsigned first = 0; first < 126; first += 63) {
		uint64_t bits = 1;

		for (unsigned i = 0; i < 63; i++) {
			if ((first + i) % 3 == 1 && first + i < 60)
				bits |= UINT64_C(2) << i;
		}
		put_number(&p.relocs, bits, 8);
	}
	for (uint64_t i = 20; i < 30; i++)
		put_number(&p.relocs, SEGMENT + 24 * i + 8, 8);
	elf = read_parts(&p);
	assert_int_equal(elf.n_wrappers, 30);
	for (size_t i = 0; i < 30; i++) {
		assert_wrapper(&elf, i, KP_POINTER_RELR, FATBIN + i);
		assert_reloc(&elf, i, 0, 0);
	}
	kp_elf_fini(&elf);
}

TEST(the_last_bit_of_relr_counts)
{
	struct parts p = one_wrapper(EM_AARCH64, FATBIN, SHT_RELR);
	struct kp_elf elf;

	/* the word that is 63 words after the first one */
	put_number(&p.relocs, SEGMENT + 8 - UINT64_C(63) * 8, 8);
	put_number(&p.relocs, UINT64_C(1) << 63 | 1, 8);
	elf = read_parts(&p);
	assert_wrapper(&elf, 0, KP_POINTER_RELR, FATBIN);
	kp_elf_fini(&elf);
}

TEST(symbols_of_this_file_are_resolved)
{
	static const struct {
		uint16_t machine;
		uint32_t type;
	} cases[] = {
		{EM_X86_64, R_X86_64_64},   {EM_AARCH64, R_AARCH64_ABS64},
		{EM_PPC64, R_PPC64_ADDR64}, {EM_RISCV, R_RISCV_64},
		{EM_LOONGARCH, R_LARCH_64},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct parts p = one_wrapper(cases[i].machine, 0, SHT_RELA);
		struct kp_elf elf;

		put_wrapper(&p.wrappers, HIPF, 0);
		put_symbol(&p.symbols, 0, 0);
		put_symbol(&p.symbols, S_FATBIN, FATBIN);
		put_symbol(&p.symbols, SHN_UNDEF, 0);
		put_rela(&p.relocs, SEGMENT + 8, 1, cases[i].type, 4);
		put_rela(&p.relocs, SEGMENT + 32, 2, cases[i].type, 0);
		elf = read_parts(&p);
		assert_wrapper(&elf, 0, KP_POINTER_SYMBOL, FATBIN + 4);
		assert_int_equal(elf.wrappers[0].symbol, FATBIN);
		assert_wrapper(&elf, 1, KP_POINTER_UNRESOLVED, 0);
		kp_elf_fini(&elf);
	}
}

TEST(unknown_machines_and_relocations_are_not_guessed)
{
	struct parts p = one_wrapper(EM_MIPS, FATBIN, SHT_RELA);
	struct kp_elf elf = read_parts(&p);

	assert_wrapper(&elf, 0, KP_POINTER_IN_PLACE, FATBIN);
	kp_elf_fini(&elf);
	p = one_wrapper(EM_MIPS, FATBIN, SHT_RELA);
	put_rela(&p.relocs, SEGMENT + 8, 0, R_X86_64_RELATIVE, FATBIN);
	elf = read_parts(&p);
	assert_wrapper(&elf, 0, KP_POINTER_UNRESOLVED, 0);
	kp_elf_fini(&elf);
	p = one_wrapper(EM_X86_64, FATBIN, SHT_RELA);
	put_rela(&p.relocs, SEGMENT + 8, 0, R_X86_64_IRELATIVE, FATBIN);
	elf = read_parts(&p);
	assert_wrapper(&elf, 0, KP_POINTER_UNRESOLVED, 0);
	kp_elf_fini(&elf);
	/* R_X86_64_NONE has no effect */
	p = one_wrapper(EM_X86_64, FATBIN, SHT_RELA);
	put_rela(&p.relocs, SEGMENT + 8, 0, R_X86_64_NONE, 1);
	elf = read_parts(&p);
	assert_wrapper(&elf, 0, KP_POINTER_IN_PLACE, FATBIN);
	kp_elf_fini(&elf);
}

TEST(the_linkers_own_relocations_are_not_loaded)
{
	struct parts p = one_wrapper(EM_X86_64, FATBIN, SHT_RELA);
	struct elf_file f;
	struct kp_elf elf;

	p.type = ET_EXEC;
	put_rela(&p.relocs, SEGMENT + 8, 1, R_X86_64_64, 99);
	f = build(&p);
	SET_SH(&f, S_RELOCS, sh_flags, 0);
	assert_int_equal(read_elf(&f, &elf), KPACK_SUCCESS);
	assert_wrapper(&elf, 0, KP_POINTER_IN_PLACE, FATBIN);
	kp_elf_fini(&elf);
	bytes_free(&f.bytes);
	parts_free(&p);
}

TEST(objects_are_resolved_through_their_sections)
{
	struct parts p = one_wrapper(EM_X86_64, 0, SHT_RELA);
	struct kp_elf elf;

	p.type = ET_REL;
	put_wrapper(&p.wrappers, HIPF, 0);
	put_symbol(&p.symbols, 0, 0);
	put_symbol(&p.symbols, S_FATBIN, 0);
	put_symbol(&p.symbols, S_SEGMENT, 0);
	put_rela(&p.relocs, 8, 1, R_X86_64_64, 0);
	put_rela(&p.relocs, 32, 2, R_X86_64_64, 0);
	elf = read_parts(&p);
	assert_int_equal(elf.type, ET_REL);
	assert_wrapper(&elf, 0, KP_POINTER_SYMBOL, 0);
	assert_wrapper(&elf, 1, KP_POINTER_UNRESOLVED, 0);
	kp_elf_fini(&elf);
}

TEST(zero_words_between_wrappers_are_padding)
{
	struct parts p = {.type = ET_EXEC, .machine = EM_X86_64};
	struct kp_elf elf;

	put_zeros(&p.wrappers, 8);
	put_wrapper(&p.wrappers, HIPF, 1);
	put_zeros(&p.wrappers, 40);
	put_wrapper(&p.wrappers, HIPF, 2);
	put_wrapper(&p.wrappers, HIPF, 3);
	put_zeros(&p.wrappers, 37);
	elf = read_parts(&p);
	assert_int_equal(elf.n_wrappers, 3);
	for (size_t i = 0; i < 3; i++)
		assert_wrapper(&elf, i, KP_POINTER_IN_PLACE, i + 1);
	assert_int_equal(elf.wrappers[1].vaddr, SEGMENT + 8 + 24 + 40);
	kp_elf_fini(&elf);
}

TEST(other_words_are_refused)
{
	struct parts p = {.type = ET_EXEC, .machine = EM_X86_64};
	struct elf_file f;

	put_wrapper(&p.wrappers, HIPF, 1);
	put_zeros(&p.wrappers, 8);
	put(&p.wrappers, "junkjunkjunkjunkjunkjunk", 24);
	f = build(&p);
	assert_refused(&f, KPACK_ERROR_INVALID_FORMAT,
		       "no wrapper at file offset 112: 6a 75 6e 6b");
	p.wrappers.size = 24;
	p.wrappers.data[4] = 2;
	f = build(&p);
	assert_refused(&f, KPACK_ERROR_INVALID_FORMAT, "no wrapper at file offset 80");
	/* a truncated wrapper */
	p.wrappers.data[4] = 1;
	p.wrappers.size = 20;
	f = build(&p);
	assert_refused(&f, KPACK_ERROR_INVALID_FORMAT, "no wrapper at file offset 80");
	parts_free(&p);
}

TEST(files_without_device_code_are_fine)
{
	static const struct section text = {
		".text", SHT_PROGBITS, ALLOC, 0, {(const uint8_t *)"x", 1}, 0, 0, 0};
	static const struct section debug[] = {
		{".hip_fatbin", SHT_NOBITS, ALLOC, FATBIN, {NULL, 1 << 20}, 0, 0, 0},
		{".hipFatBinSegment", SHT_NOBITS, ALLOC, SEGMENT, {NULL, 24}, 0, 0, 0},
	};
	struct elf_file f = elf_build(ET_DYN, EM_X86_64, &text, 1);
	struct kp_elf elf;

	assert_int_equal(read_elf(&f, &elf), KPACK_SUCCESS);
	assert_false(elf.has_fatbin);
	assert_false(elf.fatbin_nobits);
	bytes_free(&f.bytes);
	f = elf_build(ET_DYN, EM_X86_64, debug, COUNT(debug));
	assert_int_equal(read_elf(&f, &elf), KPACK_SUCCESS);
	assert_false(elf.has_fatbin);
	assert_true(elf.fatbin_nobits);
	assert_int_equal(elf.n_wrappers, 0);
	bytes_free(&f.bytes);
	/* no section headers at all */
	f = elf_build(ET_DYN, EM_X86_64, &text, 1);
	memset(f.bytes.data + offsetof(Elf64_Ehdr, e_shoff), 0, 8);
	memset(f.bytes.data + offsetof(Elf64_Ehdr, e_shnum), 0, 4);
	assert_int_equal(read_elf(&f, &elf), KPACK_SUCCESS);
	assert_false(elf.has_fatbin);
	bytes_free(&f.bytes);
}

/* A file with a RELATIVE and a symbol relocation. */
static struct elf_file usual_file(void)
{
	struct parts p = one_wrapper(EM_X86_64, 0, SHT_RELA);
	struct elf_file f;

	put_wrapper(&p.wrappers, HIPF, 0);
	put_symbol(&p.symbols, 0, 0);
	put_symbol(&p.symbols, S_FATBIN, FATBIN);
	put_rela(&p.relocs, SEGMENT + 8, 0, R_X86_64_RELATIVE, FATBIN);
	put_rela(&p.relocs, SEGMENT + 32, 1, R_X86_64_64, 0);
	f = build(&p);
	parts_free(&p);
	return f;
}

#define FIELD(name) offsetof(Elf64_Shdr, name)

TEST(lying_section_headers_are_refused)
{
	static const struct {
		size_t section, field;
		uint64_t value;
		const char *text;
	} cases[] = {
		{S_FATBIN, FIELD(sh_offset), 1 << 20, ".hip_fatbin: 16 bytes at offset"},
		{S_FATBIN, FIELD(sh_offset), UINT64_MAX,
		 ".hip_fatbin: 16 bytes at offset"},
		{S_FATBIN, FIELD(sh_size), UINT64_MAX, ".hip_fatbin: "},
		{S_FATBIN, FIELD(sh_addr), UINT64_MAX - 3, "address space"},
		{S_SEGMENT, FIELD(sh_size), 1 << 20, ".hipFatBinSegment: "},
		{S_SEGMENT, FIELD(sh_addr), UINT64_MAX - 3, "address space"},
		{S_RELOCS, FIELD(sh_size), 1 << 20, "relocations: "},
		{S_RELOCS, FIELD(sh_entsize), 16, "expected rows of 24"},
		{S_RELOCS, FIELD(sh_entsize), 0, "expected rows of 24"},
		{S_RELOCS, FIELD(sh_size), 47, "expected rows of 24"},
		{S_RELOCS, FIELD(sh_link), 99, "no symbols"},
		{S_RELOCS, FIELD(sh_link), S_FATBIN, "no symbols"},
		{S_SYMBOLS, FIELD(sh_size), 24, "symbol 1 of 1"},
		{S_SYMBOLS, FIELD(sh_offset), 1 << 20, "symbols: "},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct elf_file f = usual_file();

		set_sh(&f, cases[i].section, cases[i].field, cases[i].value);
		assert_refused(&f, KPACK_ERROR_INVALID_FORMAT, cases[i].text);
	}
}

TEST(two_relocations_of_one_word_are_refused)
{
	struct parts p = one_wrapper(EM_X86_64, 0, SHT_RELA);
	struct elf_file f;

	put_rela(&p.relocs, SEGMENT + 8, 0, R_X86_64_RELATIVE, 1);
	put_rela(&p.relocs, SEGMENT + 8, 0, R_X86_64_RELATIVE, 2);
	f = build(&p);
	assert_refused(&f, KPACK_ERROR_INVALID_FORMAT, "two relocations");
	parts_free(&p);
}

TEST(a_flood_of_relr_is_stopped)
{
	struct parts p = one_wrapper(EM_X86_64, 0, SHT_RELR);
	struct elf_file f;

	for (size_t i = 0; i < 100; i++) {
		put_number(&p.relocs, SEGMENT, 8);
		put_number(&p.relocs, UINT64_MAX, 8);
	}
	f = build(&p);
	assert_refused(&f, KPACK_ERROR_INVALID_FORMAT,
		       "two relocations of the word at 0x8008");
	parts_free(&p);
}

TEST(relr_may_run_over_the_end_of_the_address_space)
{
	struct parts p = one_wrapper(EM_X86_64, FATBIN, SHT_RELR);
	struct kp_elf elf;

	put_number(&p.relocs, UINT64_MAX - 1, 8);
	for (size_t i = 0; i < 3; i++)
		put_number(&p.relocs, UINT64_MAX, 8);
	elf = read_parts(&p);
	assert_wrapper(&elf, 0, KP_POINTER_IN_PLACE, FATBIN);
	kp_elf_fini(&elf);
}

TEST(ours_is_found_among_many_relocations)
{
	struct parts p = one_wrapper(EM_X86_64, 0, SHT_RELA);
	struct kp_elf elf;

	put_wrapper(&p.wrappers, HIPF, FATBIN + 2);
	put_wrapper(&p.wrappers, HIPF, 0);
	for (uint64_t i = 0; i < 5000; i++)
		put_rela(&p.relocs, 0x100000 + 8 * i, 0, R_X86_64_RELATIVE, i);
	put_rela(&p.relocs, SEGMENT + 48 + 8, 0, R_X86_64_RELATIVE, FATBIN + 3);
	for (uint64_t i = 0; i < 5000; i++)
		put_rela(&p.relocs, 8 * i, 0, R_X86_64_RELATIVE, 0x100 + i);
	p.relocs.size -= 24 * (5000 - SEGMENT / 8);
	put_rela(&p.relocs, SEGMENT + 8, 0, R_X86_64_RELATIVE, FATBIN + 1);
	elf = read_parts(&p);
	assert_wrapper(&elf, 0, KP_POINTER_RELATIVE, FATBIN + 1);
	assert_wrapper(&elf, 1, KP_POINTER_IN_PLACE, FATBIN + 2);
	assert_wrapper(&elf, 2, KP_POINTER_RELATIVE, FATBIN + 3);
	kp_elf_fini(&elf);
}

/* ---- wrappers in other sections ---- */

/* In .data: other words, a wrapper, invalid wrappers, and a wrapper that is relocated. */
static struct parts merged(void)
{
	struct parts p = {.type = ET_DYN,
			  .machine = EM_X86_64,
			  .reloc_type = SHT_RELA,
			  .merged = true};

	put(&p.wrappers, "some other data.", 16);
	put_wrapper(&p.wrappers, HIPF, FATBIN);
	put_number(&p.wrappers, HIPF, 4);
	put_number(&p.wrappers, 2, 4);               /* unknown version */
	put_wrapper(&p.wrappers, HIPF, FATBIN + 16); /* past the section's end */
	put_wrapper(&p.wrappers, HIPF, 0);
	put_wrapper(&p.wrappers, HIPK, FATBIN);
	put(&p.wrappers, "end", 3);
	put_rela(&p.relocs, SEGMENT + 72 + 8, 0, R_X86_64_RELATIVE, FATBIN + 15);
	return p;
}

TEST(wrappers_in_other_sections_are_found)
{
	struct parts p = merged();
	struct kp_elf elf = read_parts(&p);

	assert_true(elf.wrappers_scanned);
	assert_int_equal(elf.n_wrappers, 2);
	assert_wrapper(&elf, 0, KP_POINTER_IN_PLACE, FATBIN);
	assert_int_equal(elf.wrappers[0].vaddr, SEGMENT + 16);
	assert_int_equal(elf.wrappers[0].offset, 64 + 16 + 16);
	assert_reloc(&elf, 0, 0, 0);
	assert_wrapper(&elf, 1, KP_POINTER_RELATIVE, FATBIN + 15);
	assert_int_equal(elf.wrappers[1].vaddr, SEGMENT + 72);
	assert_int_equal(elf.wrappers[1].reloc_size, 24);
	kp_elf_fini(&elf);
}

TEST(wrappers_found_are_ordered_by_address)
{
	struct parts p = merged();
	struct kp_elf elf;

	p.extra_addr = 0x7004; /* words are aligned in memory, not in the file */
	put(&p.extra, "four", 4);
	put_wrapper(&p.extra, HIPF, FATBIN + 1);
	put_wrapper(&p.extra, HIPF, 0);
	put_rela(&p.relocs, 0x7008 + 24 + 8, 0, R_X86_64_RELATIVE, FATBIN + 2);
	elf = read_parts(&p);
	assert_int_equal(elf.n_wrappers, 4);
	assert_int_equal(elf.wrappers[0].vaddr, 0x7008);
	assert_wrapper(&elf, 0, KP_POINTER_IN_PLACE, FATBIN + 1);
	assert_wrapper(&elf, 1, KP_POINTER_RELATIVE, FATBIN + 2);
	assert_wrapper(&elf, 2, KP_POINTER_IN_PLACE, FATBIN);
	assert_wrapper(&elf, 3, KP_POINTER_RELATIVE, FATBIN + 15);
	kp_elf_fini(&elf);
}

TEST(pointers_that_are_not_known_make_no_wrapper)
{
	static const uint32_t types[] = {R_X86_64_64, R_X86_64_IRELATIVE};

	for (size_t i = 0; i < COUNT(types); i++) {
		struct parts p = merged();
		struct kp_elf elf;

		put_symbol(&p.symbols, 0, 0);
		put_symbol(&p.symbols, SHN_UNDEF, 0);
		put_rela(&p.relocs, SEGMENT + 16 + 8, 1, types[i], FATBIN);
		elf = read_parts(&p);
		assert_int_equal(elf.n_wrappers, 1);
		assert_wrapper(&elf, 0, KP_POINTER_RELATIVE, FATBIN + 15);
		kp_elf_fini(&elf);
	}
}

TEST(wrappers_found_share_no_bytes)
{
	struct parts p = {.type = ET_EXEC, .machine = EM_X86_64, .merged = true};
	struct kp_elf elf;

	/* the third word of the first wrapper looks like the start of another */
	put_number(&p.wrappers, HIPF, 4);
	put_number(&p.wrappers, 1, 4);
	put_number(&p.wrappers, FATBIN, 8);
	put_wrapper(&p.wrappers, HIPF, FATBIN + 1);
	put_wrapper(&p.wrappers, HIPF, FATBIN + 2);
	elf = read_parts(&p);
	assert_int_equal(elf.n_wrappers, 2);
	assert_wrapper(&elf, 0, KP_POINTER_IN_PLACE, FATBIN);
	assert_wrapper(&elf, 1, KP_POINTER_IN_PLACE, FATBIN + 2);
	kp_elf_fini(&elf);
}

TEST(only_data_of_linked_files_is_looked_at)
{
	static const uint64_t flags[] = {SHF_WRITE, ALLOC | SHF_EXECINSTR};
	struct parts p = {0};
	struct kp_elf elf;

	for (size_t i = 0; i < COUNT(flags); i++) {
		p = (struct parts){.type = ET_EXEC, .machine = EM_X86_64, .merged = true};
		p.extra_flags = flags[i];
		put_wrapper(&p.extra, HIPF, FATBIN);
		elf = read_parts(&p);
		assert_true(elf.wrappers_scanned);
		assert_int_equal(elf.n_wrappers, 0);
		kp_elf_fini(&elf);
	}
	/* if wrappers have their own section, other sections are not scanned */
	p = one_wrapper(EM_X86_64, FATBIN, SHT_RELA);
	put_wrapper(&p.extra, HIPF, FATBIN);
	elf = read_parts(&p);
	assert_false(elf.wrappers_scanned);
	assert_int_equal(elf.n_wrappers, 1);
	kp_elf_fini(&elf);
	p = merged();
	p.type = ET_REL;
	elf = read_parts(&p);
	assert_false(elf.wrappers_scanned);
	assert_int_equal(elf.n_wrappers, 0);
	kp_elf_fini(&elf);
	p = merged();
	p.without_fatbin = true;
	elf = read_parts(&p);
	assert_false(elf.wrappers_scanned);
	assert_int_equal(elf.n_wrappers, 0);
	kp_elf_fini(&elf);
}

TEST(converted_wrappers_are_found_by_the_marker)
{
	for (int without = 0; without < 2; without++) {
		struct parts p = merged();
		struct kp_elf elf;

		p.without_fatbin = without;
		put(&p.marker, "marker", 6);
		put_wrapper(&p.extra, HIPK, MARKER);
		put_wrapper(&p.extra, HIPK, 0);
		put_wrapper(&p.extra, HIPK, MARKER + 6);
		put_rela(&p.relocs, EXTRA + 24 + 8, 0, R_X86_64_RELATIVE, MARKER);
		elf = read_parts(&p);
		assert_true(elf.wrappers_scanned);
		assert_int_equal(elf.n_wrappers, without ? 2 : 4);
		assert_wrapper(&elf, elf.n_wrappers - 2, KP_POINTER_IN_PLACE, MARKER);
		assert_wrapper(&elf, elf.n_wrappers - 1, KP_POINTER_RELATIVE, MARKER);
		assert_int_equal(elf.wrappers[elf.n_wrappers - 1].fields.magic, HIPK);
		kp_elf_fini(&elf);
	}
}

TEST(half_converted_is_read)
{
	struct parts p = {.type = ET_EXEC, .machine = EM_X86_64};
	struct kp_elf elf;

	put_wrapper(&p.wrappers, HIPK, MARKER);
	put_wrapper(&p.wrappers, HIPF, FATBIN);
	put(&p.marker, "marker", 6);
	elf = read_parts(&p);
	assert_int_equal(elf.n_wrappers, 2);
	assert_wrapper(&elf, 0, KP_POINTER_IN_PLACE, MARKER);
	assert_wrapper(&elf, 1, KP_POINTER_IN_PLACE, FATBIN);
	kp_elf_fini(&elf);
}

TEST(lying_sections_of_data_are_refused)
{
	static const struct {
		size_t section, field;
		uint64_t value;
		const char *text;
	} cases[] = {
		{S_SEGMENT, offsetof(Elf64_Shdr, sh_size), 1 << 20, "data: "},
		{S_EXTRA, offsetof(Elf64_Shdr, sh_addr), UINT64_MAX - 3, "data: "},
		{S_EXTRA, offsetof(Elf64_Shdr, sh_offset), UINT64_MAX, "data: "},
		{S_MARKER, offsetof(Elf64_Shdr, sh_size), 1 << 20, ".rocm_kpack_ref: "},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct parts p = merged();
		struct elf_file f;

		put_zeros(&p.extra, 64);
		put_zeros(&p.marker, 8);
		f = build(&p);
		set_sh(&f, cases[i].section, cases[i].field, cases[i].value);
		assert_refused(&f, KPACK_ERROR_INVALID_FORMAT, cases[i].text);
		parts_free(&p);
	}
}

TEST(data_is_looked_at_once)
{
	struct parts p = merged();
	struct elf_file f = build(&p);

	SET_SH(&f, S_SEGMENT, sh_offset, 0);
	SET_SH(&f, S_SEGMENT, sh_size, f.bytes.size);
	SET_SH(&f, S_EXTRA, sh_offset, 0);
	SET_SH(&f, S_EXTRA, sh_size, f.bytes.size);
	assert_refused(&f, KPACK_ERROR_INVALID_FORMAT, "more data than the file's");
	parts_free(&p);
}

TEST(a_flood_of_words_is_stopped)
{
	struct parts p = {.type = ET_EXEC, .machine = EM_X86_64, .merged = true};
	struct elf_file f;
	struct kp_elf elf;

	/* the last two magics have no room for a wrapper */
	for (size_t i = 0; i < KP_WRAPPERS_MAX + 2; i++)
		put_number(&p.wrappers, UINT64_C(1) << 32 | HIPF, 8);
	f = build(&p);
	assert_int_equal(read_elf(&f, &elf), KPACK_SUCCESS);
	assert_int_equal(elf.n_wrappers, 0);
	kp_elf_fini(&elf);
	bytes_free(&f.bytes);
	put_number(&p.wrappers, 0, 8);
	f = build(&p);
	assert_refused(&f, KPACK_ERROR_INVALID_FORMAT, "more than 1048576 wrappers");
	parts_free(&p);
}

/* ---- invalid files ---- */

TEST(other_elfs_are_unsupported)
{
	struct elf_file f = usual_file();
	struct kp_span head = {f.bytes.data, 20};

	assert_true(kp_elf_host_probe(head));
	assert_false(kp_elf_host_probe((struct kp_span){f.bytes.data, 19}));
	f.bytes.data[18] = 224;
	assert_false(kp_elf_host_probe(head));
	f.bytes.data[18] = 190;
	assert_false(kp_elf_host_probe(head));
	f.bytes.data[18] = EM_X86_64;
	f.bytes.data[EI_CLASS] = ELFCLASS32;
	assert_false(kp_elf_host_probe(head));
	assert_refused(&f, KPACK_ERROR_NOT_IMPLEMENTED, "class 1");
	f = usual_file();
	f.bytes.data[EI_DATA] = ELFDATA2MSB;
	assert_refused(&f, KPACK_ERROR_NOT_IMPLEMENTED, "byte order 2");
	f = usual_file();
	f.bytes.data[0] = 0;
	assert_refused(&f, KPACK_ERROR_INVALID_FORMAT, "not an ELF");
}

TEST(absurd_section_counts_are_refused)
{
	struct elf_file f = usual_file();

	memset(f.bytes.data + offsetof(Elf64_Ehdr, e_shnum), 0, 2);
	SET_SH(&f, 0, sh_size, UINT64_C(1) << 40);
	assert_refused(&f, KPACK_ERROR_INVALID_FORMAT, "sections of at most");
}

static void assert_cuts_are_noticed(struct elf_file f)
{
	struct elf_file cut = f;
	struct kp_elf elf;

	for (cut.bytes.size = 0; cut.bytes.size < f.bytes.size; cut.bytes.size++)
		assert_int_equal(read_elf(&cut, &elf), KPACK_ERROR_INVALID_FORMAT);
	assert_int_equal(read_elf(&f, &elf), KPACK_SUCCESS);
	assert_int_equal(elf.n_wrappers, 2);
	kp_elf_fini(&elf);
	bytes_free(&f.bytes);
}

static struct elf_file merged_file(void)
{
	struct parts p = merged();
	struct elf_file f = build(&p);

	parts_free(&p);
	return f;
}

TEST(a_cut_anywhere_is_noticed)
{
	assert_cuts_are_noticed(usual_file());
	assert_cuts_are_noticed(merged_file());
}

/* Invert each byte of the file in turn: reading succeeds or fails, but never crashes. */
static void assert_wrong_bytes_are_survived(struct elf_file f)
{
	struct kp_elf elf;

	for (size_t i = 0; i < f.bytes.size; i++) {
		uint8_t right = f.bytes.data[i];

		f.bytes.data[i] = (uint8_t)~right;
		if (read_elf(&f, &elf) == KPACK_SUCCESS)
			kp_elf_fini(&elf);
		f.bytes.data[i] = right;
	}
	bytes_free(&f.bytes);
}

TEST(a_wrong_byte_anywhere_is_survived)
{
	assert_wrong_bytes_are_survived(usual_file());
	assert_wrong_bytes_are_survived(merged_file());
}
