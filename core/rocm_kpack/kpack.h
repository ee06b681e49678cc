/* SPDX-License-Identifier: MIT */
/*
 * Reading kpack archives: the archive half of AMD's rocm_kpack/kpack.h, same
 * names, argument order, values and ABI.
 *
 * Ownership.  A string got from an archive is borrowed until kpack_close.
 * Kernel data is the caller's and is freed with kpack_free_kernel.
 *
 * Threads.  An archive is immutable after kpack_open: every query and every
 * kpack_get_kernel may run concurrently on it, without a lock.  Only kpack_close
 * needs that nobody else still uses the archive.
 *
 * Errors.  Outputs are written on success only.  Why a call failed, in words,
 * is told by the kpackx_* variants in kpackx.h.
 */
#ifndef ROCM_KPACK_KPACK_H
#define ROCM_KPACK_KPACK_H

#include "kpack_export.h"
#include "kpack_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Open the archive at PATH.  Reads header, table of contents and frame index,
 * never a kernel.
 *
 * INVALID_ARGUMENT      path or archive is NULL
 * FILE_NOT_FOUND        no such file
 * IO_ERROR              not readable, not a regular file, empty
 * INVALID_FORMAT        too short, wrong magic, offsets outside the file
 * UNSUPPORTED_VERSION   not version 1
 * NOT_IMPLEMENTED       unknown compression scheme
 * MSGPACK_PARSE_FAILED  the table of contents is not valid
 * OUT_OF_MEMORY
 */
KPACK_API kpack_error_t kpack_open(const char *path, kpack_archive_t *archive);

/* Close ARCHIVE and free all that was borrowed from it.  NULL is fine. */
KPACK_API void kpack_close(kpack_archive_t archive);

/*
 * The architectures the archive declares (gfx_arches), in stored order.
 * INVALID_ARGUMENT: a NULL argument, or index >= count.
 */
KPACK_API kpack_error_t kpack_get_architecture_count(kpack_archive_t archive,
						     size_t *count);
KPACK_API kpack_error_t kpack_get_architecture(kpack_archive_t archive, size_t index,
					       const char **arch);

/*
 * The binaries (keys of the table of contents), sorted bytewise.
 * INVALID_ARGUMENT: a NULL argument, or index >= count.
 */
KPACK_API kpack_error_t kpack_get_binary_count(kpack_archive_t archive, size_t *count);
KPACK_API kpack_error_t kpack_get_binary(kpack_archive_t archive, size_t index,
					 const char **binary);

/*
 * Decode the code object of BINARY_NAME for ARCH into memory of the caller's
 * (kpack_free_kernel).  Both must match exactly; a BINARY_NAME without "#n"
 * that is not a key itself is also looked for as index 0.  *size is in bytes; *data
 * is not NULL even when *size is 0.
 *
 * INVALID_ARGUMENT      a NULL argument
 * KERNEL_NOT_FOUND      no such entry
 * DECOMPRESSION_FAILED  the frame is corrupt, or original_size is wrong
 * INVALID_FORMAT        the frame index contradicts the blob
 * IO_ERROR              the file could not be read or became shorter
 * OUT_OF_MEMORY
 */
KPACK_API kpack_error_t kpack_get_kernel(kpack_archive_t archive, const char *binary_name,
					 const char *arch, void **data, size_t *size);

/* Free what kpack_get_kernel returned.  NULL is fine. */
KPACK_API void kpack_free_kernel(void *data);

#ifdef __cplusplus
}
#endif
#endif
