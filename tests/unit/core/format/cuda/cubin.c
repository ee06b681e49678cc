/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"
#include "tests/unit/cuda_vectors.h"

#define STACK "_Z5stackIcEvPfi4pairT_"

/* ---- cubins made by ptxas ---- */

/* The values ptxas -v prints, and the parameters' size in C's layout. */
struct expected {
	const char *name;
	int64_t registers, shared, stack, parameters, threads;
};

static void assert_kernels(const struct kp_object *o, const struct expected *k, size_t n)
{
	assert_int_equal(o->n_kernels, n);
	for (size_t i = 0; i < n; i++) {
		assert_string_equal(o->kernels[i].name, k[i].name);
		assert_null(o->kernels[i].symbol);
		assert_int_equal(o->kernels[i].vgprs, k[i].registers);
		assert_int_equal(o->kernels[i].lds, k[i].shared);
		assert_int_equal(o->kernels[i].scratch, k[i].stack);
		assert_int_equal(o->kernels[i].kernarg, k[i].parameters);
		assert_int_equal(o->kernels[i].threads, k[i].threads);
	}
}

/*
 * Image NUMBER of a vector is a cubin for ARCH with these kernels; scanned alone it is a
 * container.
 */
static void assert_vector(const char *name, size_t number, const char *arch,
			  const struct expected *k)
{
	struct bytes file = read_vector(name), image;
	struct kp_containers list;
	struct kp_object o;

	assert_int_equal(nest(span_of(&file), &list), KPACK_SUCCESS);
	image = load_image(&file, &list, number);
	kp_containers_fini(&list);
	assert_int_equal(describe(span_of(&image), &o), KPACK_SUCCESS);
	assert_string_equal(o.type, "cubin");
	assert_string_equal(o.arch, arch);
	assert_string_equal(kp_pairs_find(&o.facts, "toolkit"), "13.0");
	assert_string_equal(kp_pairs_find(&o.facts, "abi"), "8");
	assert_string_equal(kp_pairs_find(&o.facts, "tool"), "ptxas");
	assert_string_equal(kp_pairs_find(&o.facts, "tool version"),
			    "Cuda compilation tools, release 13.0, V13.0.88");
	assert_kernels(&o, k, 3);
	kp_object_fini(&o);

	put_zeros(&image, 16);
	assert_int_equal(nest(span_of(&image), &list), KPACK_SUCCESS);
	assert_int_equal(list.count, 1);
	assert_int_equal(list.items[0].size, image.size - 16);
	assert_string_equal(list.images[0].arch, arch);
	assert_string_equal(list.images[0].kind, "cuda");
	kp_containers_fini(&list);
	bytes_free(&image);
	bytes_free(&file);
}

TEST(kernels_are_as_ptxas_says)
{
	static const struct expected sm_75[] = {{STACK, 61, 0, 0, 41, -1},
						{"shared", 10, 5000, 0, 9, 96},
						{"plain", 8, 0, 0, 12, -1}},
				     sm_90[] = {{STACK, 34, 0, 400, 41, -1},
						{"shared", 10, 5000, 0, 9, 96},
						{"plain", 10, 0, 0, 12, -1}},
				     sm_121[] = {{STACK, 37, 0, 0, 41, -1},
						 {"shared", 10, 5000, 0, 9, 96},
						 {"plain", 10, 0, 0, 12, -1}},
				     unlinked[] = {{STACK, 34, 0, 400, 41, -1},
						   {"shared", 10, 5000, 0, 9, 96},
						   {"plain", 24, 0, 0, 12, -1}};

	assert_vector("zstd.fatbin", 0, "sm_90a", sm_90);
	assert_vector("zstd.fatbin", 1, "sm_75", sm_75);
	assert_vector("blackwell.fatbin", 0, "sm_100", sm_90);
	assert_vector("blackwell.fatbin", 1, "sm_100a", sm_90);
	assert_vector("family.fatbin", 0, "sm_100f", sm_90);
	assert_vector("family.fatbin", 1, "sm_121", sm_121);
	assert_vector("relocatable.fatbin", 0, "sm_90", unlinked);
}

/* ---- handcrafted cubins ---- */

struct abi {
	uint8_t osabi, version;
	uint32_t flags, e_version;
	const char *arch, *toolkit, *virtual_arch;
};

