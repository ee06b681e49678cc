/* SPDX-License-Identifier: MIT */
/* LLVM bitcode, bare and wrapped: where it ends. */
#include "core/format/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kp_source src = kp_source_memory(data, size);
	struct kp_containers list = {0};
	struct kpackx_error why;

	if (kp_containers_add(&src, 0, &kp_format_bitcode, KP_NOWHERE, &list, &why) ==
		    KPACK_SUCCESS &&
	    list.items[0].size > size)
		__builtin_trap();
	kp_containers_fini(&list);
	return 0;
}
