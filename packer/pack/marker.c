/* SPDX-License-Identifier: MIT */
#include "marker.h"
#include <stdlib.h>
#include "core/base/path.h"
#include "packer/cli/xalloc.h"
#include "core/elf/search_path.h"
#include "core/archive/naming.h"

/* Texts without duplicates, in the order they were added. */
struct list {
	char **items;
	size_t n, cap;
};

static void list_fini(struct list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->items[i]);
	free(list->items);
}

/* Takes over TEXT. */
static void add_text(struct list *list, char *text)
{
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->items[i], text) == 0) {
			free(text);
			return;
		}
	xgrow(&list->items, list->n, &list->cap, sizeof(char *));
	list->items[list->n++] = text;
}

/*
 * Add the archive that has the code of FAMILY, or, if that is NULL, of an architecture.
 */
static void add_archive(struct list *files, const struct family *family,
			const char *group, unsigned volume)
{
	char *stem = xasprintf("%s%s", family ? "-" : "_",
			       family ? family->name : KP_SEARCH_ARCH);
	char *file = kp_archive_file_name(group, volume, stem);

	if (!file)
		xalloc_fail(0);
	free(stem);
	add_text(files, file);
}

static void list_archives(const struct plan_binary *b, const char *group,
			  const struct families *families, struct list *files)
{
	/* no requested target: another run may pack others */
	if (b->n_needs == 0)
		add_archive(files, NULL, group, b->volume);
	for (size_t i = 0; i < b->n_needs; i++)
		add_archive(files, families_find(families, b->needs[i].place), group,
			    b->volume);
}

static void list_all_archives(const struct plan_binary *b, const char *group,
			      const struct families *families, struct list *files)
{
	const struct input *in = b->input;

	for (size_t i = 0; i < in->n_images; i++)
		if (in->packed[i])
			add_archive(files, families_find(families, in->images[i].arch),
				    group, b->volume);
}

static int depth_of(const char *relative)
{
	int depth = 0;

	for (const char *p = relative; *p; p++)
		depth += *p == '/';
	return depth;
}

/* Returns the search path of FILE in DIR from a binary at RELATIVE. */
static char *search_path(const char *relative, const char *dir, const char *file)
{
	int depth = depth_of(relative);
	char *up = xmalloc(3 * (size_t)depth + 1), *path;

	for (int i = 0; i < depth; i++)
		memcpy(up + 3 * i, "../", 3);
	up[3 * depth] = 0;
	path = xasprintf("%s%s/%s", up, dir, file);
	free(up);
	return path;
}

static void list_paths(const struct scan *scan, size_t entry, const struct list *files,
		       struct list *paths)
{
	for (; entry != SCAN_NO_LINK; entry = scan->entries[entry].next_link)
		for (size_t i = 0; i < files->n; i++)
			add_text(paths, search_path(scan->entries[entry].relative,
						    scan->archives_dir, files->items[i]));
}

kpack_error_t marker_make(const struct marker_request *r, uint8_t **out, size_t *size,
			  struct kpackx_error *why)
{
	const struct input *in = r->binary->input;
	struct list files = {0}, paths = {0};
	struct kp_marker marker = {.kernel_name = in->key};
	kpack_error_t err;

	if (r->all)
		list_all_archives(r->binary, r->group, r->families, &files);
	else
		list_archives(r->binary, r->group, r->families, &files);
	list_paths(r->scan, in->entry, &files, &paths);
	marker.search_paths = paths.items;
	marker.n_search_paths = paths.n;
	err = kp_marker_write(&marker, out, size, why);
	list_fini(&files);
	list_fini(&paths);
	return err;
}

static bool names_file(const struct kp_marker *marker, const char *file)
{
	for (size_t i = 0; i < marker->n_search_paths; i++)
		if (strcmp(kp_path_name(marker->search_paths[i]), file) == 0)
			return true;
	return false;
}

bool marker_agrees(const struct kp_marker *marker, const struct plan_binary *binary,
		   const char *group, const struct families *families)
{
	struct list files = {0};
	bool agrees = true;

	list_archives(binary, group, families, &files);
	for (size_t i = 0; i < files.n; i++)
		agrees = agrees && names_file(marker, files.items[i]);
	list_fini(&files);
	return agrees;
}
