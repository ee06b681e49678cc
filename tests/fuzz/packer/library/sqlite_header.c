/* SPDX-License-Identifier: MIT */
/* The header of SQLite databases. */
#include "packer/library/sqlite.h"
#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kp_source source = kp_source_memory(data, size);
	size_t head = size < 512 ? size : 512;
	struct kpackx_error why = {0};

	if (sqlite_header_check(&source, data, head, &why) == KPACK_SUCCESS) {
		assert(sqlite_header_probe(data, head));
		assert(size >= 512 && data[18] == 1 && data[19] == 1);
	} else {
		assert(why.code == KPACK_ERROR_INVALID_FORMAT && why.text[0]);
	}
	return 0;
}
