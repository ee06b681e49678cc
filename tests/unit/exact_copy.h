/* SPDX-License-Identifier: MIT */
/* An exactly sized copy of bytes, so that a sanitizer detects reads past the end. */
#ifndef EXACT_COPY_H
#define EXACT_COPY_H

#include <stdlib.h>
#include <string.h>
#include "core/base/file.h"
#include "unit.h"

/* The caller frees it with exact_copy_free. */
static inline struct kp_source exact_copy(const void *data, size_t size)
{
	uint8_t *copy = malloc(size + !size);

	assert_non_null(copy);
	if (size)
		memcpy(copy, data, size);
	return kp_source_memory(copy, size);
}

static inline void exact_copy_free(struct kp_source *s)
{
	free((void *)s->mem);
}

#endif
