/* SPDX-License-Identifier: MIT */
/* Names in the output of a split: of trees, "<component>_<target>", and of their manifest. */
#ifndef PACKER_SPLIT_TREE_NAME_H
#define PACKER_SPLIT_TREE_NAME_H

#include <stddef.h>

/* The file at a tree's root that names its prefixes, one per line. */
#define ARTIFACT_MANIFEST "artifact_manifest.txt"

/*
 * Take NAME, "<component>_<target>", apart: the target is "generic", or begins with the last
 * "gfx" and a digit behind an underscore ("aotriton_gfx12_0").  Returns the bytes of the
 * component; 0: it is no such name.
 */
size_t tree_component_size(const char *name);

#endif
