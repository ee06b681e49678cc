/* SPDX-License-Identifier: MIT */
/* Input of any format: find all containers in it, and load the nested ones. */
#include "core/format/format.h"

/*
 * Limits on containers to load and on their decoded bytes: loading a nested container
 * decodes the containers around it again.
 */
#define LOADS 32
#define LOADED_MAX (16 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_fault(void *arg, const struct kp_containers *list, size_t image,
		     const struct kpackx_error *why)
{
	(void)arg;
	if ((image != KP_NOWHERE && image >= list->n_images) || !*why->text)
		__builtin_trap();
}

static void check_images(const struct kp_containers *list, const struct kp_container *c)
{
	for (size_t i = c->first_image; i < c->first_image + c->n_images; i++) {
		const struct kp_image *image = &list->images[i];

		if (!kp_range_ok(c->payload_size, image->offset, image->size) ||
		    &list->items[image->container] != c)
			__builtin_trap();
		if (image->inside != KP_NOWHERE && list->items[image->inside].inside != i)
			__builtin_trap();
	}
}

static void load(const struct kp_source *src, const struct kp_containers *list, size_t i)
{
	struct kp_payload payload;

	if (kp_containers_load(src, list, i, &payload, NULL) != KPACK_SUCCESS)
		return;
	if (payload.source.size != list->items[i].payload_size)
		__builtin_trap();
	kp_payload_fini(&payload);
}

typedef kpack_error_t find_containers(const struct kp_source *src, kp_nest_fault *fault,
				      void *arg, struct kp_containers *out,
				      struct kpackx_error *why);

static void scan(const struct kp_source *src, find_containers *find)
{
	struct kp_containers list;
	struct kpackx_error why;

	if (find(src, on_fault, NULL, &list, &why) != KPACK_SUCCESS)
		return;
	for (size_t i = 0; i < list.count; i++) {
		check_images(&list, &list.items[i]);
		if (i < LOADS && list.items[i].payload_size <= LOADED_MAX)
			load(src, &list, i);
	}
	kp_containers_fini(&list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kp_source src = kp_source_memory(data, size);

	scan(&src, kp_nest_scan);
	scan(&src, kp_nest_salvage);
	return 0;
}
