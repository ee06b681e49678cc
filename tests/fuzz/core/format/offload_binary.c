/* SPDX-License-Identifier: MIT */
/* Offload binaries with any content: find, list, inflate and rewrite them. */
#include <stdlib.h>
#include "core/format/format.h"
#include "core/format/offload_binary.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static kpack_error_t drop(void *arg, const void *bytes, size_t size,
			  struct kpackx_error *why)
{
	(void)arg, (void)bytes, (void)size, (void)why;
	return KPACK_SUCCESS;
}

/* Whatever can be read can be written, except NULs in strings of version 1. */
static void write_again(const struct kp_image *image, const struct kp_source *bytes,
			unsigned version)
{
	struct kp_pairs strings = {image->pairs.items, kp_offload_strings(image)};
	struct kp_offload_image out = {.strings = &strings, .bytes = *bytes};
	struct kp_offload_form form = {.version = version};
	struct kp_sink sink = {.write = drop};
	kpack_error_t err;

	out.image_kind = (uint16_t)kp_offload_image_kind(image);
	err = kp_offload_write(&out, 1, &form, &sink, NULL);
	if (err && !(version == 1 && err == KPACK_ERROR_INVALID_ARGUMENT))
		__builtin_trap();
}

static void check(const struct kp_source *src, const struct kp_containers *list, size_t n)
{
	const struct kp_container *c = &list->items[n];
	struct kp_payload payload;
	struct kp_source bytes;

	if (c->format != &kp_format_offload_binary ||
	    kp_containers_load(src, list, n, &payload, NULL) != KPACK_SUCCESS)
		return;
	if (payload.source.size != c->payload_size)
		__builtin_trap();
	for (size_t i = 0; i < c->n_images && i < 16; i++) {
		const struct kp_image *image = &list->images[c->first_image + i];

		if (!kp_source_sub(&payload.source, image->offset, image->size, &bytes))
			__builtin_trap();
		write_again(image, &bytes, 1 + (unsigned)i % 3);
	}
	kp_payload_fini(&payload);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kp_source src = kp_source_memory(data, size);
	struct kp_containers list;

	if (kp_nest_scan(&src, NULL, NULL, &list, NULL) != KPACK_SUCCESS)
		return 0;
	for (size_t i = 0; i < list.count && i < 64; i++)
		check(&src, &list, i);
	kp_containers_fini(&list);
	return 0;
}
