/* SPDX-License-Identifier: MIT */
#include "packer/files/read_file.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "tests/unit/unit.h"
#include <zlib.h>

static struct read_file x;
static struct kpackx_error why;

/* SIZE bytes of zeros with a counter among them, compressed. */
static struct kp_span make_packed(size_t size, uint8_t **plain)
{
	uLongf n = compressBound(size);
	uint8_t *packed = malloc(n);

	*plain = calloc(size + 1, 1);
	assert_non_null(packed);
	assert_non_null(*plain);
	for (size_t i = 0; i < size; i += 1000)
		(*plain)[i] = (uint8_t)(i / 1000);
	assert_int_equal(compress(packed, &n, *plain, size), Z_OK);
	return (struct kp_span){packed, n};
}

TEST(test_sizes)
{
	static const size_t sizes[] = {0, 1, 65535, 65536, 65537, 1 << 22};

	for (size_t i = 0; i < COUNT(sizes); i++) {
		uint8_t *plain;
		struct kp_span packed = make_packed(sizes[i], &plain);

		assert_int_equal(read_file_inflate(packed, &x, &why), 0);
		assert_int_equal(x.size, sizes[i]);
		assert_memory_equal(x.data, plain, sizes[i]);
		read_file_fini(&x);
		free(plain);
		free((void *)packed.data);
	}
}

TEST(test_damaged)
{
	uint8_t *plain;
	struct kp_span packed = make_packed(5000, &plain);

	for (size_t n = 0; n < packed.size; n++)
		assert_int_equal(
			read_file_inflate((struct kp_span){packed.data, n}, &x, &why),
			KPACK_ERROR_DECOMPRESSION_FAILED);
	((uint8_t *)packed.data)[packed.size / 2] ^= 0x55;
	assert_int_equal(read_file_inflate(packed, &x, &why),
			 KPACK_ERROR_DECOMPRESSION_FAILED);
	assert_null(x.data);
	free(plain);
	free((void *)packed.data);
}

static void put(const char *path, struct kp_span bytes)
{
	FILE *f = fopen(path, "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(bytes.data, 1, bytes.size, f), bytes.size);
	fclose(f);
}

TEST(test_files)
{
	char dir[] = "/tmp/kpack-dat-XXXXXX", plain_path[64], packed_path[64];
	struct file_tree tree = {0};
	uint8_t *plain;
	struct kp_span packed = make_packed(3000, &plain);

	assert_non_null(mkdtemp(dir));
	snprintf(plain_path, sizeof(plain_path), "%s/x.dat", dir);
	snprintf(packed_path, sizeof(packed_path), "%s/x.dat.zlib", dir);
	put(plain_path, (struct kp_span){plain, 3000});
	put(packed_path, packed);
	file_tree_add(&tree, &(struct file_tree_item){
				     .path = "x.dat", .disk = plain_path, .size = 3000});
	file_tree_add(&tree, &(struct file_tree_item){.path = "x.dat.zlib",
						      .disk = packed_path,
						      .size = packed.size});
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(read_file_read(&tree, i, &x, &why), 0);
		assert_int_equal(x.size, 3000);
		assert_memory_equal(x.data, plain, 3000);
		read_file_fini(&x);
	}
	unlink(plain_path);
	assert_int_equal(read_file_read(&tree, 0, &x, &why), KPACK_ERROR_FILE_NOT_FOUND);
	/* a file that is too large is not read at all */
	tree.items[1].size = UINT64_C(3) << 30;
	assert_int_equal(read_file_read(&tree, 1, &x, &why), KPACK_ERROR_INVALID_FORMAT);
	unlink(packed_path);
	rmdir(dir);
	file_tree_fini(&tree);
	free(plain);
	free((void *)packed.data);
}
