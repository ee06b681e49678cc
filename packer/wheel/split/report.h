/* SPDX-License-Identifier: MIT */
/* What became of wheels, as a table or as JSON. */
#ifndef WHEEL_REPORT_H
#define WHEEL_REPORT_H

#include "write.h"

/* Exit status. */
int wheel_report(const struct wheel_write *w, const struct wheel_files *files);

#endif
