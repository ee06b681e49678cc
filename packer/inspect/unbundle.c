/* SPDX-License-Identifier: MIT */
#include "unbundle.h"
#include <stdlib.h>
#include <string.h>
#include "packer/cli/xalloc.h"

/* Whether ID, of a bundle's entry, is for the processor ARCH. */
static bool is_for(const char *id, const char *arch)
{
	const char *last = NULL;

	for (const char *at = id; (at = strstr(at, "--")); at++)
		last = at + 2;
	return last && strlen(arch) == strcspn(last, ":") &&
	       strncmp(last, arch, strlen(arch)) == 0;
}

static bool is_wanted(const struct inspect_file *file, size_t image, const char *arch)
{
	const struct kp_image *img = &file->list.images[image];
	const struct kp_format *format = file->list.items[img->container].format;

	return (format == &kp_format_bundle || format == &kp_format_ccob) && img->id &&
	       img->size && !img->host && inspect_leaf(img) &&
	       (!arch || is_for(img->id, arch));
}

static bool any_twice(const struct inspect_file *file, const struct unbundle_names *names)
{
	const char **ids = xmalloc(names->count * sizeof(*ids));
	bool twice = false;

	for (size_t i = 0; i < names->count; i++)
		ids[i] = file->list.images[names->images[i]].id;
	qsort(ids, names->count, sizeof(*ids), kp_order_texts);
	for (size_t i = 1; i < names->count; i++)
		twice |= strcmp(ids[i - 1], ids[i]) == 0;
	free(ids);
	return twice;
}

/* The name of entry NUMBER, on the heap; a slash in its ID would lead elsewhere. */
static char *name_entry(const char *id, size_t number, bool numbered)
{
	const char *type = strncmp(id, "hip", 3) == 0 ? "hsaco" : "elf";
	char *name = numbered ? xasprintf("%s_%zu.%s", id, number, type)
			      : xasprintf("%s.%s", id, type);

	for (char *c = name; *c; c++)
		if (*c == '/' || (*c == '.' && c == name))
			*c = '_';
	return name;
}

kpack_error_t unbundle_names_make(const struct inspect_file *file, const char *arch,
				  struct unbundle_names *out, struct kpackx_error *why)
{
	size_t cap = 0;
	bool numbered;

	*out = (struct unbundle_names){
		.items = xcalloc(file->list.n_images, sizeof(*out->items))};
	for (size_t i = 0; i < file->n_rows; i++) {
		const struct inspect_row *row = &file->rows[i];

		if (row->kind != INSPECT_IMAGE || !is_wanted(file, row->image, arch))
			continue;
		xgrow(&out->images, out->count, &cap, sizeof(*out->images));
		out->images[out->count++] = row->image;
	}
	if (out->count == 0)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       arch ? "no device code for %s in its bundles"
				    : "no device code in bundles",
			       arch);
	numbered = any_twice(file, out);
	for (size_t i = 0; i < out->count; i++)
		out->items[out->images[i]] =
			name_entry(file->list.images[out->images[i]].id, i, numbered);
	return KPACK_SUCCESS;
}

void unbundle_names_fini(struct unbundle_names *names, size_t n_images)
{
	for (size_t i = 0; names->items && i < n_images; i++)
		free(names->items[i]);
	free(names->items);
	free(names->images);
	*names = (struct unbundle_names){0};
}
