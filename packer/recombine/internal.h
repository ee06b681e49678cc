/* SPDX-License-Identifier: MIT */
/*
 * Inside recombining: what its steps share.  One component at a time:
 *
 *	recombine_route.c   in which tree of the output each file goes
 *	recombine_settle.c  of files with one path: which one, and with what marker
 *	recombine_clash.c   code for one GPU that two archives have differently
 *	recombine_write.c   the trees
 */
#ifndef PACKER_RECOMBINE_INTERNAL_H
#define PACKER_RECOMBINE_INTERNAL_H

#include "core/archive/archive.h"
#include "packer/library/library.h"
#include "core/binary/marker.h"
#include "recombine.h"
#include "trees.h"
#include "packer/files/staging.h"

/* Numbers of groups, and beside them: */
enum { DEST_GENERIC = -1, DEST_NONE = -2, DEST_DROPPED = -3 };

struct recombine_item {
	const struct shard_tree *tree;
	const struct shard_file *file;
	size_t shard; /* its number */
	int dest;
	struct kpack_archive *archive; /* owned; of an archive with code for GPUs */
	bool database;                 /* a file of a kernel database */

	/* once it is settled */
	bool chosen;
	bool rewritten; /* with another marker */
	struct kp_marker marker;
};

struct recombine_component {
	const struct recombine_args *args;
	const struct shard_trees *trees;
	const struct library_set *libraries;
	const char *name;
	struct recombine_item *items; /* in the end by dest, path, shard */
	size_t n_items;
	bool *delivered; /* per architecture of all groups, in their order */
	size_t n_arches;
	size_t faults; /* each was reported */
	size_t joined, notes;
	size_t unwanted;
};

/* The path of an item's file, on the heap; NULL: out of memory. */
char *recombine_path(const struct recombine_item *item);

/* "SHARD/COMPONENT_TARGET/PATH" of an item, for messages. */
const char *recombine_shown(const struct recombine_item *item, char out[512]);

/* Tell a fault, and count it. */
void recombine_fault(struct recombine_component *c, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Tell what may be of interest, when asked for. */
void recombine_note(struct recombine_component *c, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Each returns only what stops everything: OUT_OF_MEMORY, IO_ERROR. */
kpack_error_t recombine_route(struct recombine_component *c, struct kpackx_error *why);
kpack_error_t recombine_settle(struct recombine_component *c, struct kpackx_error *why);
kpack_error_t recombine_clashes(struct recombine_component *c, struct kpackx_error *why);

/* A tree of the output. */
struct recombine_tree {
	char *name;
	int dest;
	size_t files, joined;
	uint64_t bytes;
};

/* Write the tree DEST of C into STAGING under its name; chosen items of it stand together. */
kpack_error_t recombine_write(const struct recombine_component *c,
			      const struct staging *staging, struct recombine_tree *tree,
			      struct kpackx_error *why);

#endif
