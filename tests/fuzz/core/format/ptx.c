/* SPDX-License-Identifier: MIT */
/* PTX, alone and as an object. */
#include "tests/fuzz/object.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_object(&kp_format_ptx, data, size);
}
