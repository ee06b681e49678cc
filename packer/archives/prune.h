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

struct prune {
	struct prune_args args;
	struct installed set;           /* the archives, and those that binaries reach */
	struct prune_archive *archives; /* those in the tree, by directory and name */
	size_t n_archives, cap;
};

/*
 * Carry out the ARGS of P, whose other members are zeroed, while the directories of the archives are
 * locked.  Returns an exit status, after reporting faults.  P holds what was found and done until it
 * is closed.
 */
int prune_run(struct prune *p);
void prune_close(struct prune *p); /* finishes `args`, too; accepts a zeroed P */

/* Whether entries of A go. */
bool prune_changes(const struct prune_archive *a);

#endif
