/* SPDX-License-Identifier: MIT */
/* Bytes as an object of one format: find its end and describe it. */
#ifndef FUZZ_OBJECT_H
#define FUZZ_OBJECT_H

#include "core/format/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline int fuzz_object(const struct kp_format *format, const uint8_t *data,
			      size_t size)
{
	struct kp_source src = kp_source_memory(data, size);
	struct kp_containers list = {0};
	struct kp_object object = {0};
	struct kpackx_error why;

	if (kp_containers_add(&src, 0, format, KP_NOWHERE, &list, &why) ==
		    KPACK_SUCCESS &&
	    list.items[0].size > size)
		__builtin_trap();
	kp_containers_fini(&list);
	if (format->describe(&src, &object, &why) == KPACK_SUCCESS &&
	    object.n_kernels > size)
		__builtin_trap();
	kp_object_fini(&object);
	return 0;
}

#endif
