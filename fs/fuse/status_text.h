/* SPDX-License-Identifier: MIT */
/* The text of .kpackfs/status: a summary for people, in a few lines. */
#ifndef FS_CONTROL_STATUS_TEXT_H
#define FS_CONTROL_STATUS_TEXT_H

#include "stats_text.h"

/* The first line if no archive is refused and no decode failed. */
#define SUMMARY_GOOD "healthy"

void status_text_put(FILE *f, const struct stats *s);

#endif
