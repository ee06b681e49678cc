/* SPDX-License-Identifier: MIT */
#include "packer/library/aotriton/aks2.h"
#include "packer/library/aotriton/pack.h"
#include "packer/library/aotriton/flatzip.h"
#include "packer/library/aotriton/triton_facts.h"
#include "tests/unit/library_ask.h"
#include <unistd.h>
#include "tests/unit/unit.h"

#define IMAGES "lib/aotriton.images/"
#define STAR "\xef\xbc\x8a"

static struct kpackx_error why;

/* --- packs ------------------------------------------------------------------------------ */

TEST(packs_are_gpus_or_families)
{
	static const struct {
		const char *directory, *arches, *family;
		bool unknown;
	} packs[] = {
		{"amd-gfx942", "gfx942", "", false},
		{"amd-gfx90a", "gfx90a", "", false},
		{"amd-gfx950", "gfx950", "", false},
		{"amd-gfx1250", "gfx1250", "", false},
		{"amd-gfx90a-xnack+", "gfx90a:xnack+", "", false},
		{"amd-gfx11-generic", "gfx11-generic", "", false},
		{"amd-gfx11xx",
		 "gfx1100 gfx1101 gfx1102 gfx1103 gfx1150 gfx1151 gfx1152 gfx1153",
		 "gfx11xx", false},
		{"amd-gfx110x", "gfx1100 gfx1101 gfx1102 gfx1103", "gfx110x", false},
		{"amd-gfx115x", "gfx1150 gfx1151 gfx1152 gfx1153", "gfx115x", false},
		{"amd-gfx120x", "gfx1200 gfx1201", "gfx120x", false},
		{"amd-gfx103x", "gfx1030 gfx1031 gfx1032 gfx1033 gfx1034 gfx1035 gfx1036",
		 "gfx103x", false},
		{"amd-gfx94x", "gfx940 gfx941 gfx942", "gfx94x", false},
		{"amd-gfx942_mod0", "gfx942", "", false},
		{"amd-gfx11xx_mod1",
		 "gfx1100 gfx1101 gfx1102 gfx1103 gfx1150 gfx1151 gfx1152 gfx1153",
		 "gfx11xx", false},
		{"amd-common", "", "", false},
		{"nvidia-sm90", "", "", false},
		{"gfx942", "", "", false},
		{"", "", "", false},
		{"amd-gfx", "", "", true},
		{"amd-gfxx", "", "", true},
		{"amd-gfx77x", "", "", true},
		{"amd-gfx11xxx", "", "", true},
		{"amd-gfxnew", "", "", true},
	};

	for (size_t i = 0; i < COUNT(packs); i++) {
		struct aotriton_pack p = aotriton_pack(kp_span_str(packs[i].directory));
		struct library_object o = {0};

		for (size_t m = 0; m < p.n_arches; m++)
			library_add_arch(&o, p.arches[m]);
		if (strcmp(asked_arches(&(struct asked){.object = o}), packs[i].arches) ||
		    strcmp(p.family, packs[i].family) != 0 ||
		    p.unknown != packs[i].unknown)
			fail_msg("%s: '%s' '%s' %d", packs[i].directory,
				 asked_arches(&(struct asked){.object = o}), p.family,
				 p.unknown);
		library_object_fini(&o);
	}
}

/* --- AKS2 ------------------------------------------------------------------------------- */

enum { AKS2_SIZE = 16 + 40 };

/* A header, and bytes that begin and end like an xz stream. */
static void put_aks2(uint8_t out[AKS2_SIZE], uint32_t size, uint32_t n, uint32_t dir)
{
	memset(out, 0x11, AKS2_SIZE);
	memcpy(out, "AKS2", 4);
	kp_put_le32(out + 4, size);
	kp_put_le32(out + 8, n);
	kp_put_le32(out + 12, dir);
	memcpy(out + 16,
	       "\xfd"
	       "7zXZ",
	       6);
	memcpy(out + AKS2_SIZE - 2, "YZ", 2);
}

static kpack_error_t read_aks2(const void *bytes, size_t size, struct aks2 *out)
{
	struct kp_source s = kp_source_memory(bytes, size);

	return aks2_read(&s, out, &why);
}

