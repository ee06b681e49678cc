/* SPDX-License-Identifier: MIT */
/* The header of SQLite databases. */
#include "packer/library/sqlite.h"
#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kp_source source = kp_source_memory(data, size);
	struct kpackx_error why = {0};

	if (sqlite_header_check(&source, &why) == KPACK_SUCCESS)
		assert(size >= 512 && data[18] == 1 && data[19] == 1);
	else
		assert(why.code == KPACK_ERROR_INVALID_FORMAT && why.text[0]);
	return 0;
}
