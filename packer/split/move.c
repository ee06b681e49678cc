/* SPDX-License-Identifier: MIT */
#include "move.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "packer/base/xalloc.h"
#include "packer/files/below.h"
#include "packer/files/copy.h"
#include "core/archive/naming.h"
#include "core/target/target.h"
#include "tree_name.h"

/* Moving the files of one prefix into one output tree. */
struct move {
	const struct split *s;
	const struct split_prefix *i;
	const struct split_tree *generic, *tree;
	size_t part;
	char *dir; /* the most recently made directory; relative */
};

/* Call FN with RELATIVE's path in the generic tree and in the target tree. */
static kpack_error_t call_on_both(const struct move *m, const char *relative,
				  kpack_error_t (*fn)(const char *from, const char *to,
						      struct kpackx_error *why),
				  struct kpackx_error *why)
{
	char *from = split_path(m->s, m->generic, m->i->prefix->path, relative);
	char *to = split_path(m->s, m->tree, m->i->prefix->path, relative);
	kpack_error_t err = fn(from, to, why);

	free(from);
	free(to);
	return err;
}

static kpack_error_t rename_one(const char *from, const char *to,
				struct kpackx_error *why)
{
	return below_rename(from, to, 0) < 0
		       ? kp_fail_errno(why, errno, "%s: cannot move", from)
		       : KPACK_SUCCESS;
}

static kpack_error_t make_dir(const char *from, const char *to, struct kpackx_error *why)
{
	kpack_error_t err;

	KP_TRY(below_mkdirs(to, 0777, why));
	err = copy_directory(from, why); /* it may lack write permission */
	return err ? kp_fail_prefix(why, err, "%s", from) : KPACK_SUCCESS;
}

/* Make the directory of RELATIVE in the target tree. */
static kpack_error_t make_parent(struct move *m, const char *relative,
				 struct kpackx_error *why)
{
	const char *slash = strrchr(relative, '/');
	char *dir = xstrndup(relative, slash ? (size_t)(slash - relative) : 0);

	if (m->dir && strcmp(m->dir, dir) == 0) {
		free(dir);
		return KPACK_SUCCESS;
	}
	free(m->dir);
	m->dir = dir;
	return call_on_both(m, dir, make_dir, why);
}

/* --- files ------------------------------------------------------------------------- */

/* The first of ENTRY's hard links that goes to the current output tree. */
static size_t first_link(const struct move *m, size_t entry)
{
	const struct scan_entry *entries = m->i->packing.scan.entries;
	size_t i = entries[entry].first;

	while (i != entry && m->i->parts.tree_of[i] != m->part)
		i = entries[i].next_link;
	return i;
}

static kpack_error_t link_to_first(const struct move *m, size_t first, const char *from,
				   const char *to, struct kpackx_error *why)
{
	kpack_error_t err;
	struct stat st;
	char *path;

	if (below_lstat(from, &st) < 0)
		return kp_fail_errno(why, errno, "%s: cannot stat", from);
	path = split_path(m->s, m->tree, m->i->prefix->path,
			  m->i->packing.scan.entries[first].relative);
	err = copy_link_or_seen(path, from, &st, to, why);
	free(path);
	return err;
}

/* Copy a hard link whose file goes to another output tree. */
static kpack_error_t copy_apart(const struct move *m, size_t entry,
				struct kpackx_error *why)
{
	const struct scan_entry *e = &m->i->packing.scan.entries[entry];
	char *from = split_path(m->s, m->generic, m->i->prefix->path, e->relative);
	char *to = split_path(m->s, m->tree, m->i->prefix->path, e->relative);
	size_t first = first_link(m, entry);
	kpack_error_t err = first == entry ? copy_file(e->path, to, why)
					   : link_to_first(m, first, e->path, to, why);

	if (!err && below_unlink(from) < 0)
		err = kp_fail_errno(why, errno, "%s: cannot remove", from);
	free(from);
	free(to);
	return err;
}

static kpack_error_t move_entry(struct move *m, size_t entry, struct kpackx_error *why)
{
	const struct scan_entry *e = &m->i->packing.scan.entries[entry];

	KP_TRY(make_parent(m, e->relative, why));
	if (m->i->parts.tree_of[e->first] == m->part)
		return call_on_both(m, e->relative, rename_one, why);
	return copy_apart(m, entry, why);
}

static kpack_error_t move_archive(struct move *m, const char *name,
				  struct kpackx_error *why)
{
	char *relative = xasprintf(KP_ARCHIVES_DIR "/%s", name);
	kpack_error_t err = make_parent(m, relative, why);

	if (!err)
		err = call_on_both(m, relative, rename_one, why);
	free(relative);
	return err;
}

static kpack_error_t move_part(struct move *m, struct kpackx_error *why)
{
	const struct output_tree *part = &m->i->parts.items[m->part];

	for (size_t i = 0; i < part->n_entries; i++)
		KP_TRY(move_entry(m, part->entries[i], why));
	for (size_t i = 0; i < part->n_archives; i++)
		KP_TRY(move_archive(m, part->archives[i], why));
	return KPACK_SUCCESS;
}

/* --- emptied directories ----------------------------------------------------------- */

static kpack_error_t remove_dir(const struct split *s, const struct split_prefix *i,
				const char *relative, bool may_stay,
				struct kpackx_error *why)
{
	char *path = split_path(s, split_tree_of(s, KP_ARCH_GENERIC), i->prefix->path,
				relative);
	kpack_error_t err = KPACK_SUCCESS;

	if (below_rmdir(path) < 0 && errno != ENOENT && !(may_stay && errno == ENOTEMPTY))
		err = kp_fail_errno(why, errno, "%s: cannot remove", path);
	free(path);
	return err;
}

