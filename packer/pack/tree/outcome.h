/* SPDX-License-Identifier: MIT */
/* What becomes of every path of a tree. */
#ifndef PACKER_PACK_TREE_OUTCOME_H
#define PACKER_PACK_TREE_OUTCOME_H

#include "packer/pack/scan/scan.h"

enum fate {
	FATE_NOTHING, /* not counted: a directory; in place, the archives; another shard's */
	FATE_COPIED,
	FATE_UNCHANGED, /* in place: nothing to do with device code */
	FATE_LINKED,    /* another path of a file that comes first */
	FATE_SYMLINK,
	FATE_SPECIAL, /* FIFO, device, socket */
	FATE_CONVERTED,
	FATE_ALREADY_CONVERTED,
	FATE_REFUSED,    /* to be converted, but it cannot be */
	FATE_LEFT_ALONE, /* has device code, but not of a kind that is converted */
	FATE_LEFT_OUT,   /* not in the output */
	FATE_PACKED,     /* the file of a database: archives have it, the output not */
	FATE_KEPT, /* archives have its code, and it stays as it is: no host binary */
	FATE_NOT_WANTED, /* the file of a database that is left out, as was reported */
};

struct outcome {
	enum fate fate;
	char *reason; /* of REFUSED, LEFT_ALONE, LEFT_OUT, NOT_WANTED; else NULL */
	uint64_t before, after; /* CONVERTED: its sizes */
};

/*
 * One per entry of the scan: what will become of it when nothing comes in between.  Files of
 * databases are files like others here; see databases.h.
 */
struct outcomes {
	struct outcome *items;
	size_t count;
};

kpack_error_t outcomes_open(const struct scan *scan, bool in_place, struct outcomes *out,
			    struct kpackx_error *why);
void outcomes_close(struct outcomes *list);

/* Change one, with a REASON that is copied, or NULL. */
kpack_error_t outcome_set(struct outcome *o, enum fate fate, const char *reason,
			  struct kpackx_error *why);

/* In words: "converted", "copied" ... */
const char *outcome_name(enum fate fate);

#endif
