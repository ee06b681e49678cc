/* SPDX-License-Identifier: MIT */
/* Names of cuTile kernels from any text: an accepted name is written back unchanged. */
#include "core/format/cutile.h"
#include <assert.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_arguments(const struct kpackx_signature *s)
{
	for (size_t i = 0; i < s->n_arguments; i++) {
		const struct kpackx_argument *a = &s->arguments[i];

		assert(a->name[0] == 'p' && a->type && a->meaning && a->size);
		assert(a->parameter < s->n_parameters);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kp_span name = {data, size};
	struct kpackx_signature *s = NULL;
	struct kp_compose again = {0};
	struct kpackx_error why = {0};
	size_t arguments;

	if (kp_cutile_demangle(name, &s, &why) != KPACK_SUCCESS) {
		assert(!s && (why.code == KPACK_ERROR_INVALID_FORMAT ||
			      why.code == KPACK_ERROR_UNSUPPORTED_VERSION));
		assert(strncmp(why.text, "offset ", 7) == 0);
		assert(strtoull(why.text + 7, NULL, 10) <= size);
		return 0;
	}
	assert(kp_cutile_named(name));
	assert(kp_cutile_mangle(s, &again, &arguments, NULL) == KPACK_SUCCESS);
	assert(again.size == size && memcmp(again.text, data, size) == 0);
	assert(arguments == s->n_arguments);
	check_arguments(s);
	kp_compose_fini(&again);
	kpackx_signature_free(s);
	return 0;
}
