/* SPDX-License-Identifier: MIT */
/* The dynamic linker's list of libraries. */
#include "packer/gpu/runtimes.h"
#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void count_library(const char *name, const char *path, void *arg)
{
	if (strlen(name) + strlen(path) < SIZE_MAX) /* both end */
		++*(size_t *)arg;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t n = 0;

	if (!loader_cache_walk((struct kp_span){data, size}, count_library, &n))
		assert(n == 0);
	assert(n <= size / 24);
	return 0;
}
