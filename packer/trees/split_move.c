/* SPDX-License-Identifier: MIT */
/*
 * Packing has written everything into the generic tree, in the staging directory.  Now what
 * belongs to the tree of an architecture is renamed into it, which costs no copy, and archives
 * of several prefixes that have one name are joined there.  Directories are made in the
 * other tree as they are needed; those that nothing is left in are removed from the generic
 * tree.  At last all directories get the attributes that they have in the input, and it is checked
 * that trees in the way are those of an earlier run.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/archive/naming.h"
#include "core/base/alloc.h"
#include "join.h"
#include "packer/archives/binary.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "split.h"

/* --- archives ---------------------------------------------------------------------- */

/* Whether packing P wrote an archive NAME for the tree of PART. */
static bool wrote_archive(const struct split_prefix *p, const char *part,
			  const char *name)
{
	const struct output_tree *tree = partition_find(&p->parts, part);

	for (size_t k = 0; tree && k < tree->n_archives; k++)
		if (strcmp(tree->archives[k], name) == 0)
			return true;
	return false;
}

const struct split_prefix *split_archive_home(const struct split *s,
					      const struct split_prefix *p,
					      const char *part, const char *name)
{
	const struct split_prefix *home = s->joined ? s->items : p;

	while (home < p && !wrote_archive(home, part, name))
		home++;
	return home;
}

/* Move PATH, which is below the root of the generic tree, to the same place in TREE. */
static kpack_error_t move_file(const struct split *s, struct split_tree *tree,
			       const char *path, struct kpackx_error *why)
{
	KP_AUTO_FREE char *from = split_path(s, split_generic(s), "", path);
	KP_AUTO_FREE char *to = split_path(s, tree, "", path);

	KP_TRY(tree_write_parents(&tree->writer, path, s->input, why));
	return below_rename(from, to, 0) < 0 ? below_fail(why, "%s: cannot move", from)
					     : KPACK_SUCCESS;
}

/*
 * Bring the archive NAME, which packing P wrote for TREE, there.  If archives are joined, those
 * of all prefixes become one in the first of them, and are removed: keys of code begin
 * with the prefix and cannot clash; files of databases have the paths in their prefix,
 * and can.
 */
static kpack_error_t move_archive(const struct split *s, const struct split_prefix *p,
				  struct split_tree *tree, const char *name,
				  struct kpackx_error *why)
{
	KP_AUTO_FREE char *relative = split_archive_path(p, name);
	KP_AUTO_FREE char *to = split_path(s, tree, "", relative), *dir = NULL;
	struct merge_report report = {0};
	kpack_error_t err;
	char **paths;
	size_t n = 0;

	if (split_archive_home(s, p, tree->part, name) != p)
		return KPACK_SUCCESS; /* it went into the home's archive */
	paths = xcalloc(s->n_items, sizeof(*paths));
	for (const struct split_prefix *q = s->items; q < s->items + s->n_items; q++)
		if (q == p || (s->joined && wrote_archive(q, tree->part, name))) {
			KP_AUTO_FREE char *path = split_archive_path(q, name);

			paths[n++] = split_path(s, split_generic(s), "", path);
		}
	if (n > 1) {
		err = tree_write_parents(&tree->writer, relative, s->input, why);
		dir = split_path(s, tree, p->path, p->packing.args.archive_dir);
		if (!err)
			err = join_to_archive(paths, NULL, n, dir, name,
					      merge_report_clash, &report, why);
		merge_report_end(&report);
		for (size_t i = 0; i < n && !err; i++)
			if (strcmp(paths[i], to) != 0 && below_unlink(paths[i]) < 0)
				err = below_fail(why, "%s: cannot remove", paths[i]);
		if (err)
			kp_fail_prefix(why, err,
				       "%s: cannot join the archives of all prefixes; "
				       "--keys prefix keeps them apart",
				       name);
	} else {
		err = tree == split_generic(s) ? KPACK_SUCCESS
					       : move_file(s, tree, relative, why);
	}
	for (size_t i = 0; i < n; i++)
		free(paths[i]);
	free(paths);
	return err;
}