TEST(aks2_headers_are_read)
{
	uint8_t bytes[AKS2_SIZE + 8] = {0};
	struct aks2 a;

	put_aks2(bytes, 1000, 3, 90);
	assert_int_equal(read_aks2(bytes, AKS2_SIZE, &a), KPACK_SUCCESS);
	assert_int_equal(a.decoded_size, 1000);
	assert_int_equal(a.kernel_count, 3);
	assert_int_equal(a.directory_size, 90);
	/* padding after the stream, and no kernels */
	assert_int_equal(read_aks2(bytes, AKS2_SIZE + 8, &a), KPACK_SUCCESS);
	put_aks2(bytes, 0, 0, 0);
	assert_int_equal(read_aks2(bytes, AKS2_SIZE, &a), KPACK_SUCCESS);
	/* LZMA without a container */
	memcpy(bytes + 16, "\x5d\0\0", 3);
	assert_int_equal(read_aks2(bytes, 30, &a), KPACK_SUCCESS);
}

TEST(wrong_aks2_headers_are_reported)
{
	static const uint32_t numbers[][3] = {
		{1000, 3, 1001},
		{1000, 5, 104},
		{UINT32_MAX, UINT32_MAX, UINT32_MAX},
		{0, 1, 0},
	};
	uint8_t bytes[AKS2_SIZE];
	struct aks2 a;

	for (size_t i = 0; i < COUNT(numbers); i++) {
		put_aks2(bytes, numbers[i][0], numbers[i][1], numbers[i][2]);
		assert_int_equal(read_aks2(bytes, AKS2_SIZE, &a),
				 KPACK_ERROR_INVALID_FORMAT);
	}
	put_aks2(bytes, 1000, 3, 90);
	for (size_t size = 0; size < AKS2_SIZE; size++)
		assert_int_equal(read_aks2(bytes, size, &a), KPACK_ERROR_INVALID_FORMAT);
	bytes[3] = '1';
	assert_int_equal(read_aks2(bytes, AKS2_SIZE, &a), KPACK_ERROR_INVALID_FORMAT);
	put_aks2(bytes, 1000, 3, 90);
	bytes[16] = 0;
	assert_int_equal(read_aks2(bytes, AKS2_SIZE, &a), KPACK_ERROR_INVALID_FORMAT);
}

/* --- zip -------------------------------------------------------------------------------- */

enum { ZIP_SIZE = 100 + 22 };

/*
 * A central directory of 40 bytes at offset 60, its end record, and a comment of N bytes.
 */
static uint8_t *zip(size_t comment)
{
	uint8_t *z = calloc(1, ZIP_SIZE + comment), *end = z + 100;

	assert_non_null(z);
	memcpy(z, "PK\3\4", 4);
	memcpy(end, "PK\5\6", 4);
	end[8] = end[10] = 7;
	kp_put_le32(end + 12, 40);
	kp_put_le32(end + 16, 60);
	end[20] = (uint8_t)comment;
	end[21] = (uint8_t)(comment >> 8);
	return z;
}

static kpack_error_t read_zip(const uint8_t *bytes, size_t size, unsigned *members)
{
	struct kp_source s = kp_source_memory(bytes, size);

	return flatzip_read(&s, members, &why);
}

TEST(zips_have_an_end_record)
{
	static const size_t comments[] = {0, 1, 100, 65535};
	unsigned n;

	for (size_t i = 0; i < COUNT(comments); i++) {
		size_t size = ZIP_SIZE + comments[i];
		uint8_t *z = zip(comments[i]);

		n = 0;
		assert_int_equal(read_zip(z, size, &n), KPACK_SUCCESS);
		assert_int_equal(n, 7);
		assert_int_equal(read_zip(z, size - 1, &n), KPACK_ERROR_INVALID_FORMAT);
		assert_int_equal(read_zip(z, 0, &n), KPACK_ERROR_INVALID_FORMAT);
		kp_put_le32(z + 100 + 16, 61);
		assert_int_equal(read_zip(z, size, &n), KPACK_ERROR_INVALID_FORMAT);
		kp_put_le32(z + 100 + 16, UINT32_MAX);
		assert_int_equal(read_zip(z, size, &n), KPACK_ERROR_INVALID_FORMAT);
		free(z);
	}
}

