/* SPDX-License-Identifier: MIT */
#include "shard_merge.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/cli/exit.h"
#include "shard_join.h"
#include "packer/cli/report.h"

bool shard_is_part(const char *dir)
{
	char *own = xasprintf("%s/" SHARD_DIR, dir);
	struct stat st;
	bool is = below_stat(own, &st) == 0 && S_ISDIR(st.st_mode);

	free(own);
	return is;
}

static size_t count_files(const struct shard_join *j)
{
	size_t n = 0;

	for (size_t i = 0; i < j->n_parts; i++)
		for (size_t k = 0; k < j->parts[i].record.n_items; k++) {
			enum shard_kind kind = j->parts[i].record.items[k].kind;

			n += kind != SHARD_OWN && kind != SHARD_ABSENT &&
			     kind != SHARD_DIRECTORY;
		}
	return n - j->n_left;
}

static void report_as_json(const struct shard_join *j, const char *out)
{
	json_t *archives = json_array();
	size_t n = 0;
	const char *const *names = j->set ? archive_set_names(j->set, &n) : NULL;

	for (size_t i = 0; i < n; i++)
		json_array_append_new(archives, report_json_text(names[i]));
	report_json(json_pack("{s:o, s:I, s:I, s:I, s:o}", "output",
			      report_json_text(out), "shards", (json_int_t)j->n_parts,
			      "files", (json_int_t)count_files(j), "binaries",
			      (json_int_t)j->replay.n_binaries, "archives", archives));
}

static void print_report(const struct shard_merge_options *options,
			 const struct shard_join *j)
{
	size_t n = 0;

	if (options->json) {
		report_as_json(j, options->out);
		return;
	}
	if (options->quiet)
		return;
	if (j->set)
		archive_set_names(j->set, &n);
	report_text(options->out);
	printf(": %zu shards joined: %zu archives, %zu files\n", j->n_parts, n,
	       count_files(j));
}

static kpack_error_t join_parts(const struct shard_merge_options *options,
				struct shard_join *j, struct kpackx_error *why)
{
	struct progress progress;
	kpack_error_t err;

	KP_TRY(shard_join_open(options->parts, options->n_parts, j, why));
	KP_TRY(shard_join_check(j, options->out, why));
	progress_begin(&progress, "merging", j->replay.bytes,
		       !options->quiet && !options->json);
	err = shard_join_archives(j, options->out, &progress, why);
	progress_end(&progress);
	if (!err && !j->parts[0].record.archives_only)
		err = shard_join_tree(j, why);
	return err;
}

int shard_merge(const struct shard_merge_options *options)
{
	struct kpackx_error why = {0};
	struct shard_join j;
	int status = EXIT_OK;

	if (join_parts(options, &j, &why)) {
		report_why(NULL, &why);
		status = EXIT_FAULT;
	} else {
		for (size_t i = 0; i < j.n_left && !options->quiet; i++)
			report_error(j.left[i].path, "note: left out: %s", j.left[i].why);
		print_report(options, &j);
	}
	shard_join_close(&j);
	return status;
}
