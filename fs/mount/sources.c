/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/archive/find.h"
#include "core/base/file.h"
#include "fs/base/log.h"
#include "sources.h"

static void free_items(struct source_list_item *items, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free(items[i].path);
		free(items[i].error);
	}
	free(items);
}

void source_list_free(struct source_list *s)
{
	free_items(s->items, s->count);
	*s = (struct source_list){0};
}

static bool fail_memory(void)
{
	log_print(LOG_ERR, "out of memory");
	return false;
}

/* Add an item.  Takes PATH (NULL: no memory), and copies ERROR, which may be NULL. */
static bool add_item(struct source_list *s, char *path, const char *error,
		     uint32_t source)
{
	struct source_list_item *list = s->items, *item;

	if (path && (s->count & (s->count - 1)) == 0)
		list = reallocarray(list, s->count ? 2 * s->count : 1, sizeof(*list));
	if (!path || !list) {
		free(path);
		return fail_memory();
	}
	s->items = list;
	item = &list[s->count++];
	*item = (struct source_list_item){.path = path, .source = source};
	if (!error)
		return true;
	item->error = strdup(error);
	return item->error || fail_memory();
}

static int compare_items(const struct source_list_item *a,
			 const struct source_list_item *b)
{
	if (a->source != b->source)
		return KP_ORDER(a->source, b->source);
	return strcmp(a->path, b->path);
}

static int compare_keys(const void *key, const void *item)
{
	return compare_items(key, item);
}

/* Find the item with ITEM's source and path: items are sorted by source, then by path. */
static struct source_list_item *find_item(const struct source_list *s,
					  const struct source_list_item *item)
{
	return s->count ? bsearch(item, s->items, s->count, sizeof(*item), compare_keys)
			: NULL;
}

static bool same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static bool same_bytes(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino &&
	       a->st_size == b->st_size && same_time(a->st_mtim, b->st_mtim);
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return same_bytes(a, b) && same_time(a->st_ctim, b->st_ctim);
}

/* Stat an item, and set its error if that fails; false: no memory. */
static bool stat_item(struct source_list_item *item)
{
	struct kpackx_error why = {0};

	if (item->error || stat(item->path, &item->st) == 0)
		return true;
	kp_fail_errno(&why, errno, "cannot look at it");
	item->st = (struct stat){0};
	item->error = strdup(why.text);
	return item->error || fail_memory();
}

/* Give ITEM the serial that it had, if the file is unchanged, or else a new one. */
static void number_item(struct source_list *now, struct source_list_item *item,
			const struct source_list *last, bool forced)
{
	const struct source_list_item *old = find_item(last, item);

	if (item->error)
		return;
	if (old && !old->error && same_file(&old->st, &item->st) &&
	    !(forced && old->refused)) {
		item->serial = old->serial;
		item->refused = old->refused;
	} else {
		item->serial = ++now->last_serial;
		item->fresh = true;
		if (old && !old->error && same_bytes(&old->st, &item->st))
			item->was = old->serial;
	}
}

static bool fill_item(struct source_list *now, struct source_list_item *item,
		      const struct source_list *last, const struct source_list_options *o)
{
	if (o->hook && !item->error)
		o->hook(o->user, item->path);
	if (!stat_item(item))
		return false;
	number_item(now, item, last, o->forced);
	return true;
}

/* Add the paths that kp_archives_find returned, and take them over. */
static bool add_paths(struct source_list *s, char **paths, size_t count, uint32_t source)
{
	bool ok = true;

	for (size_t i = 0; i < count; i++) {
		if (ok)
			ok = add_item(s, paths[i], NULL, source);
		else
			free(paths[i]);
	}
	free(paths);
	return ok;
}

static kpack_error_t find_archives(const char *source, char ***paths, size_t *count,
				   struct kpackx_error *why)
{
	/* O_PATH: a file is not opened, as it can be a FIFO, or not readable */
	int fd = open(source, O_PATH | O_CLOEXEC);
	kpack_error_t err;

	if (fd < 0)
		return kp_fail_errno(why, errno, "cannot look at it");
	err = kp_archives_find_at(fd, source, paths, count, why);
	close(fd);
	return err;
}

static bool list_source(struct source_list *s, const struct source_list_options *o,
			uint32_t source)
{
	const char *path = o->sources[source];
	struct kpackx_error why = {0};
	char **paths = NULL;
	size_t count = 0;

	if (find_archives(path, &paths, &count, &why)) {
		if (!o->first)
			return add_item(s, strdup(path), why.text, source);
		log_about(LOG_ERR, path, why.text);
		return false;
	}
	if (count == 0 && o->first)
		log_about(LOG_WARNING, path, "no archives (*.kpack) here");
	return add_paths(s, paths, count, source);
}

static bool items_differ(const struct source_list_item *a,
			 const struct source_list_item *b)
{
	return a->serial != b->serial || compare_items(a, b) || !a->error != !b->error ||
	       (a->error && strcmp(a->error, b->error) != 0);
}

static bool same_look(const struct stat *a, const struct stat *b)
{
	return a->st_mode == b->st_mode && a->st_uid == b->st_uid &&
	       a->st_gid == b->st_gid && same_time(a->st_mtim, b->st_mtim);
}

/*
 * True if A and B differ.  The attributes of the first source matter only without
 * archives.
 */
static bool lists_differ(const struct source_list *a, const struct source_list *b)
{
	if (a->count != b->count)
		return true;
	for (size_t i = 0; i < a->count; i++)
		if (items_differ(&a->items[i], &b->items[i]))
			return true;
	return a->count == 0 && !same_look(&a->look, &b->look);
}

/*
 * Take the attributes of the first source that stat can read, for the directories of an
 * empty mount.  If there is no such source, the last attributes stay.
 */
static void look_at_sources(struct source_list *s, const struct source_list_options *o)
{
	struct stat st;

	for (size_t i = 0; i < o->count; i++) {
		if (stat(o->sources[i], &st))
			continue;
		s->look = st;
		return;
	}
}

bool source_list_run(struct source_list *s, const struct source_list_options *o,
		     bool *changed)
{
	struct source_list now = {.look = s->look, .last_serial = s->last_serial};
	bool ok = true;

	look_at_sources(&now, o);
	for (uint32_t i = 0; ok && i < o->count; i++)
		ok = list_source(&now, o, i);
	for (size_t i = 0; ok && i < now.count; i++)
		ok = fill_item(&now, &now.items[i], s, o);
	if (!ok) {
		source_list_free(&now);
		return false;
	}
	*changed = lists_differ(s, &now);
	free_items(s->items, s->count);
	*s = now;
	return true;
}

void source_list_refuse(struct source_list *s, uint32_t serial)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->items[i].serial == serial)
			s->items[i].refused = true;
}

int source_list_open(struct source_list_item *item, struct kpackx_error *why)
{
	/* O_NONBLOCK: a FIFO must not block before its type is known */
	int fd = open(item->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	kpack_error_t err;
	struct stat st;

	err = fd < 0 ? kp_fail_errno(why, errno, "cannot open")
		     : kp_file_check(fd, &st, why);
	if (!err) {
		item->st = st;
		return fd;
	}
	item->refused = true;
	if (fd >= 0)
		close(fd);
	return -1;
}
