/* SPDX-License-Identifier: MIT */
#include "error.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const names[] = {
	"KPACK_SUCCESS",
	"KPACK_ERROR_INVALID_ARGUMENT",
	"KPACK_ERROR_FILE_NOT_FOUND",
	"KPACK_ERROR_INVALID_FORMAT",
	"KPACK_ERROR_UNSUPPORTED_VERSION",
	"KPACK_ERROR_KERNEL_NOT_FOUND",
	"KPACK_ERROR_DECOMPRESSION_FAILED",
	"KPACK_ERROR_OUT_OF_MEMORY",
	"KPACK_ERROR_NOT_IMPLEMENTED",
	"KPACK_ERROR_IO_ERROR",
	"KPACK_ERROR_MSGPACK_PARSE_FAILED",
	"KPACK_ERROR_PATH_DISCOVERY_FAILED",
	"KPACK_ERROR_INVALID_METADATA",
	"KPACK_ERROR_ARCHIVE_NOT_FOUND",
	"KPACK_ERROR_ARCH_NOT_FOUND",
};

const char *kpackx_error_name(kpack_error_t code)
{
	if ((unsigned)code >= sizeof(names) / sizeof(names[0]))
		return "KPACK_ERROR_?";
	return names[code];
}

static void __attribute__((format(printf, 4, 0)))
fill(struct kpackx_error *why, kpack_error_t code, int sys_errno, const char *fmt,
     va_list ap)
{
	why->code = code;
	why->sys_errno = sys_errno;
	vsnprintf(why->text, sizeof(why->text), fmt, ap);
}

kpack_error_t kp_fail(struct kpackx_error *why, kpack_error_t code, const char *fmt, ...)
{
	va_list ap;

	if (!why)
		return code;
	va_start(ap, fmt);
	fill(why, code, 0, fmt, ap);
	va_end(ap);
	return code;
}

kpack_error_t kp_fail_errno(struct kpackx_error *why, int sys_errno, const char *fmt, ...)
{
	kpack_error_t code = sys_errno == ENOENT   ? KPACK_ERROR_FILE_NOT_FOUND
			     : sys_errno == ENOMEM ? KPACK_ERROR_OUT_OF_MEMORY
						   : KPACK_ERROR_IO_ERROR;
	char reason[80];
	va_list ap;
	size_t used;

	if (!why)
		return code;
	va_start(ap, fmt);
	fill(why, code, sys_errno, fmt, ap);
	va_end(ap);
	used = strlen(why->text);
	/* the GNU strerror_r returns the text to use */
	snprintf(why->text + used, sizeof(why->text) - used, ": %s",
		 strerror_r(sys_errno, reason, sizeof(reason)));
	return code;
}

kpack_error_t kp_fail_memory(struct kpackx_error *why, uint64_t size, const char *what)
{
	return kp_fail(why, KPACK_ERROR_OUT_OF_MEMORY, "out of memory: %llu bytes for %s",
		       (unsigned long long)size, what);
}

kpack_error_t kp_fail_prefix(struct kpackx_error *why, kpack_error_t code,
			     const char *fmt, ...)
{
	char old[sizeof(why->text)];
	va_list ap;
	size_t used;

	if (!why)
		return code;
	memcpy(old, why->text, sizeof(old));
	va_start(ap, fmt);
	vsnprintf(why->text, sizeof(why->text), fmt, ap);
	va_end(ap);
	used = strlen(why->text);
	snprintf(why->text + used, sizeof(why->text) - used, ": %s", old);
	why->code = code;
	return code;
}
