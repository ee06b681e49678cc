/* SPDX-License-Identifier: MIT */
/* kpack info: describe archives in numbers. */
#include <inttypes.h>
#include <stdlib.h>
#include "packer/archives/operands.h"
#include "packer/cli/xalloc.h"
#include "packer/command.h"
#include "packer/cli/report.h"
#include "core/rocm_kpack/kpack.h"

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
	uint64_t entries;
	uint64_t size;
};

struct info {
	struct arch_count *arches; /* sorted bytewise */
	size_t n_arches;
	uint64_t decoded; /* bytes of all entries */
	uint64_t stored;  /* bytes of the frames, each counted once */
	uint32_t shared;  /* entries that share the bytes of an earlier one */
	size_t faults;
};

/* Count an entry for its architecture; there are few architectures. */
static void count_arch(struct info *info, const struct kp_entry_info *e)
{
	struct arch_count *arches;
	size_t at = 0;

	while (at < info->n_arches && kp_span_cmp(info->arches[at].arch, e->arch) < 0)
		at++;
	if (at == info->n_arches || !kp_span_eq(info->arches[at].arch, e->arch)) {
		arches = xrealloc(info->arches, (info->n_arches + 1) * sizeof(*arches));
		info->arches = arches;
		memmove(arches + at + 1, arches + at,
			(info->n_arches - at) * sizeof(*arches));
		arches[at] = (struct arch_count){e->arch, 0, 0};
		info->n_arches++;
	}
	info->arches[at].entries++;
	info->arches[at].size += e->size;
}

static bool gather_info(const struct kpack_archive *a, struct info *info)
{
	size_t n = kp_archive_entry_count(a), kept;
	bool *seen = calloc((size_t)kp_archive_ordinal_count(a) + 1, sizeof(*seen));
	struct kp_entry_info e;

	if (!seen)
		return false;
	for (size_t i = 0; i < n; i++) {
		kp_archive_entry(a, i, &e);
		info->decoded += e.size;
		if (seen[e.ordinal])
			info->shared++;
		else
			info->stored += e.stored;
		seen[e.ordinal] = true;
		count_arch(info, &e);
	}
	free(seen);
	kp_archive_faults(a, &kept, &info->faults);
	return true;
}

static double ratio(const struct info *info)
{
	return info->stored ? (double)info->decoded / (double)info->stored : 1;
}

static size_t declared_count(struct kpack_archive *a)
{
	size_t n = 0;

	return kpack_get_architecture_count(a, &n) == KPACK_SUCCESS ? n : 0;
}

static const char *declared_arch(struct kpack_archive *a, size_t i)
{
	const char *arch = "?";

	kpack_get_architecture(a, i, &arch);
	return arch;
}

static void print_line(const char *name, struct kp_span value)
{
	printf("  %-14s", name);
	report_span(value.size ? value : kp_span_str("-"));
	putchar('\n');
}

static void print_bytes(const char *name, uint64_t bytes)
{
	char text[24];

	printf("  %-14s%" PRIu64 " bytes (%s)\n", name, bytes, report_size(bytes, text));
}

static void print_arches(struct kpack_archive *a, const struct info *info)
{
	printf("  %-14s", "declared");
	for (size_t i = 0; i < declared_count(a); i++) {
		fputs(i ? " " : "", stdout);
		report_text(declared_arch(a, i));
	}
	puts(declared_count(a) ? "" : "-");
	for (size_t i = 0; i < info->n_arches; i++) {
		printf("  %-14s", i ? "" : "present");
		report_span(info->arches[i].arch);
		printf(": %" PRIu64 " entries, %" PRIu64 " bytes\n",
		       info->arches[i].entries, info->arches[i].size);
	}
}

static void print_text(struct kpack_archive *a, const struct info *info)
{
	report_text(kp_archive_path(a));
	putchar('\n');
	print_line("scheme", kp_span_str(kp_archive_scheme(a)));
	print_line("group", kp_archive_group(a));
	print_line("family", kp_archive_family(a));
	print_arches(a, info);
	printf("  %-14s%zu\n", "entries", kp_archive_entry_count(a));
	print_bytes("decoded", info->decoded);
	print_bytes("stored", info->stored);
	printf("  %-14s%.2f\n", "ratio", ratio(info));
	printf("  %-14s%" PRIu32 "\n", "frames", kp_archive_ordinal_count(a));
	printf("  %-14s%" PRIu32 " entries\n", "shared", info->shared);
	printf("  %-14s%s\n", "frame_index",
	       kp_archive_has_frame_index(a) ? "yes" : "no");
	printf("  %-14s%zu\n", "faults", info->faults);
}

static json_t *json_or_null(struct kp_span s)
{
	return s.size ? report_json_span(s) : json_null();
}

static json_t *declared_json(struct kpack_archive *a)
{
	json_t *list = json_array();

	for (size_t i = 0; i < declared_count(a); i++)
		json_array_append_new(list, report_json_text(declared_arch(a, i)));
	return list;
}

static json_t *present_json(const struct info *info)
{
	json_t *list = json_array();

	for (size_t i = 0; i < info->n_arches; i++)
		json_array_append_new(
			list, json_pack("{so sI sI}", "arch",
					report_json_span(info->arches[i].arch), "entries",
					(json_int_t)info->arches[i].entries, "size",
					(json_int_t)info->arches[i].size));
	return list;
}

static json_t *faults_json(const struct kpack_archive *a)
{
	json_t *list = json_array();
	size_t kept, counted;
	const struct kp_fault *faults = kp_archive_faults(a, &kept, &counted);

	for (size_t i = 0; i < kept; i++)
		json_array_append_new(list, json_pack("{so sb}", "text",
						      report_json_message(faults[i].text),
						      "refused", (int)faults[i].refused));
	return list;
}

static json_t *info_json(struct kpack_archive *a, const struct info *info)
{
	return json_pack("{so so so so so so sI sI sI sf sI sI sb so}", "archive",
			 report_json_text(kp_archive_path(a)), "scheme",
			 report_json_text(kp_archive_scheme(a)), "group",
			 json_or_null(kp_archive_group(a)), "family",
			 json_or_null(kp_archive_family(a)), "declared", declared_json(a),
			 "arches", present_json(info), "entries",
			 (json_int_t)kp_archive_entry_count(a), "size",
			 (json_int_t)info->decoded, "compressed_size",
			 (json_int_t)info->stored, "ratio", ratio(info), "frames",
			 (json_int_t)kp_archive_ordinal_count(a), "shared",
			 (json_int_t)info->shared, "frame_index",
			 (int)kp_archive_has_frame_index(a), "faults", faults_json(a));
}

static int print_all(const struct archives *set, bool json)
{
	int status = set->failed ? EXIT_FAULT : EXIT_OK;
	struct report_array array = {0};

	for (size_t i = 0; i < set->count; i++) {
		struct info info = {0};

		if (!gather_info(set->items[i], &info)) {
			report_error(kp_archive_path(set->items[i]), "out of memory");
			status = EXIT_FAULT;
		} else if (!json) {
			fputs(i ? "\n" : "", stdout);
			print_text(set->items[i], &info);
		} else {
			report_array_add(&array, info_json(set->items[i], &info));
		}
		free(info.arches);
		if (archives_refused(set->items[i], NULL))
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
	status = report_finish(print_all(&set, json));
	archives_close(&set);
	return status;
}
