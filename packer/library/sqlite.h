/* SPDX-License-Identifier: MIT */
/*
 * Untrusted SQLite databases, which any run of bytes can be.  They are read without journals,
 * locks, views, triggers, virtual tables and extensions, in bounded memory and work, and are
 * never changed; a copy of some rows goes into a new file.
 */
#ifndef PACKER_LIBRARY_SQLITE_H
#define PACKER_LIBRARY_SQLITE_H

#include "core/base/file.h"

/* Limit of bytes of one value, which are held in memory: code in databases has some 10 kB. */
#define SQLITE_VALUE_MAX (256 << 20)

struct sqlite_file;

/*
 * Check the header of the database SOURCE, and that SOURCE has the pages that the header states.
 * INVALID_FORMAT: not a database, cut short, or in WAL mode, which cannot be opened from
 * a read-only mount; WHY names the field, its value and what to do.
 */
kpack_error_t sqlite_header_check(const struct kp_source *source,
				  struct kpackx_error *why);

/* Check the header of SOURCE and open it; its bytes are borrowed. */
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
struct sqlite_rows {
	struct sqlite_file *file;
	struct sqlite3_stmt *stmt;
};

kpack_error_t sqlite_rows_open(struct sqlite_file *f, const char *sql,
			       struct sqlite_rows *out, struct kpackx_error *why);
kpack_error_t sqlite_rows_next(struct sqlite_rows *rows, bool *more,
			       struct kpackx_error *why);
void sqlite_rows_fini(struct sqlite_rows *rows);

/* The bytes of a blob, or of any other value of a row as text. */
struct kp_span sqlite_bytes(struct sqlite3_stmt *row, int column);

/*
 * Fill TO, an empty file, with a database of FROM's page size, encoding, versions and
 * schema, word for word.  Copy the rows of TABLE whose column COLUMN is the text VALUE,
 * and all rows of other tables; both in their order.  Equal input gives equal bytes.
 * INVALID_FORMAT: FROM is damaged, or has something that cannot be copied; IO_ERROR,
 * whose message begins with CALLED if the failing file is TO.
 */
kpack_error_t sqlite_copy(struct sqlite_file *from, struct kp_outfile *to,
			  const char *called, const char *table, const char *column,
			  const char *value, struct kpackx_error *why);

#endif
