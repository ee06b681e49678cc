/* SPDX-License-Identifier: MIT */
#include "library_names.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "packer/cli/xalloc.h"

/* True if LIST has NAME, of N bytes. */
static bool has_name(const char *list, const char *name, size_t n)
{
	for (; list; list = strchr(list, ',') ? strchr(list, ',') + 1 : NULL)
		if (strcspn(list, ",") == n && strncmp(list, name, n) == 0)
			return true;
	return false;
}

static void add_name(char **list, const char *name, size_t n)
{
	char *all;

	if (has_name(*list, name, n))
		return;
	all = xasprintf("%s%s%.*s", *list ? *list : "", *list ? "," : "", (int)n, name);
	free(*list);
	*list = all;
}

bool library_names_add(char **list, const char *names)
{
	for (size_t n; *names; names += n + (names[n] == ',')) {
		n = strcspn(names, ",");
		add_name(list, names, n);
	}
	return true;
}
