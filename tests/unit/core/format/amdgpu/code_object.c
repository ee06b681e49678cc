/* SPDX-License-Identifier: MIT */
/* Facts in AMDGPU code objects: LLVM's (tests/data/amdgpu) and inconsistent ones. */
#include "tests/unit/exact_copy.h"
#include "tests/unit/unit.h"
#include <stdio.h>
#include "tests/unit/elf_builder.h"
#include "core/format/object.h"
#include "core/base/bounds.h"

#define HSA 64

static struct kpackx_error why;

static struct bytes read_vector(const char *name)
{
	const char *root = getenv("KPACK_SRC");
	struct bytes b = {0};
	uint8_t buf[4096];
	char path[4096];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "%s/tests/data/amdgpu/%s", root ? root : ".", name);
	f = fopen(path, "rb");
	if (!f)
		fail_msg("%s: cannot be read", path);
	while ((n = fread(buf, 1, sizeof(buf), f)) > 0)
		put(&b, buf, n);
	fclose(f);
	return b;
}

/* Describe an exactly sized copy, so that a sanitizer detects reads past the end. */
static kpack_error_t describe(const struct bytes *b, struct kp_object *out)
{
	struct kp_source src = exact_copy(b->data, b->size);
	kpack_error_t err = kp_object_describe(&src, out, &why);

	exact_copy_free(&src);
	return err;
}

static void assert_refused(const struct bytes *b, const char *text)
{
	struct kp_object object;

	assert_int_equal(describe(b, &object), KPACK_ERROR_INVALID_FORMAT);
	assert_has(why.text, text);
	assert_null(object.kernels);
	assert_null(object.facts.items);
}

static void assert_fact(const struct kp_object *object, const char *name,
			const char *expected)
{
	const char *value = kp_pairs_find(&object->facts, name);

	if (!expected)
		assert_null(value);
	else if (!value)
		fail_msg("%s is not stated", name);
	else
		assert_string_equal(value, expected);
}

/* ---- LLVM's code objects ---- */

#define NO KP_NOT_STATED
#define SECOND "_Z6secondIfEvPT_"

static const struct vector {
	const char *file, *arch, *version, *target, *isa, *generic, *form;
	bool symbols;
	/* vgprs, agprs, sgprs, lds, scratch, kernarg, wavefront, threads */
	int64_t first[8], second[8];
} vectors[] = {
	{"v2.hsaco",
	 "gfx906:sramecc+:xnack+",
	 "2",
	 "amdgcn-amd-amdhsa--gfx907",
	 "AMD:AMDGPU:9:0:7",
	 NULL,
	 NULL,
	 false,
	 {4, NO, 17, 256, 416, 24, 64, NO},
	 {2, NO, 10, 0, 0, 8, 64, NO}},
	{"v3.hsaco",
	 "gfx906:sramecc-:xnack+",
	 "3",
	 NULL,
	 NULL,
	 NULL,
	 NULL,
	 true,
	 {4, NO, 13, 256, 416, 24, 64, 1024},
	 {2, NO, 6, 0, 0, 8, 64, 256}},
	{"v4.hsaco",
	 "gfx90a:xnack+",
	 "4",
	 "amdgcn-amd-amdhsa--gfx90a:xnack+",
	 NULL,
	 NULL,
	 NULL,
	 true,
	 {4, 0, 19, 256, 416, 24, 64, 1024},
	 {2, 0, 10, 0, 0, 8, 64, 256}},
	{"v5.hsaco",
	 "gfx1100",
	 "5",
	 "amdgcn-amd-amdhsa--gfx1100",
	 NULL,
	 NULL,
	 NULL,
	 true,
	 {4, NO, 11, 256, 416, 24, 32, 1024},
	 {2, NO, 3, 0, 0, 8, 32, 256}},
	{"v6.hsaco",
	 "gfx11-generic",
	 "6",
	 "amdgcn-amd-amdhsa--gfx11-generic",
	 NULL,
	 "1",
	 NULL,
	 true,
	 {4, NO, 11, 256, 416, 24, 32, 1024},
	 {2, NO, 3, 0, 0, 8, 32, 256}},
	{"stripped.hsaco",
	 "gfx90a:xnack+",
	 "4",
	 NULL,
	 NULL,
	 NULL,
	 NULL,
	 true,
	 {NO, NO, NO, 256, 416, 24, 64, NO},
	 {NO, NO, NO, 0, 0, 8, 64, NO}},
	{"relocatable.o",
	 "gfx942:sramecc+",
	 "6",
	 "amdgcn-amd-amdhsa--gfx942:sramecc+",
	 NULL,
	 NULL,
	 "relocatable",
	 true,
	 {4, 0, 17, 256, 416, 24, 64, 1024},
	 {2, 0, 9, 0, 0, 8, 64, 256}},
};

