/* SPDX-License-Identifier: MIT */
/* Offload binaries embedded in bitcode: each one found begins with the magic. */
#include <stdlib.h>
#include "core/format/bitcode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static kpack_error_t found(void *arg, struct kp_span bytes, struct kpackx_error *why)
{
	(void)arg, (void)why;
	if (!kp_span_starts(bytes, "\x10\xff\x10\xad", 4))
		__builtin_trap();
	return KPACK_SUCCESS;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	kp_bitcode_embedded((struct kp_span){data, size}, found, NULL, NULL);
	return 0;
}
