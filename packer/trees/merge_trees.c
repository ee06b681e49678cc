/* SPDX-License-Identifier: MIT */
/*
 * Join trees into one: the trees of a split, those that several builds of one component
 * have for one target, or both.
 *
 * The new tree has every path of every operand.  A path that several have is the same in
 * all of them, or it is one of three things that are joined:
 *
 *	the manifest of an artifact   names the prefixes of all
 *	archives                      become one with the entries of all
 *	converted binaries            the chosen one, with a marker that names the archives
 *	                              of all; their host parts must be equal (join.c)
 *
 * Anything else that differs is a fault, unless --prefer names an operand that has the path:
 * that one's file is chosen.  Without that the chosen one is that of the first operand.
 *
 * The tree is built in a staging directory while faults are reported; from the first fault on
 * nothing is written, and in the end nothing gets its name.
 */
#include "join.h"
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>
#include "artifact.h"
#include "core/archive/naming.h"
#include "core/base/alloc.h"
#include "core/base/order.h"
#include "core/base/text.h"
#include "packer/archives/content.h"
#include "packer/archives/merge.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/files/staging.h"
#include "packer/files/tree_list.h"
#include "packer/files/copy.h"
#include "packer/pack/tree.h"

/* What may be settled by the user is reported with this. */
#define SETTLED "--prefer TREE settles which one is taken"

/* A path in an operand. */
struct merge_item {
	char *path; /* below the operand; "": the operand itself */
	size_t operand;
	struct file_identity seen;
};

/* The run. */
struct tree_merge {
	const struct merge_trees_args *args;
	struct merge_item *items; /* by path, then in the order of operands */
	size_t n_items, cap;
	unsigned *ranks; /* per operand: of --prefer; 0: not preferred */
	struct staging staging;
	struct tree_write tree;
	struct merge_report report;
	size_t files, joined, archives, faults;
};

/* The items with one path. */
struct same_path {
	const struct merge_item *items;
	size_t n, chosen;
	bool preferred;
	char **paths; /* of the items, to open them */
};

kpack_error_t merge_trees_look(char *const *operands, size_t n, const char *out,
			       bool *are, struct kpackx_error *why)
{
	*are = n > 0 && !(out && kp_archive_stem(kp_span_str(kp_path_name(out))));
	for (size_t i = 0; i < n && *are; i++) {
		struct dirent **names;
		int count = below_scandir(operands[i], &names, NULL);

		if (count < 0 && errno != ENOENT && errno != ENOTDIR)
			return below_fail(why, "%s", operands[i]);
		*are = count >= 0;
		for (int k = 0; k < count; k++) {
			*are &= !kp_is_archive_name(names[k]->d_name);
			free(names[k]);
		}
		if (count >= 0)
			free(names);
	}
	return KPACK_SUCCESS;
}

/* --- the operands ------------------------------------------------------------------ */

/* Rank the operands, check that they do not overlap with OUT, and list what is in them. */
static kpack_error_t list_operands(struct tree_merge *m, struct kpackx_error *why)
{
	const struct merge_trees_args *args = m->args;
	kpack_error_t err = KPACK_SUCCESS;
	struct tree_item e;

	m->ranks = xcalloc(args->n_trees, sizeof(*m->ranks));
	for (size_t i = args->n_prefer; i-- > 0;)
		for (size_t k = 0; k < args->n_trees; k++)
			if (strcmp(args->prefer[i], args->trees[k]) == 0)
				m->ranks[k] = (unsigned)(args->n_prefer - i);
	for (size_t i = 0; i < args->n_trees && !err; i++) {
		struct tree_list *list;
		struct stat tree, out;

		if (below_stat(args->trees[i], &tree) == 0 &&
		    below_stat(args->out, &out) == 0 && tree.st_dev == out.st_dev &&
		    tree.st_ino == out.st_ino)
			return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				       "%s: is one of the trees to join", args->out);
		err = output_check(args->trees[i], args->out, why);
		if (err)
			return kp_fail_prefix(why, err, "%s", args->trees[i]);
		list = tree_list_open(args->trees[i]);
		while (!err && tree_list_next(list, &e)) {
			struct merge_item *item;

			if (e.kind == TREE_FAULT) {
				errno = e.error;
				err = below_fail(why, "%s: cannot read it", e.path);
			}
			if (err || e.kind == TREE_DIR_END)
				continue;
			xgrow(&m->items, m->n_items, &m->cap, sizeof(*m->items));
			item = &m->items[m->n_items++];
			*item = (struct merge_item){.path = xstrdup(e.rest),
						    .operand = i,
						    .seen = file_identity_of(&e.st)};
			item->seen.guarded = e.guarded;
		}
		tree_list_close(list);
	}
	kp_sort(m->items, m->n_items, KP_BY_TEXT(struct merge_item, path),
		KP_BY_NUMBER(struct merge_item, operand));
	return err;
}

