/* SPDX-License-Identifier: MIT */
/* Files that look as if they were for one GPU, but belong to no known library. */
#ifndef PACKER_PACK_SCAN_UNRECOGNISED_H
#define PACKER_PACK_SCAN_UNRECOGNISED_H

#include "scan.h"

/*
 * Whether the entry is such a file: a regular file of a tree in which libraries were
 * looked for, that is neither packed nor converted.  OUT gets the GPU, as text.
 */
bool unrecognised(const struct scan *scan, size_t entry, char out[KP_TARGET_TEXT_MAX]);

/* Report each as a note; after the first 20, only how many more there are. */
void unrecognised_report(const struct scan *scan);

#endif
