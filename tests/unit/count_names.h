/* SPDX-License-Identifier: MIT */
/*
 * Count the names in a directory, to test that nothing is left behind; include after
 * <cmocka.h>.
 */
#ifndef COUNT_NAMES_H
#define COUNT_NAMES_H

#include <dirent.h>

/* The number of names in DIR, including hidden ones. */
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
