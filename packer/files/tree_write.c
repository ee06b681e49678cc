/* SPDX-License-Identifier: MIT */
#include "tree_write.h"
#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include "below.h"
#include "leftovers.h"
#include "lock.h"
#include "packer/cli/xalloc.h"

struct tree_directory {
	char *path, *from;
	struct file_identity made;
};

/* The first written path of a file with several hard links. */
struct first_link {
	dev_t dev;
	ino_t ino;
	char *path;
	char *left; /* why it was left out; or NULL */
};

void tree_write_begin(struct tree_write *w, const char *root, bool staged)
{
	*w = (struct tree_write){.root = root, .staged = staged, .lock = -1};
}

static void free_link(void *p)
{
	struct first_link *link = p;

	free(link->path);
	free(link->left);
	free(link);
}

void tree_write_end(struct tree_write *w)
{
	for (size_t i = 0; i < w->n_dirs; i++) {
		free(w->dirs[i].path);
		free(w->dirs[i].from);
	}
	free(w->dirs);
	tdestroy(w->links, free_link);
	if (w->root)
		lock_close(w->lock);
	*w = (struct tree_write){.lock = -1};
}

kpack_error_t tree_write_lock(struct tree_write *w, struct kpackx_error *why)
{
	return leftovers_lock(w->root, &w->lock, why);
}

static char *path_in_tree(const struct tree_write *w, const char *path)
{
	return xasprintf(*path ? "%s/%s" : "%s", w->root, path);
}

/* Frees TO, and puts the name of the file in front of the error. */
static kpack_error_t end_call(const struct tree_write *w, const char *from, char *to,
			      kpack_error_t err, struct kpackx_error *why)
{
	if (err)
		kp_fail_prefix(why, err, "%s", w->staged && from ? from : to);
	free(to);
	return err;
}

/* --- directories --------------------------------------------------------------------- */

kpack_error_t tree_write_root(struct tree_write *w, struct kpackx_error *why)
{
	struct file_identity made;
	kpack_error_t err;

	KP_TRY(below_make_root(w->root, 0777, why));
	err = copy_directory(w->root, &made, why);
	return err ? kp_fail_prefix(why, err, "%s", w->root) : KPACK_SUCCESS;
}

kpack_error_t tree_write_directory(struct tree_write *w, const char *path,
				   const char *from, struct kpackx_error *why)
{
	char *to = path_in_tree(w, path);
	struct file_identity made = {0};
	kpack_error_t err = copy_directory(to, &made, why);

	xgrow(&w->dirs, w->n_dirs, &w->dirs_cap, sizeof(*w->dirs));
	w->dirs[w->n_dirs++] = (struct tree_directory){
		.path = xstrdup(path),
		.from = xstrdup(from),
		.made = made,
	};
	return end_call(w, from, to, err, why);
}

static kpack_error_t make_parent(struct tree_write *w, const char *path,
				 const char *from_root, struct kpackx_error *why)
{
	char *to = path_in_tree(w, path), *from = xasprintf("%s/%s", from_root, path);
	kpack_error_t err = KPACK_SUCCESS;
	struct stat st;

	if (below_lstat(to, &st) == 0) {
		/* made before */
	} else if (below_lstat(from, &st) == 0) {
		err = tree_write_directory(w, path, from, why);
	} else if (below_mkdir(to, 0777) < 0 && errno != EEXIST) {
		err = kp_fail_prefix(why, below_fail(why, "cannot make the directory"),
				     "%s", to);
	}
	free(from);
	free(to);
	return err;
}

kpack_error_t tree_write_parents(struct tree_write *w, const char *path, const char *from,
				 struct kpackx_error *why)
{
	for (const char *slash = strchr(path, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		char *parent = xstrndup(path, (size_t)(slash - path));
		kpack_error_t err = make_parent(w, parent, from, why);

		free(parent);
		KP_TRY(err);
	}
	return KPACK_SUCCESS;
}

static kpack_error_t finish_directory(const struct tree_write *w,
				      const struct tree_directory *dir,
				      struct kpackx_error *why)
{
	char *to = path_in_tree(w, dir->path);
	kpack_error_t err = KPACK_SUCCESS;
	struct stat st;

