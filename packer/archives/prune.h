/* SPDX-License-Identifier: MIT */
/*
 * kpack prune: the archives of a packed tree without the entries that nothing needs: code
 * that no wanted GPU can load, and objects that the tree no longer asks for.  Frames are
 * copied as they are stored, blocks of shared archives if all of their bytes stay.
 */
#ifndef PACKER_ARCHIVES_PRUNE_H
#define PACKER_ARCHIVES_PRUNE_H

#include "arch_filter.h"
#include "reachable_archives.h"

/* Why an entry goes. */
enum prune_reason {
	PRUNE_STAYS,
	PRUNE_OTHER_GPU, /* no wanted GPU can load it */
	PRUNE_GONE,      /* its binary, or the directory of its file, does not exist */
	PRUNE_UNASKED,   /* its binary does not ask for it, or the tree has its file */
	PRUNE_REASONS,
};

/* --- what a tree asks of archives: prune_demand.c ------------------------------------ */

/* The mount that a file is of, whose files are on one file system. */
struct demand_mount {
	long id;
	dev_t dev;
};

/*
 * The objects that the markers and layouts of a tree's converted binaries name, and the paths
 * that exist in it.
 */
struct demand {
	const char *tree; /* borrowed */
	struct demand_mount mount;
	bool mixed; /* its files may be a mount's of archives, and nothing tells which */
	bool has_hosts;              /* there is a host binary, of any kind */
	struct installed set;        /* the archives that the binaries reach */
	struct demand_binary *items; /* converted binaries, by name after demand_sort */
	size_t count, cap;
};

void demand_init(struct demand *d, const char *tree);
void demand_fini(struct demand *d);

/*
 * Take the file PATH of the tree, if it is a converted binary; other files are a success.
 * Errors of reading it, its marker or its layout, and of installed_reach: then it is not
 * known which objects it asks for.
 */
kpack_error_t demand_add(struct demand *d, const char *path, struct kpackx_error *why);
/* After the last file. */
void demand_sort(struct demand *d);

/*
 * The path of a converted binary that is not the one that was taken any more, or NULL:
 * archives that were opened later may be for the new one.  *ERROR: why it could not be looked
 * at, or 0.
 */
const char *demand_changed(const struct demand *d, int *error);

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

/* Whether the tree needs an entry, for whichever GPU: STAYS, GONE or UNASKED. */
enum prune_reason demand_of(struct demand_query *q, size_t entry);

/* --- a run: prune.c ------------------------------------------------------------------ */

struct prune_args {
	const char *tree;
	struct arch_filter filter; /* zeros: code for all GPUs stays */
	bool dry;                  /* only find out what would be removed */
	bool force;                /* even if no entry would be left */
};

struct prune_archive {
	struct installed_archive *archive;
	char *path;
	const char *relative;            /* in PATH: its part below the tree */
	uint8_t *reasons;                /* per entry */
	size_t n_entries[PRUNE_REASONS]; /* per reason */
	/* sizes of the file; after: 0 without an entry, and in a dry run about that */
	uint64_t before, after;
	/* of a shared archive, unless in a dry run: blocks copied, and compressed again */
	uint64_t blocks_copied, blocks_encoded;
};

/* A directory of archives, locked. */
struct prune_dir {
	char *path;
	int lock; /* -1: the file system has no locks */
};

struct prune {
	struct prune_args args;
	struct demand demand;
	struct prune_archive *archives; /* those in the tree, by directory and name */
	size_t n_archives, cap;
	size_t n_faults;
	struct prune_dir *dirs;
	size_t n_dirs, dirs_cap;
};

/*
 * Carry out the ARGS of P, whose other members are zeroed.  Returns an exit status, after
 * reporting faults.  P holds what was found and done until it is closed, and the archives'
 * directories stay locked until then.
 */
int prune_run(struct prune *p);
void prune_close(struct prune *p); /* finishes `args`, too; accepts a zeroed P */

/* Whether entries of A go. */
bool prune_changes(const struct prune_archive *a);

#endif
