/* SPDX-License-Identifier: MIT */
/*
 * rocFFT: which files are its databases, and what tables of kernel paths say about other files.
 *
 * Each row of such a table names a code object next to the database.  That file becomes
 * rocFFT's, if it belongs to nobody, and gets the key fft/<arch>/<length>/<precision>/kernel,
 * with the row's columns as metadata.  Further rows of the same arch, length and precision
 * get kernel#1, kernel#2 ..., in order of databases and rows.  The entry with the file's path
 * has the metadata on which all rows that name the file agree.  A row that cannot be used
 * gives its database a warning.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include "arch_name.h"
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "core/base/msgpack_read.h"
#include "core/base/order.h"
#include "core/base/path.h"
#include "core/base/text.h"
#include "packer/cli/xalloc.h"
#include "rocfft.h"

/*
 * A row's path was written where the library was built, and the tree may be anything: a path is
 * text until a file of the tree has it, and never leaves the tree.
 */

/* --- paths in rows --------------------------------------------------------------------- */

/* A path being built, without empty components, "." and "..". */
struct whole {
	char text[KP_NAME_MAX + 1];
	size_t size, depth;
};

/* Append PATH to W; false: it leaves the root, or cannot be a path. */
static bool enter_path(struct whole *w, struct kp_span path)
{
	while (path.size) {
		const uint8_t *slash = memchr(path.data, '/', path.size);
		struct kp_span name = kp_span_head(
			path, slash ? (size_t)(slash - path.data) : path.size);

		path = kp_span_tail(path, name.size + (slash != NULL));
		if (name.size == 0 || kp_span_is(name, "."))
			continue;
		if (kp_span_is(name, "..")) {
			if (w->size == 0)
				return false;
			while (w->size > 0 && w->text[--w->size] != '/')
				;
			w->depth--;
			continue;
		}
		if (w->size + name.size + 1 > KP_NAME_MAX ||
		    w->depth == KP_PATH_DEPTH_MAX || memchr(name.data, 0, name.size))
			return false;
		if (w->size)
			w->text[w->size++] = '/';
		memcpy(w->text + w->size, name.data, name.size);
		w->size += name.size;
		w->depth++;
	}
	return true;
}

static bool find_below(const struct file_tree *tree, struct kp_span dir,
		       struct kp_span path, size_t *file)
{
	struct whole w = {.size = 0};

	return enter_path(&w, dir) && enter_path(&w, path) && w.size > 0 &&
	       file_tree_find(tree, (struct kp_span){(uint8_t *)w.text, w.size}, file);
}

bool kernel_path_find(const struct file_tree *tree, const char *database,
		      struct kp_span path, size_t *file)
{
	struct kp_span dir = kp_path_directory(database), root = {0};
	struct whole w = {.size = 0};
	bool absolute;

	if (path.size == 0 || path.size > KP_NAME_MAX)
		return false;
	absolute = path.data[0] == '/';
	if (absolute) {
		/* resolve ".." first, so that no tail of the path begins with ".." */
		if (!enter_path(&w, path))
			return false;
		path = (struct kp_span){(uint8_t *)w.text, w.size};
	}
	while (path.size) {
		const uint8_t *slash = memchr(path.data, '/', path.size);

		if (find_below(tree, dir, path, file) ||
		    find_below(tree, root, path, file))
			return true;
		if (!absolute)
			return false;
		/* the machine that built it had more directories above */
		path = kp_span_tail(path,
				    slash ? (size_t)(slash - path.data) + 1 : path.size);
	}
	return false;
}

/* --- facts in rows --------------------------------------------------------------------- */

/* Limits of further columns that become facts, and of a text's bytes. */
enum { COLUMNS_MAX = 12, TEXT_MAX = 200 };

/* The columns in the order of the query; those of its * follow. */
enum { ARCH, LENGTH, PRECISION, PATH, REST };

/* Whether a column's NAME can be that of a fact: not if it means something in an entry. */
static bool is_fact_name(const char *name)
{
	static const char *const taken[] = {
		"arch",    "kernel_path", "path",      "target",  "xxh3",
		"chunk",   "mode",        "length",    "library", "role",
		"factors", "precision",   "container", "variant", "type"};
	size_t n = strlen(name);

	for (size_t i = 0; i < KP_COUNT(taken); i++)
		if (strcmp(name, taken[i]) == 0)
			return false;
	return n && n <= 32 && name[0] >= 'a' && name[0] <= 'z' &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == n;
}

