/* SPDX-License-Identifier: MIT */
#include "split_archives.h"
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>
#include "packer/archives/merge.h"
#include "packer/archives/operands.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/files/tree_list.h"
#include "packer/cli/exit.h"
#include "packer/pack/inherited_archives.h"
#include "packer/cli/progress.h"
#include "core/target/target.h"
#include "core/archive/naming.h"

struct run {
	struct merge_report report;
	struct progress progress;
	const struct split_args *args;
	struct archives set;
	struct arch_filter filter;
	json_t *written;
};

static bool is_archive(const char *path)
{
	struct stat st;
	char magic[4];
	bool yes;
	int fd;

	if (below_file_open(path, &fd, &st, NULL))
		return false;
	yes = kp_is_archive_name(path) ||
	      (!kp_file_pread(fd, 0, magic, sizeof(magic), NULL) &&
	       memcmp(magic, "KPAK", sizeof(magic)) == 0);
	close(fd);
	return yes;
}

/* True if the directory contains only archives, as files: links would be lost. */
static bool is_directory_of_archives(const char *path)
{
	struct tree_list *list = tree_list_open(path);
	bool only = true, any = false;
	struct tree_item e;

	while (only && tree_list_next(list, &e) && e.kind != TREE_DIR_END) {
		if (e.level == 0) {
			only = e.kind == TREE_DIR;
			continue;
		}
		any = true;
		only = e.kind == TREE_OTHER && S_ISREG(e.st.st_mode) &&
		       kp_is_archive_name(e.name);
	}
	tree_list_close(list);
	return only && any;
}

bool split_is_archives(const char *path)
{
	return is_archive(path) || is_directory_of_archives(path);
}

/* --- reporting --------------------------------------------------------------------- */

static void begin_progress(void *arg, uint64_t bytes)
{
	struct run *r = arg;

	progress_begin(&r->progress, "splitting", bytes,
		       !r->args->quiet && !r->args->json);
}

static void report_written(void *arg, const struct written_archive *part)
{
	struct run *r = arg;

	if (r->args->json)
		json_array_append_new(
			r->written,
			json_pack("{so so so sI sI sI sI}", "archive",
				  report_json_text(part->file), "group",
				  report_json_text(part->group), "arch",
				  report_json_text(part->arch), "entries",
				  (json_int_t)part->stats.entries, "bytes",
				  (json_int_t)part->stats.bytes, "blocks_copied",
				  (json_int_t)part->stats.blocks_copied, "blocks_encoded",
				  (json_int_t)part->stats.blocks_encoded));
	if (r->args->json || r->args->quiet)
		return;
	report_text(part->file);
	printf(": %" PRIu64 " entries, %" PRIu64 " bytes", part->stats.entries,
	       part->stats.bytes);
	if (part->stats.blocks_copied || part->stats.blocks_encoded)
		printf("; %" PRIu64 " blocks copied, %" PRIu64 " compressed",
		       part->stats.blocks_copied, part->stats.blocks_encoded);
	putchar('\n');
}

/* --- the run ----------------------------------------------------------------------- */

static bool takes_arch(const void *arg, struct kp_span arch)
{
	return arch_filter_match((struct arch_filter *)arg, arch);
}

static kpack_error_t write_parts(struct run *r, struct kpackx_error *why)
{
	struct merge_source *sources = xcalloc(r->set.count, sizeof(*sources));
	const struct merge_by_arch_options options = {
		.group = r->args->name,
		.force = r->args->force,
		.takes = takes_arch,
		.takes_arg = &r->filter,
		.clash = merge_report_clash,
		.clash_arg = &r->report,
		.progress = &r->progress,
		.begin = begin_progress,
		.written = report_written,
		.arg = r,
	};
	kpack_error_t err;

	for (size_t i = 0; i < r->set.count; i++)
		sources[i].archive = r->set.items[i];
	err = merge_by_arch(sources, r->set.count, r->args->output, &options, why);
	progress_end(&r->progress);
	merge_report_end(&r->report);
	free(sources);
	return err;
}

static int write_archives(struct run *r)
{
	struct kpackx_error why = {0};

	if (split_args_filter(r->args, &r->filter, &why)) {
		report_why(NULL, &why);
		return EXIT_USAGE;
	}
	if (write_parts(r, &why)) {
		report_why(r->args->output, &why);
		return EXIT_FAULT;
	}
	if (!r->args->quiet)
		arch_filter_unmatched(&r->filter, "entry");
	return EXIT_OK;
}

static int print_json(struct run *r)
{
	if (r->args->json)
		return report_json(json_pack("{ss sO}", "output", r->args->output,
					     "archives", r->written))
			       ? EXIT_OK
			       : EXIT_FAULT;
	return EXIT_OK;
}

int split_archives(const struct split_args *args)
{
	struct run r = {.args = args};
	char *only = (char *)args->input;
	int n = args->n_operands ? (int)args->n_operands : 1, status;

	archives_open(&r.set, n, args->n_operands ? args->operands : &only);
	r.written = json_array();
	status = r.set.failed ? EXIT_FAULT : write_archives(&r);
	if (!status)
		status = print_json(&r);
	json_decref(r.written);
	arch_filter_fini(&r.filter);
	archives_close(&r.set);
	return status;
}
