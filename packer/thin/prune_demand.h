/* SPDX-License-Identifier: MIT */
/*
 * What a tree asks of archives: the objects that the markers and layouts of its converted
 * binaries name, and the paths that exist in it.
 */
#ifndef PACKER_PRUNE_DEMAND_H
#define PACKER_PRUNE_DEMAND_H

#include "packer/archives/reachable_archives.h"

struct demand_binary; /* internal: a converted binary */

/* Where the tree is mounted. */
struct demand_mount {
	long id;
	dev_t dev;
	bool mixed; /* its files may be a mount's of archives, and nothing tells which */
};

struct demand {
	const char *tree;
	struct demand_mount mount;
	bool has_hosts;       /* there is a host binary, of any kind */
	struct installed set; /* the archives that the binaries reach */
	struct demand_binary *items;
	size_t count, cap;
};

/* Whether the tree needs an entry. */
enum demand_state {
	DEMAND_ASKED,   /* something may ask for it */
	DEMAND_GONE,    /* its binary, or the directory of its file, does not exist */
	DEMAND_UNASKED, /* its binary exists, and asks for other objects, or has its code;
			 * or its file is in the tree */
};

/* TREE is borrowed. */
void demand_init(struct demand *d, const char *tree);
void demand_fini(struct demand *d);

/*
 * Take the file PATH of the tree, if it is a converted binary; other files are a success.
 * Errors of reading it, its marker or its layout, and of installed_reach: then it is not
 * known which objects it asks for.
 */
kpack_error_t demand_add(struct demand *d, const char *path, struct kpackx_error *why);

/*
 * The path of a converted binary that is not the one that was taken any more, or NULL:
 * archives that were opened later may be for the new one.  *ERROR: why it could not be looked at, or 0.
 */
const char *demand_changed(const struct demand *d, int *error);

/* After the last file, before demand_of. */
void demand_sort(struct demand *d);

/* What is at a path. */
enum demand_place {
	PLACE_EMPTY,   /* nothing, also below mounts */
	PLACE_FILE,    /* a regular file of the tree's own, not of a mount in it */
	PLACE_UNCLEAR, /* anything else: a link, a mount, what cannot be looked at */
};

/*
 * Entries of one archive, in their order: a name that follows itself is looked for once.
 * The archive's names are relative to ROOT, or to the tree of the demand.  The other
 * members are zeros; the caller frees PATH.
 */
struct demand_query {
	const struct demand *demand;
	const struct installed_archive *archive;
	const char *root;
	struct kp_span last; /* the name that was looked for last */
	char *path;          /* where */
	enum demand_place place;
};

enum demand_state demand_of(struct demand_query *q, size_t entry);

#endif
