/* SPDX-License-Identifier: MIT */
/*
 * Packing has written everything into the generic tree, in the staging directory.  Now what
 * belongs to the tree of an architecture is renamed into it, which costs no copy, and archives
 * of several prefixes that have one name are joined there.  Directories are made in the
 * other tree as they are needed; those that nothing is left in are removed from the generic
 * tree.  At last all directories get the attributes that they have in the input.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/base/alloc.h"
#include "join.h"
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
					      const char *part, const char *name,
					      bool *several)
{
	const struct split_prefix *home = s->joined ? s->items : p;
	size_t n = 0;

	while (home < p && !wrote_archive(home, part, name))
		home++;
	for (size_t k = 0; k < s->n_items; k++)
		n += wrote_archive(&s->items[k], part, name);
	if (several)
		*several = s->joined && n > 1;
	return home;
}

/*
 * Write the archive NAME of PART, of all prefixes that wrote one, to the file NAME in DIR,
 * and remove theirs.  Keys of code begin with the prefix and cannot clash; files of
 * databases have the paths in their prefix, and can.
 */
static kpack_error_t join_prefixes(const struct split *s, const char *part,
				   const char *name, const char *dir,
				   struct kpackx_error *why)
{
	char **paths = xcalloc(s->n_items, sizeof(*paths));
	KP_AUTO_FREE char *to = xasprintf("%s/%s", dir, name);
	struct merge_report report = {0};
	kpack_error_t err;
	size_t n = 0;

	for (size_t i = 0; i < s->n_items; i++)
		if (wrote_archive(&s->items[i], part, name)) {
			KP_AUTO_FREE char *path = split_archive_path(&s->items[i], name);

			paths[n++] = split_path(s, split_generic(s), "", path);
		}
	err = join_to_archive(paths, NULL, n, dir, name, &report, why);
	merge_report_end(&report);
	for (size_t i = 0; i < n; i++) {
		if (!err && strcmp(paths[i], to) != 0 && below_unlink(paths[i]) < 0)
			err = below_fail(why, "%s: cannot remove", paths[i]);
		free(paths[i]);
	}
	free(paths);
	return err ? kp_fail_prefix(why, err,
				    "%s: cannot join the archives of all prefixes; "
				    "--keys prefix keeps them apart",
				    name)
		   : KPACK_SUCCESS;
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

static kpack_error_t move_archive(const struct split *s, const struct split_prefix *p,
				  struct split_tree *tree, const char *name,
				  struct kpackx_error *why)
{
	KP_AUTO_FREE char *relative = split_archive_path(p, name);
	KP_AUTO_FREE char *dir = NULL;
	bool several;

	if (split_archive_home(s, p, tree->part, name, &several) != p)
		return KPACK_SUCCESS; /* it went into the home's archive */
	if (several) {
		KP_TRY(tree_write_parents(&tree->writer, relative, s->input, why));
		dir = split_path(s, tree, p->path, p->packing.args.archive_dir);
		return join_prefixes(s, tree->part, name, dir, why);
	}
	return tree == split_generic(s) ? KPACK_SUCCESS
					: move_file(s, tree, relative, why);
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

/*
 * Remove the directories that are in no tree or only in others, innermost first, and those
 * that were made for archives and have none.
 */
static kpack_error_t remove_emptied(const struct split *s, const struct split_prefix *p,
				    struct kpackx_error *why)
{
	const struct scan *scan = &p->packing.scan;
	const char *archives = p->packing.args.archive_dir;
	KP_AUTO_FREE char *dir = xstrdup(archives);
	const char *had = ""; /* the innermost directory of the input for archives */

	/* a directory of archives may have some of this run, beside those that moved */
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
	while (strcmp(dir, had) != 0) {
		char *slash = strrchr(dir, '/');

		KP_TRY(remove_dir(s, p, dir, true, why));
		*(slash ? slash : dir) = 0;
	}
	return KPACK_SUCCESS;
}

kpack_error_t split_move(struct split *s, const struct split_prefix *p,
			 struct kpackx_error *why)
{
	for (size_t k = 0; k < p->parts.count; k++) {
		const struct output_tree *part = &p->parts.items[k];
		struct split_tree *tree = split_tree_of(s, part->name);

		for (size_t n = 0; n < part->n_entries && k != p->parts.generic; n++) {
			const struct scan_entry *e =
				&p->packing.scan.entries[part->entries[n]];
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
		for (size_t n = 0; n < part->n_archives; n++)
			KP_TRY(move_archive(s, p, tree, part->archives[n], why));
	}
	return remove_emptied(s, p, why);
}

/* --- the end ----------------------------------------------------------------------- */

bool split_contributes(const struct split_prefix *p, const char *part)
{
	const struct output_tree *tree = partition_find(&p->parts, part);

	return tree && (tree == &p->parts.items[p->parts.generic] || tree->n_entries ||
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
