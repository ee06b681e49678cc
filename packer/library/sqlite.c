/* SPDX-License-Identifier: MIT */
/*
 * Reading and copying databases with SQLite.  A database is opened through a file system of its own,
 * which has that one file and reads it from any run of bytes: SQLite opens no path, finds no journal
 * beside the file, takes no lock, asks no clock, and gets no random numbers, so that equal
 * input gives equal bytes.
 *
 * The schema is text that the file's author wrote and SQLite compiles: all that it could do
 * besides holding tables and indexes is forbidden, and what a query may cost is counted.
 *
 * The header says without SQLite whether a file is whole, and whether a loader can open it where
 * nothing can be written.  Its fields are big-endian:
 *
 *	 0  "SQLite format 3", NUL      28 u32 pages, as of change number 92
 *	16  u16 page size; 1: 65536     44 u32 schema format
 *	18  u8 write version, 19 u8 read version; 2: WAL
 *	20  u8 reserved bytes at the end of each page
 *	21  three u8 fractions, always 64, 32, 32
 *	24  u32 number of changes       56 u32 text encoding
 *	72  five u32 that are zero      92 u32 number of changes that the page count is for
 *
 * A copy is made on the same file system, with a journal in memory: a copy that fails is
 * discarded whole, so nothing is flushed.
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
	const char *called;     /* that file in messages */
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

/* --- errors and bounds ---------------------------------------------------------------- */

/* Fill WHY with the reason why the connection to F failed last. */
static kpack_error_t fail_query(const struct sqlite_file *f, struct kpackx_error *why)
{
	char text[160];
	int code = f->db ? sqlite3_errcode(f->db) : SQLITE_NOMEM;
	kpack_error_t err = f->io.code;

	if (code == SQLITE_NOMEM)
		return kp_fail_memory(why, 0, "SQLite");
	kp_text_escape(kp_span_str(sqlite3_errmsg(f->db)), text, sizeof(text));
	if (code == SQLITE_IOERR && (f->to || f->io.text[0])) {
		if (!f->io.text[0])
			err = kp_fail(why, KPACK_ERROR_IO_ERROR, "SQLite: %s", text);
		else if (why)
			*why = f->io;
		return f->to ? kp_fail_prefix(why, err, "%s", f->called) : err;
	}
	if (code == SQLITE_INTERRUPT && !f->to)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "SQLite: reading it takes more steps than %llu bytes can "
			       "justify: its pages are tangled",
			       (unsigned long long)f->source.size);
	return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "SQLite: %s%s",
		       f->to ? "its copy: " : "", text);
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

static uint32_t get_be(const uint8_t *p, size_t size)
{
	uint32_t n = 0;

	while (size--)
		n = n << 8 | *p++;
	return n;
}

kpack_error_t sqlite_header_check(const struct kp_source *source,
				  struct kpackx_error *why)
{
	static const char magic[16] = "SQLite format 3";
	static const struct {
		const char *name;
		uint8_t at, size, least, most;
	} fields[] = {
		{"write version", 18, 1, 1, 1},      {"read version", 19, 1, 1, 1},
		{"payload fraction", 21, 1, 64, 64}, {"payload fraction", 22, 1, 32, 32},
		{"payload fraction", 23, 1, 32, 32}, {"schema format", 44, 4, 0, 4},
		{"text encoding", 56, 4, 0, 3},      {"reserved field", 72, 4, 0, 0},
		{"reserved field", 76, 4, 0, 0},     {"reserved field", 80, 4, 0, 0},
		{"reserved field", 84, 4, 0, 0},     {"reserved field", 88, 4, 0, 0},
	};
	unsigned long long size = source->size;
	uint8_t head[100] = {0};
	uint32_t page_size, pages;
	size_t n = size < sizeof(head) ? (size_t)size : sizeof(head);
	bool stated;

	KP_TRY(kp_source_read(source, 0, head, n, why));
	if (n && memcmp(head, magic, n < sizeof(magic) ? n : sizeof(magic)) != 0)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "not an SQLite database: it does not begin with "
			       "\"SQLite format 3\"");
	if (n < sizeof(head))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "SQLite header: the file has %llu of its %zu bytes", size,
			       sizeof(head));
	page_size = get_be(head + 16, 2);
	if (page_size == 1)
		page_size = 65536;
	if (page_size < 512 || (page_size & (page_size - 1)) ||
	    page_size - head[20] < 480)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "SQLite header: page size (byte 16) is %u, with %u bytes "
			       "reserved: not a power of two from 512 to 65536 that has "
			       "480 bytes left",
			       page_size, head[20]);
	for (size_t i = 0; i < KP_COUNT(fields); i++) {
		uint32_t value = get_be(head + fields[i].at, fields[i].size);
		bool wal = i < 2 && value == 2;

		if (value < fields[i].least || value > fields[i].most)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "SQLite header: %s (byte %d) is %u%s",
				       fields[i].name, fields[i].at, value,
				       wal ? ": WAL mode, which cannot be read from a "
					     "read-only mount; switch it with "
					     "PRAGMA journal_mode=DELETE"
					   : ", which SQLite 3 does not write");
	}
	/*
	 * The page count is valid only if the last writer set it, with the number of changes that
	 * it is for: SQLite before 3.7 did not.  A file may have more bytes than the count says:
	 * SQLite does not read them.
	 */
	pages = get_be(head + 28, 4);
	stated = pages && memcmp(head + 24, head + 92, 4) == 0;
	if (stated && size < (uint64_t)pages * page_size)
		return kp_fail(
			why, KPACK_ERROR_INVALID_FORMAT,
			"SQLite header: page count (byte 28) is %u, %llu bytes, but "
			"the file has %llu: it is cut short",
			pages, (unsigned long long)pages * page_size, size);
	if (!stated && (size < page_size || size % page_size))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "SQLite header: page size (byte 16) is %u, and the file's "
			       "%llu bytes are no whole pages: it is cut short",
			       page_size, size);
	return KPACK_SUCCESS;
}

