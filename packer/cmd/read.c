/* SPDX-License-Identifier: MIT */
/*
 * Reading archives: kpack ls prints a line, or a JSON object, for each entry; kpack info describes
 * an archive in numbers; kpack cat writes the decoded bytes of one entry, and kpack extract those
 * of all as files below a directory.
 *
 * What is in doubt is not passed on.  To a stream go only bytes that were compared with the
 * archive's hash before, because a reader may act on them; a file gets its name when it is whole.
 * extract writes nothing outside its directory, whatever names the archives have and whatever is
 * there already: no symbolic link in it is followed.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include "core/archive/entry.h"
#include "core/base/bounds.h"
#include "core/base/json.h"
#include "core/base/order.h"
#include "core/base/sink.h"
#include "core/base/text.h"
#include "core/view/view.h"
#include "packer/archives/arch_filter.h"
#include "packer/archives/content.h"
#include "packer/command.h"
#include "packer/files/below.h"
#include "packer/files/target.h"

/* --- kpack ls ---------------------------------------------------------------------- */

struct ls {
	bool long_form, json;
	struct arch_filter filter;
};

static const struct option_help ls_options[] = {
	OPTION_SWITCH('l', "long",
		      "also type, ordinal, compressed size and metadata path", struct ls,
		      long_form),
	ARCH_FILTER_OPTIONS(struct ls, filter),
	OPTION_JSON_ARRAY(struct ls, json),
	{0},
};

const struct command_help cmd_ls_help = {
	"ls",
	"[-l] [--arch LIST [--arch-exact]] [--json] ARCHIVE|DIR...",
	"list the entries of archives",
	ls_options,
	NULL,
};

struct listed {
	const char *archive;
	struct kp_entry_info info;
	struct kp_span path;
};

