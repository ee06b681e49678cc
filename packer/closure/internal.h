/* SPDX-License-Identifier: MIT */
/* A check of a tree under way: what closure.c and closure_tensile.c share. */
#ifndef PACKER_CLOSURE_INTERNAL_H
#define PACKER_CLOSURE_INTERNAL_H

#include "closure.h"
#include "tensile_places.h"

struct closure_fault {
	char *path, *text;
};

struct closure {
	const struct library_found *found;
	const struct file_tree *tree;
	struct tensile_places places;
	uint8_t *kinds; /* per file: what its solutions are, once it was read */
	struct closure_fault *faults;
	size_t n_faults, faults_cap;
	size_t more_faults; /* that are not kept in words */
};

/* Remember a fault of PATH.  OUT_OF_MEMORY. */
kpack_error_t closure_add(struct closure *c, struct kpackx_error *why, const char *path,
			  const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/*
 * ERR is what reading FILE ended with, FAULT its words: a fault of the file, unless it is
 * for the caller to fail with.
 */
kpack_error_t closure_add_error(struct closure *c, size_t file, kpack_error_t err,
				const struct kpackx_error *fault,
				struct kpackx_error *why);

/* On the heap: the path of NAME and ENDING in the directory of PATH. */
char *closure_beside(const char *path, struct kp_span name, const char *ending);

/* Is there the file NAME and ENDING in the directory of PATH?  FILE may be NULL. */
kpack_error_t closure_find(const struct closure *c, const char *path, struct kp_span name,
			   const char *ending, bool *found, size_t *file,
			   struct kpackx_error *why);

/* The fault that NAME and ENDING is not in the directory of PATH, for the file OF. */
kpack_error_t closure_add_missing(struct closure *c, size_t of, const char *path,
				  struct kp_span name, const char *ending,
				  struct kpackx_error *why);

/* Is it a .dat beside which its .dat.zlib stands, so that no loader reads it? */
bool closure_is_stale(const struct closure *c, size_t file);

/* A library and its children, their code, and the helpers; a child and its library. */
kpack_error_t closure_parent(struct closure *c, size_t file, struct kpackx_error *why);
kpack_error_t closure_child(struct closure *c, size_t file, struct kpackx_error *why);
kpack_error_t closure_merged(struct closure *c, size_t file, struct kpackx_error *why);
/* Check a solution index: every child that it names exists. */
kpack_error_t closure_mapping(struct closure *c, size_t file, struct kpackx_error *why);

/* Check TensileLibrary.yaml: every file that it names exists. */
kpack_error_t closure_yaml(struct closure *c, size_t file, struct kpackx_error *why);

#endif
