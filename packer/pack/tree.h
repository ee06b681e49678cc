/* SPDX-License-Identifier: MIT */
/*
 * The tree that a run writes, or changes in place: what becomes of each path, the files that are
 * written anew, and everything else, which is copied, linked, removed or left alone.
 *
 * Packing, thin and its undo go the same way: dispositions_open says what is expected of each
 * path; the command changes what it knows better; converter_check, and output_check_mounts or
 * databases_check, find what would fail while nothing is written; output_write does it.
 */
#ifndef PACKER_PACK_TREE_H
#define PACKER_PACK_TREE_H

#include "core/base/file.h"
#include "packer/files/copy.h"
#include "packer/scan/scan.h"

enum fate {
	FATE_NOTHING, /* not counted: a directory; an archive in place; another shard's */
	FATE_COPIED,
	FATE_UNCHANGED, /* in place: nothing to do with device code */
	FATE_LINKED,    /* a further path of a file that has several */
	FATE_SYMLINK,
	FATE_SPECIAL,   /* FIFO, device, socket */
	FATE_CONVERTED, /* written anew */
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

struct dispositions {
	struct disposition *items; /* per entry of the scan */
	size_t count;
};

/*
 * What is expected of each entry when nothing intervenes.  Files of databases are treated like
 * other files.
 */
void dispositions_open(const struct scan *scan, bool in_place, struct dispositions *out);
void dispositions_close(struct dispositions *list);
/* Change a disposition.  REASON is copied, or NULL. */
void disposition_set(struct disposition *o, enum fate fate, const char *reason);
/* The name of FATE: "converted", "copied" ... */
const char *disposition_name(enum fate fate);

/* How files are written anew.  The functions are called on several threads. */
struct converter {
	struct scan *scan;
	struct input *
		*inputs; /* of the scan; those whose fate is CONVERTED are written */
	size_t n_inputs;
	struct dispositions *dispositions;
	const char *output; /* root of the tree that is written; NULL: in place */
	unsigned jobs;
	/*
	 * Whether IN, open at FD, can be written anew; NULL: writing it finds out.
	 * NOT_IMPLEMENTED: it cannot, and becomes REFUSED.
	 */
	kpack_error_t (*check)(void *arg, struct input *in, int fd,
			       struct kpackx_error *why);
	/* Write IN anew, to OUT.  NOT_IMPLEMENTED: as above. */
	kpack_error_t (*rewrite)(void *arg, struct input *in, int fd,
				 struct kp_outfile *out, struct kpackx_error *why);
	/* The bytes of memory that it needs at most; NULL: what its containers need. */
	uint64_t (*cost)(void *arg, const struct input *in);
	void *arg;
};

/*
 * Before anything is written, check which files can be written anew.  Faults (a file that
 * contradicts itself or, in place, one that cannot be replaced) are reported and counted in
 * *FAULTS.
 */
void converter_check(const struct converter *c, size_t *faults);

/*
 * Write all files whose fate is CONVERTED.  Each appears complete, with the attributes of the
 * original.  In place a file is replaced at each of its paths, at the first one last, so that
 * the next run packs what a killed run leaves under the same key.  A converted file among the
 * paths (packing_resume) that is not the result of its conversion is left as it is.  In place
 * there need only be room for the largest new file.  Errors name the file.
 */
kpack_error_t converter_run(const struct converter *c, struct kpackx_error *why);

/*
 * Check that OUTPUT can be made from INPUT.  INVALID_ARGUMENT: one is inside the other,
 * or OUTPUT would replace INPUT; WHY says which.  IO_ERROR: INPUT cannot be accessed.
 */
kpack_error_t output_check(const char *input, const char *output,
			   struct kpackx_error *why);
/* The same, for an OUTPUT that only gets further trees: it may contain INPUT. */
kpack_error_t output_check_beside(const char *input, const char *output,
				  struct kpackx_error *why);

/*
 * Before anything is written, check whether a directory of SCAN is read-only in OUTPUT,
 * as where archives are mounted.  The first one is reported and counted in *FAULTS.
 */
void output_check_mounts(const struct scan *scan, const char *output, size_t *faults);
/*
 * The same in place: report and count the PACKED and REMOVED files that could not be removed;
 * only the first one in a directory that forbids it.
 */
void databases_check(const struct scan *scan, const struct dispositions *dispositions,
		     size_t *faults);

/*
 * Write the tree that C's scan found in ROOT to W, all but the attributes of directories; or,
 * if C has no output, change ROOT in place, and W is NULL: PACKED and REMOVED files go, unless
 * they are not what was scanned.  Archives that need what is removed must be on the disk.
 * Afterwards C's dispositions hold the disposition of each path.  Nothing else in the output
 * is touched, except for inherited archives.  Errors name the file.
 */
kpack_error_t output_write(const struct converter *c, const char *root,
			   struct tree_write *w, struct kpackx_error *why);

#endif
