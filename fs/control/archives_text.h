/* SPDX-License-Identifier: MIT */
/* The texts of .kpackfs/archives and .kpackfs/conflicts. */
#ifndef FS_CONTROL_ARCHIVES_TEXT_H
#define FS_CONTROL_ARCHIVES_TEXT_H

#include <stdio.h>
#include "fs/tree/edition.h"

/* A line for each archive: what it has; or why it is refused. */
void archives_text_put(FILE *f, const struct edition *e);

/* What is not shown of the archives, as far as it was noted, in lines. */
void archives_text_put_conflicts(FILE *f, const struct edition *e);

/* How much that is, refused archives apart. */
size_t archives_text_count_conflicts(const struct edition *e);

#endif
