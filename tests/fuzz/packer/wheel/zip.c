/* SPDX-License-Identifier: MIT */
/* The directory of a wheel, and the headers of its members. */
#include "packer/wheel/wheel.h"
#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kp_source src = kp_source_memory(data, size);
	struct kpackx_error why = {0};
	struct wheel_in w = {.fd = -1};
	size_t member;

	if (wheel_in_read(&w, &src, &why))
		assert(why.text[0]);
	else
		for (size_t i = 0; i < w.count; i++) {
			const struct wheel_member *m = &w.members[i];

			assert(kp_range_ok(size, m->at, m->compressed));
			assert(wheel_in_find(&w, m->path, &member) && member == i);
		}
	wheel_in_fini(&w);
	return 0;
}
