/* SPDX-License-Identifier: MIT */
#include <elf.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
#include "tests/unit/unit.h"
#include "core/host/convert.h"
#include "core/restore/recipe.h"
#include "tests/unit/bundle_builder.h"
#include "core/rocm_kpack/kpack.h"

#define BUNDLES 3
#define WRAPPERS_MAX 4
#define HIP "hipv4-amdgcn-amd-amdhsa--"
#define OPENMP "openmp-amdgcn-amd-amdhsa--"
/* Longer than any image's arch. */
#define LONG "ggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggg"

static struct kpackx_error why;

/* ---- files ---- */

/* A fat binary: bundles, and for each wrapper the bundle it points to. */
struct host {
	unsigned ccob; /* bit I: bundle I is compressed */
	unsigned version;
	size_t n_wrappers;
	size_t wrappers[WRAPPERS_MAX];
};

/* Two wrappers share the first bundle, none points to the second. */
static const struct host plain = {.n_wrappers = 3, .wrappers = {2, 0, 0}};
static const struct host compressed = {
	.ccob = 5, .version = 3, .n_wrappers = 3, .wrappers = {2, 0, 0}};
static const struct host older = {
	.ccob = 7, .version = 2, .n_wrappers = 3, .wrappers = {2, 0, 0}};
static const struct host in_order = {.n_wrappers = 3, .wrappers = {0, 1, 2}};

static void put_one(struct bytes *b, const struct host *host, size_t i)
{
	static const char *const objects[BUNDLES][3] = {
		{"0 for gfx90a:xnack+", "0 for gfx90a", "0 for gfx11-generic"},
		{"1 for gfx90a:xnack+", "1 for gfx90a", "1 for gfx11-generic"},
		{"2 for gfx90a:xnack+", "2 for gfx90a", "2 for gfx11-generic"},
	};
	const struct entry entries[] = {
		{"host-x86_64-unknown-linux-gnu-", "host"},
		{OPENMP "gfx90a", "for OpenMP"},
		{OPENMP "gfx908:xnack+", "only for OpenMP"},
		{HIP "gfx908", "with XNACK or without"},
		{HIP "gfx942:xnack-:sramecc+", "features in another order"},
		{HIP LONG, "cut"},
		{HIP "gfx906", ""},
		{HIP "gfx90a:xnack+", objects[i][0]},
		{HIP "gfx90a", objects[i][1]},
		{HIP "gfx11-generic", objects[i][2]},
	};
	struct bytes bundle = {0};

	put_bundle(&bundle, entries, COUNT(entries), 8);
	if (host->ccob & 1u << i)
		put_ccob(b, host->version, 1, bytes_span(&bundle));
	else
		put(b, bundle.data, bundle.size);
	bytes_free(&bundle);
}

static struct bytes bundles_of(const struct host *host, uint64_t starts[BUNDLES])
{
	struct bytes b = {0};

	for (size_t i = 0; i < BUNDLES; i++) {
		put_padding(&b, 16);
		starts[i] = b.size;
		put_one(&b, host, i);
	}
	return b;
}

/* A section of a program that is a segment of its own. */
struct part {
	const char *name;
	uint32_t flags;
	struct bytes content;
	uint64_t offset; /* chosen by linked() */
};

enum { BASE = 0x400000, PAGE = 4096, PARTS_MAX = 2 };