/* --- JSON ------------------------------------------------------------------------------- */

static void assert_kernel(const char *json, const char *want)
{
	struct facts f = {0};

	triton_kernel_facts(kp_span_str(json), &f);
	assert_facts(&f, want);
	facts_fini(&f);
}

TEST(tuning_parameters_are_facts)
{
	assert_kernel("{\"hash\":\"1f\",\"target\":{\"arch\":\"gfx942\"},\"num_warps\":4,"
		      "\"num_stages\":2,\"shared\":16384,\"BLOCK_M\":64,\"name\":\"k\"}",
		      "{\"tuning_params\":{\"num_warps\":4,\"num_stages\":2,"
		      "\"shared\":16384,\"BLOCK_M\":64}}");
	assert_kernel(
		"{\"signature\":\"(f32[M,N], f32[N,K]) -> f32[M,K]\","
		"\"tuning_params\":{\"block_m\":64,\"block_n\":64,\"causal\":true}}",
		"{\"signature\":\"(f32[M,N], f32[N,K]) -> f32[M,K]\","
		"\"tuning_params\":{\"block_m\":64,\"block_n\":64,\"causal\":true}}");
	assert_kernel("{\"signature\":{\"Q\":\"*bf16\",\"n\":\"i32\"}}",
		      "{\"signature\":\"*bf16,i32\"}");
	/* other JSON gives no facts */
	assert_kernel("[]", "{}");
	assert_kernel("", "{}");
	assert_kernel("{\"num_warps\":\"\\n\",\"signature\":4,\"shared\":1.5}", "{}");
	assert_kernel("{\"num_warps\":1,\"num_stages\":2", "{}");
	assert_kernel("{\"num_warps\":1}}", "{}");
	assert_kernel("{\"signature\":{\"Q\":\"*bf16\",\"n\":{}},\"tuning_params\":[8],"
		      "\"num_warps\":[1,{\"c\":\"]\"}],\"block_\":1}",
		      "{}");
	/* escapes are read, but what cannot be printed is no fact */
	assert_kernel("{\"num_\\u0077arps\":\"\\u0034\",\"kpack\":\"\\u0000\"}",
		      "{\"tuning_params\":{\"num_warps\":\"4\"}}");
	/* of equal names Triton sees the last */
	assert_kernel("{\"num_warps\":1,\"shared\":-12,\"num_warps\":2}",
		      "{\"tuning_params\":{\"num_warps\":2,\"shared\":-12}}");
}

/* --- files ------------------------------------------------------------------------------ */

TEST(images_are_their_packs)
{
	static const struct {
		const char *path, *arches, *family, *facts;
	} files[] = {
		{IMAGES "amd-gfx11xx/flash/attn_fwd/FONLY__" STAR
			"bf16@16_256_F_F_3_0___gfx11xx.aks2",
		 "gfx1100 gfx1101 gfx1102 gfx1103 gfx1150 gfx1151 gfx1152 gfx1153",
		 "gfx11xx",
		 "{\"container\":\"aks2\",\"pack\":\"gfx11xx\",\"operation\":\"attn_"
		 "fwd\","
		 "\"signature\":\"FONLY__" STAR "bf16@16_256_F_F_3_0\","
		 "\"datatype\":\"bf16\","
		 "\"tuning_params\":[\"16\",\"256\",\"F\",\"F\",\"3\",\"0\"],"
		 "\"device\":\"gfx11xx\",\"uncompressed_size\":1000,\"kernel_count\":3}"},
		{"torch/lib/aotriton.images/amd-gfx942/flash/bwd_kernel_dq/"
		 "FONLY__^fp16@16,80,True,False,0,0___MI300X.aks2",
		 "gfx942", "",
		 "{\"container\":\"aks2\",\"pack\":\"gfx942\","
		 "\"operation\":\"bwd_kernel_dq\","
		 "\"signature\":\"FONLY__^fp16@16,80,True,False,0,0\","
		 "\"datatype\":\"fp16\","
		 "\"tuning_params\":[\"16\",\"80\",\"True\",\"False\",\"0\",\"0\"],"
		 "\"device\":\"MI300X\",\"uncompressed_size\":1000,\"kernel_count\":3}"},
		{IMAGES "amd-common/x.aks2", "generic", "",
		 "{\"container\":\"aks2\",\"signature\":\"x\","
		 "\"uncompressed_size\":1000,\"kernel_count\":3}"},
		{IMAGES "x.aks2", "generic", "",
		 "{\"container\":\"aks2\",\"signature\":\"x\","
		 "\"uncompressed_size\":1000,\"kernel_count\":3}"},
		{IMAGES "amd-gfx90a/odd", "gfx90a", "",
		 "{\"container\":\"aks2\",\"pack\":\"gfx90a\"}"},
	};
	uint8_t bytes[AKS2_SIZE];

	put_aks2(bytes, 1000, 3, 90);
	for (size_t i = 0; i < COUNT(files); i++) {
		struct asked a = ask(&library_aotriton, files[i].path, bytes, AKS2_SIZE);

		assert_int_equal(a.err, 0);
		assert_true(a.mine);
		assert_string_equal(asked_arches(&a), files[i].arches);
		assert_string_equal(a.object.family, files[i].family);
		assert_facts(&a.object.facts, files[i].facts);
		assert_null(a.object.warning);
		assert_false(a.object.at_random);
		assert_int_equal(a.object.n_keys, 0);
		asked_fini(&a);
	}
}

