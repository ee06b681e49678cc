/* SPDX-License-Identifier: MIT */
/*
 * Join what several builds, for different GPUs, have: whole trees, which may be those of a split,
 * and what these have under one name: a binary becomes one that finds the code of all, archives
 * one with the entries of all.
 */
#ifndef PACKER_TREES_JOIN_H
#define PACKER_TREES_JOIN_H

#include "core/host/marker.h"
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
		marker;      /* SAME, DIFFERS: with the search paths of all, in order */
	bool drop_signature; /* set by the caller: what is written has none */
};

/*
 * Compare the N files PATHS, of which CHOSEN is to replace all.  A mismatch is not an
 * error.  INVALID_FORMAT and similar errors: a file is invalid; WHY names it.  IO_ERROR,
 * OUT_OF_MEMORY.  The caller must finish OUT in any case.
 */
kpack_error_t join_look(char *const *paths, size_t n, size_t chosen, struct join *out,
			struct kpackx_error *why);
void join_fini(struct join *join);

/* Write TO, a new file, from the converted FROM, with the marker of JOIN and FROM's attributes. */
kpack_error_t join_write(const char *from, const char *to, const struct join *join,
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

/* --- trees: merge_trees.c, whose top says what it may join -------------------------------- */

/*
 * Find out whether the N operands ARE trees to join into OUT: directories without archives
 * directly in them, and OUT (or NULL) is not called as an archive.
 */
kpack_error_t merge_trees_look(char *const *operands, size_t n, const char *out,
			       bool *are, struct kpackx_error *why);

struct merge_trees_args {
	char *const *trees; /* in order: the first has precedence */
	size_t n_trees;
	const char *out;
	const char *const
		*prefer; /* trees that win where trees differ, the best one first */
	size_t n_prefer;
	bool force; /* replace OUT */
	bool drop_signature, json, quiet;
};

/* Returns the exit status, after reporting what differs; then OUT is as it was. */
int merge_trees(const struct merge_trees_args *args);

#endif
