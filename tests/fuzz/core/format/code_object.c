/* SPDX-License-Identifier: MIT */
/* AMDGPU code objects: notes, metadata, symbols and descriptors. */
#include "tests/fuzz/object.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_object(&kp_format_code_object, data, size);
}
