/* SPDX-License-Identifier: MIT */
#include "demand.h"
#include <errno.h>
#include <stdlib.h>
#include "core/archive/naming.h"
#include "core/base/text.h"
#include "packer/base/xalloc.h"
#include "packer/binary/binary.h"
#include "packer/files/below.h"
#include "packer/files/identity.h"

struct demand_binary {
	char *path;
	struct file_identity seen;
	char *name; /* kernel_name */
	/* the n of the keys NAME#n that it asks for, ascending; NULL: they are not known */
	uint32_t *indices;
	size_t n_indices;
	struct reach reach;
};

void demand_init(struct demand *d, const char *tree)
{
	*d = (struct demand){.tree = tree};
	installed_init(&d->set);
}

void demand_fini(struct demand *d)
{
	for (size_t i = 0; i < d->count; i++) {
		free(d->items[i].path);
		free(d->items[i].name);
		free(d->items[i].indices);
		reach_fini(&d->items[i].reach);
	}
	free(d->items);
	installed_fini(&d->set);
	*d = (struct demand){0};
}

/* --- binaries ------------------------------------------------------------------------ */

static int by_number(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return KP_ORDER(*x, *y);
}

/*
 * The indices of the wrappers, and of the containers, some of which have no wrapper.
 * Without a layout, it is not known which code was packed besides the wrappers'.
 */
static void list_indices(const struct binary *b, struct demand_binary *out)
{
	size_t wrappers = b->fat.elf.n_wrappers;

	if (!b->has_layout)
		return;
	out->indices =
		xcalloc(wrappers + b->layout.n_containers + 1, sizeof(*out->indices));
	for (size_t i = 0; i < wrappers; i++)
		out->indices[out->n_indices++] = binary_index(b, i);
	for (size_t i = 0; i < b->layout.n_containers; i++)
		out->indices[out->n_indices++] = kp_layout_index(&b->layout, (uint32_t)i);
	qsort(out->indices, out->n_indices, sizeof(*out->indices), by_number);
}

static kpack_error_t add_converted(struct demand *d, struct binary *b,
				   struct kpackx_error *why)
{
	struct demand_binary item = {0};
	kpack_error_t err;

	KP_TRY(binary_read_marker(b, why));
	KP_TRY(binary_read_layout(b, why));
	err = installed_reach(&d->set, &b->marker, b->path, &item.reach, why);
	if (err) {
		reach_fini(&item.reach);
		return err;
	}
	item.path = xstrdup(b->path);
	item.seen = file_identity_of(&b->st);
	item.name = xstrdup(b->marker.kernel_name);
	list_indices(b, &item);
	xgrow(&d->items, d->count, &d->cap, sizeof(*d->items));
	d->items[d->count++] = item;
	return KPACK_SUCCESS;
}

kpack_error_t demand_add(struct demand *d, const char *path, struct kpackx_error *why)
{
	struct kpackx_error fault = {0};
	struct binary b;
	kpack_error_t err = binary_open(path, &b, &fault);

	/* a damaged binary has no marker; entries with its path as key stay, as it exists */
	if (err == KPACK_ERROR_IO_ERROR || err == KPACK_ERROR_OUT_OF_MEMORY) {
		*why = fault;
		return err;
	}
	if (err)
		return KPACK_SUCCESS;
	if (b.fat.kind == KP_FATBIN_CONVERTED)
		err = add_converted(d, &b, why);
	binary_close(&b);
	return err;
}

const char *demand_changed(const struct demand *d)
{
	for (size_t i = 0; i < d->count; i++) {
		const struct demand_binary *b = &d->items[i];
		struct stat st;

		if (below_lstat(b->path, &st) < 0 || !file_identity_is(&b->seen, &st))
			return b->path;
	}
	return NULL;
}

static int by_name(const void *a, const void *b)
{
	const struct demand_binary *x = a, *y = b;

	return strcmp(x->name, y->name);
}

void demand_sort(struct demand *d)
{
	if (d->count)
		qsort(d->items, d->count, sizeof(*d->items), by_name);
}

