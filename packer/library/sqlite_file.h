/* SPDX-License-Identifier: MIT */
/*
 * An untrusted SQLite database, open for reading from any run of bytes.  It is never
 * written, has no journals, locks, views, triggers, virtual tables or extensions, and
 * memory and work are bounded.
 */
#ifndef PACKER_LIBRARY_SQLITE_FILE_H
#define PACKER_LIBRARY_SQLITE_FILE_H

#include "core/base/file.h"

struct sqlite_file;
struct sqlite_rows;

/* Limit of bytes of one value, which are held in memory.  Code objects in databases have
 * some 10 kB. */
#define SQLITE_VALUE_MAX (256 << 20)

enum sqlite_type { /* SQLite's own numbers */
		   SQLITE_TYPE_INTEGER = 1,
		   SQLITE_TYPE_REAL = 2,
		   SQLITE_TYPE_TEXT = 3,
		   SQLITE_TYPE_BLOB = 4,
		   SQLITE_TYPE_NULL = 5,
};

/* Open SOURCE, whose header was checked (sqlite_header_check); its bytes are borrowed. */
kpack_error_t sqlite_file_open(const struct kp_source *source, struct sqlite_file **out,
			       struct kpackx_error *why);
void sqlite_file_close(struct sqlite_file *f); /* NULL is fine */

/*
 * Whether F has the ordinary table TABLE with at least COLUMNS (ended by NULL), none of
 * them computed.  INVALID_FORMAT: its schema cannot be read.
 */
kpack_error_t sqlite_file_has(struct sqlite_file *f, const char *table,
			      const char *const *columns, bool *has,
			      struct kpackx_error *why);

/*
 * The rows of a query.  The values of a row are valid until the next row is read.
 * INVALID_FORMAT: the database is damaged, or needs more work than its size can justify;
 * IO_ERROR: it cannot be read.
 */
kpack_error_t sqlite_rows_open(struct sqlite_file *f, const char *sql,
			       struct sqlite_rows **out, struct kpackx_error *why);
kpack_error_t sqlite_rows_next(struct sqlite_rows *rows, bool *more,
			       struct kpackx_error *why);
void sqlite_rows_close(struct sqlite_rows *rows); /* NULL is fine */

int sqlite_rows_count(const struct sqlite_rows *rows); /* columns */
const char *sqlite_rows_name(const struct sqlite_rows *rows, int column);
enum sqlite_type sqlite_rows_type(const struct sqlite_rows *rows, int column);
int64_t sqlite_rows_integer(const struct sqlite_rows *rows, int column);
/* The bytes of a blob, or of any other value as text. */
struct kp_span sqlite_rows_bytes(const struct sqlite_rows *rows, int column);

#endif
