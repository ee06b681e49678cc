/* SPDX-License-Identifier: MIT */
#include "path_keys.h"
#include <stdio.h>
#include <stdlib.h>
#include "arch_name.h"
#include "cache_summary.h"
#include "kernel_cache.h"
#include "kernel_paths.h"
#include "packer/cli/xalloc.h"
#include "core/base/msgpack_read.h"
#include "core/base/text.h"
#include "core/target/target.h"

/* A row that names a file. */
struct row {
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

struct keys {
	const struct library *self;
	struct library_found *found;
	struct row *rows;
	size_t n_rows, cap;
	size_t database; /* the one being read */
	struct row_faults faults;
};

static void add_row_fault(struct keys *k, uint64_t row, const char *column,
			  struct kp_span value, const char *what)
{
	char text[100];

	if (k->faults.count++ > 0)
		return;
	kp_text_escape(value, text, sizeof(text));
	snprintf(k->faults.first, sizeof(k->faults.first),
		 "kernels: row %llu: %s '%s' %s", (unsigned long long)row, column, text,
		 what);
}

static void warn_of_rows(struct library_object *o, const struct row_faults *c)
{
	if (c->count == 0 || o->warning)
		return;
	if (c->count == 1)
		library_warn(o, "%s", c->first);
	else
		library_warn(o, "%s; and %zu more of its rows", c->first, c->count - 1);
}

/* --- reading -------------------------------------------------------------------------- */

/* Whether S can be a component of the key that readers find again. */
static bool part_ok(struct kp_span s)
{
	return kp_component_ok(s) && kp_text_ok(s) && !memchr(s.data, '#', s.size);
}

static bool row_ok(struct keys *k, const struct kernel_path *p,
		   char arch[KP_TARGET_TEXT_MAX])
{
	if (!cache_arch_ok(p->arch, arch))
		add_row_fault(k, p->row, "arch", p->arch, "is no GPU");
	else if (!part_ok(p->length))
		add_row_fault(k, p->row, "length", p->length, "cannot be in a key");
	else if (!part_ok(p->precision))
		add_row_fault(k, p->row, "precision", p->precision, "cannot be in a key");
	else if (!p->exists)
		add_row_fault(k, p->row, "kernel_path", p->path, "does not exist");
	else
		return true;
	return false;
}

static void add_row(void *arg, struct kernel_path *p)
{
	struct keys *k = arg;
	struct row row = {.file = p->file, .database = k->database, .place = k->n_rows};

	if (!row_ok(k, p, row.arch))
		return;
	xgrow(&k->rows, k->n_rows, &k->cap, sizeof(row));
	row.key = xasprintf("fft/%s/%.*s/%.*s/kernel", row.arch, (int)p->length.size,
			    (const char *)p->length.data, (int)p->precision.size,
			    (const char *)p->precision.data);
	row.facts = *p->facts;
	*p->facts = (struct facts){0};
	k->rows[k->n_rows++] = row;
}

/* The file was open before: an error is from a later change, or from the rows. */
static kpack_error_t read_database(struct keys *k, size_t file, struct kpackx_error *why)
{
	struct kpackx_error fault = {0};
	kpack_error_t err;

	k->database = file;
	k->faults = (struct row_faults){0};
	err = kernel_paths_each(k->found->tree, file, add_row, k, &fault);
	if (err == KPACK_ERROR_OUT_OF_MEMORY) {
		if (why)
			*why = fault;
		return err;
	}
	if (err)
		library_warn(k->found->objects[file],
			     "its kernel paths cannot be read: %s", fault.text);
	else
		warn_of_rows(k->found->objects[file], &k->faults);
	return KPACK_SUCCESS;
}

static bool is_database(const struct keys *k, size_t file)
{
	const struct library_object *o = k->found->objects[file];

	return o && o->path && o->library == k->self->name &&
	       strcmp(o->role, "cache") == 0;
}

/* --- numbering ------------------------------------------------------------------------ */

static int by_key(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	int c = strcmp(x->key, y->key);

	return c ? c : KP_ORDER(x->place, y->place);
}

static int by_file(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->file != y->file)
		return KP_ORDER(x->file, y->file);
	return KP_ORDER(x->place, y->place);
}

static void number_rows(struct keys *k)
{
	if (k->n_rows == 0)
		return;
	qsort(k->rows, k->n_rows, sizeof(*k->rows), by_key);
	for (size_t i = 1; i < k->n_rows; i++)
		if (strcmp(k->rows[i].key, k->rows[i - 1].key) == 0)
			k->rows[i].n = k->rows[i - 1].n + 1;
	qsort(k->rows, k->n_rows, sizeof(*k->rows), by_file);
}

/* --- facts of several rows ------------------------------------------------------------ */

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

/* --- claiming ------------------------------------------------------------------------- */

static kpack_error_t open_question(struct keys *k, size_t file,
				   struct library_question *q, struct file_bytes *bytes,
				   struct kpackx_error *why)
{
	*q = (struct library_question){.tree = k->found->tree,
				       .file = file,
				       .path = k->found->tree->items[file].path};
	KP_TRY(file_tree_open(k->found->tree, file, bytes, why));
	q->source = &bytes->source;
	q->head_size = bytes->source.size < sizeof(q->head) ? (size_t)bytes->source.size
							    : sizeof(q->head);
	return kp_source_read(&bytes->source, 0, q->head, q->head_size, why);
}