static bool is_short_text(struct kp_span text)
{
	return text.size && text.size <= TEXT_MAX && kp_text_ok(text);
}

/*
 * The table's columns are not fixed, and generators write factors in many ways.  What cannot be
 * read as numbers stays text; 18 digits fit into 64 bits.
 */

/* Read the numbers in "2,2,2", "2 2 2", "2x2x2", "[2, 2, 2]". */
static size_t numbers_in(struct kp_span text, uint64_t *out, size_t cap)
{
	size_t n = 0;

	for (size_t i = 0; i < text.size;) {
		uint64_t number = 0;
		size_t begin = i;

		while (i < text.size && text.data[i] >= '0' && text.data[i] <= '9' &&
		       i - begin < 18)
			number = number * 10 + (uint64_t)(text.data[i++] - '0');
		if (i > begin) {
			if (n == cap || i - begin == 18)
				return 0;
			out[n++] = number;
		} else if (!memchr(" ,;x*_[]()", text.data[i++], 10)) {
			return 0;
		}
	}
	return n;
}

static const char *column_name(sqlite3_stmt *row, int column)
{
	const char *name = sqlite3_column_name(row, column);

	if (!name)
		xalloc_fail(0);
	return name;
}

/* Add the facts of the row: those of the key, factors, and the first few further columns. */
static void add_facts(sqlite3_stmt *row, const struct kernel_path *p, struct facts *facts)
{
	uint64_t numbers[KERNEL_NAME_FACTORS_MAX];
	int added = 0;

	if (is_short_text(p->length))
		kernel_name_length_fact(p->length, facts);
	if (is_short_text(p->precision))
		facts_text(facts, "precision", p->precision);
	for (int i = REST; i < sqlite3_column_count(row); i++) {
		struct kp_span text;
		size_t n;

		if (strcasecmp(column_name(row, i), "factors") != 0)
			continue;
		text = sqlite_bytes(row, i);
		n = numbers_in(text, numbers, KERNEL_NAME_FACTORS_MAX);
		if (n)
			facts_numbers(facts, "factors", numbers, n);
		else if (is_short_text(text))
			facts_text(facts, "factors", text);
		break;
	}
	for (int i = REST; i < sqlite3_column_count(row) && added < COLUMNS_MAX; i++) {
		const char *name = column_name(row, i);
		int type = sqlite3_column_type(row, i);

		if (!is_fact_name(name) || facts_has(facts, name))
			continue;
		added++;
		if (type == SQLITE_INTEGER)
			facts_signed(facts, name, sqlite3_column_int64(row, i));
		else if ((type == SQLITE_TEXT || type == SQLITE_FLOAT) &&
			 is_short_text(sqlite_bytes(row, i)))
			facts_text(facts, name, sqlite_bytes(row, i));
	}
}

/* --- reading rows ---------------------------------------------------------------------- */

static kpack_error_t kernel_paths_are_there(struct sqlite_file *f, bool *are,
					    struct kpackx_error *why)
{
	static const char *const columns[] = {"arch", "length", "precision",
					      "kernel_path", NULL};

	return sqlite_file_has(f, "kernels", columns, are, why);
}

/* A column of the key as text; numbers are text then, and blobs are nothing. */
static struct kp_span text_of(sqlite3_stmt *row, int column)
{
	if (sqlite3_column_type(row, column) == SQLITE_BLOB)
		return (struct kp_span){(const uint8_t *)"", 0};
	return sqlite_bytes(row, column);
}

/* NOT INDEXED: the order of the table, which is that of the keys' numbers, is its own. */
static kpack_error_t each_row(struct sqlite_file *f, const struct file_tree *tree,
			      const char *database, kernel_path_use *use, void *arg,
			      struct kpackx_error *why)
{
	KP_AUTO(sqlite_rows) rows = {0};
	bool more;