/* Open SOURCE; or begin a database in TO, which is empty, borrowed, and CALLED so in messages. */
static kpack_error_t open_any(const struct kp_source *source, struct kp_outfile *to,
			      const char *called, struct sqlite_file **out,
			      struct kpackx_error *why)
{
	struct sqlite_file *f = xcalloc(1, sizeof(*f));
	kpack_error_t err;
	int code;

	f->source = *source;
	f->to = to;
	f->called = called;
	/* a file system for each file, because SQLite finds them by name */
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
	};
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
	KP_TRY(sqlite_header_check(source, why));
	return open_any(source, NULL, NULL, out, why);
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

/* As sqlite_rows_open, of SQL made by sqlite3_mprintf or the like, which is freed. */
static kpack_error_t open_made(struct sqlite_file *f, char *sql, struct sqlite_rows *out,
			       struct kpackx_error *why)
{
	kpack_error_t err;

	if (!sql)
		xalloc_fail(0);
	err = sqlite_rows_open(f, sql, out, why);
	sqlite3_free(sql);
	return err;
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

kpack_error_t sqlite_file_has(struct sqlite_file *f, const char *table,
			      const char *const *columns, bool *has,
			      struct kpackx_error *why)
{
	KP_AUTO(sqlite_rows) tables = {0}, rows = {0};
	uint32_t missing = 0;
	bool more;

	/* rootpage > 0 excludes views and virtual tables, which have no page of their own */
	KP_TRY(open_made(f,
			 sqlite3_mprintf("SELECT 1 FROM main.sqlite_master WHERE type = "
					 "'table' AND name = %Q COLLATE NOCASE AND "
					 "rootpage > 0",
					 table),
			 &tables, why));
	KP_TRY(sqlite_rows_next(&tables, has, why));
	if (!*has)
		return KPACK_SUCCESS;
	for (int i = 0; columns[i]; i++)
		missing |= UINT32_C(1) << i;
	/* unlike table_info, it lists computed and hidden columns too: column 6 says so */
	KP_TRY(open_made(f, sqlite3_mprintf("PRAGMA main.table_xinfo(%Q)", table), &rows,
			 why));
	for (;;) {
		const char *name;

		KP_TRY(sqlite_rows_next(&rows, &more, why));
		if (!more)
			break;
		name = (const char *)sqlite3_column_text(rows.stmt, 1);
		for (int i = 0; name && columns[i]; i++)
			if (sqlite3_stricmp(columns[i], name) == 0 &&
			    sqlite3_column_int(rows.stmt, 6) == 0)
				missing &= ~(UINT32_C(1) << i);
	}
	*has = !missing;
	return KPACK_SUCCESS;
}

/* --- copying -------------------------------------------------------------------------- */

/* Names with this prefix are SQLite's own; SQLite creates them itself. */
#define SCHEMA                                                                           \
	"FROM main.sqlite_master WHERE sql IS NOT NULL AND "                             \
	"lower(substr(name, 1, 7)) <> 'sqlite_'"

static kpack_error_t run_sql(struct sqlite_file *f, const char *sql,
			     struct kpackx_error *why)
{
	return sqlite3_exec(f->db, sql, NULL, NULL, NULL) ? fail_query(f, why)
							  : KPACK_SUCCESS;
}

/* Copy the rows that QUERY selects into TABLE; QUERY is freed. */
static kpack_error_t copy_rows(struct sqlite_file *from, struct sqlite_file *to,
			       char *query, const char *table, struct kpackx_error *why)
{
	KP_AUTO(sqlite_rows) rows = {0}, insert = {0};
	sqlite3_str *into = sqlite3_str_new(NULL);
	kpack_error_t err = open_made(from, query, &rows, why);
	int columns = sqlite3_column_count(rows.stmt);
	bool more;

	sqlite3_str_appendf(into, "INSERT INTO main.\"%w\" VALUES (", table);
	for (int i = 0; i < columns; i++)
		sqlite3_str_appendall(into, i ? ",?" : "?");
	sqlite3_str_appendall(into, ")");
	if (err) {
		sqlite3_free(sqlite3_str_finish(into));
		return err;
	}
	KP_TRY(open_made(to, sqlite3_str_finish(into), &insert, why));
	for (;;) {
		KP_TRY(sqlite_rows_next(&rows, &more, why));
		if (!more)
			return KPACK_SUCCESS;
		for (int i = 0; i < columns; i++)
			if (sqlite3_bind_value(insert.stmt, i + 1,
					       sqlite3_column_value(rows.stmt, i)))
				return fail_query(to, why);
		KP_TRY(sqlite_rows_next(&insert, &more, why));
		if (sqlite3_reset(insert.stmt))
			return fail_query(to, why);
	}
}

/* Settings besides the schema, then the schema by its own CREATE statements, then the rows. */
static kpack_error_t fill_copy(struct sqlite_file *from, struct sqlite_file *to,
			       const char *table, const char *column, const char *value,
			       struct kpackx_error *why)
{
	/* the first three only work while TO is empty */
	static const char *const names[] = {"page_size", "encoding", "auto_vacuum",
					    "user_version", "application_id"};
	KP_AUTO(sqlite_rows) schema = {0}, tables = {0};
	bool more;

