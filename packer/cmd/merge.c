/* SPDX-License-Identifier: MIT */
/* kpack merge: join archives, trees, or the parts of a run. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include "packer/archives/operands.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/files/staging.h"
#include "packer/command.h"
#include "packer/archives/merge.h"
#include "packer/cli/progress.h"
#include "packer/cli/report.h"
#include "packer/cli/scheme.h"
#include "packer/trees/merge_trees.h"
#include "packer/trees/shard.h"
#include "core/archive/naming.h"

struct merge_run {
	const char *out; /* as given */
	char *dir, *name, *family;
	const char *given_family;
	struct merge_options options;
	struct archives set;
	size_t *operands; /* per archive: the operand that it is from */
	struct merge_source *sources;
	const char **prefer;
	size_t n_prefer;
	bool force, sync, json, quiet;
	int lock; /* of the directory; -1: none */
	struct merge_report report;
	struct progress progress;
	struct merge_stats stats;
};

static int take_preferred(const struct options *o, const struct option_help *row,
			  void *slot)
{
	struct merge_run *m = slot;

	(void)row;
	m->prefer[m->n_prefer++] = o->arg;
	return EXIT_OK;
}

static int take_scheme(const struct options *o, const struct option_help *row, void *slot)
{
	struct merge_run *m = slot;

	m->options.recode = true;
	return scheme_take(o, row, &m->options.scheme);
}

static const struct option_help options[] = {
	{'o', "output", "OUT", "the archive, or the tree, to write",
	 OPTION_PLACE(struct merge_run, out)},
	{0, "group", "NAME", "its group_name (default: the archives')",
	 OPTION_PLACE(struct merge_run, options.group)},
	{0, "family", "NAME", "its gfx_arch_family (default: see below)",
	 OPTION_PLACE(struct merge_run, given_family)},
	{0, "prefer", "SOURCE", "take what clashes from this operand; may be repeated",
	 OPTION_TAKE_ALL(take_preferred)},
	{0, "scheme", "SCHEME", "none, zstd-per-kernel or zstd-shared (the archives')",
	 OPTION_TAKE_ALL(take_scheme)},
	{0, "level", "N", "compress everything again, at zstd level N, 1 to 22",
	 OPTION_LEVEL(struct merge_run, options.level)},
	{'f', "force", NULL, "replace OUT when it exists",
	 OPTION_PLACE(struct merge_run, force)},
	{0, "skip-faulty", NULL, "leave out entries that cannot be read",
	 OPTION_PLACE(struct merge_run, options.skip_faulty)},
	{0, "sync", NULL, "wait until OUT is on the disk",
	 OPTION_PLACE(struct merge_run, sync)},
	{0, "json", NULL, "print what was done as one JSON object",
	 OPTION_PLACE(struct merge_run, json)},
	{'q', "quiet", NULL, "report only faults", OPTION_PLACE(struct merge_run, quiet)},
	{0},
};

const struct command_help cmd_merge_help = {
	"merge",
	"[OPTION]... ARCHIVE|DIR|TREE|PART... -o OUT",
	"join archives, trees of a split, or the parts of a run",
	options,
	"Without --family it is NAME where OUT is <group>-<NAME>.kpack, else the only\n"
	"architecture, else the group.",
};

/* --- the command line ---------------------------------------------------------------- */

