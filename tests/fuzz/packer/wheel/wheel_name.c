/* SPDX-License-Identifier: MIT */
/* Wheel names: a parsed name is put together again unchanged. */
#include "packer/wheel/wheel.h"
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kpackx_error why = {0};
	char *text = strndup((const char *)data, size), out[WHEEL_NAME_MAX + 1];
	struct wheel_name name;

	assert(text);
	if (wheel_name_parse(text, &name, &why) == KPACK_SUCCESS) {
		assert(!wheel_name_compose(&name, out, &why));
		assert(strcmp(out, text) == 0);
	} else {
		assert(why.text[0]);
	}
	if (dist_name_normal(text, '_', out))
		assert(dist_name_ok(out) && strlen(out) <= strlen(text));
	if (dist_version_escape(text, out))
		assert(!strchr(out, '-'));
	free(text);
	return 0;
}
