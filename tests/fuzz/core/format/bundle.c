/* SPDX-License-Identifier: MIT */
/* Find and list bundles, CCOBs and code objects as .hip_fatbin holds them. */
#include "core/format/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kp_source src = kp_source_memory(data, size);
	struct kp_containers list;
	struct kpackx_error why;

	if (kp_containers_scan(&src, &list, &why) != KPACK_SUCCESS)
		return 0;
	for (size_t i = 0; i < list.n_images; i++) {
		const struct kp_image *image = &list.images[i];

		if (!kp_range_ok(list.items[image->container].payload_size, image->offset,
				 image->size))
			__builtin_trap();
	}
	kp_containers_fini(&list);
	return 0;
}
