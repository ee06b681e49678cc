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
#include "core/base/path.h"
#include "core/base/text.h"
#include "packer/archives/merge.h"
#include "packer/archives/operands.h"
#include "packer/cli/exit.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/files/tree_list.h"
#include "shard_internal.h"

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

static int by_index(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	return KP_ORDER(x->line.shard.index, y->line.shard.index);
}

/* Read the lines: they must be of one run, and of all its parts; a part may be given twice. */
static kpack_error_t open_parts(struct part_merge *m, struct kpackx_error *why)
{
	size_t n = m->options->n_parts;
	struct part *parts = m->parts = xcalloc(n, sizeof(*parts));

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
	qsort(parts, n, sizeof(*parts), by_index);
	for (size_t i = 0; i < n; i++) {
		struct part *last = m->n_parts ? &parts[m->n_parts - 1] : NULL;

		if (!last || by_index(last, &parts[i]) != 0)
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
	return KPACK_SUCCESS;
}

/*
 * By a part that another user could have put together, root would give new names to files of
 * third users, with their owners and set-user-ID bits: all of it must be that user's.
 */
static kpack_error_t check_owner(const struct part *part, struct kpackx_error *why)
{
	struct tree_list *list = tree_list_open(part->dir);
	kpack_error_t err = KPACK_SUCCESS;
	struct tree_item item;

	while (!err && tree_list_next(list, &item))
		if (item.kind == TREE_OTHER && item.st.st_uid != part->line.owner)
			err = kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				      "%s: belongs to user %u, but the part to user %u: "
				      "check them, and give them the same owner",
				      item.path, (unsigned)item.st.st_uid,
				      (unsigned)part->line.owner);
	tree_list_close(list);
	return err;
}

static kpack_error_t check_files(const struct part_merge *m, struct kpackx_error *why)
{
	for (size_t i = 0; i < m->n_parts; i++) {
		char files[SHARD_DIGEST];

		KP_TRY(shard_digest_files(m->parts[i].dir, files, why));
		if (strcmp(files, m->parts[i].line.files) != 0)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "%s: its files are not what the shard wrote: some "
				       "are missing, were changed, or were copied "
				       "without their times and modes",
				       m->parts[i].dir);
		if (geteuid() == 0 && m->parts[i].line.owner != 0)
			KP_TRY(check_owner(&m->parts[i], why));
	}
	return KPACK_SUCCESS;
}

/* A part inside OUT, or the other way round, would be read while it is written. */
static kpack_error_t check_places(const struct part_merge *m, struct kpackx_error *why)
{
	const char *out = m->options->out;

	for (size_t i = 0; i < m->n_parts; i++) {
		kpack_error_t err = output_check(m->parts[i].dir, out, why);

		if (err == KPACK_ERROR_INVALID_ARGUMENT)
			return kp_fail(why, err,
				       "%s and %s: the same, or one is inside the other",
				       out, m->parts[i].dir);
		if (err)
			return kp_fail_prefix(why, err, "%s", m->parts[i].dir);
	}
	return KPACK_SUCCESS;
}

/* --- archives ---------------------------------------------------------------------------- */

/* List the names of all parts' archives, each once. */
static kpack_error_t list_archives(struct part_merge *m, struct kpackx_error *why)
{
	size_t n = 0;

	for (size_t i = 0; i < m->n_parts; i++) {
		char *dir = xasprintf("%s/" KP_ARCHIVES_DIR, m->parts[i].dir);
		struct dirent **names = NULL;
		int count = below_scandir(dir, &names, NULL);

		if (count < 0 && errno != ENOENT) {
			kpack_error_t err = below_fail(why, "%s", dir);

			free(dir);
			return err;
		}
		for (int k = 0; k < count; k++) {
			if (kp_is_archive_name(names[k]->d_name)) {
				xgrow(&m->names, m->n_names, &m->names_cap,
				      sizeof(*m->names));
				m->names[m->n_names++] = xstrdup(names[k]->d_name);
			}
			free(names[k]);
		}
		free(names);
		free(dir);
	}
	if (m->n_names)
		qsort(m->names, m->n_names, sizeof(*m->names), kp_order_texts);
	for (size_t i = 0; i < m->n_names; i++) {
		if (n && strcmp(m->names[n - 1], m->names[i]) == 0)
			free(m->names[i]);
		else
			m->names[n++] = m->names[i];
	}
	m->n_names = n;
	return KPACK_SUCCESS;
}

static bool same_file(const struct kpack_archive *a, const struct kpack_archive *b)
{
	struct kp_source x = kp_source_fd(kp_archive_fd(a), 0,
					  (uint64_t)kp_archive_stat(a)->st_size),
			 y = kp_source_fd(kp_archive_fd(b), 0,
					  (uint64_t)kp_archive_stat(b)->st_size);

	return kp_source_same(&x, &y);
}

