/* SPDX-License-Identifier: MIT */
/*
 * Parse rows of CSV in place: fields may be quoted, and quotes inside them are doubled.
 */
#ifndef PACKER_WHEEL_METADATA_CSV_ROW_H
#define PACKER_WHEEL_METADATA_CSV_ROW_H

#include <stdbool.h>
#include <stddef.h>

/* Columns that are kept; further ones are only counted. */
#define CSV_COLUMNS_MAX 4

struct csv_row {
	char *rest; /* NUL-terminated; parsing changes the text */
	char *fields[CSV_COLUMNS_MAX];
	size_t count;
	size_t line;       /* of the row, from 1 */
	const char *fault; /* static text, or NULL */
};

/*
 * Read the next row that is not empty.  False: there is none, or a quote is not closed or
 * is followed by text; then FAULT says so.
 */
bool csv_row_next(struct csv_row *row);

#endif
