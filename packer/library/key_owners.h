/* SPDX-License-Identifier: MIT */
/* Decide which file of a tree keeps a key that several files would get. */
#ifndef PACKER_LIBRARY_KEY_OWNERS_H
#define PACKER_LIBRARY_KEY_OWNERS_H

#include "library.h"

/*
 * When an install tree holds two trees of one library, their files get equal keys besides
 * their paths.  For each architecture the file with the first path keeps the key.  The
 * other files lose the key, keep their paths, and get a warning.
 */
void key_owners_settle(struct library_found *found);

#endif
