/* SPDX-License-Identifier: MIT */
/* Rows of CSV, taken apart in place: fields may stand in quotes, quotes in them are doubled. */
#ifndef PACKER_WHEEL_METADATA_CSV_ROW_H
#define PACKER_WHEEL_METADATA_CSV_ROW_H

#include <stdbool.h>
#include <stddef.h>

/* Columns that are kept; more are counted. */
#define CSV_COLUMNS_MAX 4

struct csv_row {
	char *rest; /* NUL-terminated; what was read of it is changed */
	char *fields[CSV_COLUMNS_MAX];
	size_t count;
	size_t line;       /* of the row, from 1 */
	const char *fault; /* static text, or NULL */
};

/*
 * The next row that is not empty.  false: there is none, or a quote is not closed, or one is
 * followed by text, and then FAULT says so.
 */
bool csv_row_next(struct csv_row *row);

#endif
