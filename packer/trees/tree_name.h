/* SPDX-License-Identifier: MIT */
/* Names in the output of a split: trees ("<component>_<target>") and their manifest. */
#ifndef PACKER_SPLIT_TREE_NAME_H
#define PACKER_SPLIT_TREE_NAME_H

#include <stddef.h>

/* The file at a tree's root that names its prefixes, one per line. */
#define ARTIFACT_MANIFEST "artifact_manifest.txt"

/*
 * The size of the component in NAME, "<component>_<target>"; 0: NAME has another form.
 * The target is "generic", or begins with the last "gfx" that follows an underscore and
 * precedes a digit ("aotriton_gfx12_0").
 */
size_t tree_component_size(const char *name);

#endif