static void assert_kernel(const struct kp_kernel *k, const char *name, const char *symbol,
			  const int64_t n[8])
{
	assert_string_equal(k->name, name);
	if (symbol)
		assert_string_equal(k->symbol, symbol);
	else
		assert_null(k->symbol);
	assert_int_equal(k->vgprs, n[0]);
	assert_int_equal(k->agprs, n[1]);
	assert_int_equal(k->sgprs, n[2]);
	assert_int_equal(k->lds, n[3]);
	assert_int_equal(k->scratch, n[4]);
	assert_int_equal(k->kernarg, n[5]);
	assert_int_equal(k->wavefront, n[6]);
	assert_int_equal(k->threads, n[7]);
}

TEST(every_version_is_described)
{
	for (size_t i = 0; i < COUNT(vectors); i++) {
		const struct vector *v = &vectors[i];
		struct bytes b = read_vector(v->file);
		struct kp_object object;

		assert_int_equal(describe(&b, &object), KPACK_SUCCESS);
		assert_string_equal(object.type, "hsaco");
		assert_string_equal(object.arch, v->arch);
		assert_fact(&object, "code object", v->version);
		assert_fact(&object, "target", v->target);
		assert_fact(&object, "ISA", v->isa);
		assert_fact(&object, "generic version", v->generic);
		assert_fact(&object, "form", v->form);
		assert_fact(&object, "disagreement", NULL);
		assert_int_equal(object.n_kernels, 2);
		assert_kernel(&object.kernels[0], "first", v->symbols ? "first.kd" : NULL,
			      v->first);
		assert_kernel(&object.kernels[1], SECOND,
			      v->symbols ? SECOND ".kd" : NULL, v->second);
		kp_object_fini(&object);
		bytes_free(&b);
	}
}

/* Notes are also found through the segments. */
TEST(without_sections_there_are_segments)
{
	struct bytes b = read_vector("v5.hsaco");
	struct kp_object object;

	kp_put_le64(b.data + offsetof(Elf64_Ehdr, e_shoff), 0);
	memset(b.data + offsetof(Elf64_Ehdr, e_shnum), 0, 4);
	assert_int_equal(describe(&b, &object), KPACK_SUCCESS);
	assert_int_equal(object.n_kernels, 2);
	assert_fact(&object, "target", "amdgcn-amd-amdhsa--gfx1100");
	kp_object_fini(&object);
	bytes_free(&b);
}

static void set_flags(struct bytes *b, uint32_t flags)
{
	kp_put_le32(b->data + offsetof(Elf64_Ehdr, e_flags), flags);
}

