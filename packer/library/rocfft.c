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
 *
 * A row's path was written where the library was built, and the tree may be anything: a path is
 * text until a file of the tree has it, and never leaves the tree.
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

/* Limit of rows in one database. */
#define ROWS_MAX (1 << 20)

/* Limits of further columns that become facts, of a text's bytes, and of factors. */
enum { COLUMNS_MAX = 12, TEXT_MAX = 200, FACTORS_MAX = 64 };

/* --- paths in rows ---------------------------------------------------------------------- */

/* A path being built, without empty components, "." and "..". */
struct whole {
	char text[KP_NAME_MAX + 1];
	size_t size;
};

/* Append PATH to W; false: it leaves the root, or cannot be a path. */
static bool enter_path(struct whole *w, struct kp_span path)
{
	while (path.size) {
		struct kp_span name = kp_span_word(&path, "/");

		if (name.size == 0 || kp_span_is(name, "."))
			continue;
		if (kp_span_is(name, "..")) {
			if (w->size == 0)
				return false;
			while (w->size > 0 && w->text[--w->size] != '/')
				;
			continue;
		}
		if (w->size + name.size + 1 > KP_NAME_MAX ||
		    memchr(name.data, 0, name.size))
			return false;
		if (w->size)
			w->text[w->size++] = '/';
		memcpy(w->text + w->size, name.data, name.size);
		w->size += name.size;
	}
	w->text[w->size] = '\0';
	return true;
}

bool kernel_path_find(const struct file_tree *tree, const char *database,
		      struct kp_span path, size_t *file)
{
	struct kp_span places[] = {kp_path_directory(database), {NULL, 0}};
	struct whole plain = {.size = 0};
	bool absolute = path.size && path.data[0] == '/';

	if (path.size > KP_NAME_MAX)
		return false;
	if (absolute) {
		/* resolve ".." first, so that no tail of the path begins with ".." */
		if (!enter_path(&plain, path))
			return false;
		path = (struct kp_span){(uint8_t *)plain.text, plain.size};
	}
	while (path.size) {
		for (size_t i = 0; i < KP_COUNT(places); i++) {
			struct whole w = {.size = 0};

			if (enter_path(&w, places[i]) && enter_path(&w, path) &&
			    w.size > 0 && file_tree_find(tree, w.text, file))
				return true;
		}
		if (!absolute)
			return false;
		/* the machine that built it had more directories above */
		kp_span_word(&path, "/");
	}
	return false;
}

/* --- rows ------------------------------------------------------------------------------- */

/* The columns in the order of the query; those of its * follow. */
enum { ARCH, LENGTH, PRECISION, PATH, REST };

static kpack_error_t kernel_paths_are_there(struct sqlite_file *f, bool *are,
					    struct kpackx_error *why)
{
	static const char *const columns[] = {"arch", "length", "precision",
					      "kernel_path", NULL};

	return sqlite_file_has(f, "kernels", columns, are, why);
}

/*
 * Read the numbers in "2,2,2", "2 2 2", "2x2x2", "[2, 2, 2]": generators write factors in many ways.
 * What cannot be read as numbers stays text; 18 digits fit into 64 bits.
 */
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

/* Add the facts of the row: those of the key, factors, and the first few further columns. */
static void add_facts(sqlite3_stmt *row, const struct kernel_path *p, struct facts *facts)
{
	/* names that mean something else in an entry */
	static const char taken[] =
		"arch kernel_path path target xxh3 chunk mode length "
		"library role factors precision container variant type";
	int columns = sqlite3_column_count(row), added = 0;
	uint64_t numbers[FACTORS_MAX];
	size_t n;

	if (p->length.size <= TEXT_MAX && p->length.size && kp_text_ok(p->length))
		kernel_name_length_fact(p->length, facts);
	facts_short(facts, "precision", p->precision, TEXT_MAX);
	/* factors first: what follows may be too much */
	for (int i = REST; i < columns; i++) {
		const char *name = sqlite3_column_name(row, i);

		if (!name)
			xalloc_fail(0);
		if (strcasecmp(name, "factors") != 0)
			continue;
		n = numbers_in(sqlite_bytes(row, i), numbers, FACTORS_MAX);
		if (n)
			facts_numbers(facts, "factors", numbers, n);
		else
			facts_short(facts, "factors", sqlite_bytes(row, i), TEXT_MAX);
		break;
	}
	for (int i = REST; i < columns && added < COLUMNS_MAX; i++) {
		const char *name = sqlite3_column_name(row, i);
		struct kp_span text = kp_span_str(name ? name : "");
		int type = sqlite3_column_type(row, i);

		if (!name)
			xalloc_fail(0);
		if (text.size == 0 || text.size > 32 || name[0] < 'a' || name[0] > 'z' ||
		    strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != text.size ||
		    kp_span_is_one_of(text, taken) || facts_has(facts, name))
			continue;
		added++;
		if (type == SQLITE_INTEGER)
			facts_signed(facts, name, sqlite3_column_int64(row, i));
		else if (type == SQLITE_TEXT || type == SQLITE_FLOAT)
			facts_short(facts, name, sqlite_bytes(row, i), TEXT_MAX);
	}
}

