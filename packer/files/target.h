/* SPDX-License-Identifier: MIT */
/*
 * Files that are found or made under one name: what a path leads to through links, what a
 * command prints to, and what is made under a temporary name and then renamed.
 */
#ifndef PACKER_FILES_TARGET_H
#define PACKER_FILES_TARGET_H

#include <stdbool.h>
#include <sys/stat.h>
#include "core/base/errors.h"
#include "core/base/file.h"

/* --- what a path leads to ---------------------------------------------------------------- */

/*
 * The file that PATH leads to through links, for a program that replaces this file, or
 * writes into it as compilers do.  Links are followed as those of an operand, in a root
 * too; from the opening on, it is always the same file in the same directory.
 */
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
int below_target_unlink(const struct below_target *t);
/* As kp_outfile_open, for the file's name. */
kpack_error_t below_target_outfile(const struct below_target *t, struct kp_outfile *out,
				   mode_t mode, struct kpackx_error *why);
/*
 * Whether root may write into the file that exists: no other user can have put it there.
 * Always true for other users.
 */
bool below_target_trusted(const struct below_target *t);

/* --- the file of an option -o of a command that prints ------------------------------------ */

/*
 * A file that is not regular (a pipe, /dev/null) or that is open (/dev/stdout) is written
 * to: standard output becomes this file, and *STREAM true.  Any other PATH is for
 * below_outfile_open, which replaces what has the name, also a link.
 */
kpack_error_t output_open(const char *path, bool *stream, struct kpackx_error *why);

/* --- something other than a regular file, in the place of what has the name ------------------ */

struct place {
	int dir_fd;
	const char *name;                 /* inside the path */
	char tmp_name[KP_TEMP_NAME_SIZE]; /* MAKE makes it under this name */
};

/* For MAKE: give the file that is being written at OUT the temporary name, too. */
int place_outfile(const struct place *p, const struct kp_outfile *out);

/*
 * Call MAKE, which returns 0, or -1 and errno; after EEXIST it is called again with
 * another name.  Then rename its result to PATH.  DURABLE: also flush the directory.  On
 * failure WHY has the errno.
 */
kpack_error_t place(const char *path, int (*make)(const struct place *p, void *arg),
		    void *arg, bool durable, struct kpackx_error *why);

#endif