static kpack_error_t remove_emptied(const struct split *s, const struct split_prefix *i,
				    struct kpackx_error *why)
{
	const struct scan *scan = &i->packing.scan;
	bool had_archives = false;

	for (size_t k = scan->n_entries; k-- > 0;) {
		const struct scan_entry *e = &scan->entries[k];

		had_archives |= strcmp(e->relative, KP_ARCHIVES_DIR) == 0;
		if (S_ISDIR(e->mode) && i->parts.tree_of[k] == PARTITION_NONE)
			KP_TRY(remove_dir(s, i, e->relative, false, why));
	}
	return had_archives ? KPACK_SUCCESS
			    : remove_dir(s, i, KP_ARCHIVES_DIR, true, why);
}

/* Make directories writable: nothing can be removed from a read-only directory. */
static kpack_error_t open_dirs(const struct split *s, const struct split_prefix *i,
			       struct kpackx_error *why)
{
	const struct scan *scan = &i->packing.scan;
	const struct split_tree *generic = split_tree_of(s, KP_ARCH_GENERIC);
	kpack_error_t err = copy_directory(i->output, why);

	for (size_t k = 0; k < scan->n_entries && !err; k++) {
		char *path;

		if (!S_ISDIR(scan->entries[k].mode))
			continue;
		path = split_path(s, generic, i->prefix->path, scan->entries[k].relative);
		err = copy_directory(path, why);
		free(path);
	}
	return err;
}

kpack_error_t split_move(const struct split *s, const struct split_prefix *i,
			 struct kpackx_error *why)
{
	struct move m = {.s = s, .i = i, .generic = split_tree_of(s, KP_ARCH_GENERIC)};
	kpack_error_t err = open_dirs(s, i, why);

	for (; m.part < i->parts.count && !err; m.part++) {
		if (m.part == i->parts.generic)
			continue;
		m.tree = split_tree_of(s, i->parts.items[m.part].name);
		err = move_part(&m, why);
		free(m.dir);
		m.dir = NULL;
	}
	return err ? err : remove_emptied(s, i, why);
}

/* --- directories and manifests ----------------------------------------------------- */

bool split_contributes(const struct split_prefix *i, const char *part)
{
	size_t number = partition_find(&i->parts, part);
	const struct output_tree *p;

	if (number == PARTITION_NONE)
		return false;
	p = &i->parts.items[number];
	return number == i->parts.generic || p->n_entries || p->n_archives;
}

static kpack_error_t finish_dir(const char *from, char *to, struct kpackx_error *why)
{
	kpack_error_t err = KPACK_SUCCESS;
	struct stat st;

	if (below_lstat(to, &st) == 0 && S_ISDIR(st.st_mode))
		err = copy_directory_attributes(from, to, why);
	if (err)
		kp_fail_prefix(why, err, "%s", to);
	free(to);
	return err;
}

/* Innermost first, because the attributes may make a directory read-only. */
static kpack_error_t finish_dirs(const struct split *s, const struct split_tree *tree,
				 const struct split_prefix *i, struct kpackx_error *why)
{
	const struct scan *scan = &i->packing.scan;

	for (size_t k = scan->n_entries; k-- > 0;)
		if (S_ISDIR(scan->entries[k].mode))
			KP_TRY(finish_dir(scan->entries[k].path,
					  split_path(s, tree, i->prefix->path,
						     scan->entries[k].relative),
					  why));
	return finish_dir(i->input, split_path(s, tree, i->prefix->path, ""), why);
}

static kpack_error_t write_lines(const struct split *s, const struct split_tree *tree,
				 FILE *to)
{
	for (size_t i = 0; i < s->n_items; i++)
		if (split_contributes(&s->items[i], tree->part))
			fprintf(to, "%s\n", s->items[i].prefix->path);
	return ferror(to) ? KPACK_ERROR_IO_ERROR : KPACK_SUCCESS;
}

/* Write the manifest of an output tree; the generic one has a copy of the input's. */
static kpack_error_t write_manifest(const struct split *s, const struct split_tree *tree,
				    struct kpackx_error *why)
{
	char *path = split_path(s, tree, "", ARTIFACT_MANIFEST);
	int fd = below_open(path, O_WRONLY | O_CREAT | O_EXCL, 0666);
	FILE *to = fd < 0 ? NULL : fdopen(fd, "w");
	kpack_error_t err = KPACK_SUCCESS;
	bool failed = !to || write_lines(s, tree, to);

	if (to && fclose(to) != 0)
		failed = true;
	if (failed)
		err = kp_fail_errno(why, errno, "%s: cannot write", path);
	free(path);
	return err;
}

static kpack_error_t finish_tree(const struct split *s, const struct split_tree *tree,
				 struct kpackx_error *why)
{
	char *root = split_path(s, tree, "", "");
	kpack_error_t err = KPACK_SUCCESS;

	if (s->prefixes.manifest && strcmp(tree->part, KP_ARCH_GENERIC) != 0)
		err = write_manifest(s, tree, why);
	for (size_t i = 0; i < s->n_items && !err; i++)
		if (split_contributes(&s->items[i], tree->part))
			err = finish_dirs(s, tree, &s->items[i], why);
	if (!err)
		err = outside_finish(&s->outside, s->input, root, why);
	free(root);
	return err;
}

kpack_error_t split_finish(const struct split *s, struct kpackx_error *why)
{
	for (size_t i = 0; i < s->n_trees; i++)
		KP_TRY(finish_tree(s, &s->trees[i], why));
	return KPACK_SUCCESS;
}
