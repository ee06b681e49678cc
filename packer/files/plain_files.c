/* SPDX-License-Identifier: MIT */
#include "plain_files.h"
#include <errno.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include "packer/base/xalloc.h"
#include "packer/cli/report.h"
#include "core/archive/naming.h"

/* A directory at the root of a mount that is not part of the tree. */
#define MOUNT_TOC "toc"

/* The walk of a root. */
struct walk {
	struct plain_files *out;
	const char *prefix;
	size_t skip; /* bytes of the root at the start of paths */
	bool mounted;
};

static void add_file(const struct walk *w, struct file_tree *to, const FTSENT *e,
		     const struct stat *st)
{
	struct file_tree_item item = {
		.disk = e->fts_path,
		.size = (uint64_t)st->st_size,
		.mode = st->st_mode & 07777,
	};
	const char *path = e->fts_path + w->skip;

	while (*path == '/')
		path++;
	item.path = xasprintf("%s%s%s", w->prefix, *w->prefix ? "/" : "", path);
	file_tree_add(to, &item, NULL);
	free(item.path);
}

/* Loaders follow links; the caller finds out whether a dangling one leads to an entry. */
static void add_link(struct walk *w, const FTSENT *e)
{
	struct stat st;

	if (stat(e->fts_path, &st) < 0)
		add_file(w, &w->out->links, e, e->fts_statp);
	else if (S_ISREG(st.st_mode))
		add_file(w, &w->out->files, e, &st);
}

/* Whether E is an archive at the root, whose contents are read instead. */
static bool is_archive(const FTSENT *e)
{
	return e->fts_level == 1 && kp_is_archive_name(e->fts_name);
}

/* Whether E is a directory that is not part of the tree. */
static bool is_special(const FTSENT *e, bool mounted)
{
	return e->fts_level == 1 && (strcmp(e->fts_name, KP_ARCHIVES_DIR) == 0 ||
				     (mounted && strcmp(e->fts_name, MOUNT_TOC) == 0));
}

static void visit_entry(struct walk *w, FTS *fts, FTSENT *e)
{
	switch (e->fts_info) {
	case FTS_D:
		if (is_special(e, w->mounted))
			fts_set(fts, e, FTS_SKIP);
		break;
	case FTS_F:
		if (!is_archive(e))
			add_file(w, &w->out->files, e, e->fts_statp);
		break;
	case FTS_SL:
		add_link(w, e);
		break;
	case FTS_DNR:
	case FTS_ERR:
	case FTS_NS:
		report_error(e->fts_path, "%s", strerror(e->fts_errno));
		w->out->n_faults++;
		break;
	default:
		break;
	}
}

/* Whether ROOT is a mount: it has a control directory, even if it does not list it. */
static bool is_mount(const char *root)
{
	struct stat st;
	char *path = xasprintf("%s/" KP_CONTROL_NAME, root);
	bool yes = stat(path, &st) == 0 && S_ISDIR(st.st_mode);

	free(path);
	return yes;
}

kpack_error_t plain_files_read(const char *root, const char *prefix,
			       struct plain_files *out, struct kpackx_error *why)
{
	struct walk w = {out, prefix, strlen(root), is_mount(root)};
	char *const roots[] = {(char *)root, NULL};
	FTS *fts = fts_open(roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, NULL);
	kpack_error_t err = KPACK_SUCCESS;
	FTSENT *e;

	if (!fts)
		return kp_fail_errno(why, errno, "cannot read the directory tree");
	while ((errno = 0, e = fts_read(fts)))
		visit_entry(&w, fts, e);
	if (errno)
		err = kp_fail_errno(why, errno, "cannot read the directory tree");
	fts_close(fts);
	return err;
}

void plain_files_fini(struct plain_files *plain)
{
	file_tree_fini(&plain->files);
	file_tree_fini(&plain->links);
}