	KP_TRY(kernel_paths_are_there(f, &more, why));
	if (!more)
		return KPACK_SUCCESS;
	KP_TRY(sqlite_rows_open(f,
				"SELECT arch, length, precision, kernel_path, * "
				"FROM main.kernels NOT INDEXED",
				&rows, why));
	for (uint64_t number = 1;; number++) {
		struct facts facts = {0};
		struct kernel_path p;

		KP_TRY(sqlite_rows_next(&rows, &more, why));
		if (!more)
			return KPACK_SUCCESS;
		if (number > KERNEL_PATHS_MAX)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "kernels: more than %d rows", KERNEL_PATHS_MAX);
		p = (struct kernel_path){
			.row = number,
			.arch = text_of(rows.stmt, ARCH),
			.length = text_of(rows.stmt, LENGTH),
			.precision = text_of(rows.stmt, PRECISION),
			.path = text_of(rows.stmt, PATH),
			.facts = &facts,
		};
		add_facts(rows.stmt, &p, &facts);
		p.exists = kernel_path_find(tree, database, p.path, &p.file);
		use(arg, &p);
		facts_fini(&facts);
	}
}

kpack_error_t kernel_paths_each(const struct file_tree *tree, size_t file,
				kernel_path_use *use, void *arg, struct kpackx_error *why)
{
	struct sqlite_file *f = NULL;
	struct file_bytes bytes;
	kpack_error_t err;

	KP_TRY(file_tree_open(tree, file, &bytes, why));
	err = sqlite_file_check_open(&bytes.source, &f, why);
	if (!err)
		err = each_row(f, tree, tree->items[file].path, use, arg, why);
	sqlite_file_close(f);
	file_bytes_close(&bytes);
	return err;
}

/* --- collecting rows ------------------------------------------------------------------- */

/* A row that names a file. */
struct path_row {
	char *key; /* without #n */
	char arch[KP_TARGET_TEXT_MAX];
	size_t file, database;
	size_t place; /* its number among all rows */
	size_t n;     /* rows before it with the same key */
	struct facts facts;
};

/* Faults in the rows of one database: the text of the first, and their number. */
struct row_faults {
	char first[240];
	size_t count;
};

struct path_keys {
	const struct library *self;
	struct library_found *found;
	struct path_row *rows;
	size_t n_rows, cap;
	size_t database; /* the one being read */
	struct row_faults faults;
};

/* One warning for a database, however many rows are wrong, and none over an earlier one. */
static void warn_of_rows(struct library_object *o, const struct row_faults *c)
{
	if (c->count == 0 || o->warning)
		return;
	if (c->count == 1)
		library_warn(o, "%s", c->first);
	else
		library_warn(o, "%s; and %zu more of its rows", c->first, c->count - 1);
}

/* Whether S can be a component of the key that readers find again. */
static bool is_key_part(struct kp_span s)
{
	return kp_component_ok(s) && kp_text_ok(s) && !memchr(s.data, '#', s.size);
}

/* Keep the row, with its facts, if its key can be made and its file exists. */
static void collect_row(void *arg, struct kernel_path *p)
{
	struct path_keys *k = arg;
	struct path_row row = {
		.file = p->file, .database = k->database, .place = k->n_rows};
	const char *column, *what = "cannot be in a key";
	struct kp_span value;
	char text[100];

	if (!cache_arch_ok(p->arch, row.arch)) {
		column = "arch";
		value = p->arch;
		what = "is no GPU";
	} else if (!is_key_part(p->length)) {
		column = "length";
		value = p->length;
	} else if (!is_key_part(p->precision)) {
		column = "precision";
		value = p->precision;
	} else if (!p->exists) {
		column = "kernel_path";
		value = p->path;
		what = "does not exist";
	} else {
		xgrow(&k->rows, k->n_rows, &k->cap, sizeof(row));
		row.key = xasprintf("fft/%s/%.*s/%.*s/kernel", row.arch,
				    (int)p->length.size, (const char *)p->length.data,
				    (int)p->precision.size,
				    (const char *)p->precision.data);
		row.facts = *p->facts;
		*p->facts = (struct facts){0};
		k->rows[k->n_rows++] = row;
		return;
	}
	if (k->faults.count++ == 0)
		snprintf(k->faults.first, sizeof(k->faults.first),
			 "kernels: row %llu: %s '%s' %s", (unsigned long long)p->row,
			 column, kp_text_escape(value, text, sizeof(text)), what);
}

