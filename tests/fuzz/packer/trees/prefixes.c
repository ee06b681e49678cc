/* SPDX-License-Identifier: MIT */
/* The manifest of an artifact: its prefixes. */
#include "packer/trees/artifact.h"
#include "core/base/text.h"
#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kpackx_error why = {0};
	struct prefixes p;

	if (prefixes_parse((struct kp_span){data, size}, &p, &why)) {
		assert(why.text[0]);
		prefixes_close(&p);
		return 0;
	}
	assert(p.manifest);
	for (size_t i = 0; i < p.count; i++) {
		assert(kp_path_ok(kp_span_str(p.items[i].path)));
		assert(prefixes_has(&p, p.items[i].path));
	}
	for (size_t i = 1; i < p.count; i++)
		assert(strcmp(p.items[i - 1].path, p.items[i].path) <= 0);
	prefixes_close(&p);
	return 0;
}