TEST(names_of_other_packs_are_reported)
{
	static const struct {
		const char *path;
		bool warned;
	} files[] = {
		{IMAGES "amd-gfx942/flash/a/F___gfx90a.aks2", true},
		{IMAGES "amd-gfx11xx/flash/a/F___gfx120x.aks2", true},
		{IMAGES "amd-gfx11xx/flash/a/F___gfx110x.aks2", false},
		{IMAGES "amd-gfx942/flash/a/F___gfx942_mod0.aks2", false},
		{IMAGES "amd-gfx942/flash/a/F___MI300X.aks2", false},
		{IMAGES "amd-gfx942/flash/a/F___gfx77x.aks2", false},
		{IMAGES "amd-gfx942/flash/a/___.aks2", false},
		{IMAGES "F___gfx942.aks2", false},
	};
	uint8_t bytes[AKS2_SIZE];

	put_aks2(bytes, 1000, 3, 90);
	for (size_t i = 0; i < COUNT(files); i++) {
		struct asked a = ask(&library_aotriton, files[i].path, bytes, AKS2_SIZE);

		if (!a.object.warning != !files[i].warned)
			fail_msg("%s: %s", files[i].path,
				 a.object.warning ? a.object.warning : "no warning");
		asked_fini(&a);
	}
}

TEST(zips_are_read_at_random)
{
	uint8_t *z = zip(0);
	struct asked a = ask(&library_aotriton,
			     IMAGES "amd-gfx120x/flash/affine_kernels.zip", z, ZIP_SIZE);

	assert_int_equal(a.err, 0);
	assert_true(a.mine && a.object.at_random);
	assert_string_equal(asked_arches(&a), "gfx1200 gfx1201");
	assert_facts(&a.object.facts, "{\"container\":\"zip\",\"pack\":\"gfx120x\","
				      "\"operation\":\"affine_kernels\",\"members\":7}");
	asked_fini(&a);
	free(z);
}

TEST(signatures_give_versions)
{
	static const char json[] =
		"{\n  \"AOTRITON_GIT_SHA1\": \"30ae\",\n \"other\": \"x\",\n"
		"  \"DB_SHA256\": \"5e\\u0039\",\n  \"TRITON_VERSION\": \"3.4.0\"\n}\n";
	struct asked a = ask(&library_aotriton, IMAGES "amd-gfx942/__signature__", json,
			     sizeof(json) - 1);

	assert_int_equal(a.err, 0);
	assert_string_equal(a.object.role, "signature");
	assert_facts(&a.object.facts,
		     "{\"container\":\"text\",\"pack\":\"gfx942\","
		     "\"AOTRITON_GIT_SHA1\":\"30ae\",\"DB_SHA256\":\"5e9\","
		     "\"TRITON_VERSION\":\"3.4.0\"}");
	asked_fini(&a);
	a = ask(&library_aotriton, IMAGES "amd-gfx942/__signature__", "", 0);
	assert_int_equal(a.err, 0);
	assert_true(a.mine);
	asked_fini(&a);
}