/* The file was open before: an error is from a later change, or from the rows. */
static kpack_error_t collect_rows(struct path_keys *k, size_t file,
				  struct kpackx_error *why)
{
	struct library_object *o = k->found->objects[file];
	struct kpackx_error fault = {0};
	kpack_error_t err;

	k->database = file;
	k->faults = (struct row_faults){0};
	err = kernel_paths_each(k->found->tree, file, collect_row, k, &fault);
	if (err == KPACK_ERROR_OUT_OF_MEMORY) {
		if (why)
			*why = fault;
		return err;
	}
	if (err)
		library_warn(o, "its kernel paths cannot be read: %s", fault.text);
	else
		warn_of_rows(o, &k->faults);
	return KPACK_SUCCESS;
}

/*
 * Facts are pairs of MessagePack behind each other; two are equal if their bytes are, because one
 * writer has made them.
 */

/* --- facts of several rows ------------------------------------------------------------- */

/* Read the next pair of the cursor; false: no more pairs. */
static bool next_pair(struct kp_mp *c, struct kp_span *pair, struct kp_span *name)
{
	struct kp_mp_value head;
	const uint8_t *begin = c->pos;

	if (c->pos == c->end || !kp_mp_next(c, &head) || !kp_mp_skip(c))
		return false;
	*pair = (struct kp_span){begin, (size_t)(c->pos - begin)};
	*name = head.span;
	return true;
}

static bool has_pair(const struct facts *f, struct kp_span wanted)
{
	struct kp_mp c = kp_mp_over((struct kp_span){f->pairs, f->size});
	struct kp_span pair, name;

	while (next_pair(&c, &pair, &name))
		if (kp_span_eq(pair, wanted))
			return true;
	return false;
}

/* Remove from F all pairs that OTHER does not have. */
static void keep_common(struct facts *f, const struct facts *other)
{
	struct kp_mp c = kp_mp_over((struct kp_span){f->pairs, f->size});
	struct kp_span pair, name;
	size_t size = 0;

	f->count = 0;
	while (next_pair(&c, &pair, &name)) {
		if (!has_pair(other, pair))
			continue;
		memmove(f->pairs + size, pair.data, pair.size);
		size += pair.size;
		f->count++;
	}
	f->size = size;
}

/* Add to TO the pairs of FROM whose names TO does not have yet. */
static void add_new(struct facts *to, const struct facts *from)
{
	struct kp_mp c = kp_mp_over((struct kp_span){from->pairs, from->size});
	struct kp_span pair, name;
	char text[64];

	while (next_pair(&c, &pair, &name)) {
		struct facts one = {
			.pairs = (uint8_t *)pair.data, .size = pair.size, .count = 1};

		snprintf(text, sizeof(text), "%.*s", (int)name.size,
			 (const char *)name.data);
		if (!facts_has(to, text))
			facts_join(to, &one);
	}
}

/* --- the files that rows name ---------------------------------------------------------- */

/* Whether Q's file is code.  A table can name any file; other files are not claimed. */
static bool is_code(const struct library_question *q)
{
	const char *container = content_container(q), *dot = strrchr(q->path, '.');

	if (strcmp(container, "elf") == 0 || strcmp(container, "ccob") == 0 ||
	    strcmp(container, "bundle") == 0)
		return true;
	return strcmp(container, "host-elf") != 0 && dot &&
	       (strcmp(dot, ".co") == 0 || strcmp(dot, ".hsaco") == 0);
}

/*
 * Claim the file of ROW, which N rows name, or warn in its database; only OUT_OF_MEMORY is an
 * error.  *OUT: the file's object, or NULL.
 */
static kpack_error_t claim_file(struct path_keys *k, const struct path_row *row, size_t n,
				struct library_object **out, struct kpackx_error *why)
{
	const struct file_tree *tree = k->found->tree;
	struct library_object **slot = &k->found->objects[row->file];
	struct library_question q = {
		.tree = tree, .file = row->file, .path = tree->items[row->file].path};
	struct file_bytes bytes = {.fd = -1};
	struct row_faults c = {.count = n};
	struct kpackx_error fault = {0};
	kpack_error_t err = file_tree_open(tree, row->file, &bytes, &fault);