	if (!w->staged || below_lstat(to, &st) == 0)
		err = copy_directory_attributes(dir->from, to, &dir->made, why);
	else if (errno != ENOENT)
		err = below_fail(why, "cannot look at the directory");
	return end_call(w, dir->from, to, err, why);
}

kpack_error_t tree_write_finish(struct tree_write *w, struct kpackx_error *why)
{
	for (size_t i = 0; i < w->n_dirs && w->lock >= 0; i++)
		KP_TRY(leftovers_remove(w->root, w->dirs[i].path, why));
	for (size_t i = w->n_dirs; i-- > 0;)
		KP_TRY(finish_directory(w, &w->dirs[i], why));
	return KPACK_SUCCESS;
}

/* --- files --------------------------------------------------------------------------- */

static bool may_be_left(const struct file_identity *seen, int error)
{
	return !S_ISREG(seen->mode) && !S_ISLNK(seen->mode) &&
	       (error == EPERM || error == EOPNOTSUPP);
}

kpack_error_t tree_write_file(struct tree_write *w, const char *path, const char *from,
			      const struct file_identity *seen, char **left,
			      struct kpackx_error *why)
{
	char *to = path_in_tree(w, path);
	struct kpackx_error fault = {0};
	kpack_error_t err = copy_seen(from, seen, to, &fault);

	if (left)
		*left = NULL;
	if (err && left && may_be_left(seen, fault.sys_errno)) {
		*left = xstrdup(fault.text);
		err = KPACK_SUCCESS;
	} else if (err && why) {
		*why = fault;
	}
	return end_call(w, from, to, err, why);
}

kpack_error_t tree_write_link(struct tree_write *w, const char *path, const char *first,
			      const char *from, const struct file_identity *seen,
			      struct kpackx_error *why)
{
	char *to = path_in_tree(w, path), *link_to = path_in_tree(w, first);
	kpack_error_t err = copy_link(link_to, from, seen, to, why);

	free(link_to);
	return end_call(w, from, to, err, why);
}

static int by_inode(const void *a, const void *b)
{
	const struct first_link *x = a, *y = b;

	if (x->dev != y->dev)
		return KP_ORDER(x->dev, y->dev);
	return KP_ORDER(x->ino, y->ino);
}

static void remember_link(struct tree_write *w, const char *path,
			  const struct file_identity *seen, const char *left)
{
	struct first_link *link = xmalloc(sizeof(*link));

	*link = (struct first_link){seen->dev, seen->ino, xstrdup(path),
				    left ? xstrdup(left) : NULL};
	if (!tsearch(link, &w->links, by_inode))
		xalloc_fail(0);
}

kpack_error_t tree_write_entry(struct tree_write *w, const char *path, const char *from,
			       const struct file_identity *seen, char **left,
			       struct kpackx_error *why)
{
	const struct first_link key = {.dev = seen->dev, .ino = seen->ino};
	struct first_link *const *first;

	*left = NULL;
	if (S_ISDIR(seen->mode))
		return tree_write_directory(w, path, from, why);
	first = seen->nlink > 1 ? tfind(&key, (void *const *)&w->links, by_inode) : NULL;
	if (first && (*first)->left) {
		*left = xstrdup((*first)->left);
		return KPACK_SUCCESS;
	}
	if (first)
		return tree_write_link(w, path, (*first)->path, from, seen, why);
	KP_TRY(tree_write_file(w, path, from, seen, left, why));
	if (seen->nlink > 1)
		remember_link(w, path, seen, *left);
	return KPACK_SUCCESS;
}

kpack_error_t tree_write_remove(struct tree_write *w, const char *path,
				struct kpackx_error *why)
{
	char *to = path_in_tree(w, path);
	kpack_error_t err = KPACK_SUCCESS;

	if (below_unlink(to) < 0 && errno != ENOENT)
		err = below_fail(why, "cannot remove");
	return end_call(w, NULL, to, err, why);
}