TEST(flags_and_note_can_disagree)
{
	static const struct {
		const char *file;
		uint32_t flags;
		const char *arch, *fact;
	} cases[] = {
		{"v4.hsaco", 0x53f, "gfx90a",
		 "the flags say gfx90a, the note gfx90a:xnack+"},
		{"v4.hsaco", 0x53f | 0x200, "gfx90a:xnack+", NULL},
		{"v5.hsaco", 0x46, "gfx1101", "the flags say gfx1101, the note gfx1100"},
		/* an unknown or missing processor is taken from the note */
		{"v5.hsaco", 0xfe, "gfx1100", NULL},
		{"v5.hsaco", 0, "gfx1100", NULL},
		{"stripped.hsaco", 0xfe, "mach-0xfe", NULL},
		{"stripped.hsaco", 0, "", NULL},
		{"v2.hsaco", 1, "gfx906:xnack+", NULL},
		{"v2.hsaco", 0x2c, "gfx900:xnack-",
		 "the flags say gfx900:xnack-, the note gfx906:xnack+"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct bytes b = read_vector(cases[i].file);
		struct kp_object object;

		set_flags(&b, cases[i].flags);
		assert_int_equal(describe(&b, &object), KPACK_SUCCESS);
		assert_string_equal(object.arch, cases[i].arch);
		assert_fact(&object, "disagreement", cases[i].fact);
		kp_object_fini(&object);
		bytes_free(&b);
	}
}

/* For other systems the ABI version means nothing; their flags are read as v3's. */
TEST(other_systems_have_code_objects_too)
{
	static const struct {
		uint8_t os;
		const char *name;
	} cases[] = {{65, "PAL"}, {66, "Mesa 3D"}, {0, NULL}};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct bytes b = read_vector("stripped.hsaco");
		struct kp_object object;

		b.data[EI_OSABI] = cases[i].os;
		b.data[EI_ABIVERSION] = 0;
		set_flags(&b, 0x12c);
		assert_int_equal(describe(&b, &object), KPACK_SUCCESS);
		assert_string_equal(object.arch, "gfx900:xnack+");
		assert_fact(&object, "code object", NULL);
		assert_fact(&object, "system", cases[i].name);
		kp_object_fini(&object);
		bytes_free(&b);
	}
}

/*
 * The container's image takes the arch from the note if the flags name no known
 * processor.
 */
