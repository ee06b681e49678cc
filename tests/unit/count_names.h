/* SPDX-License-Identifier: MIT */
/* What a directory holds, for tests that nothing is left behind; after <cmocka.h>. */
#ifndef COUNT_NAMES_H
#define COUNT_NAMES_H

#include <dirent.h>

/* Names in DIR, hidden ones too. */
static int count_names(const char *dir)
{
	DIR *d = opendir(dir);
	int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

#endif