kpack_error_t kernel_paths_each(const struct file_tree *tree, size_t file,
				kernel_path_use *use, void *arg, struct kpackx_error *why)
{
	struct sqlite_rows rows = {0};
	struct sqlite_file *f = NULL;
	struct file_bytes bytes;
	kpack_error_t err;
	bool more = false;

	KP_TRY(file_tree_open(tree, file, &bytes, why));
	err = sqlite_file_open(&bytes.source, &f, why);
	if (!err)
		err = kernel_paths_are_there(f, &more, why);
	/* NOT INDEXED: the order of the table, which is that of the keys' numbers, is its own */
	if (!err && more)
		err = sqlite_rows_open(f,
				       "SELECT arch, length, precision, kernel_path, * "
				       "FROM main.kernels NOT INDEXED",
				       &rows, why);
	for (uint64_t number = 1; !err && more; number++) {
		struct kp_span key[REST];
		struct facts facts = {0};
		struct kernel_path p;

		err = sqlite_rows_next(&rows, &more, why);
		if (err || !more)
			break;
		if (number > ROWS_MAX) {
			err = kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				      "kernels: more than %d rows", ROWS_MAX);
			break;
		}
		/* numbers as text; blobs are nothing */
		for (int i = 0; i < REST; i++)
			key[i] = sqlite3_column_type(rows.stmt, i) == SQLITE_BLOB
					 ? kp_span_str("")
					 : sqlite_bytes(rows.stmt, i);
		p = (struct kernel_path){.row = number,
					 .arch = key[ARCH],
					 .length = key[LENGTH],
					 .precision = key[PRECISION],
					 .path = key[PATH],
					 .facts = &facts};
		add_facts(rows.stmt, &p, &facts);
		p.exists =
			kernel_path_find(tree, tree->items[file].path, p.path, &p.file);
		use(arg, &p);
		facts_fini(&facts);
	}
	sqlite_rows_fini(&rows); /* before its file is closed */
	sqlite_file_close(f);
	file_bytes_close(&bytes);
	return err;
}

/* --- collecting rows -------------------------------------------------------------------- */

/* A row that names a file. */
struct path_row {
	char *key; /* without #n */
	char arch[KP_TARGET_TEXT_MAX];
	size_t file, database;
	size_t place; /* its number among all rows */
	size_t n;     /* rows before it with the same key */
	struct facts facts;
};

struct path_keys {
	const struct library *self;
	struct library_found *found;
	struct path_row *rows;
	size_t n_rows, cap;
	size_t database; /* the one being read, and the first fault in its rows */
	char fault[240];
	size_t n_faults;
};

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
	const char *column = NULL, *what = "cannot be in a key";
	struct kp_span value = p->path;
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
		what = "does not exist";
	}
	if (column) {
		if (k->n_faults++ == 0)
			snprintf(k->fault, sizeof(k->fault),
				 "kernels: row %llu: %s '%s' %s",
				 (unsigned long long)p->row, column,
				 kp_text_escape(value, text, sizeof(text)), what);
		return;
	}
	row.key = xasprintf("fft/%s/%.*s/%.*s/kernel", row.arch, (int)p->length.size,
			    (const char *)p->length.data, (int)p->precision.size,
			    (const char *)p->precision.data);
	row.facts = *p->facts;
	*p->facts = (struct facts){0};
	xgrow(&k->rows, k->n_rows, &k->cap, sizeof(row));
	k->rows[k->n_rows++] = row;
}

