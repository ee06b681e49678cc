/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include "fault.h"

static kpack_error_t zip_fault_code(int code)
{
	switch (code) {
	case ZIP_ER_MEMORY:
		return KPACK_ERROR_OUT_OF_MEMORY;
	case ZIP_ER_READ:
	case ZIP_ER_WRITE:
	case ZIP_ER_SEEK:
	case ZIP_ER_OPEN:
		return KPACK_ERROR_IO_ERROR;
	default:
		return KPACK_ERROR_INVALID_FORMAT;
	}
}

kpack_error_t zip_fault(struct kpackx_error *why, zip_error_t *error, const char *what)
{
	const char *text = zip_error_strerror(error);

	return kp_fail(why, zip_fault_code(zip_error_code_zip(error)), "%s%s%c%s", what,
		       *what ? ": " : "", tolower((unsigned char)text[0]),
		       text[0] ? text + 1 : "");
}
