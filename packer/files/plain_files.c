/* SPDX-License-Identifier: MIT */
#include "plain_files.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "below.h"
#include "packer/cli/xalloc.h"
#include "packer/cli/report.h"
#include "core/archive/naming.h"
#include "tree_list.h"

/* The walk of a root. */
struct walk {
	struct plain_files *out;
	const char *prefix;
	bool mounted;
};

static void add_file(const struct walk *w, struct file_tree *to,
		     const struct tree_item *e, const struct stat *st)
{
	struct file_tree_item item = {
		.disk = (char *)e->path,
		.size = (uint64_t)st->st_size,
		.mode = st->st_mode & 07777,
	};

	item.path = xasprintf("%s%s%s", w->prefix, *w->prefix ? "/" : "", e->rest);
	file_tree_add(to, &item);
	free(item.path);
}

/* Loaders follow links; the caller finds out whether a dangling one leads to an entry. */
static void add_link(struct walk *w, const struct tree_item *e)
{
	struct stat st;

	if (below_stat(e->path, &st) < 0)
		add_file(w, &w->out->links, e, &e->st);
	else if (S_ISREG(st.st_mode))
		add_file(w, &w->out->files, e, &st);
}

/* Whether E is an archive at the root, whose contents are read instead. */
static bool is_archive(const struct tree_item *e)
{
	return e->level == 1 && kp_is_archive_name(e->name);
}

/* Whether E is a directory that is not part of the tree. */
static bool is_special(const struct tree_item *e, bool mounted)
{
	return e->level == 1 && (strcmp(e->name, KP_ARCHIVES_DIR) == 0 ||
				 (mounted && strcmp(e->name, KP_TOC_NAME) == 0));
}

/*
 * Remember the directory of the archive E, as kpack pack --archive-dir makes it.  A ".kpack"
 * below the root is of another tree.
 */
static void add_archive_dir(struct plain_files *out, const struct tree_item *e)
{
	size_t n = (size_t)(e->name - e->path) - 1;
	bool known = kp_is_archive_of_tree(e->path);

	for (size_t i = 0; i < out->n_archive_dirs && !known; i++)
		known = strncmp(out->archive_dirs[i], e->path, n) == 0 &&
			out->archive_dirs[i][n] == '\0';
	if (known)
		return;
	xgrow(&out->archive_dirs, out->n_archive_dirs, &out->archive_dirs_cap,
	      sizeof(*out->archive_dirs));
	out->archive_dirs[out->n_archive_dirs++] = xstrndup(e->path, n);
}

static void visit_entry(struct walk *w, struct tree_list *list, const struct tree_item *e)
{
	if (e->kind == TREE_FAULT) {
		report_error(e->path, "%s", strerror(e->error));
		w->out->n_faults++;
	} else if (e->kind == TREE_DIR) {
		if (is_special(e, w->mounted))
			tree_list_skip(list);
	} else if (e->kind == TREE_OTHER && S_ISREG(e->st.st_mode)) {
		if (is_archive(e))
			return;
		if (e->level > 1 && kp_is_archive_name(e->name) && !w->mounted)
			add_archive_dir(w->out, e);
		add_file(w, &w->out->files, e, &e->st);
	} else if (e->kind == TREE_OTHER && S_ISLNK(e->st.st_mode)) {
		add_link(w, e);
	}
}

/* Whether ROOT is a mount: it has a control directory, even if it does not list it. */
static bool is_mount(const char *root)
{
	struct stat st;
	char *path = xasprintf("%s/" KP_CONTROL_NAME, root);
	bool yes = below_stat(path, &st) == 0 && S_ISDIR(st.st_mode);

	free(path);
	return yes;
}

void plain_files_read(const char *root, const char *prefix, struct plain_files *out)
{
	struct walk w = {out, prefix, is_mount(root)};
	struct tree_list *list = tree_list_open(root);
	struct tree_item e;

	while (tree_list_next(list, &e))
		visit_entry(&w, list, &e);
	tree_list_close(list);
}

void plain_files_fini(struct plain_files *plain)
{
	file_tree_fini(&plain->files);
	file_tree_fini(&plain->links);
	for (size_t i = 0; i < plain->n_archive_dirs; i++)
		free(plain->archive_dirs[i]);
	free(plain->archive_dirs);
}