/* One warning for a database, however many rows are wrong, and none over an earlier one. */
static void warn_of_rows(struct library_object *o, const char *fault, size_t n)
{
	if (n == 1 && !o->warning)
		library_warn(o, "%s", fault);
	else if (n && !o->warning)
		library_warn(o, "%s; and %zu more of its rows", fault, n - 1);
}

/* --- facts of several rows -------------------------------------------------------------- */

/*
 * Facts are pairs of MessagePack behind each other; two are equal if their bytes are, because one
 * writer has made them.
 */

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

/* Remove from F all pairs that OTHER does not have. */
static void keep_common(struct facts *f, const struct facts *other)
{
	struct kp_mp c = kp_mp_over((struct kp_span){f->pairs, f->size});
	struct kp_span pair, name, other_pair, other_name;
	size_t size = 0;

	f->count = 0;
	while (next_pair(&c, &pair, &name)) {
		struct kp_mp d = kp_mp_over((struct kp_span){other->pairs, other->size});
		bool common = false;

		while (!common && next_pair(&d, &other_pair, &other_name))
			common = kp_span_eq(pair, other_pair);
		if (!common)
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

/* --- the files that rows name ----------------------------------------------------------- */

/*
 * Add the keys of N rows that name one file.  One that belongs to nobody is claimed, if it is code: a
 * table can name any file.  Else its database gets a warning; only what ends the run is an error.
 */
static kpack_error_t add_keys(struct path_keys *k, struct path_row *rows, size_t n,
			      struct kpackx_error *why)
{
	const struct file_tree *tree = k->found->tree;
	struct library_object **slot = &k->found->objects[rows[0].file], *o;
	KP_AUTO(facts) base = {0};

	if (!*slot) {
		struct library_question q = {.library = k->self,
					     .tree = tree,
					     .file = rows[0].file,
					     .path = tree->items[rows[0].file].path};
		struct kp_span path = kp_span_str(q.path), container = {0};
		struct file_bytes bytes = {.fd = -1};
		struct kpackx_error fault = {0};
		bool is_code = false;
		char text[240];
		kpack_error_t err = library_question_open(&q, &bytes, &fault);

		if (!err) {
			container = kp_span_str(content_container(&q));
			is_code = kp_span_is_one_of(container, "elf ccob bundle") ||
				  (!kp_span_is(container, "host-elf") &&
				   (kp_span_ends(path, ".co") ||
				    kp_span_ends(path, ".hsaco")));
		}
		if (is_code) {
			q.out.role = "kernel";
			err = arch_decide(&q, rows[0].arch, &fault);
		}
		file_bytes_close(&bytes);
		if (err || !is_code) {
			library_object_fini(&q.out);
			if (err == KPACK_ERROR_OUT_OF_MEMORY) {
				if (why)
					*why = fault;
				return err;
			}
			snprintf(text, sizeof(text), "kernels: %.100s %s%.80s", q.path,
				 err ? "cannot be read: " : "is no code object",
				 fault.text);
			warn_of_rows(k->found->objects[rows[0].database], text, n);
			return KPACK_SUCCESS;
		}
		*slot = xmalloc(sizeof(q.out));
		**slot = q.out;
	}
	o = *slot;
	/* each key has the file's facts and its row's; the path has what all rows agree on */
	facts_join(&base, &o->facts);
	for (size_t i = 0; i < n; i++) {
		struct facts facts = {0};
		bool agrees = false;

		facts_join(&facts, &base);
		add_new(&facts, &rows[i].facts);
		if (rows[i].n)
			library_add_key(o, facts, "%s#%zu", rows[i].key, rows[i].n);
		else
			library_add_key(o, facts, "%s", rows[i].key);
		for (size_t a = 0; a < o->n_arches; a++)
			agrees |= strcmp(o->arches[a], KP_ARCH_GENERIC) == 0 ||
				  arch_agrees(o->arches[a], rows[i].arch);
		if (!o->warning && !agrees)
			library_warn(o, "it is for %s, but %s says %s", o->arches[0],
				     rows[i].key, rows[i].arch);
	}
	for (size_t i = 1; i < n; i++)
		keep_common(&rows[0].facts, &rows[i].facts);
	add_new(&o->facts, &rows[0].facts);
	return KPACK_SUCCESS;
}

/* Add a key for each row of SELF's databases.  OUT_OF_MEMORY, and IO_ERROR. */
static kpack_error_t rocfft_finish(const struct library *self,
				   struct library_found *found, struct kpackx_error *why)
{
	struct path_keys k = {.self = self, .found = found};
	kpack_error_t err = KPACK_SUCCESS;

	for (size_t i = 0; !err && i < found->tree->count; i++) {
		struct library_object *o = found->objects[i];
		struct kpackx_error fault = {0};

		if (!o || !o->path || o->library != self->name ||
		    strcmp(o->role, "cache") != 0)
			continue;
		k.database = i;
		k.n_faults = 0;
		err = kernel_paths_each(found->tree, i, collect_row, &k, &fault);
		if (err == KPACK_ERROR_OUT_OF_MEMORY) {
			if (why)
				*why = fault;
			break;
		}
		/* it was open before: an error is from a later change, or from the rows */
		if (err)
			library_warn(o, "its kernel paths cannot be read: %s",
				     fault.text);
		else
			warn_of_rows(o, k.fault, k.n_faults);
		err = KPACK_SUCCESS;
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

/* --- which files are databases ---------------------------------------------------------- */

static bool is_database_name(const char *path)
{
	struct kp_span name = kp_span_str(path);

	return kp_span_ends(name, ".db") || kp_span_ends(name, ".sqlite") ||
	       kp_span_ends(name, ".sqlite3");
}

/* Whether PATH is below a directory in which an invalid database is a fault. */
static bool is_in_fft(const char *path)
{
	struct kp_span rest;

	return path_below(path, "rocfft", &rest) || path_below(path, "hipfft", &rest) ||
	       path_below(path, "fft", &rest);
}

/* Below the directories any file may be a database; elsewhere the name must say so. */
static bool rocfft_probe(const struct library_question *q)
{
	return is_database_name(q->path) || is_in_fft(q->path);
}

static kpack_error_t rocfft_check(struct library_question *q, struct kpackx_error *why)
{
	char arch[KP_TARGET_TEXT_MAX];
	const char *named = kernel_cache_named(q->path, arch) ? arch : NULL;
	/* elsewhere, a database that is none, or damaged, is no fault of this library */
	bool expected = named || (is_in_fft(q->path) && is_database_name(q->path));
	static const uint8_t magic[8] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
	KP_AUTO_FREE char *journal = xasprintf("%s-journal", q->path);
	struct file_bytes bytes = {.fd = -1};
	struct sqlite_file *f = NULL;
	uint8_t head[8] = {0};
	kpack_error_t err;
	size_t file;

	if (!expected && strcmp(content_container(q), "sqlite") != 0)
		return KPACK_SUCCESS;
	facts_string(&q->out.facts, "container", "sqlite");
	q->out.role = "cache";
	q->out.at_random = true;
	if (named && *named)
		library_add_arch(&q->out, named);
	err = sqlite_file_open(q->source, &f, why);
	if (!err && named)
		err = kernel_cache_describe(f, named, &q->mine, &q->out, why);
	if (!err && !q->mine)
		err = kernel_paths_are_there(f, &q->mine, why);
	sqlite_file_close(f);
	/*
	 * The journal of an unfinished change: the database is only whole together with it, and
	 * it cannot be played back on a read-only mount.
	 */
	if (!err && q->mine && !q->plain && file_tree_find(q->tree, journal, &file) &&
	    q->tree->items[file].size >= sizeof(head)) {
		err = file_tree_open(q->tree, file, &bytes, why);
		if (!err)
			err = kp_source_read(&bytes.source, 0, head, sizeof(head), why);
		file_bytes_close(&bytes);
		if (!err && memcmp(head, magic, sizeof(head)) == 0)
			err = kp_fail(
				why, KPACK_ERROR_INVALID_FORMAT,
				"next to it is the journal of an unfinished change; "
				"open it once with sqlite3 to undo the change");
	}
	/* a file that stays a file may be damaged, and still be for one GPU */
	if (err == KPACK_ERROR_INVALID_FORMAT && expected && q->plain) {
		q->mine = true;
		q->out.role = "file";
		return KPACK_SUCCESS;
	}
	return err == KPACK_ERROR_INVALID_FORMAT && !expected && !q->mine ? KPACK_SUCCESS
									  : err;
}

const struct library library_rocfft = {.name = "rocfft",
				       .probe = rocfft_probe,
				       .check = rocfft_check,
				       .finish = rocfft_finish};