/* A program at a fixed address, whose pointers need no relocations. */
static struct bytes linked(struct part *parts, uint16_t n)
{
	Elf64_Ehdr h = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, 1},
			.e_type = ET_EXEC,
			.e_machine = EM_X86_64,
			.e_version = 1,
			.e_phoff = sizeof(h),
			.e_ehsize = sizeof(h),
			.e_phentsize = sizeof(Elf64_Phdr),
			.e_phnum = n,
			.e_shentsize = sizeof(Elf64_Shdr),
			.e_shnum = (uint16_t)(n + 2),
			.e_shstrndx = (uint16_t)(n + 1)};
	Elf64_Phdr segments[PARTS_MAX] = {{0}};
	Elf64_Shdr sections[PARTS_MAX + 2] = {{0}}, *name_table = &sections[n + 1];
	struct bytes file = {0}, names = {0};

	put_zeros(&file, sizeof(h) + n * sizeof(*segments));
	put_zeros(&names, 1);
	for (uint16_t i = 0; i < n; i++) {
		uint64_t start =
			i ? round_up(file.size, PAGE) : 0; /* the first has the headers */

		put_padding(&file, i ? PAGE : 16);
		parts[i].offset = file.size;
		sections[i + 1] = (Elf64_Shdr){.sh_name = (uint32_t)names.size,
					       .sh_type = SHT_PROGBITS,
					       .sh_flags = parts[i].flags,
					       .sh_addr = BASE + file.size,
					       .sh_offset = file.size,
					       .sh_size = parts[i].content.size,
					       .sh_addralign = 16};
		put(&names, parts[i].name, strlen(parts[i].name) + 1);
		put(&file, parts[i].content.data, parts[i].content.size);
		segments[i] = (Elf64_Phdr){
			.p_type = PT_LOAD,
			.p_flags = parts[i].flags & SHF_WRITE ? PF_R | PF_W : PF_R,
			.p_offset = start,
			.p_vaddr = BASE + start,
			.p_filesz = file.size - start,
			.p_memsz = file.size - start,
			.p_align = PAGE};
	}
	*name_table = (Elf64_Shdr){.sh_name = (uint32_t)names.size,
				   .sh_type = SHT_STRTAB,
				   .sh_offset = file.size,
				   .sh_addralign = 1};
	put(&names, ".shstrtab", 10);
	name_table->sh_size = names.size;
	put(&file, names.data, names.size);
	put_padding(&file, 8);
	h.e_shoff = file.size;
	put(&file, sections, (n + 2u) * sizeof(*sections));
	memcpy(file.data, &h, sizeof(h));
	memcpy(file.data + sizeof(h), segments, n * sizeof(*segments));
	bytes_free(&names);
	return file;
}

/* A descriptor of a file with these bytes. */
static int bytes_fd(const void *data, size_t size)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, size), size);
	return fd;
}

static int make_fat(const struct host *host)
{
	uint64_t starts[BUNDLES];
	struct part parts[] = {
		{KP_FATBIN_SECTION, SHF_ALLOC, bundles_of(host, starts), 0},
		{".hipFatBinSegment", SHF_ALLOC | SHF_WRITE, {0}, 0}};
	struct bytes file;
	uint8_t *wrapper;
	int fd;

	put_zeros(&parts[1].content, host->n_wrappers * KP_WRAPPER_SIZE);
	file = linked(parts, 2);
	wrapper = file.data + parts[1].offset;
	for (size_t i = 0; i < host->n_wrappers; i++, wrapper += KP_WRAPPER_SIZE) {
		kp_put_le32(wrapper, KP_WRAPPER_HIPF);
		kp_put_le32(wrapper + 4, KP_WRAPPER_VERSION);
		kp_put_le64(wrapper + 8,
			    BASE + parts[0].offset + starts[host->wrappers[i]]);
	}
	fd = bytes_fd(file.data, file.size);
	bytes_free(&file);
	bytes_free(&parts[0].content);
	bytes_free(&parts[1].content);
	return fd;
}

enum layout { NO_LAYOUT, LAYOUT, OTHER_LAYOUT, BAD_LAYOUT, NEWER_LAYOUT };

/* Give the content of a recipe that is no recipe, or that of another binary. */
static kpack_error_t give_bytes(void *arg, const struct kp_move *moves, size_t n,
				struct kp_span *out, struct kpackx_error *reason)
{
	(void)moves, (void)n, (void)reason;
	*out = *(struct kp_span *)arg;
	return KPACK_SUCCESS;
}

static void describe(const struct kp_fatbin *fat, struct kp_recipe *out)
{
	assert_int_equal(
		kp_recipe_describe(fat, NULL, NULL, KP_RECIPE_COMPUTE, out, &why),
		KPACK_SUCCESS);
}

/* The recipe of a binary with one wrapper fewer. */
static struct kp_span recipe_of_another(const struct host *host)
{
	struct host other = *host;
	struct kp_recipe recipe;
	struct kp_recipe_maker maker = {.recipe = &recipe};
	struct kp_fatbin fat;
	struct kp_span out;

