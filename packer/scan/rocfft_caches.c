/* SPDX-License-Identifier: MIT */
#include "rocfft_caches.h"
#include <stdlib.h>
#include "core/base/path.h"
#include "packer/cli/process.h"
#include "packer/cli/xalloc.h"

static bool is_cache(const struct input *in)
{
	return in->kind == INPUT_DATABASE && in->objects->path &&
	       strcmp(in->objects->library, library_rocfft.name) == 0 &&
	       strcmp(in->objects->role, "cache") == 0;
}

/* Whether IN is the old cache for all GPUs; the paper's caches have other names. */
static bool is_for_all(const struct input *in)
{
	return strcmp(kp_path_name(in->key), "rocfft_kernel_cache.db") == 0;
}

/* Store nothing of the file itself: its parts are stored instead. */
static void store_nothing(struct input *in)
{
	in->n_images = 0;
}

static kpack_error_t split_one(struct input *in, bool databases, bool rows,
			       struct cache_files *parts, struct kpackx_error *why)
{
	size_t before;

	if (rows)
		KP_TRY(kernel_cache_rows(in->path, in->key, tmpdir(LARGE_TEMPORARY_DIR),
					 parts, why));
	if (!databases || !is_for_all(in))
		return KPACK_SUCCESS;
	before = parts->count;
	KP_TRY(kernel_cache_split(in->path, in->key, tmpdir(LARGE_TEMPORARY_DIR), parts,
				  why));
	if (parts->count > before) /* an empty cache is not split */
		store_nothing(in);
	return KPACK_SUCCESS;
}

/*
 * Find the file of a part in the tree, which may have a cache for one GPU besides that
 * for all.
 */
static kpack_error_t find_file(const struct scan *scan, const struct cache_file *part,
			       bool *found, struct kpackx_error *why)
{
	struct kp_source ours =
		kp_source_fd(part->file.fd, 0, part->n_objects ? part->objects->size : 0);
	struct file_bytes there;
	kpack_error_t err;
	bool same;
	size_t file;

	*found = part->n_objects && part->objects->path &&
		 file_tree_find(&scan->files, kp_span_str(part->key), &file);
	if (!*found)
		return KPACK_SUCCESS;
	KP_TRY(file_tree_open(&scan->files, file, &there, why));
	err = kp_source_compare(&ours, &there.source, &same, why);
	file_bytes_close(&there);
	if (err)
		return err;
	return same ? KPACK_SUCCESS
		    : kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			      "--split-rocfft: its part for %s has other bytes than %s",
			      part->objects->arches[0], scan->files.items[file].disk);
}

static kpack_error_t add_parts(struct scan *scan, size_t entry,
			       const struct cache_files *parts, size_t first,
			       struct kpackx_error *why)
{
	for (size_t i = first; i < parts->count; i++) {
		const struct cache_file *part = &parts->items[i];
		const struct scan_database d = {part->disk, part->key, part->objects,
						part->n_objects};
		bool found;

		KP_TRY(find_file(scan, part, &found, why));
		if (!found)
			KP_TRY(scan_add_database(scan, entry, &d, NULL, why));
	}
	return KPACK_SUCCESS;
}

kpack_error_t rocfft_caches_split(struct scan *scan, bool databases, bool rows,
				  struct cache_files *parts, struct kpackx_error *why)
{
	size_t n = scan->n_inputs;

	for (size_t i = 0; i < n; i++) {
		struct input *in = scan->inputs[i];
		size_t first = parts->count;
		kpack_error_t err;

		if (!is_cache(in))
			continue;
		err = split_one(in, databases, rows, parts, why);
		if (!err)
			err = add_parts(scan, in->entry, parts, first, why);
		if (err)
			return kp_fail_prefix(why, err, "%s", in->path);
	}
	scan_sort(scan);
	return KPACK_SUCCESS;
}

static bool same_directory(const char *a, const char *b)
{
	const char *x = strrchr(a, '/'), *y = strrchr(b, '/');
	size_t n = x ? (size_t)(x - a) : 0, m = y ? (size_t)(y - b) : 0;

	return n == m && memcmp(a, b, n) == 0;
}

bool caches_in_other_form(const struct scan *scan, struct kp_span path)
{
	char *text = path.size ? xstrndup((const char *)path.data, path.size) : NULL;
	char arch[KP_TARGET_TEXT_MAX];
	bool found = false, named = text && kernel_cache_named(text, arch);

	for (size_t i = 0; i < scan->n_inputs && named && !found; i++) {
		const struct input *in = scan->inputs[i];
		bool is_split = in->n_images == 0;

		found = is_cache(in) && is_for_all(in) && same_directory(in->key, text) &&
			is_split == !*arch;
	}
	free(text);
	return found;
}
