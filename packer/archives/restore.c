/* SPDX-License-Identifier: MIT */
/* The original of a converted binary, from its recipe and the objects in archives. */
#include "restore.h"
#include <stdlib.h>
#include <string.h>
#include "core/archive/entry.h"
#include "core/base/alloc.h"
#include "core/base/order.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"

kpack_error_t restore_open(struct restore *r, const char *path, struct installed *set,
			   const struct reach *given, struct kpackx_error *why)
{
	const struct kp_recipe *layout = &r->b.layout;
	struct kp_source file;
	size_t n;

	*r = (struct restore){.b.fd = -1, .archives = given ? given : &r->reach};
	KP_TRY(binary_open(path, &r->b, why));
	KP_TRY(binary_read_marker(&r->b, why));
	KP_TRY(binary_read_layout(&r->b, why));
	if (!r->b.has_layout)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "has no %s, without which it cannot be restored",
			       r->b.fat.host.layout.name);
	file = kp_source_fd(r->b.fd, 0, r->b.size);
	KP_TRY(kp_recipe_fits(layout, &file, &r->how.fits, why));
	r->how.left = r->b.fat.host.has_fatbin;
	if (r->how.left)
		return KPACK_SUCCESS;
	if (!given)
		KP_TRY(installed_reach(set, &r->b.marker, path, &r->reach, why));
	for (size_t i = 0; i < r->reach.count; i++) {
		struct installed_archive *a = r->reach.items[i].archive;

		if (!a->archive && !a->reported)
			report_why(a->path, &a->why);
		a->reported = true;
	}
	/* the object of each image, where it had one, by the hash that the recipe states */
	n = layout->n_images;
	r->found = xcalloc(n, sizeof(*r->found));
	r->have = xcalloc(n, sizeof(*r->have));
	r->missing = xcalloc(n, sizeof(*r->missing));
	for (size_t i = 0; i < n; i++) {
		const struct kp_recipe_image *img = &layout->images[i];
		struct wanted_object want = {
			.name = r->b.marker.kernel_name,
			.arch = img->arch,
			.kind = wanted_kind(img),
			.xxh3 = img->has_xxh3 ? img->xxh3 : NULL,
			.size = &img->size,
		};

		if (!img->placed || img->host || !img->size)
			continue;
		if (img->size > r->largest)
			r->largest = img->size;
		want.index = layout->containers[img->container].index;
		installed_find(r->archives, &want, &r->found[i]);
		r->have[i] = r->found[i].archive && !r->found[i].differs;
		r->bytes += r->have[i] ? img->size : 0;
		if (!r->have[i])
			r->missing[r->n_missing++] = (struct missing_object){
				img->arch, r->found[i].differs, !img->has_xxh3};
	}
	kp_sort(r->missing, r->n_missing, KP_BY_TEXT(struct missing_object, arch),
		KP_BY_NUMBER(struct missing_object, differs));
	return KPACK_SUCCESS;
}

void restore_close(struct restore *r)
{
	reach_fini(&r->reach);
	binary_close(&r->b);
	free(r->found);
	free(r->have);
	free(r->missing);
	*r = (struct restore){.b.fd = -1};
}

/* --- writing --------------------------------------------------------------------------- */

/* An object whose size is another one is not among those that were found. */
static kpack_error_t read_object(void *arg, size_t image, void *buf,
				 struct kpackx_error *why)
{
	const struct restore *r = arg;
	const struct kp_recipe_image *img = &r->b.layout.images[image];
	const struct found_object *found = &r->found[image];
	kpack_error_t err =
		kp_entry_read(found->archive->archive, found->entry, buf, why);

	progress_add(img->size);
	return err ? kp_fail_prefix(why, err, "%s: container %u", img->arch,
				    img->container)
		   : err;
}

static kpack_error_t write_section(void *arg, struct kp_outfile *out, uint64_t offset,
				   struct kpackx_error *why)
{
	struct restore *r = arg;
	const struct kp_recipe_source source = {
		.have = r->have, .read = read_object, .arg = r};

	return kp_recipe_restore_section(&r->b.layout, &source, out, offset,
					 &r->how.result, why);
}

