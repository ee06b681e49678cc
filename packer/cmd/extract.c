/* SPDX-License-Identifier: MIT */
/*
 * kpack extract: write the entries of archives as files below a directory OUT.
 *
 * The view of core decides which names there are, as for the mount.  Nothing is written
 * outside OUT, whatever names the archives have and whatever is in OUT: no symbolic link
 * in it is followed.  A file gets its name when it is whole.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include "packer/archives/content.h"
#include "packer/archives/arch_filter.h"
#include "packer/cli/xalloc.h"
#include "packer/command.h"
#include "packer/files/below.h"
#include "core/base/file.h"
#include "core/base/bounds.h"
#include "packer/cli/report.h"
#include "core/base/text.h"
#include "core/view/view.h"

struct extract {
	struct archives set;
	struct arch_filter filter;
	struct kp_view *view;
	const char *out;
	bool force;
	mode_t umask;
	bool failed;
	bool full; /* the disk is full: stop */
};

static const struct option_help options[] = {
	ARCH_FILTER_OPTIONS(struct extract, filter),
	{'C', "directory", "OUT", "write below OUT, which is made",
	 OPTION_PLACE(struct extract, out)},
	{'f', "force", NULL, "replace files that exist",
	 OPTION_PLACE(struct extract, force)},
	{0},
};

const struct command_help cmd_extract_help = {
	"extract",
	"[--arch LIST [--arch-exact]] [--force] ARCHIVE|DIR... -C OUT",
	"write the entries as files below a directory",
	options,
	"Entries with a path are written there, other entries below toc/, as in a mount.",
};

/* A directory of the view on the way down; it is made for its first file. */
struct level {
	struct level *up; /* NULL: OUT itself */
	struct kp_span name;
	char *path; /* NULL: not made */
	bool failed;
};

/* --- messages --------------------------------------------------------------------- */

static char *escape_text(struct kp_span s)
{
	char *text = kp_text_escape_new(s);

	if (!text)
		xalloc_fail(0);
	return text;
}

/* Returns the path of NAME in LEVEL, escaped. */
static char *path_text(const struct level *level, struct kp_span name)
{
	char *part = escape_text(name), *path, *up;

	if (!level->up)
		return part;
	up = path_text(level->up, level->name);
	path = xasprintf("%s/%s", up, part);
	free(up);
	free(part);
	return path;
}

