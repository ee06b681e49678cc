/* SPDX-License-Identifier: MIT */
#include "kernel_cache.h"

void cache_parts_fini(struct cache_parts *parts)
{
	*parts = (struct cache_parts){0};
}

kpack_error_t kernel_cache_split(const char *disk, const char *path, const char *tmp,
				 struct cache_parts *parts, struct kpackx_error *why)
{
	(void)disk, (void)path, (void)tmp, (void)parts;
	return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED, "not built");
}

kpack_error_t kernel_cache_rows(const char *disk, const char *path, const char *tmp,
				struct cache_parts *parts, struct kpackx_error *why)
{
	(void)disk, (void)path, (void)tmp, (void)parts;
	return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED, "not built");
}