/* --- one path ---------------------------------------------------------------------- */

/* Count and report a difference; from now on nothing is written. */
static void report_difference(struct tree_merge *m, const struct same_path *s,
			      size_t other, const char *what)
{
	m->faults++;
	report_error(s->paths[other], "differs from %s: %s", s->paths[s->chosen], what);
}

/*
 * Write the manifest with the prefixes of all, sorted.  Manifests of trees that are split
 * name only the prefixes that the tree has files of, so they usually differ.
 */
static kpack_error_t join_manifests(const struct tree_merge *m, const struct same_path *s,
				    struct kpackx_error *why)
{
	struct prefixes *all = xcalloc(s->n, sizeof(*all));
	KP_AUTO_FREE const char **lines = NULL;
	KP_AUTO_FREE char *text = NULL;
	size_t n = 0, count = 0, size;
	kpack_error_t err = KPACK_SUCCESS;
	FILE *to;

	for (size_t i = 0; i < s->n && !err; i++) {
		err = prefixes_list(s->paths[i], &all[i], why);
		if (err)
			kp_fail_prefix(why, err, "%s", s->paths[i]);
		count += all[i].count;
	}
	lines = xmalloc(count * sizeof(*lines));
	for (size_t i = 0; i < s->n; i++)
		for (size_t k = 0; k < all[i].count; k++)
			lines[n++] = all[i].items[k].path;
	kp_sort(lines, n, KP_AS_TEXT);
	to = xmemstream(&text, &size);
	for (size_t i = 0; i < n; i++)
		if (i == 0 || strcmp(lines[i], lines[i - 1]) != 0)
			fprintf(to, "%s\n", lines[i]);
	fclose(to);
	if (!err && !m->faults) {
		KP_AUTO_FREE char *path =
			xasprintf("%s/%s", m->tree.root, s->items->path);

		err = below_file_write(path, 0666,
				       (struct kp_span){(uint8_t *)text, size}, why);
	}
	for (size_t i = 0; i < s->n; i++)
		prefixes_close(&all[i]);
	free(all);
	return err;
}

/* Copy the chosen file as it is, or make the directory. */
static kpack_error_t copy_chosen(struct tree_merge *m, const struct same_path *s,
				 struct kpackx_error *why)
{
	const struct merge_item *item = &s->items[s->chosen];
	KP_AUTO_FREE char *left = NULL;

	if (m->faults)
		return KPACK_SUCCESS;
	KP_TRY(tree_write_entry(&m->tree, item->path, s->paths[s->chosen], &item->seen,
				&left, why));
	if (left && !m->args->quiet)
		report_error(s->paths[s->chosen], "note: left out: %s", left);
	m->files += !left && !S_ISDIR(item->seen.mode);
	return KPACK_SUCCESS;
}

/*
 * OTHER is not the same as the chosen one: join them by what they are.  A directory cannot
 * stand for a file, whoever is preferred, because others need the files in it.
 */
static kpack_error_t settle_difference(struct tree_merge *m, const struct same_path *s,
				       size_t other, struct kpackx_error *why)
{
	const char *path = s->items->path;
	bool regular = true, directory = false;
	KP_AUTO(join) join = {0};

	for (size_t i = 0; i < s->n; i++) {
		regular &= S_ISREG(s->items[i].seen.mode) != 0;
		directory |= S_ISDIR(s->items[i].seen.mode) != 0;
	}
	if (directory) {
		report_difference(m, s, other, "one is a directory, the other not");
		return KPACK_SUCCESS;
	}
	if (regular && strcmp(path, ARTIFACT_MANIFEST) == 0) {
		m->files++;
		return join_manifests(m, s, why);
	}
	if (regular && kp_is_archive_of_tree(path)) {
		KP_AUTO_FREE unsigned *prefer = xcalloc(s->n, sizeof(*prefer));
		KP_AUTO_FREE char *dir = xasprintf("%s/%s", m->tree.root, path);
		char *name = strrchr(dir, '/');
		struct kpackx_error fault = {0};

		*name++ = 0;
		for (size_t i = 0; i < s->n; i++)
			prefer[i] = m->ranks[s->items[i].operand];
		/* a fault of one of them is a difference: others may follow */
		if (join_to_archive(s->paths, prefer, s->n, m->faults ? NULL : dir, name,
				    merge_report_clash, &m->report, &fault))
			report_difference(m, s, other, fault.text);
		m->files++;
		m->archives++;
		return KPACK_SUCCESS;
	}
	/*
	 * Binaries that are all converted may differ in the marker alone, or in what --prefer
	 * accepts: the chosen one is written with the marker of all.
	 */
	if (regular)
		KP_TRY(join_look(s->paths, s->n, s->chosen, &join, why));
	if (join.relation == JOIN_WRAPPERS) {
		report_difference(m, s, join.other, join.text);
	} else if (join.relation == JOIN_NOTHING && !s->preferred) {
		report_difference(m, s, other, SETTLED);
	} else if (join.relation != JOIN_SAME && !s->preferred) {
		KP_AUTO_FREE char *text = xasprintf("%s; " SETTLED, join.text);

		report_difference(m, s, join.other, text);
	}
	if (join.relation == JOIN_NOTHING || join.relation == JOIN_KINDS ||
	    join.same_marker)
		return copy_chosen(m, s, why);
	if (!m->faults) {
		KP_AUTO_FREE char *to = xasprintf("%s/%s", m->tree.root, path);
		kpack_error_t err;

		join.drop_signature = m->args->drop_signature;
		err = join_write(s->paths[s->chosen], to, &join, why);
		m->files++;
		m->joined++;
		if (err)
			return kp_fail_prefix(why, err, "%s", s->paths[s->chosen]);
	}
	return KPACK_SUCCESS;
}