/* A file that AOTriton could not read is packed anyway, with a warning. */
TEST(damaged_images_are_reported)
{
	static const char *const paths[] = {
		IMAGES "amd-gfx942/flash/a/x.aks2",
		IMAGES "amd-gfx942/flash/x.zip",
		IMAGES "amd-gfx77x/flash/a/x",
	};

	for (size_t i = 0; i < COUNT(paths); i++) {
		struct asked a = ask(&library_aotriton, paths[i], "text", 4);

		assert_int_equal(a.err, 0);
		assert_true(a.mine);
		assert_non_null(a.object.warning);
		asked_fini(&a);
	}
}

TEST(other_files_are_not_aotritons)
{
	static const char *const paths[] = {
		"lib/aotriton.images",        "lib/aotriton/amd-gfx942/x.aks2",
		"lib/xaotriton.images/a",     "aotriton/kernels/common/x.hsaco",
		"aotriton/kernels/gfx1100",   "aotriton/kernels/x.hsaco",
		"xaotriton/kernels/gfx942/x",
	};
	uint8_t elf[64] = "\177ELF\2\1\1";
	struct asked a;

	for (size_t i = 0; i < COUNT(paths); i++)
		if (ask(&library_aotriton, paths[i], "", 0).probed)
			fail_msg("%s", paths[i]);
	elf[18] = 62;
	a = ask(&library_aotriton, IMAGES "tool", elf, sizeof(elf));
	assert_false(a.mine);
	asked_fini(&a);
}

/* --- aotriton/kernels ------------------------------------------------------------------- */

/* Add a file of the tree that exists on disk. */
static void add_file(struct file_tree *t, const char *dir, const char *path,
		     const char *text)
{
	char disk[200];
	FILE *f;

	snprintf(disk, sizeof(disk), "%s/%zu", dir, t->count);
	f = fopen(disk, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	file_tree_add(t, &(struct file_tree_item){.path = (char *)path,
						  .disk = disk,
						  .size = strlen(text)});
}

TEST(kernels_have_keys_and_facts)
{
	char dir[] = "/tmp/kpack-aotriton-XXXXXX", disk[200];
	struct file_tree t = {0};
	struct asked a;

	assert_non_null(mkdtemp(dir));
	add_file(&t, dir, "aotriton/kernels/gfx90a-xnack+/fwd.json",
		 "{\"num_warps\":8,\"signature\":\"*fp16\"}");
	file_tree_sort(&t);
	a = ask_source(&library_aotriton, &t, "aotriton/kernels/gfx90a-xnack+/fwd.hsaco",
		       kp_source_memory("x", 1));
	assert_int_equal(a.err, 0);
	assert_string_equal(a.object.role, "kernel");
	assert_string_equal(asked_arches(&a), "gfx90a:xnack+");
	assert_int_equal(a.object.n_keys, 1);
	assert_string_equal(a.object.keys[0], "aotriton/gfx90a:xnack+/fwd");
	assert_facts(&a.object.facts,
		     "{\"container\":\"text\",\"operation\":\"fwd\","
		     "\"signature\":\"*fp16\",\"tuning_params\":{\"num_warps\":8}}");
	asked_fini(&a);

	/*
	 * the facts file next to it is a plain file, and a kernel without a name has no
	 * key
	 */
	a = ask_source(&library_aotriton, &t, "aotriton/kernels/gfx90a-xnack+/fwd.json",
		       kp_source_memory("{}", 2));
	assert_string_equal(a.object.role, "file");
	assert_int_equal(a.object.n_keys, 0);
	asked_fini(&a);
	a = ask_source(&library_aotriton, &t, "aotriton/kernels/gfx90a/.hsaco",
		       kp_source_memory("{}", 2));
	assert_true(a.mine);
	assert_int_equal(a.object.n_keys, 0);
	asked_fini(&a);

	file_tree_fini(&t);
	snprintf(disk, sizeof(disk), "%s/0", dir);
	unlink(disk);
	rmdir(dir);
}
