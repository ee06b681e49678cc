/* SPDX-License-Identifier: MIT */
/*
 * Find where archives have to be mounted so that the packed files of a tree are at their
 * paths again, and compose the command that mounts them.
 */
#ifndef PACKER_PACK_MOUNT_PLACES_H
#define PACKER_PACK_MOUNT_PLACES_H

#include <stddef.h>

enum mounts_kind {
	MOUNTS_KEPT, /* must stay visible; a directory only when nothing is below it */
	MOUNTS_DIRECTORY, /* a directory that may be covered */
	MOUNTS_PACKED,    /* a file that only archives have */
};

struct mounts_path {
	char *path;
	enum mounts_kind kind;
};

struct mounts {
	struct mounts_path *paths;
	size_t n_paths, paths_cap;
	/* Directories that hold nothing but packed files: archives are mounted there. */
	char **places;
	size_t n_places;
	/*
	 * Directories ("" is the root) that hold both packed and other files: there the
	 * mount becomes the lower layer of an overlay.
	 */
	char **overlays;
	size_t n_overlays;
};

/*
 * Add PATH, which is copied and is relative to the root.  If a path is added twice, the
 * smaller kind counts.
 */
void mounts_add(struct mounts *m, const char *path, enum mounts_kind kind);

/*
 * After all paths are added, find the places and overlays.  A packed file counts only if
 * the directory that it was in exists.
 */
void mounts_decide(struct mounts *m);
void mounts_fini(struct mounts *m);

struct mounts_names {
	const char *root;     /* of the tree, absolute */
	const char *archives; /* the archives' directory, absolute */
	const char *group;
	const char *prefix; /* what precedes every path in archives, or "" */
};

/* Returns a shell command of one line, on the heap; NULL: no mount is needed. */
char *mounts_command(const struct mounts *m, const struct mounts_names *names);

#endif