	/* the copy's steps count as work on the file that they come from */
	sqlite3_progress_handler(to->db, WORK_STEP, count_work, from);
	/*
	 * Nothing is flushed, because a failed copy is discarded.  Freed bytes are zeroed, so
	 * that the result does not depend on earlier contents of memory.
	 */
	KP_TRY(run_sql(to,
		       "PRAGMA journal_mode=MEMORY; PRAGMA synchronous=OFF; "
		       "PRAGMA locking_mode=EXCLUSIVE; PRAGMA secure_delete=ON; "
		       "PRAGMA ignore_check_constraints=ON; PRAGMA cache_size=-8000",
		       why));
	for (size_t i = 0; i < KP_COUNT(names); i++) {
		KP_AUTO(sqlite_rows) setting = {0};
		char sql[96];

		snprintf(sql, sizeof(sql), "PRAGMA main.%s", names[i]);
		KP_TRY(sqlite_rows_open(from, sql, &setting, why));
		KP_TRY(sqlite_rows_next(&setting, &more, why));
		snprintf(sql, sizeof(sql), "PRAGMA main.%s='%.31s'", names[i],
			 more ? (const char *)sqlite_bytes(setting.stmt, 0).data : "0");
		KP_TRY(run_sql(to, sql, why));
	}
	KP_TRY(run_sql(to, "BEGIN", why));
	KP_TRY(sqlite_rows_open(from, "SELECT sql " SCHEMA " ORDER BY rowid", &schema,
				why));
	for (;;) {
		KP_AUTO(sqlite_rows) create = {0};
		const char *sql;

		KP_TRY(sqlite_rows_next(&schema, &more, why));
		if (!more)
			break;
		sql = (const char *)sqlite_bytes(schema.stmt, 0).data;
		if (sqlite3_strnicmp(sql, "CREATE ", 7) != 0)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "SQLite: a statement of the schema is no CREATE");
		/* SQL behind the statement is ignored */
		KP_TRY(sqlite_rows_open(to, sql, &create, why));
		KP_TRY(sqlite_rows_next(&create, &more, why));
	}
	/* the names come from the copy, which has only the tables that were made here */
	KP_TRY(sqlite_rows_open(
		to, "SELECT name " SCHEMA " AND type = 'table' ORDER BY rowid", &tables,
		why));
	for (;;) {
		const char *name;
		char *query;

		KP_TRY(sqlite_rows_next(&tables, &more, why));
		if (!more)
			break;
		/*
		 * NOT INDEXED keeps the order of the table itself.  Values are compared as
		 * blobs, so that each row goes to exactly one copy, whatever collation the
		 * column has.
		 */
		name = (const char *)sqlite3_column_text(tables.stmt, 0);
		query = sqlite3_stricmp(name, table) != 0
				? sqlite3_mprintf("SELECT * FROM main.\"%w\" NOT INDEXED",
						  name)
				: sqlite3_mprintf(
					  "SELECT * FROM main.\"%w\" NOT INDEXED WHERE "
					  "typeof(\"%w\") = 'text' AND "
					  "CAST(\"%w\" AS BLOB) = CAST(%Q AS BLOB)",
					  name, column, column, value);
		KP_TRY(copy_rows(from, to, query, name, why));
	}
	sqlite_rows_fini(&tables); /* a reader in the transaction would keep it open */
	return run_sql(to, "COMMIT", why);
}

kpack_error_t sqlite_copy(struct sqlite_file *from, struct kp_outfile *to,
			  const char *called, const char *table, const char *column,
			  const char *value, struct kpackx_error *why)
{
	struct kp_source nothing_yet = kp_source_fd(to->fd, 0, 0);
	struct sqlite_file *f;
	kpack_error_t err;

	KP_TRY(open_any(&nothing_yet, to, called, &f, why));
	err = fill_copy(from, f, table, column, value, why);
	sqlite_file_close(f);
	return err;
}
