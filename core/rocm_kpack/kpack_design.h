/* SPDX-License-Identifier: MIT */
/*
 * Source compatibility with the C API of kpack's design paper.  kpack.h and kpackx.h have
 * the paper's calls, but two of them with the parameters of AMD's library.  This header
 * declares these two with the paper's parameters, under the paper's names.
 *
 * Include this header instead of kpack.h, or with the other headers in any order.  Code
 * that includes it cannot call AMD's kpack_get_kernel and kpack_free_kernel by name.
 */
#ifndef ROCM_KPACK_KPACK_DESIGN_H
#define ROCM_KPACK_KPACK_DESIGN_H

#include "kpack.h" /* before its names become macros */
#include "kpackx.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The paper names this type, but none of its calls uses it. */
typedef struct kpack_kernel *kpack_kernel_t;

/*
 * As kpack_get_kernel of kpack.h, but *kernel_data points to const bytes.  The caller
 * frees them with kpackx_design_free_kernel; they stay valid after the archive is closed.
 * *kernel_size is in bytes.  Errors as for kpack_get_kernel.
 */
KPACK_API kpack_error_t kpackx_design_get_kernel(kpack_archive_t archive,
						 const char *binary_name,
						 const char *arch,
						 const void **kernel_data,
						 size_t *kernel_size);

/*
 * Free the bytes that kpackx_design_get_kernel returned; NULL is allowed.  ARCHIVE is
 * ignored and may already be closed.
 */
KPACK_API void kpackx_design_free_kernel(kpack_archive_t archive,
					 const void *kernel_data);

#define kpack_get_kernel kpackx_design_get_kernel
#define kpack_free_kernel kpackx_design_free_kernel

#ifdef __cplusplus
}
#endif
#endif