/*
 * Whether the archive is in OUT what it is in a part: INPUT had it and nobody added to it, so
 * that every part has a copy; or only one part stored into it.  But the parts of a shared archive
 * are compressed in a hurry.
 */
static bool is_copied(const struct part_merge *m, const struct archives *set)
{
	bool same = set->count == m->n_parts;

	for (size_t i = 1; i < set->count && same; i++)
		same = same_file(set->items[0], set->items[i]);
	return same || (set->count == 1 && !kp_archive_shared(set->items[0]));
}

static kpack_error_t copy_archive(struct part_merge *m, const struct kpack_archive *a,
				  const char *name, struct kpackx_error *why)
{
	struct file_identity seen = file_identity_of(kp_archive_stat(a));
	char *to = xasprintf(KP_ARCHIVES_DIR "/%s", name);
	kpack_error_t err =
		tree_write_file(&m->tree, to, kp_archive_path(a), &seen, NULL, why);

	free(to);
	return err;
}

/*
 * The header is that of the first part's archive; a group may be missing in what INPUT had.  A shared
 * archive is compressed again as a whole: its blocks are made of neighbours, which are others now.
 */
static kpack_error_t join_archive(struct part_merge *m, const struct archives *set,
				  const char *name, struct kpackx_error *why)
{
	struct merge_source *sources = xcalloc(set->count, sizeof(*sources));
	struct kp_span family = kp_archive_family(set->items[0]), group = {0};
	struct merge_plan *plan = NULL;
	struct kp_writer *writer = NULL;
	struct merge_options options = {
		.clash = merge_report_clash,
		.clash_arg = &m->report,
	};
	char *dir = xasprintf("%s/" KP_ARCHIVES_DIR, m->options->out);
	char *family_text = xstrndup((const char *)family.data, family.size), *group_text;
	kpack_error_t err;

	for (size_t i = 0; i < set->count; i++) {
		sources[i].archive = set->items[i];
		if (!group.size)
			group = kp_archive_group(set->items[i]);
	}
	group_text = xstrndup((const char *)group.data, group.size);
	options.group = group_text;
	options.family = family_text;
	if (kp_archive_shared(set->items[0]))
		options.level = m->parts[0].line.level;
	err = merge_plan_new(sources, set->count, &options, &plan, why);
	if (!err)
		err = merge_plan_write(plan, dir, name, &writer, why);
	if (!err)
		err = kp_writer_publish(writer, why);
	kp_writer_close(writer);
	merge_plan_free(plan);
	free(sources);
	free(dir);
	free(family_text);
	free(group_text);
	return err;
}

/* Open the archives called NAME of the parts that have one. */
static kpack_error_t open_archives(const struct part_merge *m, const char *name,
				   struct archives *set, struct kpackx_error *why)
{
	*set = (struct archives){.items = xcalloc(m->n_parts, sizeof(*set->items))};
	for (size_t i = 0; i < m->n_parts; i++) {
		KP_AUTO_FREE char *path =
			xasprintf("%s/" KP_ARCHIVES_DIR "/%s", m->parts[i].dir, name);
		struct stat st;
		kpack_error_t err;

		if (below_lstat(path, &st) < 0) {
			if (errno == ENOENT)
				continue;
			return below_fail(why, "%s", path);
		}
		err = below_archive_open(path, &set->items[set->count], why);
		if (err)
			return kp_fail_prefix(why, err, "%s", path);
		set->count++;
	}
	return KPACK_SUCCESS;
}

/* An archive in OUT that has anything else is not replaced: its binaries would lose code. */
static kpack_error_t check_existing(const struct part_merge *m, const char *name,
				    struct kpackx_error *why)
{
	char *path = xasprintf("%s/" KP_ARCHIVES_DIR "/%s", m->options->out, name);
	struct kpack_archive *old = NULL;
	struct archives set = {0};
	kpack_error_t err;
	struct stat st;

	if (below_lstat(path, &st) < 0 && (errno == ENOENT || errno == ENOTDIR)) {
		free(path);
		return KPACK_SUCCESS;
	}
	err = below_archive_open(path, &old, why);
	if (err)
		kp_fail_prefix(why, err, "%s", path);
	else
		err = open_archives(m, name, &set, why);
	for (size_t i = 0; !err && i < kp_archive_entry_count(old); i++) {
		struct kp_entry_info info;
		bool found = false;
		size_t entry;

		kp_archive_entry(old, i, &info);
		for (size_t k = 0; k < set.count && !found; k++)
			found = kp_archive_find(set.items[k], info.key, info.arch,
						&entry);
		if (!found)
			err = kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				      "%s: exists, and has other entries than the parts: "
				      "give another OUT",
				      path);
	}
	archives_close(&set);
	kp_archive_close(old);
	free(path);
	return err;
}

