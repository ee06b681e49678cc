/* SPDX-License-Identifier: MIT */
/* Libraries that were compressed with zlib. */
#include "packer/library/file_tree.h"
#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kp_source source = kp_source_memory((uint8_t *)data, size);
	struct kpackx_error why = {0};
	struct read_file dat;

	if (read_file_unpack(&source, true, &dat, &why))
		assert(why.text[0] && !dat.data);
	read_file_fini(&dat);
	return 0;
}
