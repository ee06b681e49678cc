/* SPDX-License-Identifier: MIT */
/*
 * Where mounts bring the packed files of a tree back to their paths, and the command that
 * makes them.
 */
#ifndef PACKER_PACK_MOUNT_PLACES_H
#define PACKER_PACK_MOUNT_PLACES_H

#include "core/base/errors.h"

enum mounts_kind {
	MOUNTS_KEPT, /* has to stay visible; of a directory: when nothing is below it */
	MOUNTS_DIRECTORY, /* may be covered */
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
	/* Directories, "" the root, where packed files stand beside others: the mount becomes
	 * the lower layer of an overlay there. */
	char **overlays;
	size_t n_overlays;
};

/* PATH, which is copied, below the root.  The same twice: the smaller kind counts. */
kpack_error_t mounts_add(struct mounts *m, const char *path, enum mounts_kind kind,
			 struct kpackx_error *why);

/*
 * After all were added, decide.  A packed file counts when the directory that it stood in is
 * there.
 */
kpack_error_t mounts_decide(struct mounts *m, struct kpackx_error *why);
void mounts_fini(struct mounts *m);

struct mounts_names {
	const char *root;     /* of the tree, absolute */
	const char *archives; /* their directory, absolute */
	const char *group;
	const char *prefix; /* what stands before every path in archives; "" */
};

/* The command for a shell, one line, on the heap; NULL: no mount is needed. */
kpack_error_t mounts_command(const struct mounts *m, const struct mounts_names *names,
			     char **command, struct kpackx_error *why);

/* TEXT as one word of a shell's command line, on the heap; NULL: out of memory. */
char *mounts_quote(const char *text);

#endif
