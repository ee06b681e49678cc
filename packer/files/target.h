/* SPDX-License-Identifier: MIT */
/*
 * The file that PATH leads to through links, for a program that replaces this file, or
 * writes into it as compilers do.  Links are followed as those of an operand, in a root
 * too; from the opening on, it is always the same file in the same directory.
 */
#ifndef PACKER_FILES_TARGET_H
#define PACKER_FILES_TARGET_H

#include <stdbool.h>
#include <sys/stat.h>
#include "core/base/errors.h"
#include "core/base/file.h"

struct below_target {
	int dir;        /* the directory of the file, O_PATH; -1: none */
	char *name;     /* the file's name in it */
	int fd;         /* the file, O_PATH; -1: it does not exist */
	struct stat st; /* of FD */
	bool is_open;   /* a file that a process has open, such as /dev/stdout */
};
/* -1, errno; also for a directory that does not exist. */
int below_target_open(struct below_target *t, const char *path);
void below_target_close(struct below_target *t); /* accepts zeros with dir and fd -1 */
/* Open the file, which exists; a FIFO waits for the other side. */
int below_target_reopen(const struct below_target *t, int flags);
int below_target_access(const struct below_target *t, int mode);
/* lstat of what has the name now. */
int below_target_named(const struct below_target *t, struct stat *st);
int below_target_unlink(const struct below_target *t);
/* As kp_outfile_open, for the file's name. */
kpack_error_t below_target_outfile(const struct below_target *t, struct kp_outfile *out,
				   mode_t mode, struct kpackx_error *why);
/*
 * Whether root may write into the file that exists: no other user can have put it there.
 * Always true for other users.
 */
bool below_target_trusted(const struct below_target *t);

#endif
