/* SPDX-License-Identifier: MIT */
/* Files that look as if they were for one GPU, and that no library is known to have. */
#ifndef PACKER_PACK_SCAN_UNRECOGNISED_H
#define PACKER_PACK_SCAN_UNRECOGNISED_H

#include "scan.h"

/*
 * Is the entry one: a regular file of a tree in which libraries looked for theirs, that is
 * nothing to be packed or converted?  OUT says
 * for which, in words.
 */
bool unrecognised(const struct scan *scan, size_t entry, char out[KP_TARGET_TEXT_MAX]);

/* Tell each as a note; of many, how many there are more. */
void unrecognised_tell(const struct scan *scan);

#endif
