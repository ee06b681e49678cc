/* SPDX-License-Identifier: MIT */
/* RECORD of a wheel: what was parsed can be written and parsed again. */
#include "packer/wheel/record.h"
#include <assert.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kpackx_error why = {0};
	struct record record, again;
	struct record_text text = {0};

	if (record_parse((struct kp_span){data, size}, &record, &why)) {
		assert(why.text[0]);
		record_fini(&record);
		return 0;
	}
	for (size_t i = 0; i < record.count; i++) {
		assert(record_find(&record, record.lines[i].path) == &record.lines[i]);
		record_text_add(&text, record.lines[i].path, record.lines[i].digest,
				record.lines[i].size);
	}
	assert(!record_parse((struct kp_span){(uint8_t *)text.text, text.size}, &again,
			     &why));
	assert(again.count == record.count);
	record_fini(&again);
	record_fini(&record);
	record_text_fini(&text);
	return 0;
}