/*
 * Decide about one path.  The first item that differs from the chosen one is settled, with
 * all others of the path at once.  Pipes and devices have only types to compare.
 */
static kpack_error_t merge_path(struct tree_merge *m, const struct merge_item *items,
				size_t n, struct kpackx_error *why)
{
	struct same_path s = {
		.items = items, .n = n, .paths = xcalloc(n, sizeof(char *))};
	kpack_error_t err = KPACK_SUCCESS;
	bool same = true;
	mode_t mode;

	for (size_t i = 0; i < n; i++) {
		const char *path = items[i].path;

		s.paths[i] = xasprintf("%s%s%s", m->args->trees[items[i].operand],
				       *path ? "/" : "", path);
		if (m->ranks[items[i].operand] > m->ranks[items[s.chosen].operand])
			s.chosen = i;
	}
	s.preferred = m->ranks[items[s.chosen].operand] > 0;
	mode = items[s.chosen].seen.mode;
	for (size_t i = 0; i < n && same && !err; i++) {
		const char *path[] = {s.paths[s.chosen], s.paths[i]};
		struct kp_source bytes[2];
		int fd[] = {-1, -1};

		if (i == s.chosen)
			continue;
		same = ((mode ^ items[i].seen.mode) & S_IFMT) == 0;
		if (same && S_ISLNK(mode)) {
			char x[PATH_MAX], y[PATH_MAX];
			ssize_t n_x = below_readlink(path[0], x, sizeof(x));
			ssize_t n_y = below_readlink(path[1], y, sizeof(y));

			same = n_x >= 0 && n_x == n_y && memcmp(x, y, (size_t)n_x) == 0;
		}
		for (int k = 0; k < 2 && same && S_ISREG(mode) && !err; k++) {
			struct stat st;

			err = below_file_open_nofollow(path[k], &fd[k], &st, why);
			if (err)
				kp_fail_prefix(why, err, "%s", path[k]);
			else
				bytes[k] = kp_source_fd(fd[k], 0, (uint64_t)st.st_size);
		}
		if (!err && same && S_ISREG(mode))
			err = kp_source_compare(&bytes[0], &bytes[1], &same, why);
		for (int k = 0; k < 2; k++)
			if (fd[k] >= 0)
				close(fd[k]);
		if (!err && !same)
			err = settle_difference(m, &s, i, why);
	}
	if (!err && same)
		err = copy_chosen(m, &s, why);
	for (size_t i = 0; i < n; i++)
		free(s.paths[i]);
	free(s.paths);
	return err;
}

/* --- code for one key -------------------------------------------------------------- */

/* An entry of an archive of the new tree. */
struct tree_entry {
	struct kp_span dir, key, arch; /* DIR: of the archive */
	const struct merge_item *item;
	struct kpack_archive *archive;
	size_t number;
};

/*
 * Archives of different operands that lie in one directory must not have different code for
 * one key and GPU: which of it a program gets would depend on the order of search paths.
 * Archives of one path were joined, which has found their clashes.
 */
