/* SPDX-License-Identifier: MIT */
/*
 * kpack ls: print a line, or a JSON object, for each entry, in the order of the archive.  There
 * can be a million: each is printed and forgotten.
 */
#include <stdlib.h>
#include "core/base/bounds.h"
#include "core/base/json.h"
#include "packer/archives/arch_filter.h"
#include "packer/cli/report.h"
#include "packer/cli/rows.h"
#include "packer/cli/xalloc.h"
#include "packer/command.h"

struct ls {
	bool long_form, json;
	struct arch_filter filter;
};

static const struct option_help options[] = {
	{'l', "long", NULL, "also type, ordinal, compressed size and metadata path",
	 OPTION_PLACE(struct ls, long_form)},
	ARCH_FILTER_OPTIONS(struct ls, filter),
	OPTION_JSON_ARRAY(struct ls, json),
	{0},
};

const struct command_help cmd_ls_help = {
	"ls",
	"[-l] [--arch LIST [--arch-exact]] [--json] ARCHIVE|DIR...",
	"list the entries of archives",
	options,
	NULL,
};

struct listed {
	const char *archive;
	struct kp_entry_info info;
	struct kp_span path;
};

static const struct row rows[] = {
	ROW("archive", ROW_JSON, struct listed, archive),
	ROW("key", ROW_LINE | ROW_JSON, struct listed, info.key),
	ROW("arch", ROW_LINE | ROW_JSON, struct listed, info.arch),
	ROW("size", ROW_LINE, struct listed, info.size),
	ROW("type", ROW_LONG | ROW_JSON, struct listed, info.type),
	ROW("ordinal", ROW_LONG | ROW_JSON, struct listed, info.ordinal),
	ROW("size", ROW_JSON, struct listed, info.size),
	ROW("compressed_size", ROW_LONG | ROW_JSON, struct listed, info.stored),
	ROW("path", ROW_LONG | ROW_JSON | ROW_NONE, struct listed, path),
};

/*
 * Print an entry's object with all of its metadata MAP; null: it has none, or they are damaged.
 * They are not given to jansson, which has no NULs in names and no integers above 63 bits.
 */
static void print_object(struct report_array *array, const struct listed *entry,
			 struct kp_span map)
{
	char *object =
		report_json_new(rows_object(rows, KP_COUNT(rows), entry), JSON_COMPACT);
	struct kp_span text = kp_span_str("null");
	struct kp_mp c = kp_mp_over(map);
	struct kp_json j;

	report_array_next(array);
	object[strlen(object) - 1] = '\0'; /* its brace follows the metadata */
	printf("%s,\"metadata\":", object);
	free(object);
	kp_json_init(&j, KP_JSON_MAX);
	if (map.size) {
		kp_json_value(&j, &c);
		if (kp_json_finish(&j, &text, NULL) &&
		    j.fault == KPACK_ERROR_OUT_OF_MEMORY && j.written < j.limit)
			xalloc_fail(j.size);
	}
	fwrite(text.data, 1, text.size, stdout);
	kp_json_fini(&j);
	putchar('}');
}

static int list_archives(struct ls *ls, int n, char **operands)
{
	int where = ls->long_form ? ROW_LINE | ROW_LONG : ROW_LINE;
	struct report_array array = {0};
	struct archives set;
	int status;

	archives_open(&set, n, operands);
	status = set.failed ? EXIT_FAULT : EXIT_OK;
	for (size_t i = 0; i < set.count; i++) {
		const struct kpack_archive *a = set.items[i];
		size_t count = kp_archive_entry_count(a);
		struct listed entry = {.archive = kp_archive_path(a)};
		struct kp_meta meta;

		for (size_t e = 0; e < count; e++) {
			kp_archive_entry(a, e, &entry.info);
			if (!arch_filter_match(&ls->filter, entry.info.arch))
				continue;
			if (ls->long_form || ls->json) {
				kp_archive_meta(a, e, &meta);
				entry.path = meta.path;
			}
			if (ls->json)
				print_object(&array, &entry, kp_archive_meta_raw(a, e));
			else
				rows_line(rows, KP_COUNT(rows), &entry, where, '\t');
		}
		if (archives_refused(a, &ls->filter.chosen))
			status = EXIT_FAULT;
	}
	if (ls->json)
		report_array_end(&array);
	arch_filter_warn(&ls->filter, &set);
	archives_close(&set);
	return status;
}

int cmd_ls(int argc, char **argv)
{
	struct options o = {.help = &cmd_ls_help, .argc = argc, .argv = argv};
	struct ls ls = {0};
	int status = arch_filter_read(&o, &ls, &ls.filter);

	if (status < 0)
		status = optind == argc
				 ? options_usage(o.help,
						 "an archive or a directory is missing")
				 : report_finish(list_archives(&ls, argc - optind,
							       argv + optind));
	arch_filter_fini(&ls.filter);
	return status;
}
