/* SPDX-License-Identifier: MIT */
/*
 * Store rocFFT's kernel caches as databases of single GPUs, and as single kernels.
 *
 * rocFFT has one SQLite database for all GPUs, rocfft_kernel_cache.db, or one for each, with the
 * GPU in its name.  Split, its rows become parts: files in a temporary directory that appear as
 * further inputs of the same entry, under the names of the second form.  Then nothing is stored of
 * the cache itself, whose input stays without images.  If the tree has a part's file already, it
 * must have the same bytes, because one path cannot have two.
 */
#include "core/base/path.h"
#include "packer/cli/process.h"
#include "packer/library/rocfft.h"
#include "scan.h"

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

kpack_error_t rocfft_caches_split(struct scan *scan, bool databases, bool rows,
				  struct cache_files *parts, struct kpackx_error *why)
{
	const char *tmp = tmpdir(LARGE_TEMPORARY_DIR);

	for (size_t i = 0, n = scan->n_inputs; i < n; i++) {
		struct input *in = scan->inputs[i];
		size_t first = parts->count, split;
		kpack_error_t err = KPACK_SUCCESS;

		if (!is_cache(in))
			continue;
		if (rows)
			err = kernel_cache_rows(in->path, in->key, tmp, parts, why);
		split = parts->count;
		if (!err && databases && is_for_all(in))
			err = kernel_cache_split(in->path, in->key, tmp, parts, why);
		/* of the file itself nothing is stored; but an empty cache is not split */
		if (!err && parts->count > split)
			in->n_images = 0;
		for (size_t k = first; k < parts->count && !err; k++) {
			const struct cache_file *part = &parts->items[k];
			const struct scan_database d = {part->disk, part->key,
							part->objects, part->n_objects};
			struct kp_source ours;
			struct file_bytes there;
			bool same;
			size_t file;

			if (!part->n_objects || !part->objects->path ||
			    !file_tree_find(&scan->files, part->key, &file)) {
				err = scan_add_database(scan, in->entry, &d, NULL, why);
				continue;
			}
			/* the tree has that file: a cache for one GPU besides that for all GPUs */
			ours = kp_source_fd(part->file.fd, 0, part->objects->size);
			err = file_tree_open(&scan->files, file, &there, why);
			if (err)
				continue;
			err = kp_source_compare(&ours, &there.source, &same, why);
			file_bytes_close(&there);
			if (!err && !same)
				err = kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
					      "--split-rocfft: its part for %s has other "
					      "bytes than %s",
					      part->objects->arches[0],
					      scan->files.items[file].disk);
		}
		if (err)
			return kp_fail_prefix(why, err, "%s", in->path);
	}
	scan_sort(scan);
	return KPACK_SUCCESS;
}

bool rocfft_cache_in_other_form(const struct scan *scan, const char *path)
{
	char arch[KP_TARGET_TEXT_MAX];

	if (!kernel_cache_named(path, arch))
		return false;
	for (size_t i = 0; i < scan->n_inputs; i++) {
		const struct input *in = scan->inputs[i];
		bool is_split = in->n_images == 0;

		if (is_cache(in) && is_for_all(in) && is_split == !*arch &&
		    kp_span_eq(kp_path_directory(in->key), kp_path_directory(path)))
			return true;
	}
	return false;
}
