/* SPDX-License-Identifier: MIT */
/* Shared by the two files that call SQLite: file.c and copy.c. */
#ifndef PACKER_LIBRARY_SQLITE_ENGINE_H
#define PACKER_LIBRARY_SQLITE_ENGINE_H

#include <sqlite3.h>
#include "sqlite_file.h"

struct sqlite_file {
	sqlite3 *db;
	sqlite3_vfs vfs; /* this file's own, which reads SOURCE */
	char name[40];   /* of vfs */
	struct kp_source source;
	struct kp_outfile *to;  /* the file to write; NULL: only read */
	struct kpackx_error io; /* the last reading or writing error */
	int64_t work;           /* steps left to the query, in thousands */
};

struct sqlite_rows {
	struct sqlite_file *file;
	sqlite3_stmt *stmt;
};

/*
 * Begin a database in TO, which is empty and borrowed.  After a write error, IO holds the
 * reason and DB's error is SQLITE_IOERR.
 */
kpack_error_t sqlite_file_create(struct kp_outfile *to, struct sqlite_file **out,
				 struct kpackx_error *why);

/* Forbid DB everything that a schema could do besides holding tables and indexes. */
int sqlite_confine(sqlite3 *db);

/* Fill WHY with the reason why DB, the connection to F, failed last. */
kpack_error_t sqlite_fail(const struct sqlite_file *f, sqlite3 *db,
			  struct kpackx_error *why);

/* Allow F's next query as much work as its size justifies. */
void sqlite_allow_work(struct sqlite_file *f);

/* For sqlite3_progress_handler, with a struct sqlite_file. */
int sqlite_count_work(void *file);
#define SQLITE_WORK_STEP 1000

#endif