static struct elf_file cubin(const struct abi *abi, const struct section *sections,
			     size_t n)
{
	struct elf_file f = elf_build(ET_EXEC, EM_CUDA, sections, n);

	f.bytes.data[EI_OSABI] = abi->osabi;
	f.bytes.data[EI_ABIVERSION] = abi->version;
	kp_put_le32(f.bytes.data + offsetof(Elf64_Ehdr, e_version), abi->e_version);
	kp_put_le32(f.bytes.data + offsetof(Elf64_Ehdr, e_flags), abi->flags);
	return f;
}

static const char *fact(const struct kp_object *o, const char *name)
{
	const char *value = kp_pairs_find(&o->facts, name);

	return value ? value : "";
}

TEST(flags_are_read_by_their_abi)
{
	static const struct abi abis[] = {
		{0x33, 7, 0x4b054b, 0x7c, "sm_75", "12.4", "compute_75"},
		{0x33, 7, 0x5a0d5a, 0x7c, "sm_90a", "12.4", "compute_90"},
		{0x33, 7, 0x500556, 0x76, "sm_86", "11.8", "compute_80"},
		{0x33, 7, 0x640564, 0x80, "sm_100", "12.8", "compute_100"},
		{0x41, 8, 0x06004b04, 1, "sm_75", "", ""},
		{0x41, 8, 0x06006402, 1, "sm_100", "", ""},
		{0x41, 8, 0x06007902, 1, "sm_121", "", ""},
		{0x33, 6, 0x500550, 0x6e, "sm_80", "11.0", "compute_80"},
		{0x41, 9, 0x0700c802, 1, "sm_200", "", ""},
		{0x41, 8, 0, 1, "", "", ""},
	};

	for (size_t i = 0; i < COUNT(abis); i++) {
		struct elf_file f = cubin(&abis[i], NULL, 0);
		struct kp_containers list;
		struct kp_object o;

		assert_int_equal(describe(span_of(&f.bytes), &o), KPACK_SUCCESS);
		assert_string_equal(o.type, "cubin");
		assert_string_equal(o.arch, abis[i].arch);
		assert_string_equal(fact(&o, "toolkit"), abis[i].toolkit);
		assert_string_equal(fact(&o, "virtual arch"), abis[i].virtual_arch);
		assert_int_equal(o.n_kernels, 0);
		kp_object_fini(&o);
		assert_int_equal(nest(span_of(&f.bytes), &list), KPACK_SUCCESS);
		assert_int_equal(list.items[0].size, f.bytes.size);
		assert_string_equal(list.images[0].arch, abis[i].arch);
		kp_containers_fini(&list);
		bytes_free(&f.bytes);
	}
}

static const struct abi sm_90 = {.osabi = 0x41, .version = 8, .flags = 0x06005a04};

/* A cubin for sm_90 with one more section has the target ARCH. */
static void assert_arch(const char *section, uint32_t type, struct kp_span content,
			const char *arch)
{
	struct section s = {section, type, 0, 0, content, 0, 0, 0};
	struct elf_file f = cubin(&sm_90, &s, 1);
	struct kp_object o;

	assert_int_equal(describe(span_of(&f.bytes), &o), KPACK_SUCCESS);
	assert_string_equal(o.arch, arch);
	kp_object_fini(&o);
	bytes_free(&f.bytes);
}

static void put_note(struct bytes *b, uint32_t type, const void *desc, size_t size)
{
	put_number(b, 12, 4);
	put_number(b, size, 4);
	put_number(b, type, 4);
	put(b, "NVIDIA Corp", 12);
	put(b, desc, size);
	put_padding(b, 4);
}

static void put_tool_note(struct bytes *b, const char *command)
{
	struct bytes desc = {0};

	put_number(&desc, 2, 4);
	put_number(&desc, 0, 4);
	put_number(&desc, 1, 4);
	put_number(&desc, 0, 4);
	put_number(&desc, 0, 4);
	put_number(&desc, 7, 4);
	put(&desc, "\0ptxas", 7);
	put(&desc, command, strlen(command) + 1);
	put_note(b, 2000, desc.data, desc.size);
	bytes_free(&desc);
}

