/* SPDX-License-Identifier: MIT */
#include "sqlite_copy.h"

#include <stdio.h>
#include "sqlite_engine.h"
#include "packer/cli/xalloc.h"
#include "core/base/text.h"

struct copy {
	struct sqlite_file *from, *to;
	const char *called;
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

/* --- the schema ----------------------------------------------------------------------- */

static kpack_error_t read_setting(struct sqlite_file *f, const char *name, char *out,
				  size_t cap, struct kpackx_error *why)
{
	struct sqlite_rows *rows = NULL;
	char sql[64];
	bool more = false;
	kpack_error_t err;

	snprintf(sql, sizeof(sql), "PRAGMA main.%s", name);
	err = sqlite_rows_open(f, sql, &rows, why);
	if (!err)
		err = sqlite_rows_next(rows, &more, why);
	if (!err && more)
		snprintf(out, cap, "%s", (const char *)sqlite_rows_bytes(rows, 0).data);
	sqlite_rows_close(rows);
	return err;
}

/* Copy settings besides the schema; the first three only work while TO is empty. */
static kpack_error_t copy_settings(const struct copy *c, struct kpackx_error *why)
{
	static const char *const names[] = {"page_size", "encoding", "auto_vacuum",
					    "user_version", "application_id"};

	for (size_t i = 0; i < KP_COUNT(names); i++) {
		char value[32] = "0", sql[96];

		KP_TRY(read_setting(c->from, names[i], value, sizeof(value), why));
		snprintf(sql, sizeof(sql), "PRAGMA main.%s='%s'", names[i], value);
		KP_TRY(run_sql(c, sql, why));
	}
	return KPACK_SUCCESS;
}

/* Run one CREATE statement of the schema; SQL after it is ignored. */
static kpack_error_t make_item(const struct copy *c, const char *sql,
			       struct kpackx_error *why)
{
	sqlite3_stmt *stmt = NULL;
	int code;

	if (sqlite3_strnicmp(sql, "CREATE ", 7) != 0)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "SQLite: a statement of the schema is no CREATE");
	code = sqlite3_prepare_v2(c->to->db, sql, -1, &stmt, NULL);
	if (!code && sqlite3_step(stmt) == SQLITE_DONE)
		code = SQLITE_OK;
	else
		code = SQLITE_ERROR;
	return sqlite3_finalize(stmt) || code ? fail_writing(c, why) : KPACK_SUCCESS;
}

/* Names with this prefix are SQLite's own; SQLite creates them itself. */
#define SCHEMA                                                                           \
	"FROM main.sqlite_master WHERE sql IS NOT NULL AND "                             \
	"lower(substr(name, 1, 7)) <> 'sqlite_'"

static kpack_error_t copy_schema(const struct copy *c, struct kpackx_error *why)
{
	struct sqlite_rows *rows = NULL;
	kpack_error_t err = sqlite_rows_open(
		c->from, "SELECT sql " SCHEMA " ORDER BY rowid", &rows, why);
	bool more = true;

	while (!err && more) {
		err = sqlite_rows_next(rows, &more, why);
		if (!err && more)
			err = make_item(c, (const char *)sqlite_rows_bytes(rows, 0).data,
					why);
	}
	sqlite_rows_close(rows);
	return err;
}

/* --- rows ----------------------------------------------------------------------------- */

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

static kpack_error_t insert_rows(const struct copy *c, struct sqlite_rows *rows,
				 sqlite3_stmt *insert, struct kpackx_error *why)
{
	int columns = sqlite_rows_count(rows);
	bool more = true;

	for (;;) {
		KP_TRY(sqlite_rows_next(rows, &more, why));
		if (!more)
			return KPACK_SUCCESS;
		for (int i = 0; i < columns; i++)
			if (sqlite3_bind_value(insert, i + 1,
					       sqlite3_column_value(rows->stmt, i)))
				return fail_writing(c, why);
		if (sqlite3_step(insert) != SQLITE_DONE || sqlite3_reset(insert))
			return fail_writing(c, why);
	}
}

static kpack_error_t copy_rows(const struct copy *c, const char *table,
			       struct kpackx_error *why)
{
	struct sqlite_rows *rows = NULL;
	sqlite3_stmt *insert = NULL;
	char *sql = select_of(c, table), *into = NULL;
	kpack_error_t err;

	if (!sql)
		xalloc_fail(0);
	err = sqlite_rows_open(c->from, sql, &rows, why);
	if (!err) {
		into = insert_of(table, sqlite_rows_count(rows));
		if (!into)
			xalloc_fail(0);
		if (sqlite3_prepare_v2(c->to->db, into, -1, &insert, NULL))
			err = fail_writing(c, why);
	}
	if (!err)
		err = insert_rows(c, rows, insert, why);
	sqlite3_finalize(insert);
	sqlite_rows_close(rows);
	sqlite3_free(into);
	sqlite3_free(sql);
	return err;
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

/* --- the copy ------------------------------------------------------------------------- */

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
	sqlite3_progress_handler(c->to->db, SQLITE_WORK_STEP, sqlite_count_work, c->from);
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
	kpack_error_t err;

	KP_TRY(sqlite_file_create(to, &c.to, why));
	err = fill_copy(&c, why);
	sqlite_file_close(c.to);
	return err;
}
