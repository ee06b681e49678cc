/* SPDX-License-Identifier: MIT */
/* The marker's map, and a wrapper, from the same bytes. */
#include "core/base/bounds.h"
#include "core/host/marker.h"
#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kpackx_error why = {0};
	struct kp_marker m, again;
	struct kp_wrapper w;

	if (size >= KP_WRAPPER_SIZE && kp_wrapper_decode(data, &w))
		assert(w.version == KP_WRAPPER_VERSION);
	if (kp_marker_parse((struct kp_span){data, size}, &m, &why) != KPACK_SUCCESS) {
		assert(why.code != KPACK_SUCCESS && why.text[0]);
		return 0;
	}
	assert(m.size <= size && m.size <= KP_MARKER_MAX);
	assert(m.kernel_name && m.n_search_paths > 0);
	/* m.size is the end of the map: the bytes up to it parse to the same marker */
	assert(kp_marker_parse((struct kp_span){data, m.size}, &again, &why) ==
	       KPACK_SUCCESS);
	assert(again.size == m.size && strcmp(again.kernel_name, m.kernel_name) == 0);
	assert(again.n_search_paths == m.n_search_paths);
	for (size_t i = 0; i < m.n_search_paths; i++)
		assert(strcmp(again.search_paths[i], m.search_paths[i]) == 0);
	kp_marker_fini(&again);
	kp_marker_fini(&m);
	return 0;
}
