/* SPDX-License-Identifier: MIT */
/* kpack ls: print a line, or a JSON object, for each entry. */
#include <stdlib.h>
#include "packer/archives/arch_filter.h"
#include "packer/command.h"
#include "core/base/json.h"
#include "packer/cli/xalloc.h"
#include "core/base/bounds.h"
#include "packer/cli/report.h"

struct ls {
	bool long_form, json;
	struct arch_filter filter;
	struct report_array array;
};

static const struct option_help options[] = {
	{'l', "long", NULL, "also type, ordinal, compressed size and metadata path",
	 OPTION_PLACE(struct ls, long_form)},
	ARCH_FILTER_OPTIONS(struct ls, filter),
	{0, "json", NULL, "print one JSON array of objects",
	 OPTION_PLACE(struct ls, json)},
	{0},
};

const struct command_help cmd_ls_help = {
	"ls",
	"[-l] [--arch LIST [--arch-exact]] [--json] ARCHIVE|DIR...",
	"list the entries of archives",
	options,
	NULL,
};

static void print_line(const struct ls *ls, const struct kp_entry_info *info,
		       const struct kp_meta *meta)
{
	report_span(info->key);
	putchar('\t');
	report_span(info->arch);
	putchar('\t');
	report_number(info->size);
	if (ls->long_form) {
		putchar('\t');
		report_span(info->type);
		putchar('\t');
		report_number(info->ordinal);
		putchar('\t');
		report_number(info->stored);
		putchar('\t');
		report_span(meta->path.size ? meta->path : kp_span_str("-"));
	}
	putchar('\n');
}

/*
 * Print all of an entry's metadata as JSON; null: it has none, or it is damaged.  It is
 * not given to jansson, which has no NULs in names and no integers above 63 bits.
 */
static void print_metadata(struct kp_span map)
{
	struct kp_mp c = kp_mp_over(map);
	struct kp_span text = kp_span_str("null");
	struct kp_json j;

	kp_json_init(&j, KP_JSON_MAX);
	if (map.size) {
		kp_json_value(&j, &c);
		if (kp_json_finish(&j, &text, NULL) &&
		    j.fault == KPACK_ERROR_OUT_OF_MEMORY && j.written < j.limit)
			xalloc_fail(j.size);
	}
	fwrite(text.data, 1, text.size, stdout);
	kp_json_fini(&j);
}

static void print_object(struct ls *ls, const struct kpack_archive *a, size_t entry,
			 const struct kp_entry_info *info, const struct kp_meta *meta)
{
	char *object = report_json_new(
		json_pack("{so so so so sI sI sI so}", "archive",
			  report_json_text(kp_archive_path(a)), "key",
			  report_json_span(info->key), "arch",
			  report_json_span(info->arch), "type",
			  report_json_span(info->type), "ordinal",
			  (json_int_t)info->ordinal, "size", (json_int_t)info->size,
			  "compressed_size", (json_int_t)info->stored, "path",
			  meta->path.size ? report_json_span(meta->path) : json_null()),
		JSON_COMPACT);

	report_array_next(&ls->array);
	object[strlen(object) - 1] = '\0'; /* its brace follows the metadata */
	printf("%s,\"metadata\":", object);
	print_metadata(kp_archive_meta_raw(a, entry));
	putchar('}');
	free(object);
}

static void list_entry(struct ls *ls, const struct kpack_archive *a, size_t entry)
{
	struct kp_entry_info info;
	struct kp_meta meta = {0};

	kp_archive_entry(a, entry, &info);
	if (!arch_filter_match(&ls->filter, info.arch))
		return;
	if (ls->long_form || ls->json)
		kp_archive_meta(a, entry, &meta);
	if (ls->json) {
		print_object(ls, a, entry, &info, &meta);
		return;
	}
	print_line(ls, &info, &meta);
}

static int list_archives(struct ls *ls, int n, char **operands)
{
	struct archives set;
	int status = EXIT_OK;

	archives_open(&set, n, operands);
	if (set.failed)
		status = EXIT_FAULT;
	for (size_t i = 0; i < set.count; i++) {
		size_t count = kp_archive_entry_count(set.items[i]);

		for (size_t e = 0; e < count; e++)
			list_entry(ls, set.items[i], e);
		if (archives_refused(set.items[i], &ls->filter.chosen))
			status = EXIT_FAULT;
	}
	if (ls->json)
		report_array_end(&ls->array);
	arch_filter_warn(&ls->filter, &set);
	archives_close(&set);
	return status;
}

/* Returns an exit status, or -1 to go on. */
static int read_options(struct ls *ls, struct options *o)
{
	int status = arch_filter_read(o, ls, &ls->filter);

	if (status >= 0)
		return status;
	if (optind == o->argc)
		return options_usage(o->help, "an archive or a directory is missing");
	return -1;
}

int cmd_ls(int argc, char **argv)
{
	struct options o = {.help = &cmd_ls_help, .argc = argc, .argv = argv};
	struct ls ls = {0};
	int status = read_options(&ls, &o);

	if (status < 0)
		status = report_finish(list_archives(&ls, argc - optind, argv + optind));
	arch_filter_fini(&ls.filter);
	return status;
}
