/* SPDX-License-Identifier: MIT */
/* A recipe of kpack thin --keep. */
#include "packer/thin/recipe.h"
#include <assert.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kpackx_error why = {0};
	struct recipe r = {0}, again = {0};
	uint64_t sum = 0;
	char *text;

	if (recipe_parse((struct kp_span){data, size}, &r, &why)) {
		assert(why.text[0] && !r.parts);
		return 0;
	}
	for (size_t i = 0; i < r.n_parts; i++) {
		const struct recipe_part *part = &r.parts[i];

		assert(part->size && part->size <= r.size);
		assert(part->offset == RECIPE_KEPT ||
		       (part->offset <= r.changed_size &&
			part->size <= r.changed_size - part->offset));
		sum += part->size;
	}
	assert(sum == r.size);
	/* what is written is read as the same */
	text = recipe_write(&r);
	assert(!recipe_parse(kp_span_str(text), &again, NULL));
	assert(again.size == r.size && again.n_parts == r.n_parts);
	recipe_fini(&again);
	recipe_fini(&r);
	free(text);
	return 0;
}
