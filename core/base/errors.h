/* SPDX-License-Identifier: MIT */
/*
 * Errors inside core: functions return AMD's error code and write the text into a
 * caller-owned struct kpackx_error, the last argument (NULL is allowed).  The function
 * that finds the fault writes the text - object, field, value, limit; lower case, one
 * line - and its callers pass the text on.  The text goes through kp_message_escape, so
 * that it can be printed as it is.
 */
#ifndef KP_CORE_BASE_ERRORS_H
#define KP_CORE_BASE_ERRORS_H

#include "core/rocm_kpack/kpackx.h"

/* Fill WHY and return CODE. */
kpack_error_t kp_fail(struct kpackx_error *why, kpack_error_t code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* What a system call says with SYS_ERRNO, the same in every locale. */
const char *kp_errno_text(int sys_errno);

/*
 * As kp_fail, for a system call that failed: append ": " and kp_errno_text, and store
 * sys_errno.  The code is FILE_NOT_FOUND for ENOENT, OUT_OF_MEMORY for ENOMEM, else
 * IO_ERROR.
 */
kpack_error_t kp_fail_errno(struct kpackx_error *why, int sys_errno, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Fail with OUT_OF_MEMORY: no SIZE bytes for WHAT. */
kpack_error_t kp_fail_memory(struct kpackx_error *why, uint64_t size, const char *what);

/*
 * Put "PREFIX: " before the text that WHY already has; if both do not fit, the end of the
 * text is kept.  Stores and returns CODE.
 */
kpack_error_t kp_fail_prefix(struct kpackx_error *why, kpack_error_t code,
			     const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Return at once when EXPR fails; for functions that have nothing to free yet. */
#define KP_TRY(expr)                                                                     \
	do {                                                                             \
		kpack_error_t kp_try_ = (expr);                                          \
		if (kp_try_ != KPACK_SUCCESS)                                            \
			return kp_try_;                                                  \
	} while (0)

#endif