TEST(variants_are_in_the_command_line)
{
	static const char *const cases[][2] = {
		{"-arch sm_90a -m 64 ", "sm_90a"},
		{"-arch=sm_90a", "sm_90a"},
		{"--gpu-name sm_90f -O3", "sm_90f"},
		{"-arch sm_90", "sm_90"},
		{"-arch sm_900a -m 64", "sm_90"},
		{"-arch xsm_90a", "sm_90"},
		{"-arch sm_90ab", "sm_90"},
		{"-arch sm_80a", "sm_90"},
		{"-o sm_90.x -arch sm_90a", "sm_90a"},
		{"", "sm_90"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct bytes note = {0};

		put_tool_note(&note, cases[i][0]);
		assert_arch(".note.nv.tkinfo", SHT_NOTE, span_of(&note), cases[i][1]);
		for (size_t size = 0; size + 4 <= note.size; size++)
			assert_arch(".note.nv.tkinfo", SHT_NOTE,
				    (struct kp_span){note.data, size}, "sm_90");
		kp_put_le32(note.data + 24 + 20, UINT32_MAX); /* command line's offset */
		assert_arch(".note.nv.tkinfo", SHT_NOTE, span_of(&note), "sm_90");
		bytes_free(&note);
	}
}

TEST(variants_are_in_the_compatibility_record)
{
	static const struct {
		const char *bytes;
		size_t size;
		const char *arch;
	} cases[] = {
		{"\x02\x09\x01\x00\x02\x02\x01\x00", 8, "sm_90a"},
		{"\x02\x09\x00\x00", 4, "sm_90"},
		{"\x02\x09\x01", 3, "sm_90"},
		{"\x02\x08\x01\x00", 4, "sm_90"},
	};

	for (size_t i = 0; i < COUNT(cases); i++)
		assert_arch(
			".nv.compat", SHT_LOPROC + 0x86,
			(struct kp_span){(const uint8_t *)cases[i].bytes, cases[i].size},
			cases[i].arch);
}

TEST(the_second_note_says_toolkit_and_virtual_arch)
{
	static const uint8_t desc[] = {2, 0, 80, 0, 131, 0, 0, 0};
	struct bytes note = {0};
	struct section s = {".note.nv.cuinfo", SHT_NOTE, 0, 0, {0}, 0, 0, 0};
	struct kp_object o;
	struct elf_file f;

	put_note(&note, 1000, desc, sizeof(desc));
	s.content = span_of(&note);
	f = cubin(&sm_90, &s, 1);
	assert_int_equal(describe(span_of(&f.bytes), &o), KPACK_SUCCESS);
	assert_string_equal(fact(&o, "toolkit"), "13.1");
	assert_string_equal(fact(&o, "virtual arch"), "compute_80");
	kp_object_fini(&o);
	bytes_free(&f.bytes);
	bytes_free(&note);
}

static void put_function(struct bytes *b, uint32_t name, uint8_t bind, uint8_t other,
			 uint16_t section)
{
	put_number(b, name, 4);
	put_number(b, ELF64_ST_INFO(bind, STT_FUNC), 1);
	put_number(b, other, 1);
	put_number(b, section, 2);
	put_zeros(b, 16);
}

/* A cubin of the old ABI; its code section's header has the number of registers. */
static struct elf_file old_cubin(struct bytes *symbols, const char *names, size_t size)
{
	static const uint8_t info[] = {4, 0x0a, 8,  0, 1, 0, 0,  0, 0x60, 1, 20, 0,
				       3, 0x19, 20, 0, 4, 5, 12, 0, 32,   0, 0,  0,
				       4, 0,    0,  0, 2, 0, 0,  0, 9,    9, 9};
	static const uint8_t frame[] = {4, 0x11, 8, 0, 1, 0, 0, 0, 48, 0, 0, 0,
					4, 0x11, 8, 0, 9, 0, 0, 0, 48, 0, 0, 0};
	const struct section sections[] = {
		{".text.k", SHT_PROGBITS, 6, 0, {info, 8}, 0, 23u << 24 | 5, 0},
		{".strtab", SHT_STRTAB, 0, 0, {(const uint8_t *)names, size}, 0, 0, 0},
		{".symtab", SHT_SYMTAB, 0, 0, span_of(symbols), 2, 1, 24},
		{".nv.info", SHT_LOPROC, 0, 0, {frame, sizeof(frame)}, 0, 0, 0},
		{".nv.info.k", SHT_LOPROC, 0, 0, {info, sizeof(info)}, 0, 0, 0},
		{".nv.shared.k", SHT_NOBITS, 0, 0, {NULL, 1 << 12}, 0, 0, 0},
	};
	static const struct abi sm_86 = {0x33, 7, 0x560556, 0x76, "", "", ""};

	return cubin(&sm_86, sections, COUNT(sections));
}

TEST(kernels_of_the_old_abi_are_described)
{
	static const struct expected k[] = {{"k", 23, 4096, 48, 20, 256},
					    {"other", 23, 0, -1, -1, -1}};
	struct bytes symbols = {0};
	struct elf_file f;
	struct kp_object o;

	put_zeros(&symbols, 24);
	put_function(&symbols, 1, STB_GLOBAL, 0x10, 1);
	put_function(&symbols, 3, STB_LOCAL, 0x10, 1);
	put_function(&symbols, 9, STB_GLOBAL, 0, 1); /* no entry point */
	f = old_cubin(&symbols, "\0k\0other\0device", 16);
	assert_int_equal(describe(span_of(&f.bytes), &o), KPACK_SUCCESS);
	assert_string_equal(o.arch, "sm_86");
	assert_kernels(&o, k, 2);
	kp_object_fini(&o);
	bytes_free(&f.bytes);
	bytes_free(&symbols);
}

/*
 * Device functions have attributes too, so functions not marked as entries are no
 * kernels.
 */
TEST(functions_are_kernels_where_nothing_is_said)
{
	struct bytes symbols = {0};
	struct elf_file f;
	struct kp_object o;

	put_zeros(&symbols, 24);
	put_function(&symbols, 1, STB_GLOBAL, 0, 1);
	put_function(&symbols, 3, STB_LOCAL, 0, 1);
	put_function(&symbols, 9, STB_WEAK, 0, 1);
	put_function(&symbols, 3, STB_GLOBAL, 0, SHN_UNDEF);
	f = old_cubin(&symbols, "\0k\0other\0device", 16);
	assert_int_equal(describe(span_of(&f.bytes), &o), KPACK_SUCCESS);
	assert_int_equal(o.n_kernels, 0);
	kp_object_fini(&o);
	for (size_t i = 1; i + 8 < f.bytes.size; i++)
		if (memcmp(f.bytes.data + i, ".nv.info", 9) == 0)
			f.bytes.data[i] = '-';
	assert_int_equal(describe(span_of(&f.bytes), &o), KPACK_SUCCESS);
	assert_int_equal(o.n_kernels, 2);
	assert_string_equal(o.kernels[1].name, "device");
	kp_object_fini(&o);
	bytes_free(&f.bytes);
	bytes_free(&symbols);
}

TEST(damaged_symbols_are_refused)
{
	struct bytes symbols = {0};
	struct elf_file f;
	struct kp_object o;

	put_function(&symbols, 16, STB_GLOBAL, 0x10, 1);
	f = old_cubin(&symbols, "\0k\0other\0device", 16);
	assert_int_equal(describe(span_of(&f.bytes), &o), KPACK_ERROR_INVALID_FORMAT);
	assert_why("symbol 0: its name at 16 of 16 bytes does not end");
	assert_int_equal(o.n_kernels, 0);
	bytes_free(&f.bytes);
	kp_put_le32(symbols.data, 9);
	f = old_cubin(&symbols, "\0k\0other\0device", 15);
	assert_int_equal(describe(span_of(&f.bytes), &o), KPACK_ERROR_INVALID_FORMAT);
	SET_SH(&f, 3, sh_link, 1);
	assert_int_equal(describe(span_of(&f.bytes), &o), KPACK_ERROR_INVALID_FORMAT);
	assert_why("their names are in section 1");
	bytes_free(&f.bytes);
	bytes_free(&symbols);
}

/* Whatever is cut off, only existing bytes are read. */
TEST(no_part_of_a_cubin_is_more)
{
	struct bytes file = read_vector("plain.fatbin"), image;
	struct kp_containers list;
	struct kp_object o;

	assert_int_equal(nest(span_of(&file), &list), KPACK_SUCCESS);
	image = load_image(&file, &list, 0);
	kp_containers_fini(&list);
	for (size_t size = 20; size < image.size; size++) {
		struct kp_span part = {image.data, size};

		assert_int_equal(nest(part, &list), KPACK_ERROR_INVALID_FORMAT);
		if (describe(part, &o) == KPACK_SUCCESS)
			kp_object_fini(&o);
	}
	bytes_free(&image);
	bytes_free(&file);
}
