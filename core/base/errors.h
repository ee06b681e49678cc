/* SPDX-License-Identifier: MIT */
/*
 * Errors inside core: AMD's code is returned, the words go into a caller-owned
 * struct kpackx_error passed last (NULL is fine).  The function that finds the
 * fault writes the text - object, field, value, limit; lower case, one line -
 * and everybody above passes it on.
 */
#ifndef KP_CORE_BASE_ERRORS_H
#define KP_CORE_BASE_ERRORS_H

#include "core/rocm_kpack/kpackx.h"

/* Fill WHY and return CODE. */
kpack_error_t kp_fail(struct kpackx_error *why, kpack_error_t code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * The same for a system call that failed: ": " and strerror(sys_errno) are
 * appended, sys_errno is kept, and the code is FILE_NOT_FOUND for ENOENT,
 * OUT_OF_MEMORY for ENOMEM, else IO_ERROR.
 */
kpack_error_t kp_fail_errno(struct kpackx_error *why, int sys_errno, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* OUT_OF_MEMORY for SIZE bytes wanted for WHAT. */
kpack_error_t kp_fail_memory(struct kpackx_error *why, uint64_t size, const char *what);

/*
 * Put "PREFIX: " before the text that is already in WHY, whose end is kept where both do not
 * fit; returns why's code.
 */
kpack_error_t kp_fail_prefix(struct kpackx_error *why, kpack_error_t code,
			     const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Return at once when EXPR fails; for functions that hold nothing yet. */
#define KP_TRY(expr)                                                                     \
	do {                                                                             \
		kpack_error_t kp_try_ = (expr);                                          \
		if (kp_try_ != KPACK_SUCCESS)                                            \
			return kp_try_;                                                  \
	} while (0)

#endif
