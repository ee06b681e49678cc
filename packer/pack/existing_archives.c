/* SPDX-License-Identifier: MIT */
#include "existing_archives.h"
#include <errno.h>
#include <dirent.h>
#include <stdlib.h>
#include "core/archive/archive.h"
#include "core/archive/naming.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"

static void existing_archive_fini(struct existing_archive *a)
{
	free(a->file);
	free(a->stem);
	free(a->moved);
}

void existing_close(struct existing *list)
{
	for (size_t i = 0; i < list->count; i++)
		existing_archive_fini(&list->items[i]);
	free(list->items);
	*list = (struct existing){0};
}

/* Count what one entry leaves in the archive; STAYS has a flag per ordinal. */
static void weigh_entry(struct existing_archive *a, const struct kpack_archive *archive,
			const struct kp_entry_info *info, enum existing_fate fate,
			bool *stays)
{
	if (fate == ENTRY_MOVED && !a->moved)
		a->moved = xasprintf("%.*s %.*s", (int)info->key.size, info->key.data,
				     (int)info->arch.size, info->arch.data);
	a->obsolete |= fate == ENTRY_OBSOLETE;
	if (fate == ENTRY_REPLACED || fate == ENTRY_OBSOLETE ||
	    info->ordinal >= kp_archive_ordinal_count(archive) || stays[info->ordinal])
		return;
	stays[info->ordinal] = true;
	a->bytes += 4 + info->stored;
	a->frames++;
}

static kpack_error_t weigh_entries(struct existing_archive *a,
				   const struct kpack_archive *archive,
				   existing_fate_fn *fate, const void *arg,
				   struct kpackx_error *why)
{
	bool *stays = calloc((size_t)kp_archive_ordinal_count(archive) + 1, 1);
	struct kp_entry_info info;

	if (!stays)
		return kp_fail_memory(why, kp_archive_ordinal_count(archive), "objects");
	for (size_t i = 0; i < kp_archive_entry_count(archive); i++) {
		kp_archive_entry(archive, i, &info);
		weigh_entry(a, archive, &info, fate(arg, a, archive, i), stays);
	}
	free(stays);
	return KPACK_SUCCESS;
}

static kpack_error_t look_at_archive(struct existing_archive *a, const char *dir,
				     const char *group, existing_fate_fn *fate,
				     const void *arg, struct kpackx_error *why)
{
	char *path = xasprintf("%s/%s", dir, a->file);
	struct kpack_archive *archive = NULL;
	kpack_error_t err = KPACK_SUCCESS;

	if (below_archive_open(path, &archive, NULL)) {
		struct stat st;

		if (below_stat(path, &st) == 0)
			a->bytes = (uint64_t)st.st_size;
	} else if (kp_archive_group(archive).size &&
		   !kp_span_is(kp_archive_group(archive), group)) {
		a->foreign = true;
	} else {
		err = weigh_entries(a, archive, fate, arg, why);
	}
	kp_archive_close(archive);
	free(path);
	return err;
}

static void add_archive(struct existing *list, const char *name, unsigned number,
			struct kp_span stem)
{
	struct existing_archive a = {
		.file = xstrdup(name),
		.stem = xstrndup((const char *)stem.data, stem.size),
		.number = number,
	};

	list->items = xrealloc(list->items, (list->count + 1) * sizeof(a));
	list->items[list->count++] = a;
}

static int by_file(const void *a, const void *b)
{
	const struct existing_archive *x = a, *y = b;

	return strcmp(x->file, y->file);
}

static kpack_error_t list_names(const char *path, const char *group,
				struct existing *list, struct kpackx_error *why)
{
	DIR *dir = below_opendir(path);
	kpack_error_t err = KPACK_SUCCESS;
	struct dirent *d;

	if (!dir)
		return below_fail(why, "%s", path);
	while ((errno = 0, d = readdir(dir))) {
		struct kp_span stem;
		unsigned number;

		if (kp_archive_name_split(d->d_name, group, &number, &stem))
			add_archive(list, d->d_name, number, stem);
	}
	/* an archive that is not seen would be replaced, and not added to */
	if (errno)
		err = below_fail(why, "%s", path);
	closedir(dir);
	if (list->count)
		qsort(list->items, list->count, sizeof(*list->items), by_file);
	return err;
}

kpack_error_t existing_open(const char *dir, const char *group, existing_fate_fn *fate,
			    const void *arg, struct existing *out,
			    struct kpackx_error *why)
{
	kpack_error_t err;

	*out = (struct existing){0};
	err = list_names(dir, group, out, why);
	for (size_t i = 0; i < out->count && !err; i++)
		err = look_at_archive(&out->items[i], dir, group, fate, arg, why);
	if (err)
		existing_close(out);
	return err;
}

const struct existing_archive *existing_find(const struct existing *list,
					     const char *file)
{
	struct existing_archive key = {.file = (char *)file};

	return list->count ? bsearch(&key, list->items, list->count, sizeof(key), by_file)
			   : NULL;
}
