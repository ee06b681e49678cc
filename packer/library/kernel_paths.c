/* SPDX-License-Identifier: MIT */
#include "kernel_paths.h"
#include <stdio.h>
#include <stdlib.h>
#include "kernel_name.h"
#include "core/base/bounds.h"
#include "core/base/path.h"
#include "sqlite_header.h"
#include "core/base/text.h"

/* --- paths ---------------------------------------------------------------------------- */

/* A path being built, without empty components, "." and "..". */
struct whole {
	char text[KP_NAME_MAX + 1];
	size_t size, depth;
};

static bool leave_directory(struct whole *w)
{
	if (w->size == 0)
		return false;
	while (w->size > 0 && w->text[--w->size] != '/')
		;
	w->depth--;
	return true;
}

static bool enter_component(struct whole *w, struct kp_span name)
{
	if (name.size == 0 || kp_span_is(name, "."))
		return true;
	if (kp_span_is(name, ".."))
		return leave_directory(w);
	if (w->size + name.size + 1 > KP_NAME_MAX || w->depth == KP_PATH_DEPTH_MAX ||
	    memchr(name.data, 0, name.size))
		return false;
	if (w->size)
		w->text[w->size++] = '/';
	memcpy(w->text + w->size, name.data, name.size);
	w->size += name.size;
	w->depth++;
	return true;
}

/* Take the first component from *PATH. */
static struct kp_span cut_name(struct kp_span *path)
{
	const uint8_t *slash = path->size ? memchr(path->data, '/', path->size) : NULL;
	size_t n = slash ? (size_t)(slash - path->data) : path->size;
	struct kp_span name = {path->data, n};

	n += slash ? 1 : 0;
	*path = (struct kp_span){path->data + n, path->size - n};
	return name;
}

static bool enter_path(struct whole *w, struct kp_span path)
{
	while (path.size)
		if (!enter_component(w, cut_name(&path)))
			return false;
	return true;
}

static bool find_below(const struct file_tree *tree, struct kp_span dir,
		       struct kp_span path, size_t *file)
{
	struct whole w = {.size = 0};

	return enter_path(&w, dir) && enter_path(&w, path) && w.size > 0 &&
	       file_tree_find(tree, (struct kp_span){(uint8_t *)w.text, w.size}, file);
}

static bool find_from(const struct file_tree *tree, struct kp_span dir,
		      struct kp_span path, size_t *file)
{
	return find_below(tree, dir, path, file) ||
	       find_below(tree, (struct kp_span){(const uint8_t *)"", 0}, path, file);
}

bool kernel_path_find(const struct file_tree *tree, const char *database,
		      struct kp_span path, size_t *file)
{
	struct kp_span dir = kp_path_directory(database);
	struct whole w = {.size = 0};

	if (path.size == 0 || path.size > KP_NAME_MAX)
		return false;
	if (path.data[0] != '/')
		return find_from(tree, dir, path, file);
	/* absolute: resolve ".." first, so that no tail of the path begins with ".." */
	if (!enter_path(&w, path))
		return false;
	path = (struct kp_span){(uint8_t *)w.text, w.size};
	for (; path.size; cut_name(&path))
		if (find_from(tree, dir, path, file))
			return true;
	return false;
}

/* --- facts ---------------------------------------------------------------------------- */

/* Limits of further columns that become facts, and of a text's bytes. */
enum { COLUMNS_MAX = 12, TEXT_MAX = 200 };

static bool is_name(const char *name)
{
	size_t n = strlen(name);

	if (n == 0 || n > 32 || name[0] < 'a' || name[0] > 'z')
		return false;
	return strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == n;
}

/* Names that mean something else in an entry, or that the key states already. */
static bool is_taken(const char *name)
{
	static const char *const taken[] = {
		"arch",    "kernel_path", "path",      "target",  "xxh3",
		"chunk",   "mode",        "length",    "library", "role",
		"factors", "precision",   "container", "variant", "type"};

	for (size_t i = 0; i < KP_COUNT(taken); i++)
		if (strcmp(name, taken[i]) == 0)
			return true;
	return false;
}

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

static void add_factors(const struct sqlite_rows *row, int column, struct facts *facts)
{
	uint64_t numbers[KERNEL_NAME_FACTORS_MAX];
	struct kp_span text = sqlite_rows_bytes(row, column);
	size_t n = numbers_in(text, numbers, KERNEL_NAME_FACTORS_MAX);

	if (n)
		facts_numbers(facts, "factors", numbers, n);
	else if (text.size && text.size <= TEXT_MAX && kp_text_ok(text))
		facts_text(facts, "factors", text);
}

