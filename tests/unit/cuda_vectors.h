/* SPDX-License-Identifier: MIT */
/* Read the files of tests/data/cuda and scan bytes in memory. */
#ifndef CUDA_VECTORS_H
#define CUDA_VECTORS_H

#include <stdio.h>
#include "elf_builder.h"
#include "exact_copy.h"
#include "core/format/nest.h"
#include "core/format/object.h"

static struct kpackx_error why;

static inline struct bytes read_vector(const char *name)
{
	const char *root = getenv("KPACK_SRC");
	struct bytes b = {0};
	uint8_t buf[4096];
	char path[4096];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "%s/tests/data/cuda/%s", root ? root : ".", name);
	f = fopen(path, "rb");
	if (!f)
		fail_msg("%s: cannot be read", path);
	while ((n = fread(buf, 1, sizeof(buf), f)) > 0)
		put(&b, buf, n);
	fclose(f);
	return b;
}

static inline kpack_error_t nest(struct kp_span s, struct kp_containers *out)
{
	struct kp_source src = exact_copy(s.data, s.size);
	kpack_error_t err = kp_nest_scan(&src, NULL, NULL, out, &why);

	free((void *)(uintptr_t)src.mem);
	return err;
}

static inline kpack_error_t describe(struct kp_span s, struct kp_object *out)
{
	struct kp_source src = exact_copy(s.data, s.size);
	kpack_error_t err = kp_object_describe(&src, out, &why);

	free((void *)(uintptr_t)src.mem);
	return err;
}

static inline struct kp_span span_of(const struct bytes *b)
{
	return (struct kp_span){b->data, b->size};
}

static inline void assert_why(const char *text)
{
	assert_has(why.text, text);
}

/* The bytes of image NUMBER of B's containers; the caller frees them. */
static inline struct bytes load_image(const struct bytes *b,
				      const struct kp_containers *list, size_t number)
{
	const struct kp_image *image = &list->images[number];
	struct kp_source src = kp_source_memory(b->data, b->size);
	struct kp_payload payload;
	struct bytes out = {0};

	assert_int_equal(kp_containers_load(&src, list, image->container, &payload, &why),
			 KPACK_SUCCESS);
	assert_int_equal(payload.source.size, list->items[image->container].payload_size);
	put_zeros(&out, image->size);
	assert_int_equal(kp_source_read(&payload.source, image->offset, out.data,
					image->size, &why),
			 KPACK_SUCCESS);
	kp_payload_fini(&payload);
	return out;
}

#endif
