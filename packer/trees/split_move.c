/* SPDX-License-Identifier: MIT */
#include "split_move.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "core/target/target.h"
#include "joined.h"
#include "artifact.h"

/* Moving the files of one prefix into one output tree. */
struct move {
	const struct split *s;
	const struct split_prefix *i;
	struct split_tree *generic, *tree;
	size_t part;
};

/* --- files ------------------------------------------------------------------------- */

/*
 * Copy a hard link whose file goes to another output tree.  The link in the generic tree
 * is not needed any more.
 */
static kpack_error_t copy_apart(const struct move *m, const char *path,
				const struct scan_entry *e, struct kpackx_error *why)
{
	char *left;

	KP_TRY(tree_write_entry(&m->tree->writer, path, e->path, &e->id, &left, why));
	free(left);
	return tree_write_remove(&m->generic->writer, path, why);
}

static kpack_error_t move_file(const struct move *m, const char *path,
			       struct kpackx_error *why)
{
	char *from = xasprintf("%s/%s", m->generic->writer.root, path);
	char *to = xasprintf("%s/%s", m->tree->writer.root, path);
	kpack_error_t err = KPACK_SUCCESS;

	if (below_rename(from, to, 0) < 0)
		err = below_fail(why, "%s: cannot move", from);
	free(from);
	free(to);
	return err;
}

/* Move RELATIVE, of the prefix.  APART: the entry of the scan that is copied instead. */
static kpack_error_t move_entry(const struct move *m, const char *relative,
				const struct scan_entry *apart, struct kpackx_error *why)
{
	const char *prefix = m->i->prefix->path;
	char *path = xasprintf("%s%s%s", prefix, *prefix ? "/" : "", relative);
	kpack_error_t err = tree_write_parents(&m->tree->writer, path, m->s->input, why);

	if (!err)
		err = apart ? copy_apart(m, path, apart, why) : move_file(m, path, why);
	free(path);
	return err;
}

static kpack_error_t join_archives(const struct move *m, const char *part,
				   const char *name, struct kpackx_error *why)
{
	const char *prefix = m->i->prefix->path;
	char *relative = split_archive_path(m->i, name);
	char *path = xasprintf("%s%s%s", prefix, *prefix ? "/" : "", relative);
	kpack_error_t err = tree_write_parents(&m->tree->writer, path, m->s->input, why);

	if (!err)
		err = split_join_archives(m->s, m->i, m->tree, part, name, why);
	free(relative);
	free(path);
	return err;
}

static kpack_error_t move_archive(const struct move *m, const char *part,
				  const char *name, struct kpackx_error *why)
{
	char *relative;
	kpack_error_t err;
	bool several;

	if (split_archive_home(m->s, m->i, part, name, &several) != m->i)
		return KPACK_SUCCESS;
	if (several)
		return join_archives(m, part, name, why);
	if (m->tree == m->generic)
		return KPACK_SUCCESS;
	relative = split_archive_path(m->i, name);
	err = move_entry(m, relative, NULL, why);
	free(relative);
	return err;
}

static kpack_error_t move_part(const struct move *m, struct kpackx_error *why)
{
	const struct output_tree *part = &m->i->parts.items[m->part];

	for (size_t i = 0; i < part->n_entries && m->tree != m->generic; i++) {
		const struct scan_entry *e =
			&m->i->packing.scan.entries[part->entries[i]];
		bool apart = m->i->parts.tree_of[e->first] != m->part;

		KP_TRY(move_entry(m, e->relative, apart ? e : NULL, why));
	}
	for (size_t i = 0; i < part->n_archives; i++)
		KP_TRY(move_archive(m, part->name, part->archives[i], why));
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
		err = below_fail(why, "%s: cannot remove", path);
	free(path);
	return err;
}

/* True if DIR is I's archive directory, or contains it. */
static bool leads_to_archives(const struct split_prefix *i, const char *dir)
{
	const char *archives = i->packing.args.archive_dir;
	size_t n = strlen(dir);

	return strncmp(archives, dir, n) == 0 && (archives[n] == '/' || !archives[n]);
}

/* Remove the directories that were made for archives and have none. */
static kpack_error_t remove_archive_dirs(const struct split *s,
					 const struct split_prefix *i, const char *had,
					 struct kpackx_error *why)
{
	char *dir = xstrdup(i->packing.args.archive_dir), *slash;
	kpack_error_t err = KPACK_SUCCESS;

	while (!err && strcmp(dir, had) != 0) {
		err = remove_dir(s, i, dir, true, why);
		slash = strrchr(dir, '/');
		*(slash ? slash : dir) = 0;
	}
	free(dir);
	return err;
}

static kpack_error_t remove_emptied(const struct split *s, const struct split_prefix *i,
				    struct kpackx_error *why)
{
	const struct scan *scan = &i->packing.scan;
	const char *had = ""; /* the innermost directory of the input for archives */

	for (size_t k = scan->n_entries; k-- > 0;) {
		const struct scan_entry *e = &scan->entries[k];
		bool leads = S_ISDIR(e->mode) && leads_to_archives(i, e->relative);

		if (leads && strlen(e->relative) > strlen(had))
			had = e->relative;
		if (S_ISDIR(e->mode) && i->parts.tree_of[k] == PARTITION_NONE)
			KP_TRY(remove_dir(s, i, e->relative, leads, why));
	}
	return remove_archive_dirs(s, i, had, why);
}

kpack_error_t split_move(struct split *s, const struct split_prefix *i,
			 struct kpackx_error *why)
{
	struct move m = {.s = s, .i = i, .generic = split_tree_of(s, KP_ARCH_GENERIC)};

	for (; m.part < i->parts.count; m.part++) {
		m.tree = split_tree_of(s, i->parts.items[m.part].name);
		KP_TRY(move_part(&m, why));
	}
	return remove_emptied(s, i, why);
}

/* --- manifests ---------------------------------------------------------- */

bool split_contributes(const struct split_prefix *i, const char *part)
{
	size_t number = partition_find(&i->parts, part);
	const struct output_tree *p;

	if (number == PARTITION_NONE)
		return false;
	p = &i->parts.items[number];
	return number == i->parts.generic || p->n_entries || p->n_archives;
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
		err = below_fail(why, "%s: cannot write", path);
	free(path);
	return err;
}

/* The generic tree's files of a prefix are part of the run of that prefix. */
kpack_error_t split_finish(struct split *s, struct kpackx_error *why)
{
	for (size_t i = 0; i < s->n_items; i++)
		KP_TRY(tree_write_finish(&s->items[i].packing.tree, why));
	for (size_t i = 0; i < s->n_trees; i++) {
		struct split_tree *tree = &s->trees[i];

		if (s->prefixes.manifest && strcmp(tree->part, KP_ARCH_GENERIC) != 0)
			KP_TRY(write_manifest(s, tree, why));
		KP_TRY(tree_write_finish(&tree->writer, why));
	}
	return KPACK_SUCCESS;
}
