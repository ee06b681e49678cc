/* SPDX-License-Identifier: MIT */
/* The command line of kpack split. */
#ifndef PACKER_SPLIT_ARGS_H
#define PACKER_SPLIT_ARGS_H

#include "packer/pack/args.h"

/* The root of the paths that keys begin with. */
enum split_keys {
	KEYS_DETECTED, /* the artifact if there is a manifest */
	KEYS_ARTIFACT,
	KEYS_PREFIX,
};

struct split_args {
	const char *input, *output;
	const char *batch; /* instead of input: split every artifact in this directory */
	char *name;        /* of the trees; NULL: the input's name */
	char *archive_dir; /* the archives', in each prefix; NULL: KP_ARCHIVES_DIR */
	bool manifest;     /* the input must have a manifest */
	bool force, json, quiet;
	bool packed; /* files of kernel databases also go into archives */
	enum split_keys keys;
	char *libraries;
	const char *rules;
	char *targets;         /* as given, separated by commas; NULL: all */
	bool exact;            /* targets are meant to the letter */
	const char **families; /* NAME=ARCH,... */
	size_t n_families;
	int level;
	unsigned jobs;
	size_t n_operands; /* archives, if several: all operands but the last */
	char **operands;
};

/* Returns the exit status, after reporting what is wrong; -1 when --help was printed. */
int split_args_parse(struct split_args *args, int argc, char **argv);
void split_args_fini(struct split_args *args);

/* Make the arguments for packing one prefix.  OUT borrows INPUT and OUTPUT. */
kpack_error_t split_args_pack(const struct split_args *args, const char *input,
			      const char *output, struct pack_args *out,
			      struct kpackx_error *why);

/*
 * Make the filter of the targets.  INVALID_ARGUMENT.  The caller finishes FILTER in any
 * case.
 */
kpack_error_t split_args_filter(const struct split_args *args, struct arch_filter *filter,
				struct kpackx_error *why);

/*
 * The default name of the trees: the last component of INPUT's real path.  On the heap.
 */
char *split_args_name(const char *input);

/*
 * The default name of the trees of an artifact in the directory NAME: NAME without its
 * target, "blas_lib" for "blas_lib_gfx1100".  On the heap.
 */
char *split_args_artifact(const char *name);

#endif
