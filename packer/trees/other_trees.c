/* SPDX-License-Identifier: MIT */
#include "other_trees.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/cli/report.h"
#include "artifact.h"

/* One stem may begin with another: "blas_test_generic" does not belong to "blas". */
static bool is_of(const char *name, const char *stem)
{
	size_t n = strlen(stem);

	return strncmp(name, stem, n) == 0 && name[n] == '_' && name[n + 1] &&
	       (!strchr(name + n + 1, '_') || artifact_component_size(name) == n);
}

static bool is_made(const char *name, const char *const *made, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(made[i], name) == 0)
			return true;
	return false;
}

static void report_tree(const char *dir, const char *name)
{
	char *path = xasprintf("%s/%s", dir, name);
	struct stat st;

	if (below_lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
		report_error(path, "note: is not from this run; it stays");
	free(path);
}

void other_trees_report(const char *dir, const char *stem, const char *const *made,
			size_t n)
{
	struct dirent **names;
	int count = below_scandir(dir, &names, NULL);

	for (int i = 0; i < count; i++) {
		if (is_of(names[i]->d_name, stem) && !is_made(names[i]->d_name, made, n))
			report_tree(dir, names[i]->d_name);
		free(names[i]);
	}
	if (count >= 0)
		free(names);
}
