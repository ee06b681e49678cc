/* SPDX-License-Identifier: MIT */
/* rocFFT's kernel names, also as parts of keys. */
#include "packer/library/rocfft.h"
#include "core/base/text.h"
#include <assert.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kp_span name = {data, size}, key;
	struct facts facts = {0};
	struct kernel_name parsed;
	char *component;

	kernel_name_parse(name, &parsed);
	assert(kp_component_ok(kp_span_str(parsed.length)) && *parsed.precision);
	assert(parsed.n_factors[0] || !parsed.n_factors[1]);
	kernel_name_facts(&parsed, &facts);
	assert(facts.count <= 8);
	facts_fini(&facts);

	component = kernel_name_component(name);
	assert(component);
	key = kp_span_str(component);
	assert(kp_text_ok(key) && key.size <= 3 * size && key.size >= size);
	assert(size == 0 || size > 85 || kp_component_ok(key));
	free(component);
	return 0;
}
