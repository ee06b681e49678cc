/* SPDX-License-Identifier: MIT */
/* The text of .kpackfs/entries.jsonl. */
#ifndef FS_CONTROL_ENTRIES_TEXT_H
#define FS_CONTROL_ENTRIES_TEXT_H

#include <stdio.h>
#include "fs/tree/edition.h"

/*
 * Write a line for each path of a file that E shows: a JSON object of the path, relative
 * to the mount point, and the facts of the entry that owns the path.  false: no memory.
 */
bool entries_text_put(FILE *f, const struct edition *e, const struct kp_choice *arches);

#endif