/* --- emptied directories ----------------------------------------------------------- */

/* Remove the directory DIR of the prefix from the generic tree; MAY_STAY if it has files. */
static kpack_error_t remove_dir(const struct split *s, const struct split_prefix *p,
				const char *dir, bool may_stay, struct kpackx_error *why)
{
	KP_AUTO_FREE char *path = split_path(s, split_generic(s), p->path, dir);

	if (below_rmdir(path) < 0 && errno != ENOENT && !(may_stay && errno == ENOTEMPTY))
		return below_fail(why, "%s: cannot remove", path);
	return KPACK_SUCCESS;
}

kpack_error_t split_move(struct split *s, const struct split_prefix *p,
			 struct kpackx_error *why)
{
	const struct scan *scan = &p->packing.scan;
	const char *archives = p->packing.args.archive_dir;
	KP_AUTO_FREE char *dir = xstrdup(archives);
	const char *had = ""; /* the innermost directory of the input for archives */

	for (struct split_tree *tree = s->trees; tree < s->trees + s->n_trees; tree++) {
		const struct output_tree *part = partition_find(&p->parts, tree->part);
		size_t k = part ? (size_t)(part - p->parts.items) : 0;

		for (size_t n = 0; k != PARTITION_GENERIC && n < part->n_entries; n++) {
			const struct scan_entry *e = &scan->entries[part->entries[n]];
			KP_AUTO_FREE char *path = xasprintf(
				"%s%s%s", p->path, *p->path ? "/" : "", e->relative);
			KP_AUTO_FREE char *left = NULL;

			if (p->parts.tree_of[e->first] == k) {
				KP_TRY(move_file(s, tree, path, why));
				continue;
			}
			/*
			 * A hard link whose file goes to another tree is copied from the
			 * input instead: each tree can be installed alone.
			 */
			KP_TRY(tree_write_parents(&tree->writer, path, s->input, why));
			KP_TRY(tree_write_entry(&tree->writer, path, e->path, &e->id,
						&left, why));
			KP_TRY(tree_write_remove(&split_generic(s)->writer, path, why));
		}
		for (size_t n = 0; part && n < part->n_archives; n++)
			KP_TRY(move_archive(s, p, tree, part->archives[n], why));
	}
	/*
	 * Directories that are in no tree or only in others are emptied, innermost first; a
	 * directory of archives may have some of this run, beside those that moved.
	 */
	for (size_t k = scan->n_entries; k-- > 0;) {
		const struct scan_entry *e = &scan->entries[k];
		size_t n = strlen(e->relative);
		bool leads = S_ISDIR(e->mode) && strncmp(archives, e->relative, n) == 0 &&
			     (archives[n] == '/' || !archives[n]);

		if (leads && n > strlen(had))
			had = e->relative;
		if (S_ISDIR(e->mode) && p->parts.tree_of[k] == PARTITION_NONE)
			KP_TRY(remove_dir(s, p, e->relative, leads, why));
	}
	/* and so are those that were made for archives and have none */
	while (strcmp(dir, had) != 0) {
		char *slash = strrchr(dir, '/');

		KP_TRY(remove_dir(s, p, dir, true, why));
		*(slash ? slash : dir) = 0;
	}
	return KPACK_SUCCESS;
}

/* --- the end ----------------------------------------------------------------------- */

bool split_contributes(const struct split_prefix *p, const char *part)
{
	const struct output_tree *tree = partition_find(&p->parts, part);

	return tree && (tree == &p->parts.items[PARTITION_GENERIC] || tree->n_entries ||
			tree->n_archives);
}

