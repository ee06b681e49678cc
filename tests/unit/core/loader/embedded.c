/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include "tests/unit/unit.h"
#include "core/convert/convert.h"
#include "core/layout/layout.h"
#include "tests/unit/link_builder.h"
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

static void add(struct link *l, const char *name, uint64_t flags, size_t segment,
		size_t size, const void *content)
{
	link_add(l, (struct link_section){.name = name,
					  .type = SHT_PROGBITS,
					  .flags = flags,
					  .segment = segment,
					  .size = size,
					  .content = content,
					  .align = 16});
}

/* A program at a fixed address, whose pointers need no relocations. */
static int make_fat(const struct host *host)
{
	static const uint8_t zero[WRAPPERS_MAX * KP_WRAPPER_SIZE];
	struct link l = {
		.type = ET_EXEC, .machine = EM_X86_64, .base = 0x400000, .page = 4096};
	uint64_t starts[BUNDLES], at;
	struct bytes b = bundles_of(host, starts);
	int fd;

	add(&l, KP_FATBIN_SECTION, SHF_ALLOC, link_add_segment(&l, PF_R), b.size, b.data);
	add(&l, ".hipFatBinSegment", SHF_ALLOC | SHF_WRITE,
	    link_add_segment(&l, PF_R | PF_W), host->n_wrappers * KP_WRAPPER_SIZE, zero);
	link_build(&l);
	at = link_addr(&l, ".hipFatBinSegment");
	for (size_t i = 0; i < host->n_wrappers; i++, at += KP_WRAPPER_SIZE) {
		kp_put_le32(link_at(&l, at), KP_WRAPPER_HIPF);
		kp_put_le32(link_at(&l, at) + 4, KP_WRAPPER_VERSION);
		link_write64(&l, at + 8,
			     link_addr(&l, KP_FATBIN_SECTION) +
				     starts[host->wrappers[i]]);
	}
	fd = bytes_fd(l.file.data, l.file.size);
	bytes_free(&b);
	link_free(&l);
	return fd;
}

enum layout { NO_LAYOUT, LAYOUT, OTHER_LAYOUT, BAD_LAYOUT, NEWER_LAYOUT };

static struct kp_layout_bytes make_layout(const struct kp_fatbin *fat, enum layout which)
{
	static const char bad[] = "\x81\xa7version\x01", newer[] = "\x81\xa7version\x63";
	struct kp_layout_bytes out = {0};

	if (which == LAYOUT) {
		assert_int_equal(kp_layout_make(fat, NULL, NULL, true, &out, &why), 0);
	} else if (which != NO_LAYOUT) {
		out.size = sizeof(bad) - 1;
		out.data = malloc(out.size);
		assert_non_null(out.data);
		memcpy(out.data, which == BAD_LAYOUT ? bad : newer, out.size);
	}
	return out;
}

/* The layout of a binary with one wrapper fewer. */
static struct kp_layout_bytes layout_of_another(const struct host *host)
{
	struct host other = *host;
	struct kp_layout_bytes out;
	struct kp_fatbin fat;
	int fd;

	other.n_wrappers--;
	fd = make_fat(&other);
	assert_int_equal(kp_fatbin_open(fd, (uint64_t)lseek(fd, 0, SEEK_END), &fat, &why),
			 KPACK_SUCCESS);
	out = make_layout(&fat, LAYOUT);
	kp_fatbin_fini(&fat);
	close(fd);
	return out;
}

/* As make_fat, then converted. */
static int make_converted(const struct host *host, enum layout which, bool keep)
{
	int fd = make_fat(host);
	uint64_t size = (uint64_t)lseek(fd, 0, SEEK_END);
	struct kp_outfile out = {.fd = memfd_create("out", MFD_CLOEXEC), .dir_fd = -1};
	struct kp_fatbin fat;
	struct kp_layout_bytes layout;
	struct kp_convert_options o = {.marker = {(const uint8_t *)"marker", 6},
				       .keep_device_code = keep};

	assert_int_equal(kp_fatbin_open(fd, size, &fat, &why), KPACK_SUCCESS);
	layout = which == OTHER_LAYOUT ? layout_of_another(host)
				       : make_layout(&fat, which);
	o.layout = (struct kp_span){layout.data, layout.size};
	if (kp_convert(fd, size, &fat, &o, &out, &why))
		fail_msg("%s", why.text);
	free(layout.data);
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

static kpack_error_t load(int fd, uint32_t index, const char *const *archs, size_t n,
			  struct got *got)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	*got = (struct got){got, 77};
	why = (struct kpackx_error){0};
	return kpackx_load_embedded(path, index, archs, n, &got->data, &got->size, &why);
}

#define ARCHS(...)                                                                       \
	(const char *const[]){__VA_ARGS__},                                              \
		sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)

static void assert_gives(int fd, uint32_t index, const char *const *archs, size_t n,
			 const char *want)
{
	struct got got;

	if (load(fd, index, archs, n, &got))
		fail_msg("%s: %s", want, why.text);
	assert_int_equal(got.size, strlen(want));
	assert_memory_equal(got.data, want, got.size);
	kpack_free_code_object(got.data);
}

