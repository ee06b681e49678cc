/* SPDX-License-Identifier: MIT */
#include "sqlite_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "sqlite_engine.h"
#include "packer/cli/xalloc.h"
#include "core/base/text.h"

/* --- a file system of one file -------------------------------------------------------- */

struct opened {
	sqlite3_file base;
	struct sqlite_file *file;
};

static struct sqlite_file *file_of(sqlite3_file *base)
{
	return ((struct opened *)(void *)base)->file;
}

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

/* Does nothing: the user of the written file flushes it. */
static int flush_file(sqlite3_file *base, int flags)
{
	(void)base, (void)flags;
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

static int lock_file(sqlite3_file *base, int level)
{
	(void)base, (void)level;
	return SQLITE_OK;
}

static int check_reserved_lock(sqlite3_file *base, int *out)
{
	(void)base;
	*out = 0;
	return SQLITE_OK;
}

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
	.xSync = flush_file,
	.xFileSize = file_size,
	.xLock = lock_file,
	.xUnlock = lock_file,
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

kpack_error_t sqlite_fail(const struct sqlite_file *f, sqlite3 *db,
			  struct kpackx_error *why)
{
	char text[160];
	int code = db ? sqlite3_errcode(db) : SQLITE_NOMEM;

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
	kp_text_escape(kp_span_str(sqlite3_errmsg(db)), text, sizeof(text));
	return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "SQLite: %s", text);
}

/*
 * A page that is its own child, or the child of many pages, makes reading a small file
 * endless.  An honest query takes some ten steps per row, and a row has some ten bytes.
 */
void sqlite_allow_work(struct sqlite_file *f)
{
	f->work = 1000 + (int64_t)(f->source.size / (SQLITE_WORK_STEP / 16));
}

int sqlite_count_work(void *file)
{
	struct sqlite_file *f = file;

	return f->work-- <= 0;
}

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