/* The first of the binaries called NAME, and their number. */
static const struct demand_binary *find_binaries(const struct demand *d,
						 struct kp_span name, size_t *n)
{
	size_t low = 0, high = d->count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (kp_span_cmp(kp_span_str(d->items[mid].name), name) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	for (*n = 0; low + *n < d->count && kp_span_is(name, d->items[low + *n].name);)
		++*n;
	return d->items + low;
}

/* --- what exists --------------------------------------------------------------------- */

static bool is_missing(const char *path, struct stat *st)
{
	return below_lstat(path, st) < 0 && (errno == ENOENT || errno == ENOTDIR);
}

/*
 * Whether the missing file PATH of ROOT may be under a mount: the directory that should have
 * it is on another file system.  Changes PATH.
 */
static bool may_be_covered(const char *root, char *path)
{
	struct stat top, st = {0};
	char *slash;

	if (below_stat(root, &top) < 0)
		return true;
	while ((slash = strrchr(path, '/')) && (size_t)(slash - path) > strlen(root)) {
		*slash = '\0';
		if (!is_missing(path, &st))
			return st.st_dev != top.st_dev;
	}
	return false;
}

/* Whether NAME exists below ROOT; also if that cannot be found out. */
static bool exists_at(const char *root, struct kp_span name)
{
	char *path = xasprintf("%s/%.*s", root, (int)name.size, (const char *)name.data);
	struct stat st;
	bool exists = !is_missing(path, &st) || may_be_covered(root, path);

	free(path);
	return exists;
}

/*
 * Whether NAME exists: in the tree that the archive is of, or in the demand's, which may be
 * the part of it that --key-prefix put directories before.
 */
static bool name_exists(struct demand_query *q, struct kp_span name)
{
	struct kp_span rest = name;

	if (!kp_path_ok(name))
		return true;
	if (q->last.data && kp_span_eq(q->last, name))
		return q->last_exists;
	q->last = name;
	q->last_exists = q->root && exists_at(q->root, name);
	while (!q->last_exists) {
		const uint8_t *slash;

		q->last_exists = exists_at(q->demand->tree, rest);
		slash = memchr(rest.data, '/', rest.size);
		if (!slash)
			break;
		rest.size -= (size_t)(slash + 1 - rest.data);
		rest.data = slash + 1;
	}
	return q->last_exists;
}

/* --- entries ------------------------------------------------------------------------- */

static bool has_index(const struct demand_binary *b, uint32_t index)
{
	return !b->indices ||
	       bsearch(&index, b->indices, b->n_indices, sizeof(*b->indices), by_number);
}

static bool binary_reaches(const struct demand_binary *b,
			   const struct installed_archive *a)
{
	for (size_t i = 0; i < b->reach.count; i++)
		if (b->reach.items[i].archive == a)
			return true;
	return false;
}

/* Whether B finds the very entry INFO in another archive. */
static bool finds_elsewhere(const struct demand_binary *b,
			    const struct kp_entry_info *info)
{
	size_t entry;

	for (size_t i = 0; i < b->reach.count; i++) {
		const struct kpack_archive *a = b->reach.items[i].archive->archive;

		if (a && kp_archive_find(a, info->key, info->arch, &entry))
			return true;
	}
	return false;
}

/* Look at the N binaries LIST, one of which INFO may be for. */
static enum demand_state ask_binaries(const struct demand_query *q,
				      const struct demand_binary *list, size_t n,
				      const struct kp_entry_info *info, uint32_t index)
{
	bool elsewhere = true;

	for (size_t i = 0; i < n; i++) {
		if (!has_index(&list[i], index))
			continue;
		if (binary_reaches(&list[i], q->archive))
			return DEMAND_ASKED;
		elsewhere &= finds_elsewhere(&list[i], info);
	}
	return elsewhere ? DEMAND_UNASKED : DEMAND_ASKED;
}

/* "lib/x.so@openmp" -> "lib/x.so"; false: there is no "@". */
static bool cut_kind(struct kp_span *name)
{
	for (size_t i = name->size; i > 0; i--)
		if (name->data[i - 1] == '@') {
			name->size = i - 1;
			return i > 1;
		}
	return false;
}

static enum demand_state ask_code(struct demand_query *q,
				  const struct kp_entry_info *info)
{
	struct kp_key key = kp_key_split(info->key);
	struct kp_span name = key.binary;
	bool numbered = key.binary.size < info->key.size;
	const struct demand_binary *list;
	size_t n;

	do {
		list = find_binaries(q->demand, name, &n);
		if (n)
			return ask_binaries(q, list, n, info, key.index);
		/* a binary that is not converted, or a bundle */
		if (name_exists(q, name))
			return DEMAND_ASKED;
	} while (cut_kind(&name));
	/* keys without a number are also those of databases in older archives */
	return numbered ? DEMAND_GONE : DEMAND_ASKED;
}

/* A file is in archives instead of the tree, where only its directory is. */
static enum demand_state ask_file(struct demand_query *q, struct kp_span path)
{
	while (path.size && path.data[path.size - 1] != '/')
		path.size--;
	if (path.size == 0)
		return DEMAND_ASKED;
	path.size--;
	return name_exists(q, path) ? DEMAND_ASKED : DEMAND_GONE;
}

enum demand_state demand_of(struct demand_query *q, size_t entry)
{
	struct kp_entry_info info;
	struct kp_meta meta;

	kp_archive_entry(q->archive->archive, entry, &info);
	kp_archive_meta(q->archive->archive, entry, &meta);
	return meta.path.size ? ask_file(q, meta.path) : ask_code(q, &info);
}
