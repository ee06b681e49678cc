/* SPDX-License-Identifier: MIT */
/*
 * Everything that calls SQLite.  A database is opened through a file system of its own, which
 * has that one file and reads it from any run of bytes: SQLite opens no path, finds no journal
 * beside the file, takes no lock, asks no clock, and gets no random numbers, so that equal
 * input gives equal bytes.
 *
 * The schema is text that the file's author wrote and SQLite compiles: all that it could do
 * besides holding tables and indexes is forbidden, and what a query may cost is counted.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/base/alloc.h"
#include "core/base/text.h"
#include "packer/cli/xalloc.h"
#include "sqlite.h"

/* Steps of SQLite's machine between two calls that count them. */
enum { WORK_STEP = 1000 };

struct sqlite_file {
	sqlite3 *db;
	sqlite3_vfs vfs; /* this file's own, which reads SOURCE */
	char name[40];   /* of vfs */
	struct kp_source source;
	struct kp_outfile *to;  /* the file to write; NULL: only read */
	struct kpackx_error io; /* the last reading or writing error */
	int64_t work;           /* steps left to the query, in thousands */
};

/* --- a file system of one file -------------------------------------------------------- */

struct opened {
	sqlite3_file base;
	struct sqlite_file *file;
};

static struct sqlite_file *file_of(sqlite3_file *base)
{
	return ((struct opened *)(void *)base)->file;
}

/* SQLite reads past the end of short files, and then wants zeros. */
static int read_at(sqlite3_file *base, void *buf, int size, sqlite3_int64 off)
{
	struct sqlite_file *f = file_of(base);
	uint64_t at = (uint64_t)off, left = at < f->source.size ? f->source.size - at : 0;
	size_t n = (uint64_t)size < left ? (size_t)size : (size_t)left;

	if (kp_source_read(&f->source, at < f->source.size ? at : 0, buf, n, &f->io))
		return SQLITE_IOERR_READ;
	if (n == (size_t)size)
		return SQLITE_OK;
	memset((uint8_t *)buf + n, 0, (size_t)size - n);
	return SQLITE_IOERR_SHORT_READ;
}

static int write_at(sqlite3_file *base, const void *buf, int size, sqlite3_int64 off)
{
	struct sqlite_file *f = file_of(base);
	uint64_t end = (uint64_t)off + (uint64_t)size;

	if (!f->to || kp_outfile_pwrite(f->to, (uint64_t)off, buf, (size_t)size, &f->io))
		return SQLITE_IOERR_WRITE;
	f->source.size = end > f->source.size ? end : f->source.size;
	return SQLITE_OK;
}

static int truncate_file(sqlite3_file *base, sqlite3_int64 size)
{
	struct sqlite_file *f = file_of(base);

	if (!f->to || ftruncate(f->to->fd, size))
		return SQLITE_IOERR_TRUNCATE;
	f->source.size = (uint64_t)size;
	return SQLITE_OK;
}

/* Flush, lock or unlock: the user of the written file flushes it, and nobody else has it. */
static int do_nothing(sqlite3_file *base, int how)
{
	(void)base, (void)how;
	return SQLITE_OK;
}

static int file_size(sqlite3_file *base, sqlite3_int64 *size)
{
	*size = (sqlite3_int64)file_of(base)->source.size;
	return SQLITE_OK;
}

static int close_file(sqlite3_file *base)
{
	(void)base;
	return SQLITE_OK;
}

static int check_reserved_lock(sqlite3_file *base, int *out)
{
	(void)base;
	*out = 0;
	return SQLITE_OK;
}

/* SQLite asks for many things here, all of which it can do without. */
static int control_file(sqlite3_file *base, int op, void *arg)
{
	(void)base, (void)op, (void)arg;
	return SQLITE_NOTFOUND;
}

static int sector_size(sqlite3_file *base)
{
	(void)base;
	return 4096;
}

/* A file that is only read never changes. */
static int device_characteristics(sqlite3_file *base)
{
	return file_of(base)->to ? 0 : SQLITE_IOCAP_IMMUTABLE;
}

