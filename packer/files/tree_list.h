/* SPDX-License-Identifier: MIT */
/*
 * List a directory tree: every directory before and after its contents, sorted bytewise,
 * by descriptors (see below.h).  Links are listed and not followed, but for the root.
 * Files that are made or removed meanwhile may be listed or not.
 */
#ifndef PACKER_FILES_TREE_LIST_H
#define PACKER_FILES_TREE_LIST_H

#include <stdbool.h>
#include <sys/stat.h>
#include "core/base/errors.h"

enum tree_item_kind {
	TREE_DIR,     /* its contents follow, unless it is skipped */
	TREE_DIR_END, /* its contents are complete */
	TREE_OTHER,   /* anything but a directory */
	TREE_FAULT, /* it cannot be read: see error; a directory: instead of TREE_DIR_END */
};

/* Valid until the next call. */
struct tree_item {
	enum tree_item_kind kind;
	const char *path; /* begins with the root's */
	const char *rest; /* the path below the root; "": the root itself */
	const char *name; /* the last component */
	int level;        /* 0: the root */
	struct stat st;   /* of the link, if it is one; undefined for some faults */
	int error;        /* TREE_FAULT: errno */
	/*
	 * No other user can put another file at this path below the root: root runs the
	 * program and alone may write into the directories; or an ordinary user runs it.
	 */
	bool guarded;
};

struct tree_list;

/* Begin the list of ROOT.  Never fails: a missing ROOT is a fault at level 0. */
struct tree_list *tree_list_open(const char *root);
/* Get the next item; false: none is left. */
bool tree_list_next(struct tree_list *list, struct tree_item *item);
/* Leave out the contents of the TREE_DIR that was got last; TREE_DIR_END still follows. */
void tree_list_skip(struct tree_list *list);
void tree_list_close(struct tree_list *list); /* NULL is fine */

#endif
