/* SPDX-License-Identifier: MIT */
/*
 * Loads a library of Composable Kernel as MIOpen does: maps it, executably too, and
 * calls it.
 *
 *   ck FILE
 */
#include "loader.h"

int main(int argc, char **argv)
{
	struct bytes bytes;
	const char *arch;
	int (*answer)(void);
	void *library;

	if (argc != 2)
		die("usage: ck FILE");
	library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		printf("dlopen: no\n");
		return 1;
	}
	answer = (int (*)(void))(uintptr_t)dlsym(library, "ck_answer");
	arch = dlsym(library, "ck_arch");
	if (!answer || !arch)
		die("%s", dlerror());
	printf("dlopen: %s, %d\n", arch, answer());
	if (read_whole(argv[1], &bytes))
		print_bytes("file", strrchr(argv[1], '/') + 1, bytes.data, bytes.size);
	return 0;
}
