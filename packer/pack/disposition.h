/* SPDX-License-Identifier: MIT */
/* The disposition of every path of a tree. */
#ifndef PACKER_PACK_TREE_DISPOSITION_H
#define PACKER_PACK_TREE_DISPOSITION_H

#include "packer/scan/scan.h"

enum fate {
	FATE_NOTHING, /* not counted: a directory; an archive in place; another shard's */
	FATE_COPIED,
	FATE_UNCHANGED, /* in place: nothing to do with device code */
	FATE_LINKED,    /* a further path of a file that has several */
	FATE_SYMLINK,
	FATE_SPECIAL, /* FIFO, device, socket */
	FATE_CONVERTED,
	FATE_ALREADY_CONVERTED,
	FATE_REFUSED,    /* should be converted, but cannot be */
	FATE_LEFT_ALONE, /* has device code, but not of a kind that is converted */
	FATE_LEFT_OUT,   /* not in the output */
	FATE_PACKED,     /* a file of a database: in archives, not in the output */
	FATE_KEPT,    /* no host binary: archives have its code, and it stays as it is */
	FATE_REMOVED, /* a file of a database that no wanted GPU can load: kpack thin */
	FATE_NOT_WANTED, /* a file of a database that is left out, which was reported */
};

struct disposition {
	enum fate fate;
	char *reason; /* of REFUSED, LEFT_ALONE, LEFT_OUT, NOT_WANTED; else NULL */
	/* of CONVERTED: its sizes; its kept containers, and the bytes that they add */
	uint64_t before, after;
	size_t n_kept;
	uint64_t kept_size;
};

/*
 * The disposition that is expected of each entry of the scan when nothing intervenes.
 * dispositions_open treats files of databases like other files; see databases.h.
 */
struct dispositions {
	struct disposition *items;
	size_t count;
};

void dispositions_open(const struct scan *scan, bool in_place, struct dispositions *out);
void dispositions_close(struct dispositions *list);

/* Change an disposition.  REASON is copied, or NULL. */
void disposition_set(struct disposition *o, enum fate fate, const char *reason);

/* The name of FATE: "converted", "copied" ... */
const char *disposition_name(enum fate fate);

#endif
