/* SPDX-License-Identifier: MIT */
/*
 * Merge the parts of a run.  First everything is checked that can be checked without reading bytes:
 * the lines name one run and all its parts, and the files of each are those that its line digests.
 * Archives are merged by name, as kpack merge merges archives, which checks their bytes; those that
 * are in OUT what they are in a part are copied.  Everything else is in exactly one part, but for
 * directories, which are in all.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "core/archive/naming.h"
#include "core/base/alloc.h"
#include "core/base/order.h"
#include "core/base/path.h"
#include "packer/archives/merge.h"
#include "packer/archives/operands.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/files/tree_list.h"
#include "shard.h"

struct part {
	const char *dir;
	struct shard_line line;
};

struct part_merge {
	const struct shard_merge_options *options;
	struct part *parts; /* by index, each once */
	size_t n_parts;
	char **names; /* of all archives, sorted, each once */
	size_t n_names, names_cap;
	struct tree_write tree;
	size_t n_files;
	struct merge_report report;
};

/* --- do they belong together? ------------------------------------------------------------ */

/* Check, without reading bytes, that the parts are whole and those of one run. */
static kpack_error_t open_parts(struct part_merge *m, struct kpackx_error *why)
{
	const char *out = m->options->out;
	size_t n = m->options->n_parts;
	struct part *parts = m->parts = xcalloc(n, sizeof(*parts));

	/* the lines are of one run, and of all its parts; a part may be given twice */
	for (size_t i = 0; i < n; i++) {
		struct part *p = &parts[i];

		p->dir = m->options->parts[i];
		KP_TRY(shard_line_read(p->dir, &p->line, why));
		if (p->line.state == SHARD_NONE)
			return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				       "%s: is no part: it has no " SHARD_LINE, p->dir);
		if (p->line.state == SHARD_UNFINISHED)
			return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				       "%s: its shard was not finished: run it again",
				       p->dir);
		if (strcmp(p->line.run, parts[0].line.run) != 0)
			return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				       "%s and %s are of different runs: INPUT, the "
				       "options or the version of kpack or libzstd was "
				       "another",
				       parts[0].dir, p->dir);
	}
	kp_sort(parts, n, KP_BY_NUMBER(struct part, line.shard.index));
	for (size_t i = 0; i < n; i++) {
		struct part *last = m->n_parts ? &parts[m->n_parts - 1] : NULL;

		if (!last || last->line.shard.index != parts[i].line.shard.index)
			parts[m->n_parts++] = parts[i];
		else if (strcmp(last->line.files, parts[i].line.files) != 0)
			return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				       "%s and %s are both shard %u/%u, and differ",
				       last->dir, parts[i].dir, last->line.shard.index,
				       last->line.shard.count);
	}
	for (unsigned i = 0; i < parts[0].line.shard.count; i++)
		if (i >= m->n_parts || parts[i].line.shard.index != i + 1)
			return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				       "shard %u/%u is missing", i + 1,
				       parts[0].line.shard.count);
	/*
	 * The files of each part are those that its shard wrote, and none is in OUT, or the other way
	 * round: it would be read while it is written.  By a part that another user could have put
	 * together, root would give new names to files of third users, with their owners and
	 * set-user-ID bits: all of it must be that user's.
	 */
	for (size_t i = 0; i < m->n_parts; i++) {
		const struct part *p = &m->parts[i];
		bool other = geteuid() == 0 && p->line.owner != 0;
		kpack_error_t err = output_check(p->dir, out, why);
		char files[SHARD_DIGEST];
		struct tree_list *list;
		struct tree_item item;

		if (err == KPACK_ERROR_INVALID_ARGUMENT)
			return kp_fail(why, err,
				       "%s and %s: the same, or one is inside the other",
				       out, p->dir);
		if (err)
			return kp_fail_prefix(why, err, "%s", p->dir);
		KP_TRY(shard_digest_files(p->dir, files, why));
		if (strcmp(files, p->line.files) != 0)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "%s: its files are not what the shard wrote: some "
				       "are missing, were changed, or were copied "
				       "without their times and modes",
				       p->dir);
		list = other ? tree_list_open(p->dir) : NULL;
		while (other && !err && tree_list_next(list, &item))
			if (item.kind == TREE_OTHER && item.st.st_uid != p->line.owner)
				err = kp_fail(
					why, KPACK_ERROR_INVALID_FORMAT,
					"%s: belongs to user %u, but the part to user "
					"%u: check them, and give them the same owner",
					item.path, (unsigned)item.st.st_uid,
					(unsigned)p->line.owner);
		if (other)
			tree_list_close(list);
		KP_TRY(err);
	}
	return KPACK_SUCCESS;
}