	*out = NULL;
	if (!err) {
		q.source = &bytes.source;
		q.head_size = bytes.source.size < sizeof(q.head)
				      ? (size_t)bytes.source.size
				      : sizeof(q.head);
		err = kp_source_read(&bytes.source, 0, q.head, q.head_size, &fault);
	}
	if (!err && is_code(&q)) {
		err = library_claim(k->self, k->found, row->file, out, &fault);
		if (!err) {
			(*out)->role = "kernel";
			err = arch_decide(&q, row->arch, *out, &fault);
		}
		if (!err && (*out)->n_arches == 0)
			library_add_arch(*out, KP_ARCH_GENERIC);
	}
	file_bytes_close(&bytes);
	if (!err && *out)
		return KPACK_SUCCESS;
	if (err && *slot) { /* it could not be described */
		library_object_fini(*slot);
		free(*slot);
		*slot = NULL;
	}
	*out = NULL;
	if (err == KPACK_ERROR_OUT_OF_MEMORY) {
		if (why)
			*why = fault;
		return err;
	}
	snprintf(c.first, sizeof(c.first), "kernels: %.100s %s%.80s", q.path,
		 err ? "cannot be read: " : "is no code object", fault.text);
	warn_of_rows(k->found->objects[row->database], &c);
	return KPACK_SUCCESS;
}

/* Add the key of ROW to O.  BASE: the file's facts before any row. */
static void add_key(struct library_object *o, const struct path_row *row,
		    const struct facts *base)
{
	struct facts facts = facts_copy(base);
	bool agrees = false;

	add_new(&facts, &row->facts);
	if (row->n)
		library_add_key(o, "%s#%zu", row->key, row->n);
	else
		library_add_key(o, "%s", row->key);
	library_key_facts(o, &facts);
	for (size_t i = 0; i < o->n_arches; i++)
		agrees |= strcmp(o->arches[i], KP_ARCH_GENERIC) == 0 ||
			  arch_agrees(o->arches[i], row->arch);
	if (!o->warning && !agrees)
		library_warn(o, "it is for %s, but %s says %s", o->arches[0], row->key,
			     row->arch);
}

/* Add the keys of N rows that name one file. */
static kpack_error_t add_keys(struct path_keys *k, struct path_row *rows, size_t n,
			      struct kpackx_error *why)
{
	struct library_object *o = k->found->objects[rows[0].file];
	struct facts base;

	if (!o)
		KP_TRY(claim_file(k, &rows[0], n, &o, why));
	if (!o)
		return KPACK_SUCCESS;
	/* each key has the file's facts and its row's; the path has what all rows agree on */
	base = facts_copy(&o->facts);
	for (size_t i = 0; i < n; i++)
		add_key(o, &rows[i], &base);
	facts_fini(&base);
	for (size_t i = 1; i < n; i++)
		keep_common(&rows[0].facts, &rows[i].facts);
	add_new(&o->facts, &rows[0].facts);
	return KPACK_SUCCESS;
}

/* Add a key for each row of SELF's databases.  OUT_OF_MEMORY, and IO_ERROR. */
static kpack_error_t finish_files(const struct library *self, struct library_found *found,
				  struct kpackx_error *why)
{
	struct path_keys k = {.self = self, .found = found};
	kpack_error_t err = KPACK_SUCCESS;

	for (size_t i = 0; !err && i < found->tree->count; i++) {
		const struct library_object *o = found->objects[i];

		if (o && o->path && o->library == self->name &&
		    strcmp(o->role, "cache") == 0)
			err = collect_rows(&k, i, why);
	}
	/* number the rows of each key, then go through them file by file */
	kp_sort(k.rows, k.n_rows, KP_BY_TEXT(struct path_row, key),
		KP_BY_NUMBER(struct path_row, place));
	for (size_t i = 1; i < k.n_rows; i++)
		if (strcmp(k.rows[i].key, k.rows[i - 1].key) == 0)
			k.rows[i].n = k.rows[i - 1].n + 1;
	kp_sort(k.rows, k.n_rows, KP_BY_NUMBER(struct path_row, file),
		KP_BY_NUMBER(struct path_row, place));
	for (size_t i = 0, end; !err && i < k.n_rows; i = end) {
		for (end = i + 1; end < k.n_rows && k.rows[end].file == k.rows[i].file;)
			end++;
		err = add_keys(&k, &k.rows[i], end - i, why);
	}
	for (size_t i = 0; i < k.n_rows; i++) {
		free(k.rows[i].key);
		facts_fini(&k.rows[i].facts);
	}
	free(k.rows);
	return err;
}

