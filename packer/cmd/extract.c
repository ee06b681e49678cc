/* SPDX-License-Identifier: MIT */
/*
 * kpack extract: write the entries of archives as files below a directory OUT.
 *
 * The view of core decides which names there are, as for the mount.  Nothing is written
 * outside OUT, whatever names the archives have and whatever is in OUT: no symbolic link
 * in it is followed.  A file gets its name when it is whole.
 */
#include <errno.h>
#include <stdlib.h>
#include "packer/archives/content.h"
#include "packer/archives/arch_filter.h"
#include "packer/cli/xalloc.h"
#include "packer/command.h"
#include "packer/files/below.h"
#include "core/base/file.h"
#include "core/base/bounds.h"
#include "packer/cli/report.h"
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
	OPTION_FORCE_FILES(struct extract, force),
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

/* --- messages and names ----------------------------------------------------------- */

/* The path of NAME in LEVEL below OUT, on the heap. */
static char *path_below(const struct level *level, struct kp_span name)
{
	char *up = level->up ? path_below(level->up, level->name) : NULL;
	char *path = xasprintf("%s%s%.*s", up ? up : "", up ? "/" : "", (int)name.size,
			       (const char *)name.data);

	free(up);
	return path;
}

static void report_fault(struct extract *x, const struct level *level,
			 struct kp_span name, const char *text)
{
	char *below = path_below(level, name);
	char *path = xasprintf("%s/%s", x->out, below);

	report_error(path, "%s", text);
	free(path);
	free(below);
	x->failed = true;
}

/* The path of NAME in LEVEL, which was made; the caller frees it. */
static char *path_in(const struct level *level, struct kp_span name)
{
	return xasprintf("%s/%.*s", level->path, (int)name.size, (const char *)name.data);
}

/* Make LEVEL and those above it.  false: that was reported. */
static bool make_level(struct extract *x, struct level *level)
{
	struct stat st;
	char *path;
	int error = 0;

	if (level->path || level->failed)
		return level->path;
	level->failed = true;
	if (!make_level(x, level->up))
		return false;
	path = path_in(level->up, level->name);
	if (below_mkdir(path, 0777) < 0) {
		error = errno;
		if (below_lstat(path, &st) == 0)
			error = S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
	}
	if (!error) {
		level->path = path;
		return true;
	}
	report_fault(x, level->up, level->name,
		     error == ELOOP || error == ENOTDIR
			     ? "something other than a directory has that name"
			     : strerror(error));
	free(path);
	return false;
}

/* --- one file --------------------------------------------------------------------- */

struct file_sink {
	struct kp_outfile out;
	uint64_t size;
};

static kpack_error_t write_piece(const void *data, size_t size, void *arg,
				 struct kpackx_error *why)
{
	struct file_sink *sink = arg;

	if (kp_outfile_pwrite(&sink->out, sink->size, data, size, why))
		return kp_fail_errno(why, why->sys_errno, "write");
	sink->size += size;
	return KPACK_SUCCESS;
}

static kpack_error_t write_file(const struct extract *x, const char *path,
				const struct kpack_archive *a, size_t entry,
				struct kpackx_error *why)
{
	static const char exists[] = "already exists (--force replaces it)";
	struct file_sink sink = {.out = {.fd = -1, .dir_fd = -1}};
	struct kp_meta meta;
	struct stat st;
	kpack_error_t err;

	/* before decoding, which is work */
	if (!x->force && below_lstat(path, &st) == 0)
		return kp_fail(why, KPACK_ERROR_IO_ERROR, exists);
	err = below_outfile_open(&sink.out, path, 0600, why);
	if (err)
		goto out;
	sink.out.lazy = true;
	sink.out.keep = !x->force;
	err = archive_decode(a, entry, write_piece, &sink, why);
	if (err)
		goto out;
	/* never set-user-ID and the like: an archive is not trusted that far */
	kp_archive_meta(a, entry, &meta);
	if (fchmod(sink.out.fd, (meta.mode ? (meta.mode & 0777) : 0644) & ~x->umask)) {
		err = kp_fail_errno(why, errno, "chmod");
		goto out;
	}
	err = kp_outfile_publish(&sink.out, why);
	if (err && why->sys_errno == EEXIST)
		err = kp_fail(why, KPACK_ERROR_IO_ERROR, exists);
out:
	kp_outfile_close(&sink.out);
	return err;
}

static void extract_file(struct extract *x, struct level *level,
			 const struct kp_view_name *name)
{
	struct kpackx_error why = {0};
	const struct kpack_archive *a;
	size_t entry;
	char *path;

	if (!make_level(x, level))
		return;
	path = path_in(level, name->text);
	a = kp_view_entry(x->view, name->index, &entry);
	if (write_file(x, path, a, entry, &why)) {
		report_fault(x, level, name->text,
			     why.text[0] ? why.text : kpackx_error_name(why.code));
		x->full = why.sys_errno == ENOSPC || why.sys_errno == EDQUOT;
	}
	free(path);
}

/* --- the tree --------------------------------------------------------------------- */

/*
 * Every entry is written once: at its path if it has one, else below toc/.  The paper's legacy
 * paths are second names of files below toc/.  Depth is bounded: a path has at most KP_NAME_MAX
 * bytes.
 */
static void extract_dir(struct extract *x, uint32_t number, struct level *level)
{
	const struct kp_view_dir *dir = kp_view_dir(x->view, number);

	for (uint32_t i = 0; i < dir->count && !x->full; i++) {
		struct kp_view_name name = kp_view_name(x->view, dir->first + i);

		if (name.kind == KP_VIEW_DIR) {
			struct level below = {level, name.text, NULL, false};

			extract_dir(x, name.index, &below);
			free(below.path);
		} else if (name.kind == KP_VIEW_TOC || name.kind == KP_VIEW_PATH) {
			extract_file(x, level, &name);
		}
	}
}

static int extract_entries(struct extract *x, int n, char **operands)
{
	struct kp_view_options select = {.select = &x->filter.chosen};
	struct level top = {.path = (char *)x->out};
	struct kpackx_error why = {0};
	const char *const *conflicts;
	size_t kept, counted;

	archives_open(&x->set, n, operands);
	x->failed = x->set.failed;
	for (size_t i = 0; i < x->set.count; i++)
		x->failed |= archives_refused(x->set.items[i], &x->filter.chosen);
	if (!x->set.count)
		return EXIT_FAULT;
	if (kp_view_new(x->set.items, x->set.count, &select, &x->view, &why)) {
		report_why(NULL, &why);
		return EXIT_FAULT;
	}
	if (below_make_root(x->out, 0777, &why)) {
		report_why(x->out, &why);
		return EXIT_FAULT;
	}
	conflicts = kp_view_conflicts(x->view, &kept, &counted);
	for (size_t i = 0; i < kept; i++)
		report_error(NULL, "%s", conflicts[i]);
	if (counted > kept)
		report_error(NULL, "and %zu names more that cannot be written",
			     counted - kept);
	x->failed |= counted > 0;
	extract_dir(x, 0, &top);
	arch_filter_warn(&x->filter, &x->set);
	return x->failed ? EXIT_FAULT : EXIT_OK;
}

int cmd_extract(int argc, char **argv)
{
	struct options o = {.help = &cmd_extract_help, .argc = argc, .argv = argv};
	struct extract x = {0};
	int status = arch_filter_read(&o, &x, &x.filter);

	if (status < 0 && optind == argc)
		status = options_usage(o.help, "an archive or a directory is missing");
	if (status < 0 && !x.out)
		status = options_usage(o.help, "-C OUT is missing");
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