kpack_error_t restore_write(struct restore *r, struct kp_outfile *out,
			    struct kpackx_error *why)
{
	const struct kp_recipe *layout = &r->b.layout;
	const struct kp_containers *list = &r->b.fat.containers;
	KP_AUTO_FREE uint64_t *offsets = xcalloc(layout->n_wrappers, sizeof(*offsets));
	struct kp_source file = kp_source_fd(r->b.fd, 0, r->b.size);
	const struct kp_recipe_source source = {&file, r->have, read_object, r};
	struct kp_restore_options o = {.size = layout->section_size,
				       .offsets = offsets,
				       .write = write_section,
				       .arg = r,
				       .drop_signature = r->b.drop_signature};

	for (size_t i = 0; i < layout->n_wrappers; i++) {
		uint32_t c = layout->wrapper_container[i];

		/* device code that was left in the file is where it is found */
		if (!r->how.left)
			offsets[i] =
				layout->containers[c].offset - layout->section_offset;
		else if (c < list->count)
			offsets[i] = list->items[c].offset;
		else
			return kp_fail(why, KPACK_ERROR_INVALID_METADATA,
				       "layout: wrapper %zu: container %u of %zu", i, c,
				       list->count);
	}
	/* a binary that was changed since only gets its device code */
	return r->how.fits ? kp_recipe_restore(layout, &source, out, &r->how.result, why)
			   : kp_restore(r->b.fd, r->b.size, &r->b.fat, &o, out, why);
}

/* --- reports --------------------------------------------------------------------------- */

void restore_report_missing(const struct restore *r, const char *what)
{
	for (size_t i = 0, end; i < r->n_missing; i = end) {
		const struct missing_object *first = &r->missing[i];

		for (end = i + 1; end < r->n_missing; end++)
			if (strcmp(r->missing[end].arch, first->arch) != 0 ||
			    r->missing[end].differs != first->differs)
				break;
		report_error(r->b.path, "%s: %zu object%s %s%s", first->arch, end - i,
			     end - i == 1 ? " is" : "s are",
			     first->differs ? "in archives from another build only"
					    : "in no archive",
			     what);
	}
}

size_t restore_report_unlisted(const struct restore *r)
{
	const struct kp_recipe *layout = &r->b.layout;
	size_t n = 0;

	/* the archives may be from several joined builds */
	for (size_t i = 0; i < r->archives->count; i++) {
		const struct kpack_archive *a = r->archives->items[i].archive->archive;

		for (size_t k = 0; a && k < kp_archive_arch_count(a); k++) {
			const char *arch = kp_archive_arch(a, k);
			bool listed = false, found = false;
			size_t entry;

			for (size_t m = 0; m < layout->n_images; m++)
				listed |= !layout->images[m].host &&
					  strcmp(layout->images[m].arch, arch) == 0;
			for (size_t m = 0; m < layout->n_wrappers && !listed && !found;
			     m++) {
				KP_AUTO_FREE char *key =
					xasprintf("%s#%zu", r->b.marker.kernel_name, m);

				found = kp_archive_find_kernel(a, kp_span_str(key),
							       kp_span_str(arch), &entry);
			}
			if (!found)
				continue;
			report_error(r->b.path,
				     "warning: %s: %s has code for it, which the "
				     "layout does not know; it is not restored",
				     arch, kp_archive_path(a));
			n++;
		}
	}
	return n;
}

const char *restore_report(const char *path, const struct restored *how)
{
	const struct kp_recipe_result *result = &how->result;

	if (result->n_recompressed)
		report_error(
			path,
			"compressed bundles with the same objects as before, but with "
			"other bytes, because another compressor compressed them: %zu",
			result->n_recompressed);
	if (!how->fits)
		report_error(path, "was changed since it was converted, so that only its "
				   "device code is restored, and the rest is that of the "
				   "changed file");
	if (!how->fits && how->left)
		return ", with the device code that was left in it";
	if (result->n_missing || result->n_recompressed)
		return ", not bit-identical to the original";
	if (result->n_unknown)
		return ", with objects that were not packed with it: nothing tells "
		       "whether it is the original";
	return how->fits ? ", bit-identical to the original"
			 : ", its device code is bit-identical";
}
