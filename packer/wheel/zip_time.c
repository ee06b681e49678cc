/* SPDX-License-Identifier: MIT */
#include "zip_time.h"
#include <string.h>
#include <time.h>
#include "packer/cli/options.h"

/* 1980-01-01 00:00:00 and 2107-12-31 23:59:58 */
#define DOS_FIRST INT64_C(315532800)
#define DOS_LAST INT64_C(4354819198)

kpack_error_t dos_time_read(const char *epoch, struct dos_time *out,
			    struct kpackx_error *why)
{
	uint64_t seconds = 0;
	time_t clamped;
	struct tm tm;

	if (epoch && *epoch &&
	    (strspn(epoch, "0123456789") != strlen(epoch) ||
	     !options_number(epoch, 0, INT64_MAX, &seconds)))
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "SOURCE_DATE_EPOCH is not a number of seconds: '%.40s'",
			       epoch);
	clamped = seconds < DOS_FIRST  ? DOS_FIRST
		  : seconds > DOS_LAST ? DOS_LAST
				       : (time_t)seconds;
	gmtime_r(&clamped, &tm);
	out->date =
		(uint16_t)((tm.tm_year - 80) << 9 | (tm.tm_mon + 1) << 5 | tm.tm_mday);
	out->time = (uint16_t)(tm.tm_hour << 11 | tm.tm_min << 5 | tm.tm_sec / 2);
	return KPACK_SUCCESS;
}
