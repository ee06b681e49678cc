/* SPDX-License-Identifier: MIT */
/*
 * Types and constants of the kpack C API.  Names and values are those of AMD's
 * rocm_kpack/kpack_types.h; none is ever added between or after them; what is
 * ours is called kpackx_.
 */
#ifndef ROCM_KPACK_KPACK_TYPES_H
#define ROCM_KPACK_KPACK_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An open archive.  Immutable after kpack_open. */
typedef struct kpack_archive *kpack_archive_t;

/* Archives that stay open between look-ups, and the settings from the environment. */
typedef struct kpack_cache *kpack_cache_t;

/* Called with each architecture; true to go on. */
typedef bool (*kpack_arch_callback_t)(const char *arch, void *user_data);

typedef enum {
	KPACK_SUCCESS = 0,
	/* A NULL argument, an index out of range, a buffer that is too small. */
	KPACK_ERROR_INVALID_ARGUMENT = 1,
	/* The file does not exist. */
	KPACK_ERROR_FILE_NOT_FOUND = 2,
	/* Not an archive, or its header, blob or index contradicts the file. */
	KPACK_ERROR_INVALID_FORMAT = 3,
	/* An archive of a version this library does not know. */
	KPACK_ERROR_UNSUPPORTED_VERSION = 4,
	/* No entry of that name and architecture. */
	KPACK_ERROR_KERNEL_NOT_FOUND = 5,
	/* A frame does not decode, or not to the bytes the entry promises. */
	KPACK_ERROR_DECOMPRESSION_FAILED = 6,
	KPACK_ERROR_OUT_OF_MEMORY = 7,
	/* A compression scheme or feature this library does not implement. */
	KPACK_ERROR_NOT_IMPLEMENTED = 8,
	/* The system refused, the file is empty, or it became shorter. */
	KPACK_ERROR_IO_ERROR = 9,
	/* The table of contents is not the MessagePack it must be. */
	KPACK_ERROR_MSGPACK_PARSE_FAILED = 10,
	/* No file is mapped at that address. */
	KPACK_ERROR_PATH_DISCOVERY_FAILED = 11,
	/* A marker without kernel_name or kpack_search_paths. */
	KPACK_ERROR_INVALID_METADATA = 12,
	/* No archive could be opened on any search path. */
	KPACK_ERROR_ARCHIVE_NOT_FOUND = 13,
	/* No archive offers a compatible architecture. */
	KPACK_ERROR_ARCH_NOT_FOUND = 14
} kpack_error_t;

/* Compression schemes, as the strings "none" and "zstd-per-kernel". */
typedef enum {
	KPACK_COMPRESSION_NOOP = 0,
	KPACK_COMPRESSION_ZSTD_PER_KERNEL = 1
} kpack_compression_t;

#ifdef __cplusplus
}
#endif
#endif
