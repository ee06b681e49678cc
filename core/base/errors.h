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
#include "span.h"

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

/* --- lists of faults --------------------------------------------------------------------- */

/* A fault of one entry, or a broken rule that does not prevent reading. */
struct kp_fault {
	char *text;               /* "toc: lib/x.so#0 gfx942: ordinal 9 of 4 frames" */
	bool refused;             /* the entry was dropped; false: only for `verify` */
	struct kp_span key, arch; /* of the entry; borrowed; empty: no entry */
};

/* A growing list: the first KP_FAULTS_MAX are kept, all are counted. */
struct kp_faults {
	struct kp_fault *items;
	size_t kept, cap, counted;
};

/*
 * Add a fault; its text is escaped as a message (text.h).  If memory runs out, the text is
 * lost, but the fault is counted.
 */
void kp_faults_add(struct kp_faults *list, bool refused, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/*
 * Add a fault of the entry KEY, ARCH; both are borrowed.  An empty ARCH stands for all
 * entries of the key.
 */
void kp_faults_add_entry(struct kp_faults *list, struct kp_span key, struct kp_span arch,
			 bool refused, const char *what);
void kp_faults_fini(struct kp_faults *list);

#endif
