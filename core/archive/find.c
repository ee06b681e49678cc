/* SPDX-License-Identifier: MIT */
/* The archives of a source, which is a file or a directory. */
#include "find.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "core/base/alloc.h"
#include "naming.h"

static int is_archive(const struct dirent *d)
{
	return kp_is_archive_name(d->d_name);
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

kpack_error_t kp_archives_find_at(int fd, const char *source, char ***paths,
				  size_t *count, struct kpackx_error *why)
{
	struct dirent **names = NULL;
	char **list = NULL;
	kpack_error_t err;
	struct stat st;
	int n = 1;

	if (fstat(fd, &st) < 0)
		return kp_fail_errno(why, errno, "cannot look at it");
	if (S_ISDIR(st.st_mode))
		n = scandirat(fd, ".", &names, is_archive, by_bytes);
	if (n < 0)
		return kp_fail_errno(why, errno, "cannot list it");
	err = kp_new(&list, (size_t)n, "a list of archives", why);
	for (int i = 0; i < n; i++) {
		if (!err && names &&
		    asprintf(&list[i], "%s/%s", source, names[i]->d_name) < 0)
			list[i] = NULL;
		else if (!err && !names)
			list[i] = strdup(source);
		if (!err && !list[i])
			err = kp_fail_memory(why, strlen(source), "a path");
		if (names)
			free(names[i]);
	}
	free(names);
	if (err) {
		for (int i = 0; list && i < n; i++)
			free(list[i]);
		free(list);
		return err;
	}
	*paths = list;
	*count = (size_t)n;
	return KPACK_SUCCESS;
}

kpack_error_t kp_archives_find(const char *source, char ***paths, size_t *count,
			       struct kpackx_error *why)
{
	/* O_PATH: a file is not opened, as it can be a FIFO, or not readable */
	KP_AUTO_CLOSE int fd = open(source, O_PATH | O_CLOEXEC);

	if (fd < 0)
		return kp_fail_errno(why, errno, "cannot look at it");
	return kp_archives_find_at(fd, source, paths, count, why);
}
