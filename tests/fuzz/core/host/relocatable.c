/* SPDX-License-Identifier: MIT */
/* Objects to link, with less device code: the result is smaller. */
#include "core/host/convert.h"
#include <elf.h>
#include <stdlib.h>
#include "core/format/sections.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The object with a section of zeros can be read, unless its tables overlap. */
static void read_result(const struct kp_relocatable *r)
{
	uint8_t *bytes = calloc(1, (size_t)r->size + 1);
	struct kp_source src = kp_source_memory(bytes, (size_t)r->size);
	struct kp_sections sections;

	if (!bytes || r->before > r->size || r->after > r->size - r->before)
		__builtin_trap();
	memcpy(bytes, r->bytes, (size_t)r->before);
	if (r->after)
		memcpy(bytes + r->size - r->after, r->bytes + r->before,
		       (size_t)r->after);
	if (kp_sections_read(&src, &sections, NULL) == KPACK_SUCCESS)
		kp_sections_fini(&sections);
	free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kp_source src = kp_source_memory(data, size);
	const struct kp_section *s;
	struct kp_sections sections;
	struct kp_relocatable out;

	if (kp_sections_read(&src, &sections, NULL))
		return 0;
	s = kp_sections_find(&sections, ".hip_fatbin");
	if (s && s->type != SHT_NOBITS) {
		uint64_t from[] = {0, s->size / 2}, to[] = {0, s->size / 4};
		struct kp_relocatable_fill fill = {.offset = s->offset,
						   .size = s->size,
						   .rest = s->size / 2,
						   .from = from,
						   .to = to,
						   .n = s->size > 1 ? 2 : 1};

		if (kp_relocatable_refill(&src, &fill, &out, NULL) == KPACK_SUCCESS) {
			if (out.size >= size)
				__builtin_trap();
			read_result(&out);
			kp_relocatable_fini(&out);
		}
	}
	kp_sections_fini(&sections);
	return 0;
}
