/* SPDX-License-Identifier: MIT */
/* A program for Windows, or wine: what its own wrappers lead to, and those of libraries. */
#include <stdio.h>
#include <windows.h>

struct wrapper {
	unsigned magic, version;
	const char *binary;
	size_t index;
};

extern const char fat_one[], fat_two[];
__attribute__((section(".hipFatBinSegment"),
	       used)) volatile struct wrapper wrapper_one = {0x48495046, 1, fat_one, 0};
__attribute__((section(".hipFatBinSegment"),
	       used)) volatile struct wrapper wrapper_two = {0x48495046, 1, fat_two, 0};

static void print_wrapper(const char *name, const volatile struct wrapper *w)
{
	/* a marker begins with the byte of a map */
	const char *text = w->binary + (w->magic == 0x4b504948);

	printf("%s: %s %.18s\n", name, w->magic == 0x4b504948 ? "HIPK" : "HIPF",
	       *text == '\xb2' ? text + 1 : text);
}

int main(int argc, char **argv)
{
	print_wrapper("one", &wrapper_one);
	print_wrapper("two", &wrapper_two);
	for (int i = 1; i < argc; i++) {
		HMODULE library = LoadLibraryA(argv[i]);
		int (*answer)(void) =
			library ? (void *)GetProcAddress(library, "answer") : NULL;
		struct wrapper *(*wrappers)(void) =
			library ? (void *)GetProcAddress(library, "wrappers") : NULL;

		if (!answer || !wrappers || answer() != 42)
			return 1;
		print_wrapper(argv[i], wrappers());
	}
	return 0;
}
