/* SPDX-License-Identifier: MIT */
#include "find.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "naming.h"

static int is_archive(const struct dirent *d)
{
	return kp_is_archive_name(d->d_name);
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

static kpack_error_t join_paths(const char *dir, struct dirent **names, size_t n,
				char ***paths, struct kpackx_error *why)
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

kpack_error_t kp_archives_find_at(int fd, const char *source, char ***paths,
				  size_t *count, struct kpackx_error *why)
{
	struct dirent **names;
	kpack_error_t err;
	struct stat st;
	int n;

	if (fstat(fd, &st) < 0)
		return kp_fail_errno(why, errno, "cannot look at it");
	if (!S_ISDIR(st.st_mode))
		return one_file(source, paths, count, why);
	n = scandirat(fd, ".", &names, is_archive, by_bytes);
	if (n < 0)
		return kp_fail_errno(why, errno, "cannot list it");
	err = join_paths(source, names, (size_t)n, paths, why);
	for (int i = 0; i < n; i++)
		free(names[i]);
	free(names);
	if (!err)
		*count = (size_t)n;
	return err;
}

kpack_error_t kp_archives_find(const char *source, char ***paths, size_t *count,
			       struct kpackx_error *why)
{
	/* O_PATH: a file is not opened, as it can be a FIFO, or not readable */
	int fd = open(source, O_PATH | O_CLOEXEC);
	kpack_error_t err;

	if (fd < 0)
		return kp_fail_errno(why, errno, "cannot look at it");
	err = kp_archives_find_at(fd, source, paths, count, why);
	close(fd);
	return err;
}
