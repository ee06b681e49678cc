/* SPDX-License-Identifier: MIT */
/*
 * kpack prune: remove the entries that nothing needs from a packed tree's archives.  What is
 * needed, and why an entry goes, is decided in packer/archives/prune.h; here are the arguments and
 * the report.
 */
#include <inttypes.h>
#include "packer/cli/report.h"
#include "packer/command.h"
#include "packer/files/below.h"
#include "packer/archives/prune.h"

struct prune_command {
	struct prune prune;
	bool json, quiet;
};

static const struct option_help options[] = {
	ARCH_FILTER_OPTIONS_TO("keep ", struct prune_command, prune.args.filter),
	OPTION_DRY_RUN(struct prune_command, prune.args.dry),
	{0, "force", NULL, "also if no archive would be left",
	 OPTION_PLACE(struct prune_command, prune.args.force)},
	OPTION_JSON_REPORT(struct prune_command, json),
	OPTION_QUIET(struct prune_command, quiet),
	{0},
};

const struct command_help cmd_prune_help = {
	"prune",
	"[--arch LIST [--arch-exact]] [OPTION]... TREE",
	"remove from a packed tree's archives what nothing needs",
	options,
	"Without --arch, only what TREE no longer asks for goes.",
};

/* Read the arguments.  Returns the exit status, or -1 to go on. */
static int read_arguments(struct prune_command *c, int argc, char **argv)
{
	struct options o = {.help = &cmd_prune_help, .argc = argc, .argv = argv};
	struct prune_args *args = &c->prune.args;
	struct kpackx_error why = {0};
	struct stat st;
	int status = arch_filter_read(&o, c, &args->filter);

	if (status >= 0)
		return status;
	status = arch_filter_check_known(&args->filter, o.help);
	if (status)
		return status;
	if (argc - optind != 1)
		return options_usage(o.help,
				     optind == argc ? "no TREE" : "too many operands");
	args->tree = argv[optind];
	if (below_stat(args->tree, &st) == 0 && !S_ISDIR(st.st_mode))
		return options_usage(o.help, "%s: not a directory", args->tree);
	if (below_root(args->tree, &why)) {
		report_why(args->tree, &why);
		return EXIT_FAULT;
	}
	return -1;
}

/* --- the report ---------------------------------------------------------------------- */

static const char *const reasons[] = {
	[PRUNE_STAYS] = "stay",
	[PRUNE_OTHER_GPU] = "for other GPUs",
	[PRUNE_GONE] = "of files that do not exist any more",
	[PRUNE_UNASKED] = "that nothing asks for",
};

struct sums {
	size_t archives; /* that change */
	size_t n[PRUNE_REASONS];
	uint64_t before, after, copied, encoded;
};

static struct sums sum_up(const struct prune *p)
{
	struct sums s = {0};

	for (size_t i = 0; i < p->n_archives; i++) {
		const struct prune_archive *a = &p->archives[i];

		s.archives += prune_changes(a);
		s.before += a->before;
		s.after += a->after;
		s.copied += a->blocks_copied;
		s.encoded += a->blocks_encoded;
		for (int k = 0; k < PRUNE_REASONS; k++)
			s.n[k] += a->n_entries[k];
	}
	return s;
}

/* An archive of another writer may become a few bytes larger. */
static uint64_t freed_bytes(uint64_t before, uint64_t after)
{
	return before > after ? before - after : 0;
}

static void print_table(const struct prune *p)
{
	struct sums s = sum_up(p);

	printf("%16s %16s  %s\n", p->args.dry ? "would be freed" : "freed", "stays",
	       "archive");
	for (size_t i = 0; i < p->n_archives; i++) {
		const struct prune_archive *a = &p->archives[i];

		printf("%16" PRIu64 " %16" PRIu64 "  ", freed_bytes(a->before, a->after),
		       a->after);
		report_text(a->relative);
		putchar('\n');
	}
	for (int k = PRUNE_STAYS + 1; k < PRUNE_REASONS; k++)
		if (s.n[k])
			printf("%zu entries %s\n", s.n[k], reasons[k]);
	if (s.copied || s.encoded)
		printf("%" PRIu64 " blocks copied, %" PRIu64 " compressed\n", s.copied,
		       s.encoded);
	printf("%zu of %zu archives: %" PRIu64 " bytes %s\n", s.archives, p->n_archives,
	       freed_bytes(s.before, s.after), p->args.dry ? "would be freed" : "freed");
}

static json_t *json_archive(const struct prune_archive *a)
{
	const char *status = !prune_changes(a)           ? "unchanged"
			     : a->n_entries[PRUNE_STAYS] ? "pruned"
							 : "removed";

	return json_pack("{so ss sI sI sI sI sI sI sI sI}", "path",
			 report_json_text(a->relative), "status", status, "entries",
			 (json_int_t)a->n_entries[PRUNE_STAYS], "other_gpus",
			 (json_int_t)a->n_entries[PRUNE_OTHER_GPU], "gone",
			 (json_int_t)a->n_entries[PRUNE_GONE], "not_asked_for",
			 (json_int_t)a->n_entries[PRUNE_UNASKED], "size_before",
			 (json_int_t)a->before, "size_after", (json_int_t)a->after,
			 "blocks_copied", (json_int_t)a->blocks_copied, "blocks_encoded",
			 (json_int_t)a->blocks_encoded);
}

static void print_json(const struct prune *p)
{
	struct sums s = sum_up(p);
	json_t *archives = json_array();

	for (size_t i = 0; i < p->n_archives; i++)
		json_array_append_new(archives, json_archive(&p->archives[i]));
	report_json(json_pack("{so sb so sI sI}", "tree", report_json_text(p->args.tree),
			      "dry_run", p->args.dry, "archives", archives,
			      "bytes_before", (json_int_t)s.before, "bytes_after",
			      (json_int_t)s.after));
}

int cmd_prune(int argc, char **argv)
{
	struct prune_command c = {0};
	int status = read_arguments(&c, argc, argv);

	if (status >= 0)
		goto out;
	status = prune_run(&c.prune);
	if (status) {
		status = status < 0 ? EXIT_OK : status;
		goto out;
	}
	if (c.json)
		print_json(&c.prune);
	else if (!c.quiet)
		print_table(&c.prune);
	if (c.prune.n_archives == 0)
		report_error(c.prune.args.tree, "note: it has no archives");
	else
		arch_filter_unmatched(&c.prune.args.filter, "entry");
out:
	prune_close(&c.prune);
	return report_finish(status);
}
