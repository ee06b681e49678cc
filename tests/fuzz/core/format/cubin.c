/* SPDX-License-Identifier: MIT */
/* Cubins, alone and as objects. */
#include "tests/fuzz/object.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_object(&kp_format_cubin, data, size);
}
