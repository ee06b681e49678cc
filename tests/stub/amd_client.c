/* SPDX-License-Identifier: MIT */
/*
 * A program that uses only AMD's header, and calls every function that it declares:
 *
 *	amd_client DIRECTORY
 *
 * DIRECTORY/x.kpack holds "lib/x.so#1" for gfx942 and gfx90a:xnack+, each "code for
 * ARCH", and declares them in this order.  Prints "ok FUNCTION" or "not ok FUNCTION";
 * exits with 1 if any is not ok.
 */
#include "amd_kpack.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* {"kernel_name": "lib/x.so", "kpack_search_paths": ["../x.kpack"]} */
static const char marker[] = "\x82\xabkernel_name\xa8lib/x.so"
			     "\xb2kpack_search_paths\x91\xaa../x.kpack";

static const char *dir;
static char path[4096];
static int failed;

static void check(const char *function, bool good)
{
	printf("%s %s\n", good ? "ok" : "not ok", function);
	failed |= !good;
}

static bool is_code(const char *arch, const void *data, size_t size)
{
	char want[64];
	int n = snprintf(want, sizeof(want), "code for %s", arch);

	return data && size == (size_t)n && memcmp(data, want, size) == 0;
}

static void query(kpack_archive_t archive)
{
	size_t n = 0;
	const char *s = NULL;

	check("kpack_get_architecture_count",
	      !kpack_get_architecture_count(archive, &n) && n == 2);
	check("kpack_get_architecture",
	      !kpack_get_architecture(archive, 1, &s) && strcmp(s, "gfx90a:xnack+") == 0);
	check("kpack_get_binary_count", !kpack_get_binary_count(archive, &n) && n == 1);
	check("kpack_get_binary",
	      !kpack_get_binary(archive, 0, &s) && strcmp(s, "lib/x.so#1") == 0);
}

static void get(kpack_archive_t archive)
{
	void *data = NULL;
	size_t size = 0;

	check("kpack_get_kernel",
	      !kpack_get_kernel(archive, "lib/x.so#1", "gfx942", &data, &size) &&
		      is_code("gfx942", data, size) &&
		      kpack_get_kernel(archive, "lib/x.so#2", "gfx942", &data, &size) ==
			      KPACK_ERROR_KERNEL_NOT_FOUND);
	kpack_free_kernel(data);
	kpack_free_kernel(NULL);
	check("kpack_free_kernel", true);
}

static void read_archive(void)
{
	kpack_archive_t archive = NULL;

	check("kpack_open", !kpack_open(path, &archive) && archive &&
				    kpack_open(dir, &archive) == KPACK_ERROR_IO_ERROR);
	query(archive);
	get(archive);
	kpack_close(archive);
	kpack_close(NULL);
	check("kpack_close", true);
}

static bool stop_at_first(const char *arch, void *user_data)
{
	*(bool *)user_data = strcmp(arch, "gfx942") == 0;
	return false;
}

static void load(kpack_cache_t cache)
{
	static const char *const archs[] = {"gfx1100",
					    "amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack+"};
	char binary[sizeof(path) + 16];
	void *data = NULL;
	size_t size = 0;

	snprintf(binary, sizeof(binary), "%s/lib/x.so", dir);
	check("kpack_load_code_object",
	      !kpack_load_code_object(cache, marker, binary, 1, archs, 2, &data, &size) &&
		      is_code("gfx90a:xnack+", data, size) &&
		      kpack_load_code_object(cache, marker, binary, 1, archs, 1, &data,
					     &size) == KPACK_ERROR_ARCH_NOT_FOUND);
	kpack_free_code_object(data);
	kpack_free_code_object(NULL);
	check("kpack_free_code_object", true);
}

static void load_through_cache(void)
{
	kpack_cache_t cache = NULL;

	check("kpack_cache_create", !kpack_cache_create(&cache) && cache);
	load(cache);
	kpack_cache_destroy(cache);
	kpack_cache_destroy(NULL);
	check("kpack_cache_destroy", true);
}

int main(int argc, char **argv)
{
	char self[4096];
	bool first = false;

	if (argc != 2)
		return 2;
	dir = argv[1];
	snprintf(path, sizeof(path), "%s/x.kpack", dir);
	read_archive();
	load_through_cache();
	check("kpack_enumerate_architectures",
	      !kpack_enumerate_architectures(path, stop_at_first, &first) && first);
	check("kpack_discover_binary_path",
	      !kpack_discover_binary_path(marker, self, sizeof(self), NULL) &&
		      strstr(self, "amd_client"));
	return failed;
}
