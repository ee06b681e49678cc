/* SPDX-License-Identifier: MIT */
/*
 * The classes of the archives of a mount that many users share: an archive's owner, group
 * and read bits are its class, and a user sees the contents of the archives of the classes
 * that the user may read.
 */
#ifndef FS_TREE_READERS_H
#define FS_TREE_READERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* The users who may read a file. */
struct readers {
	uid_t uid;
	gid_t gid;
	mode_t mode; /* within 0444 */
};

/*
 * Those who may read the file FD, whose attributes are ST.  An access control list only
 * takes away: its named users and groups get no more than anyone else, and if it refuses
 * one of them, only the owner reads.
 */
struct readers readers_of(int fd, const struct stat *st);

bool readers_same(struct readers a, struct readers b);

/* Nobody; the owner is root. */
extern const struct readers no_readers;

#define CLASSES_MAX 64
#define CLASSES_ALL UINT64_MAX

struct reader_class {
	struct readers readers;
	struct timespec newest; /* of the archives served */
	uint64_t bytes;         /* of the archives served */
};

/* The classes of the archives of an edition.  Classes are numbered, and a set of them is
 * a mask. */
struct classes {
	struct reader_class list[CLASSES_MAX];
	unsigned count; /* classes of archives that are served */
	unsigned known; /* these, and those of refused archives */
	uint8_t *of;    /* the class of each archive that is served */
	/* A number for each archive, for the view; the same in all editions. */
	uint64_t *values;
};

/* Make C, which is all zeros, ready for N archives.  false: no memory. */
bool classes_init(struct classes *c, size_t n);
void classes_fini(struct classes *c);

/*
 * The class with the readers R, added as needed.  If there are too many classes, it is
 * one that nobody may read.
 */
unsigned classes_add(struct classes *c, struct readers r);

/* Note the class CLASS, of the archive number I with attributes ST. */
void classes_note(struct classes *c, size_t i, unsigned class, const struct stat *st);

/* The newest time of the archives of the classes that everyone may read, or 0. */
struct timespec classes_public_time(const struct classes *c);

/* A user who makes a request. */
struct caller {
	uid_t uid;
	gid_t gid;
	/* A set of bits: for each class whether the user is in its group, beside `gid`. */
	uint64_t groups;
};

/* True if the reader's groups decide whether CALLER may read files of R. */
bool readers_need_groups(const struct readers *r, const struct caller *caller);

/* The classes, also of refused archives, that CALLER may read. */
uint64_t classes_read_by(const struct classes *c, const struct caller *caller);

#endif
