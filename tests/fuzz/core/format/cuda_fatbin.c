/* SPDX-License-Identifier: MIT */
/* CUDA fatbins: decode every fatbin that can be listed. */
#include "core/format/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kp_source src = kp_source_memory(data, size);
	struct kp_containers list = {0};
	struct kp_payload payload;
	struct kpackx_error why;

	if (kp_containers_add(&src, 0, &kp_format_fatbin, KP_NOWHERE, &list, &why) !=
	    KPACK_SUCCESS) {
		kp_containers_fini(&list);
		return 0;
	}
	for (size_t i = 0; i < list.n_images; i++)
		if (!kp_range_ok(list.items[0].payload_size, list.images[i].offset,
				 list.images[i].size))
			__builtin_trap();
	if (kp_container_load(&src, &list.items[0], &payload, &why) == KPACK_SUCCESS) {
		if (payload.source.size != list.items[0].payload_size)
			__builtin_trap();
		kp_payload_fini(&payload);
	}
	kp_containers_fini(&list);
	return 0;
}
