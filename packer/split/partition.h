/* SPDX-License-Identifier: MIT */
/*
 * The parts a packed tree is taken apart into: one per architecture or family, which can be
 * installed for itself, and the generic one with everything else, which each needs.
 *
 * An archive goes to the part of its architecture, with the features that it states
 * ("gfx90a:xnack+"), or of its family.  The file of a database goes to the base
 * architecture, without features ("gfx90a", "gfx1250-strict"), or to the family that
 * --family puts all its architectures in, or to AOTriton's ("gfx11" for gfx11xx, "gfx12_0"
 * for gfx120x).  An archive that the tree has already goes where its architectures are, or
 * their family.  One that suits every GPU, several, or a generic target is generic.
 */
#ifndef PACKER_SPLIT_PARTITION_H
#define PACKER_SPLIT_PARTITION_H

#include "packer/pack/run.h"

/* The part of what is nowhere, or where what is in it is. */
#define PARTITION_NONE SIZE_MAX

struct split_part {
	char *name;    /* "generic", "gfx90a:xnack+", a family's */
	bool family;   /* of --family, or AOTriton's */
	char **arches; /* of its code or files, canonical, sorted; none: generic */
	size_t n_arches;
	/* Numbers of entries of the scan, ascending: files, links, special files. */
	size_t *entries;
	size_t n_entries;
	const char *
		*archives; /* names in KP_ARCHIVES_DIR, sorted; borrowed from the set */
	size_t n_archives;
};

struct partition {
	struct split_part *
		items; /* sorted by name; the generic one always, others with something */
	size_t count;
	size_t generic; /* its number */
	/*
	 * Per entry of the scan: the number of its part.  NONE: it is left out, or only archives have
	 * it, or it is a directory of which nothing is in the generic part, though it is not
	 * empty; such a one is needed where what is in it is.
	 */
	size_t *part_of;
};

/*
 * Take P apart, which was run, with mode PACK_TREE or PACK_IN_PLACE, and whose databases are
 * PACKED, or PLAIN and identified.  P must outlive it.  Paths are those of P's scan: in
 * place, or in the output, nothing is moved here.
 * INVALID_ARGUMENT: an architecture whose name gives no file name.  OUT_OF_MEMORY.
 */
kpack_error_t partition_open(const struct packing *p, struct partition *out,
			     struct kpackx_error *why);
void partition_close(struct partition *partition);

/* The number of the part NAME, or PARTITION_NONE. */
size_t partition_find(const struct partition *partition, const char *name);

#endif
