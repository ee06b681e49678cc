/* SPDX-License-Identifier: MIT */
/* States of trees, with the checksum corrected so that the parser gets past it. */
#include "packer/thin/policy_state.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was read is written as bytes that are read as the same. */
static void write_again(const struct state *s)
{
	struct state again = {0};
	size_t size;
	uint8_t *bytes = state_format(s, &size);

	assert(!state_parse((struct kp_span){bytes, size}, &again, NULL));
	assert(again.n_files == s->n_files && again.n_seen == s->n_seen &&
	       again.n_places == s->n_places);
	for (size_t i = 0; i < s->n_files; i++)
		assert(strcmp(again.files[i].path, s->files[i].path) == 0);
	state_fini(&again);
	free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kp_hash sum = kp_hash_of(data, size);
	uint8_t *bytes = malloc(size + sizeof(sum));
	struct kpackx_error why = {0};
	struct state s = {0};

	assert(bytes);
	if (size)
		memcpy(bytes, data, size);
	memcpy(bytes + size, sum.bytes, sizeof(sum.bytes));
	if (state_parse((struct kp_span){bytes, size + sizeof(sum)}, &s, &why))
		assert(why.text[0]);
	else
		write_again(&s);
	state_fini(&s);
	free(bytes);
	return 0;
}
