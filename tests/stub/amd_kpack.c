/* SPDX-License-Identifier: MIT */
/*
 * A stand-in for AMD's library: its soname and its functions, which all fail.  So a
 * program that succeeds with it installed does not use it.
 */
#include "amd_kpack.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

kpack_error_t kpack_open(const char *path, kpack_archive_t *archive)
{
	return KPACK_ERROR_NOT_IMPLEMENTED;
}

void kpack_close(kpack_archive_t archive)
{
}

kpack_error_t kpack_get_architecture_count(kpack_archive_t archive, size_t *count)
{
	return KPACK_ERROR_NOT_IMPLEMENTED;
}

kpack_error_t kpack_get_architecture(kpack_archive_t archive, size_t index,
				     const char **arch)
{
	return KPACK_ERROR_NOT_IMPLEMENTED;
}

kpack_error_t kpack_get_binary_count(kpack_archive_t archive, size_t *count)
{
	return KPACK_ERROR_NOT_IMPLEMENTED;
}

kpack_error_t kpack_get_binary(kpack_archive_t archive, size_t index, const char **binary)
{
	return KPACK_ERROR_NOT_IMPLEMENTED;
}

kpack_error_t kpack_get_kernel(kpack_archive_t archive, const char *binary,
			       const char *arch, void **data, size_t *size)
{
	return KPACK_ERROR_NOT_IMPLEMENTED;
}

void kpack_free_kernel(void *data)
{
}

kpack_error_t kpack_cache_create(kpack_cache_t *cache)
{
	return KPACK_ERROR_NOT_IMPLEMENTED;
}

void kpack_cache_destroy(kpack_cache_t cache)
{
}

kpack_error_t kpack_discover_binary_path(const void *address, char *path,
					 size_t path_size, size_t *offset)
{
	return KPACK_ERROR_NOT_IMPLEMENTED;
}

kpack_error_t kpack_load_code_object(kpack_cache_t cache, const void *metadata,
				     const char *binary_path, uint32_t index,
				     const char *const *archs, size_t n_archs,
				     void **data, size_t *size)
{
	return KPACK_ERROR_NOT_IMPLEMENTED;
}

void kpack_free_code_object(void *data)
{
}

kpack_error_t kpack_enumerate_architectures(const char *path,
					    kpack_arch_callback_t callback,
					    void *user_data)
{
	return KPACK_ERROR_NOT_IMPLEMENTED;
}