static kpack_error_t check_code(struct tree_merge *m, struct kpackx_error *why)
{
	struct kpack_archive **archives = NULL;
	struct tree_entry *entries = NULL;
	size_t n_archives = 0, archives_cap = 0, n = 0, cap = 0;
	kpack_error_t err = KPACK_SUCCESS;

	for (size_t i = 0; i < m->n_items; i++) {
		const struct merge_item *item = &m->items[i];
		KP_AUTO_FREE char *path = xasprintf("%s/%s", m->tree.root, item->path);
		struct kpack_archive *a;

		if (!kp_is_archive_of_tree(item->path) ||
		    (i && strcmp(item->path, m->items[i - 1].path) == 0) ||
		    below_archive_open(path, &a, NULL))
			continue;
		xgrow(&archives, n_archives, &archives_cap, sizeof(*archives));
		archives[n_archives++] = a;
		for (size_t k = 0; k < kp_archive_entry_count(a); k++) {
			struct kp_entry_info info;

			kp_archive_entry(a, k, &info);
			xgrow(&entries, n, &cap, sizeof(*entries));
			entries[n++] = (struct tree_entry){kp_path_directory(item->path),
							   info.key,
							   info.arch,
							   item,
							   a,
							   k};
		}
	}
	kp_sort(entries, n, KP_BY_SPAN(struct tree_entry, dir),
		KP_BY_SPAN(struct tree_entry, key), KP_BY_SPAN(struct tree_entry, arch));
	for (size_t i = 1; i < n && !err; i++) {
		const struct tree_entry *a = &entries[i - 1], *b = &entries[i];
		const struct merge_clash clash = {b->key, b->arch, a->item->path,
						  b->item->path, "other bytes"};
		bool same = true;

		if (kp_span_eq(a->dir, b->dir) && kp_span_eq(a->key, b->key) &&
		    kp_span_eq(a->arch, b->arch) && a->item->operand != b->item->operand)
			err = content_hash_same(a->archive, a->number, b->archive,
						b->number, &same, why);
		if (same)
			continue;
		m->faults++;
		merge_report_clash(&m->report, &clash);
	}
	for (size_t i = 0; i < n_archives; i++)
		kp_archive_close(archives[i]);
	free(archives);
	free(entries);
	return err;
}

/* --- all of it --------------------------------------------------------------------- */

int merge_trees(const struct merge_trees_args *args)
{
	struct tree_merge m = {.args = args,
			       .staging.fd = -1,
			       .report.list = args->json ? json_array() : NULL};
	KP_AUTO_FREE char *parent = xstrdup(args->out), *last = xstrdup(args->out);
	KP_AUTO_FREE char *root = NULL;
	const char *dir = dirname(parent), *name = basename(last);
	struct kpackx_error why = {0};
	kpack_error_t err;
	bool done;

	err = kp_component_ok(kp_span_str(name))
		      ? list_operands(&m, &why)
		      : kp_fail(&why, KPACK_ERROR_INVALID_ARGUMENT,
				"%s: cannot be the name of a tree", args->out);
	if (!err)
		err = staging_open(&m.staging, dir, &why);
	if (!err)
		err = staging_check(&m.staging, name, args->force, &why);
	root = xasprintf("%s/%s", m.staging.path ? m.staging.path : "", name);
	tree_write_begin(&m.tree, root, true);
	/* from the first fault on this only looks for more of them */
	for (size_t i = 0, end; i < m.n_items && !err; i = end) {
		for (end = i + 1; end < m.n_items; end++)
			if (strcmp(m.items[end].path, m.items[i].path) != 0)
				break;
		err = merge_path(&m, &m.items[i], end - i, &why);
	}
	if (!err && !m.faults)
		err = check_code(&m, &why);
	if (!err && !m.faults)
		err = tree_write_finish(&m.tree, &why);
	if (!err && !m.faults)
		err = staging_publish(&m.staging, &name, 1, args->force, &why);
	tree_write_end(&m.tree);
	merge_report_end(&m.report);
	if (err)
		report_why(NULL, &why);
	done = !err && !m.faults;
	if (m.faults)
		report_error(NULL, "nothing was written because of the faults above");
	if (args->json) {
		report_json(json_pack("{s:o, s:b, s:I, s:I, s:I, s:I, s:O}", "output",
				      report_json_text(args->out), "written", done,
				      "trees", (json_int_t)args->n_trees, "files",
				      (json_int_t)m.files, "joined_binaries",
				      (json_int_t)m.joined, "joined_archives",
				      (json_int_t)m.archives, "clashes", m.report.list));
	} else if (done && !args->quiet) {
		report_text(args->out);
		printf(": %zu file%s from %zu tree%s\n", m.files, plural(m.files),
		       args->n_trees, plural(args->n_trees));
		if (m.joined || m.archives)
			printf("  %zu binar%s got markers that name the archives of "
			       "several trees, %zu archive%s joined\n",
			       m.joined, plural_y(m.joined), m.archives,
			       plural(m.archives));
	}
	staging_close(&m.staging);
	json_decref(m.report.list);
	for (size_t i = 0; i < m.n_items; i++)
		free(m.items[i].path);
	free(m.items);
	free(m.ranks);
	return done ? EXIT_OK : EXIT_FAULT;
}
