/* SPDX-License-Identifier: MIT */
/*
 * kpack merge: join archives, the trees of a split, or the parts of a run.  Which of them it is
 * follows from the operands.  Parts and trees are joined as they are, so that few options go with
 * them; of archives a new one is planned, and written when nothing speaks against it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "core/archive/naming.h"
#include "core/base/path.h"
#include "packer/archives/merge.h"
#include "packer/archives/operands.h"
#include "packer/command.h"
#include "packer/files/below.h"
#include "packer/files/staging.h"
#include "packer/trees/join.h"
#include "packer/trees/shard.h"

struct merge_run {
	const char *out; /* as given */
	const char *given_family;
	struct merge_options options;
	struct option_texts prefer; /* operands or archives, the best one first */
	bool force, drop_signature, sync, json, quiet;
	struct archives set;
	struct merge_source *sources; /* per archive */
	struct merge_report report;
	struct merge_stats stats;
	bool written;
};

/* Without --scheme the new archive has the scheme of the others. */
#define SAME_SCHEME ((kpack_compression_t)-1)

/* Where the argument of an option goes. */
#define AT(member) OPTION_PLACE(struct merge_run, member)

static const struct option_help options[] = {
	{'o', "output", "OUT", "the archive, or the tree, to write", AT(out)},
	{0, "group", "NAME", "its group_name (default: the archives')",
	 AT(options.group)},
	{0, "family", "NAME", "its gfx_arch_family (default: see below)",
	 AT(given_family)},
	{0, "prefer", "SOURCE", "take what clashes from this operand; may be repeated",
	 AT(prefer)},
	{0, "scheme", "SCHEME", "none, zstd-per-kernel or zstd-shared (the archives')",
	 OPTION_SCHEME(struct merge_run, options.scheme)},
	{0, "level", "N", "compress everything again, at zstd level N, 1 to 22",
	 OPTION_LEVEL(struct merge_run, options.level)},
	{'f', "force", NULL, "replace OUT when it exists", AT(force)},
	OPTION_DROP_SIGNATURE(struct merge_run, drop_signature),
	{0, "skip-faulty", NULL, "leave out entries that cannot be read",
	 AT(options.skip_faulty)},
	{0, "sync", NULL, "wait until OUT is on the disk", AT(sync)},
	{0, "json", NULL, "print what was done as one JSON object", AT(json)},
	{'q', "quiet", NULL, "report only faults", AT(quiet)},
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

/* --- archives ------------------------------------------------------------------------- */

/* Open the archives of all operands, with their preference.  false: it was reported. */
static bool open_sources(struct merge_run *m, int n, char **operands)
{
	bool *used = xcalloc(m->prefer.count, sizeof(*used));

	for (int i = 0; i < n; i++) {
		size_t k = m->set.count;

		archives_open(&m->set, 1, &operands[i]);
		m->sources = xrealloc(m->sources, m->set.count * sizeof(*m->sources));
		for (; k < m->set.count; k++) {
			struct merge_source s = {.archive = m->set.items[k]};

			for (size_t p = 0; p < m->prefer.count; p++) {
				if (strcmp(m->prefer.items[p], operands[i]) != 0 &&
				    strcmp(m->prefer.items[p],
					   kp_archive_path(s.archive)) != 0)
					continue;
				used[p] = true;
				if (!s.prefer)
					s.prefer = (unsigned)(m->prefer.count - p);
			}
			m->sources[k] = s;
		}
	}
	for (size_t p = 0; p < m->prefer.count && !m->set.failed; p++)
		if (!used[p])
			options_usage(&cmd_merge_help,
				      "--prefer: %s: is none of the operands",
				      m->prefer.items[p]);
	free(used);
	return !m->set.failed;
}

enum { BOTH = ROW_LIST | ROW_JSON, SOME = BOTH | ROW_OPTIONAL };

/* What was done; after a failure JSON is printed, too: it has the clashes. */
static const struct row rows[] = {
	ROW("output", ROW_JSON, struct merge_run, out),
	ROW("written", ROW_JSON, struct merge_run, written),
	ROW("archives", BOTH, struct merge_run, set.count),
	ROW("clashes", ROW_JSON, struct merge_run, report.list),
	ROW("entries", BOTH, struct merge_run, stats.entries),
	ROW("frames", BOTH, struct merge_run, stats.frames),
	ROW_IN("bytes", BOTH, struct merge_run, stats.bytes, "bytes"),
	ROW_IN("duplicates", SOME, struct merge_run, stats.duplicates,
	       "entries that another archive has, too"),
	ROW_IN("settled", SOME, struct merge_run, stats.settled,
	       "entries of archives that were not preferred"),
	ROW_IN("shared", SOME, struct merge_run, stats.shared,
	       "objects that equal another one"),
	ROW_IN("unused", SOME, struct merge_run, stats.unused,
	       "objects that no entry names, not copied"),
	ROW("blocks_copied", SOME, struct merge_run, stats.blocks_copied),
	ROW("blocks_encoded", SOME, struct merge_run, stats.blocks_encoded),
};

/*
 * Join archives into OUT.  The names of the new archive - its directory, its family - come from
 * OUT, so that they agree with what a loader looks for.
 */
static int merge_archives(struct merge_run *m, int n, char **operands)
{
	const struct command_help *help = &cmd_merge_help;
	struct kpackx_error why = {0};
	const char *name = m->out ? kp_path_name(m->out) : NULL;
	char *dir, *family = NULL;
	int lock = -1, status = EXIT_FAULT, error;
	struct merge_plan *plan = NULL;
	struct kp_writer *writer = NULL;
	struct kp_span group;
	kpack_error_t err;
	struct stat st;
	size_t stem;

	if (n == 0)
		options_usage(help, "no archives given");
	if (!m->out)
		options_usage(help, "-o OUT is needed");
	if (*m->out == '\0' || m->out[strlen(m->out) - 1] == '/' ||
	    (below_stat(m->out, &st) == 0 && S_ISDIR(st.st_mode)))
		options_usage(help,
			      "%s: is a directory: give the archive's own name, as "
			      "DIR/<group>-<family>.kpack",
			      m->out);
	if (m->options.group && *m->options.group == '\0')
		options_usage(help, "--group: is empty");
	if (m->given_family && *m->given_family == '\0')
		options_usage(help, "--family: is empty");
	dir = name == m->out       ? xstrdup(".")
	      : name == m->out + 1 ? xstrdup("/")
				   : xstrndup(m->out, (size_t)(name - m->out - 1));
	/*
	 * Wait for runs that change archives in the directory of OUT, before one is opened: OUT
	 * may be an operand; without --force it is no archive yet.  In a directory as /tmp any
	 * user could stop this run by a lock.
	 */
	if (m->force &&
	    !(below_stat(dir, &st) == 0 && st.st_mode & S_ISVTX &&
	      st.st_mode & S_IWOTH) &&
	    leftovers_lock(dir, &lock, &why)) {
		report_why(NULL, &why); /* it has the path */
		goto out;
	}
	if (!open_sources(m, n, operands))
		goto out;
	/* the family is NAME where the archive is called "<group>-<NAME>.kpack" */
	group = m->options.group ? kp_span_str(m->options.group)
				 : kp_archive_group(m->set.items[0]);
	stem = kp_archive_stem(kp_span_str(name));
	if (!m->given_family && group.size && stem >= group.size + 2 &&
	    memcmp(name, group.data, group.size) == 0 && name[group.size] == '-')
		family = xstrndup(name + group.size + 1, stem - group.size - 1);
	m->options.family = family ? family : m->given_family;
	/* an archive that replaces one is flushed first; a new one can be made again */
	error = below_lstat(m->out, &st) == 0 ? 0 : errno;
	m->options.lazy = error == ENOENT && !m->sync;
	if (!m->force && error != ENOENT) {
		if (error)
			report_error(m->out, "cannot look at it: %s", strerror(error));
		else
			report_error(m->out, "already exists (--force replaces it)");
		goto out;
	}
	m->report.list = m->json ? json_array() : NULL;
	m->options.keep = !m->force;
	m->options.clash = merge_report_clash;
	m->options.clash_arg = &m->report;
	m->options.has_prefer = true;
	/*
	 * First the whole plan, which checks every entry that is taken, then the file: what cannot
	 * be joined leaves nothing behind.
	 */
	err = merge_plan_new(m->sources, m->set.count, &m->options, &plan, &why);
	if (!err) {
		merge_plan_stats(plan, &m->stats);
		progress_begin("merging", m->stats.bytes, !m->quiet && !m->json);
		err = merge_plan_write(plan, dir, name, &writer, &why);
		if (!err)
			err = kp_writer_publish(writer, &why);
		kp_writer_close(writer);
		merge_plan_stats(plan, &m->stats);
	}
	progress_end();
	merge_report_end(&m->report);
	merge_plan_free(plan);
	if (err && why.sys_errno == EEXIST)
		report_error(m->out, "already exists (--force replaces it)");
	else if (err)
		report_why(m->out, &why);
	m->written = !err;
	status = err ? EXIT_FAULT : EXIT_OK;
	if (m->json) {
		report_json(rows_object(ROWS(rows), m));
	} else if (m->written && !m->quiet) {
		report_text(m->out);
		putchar('\n');
		rows_list(ROWS(rows), m);
	}
out:
	archives_close(&m->set);
	lock_close(lock);
	free(m->sources);
	free(dir);
	free(family);
	return status;
}

/*
 * Find out what the operands are, and join that.  They are held open first: what is looked at is
 * then what is read.
 */
int cmd_merge(int argc, char **argv)
{
	static struct merge_run m = {.options.scheme = SAME_SCHEME};
	int n = options_parse(&cmd_merge_help, argc, &argv, &m), status = EXIT_OK;
	bool parts = false, trees = false, shaped;
	struct kpackx_error why = {0};
	kpack_error_t err = KPACK_SUCCESS;
	struct shard_line line;

	m.options.recode = m.options.scheme != SAME_SCHEME;
	for (int i = 0; i < n && !status; i++)
		status = below_hold(argv[i]) ? EXIT_OK : EXIT_FAULT;
	for (int i = 0; i < n && !status && !err && !parts; i++) {
		err = shard_line_read(argv[i], &line, &why);
		parts = line.state != SHARD_NONE;
	}
	if (!status && !err && !parts)
		err = merge_trees_look(argv, (size_t)n, m.out, &trees, &why);
	if (err)
		status = report_why(NULL, &why);
	if (status)
		return report_finish(status);
	if (!trees && m.drop_signature)
		options_usage(&cmd_merge_help, "--drop-signature goes with trees only");
	/*
	 * What the operands are decides what is done: the parts of a run have a line that says so, and
	 * trees are directories without archives directly in them.
	 */
	if (!parts && !trees)
		return report_finish(merge_archives(&m, n, argv));
	if (!m.out || !*m.out)
		options_usage(&cmd_merge_help, "-o OUT is needed");
	/* options that shape an archive mean nothing where archives stay as they are */
	shaped = m.options.group || m.given_family || m.options.skip_faulty || m.sync ||
		 m.options.recode || m.options.level;
	if (parts) {
		const struct shard_merge_options join = {.parts = argv,
							 .n_parts = (size_t)n,
							 .out = m.out,
							 .quiet = m.quiet,
							 .json = m.json};

		if (shaped || m.prefer.count || m.force)
			options_usage(&cmd_merge_help,
				      "parts keep the options of their run: only --json "
				      "and --quiet go with them");
		status = below_hold(m.out) ? shard_merge(&join) : EXIT_FAULT;
	} else {
		const struct merge_trees_args join = {.trees = argv,
						      .n_trees = (size_t)n,
						      .out = m.out,
						      .prefer = m.prefer.items,
						      .n_prefer = m.prefer.count,
						      .force = m.force,
						      .drop_signature = m.drop_signature,
						      .json = m.json,
						      .quiet = m.quiet};

		if (shaped)
			options_usage(&cmd_merge_help,
				      "trees are joined as they are: only --prefer, "
				      "--force, --drop-signature, --json and --quiet go "
				      "with them");
		for (size_t i = 0; i < m.prefer.count; i++) {
			int k = 0;

			while (k < n && strcmp(m.prefer.items[i], argv[k]) != 0)
				k++;
			if (k == n)
				options_usage(&cmd_merge_help,
					      "--prefer: %s: is none of the operands",
					      m.prefer.items[i]);
		}
		status = merge_trees(&join);
	}
	return report_finish(status);
}
