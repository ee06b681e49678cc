/* SPDX-License-Identifier: MIT */
/* States of trees, with a checksum added so that the parser gets past it. */
#include "packer/thin/policy.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was read is written as bytes that are read as the same. */
static void write_again(const struct state *s)
{
	struct state again = {0};
	size_t size, size_again;
	char *text = state_format(s, &size), *text_again;

	assert(!state_parse((struct kp_span){(uint8_t *)text, size}, &again, NULL));
	text_again = state_format(&again, &size_again);
	assert(size == size_again && memcmp(text, text_again, size) == 0);
	state_fini(&again);
	free(text_again);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	policy_hash sum;
	char *text = calloc(1, size + 64); /* also where size is 0 */
	struct kpackx_error why = {0};
	struct state s = {0};

	assert(text);
	if (size)
		memcpy(text, data, size);
	policy_hash_of(text, size, sum);
	sprintf(text + size, "end %s\n", sum);
	if (state_parse((struct kp_span){(uint8_t *)text, size + strlen(text + size)}, &s,
			&why))
		assert(why.text[0]);
	else
		write_again(&s);
	state_fini(&s);
	free(text);
	return 0;
}
