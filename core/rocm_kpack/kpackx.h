/* SPDX-License-Identifier: MIT */
/*
 * What kpackfs adds to the kpack C API: the reason of a failure in words, and
 * the name of a code.
 */
#ifndef ROCM_KPACK_KPACKX_H
#define ROCM_KPACK_KPACKX_H

#include "kpack_export.h"
#include "kpack_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Why a call failed.  The caller owns it, zeroes it, passes it in and reads it after a
 * failure; NULL may be passed instead.  Untouched on success.
 */
struct kpackx_error {
	kpack_error_t code;
	int sys_errno;  /* errno, or 0 unless the system refused */
	char text[240]; /* one line: object, field, value, limit */
};

/* "KPACK_ERROR_IO_ERROR" and so on; "KPACK_ERROR_?" for an unknown code.  Static. */
KPACK_API const char *kpackx_error_name(kpack_error_t code);

/* kpack_open that says why. */
KPACK_API kpack_error_t kpackx_open(const char *path, kpack_archive_t *archive,
				    struct kpackx_error *why);

/* kpack_get_kernel that says why. */
KPACK_API kpack_error_t kpackx_get_kernel(kpack_archive_t archive,
					  const char *binary_name, const char *arch,
					  void **data, size_t *size,
					  struct kpackx_error *why);

/*
 * kpack_load_code_object that says why: which key or architecture is missing, then each
 * file that was looked into - the opened ones with the architectures they offer, those
 * that cannot be opened with the reason, the missing ones.  What exceeds the text is cut.
 */
KPACK_API kpack_error_t kpackx_load_code_object(
	kpack_cache_t cache, const void *hipk_metadata, const char *binary_path,
	uint32_t co_index, const char *const *arch_list, size_t arch_count,
	void **code_object_out, size_t *code_object_size_out, struct kpackx_error *why);

#ifdef __cplusplus
}
#endif
#endif
