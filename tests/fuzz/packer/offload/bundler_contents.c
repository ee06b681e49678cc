/* SPDX-License-Identifier: MIT */
/* Bundled files of each type: list and read the entries, remove sections from objects. */
#include "packer/offload/contents.h"
#include <sys/mman.h>
#include <unistd.h>
#include "packer/offload/elf_object.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(const char *type, const struct kp_source *src)
{
	struct bundler b = {.type = type};
	struct bundler_contents parts;
	struct kp_source bytes;
	uint8_t byte;

	if (bundler_contents_read(&b, src, &parts, NULL))
		return;
	for (size_t i = 0; i < parts.list.n_images; i++) {
		bundler_contents_is_mark(&parts, i);
		if (bundler_contents_open(&parts, i, &bytes, NULL) == KPACK_SUCCESS &&
		    bytes.size && kp_source_read(&bytes, bytes.size - 1, &byte, 1, NULL))
			__builtin_trap();
	}
	bundler_contents_free(&parts);
}

/* Whether the object SRC can be read and has at most MOST bundled images. */
static bool has_at_most(const struct kp_source *src, size_t most)
{
	struct bundler b = {.type = "o"};
	struct bundler_contents parts;
	bool yes;

	if (bundler_contents_read(&b, src, &parts, NULL))
		return false;
	yes = parts.list.n_images <= most;
	bundler_contents_free(&parts);
	return yes;
}

/* A rewritten object can be read, if it could be before, and has the expected sections. */
static void rewrite(const struct kp_source *src)
{
	struct kp_outfile file = {.fd = memfd_create("o", 0), .dir_fd = -1};
	struct kp_sink sink = {.out = &file};
	struct bundler_section s = {"__CLANG_OFFLOAD_BUNDLE__x", *src};
	struct kp_source made;

	if (bundler_elf_remove(src, "__CLANG_OFFLOAD_BUNDLE__", &sink, NULL) ==
	    KPACK_SUCCESS) {
		made = kp_source_fd(file.fd, 0, sink.size);
		/*
		 * one image may remain: the section of names, whose own name can be
		 * anything
		 */
		if (has_at_most(src, SIZE_MAX) && !has_at_most(&made, 1))
			__builtin_trap();
	}
	sink = (struct kp_sink){.out = &file};
	bundler_elf_add(src, &s, 1, &sink, NULL);
	close(file.fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const types[] = {"bc", "o", "ii", "ll", "d"};
	struct kp_source src = kp_source_memory(data, size);

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		read_all(types[i], &src);
	if (bundler_is_object(&src))
		rewrite(&src);
	return 0;
}
