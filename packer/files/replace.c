/* SPDX-License-Identifier: MIT */
#include "replace.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "below.h"
#include "core/base/file.h"
#include "core/base/path_step.h"
#include "packer/cli/xalloc.h"
#include "resolve.h"

/* Limit of names to try: if all of them exist, it is likely an attack. */
#define TRIES 100

static int pick_name(struct place *p)
{
	return kp_temp_name(p->tmp_name) ? 0 : -1;
}

static int make_somewhere(struct place *p, int (*make)(const struct place *p, void *arg),
			  void *arg)
{
	for (int i = 0; i < TRIES; i++) {
		if (pick_name(p) < 0)
			return -1;
		if (make(p, arg) == 0)
			return 0;
		if (errno != EEXIST)
			break;
	}
	return -1;
}

static int move_into_place(const struct place *p, bool durable)
{
	int sys_errno;

	if (renameat(p->dir_fd, p->tmp_name, p->dir_fd, p->name) == 0) {
		/* both are names of one file: rename did nothing */
		unlinkat(p->dir_fd, p->tmp_name, 0);
		return durable ? kp_flush_dir(p->dir_fd) : 0;
	}
	sys_errno = errno;
	unlinkat(p->dir_fd, p->tmp_name, 0);
	errno = sys_errno;
	return -1;
}

int place_outfile(const struct place *p, const struct kp_outfile *out)
{
	char proc[KP_FD_NAME_SIZE];

	if (out->tmp_name)
		return linkat(out->dir_fd, out->tmp_name, p->dir_fd, p->tmp_name, 0);
	return linkat(AT_FDCWD, kp_fd_name(out->fd, proc), p->dir_fd, p->tmp_name,
		      AT_SYMLINK_FOLLOW);
}

int place_lstat(const struct place *p, struct stat *st)
{
	return fstatat(p->dir_fd, p->name, st, AT_SYMLINK_NOFOLLOW);
}

kpack_error_t place(const char *path, int (*make)(const struct place *p, void *arg),
		    void *arg, bool durable, struct kpackx_error *why)
{
	kpack_error_t err = KPACK_SUCCESS;
	struct below_dir dir;
	struct place p;

	if (below_dir_open(&dir, path) < 0)
		return below_fail(why, "cannot open its directory");
	p = (struct place){.dir_fd = dir.fd, .name = dir.name};
	if (make_somewhere(&p, make, arg) < 0 || move_into_place(&p, durable) < 0)
		err = below_fail(why, "cannot make it");
	below_dir_close(&dir);
	return err;
}
