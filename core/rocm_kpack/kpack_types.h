/* SPDX-License-Identifier: MIT */
/*
 * Types and constants of the kpack C API.  Names and values are those of AMD's
 * rocm_kpack/kpack_types.h.  We never add names or values between or after them; our own
 * names begin with kpackx_.
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

/*
 * A cache of archives that stay open between look-ups, and the settings that were read
 * from the environment.
 */
typedef struct kpack_cache *kpack_cache_t;

/* Called with each architecture; returns true to continue, false to stop. */
typedef bool (*kpack_arch_callback_t)(const char *arch, void *user_data);

typedef enum {
	KPACK_SUCCESS = 0,
	/* A NULL argument, an index out of range, or a buffer that is too small. */
	KPACK_ERROR_INVALID_ARGUMENT = 1,
	/* The file does not exist. */
	KPACK_ERROR_FILE_NOT_FOUND = 2,
	/* Not an archive, or its header, blob or index contradicts the file. */
	KPACK_ERROR_INVALID_FORMAT = 3,
	/* The archive has a version that this library does not know. */
	KPACK_ERROR_UNSUPPORTED_VERSION = 4,
	/* The archive has no entry with this name and architecture. */
	KPACK_ERROR_KERNEL_NOT_FOUND = 5,
	/* A frame does not decode, or not to the bytes that the entry states. */
	KPACK_ERROR_DECOMPRESSION_FAILED = 6,
	KPACK_ERROR_OUT_OF_MEMORY = 7,
	/* A compression scheme or feature that this library does not implement. */
	KPACK_ERROR_NOT_IMPLEMENTED = 8,
	/* A system call failed, the file is empty, or it became shorter. */
	KPACK_ERROR_IO_ERROR = 9,
	/* The table of contents is not MessagePack, or lacks the required structure. */
	KPACK_ERROR_MSGPACK_PARSE_FAILED = 10,
	/* No file is mapped at the address. */
	KPACK_ERROR_PATH_DISCOVERY_FAILED = 11,
	/* The marker lacks kernel_name or kpack_search_paths. */
	KPACK_ERROR_INVALID_METADATA = 12,
	/* None of the search paths led to an archive that could be opened. */
	KPACK_ERROR_ARCHIVE_NOT_FOUND = 13,
	/* No archive has a compatible architecture. */
	KPACK_ERROR_ARCH_NOT_FOUND = 14
} kpack_error_t;

/*
 * Compression schemes: the strings "none" and "zstd-per-kernel".  Archives of version 2 have
 * a third one, "zstd-shared": see `shared` of struct kpackx_writer_options.
 */
typedef enum {
	KPACK_COMPRESSION_NOOP = 0,
	KPACK_COMPRESSION_ZSTD_PER_KERNEL = 1
} kpack_compression_t;

#ifdef __cplusplus
}
#endif
#endif
