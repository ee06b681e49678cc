/* SPDX-License-Identifier: MIT */
/* A kp_sink that collects the written bytes in memory. */
#ifndef FUZZ_WRITTEN_H
#define FUZZ_WRITTEN_H

#include <stdlib.h>
#include "core/base/sink.h"

struct memory {
	uint8_t *data;
	size_t size;
};

static inline kpack_error_t append(void *arg, const void *data, size_t size,
				   struct kpackx_error *why)
{
	struct memory *m = arg;

	(void)why;
	m->data = realloc(m->data, m->size + size + 1);
	if (!m->data)
		abort();
	memcpy(m->data + m->size, data, size);
	m->size += size;
	return KPACK_SUCCESS;
}

#endif