/* --- archives ---------------------------------------------------------------------------- */

/* An archive in OUT that has anything else is not replaced: its binaries would lose code. */
static kpack_error_t check_existing(struct part_merge *m, const char *name,
				    const struct archives *set, struct kpackx_error *why)
{
	KP_AUTO_FREE char *path =
		xasprintf("%s/" KP_ARCHIVES_DIR "/%s", m->options->out, name);
	struct kpack_archive *old = NULL;
	kpack_error_t err;
	struct stat st;

	if (below_lstat(path, &st) < 0 && (errno == ENOENT || errno == ENOTDIR))
		return KPACK_SUCCESS;
	err = below_archive_open(path, &old, why);
	if (err)
		return kp_fail_prefix(why, err, "%s", path);
	for (size_t i = 0; !err && i < kp_archive_entry_count(old); i++) {
		struct kp_entry_info info;
		bool found = false;
		size_t entry;

		kp_archive_entry(old, i, &info);
		for (size_t k = 0; k < set->count && !found; k++)
			found = kp_archive_find(set->items[k], info.key, info.arch,
						&entry);
		if (!found)
			err = kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				      "%s: exists, and has other entries than the parts: "
				      "give another OUT",
				      path);
	}
	kp_archive_close(old);
	return err;
}

/*
 * Write the archive NAME from those of the parts.  It is copied if it is in OUT what it is in a
 * part: INPUT had it and nobody added to it, so that every part has a copy; or only one part
 * stored into it.  But a shared archive of a part was compressed in a hurry: it is compressed
 * again as a whole, because its blocks are made of neighbours, which are others now.  The
 * header is that of the first; a group may be missing in what INPUT had.
 */
static kpack_error_t write_archive(struct part_merge *m, const char *name,
				   const struct archives *set, struct kpackx_error *why)
{
	KP_AUTO_FREE struct merge_source *sources = xcalloc(set->count, sizeof(*sources));
	KP_AUTO_FREE char *dir = xasprintf("%s/" KP_ARCHIVES_DIR, m->options->out);
	KP_AUTO_FREE char *group = NULL;
	struct merge_options options = {.clash = merge_report_clash,
					.clash_arg = &m->report,
					.family_of_first = true};
	const struct kpack_archive *a = set->items[0];
	const struct stat *st = kp_archive_stat(a);
	struct kp_source first = kp_source_fd(kp_archive_fd(a), 0, (uint64_t)st->st_size);
	bool copied = set->count == m->n_parts;
	struct kp_span stated = {0};

	for (size_t i = 1; i < set->count && copied; i++) {
		const struct kpack_archive *b = set->items[i];
		struct kp_source other = kp_source_fd(
			kp_archive_fd(b), 0, (uint64_t)kp_archive_stat(b)->st_size);

		copied = kp_source_same(&first, &other);
	}
	if (copied || (set->count == 1 && !kp_archive_shared(a))) {
		struct file_identity seen = file_identity_of(st);
		KP_AUTO_FREE char *to = xasprintf(KP_ARCHIVES_DIR "/%s", name);

		return tree_write_file(&m->tree, to, kp_archive_path(a), &seen, NULL,
				       why);
	}
	for (size_t i = 0; i < set->count; i++) {
		sources[i].archive = set->items[i];
		if (!stated.size)
			stated = kp_archive_group(set->items[i]);
	}
	group = xstrndup((const char *)stated.data, stated.size);
	options.group = group;
	if (kp_archive_shared(a))
		options.level = m->parts[0].line.level;
	return merge_write(sources, set->count, &options, dir, name, why);
}

/* Let STEP do its work for each name, with the archives of that name in the parts. */
static kpack_error_t for_archives(struct part_merge *m,
				  kpack_error_t (*step)(struct part_merge *, const char *,
							const struct archives *,
							struct kpackx_error *),
				  struct kpackx_error *why)
{
	kpack_error_t err = KPACK_SUCCESS;

	for (size_t i = 0; i < m->n_names && !err; i++) {
		struct archives set = {.items = xcalloc(m->n_parts, sizeof(*set.items))};

		for (size_t k = 0; k < m->n_parts && !err; k++) {
			KP_AUTO_FREE char *path = xasprintf("%s/" KP_ARCHIVES_DIR "/%s",
							    m->parts[k].dir, m->names[i]);
			struct stat st;

			if (below_lstat(path, &st) < 0 &&
			    (errno == ENOENT || errno == ENOTDIR))
				continue;
			err = below_archive_open(path, &set.items[set.count], why);
			if (err)
				kp_fail_prefix(why, err, "%s", path);
			else
				set.count++;
		}
		if (!err)
			err = step(m, m->names[i], &set, why);
		archives_close(&set);
	}
	return err;
}