/* --- which files are databases --------------------------------------------------------- */

static bool is_database_name(const char *path)
{
	static const char *const ends[] = {".db", ".sqlite", ".sqlite3"};
	struct kp_span name = kp_span_str(path);

	for (size_t i = 0; i < KP_COUNT(ends); i++)
		if (name.size > strlen(ends[i]) && kp_span_ends(name, ends[i]))
			return true;
	return false;
}

/* Whether PATH is below a directory in which an invalid database is a fault. */
static bool is_in_fft(const char *path)
{
	struct kp_span rest;

	return path_below(path, "rocfft", &rest) || path_below(path, "hipfft", &rest) ||
	       path_below(path, "fft", &rest);
}

/* Below the directories any file may be a database; elsewhere the name must say so. */
static bool probe_file(const struct library *self, const struct library_question *q)
{
	(void)self;
	return is_database_name(q->path) || is_in_fft(q->path);
}

/*
 * Refuse a database with the journal of an unfinished change: it is only whole together
 * with the journal, which cannot be played back on a read-only mount.
 */
static kpack_error_t check_journal(const struct library_question *q,
				   struct kpackx_error *why)
{
	static const uint8_t magic[8] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
	KP_AUTO_FREE char *path = xasprintf("%s-journal", q->path);
	struct file_bytes bytes;
	uint8_t head[8] = {0};
	size_t file;
	kpack_error_t err;

	if (!file_tree_find(q->tree, kp_span_str(path), &file) ||
	    q->tree->items[file].size < sizeof(head))
		return KPACK_SUCCESS;
	KP_TRY(file_tree_open(q->tree, file, &bytes, why));
	err = kp_source_read(&bytes.source, 0, head, sizeof(head), why);
	file_bytes_close(&bytes);
	if (!err && memcmp(head, magic, sizeof(head)) == 0)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "next to it is the journal of an unfinished change; "
			       "open it once with sqlite3 to undo the change");
	return err;
}

/* Look at its tables.  NAMED: the cache's arch; NULL: its name is not that of a cache. */
static kpack_error_t look_inside(const struct library_question *q, const char *named,
				 bool *mine, struct library_object *out,
				 struct kpackx_error *why)
{
	struct sqlite_file *f = NULL;
	kpack_error_t err = sqlite_file_open(q->source, &f, why);

	facts_string(&out->facts, "container", "sqlite");
	out->role = "cache";
	out->at_random = true;
	if (named && *named)
		library_add_arch(out, named);
	if (!err && named)
		err = kernel_cache_describe(f, named, mine, out, why);
	if (!err && !*mine)
		err = kernel_paths_are_there(f, mine, why);
	sqlite_file_close(f);
	return err;
}

static kpack_error_t check_file(const struct library *self,
				const struct library_question *q, bool *mine,
				struct library_object *out, struct kpackx_error *why)
{
	char arch[KP_TARGET_TEXT_MAX];
	const char *named = kernel_cache_named(q->path, arch) ? arch : NULL;
	/* elsewhere, a database that is none, or damaged, is no fault of this library */
	bool expected = named || (is_in_fft(q->path) && is_database_name(q->path));
	kpack_error_t err;

	(void)self;
	*mine = false;
	if (!expected && !sqlite_header_probe(q->head, q->head_size))
		return KPACK_SUCCESS;
	err = sqlite_header_check(q->source, q->head, q->head_size, why);
	/* a file that stays a file may be damaged, and still be for one GPU */
	if (err == KPACK_ERROR_INVALID_FORMAT && expected && q->plain) {
		*mine = true;
		if (named && *named)
			library_add_arch(out, named);
		return KPACK_SUCCESS;
	}
	if (!err)
		err = look_inside(q, named, mine, out, why);
	if (!err && *mine && !q->plain)
		err = check_journal(q, why);
	/* a damaged database in any other place is somebody else's */
	return err == KPACK_ERROR_INVALID_FORMAT && !expected && !*mine ? KPACK_SUCCESS
									: err;
}

const struct library library_rocfft = {.name = "rocfft",
				       .probe = probe_file,
				       .check = check_file,
				       .finish = finish_files};
