/* SPDX-License-Identifier: MIT */
/* Report the result of kpack split as a table or as JSON. */
#ifndef PACKER_SPLIT_REPORT_H
#define PACKER_SPLIT_REPORT_H

#include "packer/cli/report.h"
#include "split.h"

/* Print the table on stdout, unless --quiet is given. */
void split_report(const struct split *s);

json_t *split_report_json(const struct split *s);

/* Print notes about paths that were not handled as a user may expect. */
void split_report_notes(const struct split *s);

#endif