static void add_value(const struct sqlite_rows *row, int column, struct facts *facts)
{
	const char *name = sqlite_rows_name(row, column);
	enum sqlite_type type = sqlite_rows_type(row, column);
	struct kp_span text;

	if (type == SQLITE_TYPE_INTEGER) {
		facts_signed(facts, name, sqlite_rows_integer(row, column));
		return;
	}
	if (type != SQLITE_TYPE_TEXT && type != SQLITE_TYPE_REAL)
		return;
	text = sqlite_rows_bytes(row, column);
	if (text.size && text.size <= TEXT_MAX && kp_text_ok(text))
		facts_text(facts, name, text);
}

/* The columns in the order of the query; those of its * follow. */
enum { ARCH, LENGTH, PRECISION, PATH, REST };

static int find_column(const struct sqlite_rows *row, const char *name)
{
	for (int i = REST; i < sqlite_rows_count(row); i++)
		if (strcasecmp(sqlite_rows_name(row, i), name) == 0)
			return i;
	return -1;
}

static void add_facts(const struct sqlite_rows *row, const struct kernel_path *p,
		      struct facts *facts)
{
	int factors = find_column(row, "factors"), added = 0;

	if (p->length.size && kp_text_ok(p->length) && p->length.size <= TEXT_MAX)
		kernel_name_length_fact(p->length, facts);
	if (p->precision.size && kp_text_ok(p->precision) &&
	    p->precision.size <= TEXT_MAX)
		facts_text(facts, "precision", p->precision);
	if (factors >= 0)
		add_factors(row, factors, facts);
	for (int i = REST; i < sqlite_rows_count(row) && added < COLUMNS_MAX; i++) {
		const char *name = sqlite_rows_name(row, i);

		if (!is_name(name) || is_taken(name) || facts_has(facts, name))
			continue;
		add_value(row, i, facts);
		added++;
	}
}

/* --- rows ----------------------------------------------------------------------------- */

kpack_error_t kernel_paths_are_there(struct sqlite_file *f, bool *are,
				     struct kpackx_error *why)
{
	static const char *const columns[] = {"arch", "length", "precision",
					      "kernel_path", NULL};

	return sqlite_file_has(f, "kernels", columns, are, why);
}

struct each {
	const struct file_tree *tree;
	const char *database;
	kernel_path_use *use;
	void *arg;
	uint64_t row;
};

static struct kp_span text_of(const struct sqlite_rows *row, int column)
{
	if (sqlite_rows_type(row, column) == SQLITE_TYPE_BLOB)
		return (struct kp_span){(const uint8_t *)"", 0};
	return sqlite_rows_bytes(row, column);
}

static kpack_error_t use_row(struct each *e, const struct sqlite_rows *row,
			     struct kpackx_error *why)
{
	struct facts facts = {0};
	struct kernel_path p = {
		.row = ++e->row,
		.arch = text_of(row, ARCH),
		.length = text_of(row, LENGTH),
		.precision = text_of(row, PRECISION),
		.path = text_of(row, PATH),
		.facts = &facts,
	};

	if (e->row > KERNEL_PATHS_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "kernels: more than %d rows", KERNEL_PATHS_MAX);
	add_facts(row, &p, &facts);
	p.exists = kernel_path_find(e->tree, e->database, p.path, &p.file);
	e->use(e->arg, &p);
	facts_fini(&facts);
	return KPACK_SUCCESS;
}

static kpack_error_t use_rows(struct sqlite_file *f, struct each *e,
			      struct kpackx_error *why)
{
	struct sqlite_rows *rows = NULL;
	bool more = false;
	kpack_error_t err = kernel_paths_are_there(f, &more, why);

	if (err || !more)
		return err;
	err = sqlite_rows_open(f,
			       "SELECT arch, length, precision, kernel_path, * "
			       "FROM main.kernels NOT INDEXED",
			       &rows, why);
	while (!err && more) {
		err = sqlite_rows_next(rows, &more, why);
		if (!err && more)
			err = use_row(e, rows, why);
	}
	sqlite_rows_close(rows);
	return err;
}

static kpack_error_t check_header(const struct kp_source *source,
				  struct kpackx_error *why)
{
	uint8_t head[512];
	size_t n = source->size < sizeof(head) ? (size_t)source->size : sizeof(head);

	KP_TRY(kp_source_read(source, 0, head, n, why));
	return sqlite_header_check(source, head, n, why);
}

kpack_error_t kernel_paths_each(const struct file_tree *tree, size_t file,
				kernel_path_use *use, void *arg, struct kpackx_error *why)
{
	struct each e = {tree, tree->items[file].path, use, arg, 0};
	struct sqlite_file *f = NULL;
	struct file_bytes bytes;
	kpack_error_t err;

	KP_TRY(file_tree_open(tree, file, &bytes, why));
	err = check_header(&bytes.source, why);
	if (!err)
		err = sqlite_file_open(&bytes.source, &f, why);
	if (!err)
		err = use_rows(f, &e, why);
	sqlite_file_close(f);
	file_bytes_close(&bytes);
	return err;
}