static const struct {
	int what, to;
} switches[] = {
	{SQLITE_DBCONFIG_DEFENSIVE, 1},      {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
	{SQLITE_DBCONFIG_ENABLE_TRIGGER, 0}, {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
	{SQLITE_DBCONFIG_ENABLE_FKEY, 0},    {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
};

int sqlite_confine(sqlite3 *db)
{
	int code = sqlite3_drop_modules(db, NULL);

	for (size_t i = 0; i < KP_COUNT(limits); i++)
		sqlite3_limit(db, limits[i].what, limits[i].most);
	for (size_t i = 0; !code && i < KP_COUNT(switches); i++)
		code = sqlite3_db_config(db, switches[i].what, switches[i].to, NULL);
	if (!code)
		code = sqlite3_exec(db, "PRAGMA temp_store=MEMORY; PRAGMA mmap_size=0",
				    NULL, NULL, NULL);
	return code;
}

/* --- opening -------------------------------------------------------------------------- */

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
		code = sqlite_confine(f->db);
	if (!code)
		code = sqlite3_exec(f->db, "PRAGMA cell_size_check=ON", NULL, NULL, NULL);
	if (code) {
		err = sqlite_fail(f, f->db, why);
		sqlite_file_close(f);
		return err;
	}
	sqlite3_progress_handler(f->db, SQLITE_WORK_STEP, sqlite_count_work, f);
	*out = f;
	return KPACK_SUCCESS;
}

kpack_error_t sqlite_file_open(const struct kp_source *source, struct sqlite_file **out,
			       struct kpackx_error *why)
{
	return open_any(source, NULL, out, why);
}

kpack_error_t sqlite_file_create(struct kp_outfile *to, struct sqlite_file **out,
				 struct kpackx_error *why)
{
	struct kp_source nothing_yet = kp_source_fd(to->fd, 0, 0);

	return open_any(&nothing_yet, to, out, why);
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

kpack_error_t sqlite_rows_open(struct sqlite_file *f, const char *sql,
			       struct sqlite_rows **out, struct kpackx_error *why)
{
	struct sqlite_rows *rows = xcalloc(1, sizeof(*rows));

	rows->file = f;
	sqlite_allow_work(f);
	if (sqlite3_prepare_v2(f->db, sql, -1, &rows->stmt, NULL)) {
		sqlite_rows_close(rows);
		return sqlite_fail(f, f->db, why);
	}
	*out = rows;
	return KPACK_SUCCESS;
}

kpack_error_t sqlite_rows_next(struct sqlite_rows *rows, bool *more,
			       struct kpackx_error *why)
{
	int code = sqlite3_step(rows->stmt);

	*more = code == SQLITE_ROW;
	if (code == SQLITE_ROW || code == SQLITE_DONE)
		return KPACK_SUCCESS;
	return sqlite_fail(rows->file, rows->file->db, why);
}

void sqlite_rows_close(struct sqlite_rows *rows)
{
	if (rows)
		sqlite3_finalize(rows->stmt);
	free(rows);
}

int sqlite_rows_count(const struct sqlite_rows *rows)
{
	return sqlite3_column_count(rows->stmt);
}

const char *sqlite_rows_name(const struct sqlite_rows *rows, int column)
{
	const char *name = sqlite3_column_name(rows->stmt, column);

	return name ? name : "";
}

enum sqlite_type sqlite_rows_type(const struct sqlite_rows *rows, int column)
{
	return (enum sqlite_type)sqlite3_column_type(rows->stmt, column);
}

int64_t sqlite_rows_integer(const struct sqlite_rows *rows, int column)
{
	return sqlite3_column_int64(rows->stmt, column);
}

/* Call only one of SQLite's two accessors: the second may move the first one's bytes. */
struct kp_span sqlite_rows_bytes(const struct sqlite_rows *rows, int column)
{
	bool blob = sqlite3_column_type(rows->stmt, column) == SQLITE_BLOB;
	const void *data = blob ? sqlite3_column_blob(rows->stmt, column)
				: (const void *)sqlite3_column_text(rows->stmt, column);

	if (!data)
		return (struct kp_span){(const uint8_t *)"", 0};
	return (struct kp_span){data, (size_t)sqlite3_column_bytes(rows->stmt, column)};
}

/* --- tables and columns --------------------------------------------------------------- */

/* Mark in SEEN the column that the row describes. */
static void see_column(const struct sqlite_rows *rows, const char *const *columns,
		       uint32_t *seen)
{
	const char *name = (const char *)sqlite3_column_text(rows->stmt, 1);
	bool computed = sqlite3_column_int(rows->stmt, 6) != 0;

	for (int i = 0; name && columns[i]; i++)
		if (sqlite3_stricmp(columns[i], name) == 0 && !computed)
			*seen |= UINT32_C(1) << i;
}

static kpack_error_t look_at_columns(struct sqlite_rows *rows, const char *const *columns,
				     bool *has, struct kpackx_error *why)
{
	uint32_t seen = 0, wanted = 0;
	bool more = true;

	for (int i = 0; columns[i]; i++)
		wanted |= UINT32_C(1) << i;
	while (more) {
		KP_TRY(sqlite_rows_next(rows, &more, why));
		if (more)
			see_column(rows, columns, &seen);
	}
	*has = seen == wanted;
	return KPACK_SUCCESS;
}

static kpack_error_t query_one(struct sqlite_file *f, const char *format,
			       const char *table, struct sqlite_rows **out,
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

/* rootpage > 0 excludes views and virtual tables, which have no page of their own. */
static kpack_error_t is_table(struct sqlite_file *f, const char *table, bool *is,
			      struct kpackx_error *why)
{
	struct sqlite_rows *rows = NULL;
	kpack_error_t err =
		query_one(f,
			  "SELECT 1 FROM main.sqlite_master WHERE type = 'table' AND "
			  "name = %Q COLLATE NOCASE AND rootpage > 0",
			  table, &rows, why);

	if (!err)
		err = sqlite_rows_next(rows, is, why);
	sqlite_rows_close(rows);
	return err;
}

kpack_error_t sqlite_file_has(struct sqlite_file *f, const char *table,
			      const char *const *columns, bool *has,
			      struct kpackx_error *why)
{
	struct sqlite_rows *rows = NULL;
	kpack_error_t err;

	KP_TRY(is_table(f, table, has, why));
	if (!*has)
		return KPACK_SUCCESS;
	err = query_one(f, "PRAGMA main.table_xinfo(%Q)", table, &rows, why);
	if (!err)
		err = look_at_columns(rows, columns, has, why);
	sqlite_rows_close(rows);
	return err;
}
