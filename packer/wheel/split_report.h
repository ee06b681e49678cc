/* SPDX-License-Identifier: MIT */
/* Report the output wheels as a table or as JSON. */
#ifndef PACKER_WHEEL_SPLIT_REPORT_H
#define PACKER_WHEEL_SPLIT_REPORT_H

#include "split_write.h"

/* Print the report on stdout.  Returns the exit status. */
int wheel_report(const struct wheel_write *w, const struct wheel_files *files);

#endif
