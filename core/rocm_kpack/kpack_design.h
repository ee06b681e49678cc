/* SPDX-License-Identifier: MIT */
/*
 * Source compatibility with the C API of kpack's design paper.  Most of its calls are in
 * kpack.h; two have another shape there, because AMD's library gave them one.  Here they
 * have the paper's, under the paper's names.
 *
 * Include this in place of kpack.h, or beside it in any order.  Code that includes it
 * cannot call AMD's kpack_get_kernel and kpack_free_kernel by name.
 */
#ifndef ROCM_KPACK_KPACK_DESIGN_H
#define ROCM_KPACK_KPACK_DESIGN_H

#include "kpack.h" /* before its names are macros */

#ifdef __cplusplus
extern "C" {
#endif

/* Named by the paper, used by none of its calls. */
typedef struct kpack_kernel *kpack_kernel_t;

/*
 * kpack_get_kernel of kpack.h with a pointer to const bytes.  Free them with
 * kpackx_design_free_kernel; they stay when the archive is closed.
 * Errors as for kpack_get_kernel.
 */
KPACK_API kpack_error_t kpackx_design_get_kernel(kpack_archive_t archive,
						 const char *binary_name,
						 const char *arch,
						 const void **kernel_data,
						 size_t *kernel_size);

/* Free them.  ARCHIVE is not looked at and may be closed; NULL data is fine. */
KPACK_API void kpackx_design_free_kernel(kpack_archive_t archive,
					 const void *kernel_data);

#define kpack_get_kernel kpackx_design_get_kernel
#define kpack_free_kernel kpackx_design_free_kernel

#ifdef __cplusplus
}
#endif
#endif