kpack_error_t split_finish(struct split *s, struct kpackx_error *why)
{
	for (size_t i = 0; i < s->n_items; i++)
		KP_TRY(tree_write_finish(&s->items[i].packing.tree, why));
	for (size_t i = 0; i < s->n_trees; i++) {
		struct split_tree *tree = &s->trees[i];
		KP_AUTO_FREE char *path = split_path(s, tree, "", ARTIFACT_MANIFEST);
		KP_AUTO_FREE char *text = NULL;
		size_t size;
		FILE *to;

		/* the generic tree has a copy of the input's */
		if (s->prefixes.manifest && tree != split_generic(s)) {
			to = xmemstream(&text, &size);
			for (size_t k = 0; k < s->n_items; k++)
				if (split_contributes(&s->items[k], tree->part))
					fprintf(to, "%s\n", s->items[k].path);
			fclose(to);
			KP_TRY(below_file_write(path, 0666,
						(struct kp_span){(uint8_t *)text, size},
						why));
		}
		KP_TRY(tree_write_finish(&tree->writer, why));
	}
	return KPACK_SUCCESS;
}

/* --- checks ------------------------------------------------------------------------ */

/*
 * Whether ITEM, in whose place this run puts STAGED, if that exists, can be an earlier run's.
 * Copies are not compared, because their originals may have changed since.
 */
static bool is_earlier(const struct split *s, const char *staged,
		       const struct tree_item *item)
{
	mode_t type = item->st.st_mode & S_IFMT;
	struct kpack_archive *theirs = NULL, *ours = NULL;
	size_t n = strlen(s->name);
	struct binary a, b;
	struct stat st;
	bool there = below_lstat(staged, &st) == 0, yes;

	if (type != S_IFREG || (there && !S_ISREG(st.st_mode)))
		return there ? type == (st.st_mode & S_IFMT) : type == S_IFDIR;
	if (kp_is_archive_name(item->name)) {
		/* with a name and a group as this run's have, or as the copy of another */
		yes = !below_archive_open(item->path, &theirs, NULL) &&
		      ((strncmp(item->name, s->name, n) == 0 &&
			kp_span_starts(kp_archive_group(theirs), s->name, n)) ||
		       (there && !below_archive_open(staged, &ours, NULL) &&
			kp_span_eq(kp_archive_group(theirs), kp_archive_group(ours))));
		kp_archive_close(theirs);
		kp_archive_close(ours);
		return yes;
	}
	if (!there || binary_open(staged, &a, NULL))
		return there;
	yes = a.fat.kind != KP_FATBIN_CONVERTED;
	binary_close(&a);
	if (!yes && !binary_open(item->path, &b, NULL)) {
		yes = b.fat.kind == KP_FATBIN_CONVERTED;
		binary_close(&b);
	}
	return yes;
}

/*
 * A tree that has a name of this run's is an earlier run's, and may be replaced, if it has
 * no file that this run does not write as well.  A file that the input had then, and has no
 * more, cannot be told from anybody's: it is named, and nothing is replaced.
 */
kpack_error_t split_check(const struct split *s, bool *again, struct kpackx_error *why)
{
	*again = s->args->force;
	for (size_t i = 0; i < s->n_trees && !s->args->force; i++) {
		const struct split_tree *tree = &s->trees[i];
		KP_AUTO_FREE char *root = xasprintf("%s/%s", s->args->output, tree->name);
		kpack_error_t err = KPACK_SUCCESS;
		struct tree_list *list;
		struct tree_item e;
		struct stat st;

		if (below_lstat(root, &st) < 0)
			continue;
		*again = true;
		list = tree_list_open(root);
		while (!err && tree_list_next(list, &e)) {
			KP_AUTO_FREE char *staged = split_path(s, tree, "", e.rest);

			if (e.kind == TREE_FAULT)
				err = kp_fail_errno(why, e.error, "%s", e.path);
			else if (e.kind != TREE_DIR_END && e.level > 0 &&
				 !is_earlier(s, staged, &e))
				err = kp_fail(
					why, KPACK_ERROR_INVALID_ARGUMENT,
					"%s: already exists, and %s in it is not "
					"from this input: --force replaces the tree",
					root, e.rest);
		}
		tree_list_close(list);
		KP_TRY(err);
	}
	return KPACK_SUCCESS;
}
