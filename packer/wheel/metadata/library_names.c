/* SPDX-License-Identifier: MIT */
#include "library_names.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* True if LIST has NAME, of N bytes. */
static bool has_name(const char *list, const char *name, size_t n)
{
	for (; list; list = strchr(list, ',') ? strchr(list, ',') + 1 : NULL)
		if (strcspn(list, ",") == n && strncmp(list, name, n) == 0)
			return true;
	return false;
}

static bool add_name(char **list, const char *name, size_t n)
{
	char *all;

	if (has_name(*list, name, n))
		return true;
	if (asprintf(&all, "%s%s%.*s", *list ? *list : "", *list ? "," : "", (int)n,
		     name) < 0)
		return false;
	free(*list);
	*list = all;
	return true;
}

bool library_names_add(char **list, const char *names)
{
	for (size_t n; *names; names += n + (names[n] == ',')) {
		n = strcspn(names, ",");
		if (!add_name(list, names, n))
			return false;
	}
	return true;
}