static const sqlite3_io_methods methods = {
	.iVersion = 1,
	.xClose = close_file,
	.xRead = read_at,
	.xWrite = write_at,
	.xTruncate = truncate_file,
	.xSync = do_nothing,
	.xFileSize = file_size,
	.xLock = do_nothing,
	.xUnlock = do_nothing,
	.xCheckReservedLock = check_reserved_lock,
	.xFileControl = control_file,
	.xSectorSize = sector_size,
	.xDeviceCharacteristics = device_characteristics,
};

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *base, int flags,
		     int *given)
{
	struct sqlite_file *f = vfs->pAppData;

	(void)name;
	base->pMethods = NULL;
	if (!(flags & SQLITE_OPEN_MAIN_DB))
		return SQLITE_CANTOPEN;
	((struct opened *)(void *)base)->file = f;
	base->pMethods = &methods;
	if (given)
		*given = SQLITE_OPEN_MAIN_DB |
			 (f->to ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY);
	return SQLITE_OK;
}

/*
 * Calls by name are for journals, which there are none of: a file that is read is not changed, and
 * a copy that fails is discarded as a whole.
 */
static int delete_file(sqlite3_vfs *vfs, const char *name, int sync)
{
	(void)vfs, (void)name, (void)sync;
	return SQLITE_IOERR_DELETE;
}

static int no_such_file(sqlite3_vfs *vfs, const char *name, int flags, int *out)
{
	(void)vfs, (void)name, (void)flags;
	*out = 0;
	return SQLITE_OK;
}

static int full_name(sqlite3_vfs *vfs, const char *name, int size, char *out)
{
	(void)vfs;
	snprintf(out, (size_t)size, "%s", name);
	return SQLITE_OK;
}

/* Nothing in a file may depend on chance or time: equal input gives equal bytes. */
static int no_chance(sqlite3_vfs *vfs, int size, char *out)
{
	(void)vfs;
	memset(out, 0, (size_t)size);
	return size;
}

static int no_sleep(sqlite3_vfs *vfs, int microseconds)
{
	(void)vfs, (void)microseconds;
	return 0;
}

static int no_time(sqlite3_vfs *vfs, double *out)
{
	(void)vfs;
	*out = 0;
	return SQLITE_OK;
}

static int no_reason(sqlite3_vfs *vfs, int size, char *out)
{
	(void)vfs, (void)size, (void)out;
	return 0;
}

/* Each file has a file system of its own, because SQLite finds them by name. */
static void make_vfs(struct sqlite_file *f)
{
	snprintf(f->name, sizeof(f->name), "kpack-%p", (void *)f);
	f->vfs = (sqlite3_vfs){
		.iVersion = 1,
		.szOsFile = sizeof(struct opened),
		.mxPathname = 64,
		.zName = f->name,
		.pAppData = f,
		.xOpen = open_file,
		.xDelete = delete_file,
		.xAccess = no_such_file,
		.xFullPathname = full_name,
		.xRandomness = no_chance,
		.xSleep = no_sleep,
		.xCurrentTime = no_time,
		.xGetLastError = no_reason,
	};
}

/* --- errors and bounds ---------------------------------------------------------------- */

/* Fill WHY with the reason why the connection to F failed last. */
static kpack_error_t fail_query(const struct sqlite_file *f, struct kpackx_error *why)
{
	char text[160];
	int code = f->db ? sqlite3_errcode(f->db) : SQLITE_NOMEM;

	if (code == SQLITE_NOMEM)
		return kp_fail_memory(why, 0, "SQLite");
	if (code == SQLITE_IOERR && f->io.text[0]) {
		if (why)
			*why = f->io;
		return f->io.code;
	}
	if (code == SQLITE_INTERRUPT)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "SQLite: reading it takes more steps than %llu bytes can "
			       "justify: its pages are tangled",
			       (unsigned long long)f->source.size);
	kp_text_escape(kp_span_str(sqlite3_errmsg(f->db)), text, sizeof(text));
	return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "SQLite: %s", text);
}

