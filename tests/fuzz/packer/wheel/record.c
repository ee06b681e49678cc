/* SPDX-License-Identifier: MIT */
/* RECORD of a wheel: what was parsed can be written and parsed again. */
#include "packer/wheel/wheel.h"
#include <assert.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kpackx_error why = {0};
	struct record record, again;
	char *text;
	size_t n;
	FILE *f;

	if (record_parse((struct kp_span){data, size}, &record, &why)) {
		assert(why.text[0]);
		record_fini(&record);
		return 0;
	}
	f = open_memstream(&text, &n);
	assert(f);
	for (size_t i = 0; i < record.count; i++) {
		assert(record_find(&record, record.lines[i].path) == &record.lines[i]);
		record_put(f, record.lines[i].path, record.lines[i].digest,
			   record.lines[i].size);
	}
	fclose(f);
	assert(!record_parse((struct kp_span){(uint8_t *)text, n}, &again, &why));
	assert(again.count == record.count);
	record_fini(&again);
	record_fini(&record);
	free(text);
	return 0;
}
