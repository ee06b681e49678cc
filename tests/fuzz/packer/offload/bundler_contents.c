/* SPDX-License-Identifier: MIT */
/* Bundled files of each type: list and read the entries, remove sections from objects. */
#include "packer/offload/offload.h"
#include <sys/mman.h>
#include <unistd.h>
#include "core/base/alloc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(const char *type, const struct kp_source *src)
{
	struct bundler b = {.type = type};
	KP_AUTO(bundle_contents) parts;
	struct kp_source bytes;
	uint8_t byte;

	if (bundle_contents_read(&b, src, &parts, NULL))
		return;
	for (size_t i = 0; i < parts.list.n_images; i++) {
		bundle_contents_is_mark(&parts, i);
		if (bundle_contents_open(&parts, i, &bytes, NULL) == KPACK_SUCCESS &&
		    bytes.size && kp_source_read(&bytes, bytes.size - 1, &byte, 1, NULL))
			__builtin_trap();
	}
}

/* Whether the object SRC can be read and has at most MOST bundled images. */
static bool has_at_most(const struct kp_source *src, size_t most)
{
	struct bundler b = {.type = "o"};
	KP_AUTO(bundle_contents) parts;

	return !bundle_contents_read(&b, src, &parts, NULL) &&
	       parts.list.n_images <= most;
}

/* A rewritten object can be read, if it could be before, and has the expected sections. */
static void rewrite(const struct kp_source *src)
{
	struct kp_outfile file = {.fd = memfd_create("o", 0), .dir_fd = -1};
	struct kp_sink sink = {.out = &file};
	struct offload_section s = {"x", *src};
	struct kp_source made;

	if (offload_object_strip(src, &sink, NULL) == KPACK_SUCCESS) {
		made = kp_source_fd(file.fd, 0, sink.size);
		/*
		 * one image may remain: the section of names, whose own name can be
		 * anything
		 */
		if (has_at_most(src, SIZE_MAX) && !has_at_most(&made, 1))
			__builtin_trap();
	}
	sink = (struct kp_sink){.out = &file};
	offload_object_add(src, &s, 1, &sink, NULL);
	close(file.fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const types[] = {"bc", "o", "ii", "ll", "d"};
	struct kp_source src = kp_source_memory(data, size);

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		read_all(types[i], &src);
	if (offload_is_object(&src))
		rewrite(&src);
	return 0;
}
