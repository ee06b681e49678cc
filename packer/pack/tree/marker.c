/* SPDX-License-Identifier: MIT */
#include "marker.h"
#include <stdio.h>
#include <stdlib.h>
#include "core/base/alloc.h"
#include "core/binary/search_path.h"
#include "packer/pack/archives/volume.h"
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

/* Takes over TEXT, which may be NULL: out of memory. */
static kpack_error_t add_text(struct list *list, char *text, struct kpackx_error *why)
{
	if (!text || !kp_grow(&list->items, list->n, &list->cap, sizeof(char *))) {
		free(text);
		return kp_fail_memory(why, list->n, "a marker");
	}
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->items[i], text) == 0) {
			free(text);
			return KPACK_SUCCESS;
		}
	list->items[list->n++] = text;
	return KPACK_SUCCESS;
}

/*
 * Add the archive that has the code of FAMILY, or, if that is NULL, of an architecture.
 */
static kpack_error_t add_archive(struct list *files, const struct family *family,
				 const char *group, unsigned volume,
				 struct kpackx_error *why)
{
	char *stem, *file;

	if (asprintf(&stem, "%s%s", family ? "-" : "_",
		     family ? family->name : KP_SEARCH_ARCH) < 0)
		return kp_fail_memory(why, 0, "a marker");
	file = kp_archive_file_name(group, volume, stem);
	free(stem);
	return add_text(files, file, why);
}

static kpack_error_t list_archives(const struct plan_binary *b, const char *group,
				   const struct families *families, struct list *files,
				   struct kpackx_error *why)
{
	/* no requested target: another run may pack others */
	if (b->n_needs == 0)
		return add_archive(files, NULL, group, b->volume, why);
	for (size_t i = 0; i < b->n_needs; i++)
		KP_TRY(add_archive(files, families_find(families, b->needs[i].place),
				   group, b->volume, why));
	return KPACK_SUCCESS;
}

static kpack_error_t list_all_archives(const struct plan_binary *b, const char *group,
				       const struct families *families,
				       struct list *files, struct kpackx_error *why)
{
	const struct input *in = b->input;

	for (size_t i = 0; i < in->fat.containers.n_images; i++)
		if (in->packed[i])
			KP_TRY(add_archive(
				files,
				families_find(families,
					      in->fat.containers.images[i].arch),
				group, b->volume, why));
	return KPACK_SUCCESS;
}

static int depth_of(const char *relative)
{
	int depth = 0;

	for (const char *p = relative; *p; p++)
		depth += *p == '/';
	return depth;
}

/* Returns the search path of FILE from a binary at RELATIVE. */
static char *search_path(const char *relative, const char *file)
{
	int depth = depth_of(relative);
	char *up = malloc(3 * (size_t)depth + 1), *path;

	if (!up)
		return NULL;
	for (int i = 0; i < depth; i++)
		memcpy(up + 3 * i, "../", 3);
	up[3 * depth] = 0;
	if (asprintf(&path, "%s" KP_ARCHIVES_DIR "/%s", up, file) < 0)
		path = NULL;
	free(up);
	return path;
}

static kpack_error_t list_paths(const struct scan *scan, size_t entry,
				const struct list *files, struct list *paths,
				struct kpackx_error *why)
{
	for (; entry != SCAN_NO_LINK; entry = scan->entries[entry].next_link)
		for (size_t i = 0; i < files->n; i++)
			KP_TRY(add_text(paths,
					search_path(scan->entries[entry].relative,
						    files->items[i]),
					why));
	return KPACK_SUCCESS;
}

kpack_error_t reference_make(const struct scan *scan, const struct plan_binary *binary,
			     bool all, const char *group, const struct families *families,
			     uint8_t **out, size_t *size, struct kpackx_error *why)
{
	struct list files = {0}, paths = {0};
	kpack_error_t err = (all ? list_all_archives
				 : list_archives)(binary, group, families, &files, why);

	if (!err)
		err = list_paths(scan, binary->input->entry, &files, &paths, why);
	if (!err) {
		struct kp_marker marker = {
			.kernel_name = binary->input->key,
			.search_paths = paths.items,
			.n_search_paths = paths.n,
		};
		err = kp_marker_write(&marker, out, size, why);
	}
	list_fini(&files);
	list_fini(&paths);
	return err;
}

static bool names_file(const struct kp_marker *marker, const char *file)
{
	for (size_t i = 0; i < marker->n_search_paths; i++) {
		const char *slash = strrchr(marker->search_paths[i], '/');

		if (strcmp(slash ? slash + 1 : marker->search_paths[i], file) == 0)
			return true;
	}
	return false;
}

kpack_error_t reference_agrees(const struct kp_marker *marker,
			       const struct plan_binary *binary, const char *group,
			       const struct families *families, bool *agrees,
			       struct kpackx_error *why)
{
	struct list files = {0};
	kpack_error_t err = list_archives(binary, group, families, &files, why);

	*agrees = true;
	for (size_t i = 0; i < files.n; i++)
		*agrees = *agrees && names_file(marker, files.items[i]);
	list_fini(&files);
	return err;
}
