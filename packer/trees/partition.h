/* SPDX-License-Identifier: MIT */
/*
 * Assign the files and archives of one packed prefix to output trees: one per
 * architecture or family, which can be installed on its own, and the generic one with
 * everything else, which each of them needs.
 *
 * A written archive goes to the tree of its architecture, including stated features
 * ("gfx90a:xnack+"), or of its family.  A file of a kernel database goes to the tree of
 * its base architecture, without features ("gfx90a", "gfx1250-strict"); or of the
 * --family that contains all its architectures; or of its AOTriton family ("gfx11" for
 * gfx11xx, "gfx12_0" for gfx120x).  An archive that already exists goes to the tree of
 * its architecture or family.  Anything for every GPU, several GPUs or a generic target
 * is generic.
 */
#ifndef PACKER_TREES_PARTITION_H
#define PACKER_TREES_PARTITION_H

#include "packer/pack/run.h"

/* The index of the generic tree; and what is not assigned to any: see tree_of. */
#define PARTITION_GENERIC 0
#define PARTITION_NONE SIZE_MAX

/* The files and archives of one prefix that go into one output tree. */
struct output_tree {
	char *name;    /* "generic", "gfx90a:xnack+", or a family's name */
	bool family;   /* of --family, of AOTriton, or of an archive */
	char **arches; /* of its code or files, canonical, sorted; empty for generic */
	size_t n_arches;
	/* Indices of scan entries, ascending: files, links, special files. */
	size_t *entries;
	size_t n_entries;
	/* Names of written archives, sorted; borrowed from the set. */
	const char **archives;
	size_t n_archives;
};

struct partition {
	struct output_tree *items; /* only the generic one may be empty */
	size_t count;
	/*
	 * Per scan entry: the index of its output tree.  NONE: not in any tree (left out,
	 * packed, or a directory whose contents all go to other output trees, which make
	 * it themselves).
	 */
	size_t *tree_of;
};

/*
 * Make the partition of P, which has run with mode PACK_TREE or PACK_IN_PLACE, and with
 * databases PACKED, or PLAIN and identified.  P must outlive it.  Moves nothing; paths
 * are those of P's scan.
 * INVALID_ARGUMENT: an architecture's name cannot be part of a file name.
 */
kpack_error_t partition_open(const struct packing *p, struct partition *out,
			     struct kpackx_error *why);
void partition_close(struct partition *partition);

/* What goes into the output tree NAME, or NULL. */
struct output_tree *partition_find(const struct partition *partition, const char *name);

/* An archive that the input has already. */
struct old_archive {
	/*
	 * The output tree it goes to: that of the --family that contains all its
	 * architectures, that of its own family, or that of its only architecture; else
	 * the generic one.
	 */
	char *part;
	bool family;   /* PART is the name of a family */
	char **arches; /* canonical, in the order in which the archive lists them */
	size_t n_arches;
};

/*
 * Whether E looks like an archive, and is not a file of a kernel database: "*.kpack" in a
 * directory ".kpack", at any depth, or below the archive directory of the run.
 */
bool old_archive_is(const struct scan_entry *e);

/* Read the architectures of the archive PATH.  Errors of kp_archive_open; OUT_OF_MEMORY. */
kpack_error_t old_archive_open(const char *path, const struct families *families,
			       struct old_archive *out, struct kpackx_error *why);
void old_archive_close(struct old_archive *archive);

#endif