TEST(a_bare_object_has_its_arch)
{
	static const struct {
		const char *file;
		uint32_t flags;
		const char *arch;
	} cases[] = {
		{"v5.hsaco", 0x41, "gfx1100"},
		{"v5.hsaco", 0xfe, "gfx1100"},
		{"v2.hsaco", 1, "gfx906:xnack+"},
		{"stripped.hsaco", 0xfe, "mach-0xfe"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct bytes b = read_vector(cases[i].file);
		struct kp_source src = kp_source_memory(b.data, b.size);
		struct kp_containers list;

		set_flags(&b, cases[i].flags);
		assert_int_equal(kp_containers_scan(&src, &list, &why), KPACK_SUCCESS);
		assert_int_equal(list.count, 1);
		assert_string_equal(list.images[0].arch, cases[i].arch);
		kp_containers_fini(&list);
		bytes_free(&b);
	}
}

/* Truncating a file or changing a byte at worst makes describing it fail. */
TEST(damage_is_survived)
{
	struct kp_object object;

	for (size_t i = 0; i < COUNT(vectors); i++) {
		struct bytes b = read_vector(vectors[i].file);
		size_t size = b.size;

		for (b.size = 0; b.size < size; b.size += 7)
			if (describe(&b, &object) == KPACK_SUCCESS)
				kp_object_fini(&object);
		b.size = size;
		for (size_t at = 0; at < size; at++) {
			b.data[at] ^= 0xff;
			if (describe(&b, &object) == KPACK_SUCCESS)
				kp_object_fini(&object);
			b.data[at] ^= 0xff;
		}
		bytes_free(&b);
	}
}

/* ---- code objects made here ---- */

static void put_note(struct bytes *b, const char *owner, uint32_t type,
		     struct kp_span contents)
{
	size_t size = strlen(owner) + 1;

	put_number(b, size, 4);
	put_number(b, contents.size, 4);
	put_number(b, type, 4);
	put(b, owner, size);
	put_padding(b, 4);
	put(b, contents.data, contents.size);
	put_padding(b, 4);
}

/* A linked v6 object for gfx1100 with NOTES in one section. */
static struct elf_file with_notes(const struct bytes *notes)
{
	const struct section section = {".note",           SHT_NOTE, SHF_ALLOC, 0x1000,
					bytes_span(notes), 0,        0,         0};
	struct elf_file f = elf_build(ET_DYN, EM_AMDGPU, &section, 1);

	f.bytes.data[EI_OSABI] = HSA;
	f.bytes.data[EI_ABIVERSION] = 4;
	set_flags(&f.bytes, 0x41);
	return f;
}

static struct elf_file with_metadata(const char *bytes, size_t size)
{
	struct bytes notes = {0};
	struct elf_file f;

	put_note(&notes, "GNU", 3, kp_span_str("build ID"));
	put_note(&notes, "AMDGPU", 32, (struct kp_span){(const uint8_t *)bytes, size});
	/* the first note of each type counts */
	put_note(&notes, "AMDGPU", 32, kp_span_str("\xc1"));
	f = with_notes(&notes);
	bytes_free(&notes);
	return f;
}

#define METADATA(bytes) with_metadata(bytes, sizeof(bytes) - 1)
#define KERNELS                                                                          \
	"\xae"                                                                           \
	"amdhsa.kernels"
#define TARGET                                                                           \
	"\xad"                                                                           \
	"amdhsa.target"

TEST(metadata_is_read_as_it_comes)
{
	/* unknown keys, numbers of several widths, another order */
	struct elf_file f = METADATA(
		"\x83"
		"\xa3"
		"new"
		"\x92\x01\x80" KERNELS "\x92"
		"\x83\xa7.symbol\xa4k.kd\xa5.name\xa1k\xab.vgpr_count\xcd\x01\x00"
		"\x82\xa5.name\xd9\x03wmm\xa5.args\x91\x81\xa5.size\x08" TARGET "\xba"
		"amdgcn-amd-amdhsa--gfx1100");
	struct kp_object object;

	assert_int_equal(describe(&f.bytes, &object), KPACK_SUCCESS);
	assert_int_equal(object.n_kernels, 2);
	assert_kernel(&object.kernels[0], "k", "k.kd",
		      (const int64_t[]){256, NO, NO, NO, NO, NO, NO, NO});
	assert_kernel(&object.kernels[1], "wmm", NULL,
		      (const int64_t[]){NO, NO, NO, NO, NO, NO, NO, NO});
	assert_fact(&object, "target", "amdgcn-amd-amdhsa--gfx1100");
	kp_object_fini(&object);
	bytes_free(&f.bytes);
}

TEST(metadata_that_lies_is_refused)
{
	static const struct {
		const char *bytes;
		size_t size;
		const char *text;
	} cases[] = {
#define CASE(b, text) {b, sizeof(b) - 1, text}
		CASE("", "value missing"),
		CASE("\x90", "metadata of kernels"),
		CASE("\x81" KERNELS, "value missing"),
		CASE("\x81" KERNELS "\xdd\xff\xff\xff\xff", "count exceeds"),
		CASE("\x81" KERNELS "\x91\x80", "without a name"),
		CASE("\x81" KERNELS "\x91\x81\xa5.name\xa0", "without a name"),
		CASE("\x81" KERNELS "\x91\x81\xa5.name\x01", "metadata of kernels"),
		CASE("\x81" KERNELS "\x91\x82\xa5.name\xa1k\xab.vgpr_count\xff",
		     "metadata of kernels"),
		CASE("\x81" KERNELS "\x91\x82\xa5.name\xa1k\xab.vgpr_count"
		     "\xcf\xff\xff\xff\xff\xff\xff\xff\xff",
		     "above 2^63"),
		CASE("\x81" TARGET "\xd9\xff", "runs past the end"),
#undef CASE
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct elf_file f = with_metadata(cases[i].bytes, cases[i].size);

		assert_refused(&f.bytes, cases[i].text);
		bytes_free(&f.bytes);
	}
}

TEST(notes_that_pass_the_end_are_refused)
{
	struct bytes notes = {0};
	struct elf_file f;

	put_note(&notes, "AMDGPU", 32, kp_span_str("\x80"));
	for (size_t field = 0; field < 8; field += 4) {
		f = with_notes(&notes);
		/* the first section follows the file header */
		kp_put_le32(f.bytes.data + 64 + field, 0xfffffff0);
		assert_refused(&f.bytes, "pass the end");
		bytes_free(&f.bytes);
	}
	notes.size = 11;
	f = with_notes(&notes);
	assert_refused(&f.bytes, "");
	bytes_free(&f.bytes);
	bytes_free(&notes);
}

/* Many sections cover the same notes. */
TEST(notes_are_walked_once)
{
	struct bytes notes = {0};
	struct section sections[20];
	struct elf_file f;

	for (size_t i = 0; i < 1000; i++)
		put_note(&notes, "x", 1, kp_span_str("1234"));
	for (size_t i = 0; i < COUNT(sections); i++)
		sections[i] = (struct section){
			"n",
			SHT_NOTE,
			0,
			0,
			i ? (struct kp_span){NULL, 0} : bytes_span(&notes),
			0,
			0,
			0};
	f = elf_build(ET_DYN, EM_AMDGPU, sections, COUNT(sections));
	for (size_t i = 2; i <= COUNT(sections); i++) {
		SET_SH(&f, i, sh_offset, 64);
		SET_SH(&f, i, sh_size, notes.size);
	}
	assert_refused(&f.bytes, "in a code object of");
	bytes_free(&f.bytes);
	bytes_free(&notes);
}

static void put_kernel(struct bytes *symbols, uint32_t name, unsigned type,
		       uint64_t value)
{
	put_number(symbols, name, 4);
	put_number(symbols, type, 1);
	put_number(symbols, 0, 1);
	put_number(symbols, 3, 2); /* .rodata */
	put_number(symbols, value, 8);
	put_number(symbols, 64, 8);
}

/* A file with .dynsym, .dynstr of NAMES, and a .rodata of one descriptor at 0x2000. */
static struct elf_file with_symbols(const struct bytes *symbols, struct kp_span names)
{
	static const uint8_t descriptor[64] = {1, 0, 0, 0, 2, 0, 0, 0, 3};
	const struct section sections[] = {
		{".dynsym", SHT_DYNSYM, SHF_ALLOC, 0, bytes_span(symbols), 2, 1, 24},
		{".dynstr", SHT_STRTAB, SHF_ALLOC, 0, names, 0, 0, 0},
		{".rodata", SHT_PROGBITS, SHF_ALLOC, 0x2000, {descriptor, 64}, 0, 0, 0},
	};
	struct elf_file f = elf_build(ET_DYN, EM_AMDGPU, sections, COUNT(sections));

	f.bytes.data[EI_OSABI] = HSA;
	f.bytes.data[EI_ABIVERSION] = 4;
	set_flags(&f.bytes, 0x41);
	return f;
}

static const char names[] = "\0a.kd\0.kd\0b";

TEST(descriptors_are_found_by_their_symbols)
{
	struct bytes symbols = {0};
	struct kp_object object;
	struct elf_file f;

	put_zeros(&symbols, 24);
	put_kernel(&symbols, 1, STT_OBJECT, 0x2000);
	put_kernel(&symbols, 6, STT_OBJECT, 0x2000);  /* empty name before .kd */
	put_kernel(&symbols, 1, STT_FUNC, 0x2000);    /* not an object */
	put_kernel(&symbols, 10, STT_OBJECT, 0x2000); /* no .kd */
	put_kernel(&symbols, 99, STT_OBJECT, 0x2000); /* name out of range */
	put_kernel(&symbols, 1, STT_OBJECT, 0x2001);  /* no descriptor at this address */
	f = with_symbols(&symbols,
			 (struct kp_span){(const uint8_t *)names, sizeof(names)});
	assert_int_equal(describe(&f.bytes, &object), KPACK_SUCCESS);
	assert_int_equal(object.n_kernels, 2);
	assert_kernel(&object.kernels[0], "a", "a.kd",
		      (const int64_t[]){NO, NO, NO, 1, 2, 3, 64, NO});
	assert_kernel(&object.kernels[1], "a", "a.kd",
		      (const int64_t[]){NO, NO, NO, NO, NO, NO, NO, NO});
	kp_object_fini(&object);
	SET_SH(&f, 1, sh_link, 9);
	assert_refused(&f.bytes, "names in section 9 of");
	SET_SH(&f, 1, sh_link, 3);
	assert_refused(&f.bytes, "holds no names");
	bytes_free(&f.bytes);
	bytes_free(&symbols);
}

/* A thousand symbols share one name of a thousand bytes. */
TEST(names_are_not_copied_without_end)
{
	struct bytes symbols = {0}, long_name = {0};
	struct elf_file f;

	put_zeros(&long_name, 1);
	for (size_t i = 0; i < 1000; i++)
		put(&long_name, "n", 1);
	put(&long_name, ".kd", 4);
	for (size_t i = 0; i < 1000; i++)
		put_kernel(&symbols, 1, STT_OBJECT, 0x2000);
	f = with_symbols(&symbols, bytes_span(&long_name));
	assert_refused(&f.bytes, "more bytes than all names");
	bytes_free(&f.bytes);
	bytes_free(&long_name);
	bytes_free(&symbols);
}
