/* SPDX-License-Identifier: MIT */
/*
 * The identity and attributes of a file when it was looked at: a file that is opened again
 * must be the same, unchanged, and a copy of it gets these attributes.
 */
#ifndef PACKER_FILES_IDENTITY_H
#define PACKER_FILES_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct file_identity {
	dev_t dev;
	ino_t ino;
	uint64_t size;
	struct timespec mtime, ctime;
	mode_t mode;
	uid_t uid;
	nlink_t nlink;
	bool guarded; /* no other user can put another file at its path: see tree_list.h */
};

static inline struct file_identity file_identity_of(const struct stat *st)
{
	return (struct file_identity){
		.dev = st->st_dev,
		.ino = st->st_ino,
		.size = (uint64_t)st->st_size,
		.mtime = st->st_mtim,
		.ctime = st->st_ctim,
		.mode = st->st_mode,
		.uid = st->st_uid,
		.nlink = st->st_nlink,
	};
}

static inline bool file_identity_same_time(const struct timespec *a,
					   const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* Whether ST is of the same file, with the same bytes unless its mtime was forged. */
static inline bool file_identity_is_named(const struct file_identity *id,
					  const struct stat *st)
{
	return st->st_dev == id->dev && st->st_ino == id->ino &&
	       (uint64_t)st->st_size == id->size &&
	       file_identity_same_time(&st->st_mtim, &id->mtime);
}

/*
 * As file_identity_is_named, for the bytes that are read: nobody can forge the ctime, but
 * it also changes when the file gets or loses a hard link.
 */
static inline bool file_identity_is(const struct file_identity *id, const struct stat *st)
{
	return file_identity_is_named(id, st) &&
	       file_identity_same_time(&st->st_ctim, &id->ctime);
}

#endif
