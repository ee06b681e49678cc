/* SPDX-License-Identifier: MIT */
/*
 * Join what several builds, for different GPUs, have under one name: a binary into one that
 * finds the code of all, archives into one with the entries of all.
 */
#ifndef PACKER_TREES_JOIN_H
#define PACKER_TREES_JOIN_H

#include "core/elf/marker.h"
#include "packer/archives/merge.h"

enum join_relation {
	JOIN_NOTHING,  /* none is converted: they are ordinary files */
	JOIN_SAME,     /* converted, with the same host */
	JOIN_DIFFERS,  /* converted; the hosts differ: one must be preferred */
	JOIN_WRAPPERS, /* converted; wrappers or names differ: cannot be joined */
	JOIN_KINDS,    /* one is converted, another is not */
};

struct join {
	enum join_relation relation;
	size_t other;     /* the source that does not match the chosen one */
	char text[240];   /* the first difference */
	bool same_marker; /* the chosen one has MARKER already */
	struct kp_marker
		marker; /* SAME, DIFFERS: with the search paths of all, in order */
};

/*
 * Compare the N files PATHS, of which CHOSEN is to replace all.  A mismatch is not an
 * error.  INVALID_FORMAT and similar errors: a file is invalid; WHY names it.  IO_ERROR,
 * OUT_OF_MEMORY.  The caller must finish OUT in any case.
 */
kpack_error_t join_look(char *const *paths, size_t n, size_t chosen, struct join *out,
			struct kpackx_error *why);
void join_fini(struct join *join);

/* Write TO, a new file, from the converted FROM, with MARKER and FROM's attributes. */
kpack_error_t join_write(const char *from, const char *to, const struct kp_marker *marker,
			 struct kpackx_error *why);

/*
 * Plan one archive of the N archives PATHS, which gets the group of all and the family of
 * the first.  PREFER: of each path, as in struct merge_source; NULL: all 0.  CLASH gets what
 * clashes.  Unless DIR is NULL, write it there under NAME, which may be one of PATHS.  Errors of
 * merge_plan_new and merge_plan_write.
 */
kpack_error_t join_to_archive(char *const *paths, const unsigned *prefer, size_t n,
			      const char *dir, const char *name, merge_clash_fn *clash,
			      void *clash_arg, struct kpackx_error *why);

#endif
