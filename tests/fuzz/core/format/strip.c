/* SPDX-License-Identifier: MIT */
/* Stripping code objects: a result is smaller and whole, and can be stripped again. */
#include "core/format/strip.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void strip_one(const struct kp_source *src, enum kp_strip how)
{
	struct kp_stripped out, again;
	struct kp_source result;
	uint8_t *bytes;

	if (kp_strip_plan(src, how, &out, NULL))
		return;
	if (out.size >= src->size)
		__builtin_trap();
	bytes = malloc((size_t)out.size);
	if (!bytes || kp_stripped_read(&out, src, bytes, NULL))
		__builtin_trap();
	result = kp_source_memory(bytes, (size_t)out.size);
	if (how == KP_STRIP_DEBUG && !kp_strip_plan(&result, how, &again, NULL)) {
		if (again.size >= out.size)
			__builtin_trap();
		kp_stripped_fini(&again);
	}
	free(bytes);
	kp_stripped_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kp_source src = kp_source_memory(data, size);
	char id[KP_BUILD_ID_TEXT];

	strip_one(&src, KP_STRIP_DEBUG);
	strip_one(&src, KP_STRIP_KEEP_DEBUG);
	if (!kp_strip_build_id(&src, id, NULL) && strlen(id) >= sizeof(id))
		__builtin_trap();
	return 0;
}
