/* SPDX-License-Identifier: MIT */
/*
 * What the shards of a distributed build have: SHARDS/<shard>/<component>_<target>, each a
 * tree as `kpack split` writes it, where <target> is "generic" or names a GPU or several.
 *
 * Trees are walked without following symbolic links.
 */
#ifndef PACKER_RECOMBINE_TREES_H
#define PACKER_RECOMBINE_TREES_H

#include <stdbool.h>
#include <sys/stat.h>
#include "core/base/errors.h"

/* Bytes of a manifest, which has a line for each prefix. */
#define SHARD_MANIFEST_MAX (1 << 20)

/* Directories in one another. */
#define SHARD_DEPTH_MAX 256

/* Something in a tree; a directory only when nothing is in it. */
struct shard_file {
	char *path; /* relative to the tree */
	mode_t mode;
	uint64_t size;
	bool linked; /* it has other names: DEV and INO tell which */
	dev_t dev;
	ino_t ino;
};

struct shard_tree {
	char *path; /* to open it */
	const char *shard;
	char *component, *target;
	struct shard_file *files; /* sorted bytewise; without the manifest */
	size_t n_files;
	char **prefixes; /* of the manifest */
	size_t n_prefixes;
	bool has_manifest;
};

struct shard_trees {
	char **shards; /* PRIMARY first, then by name */
	size_t n_shards;
	struct shard_tree *trees; /* in the order of shards, then by name */
	size_t n_trees;
};

/*
 * Read all shards below DIR; components: those of the list, NULL: all.  Files and directories
 * with other names are reported and left out.  OUT must be finished in any case.
 * INVALID_ARGUMENT: no shard PRIMARY; a tree or a shard is a symbolic link; a manifest that
 * is none; directories too deep.  IO_ERROR, OUT_OF_MEMORY.
 */
kpack_error_t shard_trees_read(const char *dir, const char *primary,
			       char *const *components, size_t n_components,
			       struct shard_trees *out, struct kpackx_error *why);
void shard_trees_fini(struct shard_trees *trees);

/* The number of a shard in the order; n_shards: there is none. */
size_t shard_trees_number(const struct shard_trees *trees, const char *shard);

#endif
