/* SPDX-License-Identifier: MIT */
/* The central directory of a zip archive, and the headers of its members. */
#include "packer/wheel/zip_central.h"
#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kp_source src = kp_source_memory(data, size);
	struct kpackx_error why = {0};
	struct central c;

	if (central_read(&src, 1000, &c, &why)) {
		assert(why.text[0]);
	} else if (central_check_locals(&src, &c, &why)) {
		assert(why.text[0]);
		for (size_t i = 0; i < c.count; i++)
			assert(kp_range_ok(c.offset, c.entries[i].offset,
					   c.entries[i].compressed));
	} else {
		for (size_t i = 0; i < c.count; i++)
			assert(kp_range_ok(c.offset, c.entries[i].data,
					   c.entries[i].compressed));
	}
	central_fini(&c);
	return 0;
}
