/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include "core/view/view.h"

static const char ENDING[] = ".kpack";

static int is_archive_name(const struct dirent *d)
{
	size_t n = strlen(d->d_name), ending = sizeof(ENDING) - 1;

	return d->d_name[0] != '.' && n > ending &&
	       strcmp(d->d_name + n - ending, ENDING) == 0;
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static void free_paths(char **paths, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(paths[i]);
	free(paths);
}

static kpack_error_t one_file(const char *source, char ***paths, size_t *count,
			      struct kpackx_error *why)
{
	char **list = calloc(1, sizeof(*list));

	if (list)
		list[0] = strdup(source);
	if (!list || !list[0]) {
		free(list);
		return kp_fail_memory(why, strlen(source), "a path");
	}
	*paths = list;
	*count = 1;
	return KPACK_SUCCESS;
}

static kpack_error_t join(const char *dir, struct dirent **names, size_t n, char ***paths,
			  struct kpackx_error *why)
{
	char **list = calloc(n + 1, sizeof(*list));

	for (size_t i = 0; list && i < n; i++) {
		if (asprintf(&list[i], "%s/%s", dir, names[i]->d_name) < 0) {
			free_paths(list, i);
			list = NULL;
		}
	}
	if (!list)
		return kp_fail_memory(why, n, "a list of archives");
	*paths = list;
	return KPACK_SUCCESS;
}

kpack_error_t kp_view_sources(const char *source, char ***paths, size_t *count,
			      struct kpackx_error *why)
{
	struct dirent **names;
	kpack_error_t err;
	struct stat st;
	int n;

	if (stat(source, &st) < 0)
		return kp_fail_errno(why, errno, "cannot look at it");
	if (!S_ISDIR(st.st_mode))
		return one_file(source, paths, count, why);
	n = scandir(source, &names, is_archive_name, by_bytes);
	if (n < 0)
		return kp_fail_errno(why, errno, "cannot list it");
	err = join(source, names, (size_t)n, paths, why);
	for (int i = 0; i < n; i++)
		free(names[i]);
	free(names);
	if (!err)
		*count = (size_t)n;
	return err;
}
