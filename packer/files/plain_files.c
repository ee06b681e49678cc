/* SPDX-License-Identifier: MIT */
#include "plain_files.h"
#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static kpack_error_t add_file(const struct walk *w, struct file_tree *to, const FTSENT *e,
			      const struct stat *st, struct kpackx_error *why)
{
	struct file_tree_item item = {
		.disk = e->fts_path,
		.size = (uint64_t)st->st_size,
		.mode = st->st_mode & 07777,
	};
	const char *path = e->fts_path + w->skip;
	kpack_error_t err;

	while (*path == '/')
		path++;
	if (asprintf(&item.path, "%s%s%s", w->prefix, *w->prefix ? "/" : "", path) < 0)
		return kp_fail_memory(why, strlen(path), "a path");
	err = file_tree_add(to, &item, why);
	free(item.path);
	return err;
}

/* Loaders follow links; the caller finds out whether a dangling one leads to an entry. */
static kpack_error_t add_link(struct walk *w, const FTSENT *e, struct kpackx_error *why)
{
	struct stat st;

	if (stat(e->fts_path, &st) < 0)
		return add_file(w, &w->out->links, e, e->fts_statp, why);
	return S_ISREG(st.st_mode) ? add_file(w, &w->out->files, e, &st, why)
				   : KPACK_SUCCESS;
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

static kpack_error_t visit_entry(struct walk *w, FTS *fts, FTSENT *e,
				 struct kpackx_error *why)
{
	switch (e->fts_info) {
	case FTS_D:
		if (is_special(e, w->mounted))
			fts_set(fts, e, FTS_SKIP);
		return KPACK_SUCCESS;
	case FTS_F:
		return is_archive(e) ? KPACK_SUCCESS
				     : add_file(w, &w->out->files, e, e->fts_statp, why);
	case FTS_SL:
		return add_link(w, e, why);
	case FTS_DNR:
	case FTS_ERR:
	case FTS_NS:
		report_error(e->fts_path, "%s", strerror(e->fts_errno));
		w->out->n_faults++;
		return KPACK_SUCCESS;
	default:
		return KPACK_SUCCESS;
	}
}

/* Whether ROOT is a mount: it has a control directory, even if it does not list it. */
static bool is_mount(const char *root)
{
	struct stat st;
	char *path;
	bool yes;

	if (asprintf(&path, "%s/" KP_CONTROL_NAME, root) < 0)
		return false;
	yes = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
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
	while (!err && (errno = 0, e = fts_read(fts)))
		err = visit_entry(&w, fts, e, why);
	if (!err && errno)
		err = kp_fail_errno(why, errno, "cannot read the directory tree");
	fts_close(fts);
	return err;
}

void plain_files_fini(struct plain_files *plain)
{
	file_tree_fini(&plain->files);
	file_tree_fini(&plain->links);
}
