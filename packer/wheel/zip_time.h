/* SPDX-License-Identifier: MIT */
/* The time that all members of a wheel have. */
#ifndef PACKER_WHEEL_ZIP_DOS_TIME_H
#define PACKER_WHEEL_ZIP_DOS_TIME_H

#include <stdint.h>
#include "core/base/errors.h"

struct dos_time {
	uint16_t date, time;
};

/*
 * Convert EPOCH, the text of SOURCE_DATE_EPOCH, to UTC, clamped to zip's range: 1980 to
 * 2107.  NULL or "" gives 1980-01-01.  INVALID_ARGUMENT: EPOCH is not a number of
 * seconds.
 */
kpack_error_t dos_time_read(const char *epoch, struct dos_time *out,
			    struct kpackx_error *why);

#endif