static const struct row ls_rows[] = {
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
static void print_entry_json(struct report_array *array, const struct listed *entry,
			     struct kp_span map)
{
	KP_AUTO_FREE char *object =
		report_json_new(rows_object(ROWS(ls_rows), entry), JSON_COMPACT);
	struct kp_span text = kp_span_str("null");
	struct kp_mp c = kp_mp_over(map);
	struct kp_json j = {.limit = KP_JSON_MAX};

	report_array_next(array);
	object[strlen(object) - 1] = '\0'; /* its brace follows the metadata */
	printf("%s,\"metadata\":", object);
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

/* Entries come in the order of the archive; of a million, each is printed and forgotten. */
int cmd_ls(int argc, char **argv)
{
	static struct ls ls;
	int n = options_parse(&cmd_ls_help, argc, &argv, &ls), status;
	int where = ls.long_form ? ROW_LINE | ROW_LONG : ROW_LINE;
	struct report_array array = {0};
	struct archives set = {0};

	arch_filter_check(&ls.filter, &cmd_ls_help);
	if (n == 0)
		options_usage(&cmd_ls_help, "an archive or a directory is missing");
	archives_open(&set, n, argv);
	status = set.failed ? EXIT_FAULT : EXIT_OK;
	for (size_t i = 0; i < set.count; i++) {
		const struct kpack_archive *a = set.items[i];
		size_t count = kp_archive_entry_count(a);
		struct listed entry = {.archive = kp_archive_path(a)};
		struct kp_meta meta;

		for (size_t e = 0; e < count; e++) {
			kp_archive_entry(a, e, &entry.info);
			if (!arch_filter_match(&ls.filter, entry.info.arch))
				continue;
			/* metadata are decoded only where they are printed */
			if (ls.long_form || ls.json) {
				kp_archive_meta(a, e, &meta);
				entry.path = meta.path;
			}
			if (ls.json)
				print_entry_json(&array, &entry,
						 kp_archive_meta_raw(a, e));
			else
				rows_line(ROWS(ls_rows), &entry, where, '\t');
		}
		if (archives_refused(a, &ls.filter.chosen))
			status = EXIT_FAULT;
	}
	if (ls.json)
		report_array_end(&array);
	arch_filter_warn(&ls.filter, &set);
	archives_close(&set);
	return report_finish(status);
}

/* --- kpack info -------------------------------------------------------------------- */

static const struct option_help info_options[] = {
	{0, "json", NULL, "print one JSON array of objects", OPTION_FLAG_ALONE},
	{0},
};

const struct command_help cmd_info_help = {
	"info",
	"[--json] ARCHIVE|DIR...",
	"print what archives are and hold",
	info_options,
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
	uint64_t entries;
	uint64_t decoded, stored; /* bytes of entries, and of frames */
	double ratio;
	uint32_t frames, shared; /* entries that share the bytes of an earlier one */
	bool frame_index;
	size_t faults;
};

/* In lists the architectures follow the rows before "entries". */
enum { N_ROWS_ABOVE = 6 };

static const struct row info_rows[] = {
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

/*
 * Describe A: count its entries, in all and for each of its few architectures, and print that as an
 * object of ARRAY, or without one as a list.  What is declared and present are lists in JSON, and
 * lines between the rows in text.
 */
static kpack_error_t describe_archive(const struct kpack_archive *a,
				      struct report_array *array,
				      struct kpackx_error *why)
{
	struct info info = {.path = kp_archive_path(a),
			    .scheme = kp_archive_scheme(a),
			    .group = kp_archive_group(a),
			    .family = kp_archive_toc(a)->family,
			    .entries = kp_archive_entry_count(a),
			    .frames = kp_archive_ordinal_count(a),
			    .frame_index = kp_archive_toc(a)->frame_index.data != NULL};
	size_t n_declared = kp_archive_arch_count(a), n = 0, cap = 0, kept;
	const struct kp_fault *faults = kp_archive_faults(a, &kept, &info.faults);
	KP_AUTO_FREE struct arch_count *arches = NULL; /* sorted bytewise */
	KP_AUTO_FREE bool *seen = NULL;                /* by ordinal */

	KP_TRY(kp_new(&seen, (size_t)info.frames + 1, "the frames", why));
	for (size_t i = 0; i < info.entries; i++) {
		struct kp_entry_info e;
		size_t at = 0;

		kp_archive_entry(a, i, &e);
		info.decoded += e.size;
		/* a frame that several entries share counts once, as it does on the disk */
		info.shared += seen[e.ordinal];
		info.stored += seen[e.ordinal] ? 0 : e.stored;
		seen[e.ordinal] = true;
		while (at < n && !kp_span_eq(arches[at].arch, e.arch))
			at++;
		if (at == n) {
			xgrow(&arches, n, &cap, sizeof(*arches));
			arches[n++] = (struct arch_count){.arch = e.arch};
		}
		arches[at].entries++;
		arches[at].size += e.size;
	}
	kp_sort(arches, n, KP_BY_SPAN(struct arch_count, arch));
	info.ratio = info.stored ? (double)info.decoded / (double)info.stored : 1;
	if (array) {
		info.declared = json_array();
		for (size_t i = 0; i < n_declared; i++)
			json_array_append_new(info.declared,
					      report_json_text(kp_archive_arch(a, i)));
		info.present = rows_array(ROWS(arch_rows), arches, n, sizeof(*arches));
		info.fault_list = json_array();
		for (size_t i = 0; i < kept; i++)
			json_array_append_new(
				info.fault_list,
				json_pack("{so sb}", "text",
					  report_json_message(faults[i].text), "refused",
					  (int)faults[i].refused));
		report_array_add(array, rows_object(ROWS(info_rows), &info));
		return KPACK_SUCCESS;
	}
	report_text(info.path);
	putchar('\n');
	rows_list(info_rows, N_ROWS_ABOVE, &info);
	printf("  %-14s", "declared");
	for (size_t i = 0; i < n_declared; i++) {
		fputs(i ? " " : "", stdout);
		report_text(kp_archive_arch(a, i));
	}
	puts(n_declared ? "" : "-");
	for (size_t i = 0; i < n; i++) {
		printf("  %-14s", i ? "" : "present");
		report_span(arches[i].arch);
		printf(": %" PRIu64 " entries, %" PRIu64 " bytes\n", arches[i].entries,
		       arches[i].size);
	}
	rows_list(info_rows + N_ROWS_ABOVE, KP_COUNT(info_rows) - N_ROWS_ABOVE, &info);
	return KPACK_SUCCESS;
}

/* An archive with refused entries is described as far as it can be read, and is a fault. */
int cmd_info(int argc, char **argv)
{
	bool json = false;
	int n = options_parse(&cmd_info_help, argc, &argv, &json), status;
	struct report_array array = {0};
	struct kpackx_error why = {0};
	struct archives set = {0};

	if (n == 0)
		options_usage(&cmd_info_help, "an archive is missing");
	archives_open(&set, n, argv);
	status = set.failed ? EXIT_FAULT : EXIT_OK;
	for (size_t i = 0; i < set.count; i++) {
		if (i && !json)
			putchar('\n');
		if (describe_archive(set.items[i], json ? &array : NULL, &why))
			status = report_why(kp_archive_path(set.items[i]), &why);
		if (archives_refused(set.items[i], NULL))
			status = EXIT_FAULT;
	}
	if (json)
		report_array_end(&array);
	archives_close(&set);
	return report_finish(status);
}

/* --- kpack cat --------------------------------------------------------------------- */

static const struct option_help cat_options[] = {
	{'o', "output", "FILE", "write to FILE, which appears when whole",
	 OPTION_WORD_ALONE},
	{0},
};

const struct command_help cmd_cat_help = {
	"cat",
	"[-o FILE] ARCHIVE|DIR KEY ARCH",
	"write one decoded entry to standard output",
	cat_options,
	"A KEY without '#' that is not found is also looked up as 'KEY#0'.",
};

/* As `write` of struct kp_sink. */
static kpack_error_t put_stdout(void *arg, const void *data, size_t size,
				struct kpackx_error *why)
{
	(void)arg;
	if (fwrite(data, 1, size, stdout) != size)
		return kp_fail_errno(why, errno, "standard output: write");
	return KPACK_SUCCESS;
}

/* Write the entry to the file OUTPUT, or to standard output if that is NULL or a device. */
static kpack_error_t write_entry(const struct kpack_archive *a, size_t entry,
				 const char *output, struct kpackx_error *why)
{
	struct kp_outfile out = {.fd = -1, .dir_fd = -1};
	struct kp_sink sink = {.write = put_stdout};
	bool stream = true;
	kpack_error_t err = output ? output_open(output, &stream, why) : KPACK_SUCCESS;

	if (!err && stream) {
		/* what is written cannot be taken back */
		KP_TRY(kp_entry_check_parts(a, entry, UINT64_MAX, why));
		return archive_decode(a, entry, &sink, why);
	}
	if (!err)
		err = below_outfile_open(&out, output, 0666, why);
	if (err)
		return kp_fail_prefix(why, err, "%s", output);
	sink.out = &out;
	err = archive_decode(a, entry, &sink, why);
	if (!err && kp_outfile_publish(&out, why))
		err = kp_fail_prefix(why, why->code, "%s", output);
	kp_outfile_close(&out);
	return err;
}

/*
 * The status is the entry's alone: bytes of an intact entry are not to be ignored because
 * another one, which is only reported, is not.
 */
int cmd_cat(int argc, char **argv)
{
	const char *output = NULL;
	int n = options_parse(&cmd_cat_help, argc, &argv, &output), status = EXIT_FAULT;
	const struct kpack_archive *a = NULL;
	KP_AUTO_FREE char *first = NULL;
	struct kpackx_error why = {0};
	struct archives set = {0};
	size_t entry;

	if (n != 3)
		options_usage(&cmd_cat_help, "ARCHIVE, KEY and ARCH are needed");
	archives_open(&set, 1, argv);
	/* the key as given wins in every archive before "#0" is tried in any */
	first = xasprintf("%s#0", argv[1]);
	for (int k = 0; k < (strchr(argv[1], '#') ? 1 : 2) && !a; k++)
		for (size_t i = 0; i < set.count && !a; i++)
			if (kp_archive_find(set.items[i],
					    kp_span_str(k ? first : argv[1]),
					    kp_span_str(argv[2]), &entry))
				a = set.items[i];
	if (a && !write_entry(a, entry, output, &why)) {
		archives_refused(a, NULL);
		status = EXIT_OK;
	} else if (a) {
		if (!ferror(stdout)) /* otherwise report_finish reports it */
			report_why(kp_archive_path(a), &why);
	} else if (set.count) {
		char k[400], t[200];

		report_error(argv[0], "no entry %s for %s",
			     kp_text_escape(kp_span_str(argv[1]), k, sizeof(k)),
			     kp_text_escape(kp_span_str(argv[2]), t, sizeof(t)));
		for (size_t i = 0; i < set.count; i++)
			archives_refused(set.items[i], NULL);
	}
	archives_close(&set);
	return report_finish(status);
}

/* --- kpack extract ----------------------------------------------------------------- */

struct extract {
	struct arch_filter filter;
	struct kp_view *view;
	const char *out;
	bool force;
	mode_t umask;
	bool failed;
	bool full; /* the disk is full: stop */
};

static const struct option_help extract_options[] = {
	ARCH_FILTER_OPTIONS(struct extract, filter),
	{'C', "directory", "OUT", "write below OUT, which is made",
	 OPTION_PLACE(struct extract, out)},
	OPTION_FORCE_FILES(struct extract, force),
	{0},
};

const struct command_help cmd_extract_help = {
	"extract",
	"[--arch LIST [--arch-exact]] [--force] ARCHIVE|DIR... -C OUT",
	"write the entries as files below a directory",
	extract_options,
	"Entries with a path are written there, other entries below toc/, as in a mount.",
};

/* A directory of the view on the way down. */
struct level {
	struct level *up; /* NULL: OUT itself */
	char *path;
	enum { NOT_MADE, MADE, FAILED } state;
};

/* Make LEVEL and those above it, for its first file.  false: that failed, and was reported. */
static bool make_level(struct extract *x, struct level *level)
{
	struct stat st;
	int error;

	if (level->state != NOT_MADE)
		return level->state == MADE;
	level->state = FAILED;
	if (!make_level(x, level->up))
		return false;
	error = below_mkdir(level->path, 0777) < 0 ? errno : 0;
	if (error && below_lstat(level->path, &st) == 0)
		error = S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
	if (!error) {
		level->state = MADE;
		return true;
	}
	report_error(level->path, "%s",
		     error == ELOOP || error == ENOTDIR
			     ? "something other than a directory has that name"
			     : strerror(error));
	x->failed = true;
	return false;
}

/* Write the entry to the file PATH, whose directory exists. */
static kpack_error_t extract_file(const struct extract *x, const char *path,
				  const struct kpack_archive *a, size_t entry,
				  struct kpackx_error *why)
{
	static const char exists[] = "already exists (--force replaces it)";
	struct kp_outfile out = {.fd = -1, .dir_fd = -1};
	struct kp_sink sink = {.out = &out};
	struct kp_meta meta;
	struct stat st;
	kpack_error_t err;

	/* before decoding, which is work */
	if (!x->force && below_lstat(path, &st) == 0)
		return kp_fail(why, KPACK_ERROR_IO_ERROR, exists);
	err = below_outfile_open(&out, path, 0600, why);
	if (err)
		goto out;
	out.lazy = true;
	out.keep = !x->force;
	err = archive_decode(a, entry, &sink, why);
	if (err)
		goto out;
	/* never set-user-ID and the like: an archive is not trusted that far */
	kp_archive_meta(a, entry, &meta);
	if (fchmod(out.fd, (meta.mode ? (meta.mode & 0777) : 0644) & ~x->umask)) {
		err = kp_fail_errno(why, errno, "chmod");
		goto out;
	}
	err = kp_outfile_publish(&out, why);
	if (err && why->sys_errno == EEXIST)
		err = kp_fail(why, KPACK_ERROR_IO_ERROR, exists);
out:
	kp_outfile_close(&out);
	return err;
}

/*
 * Extract directory NUMBER of the view.  Every entry is written once: at its path if it has one,
 * else below toc/.  The paper's legacy paths are second names of files below toc/.  Depth is
 * bounded: a path has at most KP_NAME_MAX bytes.
 */
static void extract_dir(struct extract *x, uint32_t number, struct level *level)
{
	const struct kp_view_dir *dir = kp_view_dir(x->view, number);

	for (uint32_t i = 0; i < dir->count && !x->full; i++) {
		struct kp_view_name name = kp_view_name(x->view, dir->first + i);
		KP_AUTO_FREE char *path =
			xasprintf("%s/%.*s", level->path, (int)name.text.size,
				  (const char *)name.text.data);
		const struct kpack_archive *a;
		struct kpackx_error why = {0};
		size_t entry;

		if (name.kind == KP_VIEW_DIR) {
			struct level below = {level, path, NOT_MADE};

			extract_dir(x, name.index, &below);
		} else if ((name.kind == KP_VIEW_TOC || name.kind == KP_VIEW_PATH) &&
			   make_level(x, level)) {
			a = kp_view_entry(x->view, name.index, &entry);
			if (extract_file(x, path, a, entry, &why)) {
				report_why(path, &why);
				x->failed = true;
				x->full = why.sys_errno == ENOSPC ||
					  why.sys_errno == EDQUOT;
			}
		}
	}
}

/* The view of core decides which names there are, as for the mount. */
int cmd_extract(int argc, char **argv)
{
	static struct extract x;
	int n = options_parse(&cmd_extract_help, argc, &argv, &x);
	struct kp_view_options select = {.select = &x.filter.chosen};
	struct level top = {.state = MADE};
	struct kp_entry_info info;
	uint64_t bytes = 0;
	struct kpackx_error why = {0};
	const char *const *conflicts;
	struct archives set = {0};
	size_t kept, counted;

	arch_filter_check(&x.filter, &cmd_extract_help);
	if (n == 0)
		options_usage(&cmd_extract_help, "an archive or a directory is missing");
	if (!x.out)
		options_usage(&cmd_extract_help, "-C OUT is missing");
	/* files are made 0600, and get their mode, with the umask, when they are whole */
	x.umask = umask(0);
	umask(x.umask);
	archives_open(&set, n, argv);
	x.failed = set.failed;
	for (size_t i = 0; i < set.count; i++)
		x.failed |= archives_refused(set.items[i], &x.filter.chosen);
	if (!set.count) {
		x.failed = true;
	} else if (kp_view_new(set.items, set.count, &select, &x.view, &why)) {
		report_why(NULL, &why);
		x.failed = true;
	} else if (below_make_root(x.out, 0777, &why)) {
		report_why(x.out, &why);
		x.failed = true;
	} else {
		/* what is not written because another entry or directory has its name */
		conflicts = kp_view_conflicts(x.view, &kept, &counted);
		for (size_t i = 0; i < kept; i++)
			report_error(NULL, "%s", conflicts[i]);
		if (counted > kept)
			report_error(NULL, "and %zu more that cannot be written",
				     counted - kept);
		x.failed |= counted > 0;
		for (size_t i = 0; i < set.count; i++)
			for (size_t k = kp_archive_entry_count(set.items[i]); k--;) {
				kp_archive_entry(set.items[i], k, &info);
				if (kp_choice_has(&x.filter.chosen, info.arch))
					bytes += info.size;
			}
		progress_begin("extracting", bytes, true);
		top.path = xstrdup(x.out);
		extract_dir(&x, 0, &top);
		progress_end();
		free(top.path);
		arch_filter_warn(&x.filter, &set);
	}
	kp_view_free(x.view);
	archives_close(&set);
	return report_finish(x.failed ? EXIT_FAULT : EXIT_OK);
}
