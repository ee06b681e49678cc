/* SPDX-License-Identifier: MIT */
/*
 * The trees of several shards, each with the code of some GPUs, as one tree for all GPUs and
 * one for each group of them.
 *
 *	shards/a/blas_generic   shards/a/blas_gfx1100   shards/b/blas_generic  ...
 *	-> output/blas_generic  output/blas_gfx110X ...
 *
 * What cannot be joined is reported, all of it, before anything is written.
 */
#ifndef PACKER_RECOMBINE_RECOMBINE_H
#define PACKER_RECOMBINE_RECOMBINE_H

#include "config.h"
#include "packer/cli/report.h"

struct recombine_args {
	const char *shards, *output;
	const struct recombine_config *config;
	char **components; /* NULL: all */
	size_t n_components;
	const char *prefer; /* the shard that settles clashes; NULL: none */
	bool force;         /* trees that are there are replaced */
	bool json, quiet, verbose;
};

/* Run it. The exit status; faults were reported. */
int recombine(const struct recombine_args *args);

#endif