/* --- all ---------------------------------------------------------------------------------- */

/*
 * Archives come before the binaries that name them, so that an interrupted run leaves no
 * binary that does not find its code.
 */
static kpack_error_t merge_parts(struct part_merge *m, struct kpackx_error *why)
{
	KP_AUTO_FREE char *dir = xasprintf("%s/" KP_ARCHIVES_DIR, m->options->out);
	kpack_error_t err = KPACK_SUCCESS;
	struct tree_item item;
	struct stat st;
	size_t n = 0;

	KP_TRY(open_parts(m, why));
	/* the names of all parts' archives, each once */
	for (size_t i = 0; i < m->n_parts; i++) {
		KP_AUTO_FREE char *its =
			xasprintf("%s/" KP_ARCHIVES_DIR, m->parts[i].dir);
		struct dirent **names = NULL;
		int count = below_scandir(its, &names, NULL);

		if (count < 0 && errno != ENOENT)
			return below_fail(why, "%s", its);
		for (int k = 0; k < count; k++) {
			if (kp_is_archive_name(names[k]->d_name)) {
				xgrow(&m->names, m->n_names, &m->names_cap,
				      sizeof(*m->names));
				m->names[m->n_names++] = xstrdup(names[k]->d_name);
			}
			free(names[k]);
		}
		free(names);
	}
	kp_sort(m->names, m->n_names, KP_AS_TEXT);
	for (size_t i = 0; i < m->n_names; i++) {
		if (n && strcmp(m->names[n - 1], m->names[i]) == 0)
			free(m->names[i]);
		else
			m->names[n++] = m->names[i];
	}
	m->n_names = n;
	tree_write_begin(&m->tree, m->options->out, false);
	KP_TRY(tree_write_root(&m->tree, why));
	KP_TRY(leftovers_lock(m->tree.root, &m->tree.lock, why));
	if (below_lstat(dir, &st) == 0 || errno != ENOENT)
		KP_TRY(for_archives(m, check_existing, why));
	if (m->n_names)
		KP_TRY(below_mkdirs(dir, 0777, why));
	KP_TRY(for_archives(m, write_archive, why));
	/* everything else is copied; the directories of all parts are the same */
	for (size_t i = 0; i < m->n_parts; i++) {
		struct tree_list *list = tree_list_open(m->parts[i].dir);

		while (!err && tree_list_next(list, &item)) {
			struct file_identity seen = file_identity_of(&item.st);
			KP_AUTO_FREE char *left = NULL;

			seen.guarded = item.guarded;
			if (item.kind == TREE_FAULT)
				err = kp_fail_errno(why, item.error, "%s", item.path);
			else if (item.kind == TREE_DIR && i == 0)
				err = tree_write_directory(&m->tree, item.rest, item.path,
							   why);
			if (item.kind != TREE_OTHER ||
			    strcmp(item.rest, SHARD_LINE) == 0 ||
			    (kp_span_is(kp_path_directory(item.rest), KP_ARCHIVES_DIR) &&
			     kp_is_archive_name(item.rest)))
				continue;
			err = tree_write_entry(&m->tree, item.rest, item.path, &seen,
					       &left, why);
			m->n_files += !left;
			if (left && !m->options->quiet)
				report_error(item.path, "note: left out: %s", left);
		}
		tree_list_close(list);
		KP_TRY(err);
	}
	return tree_write_finish(&m->tree, why);
}

int shard_merge(const struct shard_merge_options *options)
{
	struct part_merge m = {.options = options};
	struct kpackx_error why = {0};
	kpack_error_t err = merge_parts(&m, &why);
	json_t *archives = json_array();

	merge_report_end(&m.report);
	for (size_t i = 0; i < m.n_names; i++)
		json_array_append_new(archives, report_json_text(m.names[i]));
	if (err) {
		report_why(NULL, &why);
	} else if (options->json) {
		report_json(json_pack("{s:o, s:I, s:I, s:O}", "output",
				      report_json_text(options->out), "shards",
				      (json_int_t)m.n_parts, "files",
				      (json_int_t)m.n_files, "archives", archives));
	} else if (!options->quiet) {
		report_text(options->out);
		printf(": %zu shard%s joined: %zu archive%s, %zu file%s\n", m.n_parts,
		       plural(m.n_parts), m.n_names, plural(m.n_names), m.n_files,
		       plural(m.n_files));
	}
	json_decref(archives);
	tree_write_end(&m.tree);
	for (size_t i = 0; i < m.n_names; i++)
		free(m.names[i]);
	free(m.names);
	free(m.parts);
	return err ? EXIT_FAULT : EXIT_OK;
}
