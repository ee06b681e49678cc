/* SPDX-License-Identifier: MIT */
/* The text of .kpackfs/missing. */
#ifndef FS_CONTROL_MISSING_TEXT_H
#define FS_CONTROL_MISSING_TEXT_H

#include <stdio.h>
#include "fs/tree/edition.h"

/*
 * Write a line for each path of an entry that E does not show, each refused entry and
 * each refused archive: the path below the root of the whole tree, or the archive's path,
 * a tab, and the reason.  Path and reason are escaped for terminals.  false: no memory.
 */
bool missing_put(FILE *f, const struct edition *e, const struct kp_choice *arches,
		 const char *subdir);

#endif
