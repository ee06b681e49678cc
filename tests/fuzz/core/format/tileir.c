/* SPDX-License-Identifier: MIT */
/* TileIR bytecode from any bytes: find it and describe it. */
#include <assert.h>
#include "core/format/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/*
 * Find containers of this format only: the other formats have fuzz targets of their own.
 */
static void find(const struct kp_source *src)
{
	struct kp_containers list = {0};

	if (kp_containers_add(src, 0, &kp_format_tileir, KP_NOWHERE, &list, NULL) ==
	    KPACK_SUCCESS) {
		assert(list.count == 1 && list.n_images == 1);
		assert(list.items[0].size <= src->size && list.items[0].size >= 12);
		assert(list.images[0].size == list.items[0].size);
	}
	kp_containers_fini(&list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kp_source src = kp_source_memory(data, size);
	struct kp_object object = {0};
	struct kpackx_error why = {0};

	if (!kp_format_tileir.probe((struct kp_span){data, size}))
		return 0;
	find(&src);
	if (kp_format_tileir.describe(&src, &object, &why) == KPACK_SUCCESS)
		assert(object.n_kernels <= size &&
		       kp_pairs_find(&object.facts, "version"));
	else
		assert(why.code == KPACK_ERROR_INVALID_FORMAT && why.text[0]);
	kp_object_fini(&object);
	return 0;
}
