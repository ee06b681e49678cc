/* SPDX-License-Identifier: MIT */
#include "object.h"
#include <stdlib.h>
#include "core/base/bounds.h"
#include "core/base/alloc.h"

void kp_object_fini(struct kp_object *object)
{
	for (size_t i = 0; i < object->n_kernels; i++) {
		free(object->kernels[i].name);
		free(object->kernels[i].symbol);
	}
	free(object->kernels);
	kp_pairs_fini(&object->facts);
	*object = (struct kp_object){.type = "co"};
}

kpack_error_t kp_object_add_kernel(struct kp_object *object, struct kp_span name,
				   struct kp_kernel **out, struct kpackx_error *why)
{
	struct kp_kernel k = {
		.vgprs = KP_NOT_STATED,
		.agprs = KP_NOT_STATED,
		.sgprs = KP_NOT_STATED,
		.lds = KP_NOT_STATED,
		.scratch = KP_NOT_STATED,
		.kernarg = KP_NOT_STATED,
		.wavefront = KP_NOT_STATED,
		.threads = KP_NOT_STATED,
	};

	if (object->n_kernels >= KP_KERNELS_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "more than %d kernels",
			       KP_KERNELS_MAX);
	if (!kp_grow(&object->kernels, object->n_kernels, &object->kernels_cap,
		     sizeof(k)))
		return kp_fail_memory(why, object->n_kernels * sizeof(k), "kernels");
	k.name = strndup((const char *)name.data, name.size);
	if (!k.name)
		return kp_fail_memory(why, name.size, "a kernel's name");
	object->kernels[object->n_kernels] = k;
	*out = &object->kernels[object->n_kernels++];
	return KPACK_SUCCESS;
}
