/* SPDX-License-Identifier: MIT */
/* Compressed bundles: decode every one that can be listed. */
#include "core/format/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kp_source src = kp_source_memory(data, size);
	struct kp_containers list;
	struct kp_payload payload;
	struct kpackx_error why;

	if (kp_containers_scan(&src, &list, &why) != KPACK_SUCCESS)
		return 0;
	for (size_t i = 0; i < list.count; i++) {
		if (kp_container_load(&src, &list.items[i], &payload, &why) !=
		    KPACK_SUCCESS)
			continue;
		if (payload.source.size != list.items[i].payload_size)
			__builtin_trap();
		kp_payload_fini(&payload);
	}
	kp_containers_fini(&list);
	return 0;
}
