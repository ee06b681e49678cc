/* SPDX-License-Identifier: MIT */
/*
 * File calls with paths, for directories that other users may write into.  Only packer/files/
 * calls the system's functions that take paths; all other files of packer/ call these.
 *
 * A *root* is a directory that the user named: an input tree, an output.  It is opened
 * once, by below_root or below_make_root, and stays open until the process ends.  A path
 * that begins with the name of a root is resolved from that descriptor, component by
 * component, and no symbolic link in it is followed (openat2 of Linux 5.6), so that nobody
 * can lead the call out of the tree, nor to another tree that has the name now.
 *
 * Any other path is an operand: it is resolved as the system does, but when root runs the
 * program, a link is followed only in a directory in which no other user can rename
 * anything; a link elsewhere fails with ELOOP.
 *
 * Like the calls whose names they have, these return -1 and set errno; descriptors are
 * close-on-exec.  All are thread-safe.
 */
#ifndef PACKER_FILES_BELOW_H
#define PACKER_FILES_BELOW_H

#include <dirent.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>
#include "core/base/errors.h"
#include "core/base/file.h"
#include "identity.h"

/*
 * Remember the directory PATH as a root.  A path below a root is not remembered again,
 * unless it leads through a link.
 * Errors of opening it; IO_ERROR also: it is no directory.
 */
kpack_error_t below_root(const char *path, struct kpackx_error *why);
/* As below_root, if PATH is a directory; anything else, or nothing, is a success. */
kpack_error_t below_root_if_directory(const char *path, struct kpackx_error *why);
/* As below_root_if_directory; reports the error.  false: there was one. */
bool below_hold(const char *path);
/* As below_root, with the descriptor FD of PATH, which is duplicated; inside a root too. */
kpack_error_t below_adopt_root(const char *path, int fd, struct kpackx_error *why);
/* As below_root; make PATH and its parents first, if they are missing, with MODE. */
kpack_error_t below_make_root(const char *path, mode_t mode, struct kpackx_error *why);
/* Make PATH and its parents below a root, as mkdir -p; for an operand too. */
kpack_error_t below_mkdirs(const char *path, mode_t mode, struct kpackx_error *why);

/*
 * As kp_fail_errno for errno, which a call of this header has set; ELOOP becomes a
 * sentence about links.
 */
kpack_error_t below_fail(struct kpackx_error *why, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* The directory that has the last component of a path, opened for reading. */
struct below_dir {
	int fd;     /* -1: none */
	char *name; /* the last component; "." for a root */
};
int below_dir_open(struct below_dir *dir, const char *path);
void below_dir_close(struct below_dir *dir);

/* Open PATH, never a link; a FIFO or device does not block. */
int below_open(const char *path, int flags, mode_t mode);
int below_lstat(const char *path, struct stat *st);
/*
 * For reading only: follow links of a tree that stay in it, and links that lead out of it
 * as those of an operand.
 */
int below_open_following(const char *path, int flags);
int below_stat(const char *path, struct stat *st);
/* Whether the process may do MODE (R_OK, W_OK, X_OK or F_OK) with PATH; 0 or -1. */
int below_access(const char *path, int mode);
ssize_t below_readlink(const char *path, char *buf, size_t size);
/* The path without links, as realpath; NULL and errno.  The caller frees it. */
char *below_real(const char *path);

/*
 * Whether the regular file PATH, which is absolute and without links, can be run: when root
 * runs the program, no other user may write it, or put another in its place.
 */
bool below_is_firm(const char *path);

DIR *below_opendir(const char *path);
/* As scandir; sorted bytewise.  The caller frees each name and the list. */
int below_scandir(const char *path, struct dirent ***names,
		  int (*select)(const struct dirent *));

int below_mkdir(const char *path, mode_t mode);
int below_unlink(const char *path);
int below_rmdir(const char *path);
/* FLAGS as for renameat2. */
int below_rename(const char *from, const char *to, unsigned flags);
/* Change permissions of a file or directory; a link fails with ELOOP. */
int below_chmod(const char *path, mode_t mode);

/* As kp_file_open: a regular file, or a link that below_open_following follows. */
kpack_error_t below_file_open(const char *path, int *fd, struct stat *st,
			      struct kpackx_error *why);
/*
 * Read the file PATH, as below_file_open opens it, WHAT in messages: see kp_source_load.
 * SIZE is the number of its bytes.
 */
kpack_error_t below_file_load(const char *path, uint64_t most, const char *what,
			      uint8_t **out, size_t *size, struct kpackx_error *why);
/* As kp_file_open, never through a link: the file PATH itself. */
kpack_error_t below_file_open_nofollow(const char *path, int *fd, struct stat *st,
				       struct kpackx_error *why);
/*
 * As below_file_open_nofollow, in one call, for a regular file that no other user can
 * exchange: another may be opened before it is known to be no regular file.
 */
kpack_error_t below_file_open_guarded(const char *path, int *fd, struct stat *st,
				      struct kpackx_error *why);
/* Open PATH again, as below_file_open_nofollow.  IO_ERROR also: it is not WAS any more. */
kpack_error_t below_file_open_again(const char *path, const struct file_identity *was,
				    int *fd, struct kpackx_error *why);
/* As kp_outfile_open, for the file PATH. */
kpack_error_t below_outfile_open(struct kp_outfile *out, const char *path, mode_t mode,
				 struct kpackx_error *why);
/* As kp_outfile_open, for the file NAME in DIR. */
kpack_error_t below_outfile_open_in(struct kp_outfile *out, const char *dir,
				    const char *name, mode_t mode,
				    struct kpackx_error *why);

/* Write the file PATH with MODE and the contents BYTES: whole, and flushed, or not at all. */
kpack_error_t below_file_write(const char *path, mode_t mode, struct kp_span bytes,
			       struct kpackx_error *why);

/* lstat of NAME in the directory open at DIR: of what an output or a target would replace. */
int below_lstat_at(int dir, const char *name, struct stat *st);

struct kpack_archive;
struct kp_writer;
struct kp_writer_options;

/* As kp_archive_open, kp_archives_find and kp_writer_open. */
kpack_error_t below_archive_open(const char *path, struct kpack_archive **out,
				 struct kpackx_error *why);
kpack_error_t below_archives_find(const char *source, char ***paths, size_t *count,
				  struct kpackx_error *why);
kpack_error_t below_writer_open(const char *dir, const char *name,
				const struct kp_writer_options *options,
				struct kp_writer **out, struct kpackx_error *why);

#endif