/* Whether Q's file is code.  A table can name any file; other files are not claimed. */
static bool is_code(const struct library_question *q)
{
	static const char *const yes[] = {"elf", "ccob", "bundle"};
	const char *container = content_container(q), *dot = strrchr(q->path, '.');

	for (size_t i = 0; i < KP_COUNT(yes); i++)
		if (strcmp(container, yes[i]) == 0)
			return true;
	return strcmp(container, "host-elf") != 0 && dot &&
	       (strcmp(dot, ".co") == 0 || strcmp(dot, ".hsaco") == 0);
}

static kpack_error_t claim_code(struct keys *k, const struct row *row,
				const struct library_question *q,
				struct library_object **out, struct kpackx_error *why)
{
	KP_TRY(library_claim(k->self, k->found, row->file, out, why));
	(*out)->role = "kernel";
	KP_TRY(arch_decide(q, row->arch, *out, why));
	if ((*out)->n_arches == 0)
		library_add_arch(*out, KP_ARCH_GENERIC);
	return KPACK_SUCCESS;
}

static kpack_error_t claim_file(struct keys *k, const struct row *row,
				struct library_object **out, struct kpackx_error *why)
{
	struct file_bytes bytes = {.fd = -1};
	struct library_question q;
	kpack_error_t err = open_question(k, row->file, &q, &bytes, why);

	if (!err && is_code(&q))
		err = claim_code(k, row, &q, out, why);
	file_bytes_close(&bytes);
	return err;
}

/* Undo the claim of a file that could not be described. */
static void release_file(struct library_object **slot)
{
	if (*slot) {
		library_object_fini(*slot);
		free(*slot);
	}
	*slot = NULL;
}

/* Claim ROW's file, or warn in its database; only OUT_OF_MEMORY is an error. */
static kpack_error_t try_claim_file(struct keys *k, const struct row *row, size_t rows,
				    struct library_object **out, struct kpackx_error *why)
{
	struct row_faults c = {.count = rows};
	struct kpackx_error fault = {0};
	kpack_error_t err = claim_file(k, row, out, &fault);

	if (err == KPACK_SUCCESS && *out)
		return KPACK_SUCCESS;
	if (err) {
		*out = NULL;
		release_file(&k->found->objects[row->file]);
	}
	if (err == KPACK_ERROR_OUT_OF_MEMORY) {
		if (why)
			*why = fault;
		return err;
	}
	snprintf(c.first, sizeof(c.first), "kernels: %.100s %s%.80s",
		 k->found->tree->items[row->file].path,
		 err ? "cannot be read: " : "is no code object", fault.text);
	warn_of_rows(k->found->objects[row->database], &c);
	return KPACK_SUCCESS;
}

static bool agrees_with_arch(const struct library_object *o, const char *arch)
{
	for (size_t i = 0; i < o->n_arches; i++)
		if (strcmp(o->arches[i], KP_ARCH_GENERIC) == 0 ||
		    arch_agrees(o->arches[i], arch))
			return true;
	return false;
}

/* Add the key of ROW to O.  BASE: the file's facts before any row. */
static void add_key(struct library_object *o, const struct row *row,
		    const struct facts *base)
{
	struct facts facts = facts_copy(base);

	add_new(&facts, &row->facts);
	if (row->n)
		library_add_key(o, "%s#%zu", row->key, row->n);
	else
		library_add_key(o, "%s", row->key);
	library_key_facts(o, &facts);
	if (!o->warning && !agrees_with_arch(o, row->arch))
		library_warn(o, "it is for %s, but %s says %s", o->arches[0], row->key,
			     row->arch);
}

/* Add the keys of N rows that name one file. */
static kpack_error_t add_file(struct keys *k, struct row *rows, size_t n,
			      struct kpackx_error *why)
{
	struct library_object *o = k->found->objects[rows[0].file];
	struct facts base;

	if (!o)
		KP_TRY(try_claim_file(k, &rows[0], n, &o, why));
	if (!o)
		return KPACK_SUCCESS;
	base = facts_copy(&o->facts);
	for (size_t i = 0; i < n; i++)
		add_key(o, &rows[i], &base);
	facts_fini(&base);
	for (size_t i = 1; i < n; i++)
		keep_common(&rows[0].facts, &rows[i].facts);
	add_new(&o->facts, &rows[0].facts);
	return KPACK_SUCCESS;
}

/* --- all ------------------------------------------------------------------------------ */

static kpack_error_t add_files(struct keys *k, struct kpackx_error *why)
{
	for (size_t i = 0, end; i < k->n_rows; i = end) {
		for (end = i + 1;
		     end < k->n_rows && k->rows[end].file == k->rows[i].file;)
			end++;
		KP_TRY(add_file(k, &k->rows[i], end - i, why));
	}
	return KPACK_SUCCESS;
}

static void fini_keys(struct keys *k)
{
	for (size_t i = 0; i < k->n_rows; i++) {
		free(k->rows[i].key);
		facts_fini(&k->rows[i].facts);
	}
	free(k->rows);
}

kpack_error_t path_keys_add(const struct library *self, struct library_found *found,
			    struct kpackx_error *why)
{
	struct keys k = {.self = self, .found = found};
	kpack_error_t err = KPACK_SUCCESS;

	for (size_t i = 0; !err && i < found->tree->count; i++)
		if (is_database(&k, i))
			err = read_database(&k, i, why);
	if (!err) {
		number_rows(&k);
		err = add_files(&k, why);
	}
	fini_keys(&k);
	return err;
}
