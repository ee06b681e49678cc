/* SPDX-License-Identifier: MIT */
/* File names in MessagePack. */
#include "packer/library/closure.h"
#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kpackx_error why = {0};
	struct file_names names;

	if (file_names_of_msgpack((struct kp_span){data, size}, "co_path", &names, &why))
		assert(why.text[0]);
	for (size_t i = 0; i < names.count; i++)
		assert(strlen(names.items[i]) <= size);
	file_names_fini(&names);
	return 0;
}
