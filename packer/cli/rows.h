/* SPDX-License-Identifier: MIT */
/*
 * What a subcommand prints of an item, described once: the facts of a struct, by name and place.
 * From the same rows come a line of a table, lines with names, and a JSON object.
 *
 *	static const struct row rows[] = {
 *		ROW("key", ROW_LINE | ROW_JSON, struct line, info.key),
 *		ROW("path", ROW_LONG | ROW_JSON | ROW_NONE, struct line, path),
 *	};
 *
 * An empty text with ROW_NONE stands for none: it is "-" in tables, and null in JSON.  With
 * ROW_OPTIONAL an empty text, or no value, is left out of JSON, and zero out of lists.
 */
#ifndef PACKER_CLI_ROWS_H
#define PACKER_CLI_ROWS_H

#include "report.h"

/* Where a row is printed. */
enum {
	ROW_LINE = 1, /* rows_line */
	ROW_LONG = 2, /* rows_line of a longer form */
	ROW_LIST = 4, /* rows_list */
	ROW_JSON = 8, /* rows_object */
	ROW_NONE = 16,
	ROW_OPTIONAL = 32,
};

enum row_kind {
	ROW_TEXT, /* const char * or char * */
	ROW_SPAN,
	ROW_NUMBER, /* unsigned, of SIZE bytes */
	ROW_BOOL,
	ROW_RATIO,  /* double */
	ROW_VALUE,  /* json_t *, which rows_object takes over */
	ROW_ANSWER, /* enum: no, yes, or unknown, which is null in JSON */
};

struct row {
	const char *name;
	uint8_t where, kind, size;
	uint16_t at;      /* offset in the item */
	const char *unit; /* behind a number in rows_list; "bytes": with KiB and so on */
};

/* The kind follows from the type of MEMBER, so that the two cannot differ. */
/* clang-format off */
#define ROW_KIND(type, member)                     \
	_Generic(((type *)NULL)->member,           \
		 const char *: ROW_TEXT,           \
		 char *: ROW_TEXT,                 \
		 struct kp_span: ROW_SPAN,         \
		 bool: ROW_BOOL,                   \
		 double: ROW_RATIO,                \
		 json_t *: ROW_VALUE,              \
		 default: ROW_NUMBER)
#define ROW_AS(name, where, type, member, kind, unit)                             \
	{name, where, kind, sizeof(((type *)NULL)->member), offsetof(type, member), unit}
/* clang-format on */
#define ROW_IN(name, where, type, member, unit)                                          \
	ROW_AS(name, where, type, member, ROW_KIND(type, member), unit)
#define ROW(name, where, type, member) ROW_IN(name, where, type, member, NULL)

/* The two arguments for the array TABLE of rows. */
#define ROWS(table) (table), KP_COUNT(table)

/* Print the N rows of ITEM that are in any of WHERE as a line, with BETWEEN between them. */
void rows_line(const struct row *rows, size_t n, const void *item, int where,
	       char between);
/* Print each of the N rows of ITEM that are in lists as a line: its name and its value. */
void rows_list(const struct row *rows, size_t n, const void *item);
/* Add the N rows of ITEM that are in JSON to OBJECT. */
void rows_add(json_t *object, const struct row *rows, size_t n, const void *item);
/* Make a JSON object of the N rows of ITEM that are in JSON. */
json_t *rows_object(const struct row *rows, size_t n, const void *item);
/* Make a JSON array of such objects for COUNT items of SIZE bytes. */
json_t *rows_array(const struct row *rows, size_t n, const void *items, size_t count,
		   size_t size);

#endif
