/* SPDX-License-Identifier: MIT */
/*
 * The declarations for a program that is compiled against AMD's library: its fourteen
 * functions, three types and fifteen results, and nothing of ours.
 */
#ifndef AMD_KPACK_H
#define AMD_KPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct kpack_archive *kpack_archive_t;
typedef struct kpack_cache *kpack_cache_t;
typedef bool (*kpack_arch_callback_t)(const char *, void *);

typedef enum {
	KPACK_SUCCESS = 0,
	KPACK_ERROR_INVALID_ARGUMENT = 1,
	KPACK_ERROR_FILE_NOT_FOUND = 2,
	KPACK_ERROR_INVALID_FORMAT = 3,
	KPACK_ERROR_UNSUPPORTED_VERSION = 4,
	KPACK_ERROR_KERNEL_NOT_FOUND = 5,
	KPACK_ERROR_DECOMPRESSION_FAILED = 6,
	KPACK_ERROR_OUT_OF_MEMORY = 7,
	KPACK_ERROR_NOT_IMPLEMENTED = 8,
	KPACK_ERROR_IO_ERROR = 9,
	KPACK_ERROR_MSGPACK_PARSE_FAILED = 10,
	KPACK_ERROR_PATH_DISCOVERY_FAILED = 11,
	KPACK_ERROR_INVALID_METADATA = 12,
	KPACK_ERROR_ARCHIVE_NOT_FOUND = 13,
	KPACK_ERROR_ARCH_NOT_FOUND = 14
} kpack_error_t;

#define AMD_API __attribute__((visibility("default")))

AMD_API kpack_error_t kpack_open(const char *, kpack_archive_t *);
AMD_API void kpack_close(kpack_archive_t);
AMD_API kpack_error_t kpack_get_architecture_count(kpack_archive_t, size_t *);
AMD_API kpack_error_t kpack_get_architecture(kpack_archive_t, size_t, const char **);
AMD_API kpack_error_t kpack_get_binary_count(kpack_archive_t, size_t *);
AMD_API kpack_error_t kpack_get_binary(kpack_archive_t, size_t, const char **);
AMD_API kpack_error_t kpack_get_kernel(kpack_archive_t, const char *, const char *,
				       void **, size_t *);
AMD_API void kpack_free_kernel(void *);
AMD_API kpack_error_t kpack_cache_create(kpack_cache_t *);
AMD_API void kpack_cache_destroy(kpack_cache_t);
AMD_API kpack_error_t kpack_discover_binary_path(const void *, char *, size_t, size_t *);
AMD_API kpack_error_t kpack_load_code_object(kpack_cache_t, const void *, const char *,
					     uint32_t, const char *const *, size_t,
					     void **, size_t *);
AMD_API void kpack_free_code_object(void *);
AMD_API kpack_error_t kpack_enumerate_architectures(const char *, kpack_arch_callback_t,
						    void *);

#endif
