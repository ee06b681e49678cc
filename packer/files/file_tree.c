/* SPDX-License-Identifier: MIT */
#include "file_tree.h"
#include "below.h"
#include <stdlib.h>
#include <unistd.h>
#include "packer/cli/xalloc.h"

void file_tree_add(struct file_tree *t, const struct file_tree_item *item)
{
	struct file_tree_item *to;

	xgrow(&t->items, t->count, &t->cap, sizeof(*t->items));
	to = &t->items[t->count++];
	*to = *item;
	to->path = xstrdup(item->path);
	to->disk = item->disk ? xstrdup(item->disk) : NULL;
}

static int by_path(const void *a, const void *b)
{
	const struct file_tree_item *x = a, *y = b;

	return strcmp(x->path, y->path);
}

static void free_item(struct file_tree_item *item)
{
	free(item->path);
	free(item->disk);
}

/* qsort is not stable: remember the order of adding while sorting. */
struct ranked {
	struct file_tree_item item;
	size_t rank;
};

static int by_path_and_rank(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
	int c = by_path(&x->item, &y->item);

	return c ? c : KP_ORDER(x->rank, y->rank);
}

void file_tree_sort(struct file_tree *t)
{
	struct ranked *ranked = xmalloc(t->count * sizeof(*ranked));
	size_t n = 0;

	for (size_t i = 0; i < t->count; i++)
		ranked[i] = (struct ranked){t->items[i], i};
	qsort(ranked, t->count, sizeof(*ranked), by_path_and_rank);
	for (size_t i = 0; i < t->count; i++) {
		if (n && strcmp(t->items[n - 1].path, ranked[i].item.path) == 0)
			free_item(&ranked[i].item);
		else
			t->items[n++] = ranked[i].item;
	}
	t->count = n;
	free(ranked);
}

void file_tree_fini(struct file_tree *t)
{
	for (size_t i = 0; i < t->count; i++)
		free_item(&t->items[i]);
	free(t->items);
	*t = (struct file_tree){0};
}

size_t file_tree_from(const struct file_tree *t, struct kp_span path)
{
	size_t low = 0, high = t->count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (kp_span_cmp(kp_span_str(t->items[mid].path), path) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

bool file_tree_find(const struct file_tree *t, struct kp_span path, size_t *file)
{
	size_t at = file_tree_from(t, path);

	if (at == t->count || !kp_span_eq(kp_span_str(t->items[at].path), path))
		return false;
	*file = at;
	return true;
}

static bool is_below(const char *path, struct kp_span dir)
{
	return dir.size == 0 || (strncmp(path, (const char *)dir.data, dir.size) == 0 &&
				 path[dir.size] == '/');
}

/* "dir-x" and "dir.x" come after "dir" and before "dir/x", so search for "dir/". */
bool file_tree_has_dir(const struct file_tree *t, struct kp_span path, size_t *first)
{
	uint8_t *prefix = xmalloc(path.size + 1);
	size_t at;

	memcpy(prefix, path.data, path.size);
	prefix[path.size] = '/';
	at = file_tree_from(t, (struct kp_span){prefix, path.size ? path.size + 1 : 0});
	free(prefix);
	if (at == t->count || !is_below(t->items[at].path, path))
		return false;
	if (first)
		*first = at;
	return true;
}

static kpack_error_t open_entry(const struct file_tree_item *item, struct file_bytes *out,
				struct kpackx_error *why)
{
	kpack_error_t err;

	out->heap = malloc((size_t)item->size + 1);
	if (!out->heap)
		return kp_fail_memory(why, item->size, "a file");
	err = kp_archive_read(item->archive, item->entry, out->heap, why);
	if (err) {
		file_bytes_close(out);
		return err;
	}
	out->source = kp_source_memory(out->heap, (size_t)item->size);
	return KPACK_SUCCESS;
}

kpack_error_t file_tree_open(const struct file_tree *t, size_t file,
			     struct file_bytes *out, struct kpackx_error *why)
{
	const struct file_tree_item *item = &t->items[file];
	struct stat st;

	*out = (struct file_bytes){.fd = -1};
	if (!item->disk)
		return open_entry(item, out, why);
	KP_TRY(below_file_open(item->disk, &out->fd, &st, why));
	out->source = kp_source_fd(out->fd, 0, (uint64_t)st.st_size);
	return KPACK_SUCCESS;
}

void file_bytes_close(struct file_bytes *bytes)
{
	if (bytes->fd >= 0)
		close(bytes->fd);
	free(bytes->heap);
	*bytes = (struct file_bytes){.fd = -1};
}
