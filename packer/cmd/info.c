/* SPDX-License-Identifier: MIT */
/*
 * kpack info: describe archives in numbers.  Bytes of frames that several entries share count
 * once, so that the ratio is that of what lies on the disk.
 */
#include <inttypes.h>
#include <stdlib.h>
#include "core/archive/toc.h"
#include "core/base/alloc.h"
#include "core/base/order.h"
#include "core/rocm_kpack/kpack.h"
#include "packer/archives/operands.h"
#include "packer/cli/report.h"
#include "packer/cli/rows.h"
#include "packer/cli/xalloc.h"
#include "packer/command.h"

static const struct option_help options[] = {
	{0, "json", NULL, "print one JSON array of objects", OPTION_FLAG_ALONE},
	{0},
};

const struct command_help cmd_info_help = {
	"info", "[--json] ARCHIVE|DIR...", "print what archives are and hold", options,
	NULL,
};

struct arch_count {
	struct kp_span arch;
	uint64_t entries, size;
};

static const struct row arch_rows[] = {
	ROW("arch", ROW_JSON, struct arch_count, arch),
	ROW("entries", ROW_JSON, struct arch_count, entries),
	ROW("size", ROW_JSON, struct arch_count, size),
};

struct info {
	const char *path, *scheme;
	struct kp_span group, family;
	json_t *declared, *present, *fault_list;
	uint64_t entries, decoded,
		stored; /* bytes of entries, and of frames, each once */
	double ratio;
	uint32_t frames, shared; /* entries that share the bytes of an earlier one */
	bool frame_index;
	size_t faults;
	struct arch_count *arches; /* sorted bytewise */
	size_t n_arches, cap;
};

/* In lists the architectures follow the rows before "entries". */
enum { N_ROWS_ABOVE = 6 };

static const struct row rows[] = {
	ROW("archive", ROW_JSON, struct info, path),
	ROW("scheme", ROW_LIST | ROW_JSON, struct info, scheme),
	ROW("group", ROW_LIST | ROW_JSON | ROW_NONE, struct info, group),
	ROW("family", ROW_LIST | ROW_JSON | ROW_NONE, struct info, family),
	ROW("declared", ROW_JSON, struct info, declared),
	ROW("arches", ROW_JSON, struct info, present),
	ROW("entries", ROW_LIST | ROW_JSON, struct info, entries),
	ROW_IN("decoded", ROW_LIST, struct info, decoded, "bytes"),
	ROW_IN("stored", ROW_LIST, struct info, stored, "bytes"),
	ROW("size", ROW_JSON, struct info, decoded),
	ROW("compressed_size", ROW_JSON, struct info, stored),
	ROW("ratio", ROW_LIST | ROW_JSON, struct info, ratio),
	ROW("frames", ROW_LIST | ROW_JSON, struct info, frames),
	ROW_IN("shared", ROW_LIST | ROW_JSON, struct info, shared, "entries"),
	ROW("frame_index", ROW_LIST | ROW_JSON, struct info, frame_index),
	ROW("faults", ROW_LIST, struct info, faults),
	ROW("faults", ROW_JSON, struct info, fault_list),
};

/* Count the entries of A, for each architecture too; there are few architectures. */
static kpack_error_t count_entries(const struct kpack_archive *a, struct info *info,
				   struct kpackx_error *why)
{
	KP_AUTO_FREE bool *seen = NULL; /* by ordinal */

	KP_TRY(kp_new(&seen, (size_t)info->frames + 1, "the frames", why));
	for (size_t i = 0; i < info->entries; i++) {
		struct kp_entry_info e;
		size_t at = 0;

		kp_archive_entry(a, i, &e);
		info->decoded += e.size;
		if (seen[e.ordinal])
			info->shared++;
		else
			info->stored += e.stored;
		seen[e.ordinal] = true;
		while (at < info->n_arches && !kp_span_eq(info->arches[at].arch, e.arch))
			at++;
		if (at == info->n_arches) {
			xgrow(&info->arches, at, &info->cap, sizeof(*info->arches));
			info->arches[info->n_arches++] =
				(struct arch_count){.arch = e.arch};
		}
		info->arches[at].entries++;
		info->arches[at].size += e.size;
	}
	kp_sort(info->arches, info->n_arches, KP_BY_SPAN(struct arch_count, arch));
	info->ratio = info->stored ? (double)info->decoded / (double)info->stored : 1;
	return KPACK_SUCCESS;
}

