/* SPDX-License-Identifier: MIT */
#include "stage.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>
#include "file.h"

#define PREFIX ".kpack-stage-"

/* What cannot be removed stays: nobody looks at it. */
static void remove_tree(char *path)
{
	char *paths[] = {path, NULL};
	FTS *walk = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	FTSENT *e;

	while (walk && (e = fts_read(walk))) {
		if (e->fts_info == FTS_D)
			chmod(e->fts_path, 0700);
		else if (e->fts_info == FTS_DP)
			rmdir(e->fts_path);
		else
			unlink(e->fts_path);
	}
	if (walk)
		fts_close(walk);
}

static int open_directory(const char *path)
{
	return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* A run that lives holds its lock. */
static void remove_left(const char *output, const char *name)
{
	char *path;
	int fd;

	if (asprintf(&path, "%s/%s", output, name) < 0)
		return;
	fd = open_directory(path);
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
		remove_tree(path);
	if (fd >= 0)
		close(fd);
	free(path);
}

static void remove_all_left(const char *output)
{
	DIR *d = opendir(output);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (strncmp(e->d_name, PREFIX, strlen(PREFIX)) == 0)
			remove_left(output, e->d_name);
	if (d)
		closedir(d);
}

kpack_error_t stage_open(const char *output, struct stage *out, struct kpackx_error *why)
{
	*out = (struct stage){.fd = -1, .output_fd = -1};
	KP_TRY(kp_mkdirs(output, 0777, why));
	out->output = strdup(output);
	if (!out->output || asprintf(&out->path, "%s/" PREFIX "XXXXXX", output) < 0) {
		out->path = NULL;
		stage_close(out);
		return kp_fail_memory(why, strlen(output), "a path");
	}
	remove_all_left(output);
	if (!mkdtemp(out->path)) {
		kpack_error_t err =
			kp_fail_errno(why, errno, "%s: cannot make a directory", output);
		free(out->path);
		out->path = NULL;
		stage_close(out);
		return err;
	}
	out->fd = open_directory(out->path);
	out->output_fd = open(output, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (out->fd >= 0 && out->output_fd >= 0 && flock(out->fd, LOCK_EX) == 0)
		return KPACK_SUCCESS;
	kp_fail_errno(why, errno, "%s: cannot lock it", out->path);
	stage_close(out);
	return KPACK_ERROR_IO_ERROR;
}

kpack_error_t stage_flush(const struct stage *stage, struct kpackx_error *why)
{
	return syncfs(stage->fd) < 0
		       ? kp_fail_errno(why, errno, "%s: cannot flush", stage->output)
		       : KPACK_SUCCESS;
}

/* Both change places; where the file system cannot do that, one after the other. */
static int exchange(const struct stage *stage, const char *name)
{
	char old[sizeof(PREFIX) + 24];

	if (renameat2(stage->fd, name, stage->output_fd, name, RENAME_EXCHANGE) == 0)
		return 0;
	if (errno == ENOENT)
		return renameat(stage->fd, name, stage->output_fd, name);
	if (errno != EINVAL && errno != ENOSYS)
		return -1;
	for (unsigned i = 0; i < 1000; i++) {
		snprintf(old, sizeof(old), "replaced-%u", i);
		if (renameat2(stage->output_fd, name, stage->fd, old, RENAME_NOREPLACE) ==
		    0)
			return renameat(stage->fd, name, stage->output_fd, name);
		if (errno != EEXIST)
			return -1;
	}
	return -1;
}

kpack_error_t stage_publish(const struct stage *stage, const char *name, bool replace,
			    struct kpackx_error *why)
{
	int result = replace ? exchange(stage, name)
			     : renameat2(stage->fd, name, stage->output_fd, name,
					 RENAME_NOREPLACE);

	/* a directory is never renamed over one that has something in it */
	if (result < 0 && !replace && (errno == EINVAL || errno == ENOSYS))
		result = renameat(stage->fd, name, stage->output_fd, name);
	if (result == 0)
		result = kp_flush_dir(stage->output_fd);
	return result < 0 ? kp_fail_errno(why, errno, "%s/%s: cannot be put there",
					  stage->output, name)
			  : KPACK_SUCCESS;
}

void stage_close(struct stage *stage)
{
	if (stage->path)
		remove_tree(stage->path);
	if (stage->path && stage->fd >= 0)
		close(stage->fd);
	if (stage->path && stage->output_fd >= 0)
		close(stage->output_fd);
	free(stage->path);
	free(stage->output);
	*stage = (struct stage){.fd = -1, .output_fd = -1};
}
