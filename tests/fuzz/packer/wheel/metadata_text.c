/* SPDX-License-Identifier: MIT */
/* METADATA and WHEEL of a wheel: added headers can be read back. */
#include "packer/wheel/wheel.h"
#include <assert.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct metadata_text *m, const char *text, size_t size,
		  size_t added)
{
	struct kpackx_error why = {0};
	struct metadata_text again;
	struct kp_span value;

	assert(!metadata_text_parse((struct kp_span){(const uint8_t *)text, size}, &again,
				    &why));
	assert(again.count == m->count + added);
	assert(metadata_text_get(&again, "X-New", &value));
	metadata_text_fini(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kpackx_error why = {0};
	struct metadata_text m;
	struct kp_span old;
	char *text;
	size_t n;

	if (metadata_text_parse((struct kp_span){data, size}, &m, &why)) {
		assert(why.text[0]);
		metadata_text_fini(&m);
		return 0;
	}
	for (size_t i = 0; i < m.count; i++)
		assert(m.headers[i].value.size <= size);
	text = metadata_text_add(&m, "X-New: 1\n", &n);
	check(&m, text, n, 1);
	free(text);
	text = metadata_text_set(&m, "X-New", "2", &n);
	check(&m, text, n, !metadata_text_get(&m, "X-New", &old));
	free(text);
	metadata_text_fini(&m);
	return 0;
}
