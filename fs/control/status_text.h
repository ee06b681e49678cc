/* SPDX-License-Identifier: MIT */
/* The text of .kpackfs/status: what a person wants to know, in a few lines. */
#ifndef FS_CONTROL_STATUS_TEXT_H
#define FS_CONTROL_STATUS_TEXT_H

#include "stats_text.h"

/* How the first line begins when nothing is refused, and nothing failed. */
#define SUMMARY_GOOD "healthy"

void status_text_put(FILE *f, const struct stats *s);

#endif
