/* SPDX-License-Identifier: MIT */
/* The command line of kpack split. */
#ifndef PACKER_SPLIT_ARGS_H
#define PACKER_SPLIT_ARGS_H

#include "packer/pack/args.h"

struct split_args {
	const char *input, *output;
	const char *batch; /* instead of input: split every artifact below it */
	char *name;        /* of the trees; NULL: of the input */
	bool manifest;     /* there must be one */
	bool force, json, quiet;
	bool packed; /* files of databases go into archives, too */
	char *libraries;
	const char *rules;
	char *targets;         /* separated by commas, without features; NULL: all */
	const char **families; /* NAME=ARCH,... */
	size_t n_families;
	int level;
	unsigned jobs;
	size_t n_operands; /* INPUT... of archives: all but the last */
	char **operands;
};

/* Exit status, after reporting what is wrong; -1: --help was answered. */
int split_args_parse(struct split_args *args, int argc, char **argv);
void split_args_fini(struct split_args *args);

/* The args of one prefix's run of packing: INPUT and OUTPUT are borrowed. */
kpack_error_t split_args_pack(const struct split_args *args, const char *input,
			      const char *output, struct pack_args *out,
			      struct kpackx_error *why);

/* The name for INPUT: its directory's.  On the heap. */
char *split_args_name(const char *input);

/*
 * The name for an artifact's directory NAME: what stands before its target, "blas_lib" of
 * "blas_lib_gfx1100".  On the heap.
 */
char *split_args_artifact(const char *name);

#endif