/* The look-up fails with CODE and gives no data; the message contains TEXT. */
static void assert_fails(int fd, uint32_t index, const char *const *archs, size_t n,
			 kpack_error_t code, const char *text)
{
	struct got got;

	assert_int_equal(load(fd, index, archs, n, &got), code);
	assert_int_equal(why.code, code);
	assert_has(why.text, text);
	assert_ptr_equal(got.data, &got);
	assert_int_equal(got.size, 77);
}

/* ---- tests ---- */

static void assert_wrappers(int fd)
{
	assert_gives(fd, 0, ARCHS("gfx90a"), "2 for gfx90a");
	assert_gives(fd, 1, ARCHS("gfx90a"), "0 for gfx90a");
	assert_gives(fd, 2, ARCHS("gfx90a"), "0 for gfx90a");
	/* a container without a wrapper is numbered after the wrappers */
	assert_gives(fd, 3, ARCHS("gfx90a"), "1 for gfx90a");
	assert_fails(fd, 4, ARCHS("gfx90a"), KPACK_ERROR_KERNEL_NOT_FOUND,
		     "no wrapper 4: there are 3, and 3 containers");
	assert_fails(fd, UINT32_MAX, ARCHS("gfx90a"), KPACK_ERROR_KERNEL_NOT_FOUND,
		     "no wrapper 4294967295");
	close(fd);
}

TEST(every_wrapper_gives_its_bundle)
{
	static const struct host *const hosts[] = {&plain, &compressed, &older};

	for (size_t i = 0; i < COUNT(hosts); i++) {
		assert_wrappers(make_fat(hosts[i]));
		assert_wrappers(kept(hosts[i]));
	}
}

TEST(the_archs_decide_in_their_order)
{
	int fds[] = {make_fat(&plain), kept(&compressed)};

	for (size_t i = 0; i < COUNT(fds); i++) {
		int fd = fds[i];

		assert_gives(fd, 1, ARCHS("gfx90a:sramecc+:xnack+"),
			     "0 for gfx90a:xnack+");
		assert_gives(fd, 1, ARCHS("gfx90a:xnack+:sramecc+"),
			     "0 for gfx90a:xnack+");
		assert_gives(fd, 1, ARCHS("amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-"),
			     "0 for gfx90a");
		assert_gives(fd, 1, ARCHS("gfx1103", NULL, "gfx11-generic"),
			     "0 for gfx11-generic");
		assert_gives(fd, 1, ARCHS("gfx11-generic", "gfx90a"),
			     "0 for gfx11-generic");
		assert_gives(fd, 1, ARCHS("gfx90a", "gfx11-generic"), "0 for gfx90a");
		assert_gives(fd, 1, ARCHS("gfx942:sramecc+:xnack-"),
			     "features in another order");
		assert_gives(fd, 1, ARCHS("gfx942:xnack-:sramecc+"),
			     "features in another order");
		close(fd);
	}
}

TEST(code_for_another_gpu_is_none)
{
	char long_arch[5000];
	int fd = make_fat(&plain);

	memset(long_arch, 'g', sizeof(long_arch));
	long_arch[sizeof(long_arch) - 1] = '\0';
	assert_fails(fd, 0, ARCHS("gfx1103", "gfx9-generic"), KPACK_ERROR_ARCH_NOT_FOUND,
		     "wrapper 0 has no code for gfx1103 gfx9-generic; it has gfx90a "
		     "gfx908:xnack+ gfx908 gfx942:sramecc+:xnack- ");
	/* an empty object, the host entry, and names that are not GPUs */
	assert_fails(fd, 0, ARCHS("gfx906"), KPACK_ERROR_ARCH_NOT_FOUND, "for gfx906;");
	assert_fails(fd, 0, ARCHS(""), KPACK_ERROR_ARCH_NOT_FOUND, "no code");
	assert_fails(fd, 0, ARCHS((const char *)NULL), KPACK_ERROR_ARCH_NOT_FOUND,
		     "no code for;");
	assert_fails(fd, 0, ARCHS(long_arch), KPACK_ERROR_ARCH_NOT_FOUND, "no code");
	assert_fails(fd, 0, ARCHS(LONG "g"), KPACK_ERROR_ARCH_NOT_FOUND, "no code");
	assert_fails(fd, 0, ARCHS("gfx90\033"), KPACK_ERROR_ARCH_NOT_FOUND, "gfx90\\033");
	close(fd);
}

TEST(hip_comes_before_openmp)
{
	int fd = make_fat(&plain);

	assert_gives(fd, 1, ARCHS("gfx90a"), "0 for gfx90a");
	/* but a more specific target, or one asked for earlier, comes first */
	assert_gives(fd, 1, ARCHS("gfx908:xnack+"), "only for OpenMP");
	assert_gives(fd, 1, ARCHS("gfx908:xnack+", "gfx90a"), "only for OpenMP");
	close(fd);
}

