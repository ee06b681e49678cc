/* SPDX-License-Identifier: MIT */
/* For those two that call SQLite: sqlite_file.c and sqlite_copy.c. */
#ifndef PACKER_LIBRARY_SQLITE_ENGINE_H
#define PACKER_LIBRARY_SQLITE_ENGINE_H

#include <sqlite3.h>
#include "file.h"

struct sqlite_file {
	sqlite3 *db;
	sqlite3_vfs vfs; /* this file's own, which reads SOURCE */
	char name[40];   /* of vfs */
	struct kp_source source;
	struct kp_outfile *to;  /* is written; NULL: only read */
	struct kpackx_error io; /* why reading failed last */
	int64_t work;           /* steps that are left to the query, in thousands */
};

struct sqlite_rows {
	struct sqlite_file *file;
	sqlite3_stmt *stmt;
};

/*
 * Begin a database in TO, which is empty and borrowed.  What cannot be written is reported as IO,
 * and DB's error is SQLITE_IOERR.
 */
kpack_error_t sqlite_file_create(struct kp_outfile *to, struct sqlite_file **out,
				 struct kpackx_error *why);

/* Forbid DB all that a schema could do besides holding tables and indexes. */
int sqlite_confine(sqlite3 *db);

/* Say why DB failed last, on the way to READING F. */
kpack_error_t sqlite_fail(const struct sqlite_file *f, sqlite3 *db,
			  struct kpackx_error *why);

/* Allow F's next query as much work as its size justifies. */
void sqlite_allow_work(struct sqlite_file *f);

/* For sqlite3_progress_handler, with a struct sqlite_file. */
int sqlite_count_work(void *file);
#define SQLITE_WORK_STEP 1000

#endif
