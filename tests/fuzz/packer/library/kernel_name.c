/* SPDX-License-Identifier: MIT */
/* rocFFT's kernel names, also as parts of keys. */
#include "packer/library/rocfft.h"
#include "core/base/text.h"
#include <assert.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct library_object object = {0};
	struct kp_span key;
	const char *name;

	kernel_name_describe(&object, "gfx942", (struct kp_span){data, size});
	assert(object.n_keys == 1 && object.facts.count <= 8);
	key = kp_span_str(object.keys[0]);
	name = strrchr(object.keys[0], '/') + 1;
	assert(kp_text_ok(key) && strlen(name) <= 3 * size && strlen(name) >= size);
	assert(size == 0 || size > 85 || kp_path_ok(key));
	library_object_fini(&object);
	return 0;
}
