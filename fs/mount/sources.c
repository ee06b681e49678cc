/* SPDX-License-Identifier: MIT */
/*
 * The new list is made beside the last one and compared with it.  An archive keeps its
 * serial as long as its file is the same: device, inode number, size, and both times.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/archive/naming.h"
#include "core/base/alloc.h"
#include "core/base/file.h"
#include "core/base/order.h"
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
	struct source_list_item *item;

	if (!path || !kp_grow(&s->items, s->count, &s->cap, sizeof(*s->items))) {
		free(path);
		return fail_memory();
	}
	item = &s->items[s->count++];
	*item = (struct source_list_item){.path = path, .source = source};
	if (error)
		item->error = strdup(error);
	return !error || item->error || fail_memory();
}

static bool same_place(const struct source_list_item *a, const struct source_list_item *b)
{
	return a->source == b->source && strcmp(a->path, b->path) == 0;
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

/*
 * Look at ITEM, and give it the serial that it had in the list LAST, which is sorted by
 * source and path, if the file is unchanged, or else a new one.  false: no memory.
 */
static bool fill_item(struct source_list *now, struct source_list_item *item,
		      const struct source_list *last, const struct source_list_options *o)
{
	const struct source_list_item *old =
		kp_find(last->items, last->count, item,
			KP_BY_NUMBER(struct source_list_item, source),
			KP_BY_TEXT(struct source_list_item, path));
	struct kpackx_error why = {0};

	if (item->error)
		return true;
	if (o->hook)
		o->hook(o->user, item->path);
	if (stat(item->path, &item->st)) {
		kp_fail_errno(&why, errno, "cannot look at it");
		item->st = (struct stat){0};
		item->error = strdup(why.text);
		return item->error || fail_memory();
	}
	if (old && old->error)
		old = NULL;
	if (old && same_bytes(&old->st, &item->st) &&
	    same_time(old->st.st_ctim, item->st.st_ctim) &&
	    !(o->forced && old->refused)) {
		item->serial = old->serial;
		item->refused = old->refused;
	} else {
		item->serial = ++now->last_serial;
		item->fresh = true;
		if (old && same_bytes(&old->st, &item->st))
			item->was = old->serial;
	}
	return true;
}

static bool list_source(struct source_list *s, const struct source_list_options *o,
			uint32_t source)
{
	const char *path = o->sources[source];
	/* O_PATH: a file is not opened, as it can be a FIFO, or not readable */
	KP_AUTO_CLOSE int fd = open(path, O_PATH | O_CLOEXEC);
	struct kpackx_error why = {0};
	char **paths = NULL;
	size_t count = 0;
	bool ok = true;

	if (fd < 0 ? kp_fail_errno(&why, errno, "cannot look at it")
		   : kp_archives_find_at(fd, path, &paths, &count, &why)) {
		if (!o->first)
			return add_item(s, strdup(path), why.text, source);
		log_about(LOG_ERR, path, why.text);
		return false;
	}
	if (count == 0 && o->first)
		log_about(LOG_WARNING, path, "no archives (*.kpack) here");
	for (size_t i = 0; i < count; i++) {
		if (ok)
			ok = add_item(s, paths[i], NULL, source);
		else
			free(paths[i]);
	}
	free(paths);
	return ok;
}

/*
 * True if A and B differ.  The attributes of the first source matter only without
 * archives.
 */
static bool lists_differ(const struct source_list *a, const struct source_list *b)
{
	if (a->count != b->count)
		return true;
	for (size_t i = 0; i < a->count; i++) {
		const struct source_list_item *x = &a->items[i], *y = &b->items[i];

		if (x->serial != y->serial || !same_place(x, y) ||
		    !x->error != !y->error ||
		    (x->error && strcmp(x->error, y->error) != 0))
			return true;
	}
	return a->count == 0 &&
	       (a->look.st_mode != b->look.st_mode || a->look.st_uid != b->look.st_uid ||
		a->look.st_gid != b->look.st_gid ||
		!same_time(a->look.st_mtim, b->look.st_mtim));
}

bool source_list_run(struct source_list *s, const struct source_list_options *o,
		     bool *changed)
{
	struct source_list now = {.look = s->look, .last_serial = s->last_serial};
	bool ok = true;
	struct stat st;

	/* the attributes of the first source that stat can read are for the directories of
	 * an empty mount; if there is no such source, the last ones stay */
	for (size_t i = 0; i < o->count; i++) {
		if (stat(o->sources[i], &st))
			continue;
		now.look = st;
		break;
	}
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
