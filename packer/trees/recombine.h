/* SPDX-License-Identifier: MIT */
/*
 * Recombine the trees of several shards, each with the code of some GPUs, into one tree
 * for all GPUs and one tree per group of GPUs.
 *
 *	shards/a/blas_generic   shards/a/blas_gfx1100   shards/b/blas_generic  ...
 *	-> output/blas_generic  output/blas_gfx110X ...
 *
 * All files that cannot be joined are reported before anything is written.
 */
#ifndef PACKER_RECOMBINE_RECOMBINE_H
#define PACKER_RECOMBINE_RECOMBINE_H

#include "recombine_config.h"
#include "packer/cli/report.h"

struct recombine_args {
	const char *shards, *output;
	const struct recombine_config *config;
	char **components; /* NULL: all */
	size_t n_components;
	const char *prefer; /* the shard that settles clashes; NULL: none */
	bool force;         /* replace existing trees */
	bool json, quiet, verbose;
};

/* Run kpack recombine.  Returns the exit status, after reporting faults. */
int recombine(const struct recombine_args *args);

#endif
