/* SPDX-License-Identifier: MIT */
/*
 * kpack extract: write the entries of archives as files below a directory OUT.
 *
 * The view of core decides which names there are, as for the mount.  Nothing is written
 * outside OUT, whatever names the archives have and whatever is in OUT: every directory
 * is opened from its parent without following symbolic links.  A file gets its name when
 * it is whole.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>
#include "packer/archives/operands.h"
#include "packer/base/xalloc.h"
#include "packer/command.h"
#include "core/base/file.h"
#include "core/base/bounds.h"
#include "packer/cli/report.h"
#include "core/base/text.h"
#include "core/view/view.h"

enum { OPT_ARCH, OPT_DIRECTORY, OPT_FORCE };

static const struct option_help options[] = {
	[OPT_ARCH] = {0, "arch", "LIST", "only these targets, separated by commas"},
	[OPT_DIRECTORY] = {'C', "directory", "OUT", "write below OUT, which is made"},
	[OPT_FORCE] = {'f', "force", NULL, "replace files that exist"},
	{0},
};

const struct command_help cmd_extract_help = {
	"extract",
	"[--arch LIST] [--force] ARCHIVE|DIR... -C OUT",
	"write the entries as files below a directory",
	options,
	"Entries with a path are written there, others below toc/, as in a mount.",
};

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

/* A directory of the view on the way down; it is made and opened for its first file. */
struct level {
	struct level *up; /* NULL: OUT itself */
	struct kp_span name;
	int fd; /* -1: not opened */
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

/* Copy a name of the view, which has at most 255 bytes, to a C string. */
static const char *c_name(struct kp_span s, char out[256])
{
	size_t n = s.size < 255 ? s.size : 255;

	memcpy(out, s.data, n);
	out[n] = '\0';
	return out;
}

static const char *directory_fault(int error)
{
	if (error == ELOOP || error == ENOTDIR)
		return "something other than a directory has that name";
	return strerror(error);
}

static int level_open(struct extract *x, struct level *level)
{
	char name[256];
	int up;

	if (level->fd >= 0 || level->failed || !level->up)
		return level->fd;
	up = level_open(x, level->up);
	level->failed = true;
	if (up < 0)
		return -1;
	c_name(level->name, name);
	if (mkdirat(up, name, 0777) == 0 || errno == EEXIST)
		level->fd =
			openat(up, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	level->failed = level->fd < 0;
	if (level->failed)
		report_fault(x, level->up, level->name, "%s", directory_fault(errno));
	return level->fd;
}

/* --- one file --------------------------------------------------------------------- */

struct file_sink {
	int fd;
};

static kpack_error_t write_all(const void *data, size_t size, void *arg,
			       struct kpackx_error *why)
{
	const struct file_sink *sink = arg;
	const uint8_t *p = data;

	while (size) {
		ssize_t n = write(sink->fd, p, size < 1 << 30 ? size : 1 << 30);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return kp_fail_errno(why, errno, "write");
		p += n;
		size -= (size_t)n;
	}
	return KPACK_SUCCESS;
}

/* Open a new file in DIR under an unused temporary name. */
static int open_temporary(int dir, char name[KP_TEMP_NAME_SIZE])
{
	int fd = -1;

	for (int tries = 0; tries < 100; tries++) {
		if (!kp_temp_name(name))
			return -1;
		fd = openat(dir, name,
			    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd >= 0 || errno != EEXIST)
			return fd;
	}
	return fd;
}

/* Give the temporary file its name; unless forced, only if that does not exist. */
static int give_name(const struct extract *x, int dir, const char *temporary,
		     const char *name)
{
	struct stat st;

	if (x->force)
		return renameat(dir, temporary, dir, name);
	if (renameat2(dir, temporary, dir, name, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -1;
	/* a file system without NOREPLACE: look first */
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		errno = EEXIST;
		return -1;
	}
	return renameat(dir, temporary, dir, name);
}

static mode_t file_mode(const struct extract *x, const struct kpack_archive *a,
			size_t entry)
{
	struct kp_meta meta;

	kp_archive_meta(a, entry, &meta);
	/* never set-user-ID and the like: an archive is not trusted that far */
	return (meta.mode ? (meta.mode & 0777) : 0644) & ~x->umask;
}

static kpack_error_t fill_file(const struct extract *x, int fd,
			       const struct kpack_archive *a, size_t entry,
			       struct kpackx_error *why)
{
	struct file_sink sink = {fd};

	KP_TRY(archive_decode(a, entry, write_all, &sink, why));
	if (fchmod(fd, file_mode(x, a, entry)) != 0)
		return kp_fail_errno(why, errno, "chmod");
	return KPACK_SUCCESS;
}

static kpack_error_t write_file(const struct extract *x, int dir, const char *name,
				const struct kpack_archive *a, size_t entry,
				struct kpackx_error *why)
{
	kpack_error_t err;
	char temporary[KP_TEMP_NAME_SIZE];
	int fd = open_temporary(dir, temporary);

	if (fd < 0)
		return kp_fail_errno(why, errno, "create");
	err = fill_file(x, fd, a, entry, why);
	/* a network file system reports a full disk at close */
	if (close(fd) != 0 && !err)
		err = kp_fail_errno(why, errno, "close");
	if (!err && give_name(x, dir, temporary, name) != 0)
		err = errno == EEXIST ? kp_fail(why, KPACK_ERROR_IO_ERROR,
						"exists already (--force replaces it)")
				      : kp_fail_errno(why, errno, "rename");
	if (err)
		unlinkat(dir, temporary, 0);
	return err;
}

static bool name_exists(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static void extract_file(struct extract *x, struct level *level,
			 const struct kp_view_name *name)
{
	struct kpackx_error why = {0};
	struct kpack_archive *a;
	int dir = level_open(x, level);
	char text[256];
	size_t entry;

	if (dir < 0)
		return;
	c_name(name->text, text);
	if (!x->force && name_exists(dir, text)) { /* before decoding */
		report_fault(x, level, name->text,
			     "exists already (--force replaces it)");
		return;
	}
	a = kp_view_entry(x->view, name->index, &entry);
	if (write_file(x, dir, text, a, entry, &why) == KPACK_SUCCESS)
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
			struct level below = {level, name.text, -1, false};

			extract_dir(x, name.index, &below);
			if (below.fd >= 0)
				close(below.fd);
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
	struct kp_view_options select = {.select = x->filter.targets,
					 .n_select = x->filter.count};
	struct kpackx_error why = {0};

	if (kp_view_new(x->set.items, x->set.count, &select, &x->view, &why)) {
		report_why(NULL, &why);
		return false;
	}
	return true;
}

static int open_out(const struct extract *x)
{
	struct kpackx_error why = {0};
	int fd;

	if (kp_mkdirs(x->out, 0777, &why)) {
		report_why(x->out, &why);
		return -1;
	}
	fd = open(x->out, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		report_error(x->out, "cannot open: %s", strerror(errno));
	return fd;
}

static int extract_entries(struct extract *x, int n, char **operands)
{
	struct level top = {.fd = -1};

	archives_open(&x->set, n, operands);
	x->failed = x->set.failed;
	for (size_t i = 0; i < x->set.count; i++)
		x->failed |= archives_refused(x->set.items[i]);
	top.fd = build_view(x) ? open_out(x) : -1;
	if (top.fd < 0)
		return EXIT_FAULT;
	report_conflicts(x);
	extract_dir(x, 0, &top);
	close(top.fd);
	arch_filter_warn(&x->filter, &x->set);
	return x->failed ? EXIT_FAULT : EXIT_OK;
}

/* Returns an exit status, or -1 to go on. */
static int read_options(struct extract *x, struct options *o)
{
	struct kpackx_error why = {0};
	int row;

	while ((row = options_next(o)) >= 0) {
		if (row == OPT_DIRECTORY)
			x->out = o->arg;
		else if (row == OPT_FORCE)
			x->force = true;
		else if (!arch_filter_add(&x->filter, o->arg, &why))
			return options_usage(o->help, "--arch: %s", why.text);
	}
	if (row == OPTIONS_STOP)
		return o->status;
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
