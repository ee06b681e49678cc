/* SPDX-License-Identifier: MIT */
#include "tmpdir.h"
#include <stdlib.h>

const char *tmpdir(const char *otherwise)
{
	const char *dir = secure_getenv("TMPDIR");

	return dir && *dir ? dir : otherwise;
}
