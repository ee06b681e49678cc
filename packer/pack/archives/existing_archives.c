/* SPDX-License-Identifier: MIT */
#include "existing_archives.h"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/archive/archive.h"
#include "volume.h"
#include "core/archive/naming.h"

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
static kpack_error_t weigh_entry(struct existing_archive *a,
				 const struct kpack_archive *archive, size_t entry,
				 enum existing_fate fate, bool *stays,
				 struct kpackx_error *why)
{
	struct kp_entry_info info;

	kp_archive_entry(archive, entry, &info);
	if (fate == ENTRY_MOVED && !a->moved &&
	    asprintf(&a->moved, "%.*s %.*s", (int)info.key.size, info.key.data,
		     (int)info.arch.size, info.arch.data) < 0) {
		a->moved = NULL;
		return kp_fail_memory(why, info.key.size, "a name");
	}
	if (fate == ENTRY_REPLACED || info.ordinal >= kp_archive_ordinal_count(archive) ||
	    stays[info.ordinal])
		return KPACK_SUCCESS;
	stays[info.ordinal] = true;
	a->bytes += 4 + info.stored;
	a->frames++;
	return KPACK_SUCCESS;
}

static kpack_error_t weigh_entries(struct existing_archive *a,
				   const struct kpack_archive *archive,
				   existing_fate_fn *fate, const void *arg,
				   struct kpackx_error *why)
{
	bool *stays = calloc((size_t)kp_archive_ordinal_count(archive) + 1, 1);
	kpack_error_t err = KPACK_SUCCESS;
	struct kp_entry_info info;

	if (!stays)
		return kp_fail_memory(why, kp_archive_ordinal_count(archive), "objects");
	for (size_t i = 0; i < kp_archive_entry_count(archive) && !err; i++) {
		kp_archive_entry(archive, i, &info);
		err = weigh_entry(a, archive, i, fate(arg, a, info.key, info.arch), stays,
				  why);
	}
	free(stays);
	return err;
}

static kpack_error_t look_at_archive(struct existing_archive *a, const char *dir,
				     const char *group, existing_fate_fn *fate,
				     const void *arg, struct kpackx_error *why)
{
	struct kpack_archive *archive = NULL;
	kpack_error_t err = KPACK_SUCCESS;
	char *path;

	if (asprintf(&path, "%s/%s", dir, a->file) < 0)
		return kp_fail_memory(why, strlen(a->file), "a path");
	if (kp_archive_open(path, &archive, NULL)) {
		struct stat st;
		if (stat(path, &st) == 0)
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

static kpack_error_t add_archive(struct existing *list, const char *name, unsigned number,
				 struct kp_span stem, struct kpackx_error *why)
{
	struct existing_archive *bigger =
		realloc(list->items, (list->count + 1) * sizeof(*bigger));
	struct existing_archive a = {.number = number};

	if (!bigger)
		return kp_fail_memory(why, sizeof(*bigger), "an archive");
	list->items = bigger;
	a.file = strdup(name);
	a.stem = strndup((const char *)stem.data, stem.size);
	bigger[list->count++] = a;
	return a.file && a.stem ? KPACK_SUCCESS
				: kp_fail_memory(why, strlen(name), "a name");
}

static int by_file(const void *a, const void *b)
{
	const struct existing_archive *x = a, *y = b;

	return strcmp(x->file, y->file);
}

static kpack_error_t list_names(const char *path, const char *group,
				struct existing *list, struct kpackx_error *why)
{
	kpack_error_t err = KPACK_SUCCESS;
	DIR *dir = opendir(path);
	struct dirent *d;

	if (!dir)
		return kp_fail_errno(why, errno, "%s", path);
	while (!err && (d = readdir(dir))) {
		struct kp_span stem;
		unsigned number;

		if (kp_archive_name_split(d->d_name, group, &number, &stem))
			err = add_archive(list, d->d_name, number, stem, why);
	}
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
