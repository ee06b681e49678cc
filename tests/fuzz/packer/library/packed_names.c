/* SPDX-License-Identifier: MIT */
/* File names in MessagePack. */
#include "packer/library/msgpack_names.h"
#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kpackx_error why = {0};
	static const char *const keys[] = {NULL, "co_path"};
	struct msgpack_names names;

	for (int i = 0; i < 2; i++) {
		why = (struct kpackx_error){0};
		if (msgpack_names_read((struct kp_span){data, size}, keys[i], &names,
				       &why))
			assert(why.text[0]);
		for (size_t k = 0; k < names.count; k++)
			assert(names.items[k].size <= size);
		msgpack_names_fini(&names);
	}
	return 0;
}