static bool is_directory(const char *path)
{
	struct stat st;

	return below_stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int check_usage(const struct merge_run *m, int n_operands)
{
	if (n_operands == 0)
		return options_usage(&cmd_merge_help, "no archives given");
	if (!m->out)
		return options_usage(&cmd_merge_help, "-o OUT is needed");
	if (*m->out == '\0' || m->out[strlen(m->out) - 1] == '/' || is_directory(m->out))
		return options_usage(
			&cmd_merge_help,
			"%s: is a directory: give the archive's own name, as "
			"DIR/<group>-<family>.kpack",
			m->out);
	if (m->options.group && *m->options.group == '\0')
		return options_usage(&cmd_merge_help, "--group: is empty");
	if (m->given_family && *m->given_family == '\0')
		return options_usage(&cmd_merge_help, "--family: is empty");
	return EXIT_OK;
}

/* --- sources -------------------------------------------------------------------------- */

/* Open the archives of operand I. */
static bool open_operand(struct merge_run *m, int i, char **operand)
{
	struct archives set;
	size_t total;
	bool ok;

	archives_open(&set, 1, operand);
	total = m->set.count + set.count;
	m->set.items = xrealloc(m->set.items, total * sizeof(*m->set.items));
	m->operands = xrealloc(m->operands, total * sizeof(*m->operands));
	for (size_t k = 0; k < set.count; k++) {
		m->operands[m->set.count] = (size_t)i;
		m->set.items[m->set.count++] = set.items[k];
	}
	ok = !set.failed;
	free(set.items);
	return ok;
}

/* Prefer the sources that NAME names.  The first --prefer has the highest rank. */
static bool prefer_source(struct merge_run *m, const char *name, unsigned rank,
			  char **operands)
{
	bool any = false;

	for (size_t i = 0; i < m->set.count; i++) {
		struct merge_source *s = &m->sources[i];

		if (strcmp(name, operands[m->operands[i]]) != 0 &&
		    strcmp(name, kp_archive_path(m->set.items[i])) != 0)
			continue;
		any = true;
		if (s->prefer < rank)
			s->prefer = rank;
	}
	return any;
}

static int set_sources(struct merge_run *m, char **operands)
{
	m->sources = xcalloc(m->set.count, sizeof(*m->sources));
	for (size_t i = 0; i < m->set.count; i++)
		m->sources[i].archive = m->set.items[i];
	for (size_t i = 0; i < m->n_prefer; i++)
		if (!prefer_source(m, m->prefer[i], (unsigned)(m->n_prefer - i),
				   operands))
			return options_usage(&cmd_merge_help,
					     "--prefer: %s: is none of the operands",
					     m->prefer[i]);
	return EXIT_OK;
}

static int open_sources(struct merge_run *m, int n, char **operands)
{
	bool ok = true;

	for (int i = 0; i < n; i++)
		ok &= open_operand(m, i, &operands[i]);
	return ok ? set_sources(m, operands) : EXIT_FAULT;
}

/* --- the new archive's names ----------------------------------------------------------- */

static void split_name(struct merge_run *m)
{
	const char *slash = strrchr(m->out, '/');

	m->name = xstrdup(slash ? slash + 1 : m->out);
	m->dir = !slash            ? xstrdup(".")
		 : slash == m->out ? xstrdup("/")
				   : xstrndup(m->out, (size_t)(slash - m->out));
}

/* Returns NAME of "<group>-<NAME>.kpack", or NULL. */
static char *family_of_name(const char *name, struct kp_span group)
{
	size_t stem = kp_archive_stem(kp_span_str(name));

	if (stem < group.size + 2 || memcmp(name, group.data, group.size) != 0 ||
	    name[group.size] != '-')
		return NULL;
	return xstrndup(name + group.size + 1, stem - group.size - 1);
}

static void set_family(struct merge_run *m)
{
	struct kp_span group = m->options.group ? kp_span_str(m->options.group)
						: kp_archive_group(m->set.items[0]);

	m->options.family = m->given_family;
	if (m->given_family || group.size == 0)
		return;
	m->family = family_of_name(m->name, group);
	m->options.family = m->family;
}

/*
 * Whether OUT may be written.  An archive that replaces one is flushed first; a new one
 * can be made again.
 */
static bool is_free(struct merge_run *m)
{
	struct stat st;
	bool there = below_lstat(m->out, &st) == 0;
	int error = there ? 0 : errno;
	bool missing = error == ENOENT;

	m->options.lazy = missing && !m->sync;
	if (m->force || missing)
		return true;
	if (there)
		report_error(m->out, "already exists (--force replaces it)");
	else
		report_error(m->out, "cannot look at it: %s", strerror(error));
	return false;
}

/*
 * Wait for runs that change archives in the directory of OUT, before one is opened: OUT may
 * be an operand.  In a directory as /tmp any user could stop this run by a lock.
 */
static bool lock_directory(struct merge_run *m)
{
	struct kpackx_error why = {0};
	struct stat st;

	if (below_stat(m->dir, &st) == 0 && st.st_mode & S_ISVTX && st.st_mode & S_IWOTH)
		return true;
	if (!leftovers_lock(m->dir, &m->lock, &why))
		return true;
	report_why(NULL, &why); /* it has the path */
	return false;
}

/* --- joining -------------------------------------------------------------------------- */

static kpack_error_t write_archive(struct merge_run *m, struct merge_plan *plan,
				   struct kpackx_error *why)
{
	struct kp_writer *writer = NULL;
	kpack_error_t err;

	merge_plan_stats(plan, &m->stats);
	progress_begin(&m->progress, "merging", m->stats.bytes, !m->quiet);
	err = merge_plan_write(plan, m->dir, m->name, &writer, why);
	if (!err)
		err = kp_writer_publish(writer, why);
	kp_writer_close(writer);
	merge_plan_stats(plan, &m->stats);
	return err;
}

/* Join the archives.  Error texts name the file. */
static bool join_archives(struct merge_run *m)
{
	struct merge_plan *plan = NULL;
	struct kpackx_error why = {0};
	kpack_error_t err;

	m->options.keep = !m->force;
	m->options.clash = merge_report_clash;
	m->options.clash_arg = &m->report;
	m->options.has_prefer = true;
	m->options.progress = &m->progress;
	err = merge_plan_new(m->sources, m->set.count, &m->options, &plan, &why);
	if (!err)
		err = write_archive(m, plan, &why);
	progress_end(&m->progress);
	merge_report_end(&m->report);
	merge_plan_free(plan);
	if (err && why.sys_errno == EEXIST)
		report_error(m->out, "already exists (--force replaces it)");
	else if (err)
		report_why(m->out, &why);
	return !err;
}

/* --- what was done --------------------------------------------------------------------- */

static void print_text(const struct merge_run *m)
{
	const struct merge_stats *s = &m->stats;
	char size[24];

	report_text(m->out);
	printf(": %llu entries in %llu objects, %s, from %zu archives\n",
	       (unsigned long long)s->entries, (unsigned long long)s->frames,
	       report_size(s->bytes, size), m->set.count);
	if (s->duplicates || s->settled || s->shared)
		printf("  %llu entries were in several archives, %llu left out for a "
		       "preferred one, %llu objects stored once\n",
		       (unsigned long long)s->duplicates, (unsigned long long)s->settled,
		       (unsigned long long)s->shared);
	if (s->blocks_copied || s->blocks_encoded)
		printf("  %llu blocks were copied, %llu compressed\n",
		       (unsigned long long)s->blocks_copied,
		       (unsigned long long)s->blocks_encoded);
	if (s->unused)
		printf("  %llu objects that no entry names were not copied\n",
		       (unsigned long long)s->unused);
}

static void print_json(struct merge_run *m, bool done)
{
	json_t *object = json_pack("{s:o, s:b, s:I, s:O}", "output",
				   report_json_text(m->out), "written", done, "archives",
				   (json_int_t)m->set.count, "clashes", m->report.list);

	merge_stats_json(&m->stats, object);
	report_json(object);
}

/* ------------------------------------------------------------------------------------- */

static int merge_archives(struct merge_run *m, int n, char **operands)
{
	int status;
	bool done;

	split_name(m);
	/* without it, OUT is no archive yet */
	if (m->force && !lock_directory(m))
		return EXIT_FAULT;
	status = open_sources(m, n, operands);
	if (status)
		return status;
	m->report.list = m->json ? json_array() : NULL;
	set_family(m);
	if (!is_free(m))
		return EXIT_FAULT;
	done = join_archives(m);
	if (m->json)
		print_json(m, done);
	else if (done && !m->quiet)
		print_text(m);
	return done ? EXIT_OK : EXIT_FAULT;
}

/* --- parts of a run ---------------------------------------------------------------------- */

static kpack_error_t any_is_part(int n, char **operands, bool *any,
				 struct kpackx_error *why)
{
	for (int i = 0; i < n && !*any; i++)
		KP_TRY(shard_is_part(operands[i], any, why));
	return KPACK_SUCCESS;
}

static int merge_parts(const struct merge_run *m, int n, char **operands)
{
	const struct shard_merge_options join = {
		.parts = operands,
		.n_parts = (size_t)n,
		.out = m->out,
		.quiet = m->quiet,
		.json = m->json,
	};

	if (!m->out || *m->out == 0)
		return options_usage(&cmd_merge_help, "-o OUT is needed");
	if (m->options.group || m->given_family || m->n_prefer || m->force ||
	    m->options.skip_faulty || m->sync || m->options.recode || m->options.level)
		return options_usage(&cmd_merge_help,
				     "parts keep the options of their run: only "
				     "--json and --quiet go with them");
	return below_hold(m->out) ? shard_merge(&join) : EXIT_FAULT;
}

static int join_trees(const struct merge_run *m, int n, char **operands)
{
	const struct merge_trees_args join = {
		.trees = operands,
		.n_trees = (size_t)n,
		.out = m->out,
		.prefer = m->prefer,
		.n_prefer = m->n_prefer,
		.force = m->force,
		.json = m->json,
		.quiet = m->quiet,
	};

	if (!m->out || *m->out == 0)
		return options_usage(&cmd_merge_help, "-o OUT is needed");
	if (m->options.group || m->given_family || m->options.skip_faulty || m->sync ||
	    m->options.recode || m->options.level)
		return options_usage(&cmd_merge_help,
				     "trees are joined as they are: only --prefer, "
				     "--force, --json and --quiet go with them");
	for (size_t i = 0; i < m->n_prefer; i++) {
		int k = 0;

		while (k < n && strcmp(m->prefer[i], operands[k]) != 0)
			k++;
		if (k == n)
			return options_usage(&cmd_merge_help,
					     "--prefer: %s: is none of the operands",
					     m->prefer[i]);
	}
	return merge_trees(&join);
}

static void free_run(struct merge_run *m)
{
	json_decref(m->report.list);
	archives_close(&m->set);
	lock_close(m->lock);
	free(m->operands);
	free(m->sources);
	free(m->prefer);
	free(m->dir);
	free(m->name);
	free(m->family);
}

static int run_merge(struct merge_run *m, int n, char **operands)
{
	struct kpackx_error why = {0};
	bool parts = false, trees = false;
	kpack_error_t err;
	int status;

	for (int i = 0; i < n; i++)
		if (!below_hold(operands[i]))
			return EXIT_FAULT;
	err = any_is_part(n, operands, &parts, &why);
	if (!err && !parts)
		err = merge_trees_look(operands, (size_t)n, m->out, &trees, &why);
	if (err) {
		report_why(NULL, &why);
		return EXIT_FAULT;
	}
	if (parts)
		return merge_parts(m, n, operands);
	if (trees)
		return join_trees(m, n, operands);
	status = check_usage(m, n);
	return status ? status : merge_archives(m, n, operands);
}

int cmd_merge(int argc, char **argv)
{
	struct options o = {.help = &cmd_merge_help, .argc = argc, .argv = argv};
	struct merge_run m = {.lock = -1,
			      .prefer = xcalloc((size_t)argc, sizeof(char *))};
	int status = options_read(&o, &m);

	if (status < 0)
		status = run_merge(&m, argc - optind, argv + optind);
	free_run(&m);
	return report_finish(status);
}
