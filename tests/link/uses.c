/* SPDX-License-Identifier: MIT */
/*
 * A program that uses the installed library, in C and in C++:
 *
 *	uses ARCHIVE KEY ARCH FILE
 *
 * Exit 0 when ARCHIVE declares ARCH, has KEY and holds for them what is in FILE.
 */
#include <rocm_kpack/kpack.h>
#include <rocm_kpack/kpackx.h>

#include <stdio.h>
#include <string.h>

static bool declares(kpack_archive_t archive, const char *arch)
{
	const char *one;

	for (size_t i = 0; kpack_get_architecture(archive, i, &one) == KPACK_SUCCESS; i++)
		if (strcmp(one, arch) == 0)
			return true;
	return false;
}

static bool has(kpack_archive_t archive, const char *key)
{
	const char *one;

	for (size_t i = 0; kpack_get_binary(archive, i, &one) == KPACK_SUCCESS; i++)
		if (strcmp(one, key) == 0)
			return true;
	return false;
}

static bool file_is(const char *path, const void *data, size_t size)
{
	static char want[4096];
	FILE *file = fopen(path, "re");
	size_t n = file ? fread(want, 1, sizeof(want), file) : 0;

	if (file)
		fclose(file);
	return n == size && memcmp(want, data, size) == 0;
}

int main(int argc, char **argv)
{
	struct kpackx_error why = {KPACK_SUCCESS, 0, ""};
	kpack_archive_t archive;
	void *data = NULL;
	size_t size = 0;
	bool good;

	if (argc != 5)
		return 2;
	if (kpackx_open(argv[1], &archive, &why)) {
		fprintf(stderr, "%s: %s\n", kpackx_error_name(why.code), why.text);
		return 1;
	}
	good = declares(archive, argv[3]) && has(archive, argv[2]) &&
	       kpack_get_kernel(archive, argv[2], argv[3], &data, &size) ==
		       KPACK_SUCCESS &&
	       file_is(argv[4], data, size);
	kpack_free_kernel(data);
	kpack_close(archive);
	return good ? 0 : 1;
}
