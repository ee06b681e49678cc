/* SPDX-License-Identifier: MIT */
/* The state of a check, which closure.c, tensile.c and yaml.c share. */
#ifndef PACKER_CLOSURE_INTERNAL_H
#define PACKER_CLOSURE_INTERNAL_H

#include "closure.h"
#include "closure_places.h"

struct closure_fault {
	char *path, *text;
};

struct closure {
	const struct library_found *found;
	const struct file_tree *tree;
	const struct kp_choice *chosen; /* the GPUs to check for */
	struct tensile_places places;
	uint8_t *kinds; /* per file: kinds of its solutions; 0 until it is read */
	struct closure_fault *faults;
	size_t n_faults, faults_cap;
	size_t more_faults; /* faults whose text is not kept */
};

/* Remember a fault of PATH. */
void closure_add(struct closure *c, const char *path, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * Handle the error ERR, with the text FAULT, of reading FILE: remember it as a fault of
 * the file.  OUT_OF_MEMORY is returned instead, for the caller to fail with.
 */
kpack_error_t closure_add_error(struct closure *c, size_t file, kpack_error_t err,
				const struct kpackx_error *fault,
				struct kpackx_error *why);

/*
 * Whether the GPUs to check for can load code for the target ID GPU; also true for "",
 * every GPU, and for what is no target ID.
 */
bool closure_wants(const struct closure *c, const char *gpu);
/* The same for the last target ID in NAME; true if there is none. */
bool closure_wants_name(const struct closure *c, struct kp_span name);

/* TEXT as kp_text_escape writes it, uncut, on the heap. */
char *closure_escape(struct kp_span text);

/* The path of the file NAME+ENDING in the directory of PATH, on the heap. */
char *closure_beside(const char *path, struct kp_span name, const char *ending);

/* Whether the file NAME+ENDING exists in the directory of PATH.  FILE may be NULL. */
bool closure_find(const struct closure *c, const char *path, struct kp_span name,
		  const char *ending, size_t *file);

/* Add the fault that the file OF needs NAME+ENDING in the directory of PATH. */
void closure_add_missing(struct closure *c, size_t of, const char *path,
			 struct kp_span name, const char *ending);

/* Whether FILE is a .dat with its .dat.zlib next to it, so that no loader reads it. */
bool closure_is_stale(const struct closure *c, size_t file);

/* Check a library: its children, their code, and the helpers exist. */
kpack_error_t closure_parent(struct closure *c, size_t file, struct kpackx_error *why);
/* Check that the library of a child, or of the code of all solutions, exists. */
kpack_error_t closure_child(struct closure *c, size_t file, struct kpackx_error *why);
kpack_error_t closure_merged(struct closure *c, size_t file, struct kpackx_error *why);
/* Check a solution index: every child that it names exists. */
kpack_error_t closure_mapping(struct closure *c, size_t file, struct kpackx_error *why);

/* Check TensileLibrary.yaml: every file that it names exists. */
kpack_error_t closure_yaml(struct closure *c, size_t file, struct kpackx_error *why);

#endif
