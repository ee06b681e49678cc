/* SPDX-License-Identifier: MIT */
/*
 * The trees of the shards of a distributed build: SHARDS/<shard>/<component>_<target>,
 * each a tree as `kpack split` writes it; <target> is "generic" or names one or several
 * GPUs.
 *
 * Trees are walked without following symbolic links.
 */
#ifndef PACKER_RECOMBINE_TREES_H
#define PACKER_RECOMBINE_TREES_H

#include <stdbool.h>
#include "core/base/errors.h"
#include "packer/files/identity.h"
#include "manifest.h"

/* Limit of nested directories. */
#define SHARD_DEPTH_MAX 256

/* A path in a tree; a directory is listed only if it is empty. */
struct shard_file {
	char *path; /* relative to the tree */
	mode_t mode;
	uint64_t size;
	struct file_identity seen;
};

struct shard_tree {
	char *path; /* to open it */
	const char *shard;
	char *component, *target;
	struct shard_file *files; /* sorted bytewise; without the manifest */
	size_t n_files;
	struct prefixes prefixes; /* of the manifest; not sorted */
};

struct shard_trees {
	char **shards; /* PRIMARY first, then by name */
	size_t n_shards;
	struct shard_tree *trees; /* in the order of shards, then by name */
	size_t n_trees;
};

/*
 * Read all shards below DIR, but only the given COMPONENTS (NULL: all).  Files and
 * directories that are not named like trees are reported and left out.  The caller calls
 * shard_trees_fini even after an error.
 * INVALID_ARGUMENT: no shard PRIMARY; a tree or a shard is a symbolic link to a
 * directory; an invalid manifest; directories too deep.  IO_ERROR.
 */
kpack_error_t shard_trees_read(const char *dir, const char *primary,
			       char *const *components, size_t n_components,
			       struct shard_trees *out, struct kpackx_error *why);
void shard_trees_fini(struct shard_trees *trees);

/* The index of SHARD in shards; n_shards if it does not exist. */
size_t shard_trees_number(const struct shard_trees *trees, const char *shard);

#endif
