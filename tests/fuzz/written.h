/* SPDX-License-Identifier: MIT */
/* What is written, in memory: the other end of a kp_sink. */
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