	other.n_wrappers--;
	maker.fd = make_fat(&other);
	maker.size = (uint64_t)lseek(maker.fd, 0, SEEK_END);
	assert_int_equal(kp_fatbin_open(maker.fd, maker.size, &fat, &why), KPACK_SUCCESS);
	describe(&fat, &recipe);
	assert_int_equal(kp_recipe_complete(&maker, NULL, 0, &out, &why), KPACK_SUCCESS);
	kp_recipe_fini(&recipe);
	kp_fatbin_fini(&fat);
	close(maker.fd);
	return out;
}

/* As make_fat, then converted. */
static int make_converted(const struct host *host, enum layout which, bool keep)
{
	/* zstd frames of {"version": 1} and {"version": 99} */
	static const char bad[] = "\x28\xb5\x2f\xfd\x20\x0a\x51\0\0\x81\xa7version\x01",
			  newer[] = "\x28\xb5\x2f\xfd\x20\x0a\x51\0\0\x81\xa7version\x63";
	int fd = make_fat(host);
	uint64_t size = (uint64_t)lseek(fd, 0, SEEK_END);
	struct kp_outfile out = {.fd = memfd_create("out", MFD_CLOEXEC), .dir_fd = -1};
	struct kp_fatbin fat;
	struct kp_recipe recipe = {0};
	struct kp_recipe_maker maker = {.recipe = &recipe, .fd = fd, .size = size};
	struct kp_span other = {0}, stored = {(const uint8_t *)bad, sizeof(bad) - 1};
	struct kp_convert_options o = {.marker = {(const uint8_t *)"marker", 6},
				       .recipe = give_bytes,
				       .recipe_arg = &stored,
				       .keep_device_code = keep};

	assert_int_equal(kp_fatbin_open(fd, size, &fat, &why), KPACK_SUCCESS);
	if (which == NEWER_LAYOUT)
		stored.data = (const uint8_t *)newer;
	if (which == OTHER_LAYOUT)
		stored = other = recipe_of_another(host);
	if (which == NO_LAYOUT)
		o.recipe = NULL;
	if (which == LAYOUT) {
		describe(&fat, &recipe);
		o.recipe = kp_recipe_complete;
		o.recipe_arg = &maker;
	}
	if (kp_convert(fd, size, &fat, &o, &out, &why))
		fail_msg("%s", why.text);
	free((void *)other.data);
	free((void *)maker.bytes.data);
	kp_recipe_fini(&recipe);
	kp_fatbin_fini(&fat);
	close(fd);
	return out.fd;
}

static int kept(const struct host *host)
{
	return make_converted(host, LAYOUT, true);
}

/* ---- look-ups ---- */

struct got {
	void *data;
	size_t size;
};

/* ARCHS are separated by spaces. */
static kpack_error_t load(int fd, uint32_t index, const char *archs, struct got *got)
{
	char path[32], *copy = strdup(archs), *rest = copy;
	const char *list[4];
	size_t n = 0;
	kpack_error_t err;

	while (rest && n < COUNT(list))
		list[n++] = strsep(&rest, " ");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	*got = (struct got){got, 77};
	why = (struct kpackx_error){0};
	err = kpackx_load_embedded(path, index, list, n, &got->data, &got->size, &why);
	free(copy);
	return err;
}

/* The code that is found, or with an error a part of its message, and no data. */
struct look_up {
	uint32_t index;
	const char *archs;
	kpack_error_t code;
	const char *want;
};

static void look_up(int fd, const struct look_up *l)
{
	struct got got;

	if (load(fd, l->index, l->archs, &got) != l->code)
		fail_msg("%u %s: %s", l->index, l->archs, why.text);
	assert_int_equal(why.code, l->code);
	if (l->code) {
		assert_has(why.text, l->want);
		assert_ptr_equal(got.data, &got);
		assert_int_equal(got.size, 77);
		return;
	}
	assert_int_equal(got.size, strlen(l->want));
	assert_memory_equal(got.data, l->want, got.size);
	kpack_free_code_object(got.data);
}

