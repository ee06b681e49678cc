/* SPDX-License-Identifier: MIT */
/* What became of wheels, as a table or as JSON. */
#ifndef PACKER_WHEEL_SPLIT_REPORT_H
#define PACKER_WHEEL_SPLIT_REPORT_H

#include "write.h"

/* Exit status. */
int wheel_report(const struct wheel_write *w, const struct wheel_files *files);

#endif
