/* SPDX-License-Identifier: MIT */
/* Properties of a node of the KFD topology. */
#include "core/target/kfd.h"
#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kpackx_error why = {0};
	struct kp_target gpu;
	bool found = false;
	kpack_error_t err =
		kp_gpus_parse((struct kp_span){data, size}, &gpu, &found, &why);

	assert(!err || (!found && why.text[0]));
	assert(!found || strncmp(gpu.processor, "gfx", 3) == 0);
	return 0;
}