static void __attribute__((format(printf, 4, 5)))
report_fault(struct extract *x, const struct level *level, struct kp_span name,
	     const char *fmt, ...)
{
	char *out = escape_text(kp_span_str(x->out));
	char *path = path_text(level, name), text[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* the path is already escaped, so it is given as text */
	report_error(NULL, "%s/%s: %s", out, path, text);
	free(out);
	free(path);
	x->failed = true;
}

/* --- directories ------------------------------------------------------------------ */

static const char *directory_fault(int error)
{
	if (error == ELOOP || error == ENOTDIR)
		return "something other than a directory has that name";
	return strerror(error);
}

/* The path of NAME in LEVEL, which was made; the caller frees it. */
static char *path_in(const struct level *level, struct kp_span name)
{
	return xasprintf("%s/%.*s", level->path, (int)name.size, (const char *)name.data);
}

static int make_directory(const char *path)
{
	struct stat st;
	int error;

	if (below_mkdir(path, 0777) == 0)
		return 0;
	error = errno;
	if (below_lstat(path, &st) == 0) {
		if (S_ISDIR(st.st_mode))
			return 0;
		error = ENOTDIR;
	}
	errno = error;
	return -1;
}

/* Make LEVEL and those above it.  false: that was reported. */
static bool level_make(struct extract *x, struct level *level)
{
	char *path;

	if (level->path || level->failed)
		return level->path;
	level->failed = true;
	if (!level_make(x, level->up))
		return false;
	path = path_in(level->up, level->name);
	if (make_directory(path) == 0) {
		level->path = path;
		return true;
	}
	report_fault(x, level->up, level->name, "%s", directory_fault(errno));
	free(path);
	return false;
}

/* --- one file --------------------------------------------------------------------- */

struct file_sink {
	struct kp_outfile out;
	uint64_t size;
};

static kpack_error_t write_all(const void *data, size_t size, void *arg,
			       struct kpackx_error *why)
{
	struct file_sink *sink = arg;

	if (kp_outfile_pwrite(&sink->out, sink->size, data, size, why))
		return kp_fail_errno(why, why->sys_errno, "write");
	sink->size += size;
	return KPACK_SUCCESS;
}

static mode_t file_mode(const struct extract *x, const struct kpack_archive *a,
			size_t entry)
{
	struct kp_meta meta;

	kp_archive_meta(a, entry, &meta);
	/* never set-user-ID and the like: an archive is not trusted that far */
	return (meta.mode ? (meta.mode & 0777) : 0644) & ~x->umask;
}

static kpack_error_t fail_exists(struct kpackx_error *why)
{
	return kp_fail(why, KPACK_ERROR_IO_ERROR, "already exists (--force replaces it)");
}

static kpack_error_t fill_file(const struct extract *x, struct file_sink *sink,
			       const struct kpack_archive *a, size_t entry,
			       struct kpackx_error *why)
{
	kpack_error_t err;

	sink->out.lazy = true;
	sink->out.keep = !x->force;
	KP_TRY(archive_decode(a, entry, write_all, sink, why));
	if (fchmod(sink->out.fd, file_mode(x, a, entry)) != 0)
		return kp_fail_errno(why, errno, "chmod");
	err = kp_outfile_publish(&sink->out, why);
	return err && why->sys_errno == EEXIST ? fail_exists(why) : err;
}

static kpack_error_t write_file(const struct extract *x, const char *path,
				const struct kpack_archive *a, size_t entry,
				struct kpackx_error *why)
{
	struct file_sink sink = {.out = {.fd = -1, .dir_fd = -1}};
	struct stat st;
	kpack_error_t err;

	/* before decoding, which is work */
	if (!x->force && below_lstat(path, &st) == 0)
		return fail_exists(why);
	err = below_outfile_open(&sink.out, path, 0600, why);
	if (!err)
		err = fill_file(x, &sink, a, entry, why);
	kp_outfile_close(&sink.out);
	return err;
}

static void extract_file(struct extract *x, struct level *level,
			 const struct kp_view_name *name)
{
	struct kpackx_error why = {0};
	struct kpack_archive *a;
	kpack_error_t err;
	size_t entry;
	char *path;

	if (!level_make(x, level))
		return;
	path = path_in(level, name->text);
	a = kp_view_entry(x->view, name->index, &entry);
	err = write_file(x, path, a, entry, &why);
	free(path);
	if (!err)
		return;
	report_fault(x, level, name->text, "%s",
		     why.text[0] ? why.text : kpackx_error_name(why.code));
	x->full = why.sys_errno == ENOSPC || why.sys_errno == EDQUOT;
}

/* --- the tree --------------------------------------------------------------------- */

/*
 * Whether a name is extracted.  Every entry is written once: at its path if it has one,
 * else below toc/.  The paper's legacy paths are second names of files below toc/.
 */
static bool is_wanted(enum kp_view_kind kind)
{
	return kind == KP_VIEW_TOC || kind == KP_VIEW_PATH;
}

/* Depth is bounded: a path has at most KP_NAME_MAX bytes. */
static void extract_dir(struct extract *x, uint32_t number, struct level *level)
{
	const struct kp_view_dir *dir = kp_view_dir(x->view, number);

	for (uint32_t i = 0; i < dir->count && !x->full; i++) {
		struct kp_view_name name = kp_view_name(x->view, dir->first + i);

		if (name.kind == KP_VIEW_DIR) {
			struct level below = {level, name.text, NULL, false};

			extract_dir(x, name.index, &below);
			free(below.path);
		} else if (is_wanted(name.kind)) {
			extract_file(x, level, &name);
		}
	}
}

static void report_conflicts(struct extract *x)
{
	size_t kept, counted;
	const char *const *conflicts = kp_view_conflicts(x->view, &kept, &counted);

	for (size_t i = 0; i < kept; i++)
		report_error(NULL, "%s", conflicts[i]);
	if (counted > kept)
		report_error(NULL, "and %zu names more that cannot be written",
			     counted - kept);
	if (counted)
		x->failed = true;
}

static bool build_view(struct extract *x)
{
	struct kp_view_options select = {.select = &x->filter.chosen};
	struct kpackx_error why = {0};

	if (kp_view_new(x->set.items, x->set.count, &select, &x->view, &why)) {
		report_why(NULL, &why);
		return false;
	}
	return true;
}

static bool make_out(const struct extract *x)
{
	struct kpackx_error why = {0};

	if (!below_make_root(x->out, 0777, &why))
		return true;
	report_why(x->out, &why);
	return false;
}

static int extract_entries(struct extract *x, int n, char **operands)
{
	struct level top = {.path = (char *)x->out};

	archives_open(&x->set, n, operands);
	x->failed = x->set.failed;
	for (size_t i = 0; i < x->set.count; i++)
		x->failed |= archives_refused(x->set.items[i], &x->filter.chosen);
	if (!x->set.count || !build_view(x) || !make_out(x))
		return EXIT_FAULT;
	report_conflicts(x);
	extract_dir(x, 0, &top);
	arch_filter_warn(&x->filter, &x->set);
	return x->failed ? EXIT_FAULT : EXIT_OK;
}

/* Returns an exit status, or -1 to go on. */
static int read_options(struct extract *x, struct options *o)
{
	int status = arch_filter_read(o, x, &x->filter);

	if (status >= 0)
		return status;
	if (optind == o->argc)
		return options_usage(o->help, "an archive or a directory is missing");
	if (!x->out)
		return options_usage(o->help, "-C OUT is missing");
	return -1;
}

int cmd_extract(int argc, char **argv)
{
	struct options o = {.help = &cmd_extract_help, .argc = argc, .argv = argv};
	struct extract x = {0};
	int status = read_options(&x, &o);

	if (status < 0) {
		x.umask = umask(0);
		umask(x.umask);
		status = report_finish(extract_entries(&x, argc - optind, argv + optind));
	}
	kp_view_free(x.view);
	archives_close(&x.set);
	arch_filter_fini(&x.filter);
	return status;
}
