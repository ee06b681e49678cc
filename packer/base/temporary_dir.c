/* SPDX-License-Identifier: MIT */
#include "temporary_dir.h"
#include <stdlib.h>

const char *temporary_dir(const char *otherwise)
{
	const char *dir = secure_getenv("TMPDIR");

	return dir && *dir ? dir : otherwise;
}