#define NONE KPACK_ERROR_KERNEL_NOT_FOUND
#define NOT_FOR KPACK_ERROR_ARCH_NOT_FOUND

/* In every file with the wrappers of plain */
static const struct look_up all[] = {
	{0, "gfx90a", 0, "2 for gfx90a"},
	{1, "gfx90a", 0, "0 for gfx90a"},
	{2, "gfx90a", 0, "0 for gfx90a"},
	/* a container without a wrapper is numbered after the wrappers */
	{3, "gfx90a", 0, "1 for gfx90a"},
	{4, "gfx90a", NONE, "no wrapper 4: there are 3, and 3 containers"},
	{UINT32_MAX, "gfx90a", NONE, "no wrapper 4294967295"},
	/* the archs decide in their order */
	{1, "gfx90a:sramecc+:xnack+", 0, "0 for gfx90a:xnack+"},
	{1, "gfx90a:xnack+:sramecc+", 0, "0 for gfx90a:xnack+"},
	{1, "amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-", 0, "0 for gfx90a"},
	{1, "gfx1103  gfx11-generic", 0, "0 for gfx11-generic"},
	{1, "gfx11-generic gfx90a", 0, "0 for gfx11-generic"},
	{1, "gfx90a gfx11-generic", 0, "0 for gfx90a"},
	{1, "gfx942:sramecc+:xnack-", 0, "features in another order"},
	{1, "gfx942:xnack-:sramecc+", 0, "features in another order"},
	/* code for another GPU is none */
	{0, "gfx1103 gfx9-generic", NOT_FOR,
	 "wrapper 0 has no code for gfx1103 gfx9-generic; it has gfx90a gfx908:xnack+ "
	 "gfx908 gfx942:sramecc+:xnack- "},
	/* an empty object, the host entry, and names that are not GPUs */
	{0, "gfx906", NOT_FOR, "for gfx906;"},
	{0, "", NOT_FOR, "no code"},
	{0, LONG "g", NOT_FOR, "no code"},
	{0, LONG LONG LONG LONG LONG LONG LONG LONG, NOT_FOR, "no code"},
	{0, "gfx90\033", NOT_FOR, "gfx90\\033"},
	/* HIP comes before OpenMP, but what is more specific, or asked for earlier, before that */
	{1, "gfx908:xnack+", 0, "only for OpenMP"},
	{1, "gfx908:xnack+ gfx90a", 0, "only for OpenMP"},
};

TEST(every_wrapper_gives_its_bundle)
{
	static const struct host *const hosts[] = {&plain, &compressed, &older};

	for (size_t i = 0; i < 2 * COUNT(hosts); i++) {
		int fd = i % 2 ? kept(hosts[i / 2]) : make_fat(hosts[i / 2]);

		for (size_t n = 0; n < COUNT(all); n++)
			look_up(fd, &all[n]);
		close(fd);
	}
}

TEST(layouts_say_which_container_is_whose)
{
	static const struct host more = {.n_wrappers = 4, .wrappers = {0, 1, 2, 2}};
	static const struct {
		const struct host *host;
		enum layout layout;
		bool keep;
		struct look_up look_up;
	} cases[] = {
		/* without one the position counts, if there is one for each wrapper */
		{&in_order, NO_LAYOUT, true, {0, "gfx90a", 0, "0 for gfx90a"}},
		{&in_order, NO_LAYOUT, true, {2, "gfx90a", 0, "2 for gfx90a"}},
		{&in_order, NO_LAYOUT, true, {3, "gfx90a", NONE, "no wrapper 3"}},
		{&more,
		 NO_LAYOUT,
		 true,
		 {0, "gfx90a", KPACK_ERROR_NOT_IMPLEMENTED,
		  "no layout says which of 3 containers belongs to wrapper 0 of 4"}},
		/* one that lies is refused */
		{&plain,
		 OTHER_LAYOUT,
		 true,
		 {0, "gfx90a", KPACK_ERROR_INVALID_FORMAT,
		  "layout: 2 wrappers and 3 containers, there are 3 and 3"}},
		{&plain,
		 BAD_LAYOUT,
		 true,
		 {0, "gfx90a", KPACK_ERROR_INVALID_FORMAT, ".rocm_kpack_layout: "}},
		{&plain,
		 NEWER_LAYOUT,
		 true,
		 {0, "gfx90a", KPACK_ERROR_NOT_IMPLEMENTED, ".rocm_kpack_layout: "}},
		{&plain,
		 LAYOUT,
		 false,
		 {0, "gfx90a", NONE, "no device code in it: it was converted"}},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		int fd = make_converted(cases[i].host, cases[i].layout, cases[i].keep);

		look_up(fd, &cases[i].look_up);
		close(fd);
	}
}