/* For sqlite3_progress_handler: whether the work that the query may do is used up. */
static int count_work(void *file)
{
	struct sqlite_file *f = file;

	return f->work-- <= 0;
}

/* What a schema of a few kilobytes and our queries need; the defaults are far higher. */
static const struct {
	int what, most;
} limits[] = {
	{SQLITE_LIMIT_LENGTH, SQLITE_VALUE_MAX},
	{SQLITE_LIMIT_SQL_LENGTH, 65536},
	{SQLITE_LIMIT_COLUMN, 256},
	{SQLITE_LIMIT_EXPR_DEPTH, 100},
	{SQLITE_LIMIT_COMPOUND_SELECT, 4},
	{SQLITE_LIMIT_VDBE_OP, 25000},
	{SQLITE_LIMIT_FUNCTION_ARG, 16},
	{SQLITE_LIMIT_ATTACHED, 0},
	{SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 100},
	{SQLITE_LIMIT_TRIGGER_DEPTH, 1},
	{SQLITE_LIMIT_WORKER_THREADS, 0},
};

/*
 * A view, a trigger or a default value can call functions with the rights of the reader; DEFENSIVE
 * keeps SQL from changing the file's structure.
 */
static const struct {
	int what, to;
} switches[] = {
	{SQLITE_DBCONFIG_DEFENSIVE, 1},      {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
	{SQLITE_DBCONFIG_ENABLE_TRIGGER, 0}, {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
	{SQLITE_DBCONFIG_ENABLE_FKEY, 0},    {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
};

/* --- opening -------------------------------------------------------------------------- */

/* Open SOURCE; or begin a database in TO, which is empty and borrowed. */
static kpack_error_t open_any(const struct kp_source *source, struct kp_outfile *to,
			      struct sqlite_file **out, struct kpackx_error *why)
{
	struct sqlite_file *f = xcalloc(1, sizeof(*f));
	kpack_error_t err;
	int code;

	f->source = *source;
	f->to = to;
	make_vfs(f);
	code = sqlite3_vfs_register(&f->vfs, 0);
	if (!code)
		code = sqlite3_open_v2(
			"database", &f->db,
			(to ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY) |
				SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE,
			f->name);
	if (!code)
		code = sqlite3_drop_modules(f->db, NULL);
	for (size_t i = 0; !code && i < KP_COUNT(limits); i++)
		sqlite3_limit(f->db, limits[i].what, limits[i].most);
	for (size_t i = 0; !code && i < KP_COUNT(switches); i++)
		code = sqlite3_db_config(f->db, switches[i].what, switches[i].to, NULL);
	if (!code)
		code = sqlite3_exec(f->db,
				    "PRAGMA temp_store=MEMORY; PRAGMA mmap_size=0; "
				    "PRAGMA cell_size_check=ON",
				    NULL, NULL, NULL);
	if (code) {
		err = fail_query(f, why);
		sqlite_file_close(f);
		return err;
	}
	sqlite3_progress_handler(f->db, WORK_STEP, count_work, f);
	*out = f;
	return KPACK_SUCCESS;
}

kpack_error_t sqlite_file_open(const struct kp_source *source, struct sqlite_file **out,
			       struct kpackx_error *why)
{
	return open_any(source, NULL, out, why);
}

kpack_error_t sqlite_file_check_open(const struct kp_source *source,
				     struct sqlite_file **out, struct kpackx_error *why)
{
	uint8_t head[512] = {0};
	size_t n = source->size < sizeof(head) ? (size_t)source->size : sizeof(head);

	KP_TRY(kp_source_read(source, 0, head, n, why));
	KP_TRY(sqlite_header_check(source, head, n, why));
	return open_any(source, NULL, out, why);
}

void sqlite_file_close(struct sqlite_file *f)
{
	if (!f)
		return;
	sqlite3_close(f->db);
	sqlite3_vfs_unregister(&f->vfs);
	free(f);
}

/* --- queries -------------------------------------------------------------------------- */

/*
 * A page that is its own child, or the child of many pages, makes reading a small file
 * endless.  An honest query takes some ten steps per row, and a row has some ten bytes.
 */
kpack_error_t sqlite_rows_open(struct sqlite_file *f, const char *sql,
			       struct sqlite_rows *out, struct kpackx_error *why)
{
	*out = (struct sqlite_rows){.file = f};
	f->work = 1000 + (int64_t)(f->source.size / (WORK_STEP / 16));
	return sqlite3_prepare_v2(f->db, sql, -1, &out->stmt, NULL) ? fail_query(f, why)
								    : KPACK_SUCCESS;
}

kpack_error_t sqlite_rows_next(struct sqlite_rows *rows, bool *more,
			       struct kpackx_error *why)
{
	int code = sqlite3_step(rows->stmt);

	*more = code == SQLITE_ROW;
	if (code == SQLITE_ROW || code == SQLITE_DONE)
		return KPACK_SUCCESS;
	return fail_query(rows->file, why);
}

void sqlite_rows_fini(struct sqlite_rows *rows)
{
	sqlite3_finalize(rows->stmt);
	*rows = (struct sqlite_rows){0};
}

/* Call only one of SQLite's two accessors: the second may move the first one's bytes. */
struct kp_span sqlite_bytes(sqlite3_stmt *row, int column)
{
	bool blob = sqlite3_column_type(row, column) == SQLITE_BLOB;
	const void *data = blob ? sqlite3_column_blob(row, column)
				: (const void *)sqlite3_column_text(row, column);

	if (!data)
		return (struct kp_span){(const uint8_t *)"", 0};
	return (struct kp_span){data, (size_t)sqlite3_column_bytes(row, column)};
}

/* Begin a query whose only %Q is TABLE. */
static kpack_error_t query_table(struct sqlite_file *f, const char *format,
				 const char *table, struct sqlite_rows *out,
				 struct kpackx_error *why)
{
	char *sql = sqlite3_mprintf(format, table);
	kpack_error_t err;

	if (!sql)
		xalloc_fail(0);
	err = sqlite_rows_open(f, sql, out, why);
	sqlite3_free(sql);
	return err;
}

kpack_error_t sqlite_file_has(struct sqlite_file *f, const char *table,
			      const char *const *columns, bool *has,
			      struct kpackx_error *why)
{
	KP_AUTO(sqlite_rows) tables = {0}, rows = {0};
	uint32_t seen = 0, wanted = 0;
	bool more;

	/* rootpage > 0 excludes views and virtual tables, which have no page of their own */
	KP_TRY(query_table(f,
			   "SELECT 1 FROM main.sqlite_master WHERE type = 'table' AND "
			   "name = %Q COLLATE NOCASE AND rootpage > 0",
			   table, &tables, why));
	KP_TRY(sqlite_rows_next(&tables, has, why));
	if (!*has)
		return KPACK_SUCCESS;
	/* unlike table_info, it lists computed and hidden columns too */
	KP_TRY(query_table(f, "PRAGMA main.table_xinfo(%Q)", table, &rows, why));
	for (;;) {
		const char *name;

		KP_TRY(sqlite_rows_next(&rows, &more, why));
		if (!more)
			break;
		name = (const char *)sqlite3_column_text(rows.stmt, 1);
		/* column 6 says whether it is computed, or hidden */
		for (int i = 0; name && columns[i]; i++)
			if (sqlite3_stricmp(columns[i], name) == 0 &&
			    sqlite3_column_int(rows.stmt, 6) == 0)
				seen |= UINT32_C(1) << i;
	}
	for (int i = 0; columns[i]; i++)
		wanted |= UINT32_C(1) << i;
	*has = seen == wanted;
	return KPACK_SUCCESS;
}

/* --- copying -------------------------------------------------------------------------- */

struct copy {
	struct sqlite_file *from, *to;
	const char *called; /* TO's file in messages */
	const char *table, *column, *value;
};

static kpack_error_t fail_writing(const struct copy *c, struct kpackx_error *why)
{
	char text[120];
	int code = sqlite3_errcode(c->to->db);

	if (code == SQLITE_NOMEM)
		return kp_fail_memory(why, 0, "SQLite");
	kp_text_escape(kp_span_str(sqlite3_errmsg(c->to->db)), text, sizeof(text));
	if (code != SQLITE_IOERR)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "SQLite: its copy: %s",
			       text);
	if (!c->to->io.text[0])
		return kp_fail(why, KPACK_ERROR_IO_ERROR, "%s: SQLite: %s", c->called,
			       text);
	if (why)
		*why = c->to->io;
	return kp_fail_prefix(why, c->to->io.code, "%s", c->called);
}

static kpack_error_t run_sql(const struct copy *c, const char *sql,
			     struct kpackx_error *why)
{
	return sqlite3_exec(c->to->db, sql, NULL, NULL, NULL) ? fail_writing(c, why)
							      : KPACK_SUCCESS;
}

/* Copy settings besides the schema; the first three only work while TO is empty. */
static kpack_error_t copy_settings(const struct copy *c, struct kpackx_error *why)
{
	static const char *const names[] = {"page_size", "encoding", "auto_vacuum",
					    "user_version", "application_id"};

	for (size_t i = 0; i < KP_COUNT(names); i++) {
		KP_AUTO(sqlite_rows) rows = {0};
		char sql[96];
		bool more;

		snprintf(sql, sizeof(sql), "PRAGMA main.%s", names[i]);
		KP_TRY(sqlite_rows_open(c->from, sql, &rows, why));
		KP_TRY(sqlite_rows_next(&rows, &more, why));
		snprintf(sql, sizeof(sql), "PRAGMA main.%s='%.31s'", names[i],
			 more ? (const char *)sqlite_bytes(rows.stmt, 0).data : "0");
		KP_TRY(run_sql(c, sql, why));
	}
	return KPACK_SUCCESS;
}

/* Names with this prefix are SQLite's own; SQLite creates them itself. */
#define SCHEMA                                                                           \
	"FROM main.sqlite_master WHERE sql IS NOT NULL AND "                             \
	"lower(substr(name, 1, 7)) <> 'sqlite_'"

/* Run the CREATE statements of the schema; SQL after each of them is ignored. */
static kpack_error_t copy_schema(const struct copy *c, struct kpackx_error *why)
{
	KP_AUTO(sqlite_rows) rows = {0};
	bool more;

	KP_TRY(sqlite_rows_open(c->from, "SELECT sql " SCHEMA " ORDER BY rowid", &rows,
				why));
	for (;;) {
		sqlite3_stmt *stmt = NULL;
		const char *sql;
		bool done;

		KP_TRY(sqlite_rows_next(&rows, &more, why));
		if (!more)
			return KPACK_SUCCESS;
		sql = (const char *)sqlite_bytes(rows.stmt, 0).data;
		if (sqlite3_strnicmp(sql, "CREATE ", 7) != 0)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "SQLite: a statement of the schema is no CREATE");
		done = !sqlite3_prepare_v2(c->to->db, sql, -1, &stmt, NULL) &&
		       sqlite3_step(stmt) == SQLITE_DONE;
		if (sqlite3_finalize(stmt) || !done)
			return fail_writing(c, why);
	}
}

/*
 * NOT INDEXED keeps the order of the table itself.  Values are compared as blobs, so that
 * each row goes to exactly one copy, whatever collation the column has.
 */
static char *select_of(const struct copy *c, const char *table)
{
	if (sqlite3_stricmp(table, c->table) != 0)
		return sqlite3_mprintf("SELECT * FROM main.\"%w\" NOT INDEXED", table);
	return sqlite3_mprintf("SELECT * FROM main.\"%w\" NOT INDEXED WHERE "
			       "typeof(\"%w\") = 'text' AND "
			       "CAST(\"%w\" AS BLOB) = CAST(%Q AS BLOB)",
			       table, c->column, c->column, c->value);
}

static char *insert_of(const char *table, int columns)
{
	sqlite3_str *s = sqlite3_str_new(NULL);

	sqlite3_str_appendf(s, "INSERT INTO main.\"%w\" VALUES (", table);
	for (int i = 0; i < columns; i++)
		sqlite3_str_appendall(s, i ? ",?" : "?");
	sqlite3_str_appendall(s, ")");
	return sqlite3_str_finish(s);
}

/* Copy the rows of TABLE that belong into the copy. */
static kpack_error_t copy_rows(const struct copy *c, const char *table,
			       struct kpackx_error *why)
{
	KP_AUTO(sqlite_rows) rows = {0}, insert = {0};
	char *sql = select_of(c, table), *into;
	kpack_error_t err;
	bool more;
	int code;

	if (!sql)
		xalloc_fail(0);
	err = sqlite_rows_open(c->from, sql, &rows, why);
	sqlite3_free(sql);
	if (err)
		return err;
	into = insert_of(table, sqlite3_column_count(rows.stmt));
	if (!into)
		xalloc_fail(0);
	code = sqlite3_prepare_v2(c->to->db, into, -1, &insert.stmt, NULL);
	sqlite3_free(into);
	if (code)
		return fail_writing(c, why);
	for (;;) {
		KP_TRY(sqlite_rows_next(&rows, &more, why));
		if (!more)
			return KPACK_SUCCESS;
		for (int i = 0; i < sqlite3_column_count(rows.stmt); i++)
			if (sqlite3_bind_value(insert.stmt, i + 1,
					       sqlite3_column_value(rows.stmt, i)))
				return fail_writing(c, why);
		if (sqlite3_step(insert.stmt) != SQLITE_DONE ||
		    sqlite3_reset(insert.stmt))
			return fail_writing(c, why);
	}
}

/* The names come from the copy, which has only the tables that copy_schema made. */
static kpack_error_t copy_tables(const struct copy *c, struct kpackx_error *why)
{
	kpack_error_t err = KPACK_SUCCESS;
	sqlite3_stmt *tables = NULL;
	int code;

	if (sqlite3_prepare_v2(c->to->db,
			       "SELECT name " SCHEMA " AND type = 'table' ORDER BY rowid",
			       -1, &tables, NULL))
		return fail_writing(c, why);
	while (!err && (code = sqlite3_step(tables)) == SQLITE_ROW)
		err = copy_rows(c, (const char *)sqlite3_column_text(tables, 0), why);
	if (!err && code != SQLITE_DONE)
		err = fail_writing(c, why);
	sqlite3_finalize(tables);
	return err;
}

/*
 * Nothing is flushed, because a failed copy is discarded.  Freed bytes are zeroed, so
 * that the result does not depend on earlier contents of memory.
 */
static const char begin[] =
	"PRAGMA journal_mode=MEMORY; PRAGMA synchronous=OFF; PRAGMA "
	"locking_mode=EXCLUSIVE; "
	"PRAGMA secure_delete=ON; PRAGMA ignore_check_constraints=ON; "
	"PRAGMA cache_size=-8000";

static kpack_error_t fill_copy(const struct copy *c, struct kpackx_error *why)
{
	/* the copy's steps count as work on the file that they come from */
	sqlite3_progress_handler(c->to->db, WORK_STEP, count_work, c->from);
	KP_TRY(run_sql(c, begin, why));
	KP_TRY(copy_settings(c, why));
	KP_TRY(run_sql(c, "BEGIN", why));
	KP_TRY(copy_schema(c, why));
	KP_TRY(copy_tables(c, why));
	return run_sql(c, "COMMIT", why);
}

kpack_error_t sqlite_copy(struct sqlite_file *from, struct kp_outfile *to,
			  const char *called, const char *table, const char *column,
			  const char *value, struct kpackx_error *why)
{
	struct copy c = {from, NULL, called, table, column, value};
	struct kp_source nothing_yet = kp_source_fd(to->fd, 0, 0);
	kpack_error_t err;

	KP_TRY(open_any(&nothing_yet, to, &c.to, why));
	err = fill_copy(&c, why);
	sqlite_file_close(c.to);
	return err;
}
