/* SPDX-License-Identifier: MIT */
/* SPIR-V: its words, and the kernel names among them. */
#include "tests/fuzz/object.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_object(&kp_format_spirv, data, size);
}
