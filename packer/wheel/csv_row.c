/* SPDX-License-Identifier: MIT */
#include "csv_row.h"
#include <string.h>

/* True for a character that ends a field or a row. */
static bool is_end(char c)
{
	return c == '\0' || c == ',' || c == '\n' || c == '\r';
}

/*
 * Unquote in place; P is behind the opening quote.  Returns the end, or NULL on a fault.
 */
static char *read_quoted(struct csv_row *row, char *p)
{
	char *to = p;
	char *end;

	for (; *p != '"' || p[1] == '"'; p++) {
		if (*p == '\0') {
			row->fault = "a quote is not closed";
			return NULL;
		}
		if (*p == '"')
			p++;
		*to++ = *p;
	}
	end = p + 1;
	if (!is_end(*end)) {
		row->fault = "text behind a quote";
		return NULL;
	}
	*to = '\0';
	return end;
}

static char *read_field(struct csv_row *row, char *p)
{
	char *field = p;

	if (*p == '"') {
		field = p + 1;
		p = read_quoted(row, field);
	} else {
		while (!is_end(*p))
			p++;
	}
	if (row->count < CSV_COLUMNS_MAX)
		row->fields[row->count] = field;
	row->count++;
	return p;
}

/* Skip the line end at P, if the text does not end there. */
static char *end_row(char *p)
{
	bool carriage = *p == '\r';

	if (*p)
		*p++ = '\0';
	if (carriage && *p == '\n')
		*p++ = '\0';
	return p;
}

bool csv_row_next(struct csv_row *row)
{
	char *p = row->rest;

	row->count = 0;
	row->line++;
	while (*p == '\r' || *p == '\n') {
		p = end_row(p);
		row->line++;
	}
	if (!*p)
		return false;
	for (;;) {
		p = read_field(row, p);
		if (!p)
			return false;
		if (*p != ',')
			break;
		*p++ = '\0';
	}
	row->rest = end_row(p);
	return true;
}