/* The architectures that A's header declares, entries or not, as JSON. */
static json_t *list_declared(struct kpack_archive *a)
{
	json_t *list = json_array();
	const char *arch;
	size_t n = 0;

	kpack_get_architecture_count(a, &n);
	for (size_t i = 0; i < n; i++)
		json_array_append_new(
			list, report_json_text(
				      kpack_get_architecture(a, i, &arch) ? "?" : arch));
	return list;
}

static void print_list(struct kpack_archive *a, const struct info *info)
{
	const char *arch;
	size_t n = 0;

	report_text(info->path);
	putchar('\n');
	rows_list(rows, N_ROWS_ABOVE, info);
	printf("  %-14s", "declared");
	kpack_get_architecture_count(a, &n);
	for (size_t i = 0; i < n; i++) {
		fputs(i ? " " : "", stdout);
		report_text(kpack_get_architecture(a, i, &arch) ? "?" : arch);
	}
	puts(n ? "" : "-");
	for (size_t i = 0; i < info->n_arches; i++) {
		printf("  %-14s", i ? "" : "present");
		report_span(info->arches[i].arch);
		printf(": %" PRIu64 " entries, %" PRIu64 " bytes\n",
		       info->arches[i].entries, info->arches[i].size);
	}
	rows_list(rows + N_ROWS_ABOVE, KP_COUNT(rows) - N_ROWS_ABOVE, info);
}

static json_t *make_object(struct kpack_archive *a, struct info *info)
{
	size_t kept, counted;
	const struct kp_fault *faults = kp_archive_faults(a, &kept, &counted);

	info->declared = list_declared(a);
	info->present = json_array();
	for (size_t i = 0; i < info->n_arches; i++)
		json_array_append_new(
			info->present,
			rows_object(arch_rows, KP_COUNT(arch_rows), &info->arches[i]));
	info->fault_list = json_array();
	for (size_t i = 0; i < kept; i++)
		json_array_append_new(info->fault_list,
				      json_pack("{so sb}", "text",
						report_json_message(faults[i].text),
						"refused", (int)faults[i].refused));
	return rows_object(rows, KP_COUNT(rows), info);
}

static int print_archives(const struct archives *set, bool json)
{
	int status = set->failed ? EXIT_FAULT : EXIT_OK;
	struct report_array array = {0};
	struct kpackx_error why = {0};

	for (size_t i = 0; i < set->count; i++) {
		struct kpack_archive *a = set->items[i];
		struct info info = {.path = kp_archive_path(a),
				    .scheme = kp_archive_scheme(a),
				    .group = kp_archive_group(a),
				    .family = kp_archive_family(a),
				    .entries = kp_archive_entry_count(a),
				    .frames = kp_archive_ordinal_count(a),
				    .frame_index =
					    kp_archive_toc(a)->frame_index.data != NULL};
		size_t kept;

		kp_archive_faults(a, &kept, &info.faults);
		if (count_entries(a, &info, &why)) {
			report_why(info.path, &why);
			status = EXIT_FAULT;
		} else if (!json) {
			fputs(i ? "\n" : "", stdout);
			print_list(a, &info);
		} else {
			report_array_add(&array, make_object(a, &info));
		}
		free(info.arches);
		if (archives_refused(a, NULL))
			status = EXIT_FAULT;
	}
	if (json)
		report_array_end(&array);
	return status;
}

int cmd_info(int argc, char **argv)
{
	struct options o = {.help = &cmd_info_help, .argc = argc, .argv = argv};
	struct archives set;
	bool json = false;
	int status = options_read(&o, &json);

	if (status >= 0)
		return status;
	if (optind == argc)
		return options_usage(o.help, "an archive is missing");
	archives_open(&set, argc - optind, argv + optind);
	status = report_finish(print_archives(&set, json));
	archives_close(&set);
	return status;
}