TEST(other_files)
{
	struct part text = {".text", SHF_ALLOC, {(uint8_t *)"x", 1, 1}, 0};
	struct bytes elf = linked(&text, 1);
	uint64_t starts[BUNDLES];
	struct bytes bare = bundles_of(&compressed, starts);
	const struct {
		const void *data;
		size_t size;
		struct look_up look_up;
	} cases[] = {
		{bare.data, bare.size, {0, "gfx90a", 0, "0 for gfx90a"}},
		{bare.data, bare.size, {1, "gfx90a", 0, "1 for gfx90a"}},
		{bare.data, bare.size, {3, "gfx90a", NONE, "no wrapper 3"}},
		{elf.data, elf.size, {0, "gfx90a", NONE, "no device code in it"}},
		{"#!/bin/sh\n",
		 10,
		 {0, "gfx90a", KPACK_ERROR_INVALID_FORMAT, "no binary"}},
		{"", 0, {0, "gfx90a", KPACK_ERROR_INVALID_FORMAT, "no binary"}},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		int fd = bytes_fd(cases[i].data, cases[i].size);

		look_up(fd, &cases[i].look_up);
		close(fd);
	}
	bytes_free(&elf);
	bytes_free(&bare);
}

TEST(arguments_are_checked)
{
	static const char *const archs[] = {NULL, "gfx90a"};
	static const struct {
		const char *path;
		kpack_error_t code;
	} cases[] = {
		{"/nonexistent/lib.so", KPACK_ERROR_FILE_NOT_FOUND},
		{"/tmp", KPACK_ERROR_IO_ERROR},
		{"/dev/null", KPACK_ERROR_IO_ERROR},
	};
	struct got got;

	for (size_t i = 0; i < COUNT(cases); i++)
		assert_int_equal(kpackx_load_embedded(cases[i].path, 0, archs, 2,
						      &got.data, &got.size,
						      i ? &why : NULL),
				 cases[i].code);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(kpackx_load_embedded(i == 0 ? NULL : "/proc/self/exe", 0,
						      i == 1 ? NULL : archs,
						      i == 2 ? 0 : 2,
						      i == 3 ? NULL : &got.data,
						      i == 4 ? NULL : &got.size, &why),
				 KPACK_ERROR_INVALID_ARGUMENT);
	assert_string_equal(why.text, "an argument is NULL");
}

/* The result is correct, or there is none. */
static void try_damaged(int fd)
{
	struct got got;

	if (load(fd, 1, "gfx90a gfx11-generic", &got) == KPACK_SUCCESS) {
		assert_true(got.size < 1 << 16);
		kpack_free_code_object(got.data);
	} else {
		assert_ptr_equal(got.data, &got);
		assert_int_not_equal(why.text[0], 0);
	}
}

/* Some bytes, and some sizes: the formats that are parsed here have fuzz targets. */
static void damage_all(int fd)
{
	off_t size = lseek(fd, 0, SEEK_END);
	uint8_t byte, bad;

	for (off_t at = 0; at < size; at += 11) {
		assert_int_equal(pread(fd, &byte, 1, at), 1);
		for (unsigned bit = 0; bit < 8; bit += 7) {
			bad = byte ^ (uint8_t)(1u << bit);
			assert_int_equal(pwrite(fd, &bad, 1, at), 1);
			try_damaged(fd);
		}
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	}
	for (off_t n = size; (n -= 61) > 0;) {
		assert_int_equal(ftruncate(fd, n), 0);
		try_damaged(fd);
	}
	close(fd);
}

TEST(damage_is_survived)
{
	damage_all(make_fat(&compressed));
	damage_all(kept(&compressed));
}
