/* SPDX-License-Identifier: MIT */
/* SPIR-V: words, and the names of kernels among them. */
#include "format/object.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kp_source src = kp_source_memory(data, size);
	struct kp_containers list = {0};
	struct kp_object object = {0};
	struct kpackx_error why;

	if (kp_containers_add(&src, 0, &kp_format_spirv, KP_NOWHERE, &list, &why) ==
		    KPACK_SUCCESS &&
	    list.items[0].size > size)
		__builtin_trap();
	kp_containers_fini(&list);
	if (kp_format_spirv.describe(&src, &object, &why) == KPACK_SUCCESS &&
	    object.n_kernels > size)
		__builtin_trap();
	kp_object_fini(&object);
	return 0;
}
