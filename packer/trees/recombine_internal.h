/* SPDX-License-Identifier: MIT */
/*
 * Shared by the steps of recombining, which handle one component at a time:
 *
 *	route.c   chooses the output tree of each file
 *	settle.c  chooses among files with the same path, and the file's marker
 *	clash.c   finds different code for the same GPU in two archives
 *	write.c   writes the trees
 */
#ifndef PACKER_RECOMBINE_INTERNAL_H
#define PACKER_RECOMBINE_INTERNAL_H

#include "core/archive/archive.h"
#include "packer/library/library.h"
#include "core/elf/marker.h"
#include "recombine.h"
#include "recombine_trees.h"
#include "packer/files/staging.h"

/* Values of dest: a group's index, or one of these. */
enum { DEST_GENERIC = -1, DEST_NONE = -2, DEST_DROPPED = -3 };

struct recombine_item {
	const struct shard_tree *tree;
	const struct shard_file *file;
	size_t shard; /* its index */
	int dest;
	struct kpack_archive *archive; /* owned; NULL: the file is not an archive */
	bool database;                 /* a file of a kernel database */

	/* set by recombine_settle: */
	bool chosen;
	bool rewritten; /* write it with MARKER instead of its own */
	struct kp_marker marker;
};

struct recombine_component {
	const struct recombine_args *args;
	const struct shard_trees *trees;
	const struct library_set *libraries;
	const char *name;
	struct recombine_item *items; /* sorted by dest, path, shard once settled */
	size_t n_items;
	bool *delivered; /* per architecture of all groups, in the groups' order */
	size_t n_arches;
	size_t faults; /* each was reported */
	size_t joined, notes;
	size_t unwanted;
};

/* The path to open an item's file; the caller frees it. */
char *recombine_path(const struct recombine_item *item);

/* Format "SHARD/COMPONENT_TARGET/PATH" of an item into OUT, for messages. */
const char *recombine_shown(const struct recombine_item *item, char out[512]);

/* Report a fault, and count it. */
void recombine_fault(struct recombine_component *c, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Count a note, and report it with --verbose. */
void recombine_note(struct recombine_component *c, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Each returns only the errors that stop the run (OUT_OF_MEMORY, IO_ERROR ...). */
kpack_error_t recombine_route(struct recombine_component *c, struct kpackx_error *why);
kpack_error_t recombine_settle(struct recombine_component *c, struct kpackx_error *why);
kpack_error_t recombine_clashes(struct recombine_component *c, struct kpackx_error *why);

/* An output tree. */
struct recombine_tree {
	char *name;
	int dest;
	size_t files, joined;
	uint64_t bytes;
};

/*
 * Write C's chosen items for TREE's dest into STAGING, below TREE's name; set the counts.
 */
kpack_error_t recombine_write(const struct recombine_component *c,
			      const struct staging *staging, struct recombine_tree *tree,
			      struct kpackx_error *why);

#endif
