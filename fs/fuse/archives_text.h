/* SPDX-License-Identifier: MIT */
/* The texts of .kpackfs/archives and .kpackfs/conflicts. */
#ifndef FS_CONTROL_ARCHIVES_TEXT_H
#define FS_CONTROL_ARCHIVES_TEXT_H

#include <stdio.h>
#include "fs/tree/edition.h"

/* Write a line for each archive: its content, or why it is refused. */
void archives_text_put(FILE *f, const struct edition *e);

/* Write a line for each recorded conflict, refused entry and refused archive. */
void archives_text_put_conflicts(FILE *f, const struct edition *e);

/* The number of conflicts and refused entries, not counting refused archives. */
size_t archives_text_count_conflicts(const struct edition *e);

#endif
