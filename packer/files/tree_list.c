/* SPDX-License-Identifier: MIT */
/*
 * The list is a stack of directories that were read, each sorted, with how far it was given.  A
 * directory is read when the item after it is asked for, so that the caller can skip it.
 *
 * A directory is read whole and closed at once.  So a deep tree does not run out of descriptors,
 * the order does not depend on the file system, and what the caller makes or removes in the
 * directory meanwhile does not disturb the reading.
 */
#include "tree_list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "below.h"
#include "core/base/file.h"
#include "core/base/order.h"
#include "core/base/walk.h"
#include "packer/cli/xalloc.h"

struct listed {
	char *name;
	struct stat st;
	int error; /* of lstat */
};

/* A directory whose contents are being listed. */
struct level {
	struct listed *items;
	size_t count, next;
	size_t length; /* of the directory's path */
	struct stat st;
	bool guards; /* no other user can exchange what is in it */
};

struct tree_list {
	char *path; /* of the item that was got last */
	size_t cap;
	size_t root; /* length of the root's path */
	bool slash;  /* the root was named with a slash at its end */
	struct level *levels;
	size_t depth, levels_cap;
	bool started,
		entered; /* the root was got; the last item is a directory to enter */
	struct stat st;  /* of the last item */
};

struct tree_list *tree_list_open(const char *root)
{
	struct tree_list *list = xcalloc(1, sizeof(*list));
	size_t length = strlen(root);

	while (length > 1 && root[length - 1] == '/')
		length--;
	list->path = xstrndup(root, length);
	list->root = length;
	list->slash = root[length] == '/';
	list->cap = length + 1;
	return list;
}

static void free_level(struct level *level)
{
	for (size_t i = 0; i < level->count; i++)
		free(level->items[i].name);
	free(level->items);
}

/* Enter the directory that was got last, and READ it.  0, or errno. */
static int enter_directory(struct tree_list *list, bool read)
{
	struct level level = {.length = strlen(list->path), .st = list->st};
	const int flags = O_RDONLY | O_DIRECTORY;
	int fd = !read         ? -1
		 : list->depth ? below_open(list->path, flags, 0)
			       : below_open_following(list->path, flags);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	int error = read && !dir ? errno : 0;
	const struct dirent *e;
	size_t cap = 0;

	if (!dir)
		kp_close_keeping_errno(fd);
	while (dir && (errno = 0, e = readdir(dir))) {
		struct listed item = {.name = NULL};

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (fstatat(dirfd(dir), e->d_name, &item.st, AT_SYMLINK_NOFOLLOW) < 0) {
			if (errno == ENOENT) /* removed meanwhile */
				continue;
			item.error = errno;
		}
		item.name = xstrdup(e->d_name);
		xgrow(&level.items, level.count, &cap, sizeof(*level.items));
		level.items[level.count++] = item;
	}
	if (dir) {
		error = errno;
		closedir(dir);
	}
	if (error) {
		free_level(&level);
		return error;
	}
	kp_sort(level.items, level.count, KP_BY_TEXT(struct listed, name));
	/* one directory that others may write is enough: they can rename what is below it */
	level.guards = (!list->depth || list->levels[list->depth - 1].guards) &&
		       (geteuid() != 0 || kp_only_root_writes(&level.st));
	xgrow(&list->levels, list->depth, &list->levels_cap, sizeof(*list->levels));
	list->levels[list->depth++] = level;
	list->entered = false;
	return 0;
}

void tree_list_skip(struct tree_list *list)
{
	if (list->entered)
		enter_directory(list, false);
}

/* Fill ITEM with the last item, which is as many directories below the root as are open. */
static bool give_item(struct tree_list *list, struct tree_item *item,
		      enum tree_item_kind kind, int error)
{
	const char *rest = list->path + list->root, *slash = strrchr(list->path, '/');

	*item = (struct tree_item){
		.kind = kind,
		.path = list->path,
		.rest = rest + (*rest == '/'),
		.name = slash && slash[1] ? slash + 1 : list->path,
		.level = (int)list->depth,
		.st = list->st,
		.error = error,
		.guarded = !list->depth || list->levels[list->depth - 1].guards,
	};
	list->entered = kind == TREE_DIR;
	return true;
}

bool tree_list_next(struct tree_list *list, struct tree_item *item)
{
	const struct listed *next = NULL;
	struct level *level;
	size_t size;
	bool slash;
	int error;

	if (!list->started) {
		/* the root is what the user named, also by a link */
		list->started = true;
		error = below_stat(list->path, &list->st) < 0 ? errno : 0;
		if (!error && !S_ISDIR(list->st.st_mode) && list->slash)
			error = ENOTDIR;
	} else {
		error = list->entered ? enter_directory(list, true) : 0;
		if (error)
			return give_item(list, item, TREE_FAULT, error);
		if (!list->depth)
			return false;
		level = &list->levels[list->depth - 1];
		if (level->next == level->count) {
			list->path[level->length] = '\0';
			list->st = level->st;
			free_level(level);
			list->depth--;
			return give_item(list, item, TREE_DIR_END, 0);
		}
		next = &level->items[level->next++];
		/*
		 * Its path.  There is one text for all items, which grows: a tree of a million
		 * files would make as many allocations.
		 */
		slash = list->path[level->length - 1] != '/';
		size = level->length + slash + strlen(next->name) + 1;
		if (size > list->cap) {
			list->cap = 2 * size;
			list->path = xrealloc(list->path, list->cap);
		}
		if (slash)
			list->path[level->length] = '/';
		strcpy(list->path + level->length + slash, next->name);
		list->st = next->st;
		error = next->error;
	}
	return give_item(list, item,
			 error                       ? TREE_FAULT
			 : S_ISDIR(list->st.st_mode) ? TREE_DIR
						     : TREE_OTHER,
			 error);
}

void tree_list_close(struct tree_list *list)
{
	if (!list)
		return;
	while (list->depth)
		free_level(&list->levels[--list->depth]);
	free(list->levels);
	free(list->path);
	free(list);
}