TEST(what_was_taken_out_is_not_there)
{
	int fd = make_converted(&plain, LAYOUT, false);

	assert_fails(fd, 0, ARCHS("gfx90a"), KPACK_ERROR_KERNEL_NOT_FOUND,
		     "no device code in it: it was converted");
	close(fd);
}

TEST(without_a_layout_the_position_counts)
{
	struct host more = {.n_wrappers = 4, .wrappers = {0, 1, 2, 2}};
	int fd = make_converted(&in_order, NO_LAYOUT, true);

	assert_gives(fd, 0, ARCHS("gfx90a"), "0 for gfx90a");
	assert_gives(fd, 2, ARCHS("gfx90a"), "2 for gfx90a");
	assert_fails(fd, 3, ARCHS("gfx90a"), KPACK_ERROR_KERNEL_NOT_FOUND,
		     "no wrapper 3");
	close(fd);
	/* unless the layout is missing */
	fd = make_converted(&more, NO_LAYOUT, true);
	assert_fails(fd, 0, ARCHS("gfx90a"), KPACK_ERROR_NOT_IMPLEMENTED,
		     "no layout says which of 3 containers belongs to wrapper 0 of 4");
	close(fd);
}

TEST(a_layout_that_lies_is_refused)
{
	static const struct {
		enum layout which;
		kpack_error_t code;
		const char *text;
	} cases[] = {
		{OTHER_LAYOUT, KPACK_ERROR_INVALID_FORMAT,
		 "layout: 2 wrappers and 3 containers, there are 3 and 3"},
		{BAD_LAYOUT, KPACK_ERROR_INVALID_FORMAT, ".rocm_kpack_layout: "},
		{NEWER_LAYOUT, KPACK_ERROR_NOT_IMPLEMENTED, ".rocm_kpack_layout: "},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		int fd = make_converted(&plain, cases[i].which, true);

		assert_fails(fd, 0, ARCHS("gfx90a"), cases[i].code, cases[i].text);
		close(fd);
	}
}

TEST(bare_containers_are_counted)
{
	uint64_t starts[BUNDLES];
	struct bytes b = bundles_of(&compressed, starts);
	int fd = bytes_fd(b.data, b.size);

	assert_gives(fd, 0, ARCHS("gfx90a"), "0 for gfx90a");
	assert_gives(fd, 1, ARCHS("gfx90a"), "1 for gfx90a");
	assert_fails(fd, 3, ARCHS("gfx90a"), KPACK_ERROR_KERNEL_NOT_FOUND,
		     "no wrapper 3");
	close(fd);
	bytes_free(&b);
}

TEST(other_files_are_refused)
{
	static const struct section text = {
		".text", SHT_PROGBITS, SHF_ALLOC, 0, {(const uint8_t *)"x", 1}, 0, 0, 0};
	struct elf_file f = elf_build(ET_DYN, EM_X86_64, &text, 1);
	int fd = bytes_fd(f.bytes.data, f.bytes.size);

	assert_fails(fd, 0, ARCHS("gfx90a"), KPACK_ERROR_KERNEL_NOT_FOUND,
		     "no device code in it");
	close(fd);
	fd = bytes_fd("#!/bin/sh\n", 10);
	assert_fails(fd, 0, ARCHS("gfx90a"), KPACK_ERROR_INVALID_FORMAT, "no binary");
	close(fd);
	fd = bytes_fd("", 0);
	assert_fails(fd, 0, ARCHS("gfx90a"), KPACK_ERROR_INVALID_FORMAT, "no binary");
	close(fd);
	bytes_free(&f.bytes);
}

TEST(files_must_be_there)
{
	static const struct {
		const char *path;
		kpack_error_t code;
	} cases[] = {
		{"/nonexistent/lib.so", KPACK_ERROR_FILE_NOT_FOUND},
		{"/tmp", KPACK_ERROR_IO_ERROR},
		{"/dev/null", KPACK_ERROR_IO_ERROR},
	};
	struct got got;

	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_int_equal(kpackx_load_embedded(cases[i].path, 0, ARCHS("gfx90a"),
						      &got.data, &got.size, &why),
				 cases[i].code);
		assert_int_equal(kpackx_load_embedded(cases[i].path, 0, ARCHS("gfx90a"),
						      &got.data, &got.size, NULL),
				 cases[i].code);
	}
}

TEST(arguments_are_checked)
{
	static const char *const archs[] = {"gfx90a"};
	struct got got;

	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(kpackx_load_embedded(i == 0 ? NULL : "/proc/self/exe", 0,
						      i == 1 ? NULL : archs, i != 2,
						      i == 3 ? NULL : &got.data,
						      i == 4 ? NULL : &got.size, &why),
				 KPACK_ERROR_INVALID_ARGUMENT);
	assert_string_equal(why.text, "an argument is NULL");
}

/* The result is correct, or there is none. */
static void try_damaged(int fd)
{
	struct got got;

	if (load(fd, 1, ARCHS("gfx90a", "gfx11-generic"), &got) == KPACK_SUCCESS) {
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
