/* SPDX-License-Identifier: MIT */
#include "built.h"
#include "packer/cli/report.h"

bool wheels_built(const char *command)
{
	if (WHEELS_BUILT)
		return true;
	report_error(NULL,
		     "%s: not built: wheels need libzip, libcrypto and zlib "
		     "(WITH_ZIP, WITH_OPENSSL, WITH_ZLIB)",
		     command);
	return false;
}
