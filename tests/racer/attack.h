/* SPDX-License-Identifier: MIT */
/*
 * What an ordinary user does to a path, or to a directory above it, while a run of
 * another user is stopped.
 */
#ifndef RACER_ATTACK_H
#define RACER_ATTACK_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

/* The user to whom the trees belong. */
#define ATTACKER 1000

enum attack_kind {
	ATTACK_LINK,     /* a symbolic link to the canary of that name */
	ATTACK_SWAP,     /* the same, taken back at the next step */
	ATTACK_FLIP,     /* the same, made and taken back again at each further step */
	ATTACK_DANGLING, /* a symbolic link to a new name among the canaries */
	ATTACK_HARD,     /* a hard link of a canary */
	ATTACK_FIFO,
	ATTACK_DEVICE,
	ATTACK_DIRECTORY, /* an empty one */
	ATTACK_AWAY,      /* nothing in its place */
	ATTACK_FAKE,      /* a directory of links to canaries */
	ATTACK_NONE,      /* what is hostile was there before */
	ATTACK_CUT,       /* every file of the user loses its second half */
	ATTACK_MOUNT,     /* a FUSE file system of the user's that never answers */
	ATTACK_KINDS,
};

struct attack {
	enum attack_kind kind;
	int level;    /* 0: the path itself, 1: its directory, ... */
	size_t which; /* of the paths that the call names */
};

/* DIR/work holds the trees below home, and aside for what is moved away; DIR/canary has
 * the canaries, under the same paths as in DIR/work. */
struct area {
	const char *dir;
	char work[PATH_MAX], home[PATH_MAX], canary[PATH_MAX];
};

/* What can be taken back. */
struct attack_done {
	bool done, moved;
	int connection; /* of the mount; -1: none */
	char target[PATH_MAX], aside[PATH_MAX];
};

void area_init(struct area *area, const char *dir);

/* Parse "link", "link:2", "link@1", ... */
bool attack_parse(const char *text, struct attack *out);
void attack_print(const struct attack *a, char out[32]);

/* Levels of PATH that can be attacked: its components below the work directory. */
int attack_levels(const struct area *area, const char *path);

/* Whether the user may exchange the path, or what is LEVEL directories above it. */
bool attack_possible(const struct area *area, const char *path, int level);

/* False, with errno, if the user is not allowed to, or it makes no sense. */
bool attack_do(const struct area *area, const struct attack *a, const char *path,
	       struct attack_done *done);

void attack_undo(struct attack_done *done);

/* Take a mount away, because what is below it can be looked at no sooner. */
void attack_unmount(struct attack_done *done);

#endif
