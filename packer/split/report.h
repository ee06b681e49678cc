/* SPDX-License-Identifier: MIT */
/* What kpack split did, as a table or as JSON. */
#ifndef PACKER_SPLIT_REPORT_H
#define PACKER_SPLIT_REPORT_H

#include "packer/cli/report.h"
#include "split.h"

/* On stdout, unless it shall be quiet. */
void split_report(const struct split *s);

#if KP_WITH_JSON
json_t *split_report_json(const struct split *s);
#endif

/* Notes about what became of paths against expectation. */
void split_report_notes(const struct split *s);

#endif
