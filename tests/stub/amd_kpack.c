/* SPDX-License-Identifier: MIT */
/*
 * A stand-in for AMD's library: its soname and its functions, which all fail.  So a
 * program that succeeds with it installed does not use it.
 */
#include "amd_kpack.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

#define FAILS(name, ...)                                                                 \
	kpack_error_t name(__VA_ARGS__)                                                  \
	{                                                                                \
		return KPACK_ERROR_NOT_IMPLEMENTED;                                      \
	}
#define NOTHING(name, ...)                                                               \
	void name(__VA_ARGS__)                                                           \
	{                                                                                \
	}

FAILS(kpack_open, const char *path, kpack_archive_t *archive)
NOTHING(kpack_close, kpack_archive_t archive)
FAILS(kpack_get_architecture_count, kpack_archive_t archive, size_t *count)
FAILS(kpack_get_architecture, kpack_archive_t archive, size_t index, const char **arch)
FAILS(kpack_get_binary_count, kpack_archive_t archive, size_t *count)
FAILS(kpack_get_binary, kpack_archive_t archive, size_t index, const char **binary)
FAILS(kpack_get_kernel, kpack_archive_t archive, const char *binary, const char *arch,
      void **data, size_t *size)
NOTHING(kpack_free_kernel, void *data)
FAILS(kpack_cache_create, kpack_cache_t *cache)
NOTHING(kpack_cache_destroy, kpack_cache_t cache)
FAILS(kpack_discover_binary_path, const void *address, char *path, size_t path_size,
      size_t *offset)
FAILS(kpack_load_code_object, kpack_cache_t cache, const void *metadata,
      const char *binary_path, uint32_t index, const char *const *archs, size_t n_archs,
      void **data, size_t *size)
NOTHING(kpack_free_code_object, void *data)
FAILS(kpack_enumerate_architectures, const char *path, kpack_arch_callback_t callback,
      void *user_data)