static kpack_error_t write_archive(struct part_merge *m, const char *name,
				   struct kpackx_error *why)
{
	struct archives set;
	kpack_error_t err = open_archives(m, name, &set, why);

	if (!err)
		err = is_copied(m, &set) ? copy_archive(m, set.items[0], name, why)
					 : join_archive(m, &set, name, why);
	archives_close(&set);
	return err;
}

/* --- files -------------------------------------------------------------------------------- */

/* Whether REST, in a part, is one of its archives. */
static bool is_archive(const char *rest)
{
	size_t n = strlen(KP_ARCHIVES_DIR "/");

	return strncmp(rest, KP_ARCHIVES_DIR "/", n) == 0 && !strchr(rest + n, '/') &&
	       kp_is_archive_name(rest + n);
}

/* Copy what is in a part; the directories of all parts are the same. */
static kpack_error_t copy_part(struct part_merge *m, const struct part *part,
			       struct kpackx_error *why)
{
	struct tree_list *list = tree_list_open(part->dir);
	kpack_error_t err = KPACK_SUCCESS;
	struct tree_item item;

	while (!err && tree_list_next(list, &item)) {
		struct file_identity seen = file_identity_of(&item.st);
		char *left = NULL;

		seen.guarded = item.guarded;
		if (item.kind == TREE_FAULT)
			err = kp_fail_errno(why, item.error, "%s", item.path);
		else if (item.kind == TREE_DIR && part == m->parts)
			err = tree_write_directory(&m->tree, item.rest, item.path, why);
		if (item.kind != TREE_OTHER || is_archive(item.rest) ||
		    strcmp(item.rest, SHARD_LINE) == 0)
			continue;
		err = tree_write_entry(&m->tree, item.rest, item.path, &seen, &left, why);
		m->n_files += !left;
		if (left && !m->options->quiet)
			report_error(item.path, "note: left out: %s", left);
		free(left);
	}
	tree_list_close(list);
	return err;
}

/* --- all ---------------------------------------------------------------------------------- */

static kpack_error_t write_out(struct part_merge *m, struct kpackx_error *why)
{
	KP_AUTO_FREE char *dir = xasprintf("%s/" KP_ARCHIVES_DIR, m->options->out);

	KP_TRY(tree_write_root(&m->tree, why));
	KP_TRY(tree_write_lock(&m->tree, why));
	for (size_t i = 0; i < m->n_names; i++)
		KP_TRY(check_existing(m, m->names[i], why));
	if (m->n_names)
		KP_TRY(below_mkdirs(dir, 0777, why));
	for (size_t i = 0; i < m->n_names; i++)
		KP_TRY(write_archive(m, m->names[i], why));
	for (size_t i = 0; i < m->n_parts; i++)
		KP_TRY(copy_part(m, &m->parts[i], why));
	return tree_write_finish(&m->tree, why);
}

static kpack_error_t merge_parts(struct part_merge *m, struct kpackx_error *why)
{
	kpack_error_t err;

	KP_TRY(open_parts(m, why));
	KP_TRY(check_places(m, why));
	KP_TRY(check_files(m, why));
	KP_TRY(list_archives(m, why));
	tree_write_begin(&m->tree, m->options->out, false);
	err = write_out(m, why);
	merge_report_end(&m->report);
	return err;
}

static void print_merged(const struct part_merge *m)
{
	const struct shard_merge_options *o = m->options;
	json_t *archives;

	if (!o->json) {
		if (o->quiet)
			return;
		report_text(o->out);
		printf(": %zu shards joined: %zu archives, %zu files\n", m->n_parts,
		       m->n_names, m->n_files);
		return;
	}
	archives = json_array();
	for (size_t i = 0; i < m->n_names; i++)
		json_array_append_new(archives, report_json_text(m->names[i]));
	report_json(json_pack("{s:o, s:I, s:I, s:o}", "output", report_json_text(o->out),
			      "shards", (json_int_t)m->n_parts, "files",
			      (json_int_t)m->n_files, "archives", archives));
}

int shard_merge(const struct shard_merge_options *options)
{
	struct part_merge m = {.options = options};
	struct kpackx_error why = {0};
	int status = EXIT_OK;

	if (merge_parts(&m, &why)) {
		report_why(NULL, &why);
		status = EXIT_FAULT;
	} else {
		print_merged(&m);
	}
	tree_write_end(&m.tree);
	for (size_t i = 0; i < m.n_names; i++)
		free(m.names[i]);
	free(m.names);
	free(m.parts);
	return status;
}
