/* SPDX-License-Identifier: MIT */
#include "write.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "packer/base/xalloc.h"
#include "packer/files/below.h"
#include "packer/files/copy.h"
#include "databases.h"
#include "packer/pack/archives/inherited_archives.h"
#include "packer/files/leftovers.h"
#include "packer/cli/report.h"
#include "core/archive/naming.h"

/* --- where --------------------------------------------------------------------------- */

/*
 * Append NAME to PARENT, a resolved path of which the end may not exist.  If PARENT is
 * relative, it could not be resolved, and nothing can be made in it.
 */
static char *append_name(const char *parent, const char *name)
{
	const char *slash = strrchr(parent, '/');

	if (!slash || strcmp(name, ".") == 0)
		return xstrdup(parent);
	/* a missing component will be a directory, not a link */
	if (strcmp(name, "..") == 0)
		return slash > parent ? xstrndup(parent, (size_t)(slash - parent))
				      : xstrdup("/");
	return xasprintf("%s/%s", slash[1] ? parent : "", name);
}

/* Resolve PATH, of which the end may not exist. */
static char *resolve_path(const char *path)
{
	char *real = below_real(path), *parent, *copy, *slash;

	if (real || errno != ENOENT || strcmp(path, ".") == 0)
		return real ? real : xstrdup(path);
	copy = xstrdup(path);
	slash = strrchr(copy, '/');
	while (slash && slash > copy && slash[1] == 0) { /* "a/b/" */
		*slash = 0;
		slash = strrchr(copy, '/');
	}
	if (slash)
		*slash = 0;
	parent = resolve_path(!slash ? "." : slash == copy ? "/" : copy);
	real = append_name(parent, slash ? slash + 1 : copy);
	free(parent);
	free(copy);
	return real;
}

/* Whether PATH is the directory DIR or in it. */
static bool is_inside(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	if (strcmp(dir, "/") == 0)
		return true;
	return strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

static kpack_error_t check_trees(const char *in, const char *out,
				 struct kpackx_error *why)
{
	const char *text = NULL;

	if (strcmp(in, out) == 0)
		text = "INPUT and OUTPUT are the same: --in-place converts a tree itself";
	else if (is_inside(out, in))
		text = "OUTPUT is inside INPUT";
	else if (is_inside(in, out))
		text = "INPUT is inside OUTPUT";
	return text ? kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT, "%s", text)
		    : KPACK_SUCCESS;
}

/* Check an INPUT that is a file: it goes to OUTPUT under its own name. */
static kpack_error_t check_file(const char *input, const struct stat *st,
				const char *output, struct kpackx_error *why)
{
	const char *name = strrchr(input, '/');
	char *to = xasprintf("%s/%s", output, name ? name + 1 : input);
	struct stat there;
	bool same = below_stat(to, &there) == 0 && there.st_dev == st->st_dev &&
		    there.st_ino == st->st_ino;

	free(to);
	return same ? kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			      "OUTPUT holds INPUT, which would be replaced")
		    : KPACK_SUCCESS;
}

kpack_error_t output_check(const char *input, const char *output,
			   struct kpackx_error *why)
{
	kpack_error_t err;
	struct stat st;
	char *in, *out;

	if (below_stat(input, &st) < 0)
		return below_fail(why, "cannot look at it");
	if (!S_ISDIR(st.st_mode))
		return check_file(input, &st, output, why);
	in = resolve_path(input);
	out = resolve_path(output);
	err = check_trees(in, out, why);
	free(in);
	free(out);
	return err;
}

kpack_error_t output_check_beside(const char *input, const char *output,
				  struct kpackx_error *why)
{
	char *in = resolve_path(input), *out = resolve_path(output);
	kpack_error_t err = KPACK_SUCCESS;

	if (is_inside(out, in))
		err = kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT, "OUTPUT is %s INPUT",
			      strcmp(in, out) == 0 ? "the same as" : "inside");
	free(in);
	free(out);
	return err;
}

void output_check_mounts(const struct scan *scan, const char *output, size_t *faults)
{
	for (size_t i = 0; i < scan->n_entries; i++) {
		bool fixed;
		char *to;

		if (!S_ISDIR(scan->entries[i].mode))
			continue;
		to = xasprintf("%s/%s", output, scan->entries[i].relative);
		fixed = below_access(to, W_OK) < 0 && errno == EROFS;
		if (fixed)
			report_error(to, "is read-only (a mount?): unmount it first");
		free(to);
		if (fixed) {
			++*faults;
			break;
		}
	}
}

/* --- in the output ------------------------------------------------------------------- */

/* The archives of the root were copied before entries were added to them. */
bool output_is_inherited(const struct scan_entry *e)
{
	size_t n = sizeof(KP_ARCHIVES_DIR) - 1;

	if (!scan_in_archives(e))
		return false;
	if (e->relative[n] == '\0')
		return !S_ISDIR(e->mode);
	return !strchr(e->relative + n + 1, '/') && !S_ISDIR(e->mode) &&
	       kp_is_archive_name(e->relative + n + 1);
}

static char *destination(const struct converter *c, size_t entry)
{
	return xasprintf("%s/%s", c->output, c->scan->entries[entry].relative);
}

/*
 * Making a device needs a privilege, and not every file system has sockets: then leave it
 * out.
 */
static kpack_error_t copy_special(const struct scan_entry *e, const char *to,
				  struct disposition *o, struct kpackx_error *why)
{
	struct kpackx_error fault = {0};
	kpack_error_t err = copy_node(e->path, &e->id, to, &fault);

	if (err && (fault.sys_errno == EPERM || fault.sys_errno == EOPNOTSUPP))
		return disposition_set(o, FATE_LEFT_OUT, fault.text, why);
	if (err && why)
		*why = fault;
	return err;
}

/* Remove what an earlier run copied. */
static kpack_error_t remove_copy(const char *to, struct kpackx_error *why)
{
	if (below_unlink(to) < 0 && errno != ENOENT)
		return below_fail(why, "cannot remove");
	return KPACK_SUCCESS;
}

static kpack_error_t write_entry(const struct converter *c, size_t entry, const char *to,
				 struct kpackx_error *why)
{
	const struct scan_entry *e = &c->scan->entries[entry];
	struct disposition *o = &c->dispositions->items[entry];

	switch (o->fate) {
	case FATE_COPIED:
	case FATE_ALREADY_CONVERTED:
	case FATE_REFUSED:
	case FATE_LEFT_ALONE:
	case FATE_KEPT:
		return copy_same_file(e->path, &e->id, to, why);
	case FATE_SYMLINK:
		return copy_node(e->path, &e->id, to, why);
	case FATE_SPECIAL:
		return copy_special(e, to, o, why);
	case FATE_PACKED:
		return remove_copy(to, why);
	default:
		return KPACK_SUCCESS;
	}
}

static bool is_left_out(enum fate fate)
{
	return fate == FATE_LEFT_OUT || fate == FATE_NOT_WANTED;
}

/* Make a hard link, or a copy where the file system has no hard links. */
static kpack_error_t write_link(const struct converter *c, size_t entry, const char *to,
				struct kpackx_error *why)
{
	const struct scan_entry *e = &c->scan->entries[entry];
	size_t first = e->first;
	struct disposition *o = &c->dispositions->items[entry];
	kpack_error_t err;
	struct stat seen;
	char *from;

	if (o->fate != FATE_LINKED)
		return KPACK_SUCCESS;
	if (is_left_out(c->dispositions->items[first].fate))
		return disposition_set(o, c->dispositions->items[first].fate,
				       c->dispositions->items[first].reason, why);
	if (below_lstat(e->path, &seen) < 0)
		return below_fail(why, e->path);
	if (!file_identity_is(&e->id, &seen))
		return kp_fail(why, KPACK_ERROR_IO_ERROR, "%s: was changed meanwhile",
			       e->path);
	from = destination(c, first);
	err = c->dispositions->items[first].fate == FATE_CONVERTED
		      ? copy_link(from, &seen, to, why)
		      : copy_link_or_seen(from, e->path, &seen, to, why);
	free(from);
	return err;
}

static kpack_error_t write_directory(const struct converter *c, size_t entry,
				     const char *to, struct kpackx_error *why)
{
	return S_ISDIR(c->scan->entries[entry].mode) ? copy_directory(to, why)
						     : KPACK_SUCCESS;
}

static kpack_error_t finish_directory(const struct converter *c, size_t entry,
				      const char *to, struct kpackx_error *why)
{
	const struct scan_entry *e = &c->scan->entries[entry];

	return S_ISDIR(e->mode) ? copy_directory_attributes(e->path, to, why)
				: KPACK_SUCCESS;
}

typedef kpack_error_t write_fn(const struct converter *c, size_t entry, const char *to,
			       struct kpackx_error *why);

static kpack_error_t apply_to_entry(const struct converter *c, size_t entry, write_fn *fn,
				    struct kpackx_error *why)
{
	char *to;
	kpack_error_t err;

	if (output_is_inherited(&c->scan->entries[entry]))
		return KPACK_SUCCESS;
	to = destination(c, entry);
	err = fn(c, entry, to, why);
	if (err)
		kp_fail_prefix(why, err, "%s", to);
	free(to);
	return err;
}

static kpack_error_t for_each_entry(const struct converter *c, write_fn *fn,
				    struct kpackx_error *why)
{
	for (size_t i = 0; i < c->scan->n_entries; i++)
		KP_TRY(apply_to_entry(c, i, fn, why));
	return KPACK_SUCCESS;
}

/*
 * Set the attributes from the innermost directory on, because a directory may then forbid
 * changes in it.
 */
static kpack_error_t finish_directories(const struct converter *c, const char *root,
					struct kpackx_error *why)
{
	struct stat st;

	for (size_t i = c->scan->n_entries; i-- > 0;)
		KP_TRY(apply_to_entry(c, i, finish_directory, why));
	if (below_stat(root, &st) < 0 || !S_ISDIR(st.st_mode))
		return KPACK_SUCCESS;
	return copy_directory_attributes(root, c->output, why);
}

/* If INPUT is a file, OUTPUT is any directory and keeps its attributes. */
static kpack_error_t tidy_directories(const struct converter *c, const char *root,
				      struct kpackx_error *why)
{
	struct stat st;

	if (below_stat(root, &st) < 0 || !S_ISDIR(st.st_mode))
		return KPACK_SUCCESS;
	KP_TRY(leftovers_remove(c->output, "", why));
	for (size_t i = 0; i < c->scan->n_entries; i++) {
		const struct scan_entry *e = &c->scan->entries[i];

		if (S_ISDIR(e->mode) && !output_is_inherited(e))
			KP_TRY(leftovers_remove(c->output, e->relative, why));
	}
	return KPACK_SUCCESS;
}

static kpack_error_t write_locked(const struct converter *c, const char *root, bool tidy,
				  struct kpackx_error *why)
{
	KP_TRY(for_each_entry(c, write_directory, why));
	KP_TRY(converter_run(c, why));
	KP_TRY(for_each_entry(c, write_entry, why));
	KP_TRY(for_each_entry(c, write_link, why));
	if (tidy)
		KP_TRY(tidy_directories(c, root, why));
	return finish_directories(c, root, why);
}

static kpack_error_t write_output(const struct converter *c, const char *root,
				  struct kpackx_error *why)
{
	kpack_error_t err;
	int lock;

	KP_TRY(below_make_root(c->output, 0777, why));
	lock = leftovers_lock(c->output);
	err = write_locked(c, root, lock >= 0, why);
	if (lock >= 0)
		close(lock);
	return err;
}

/* --- in place ------------------------------------------------------------------------ */

static kpack_error_t remove_leftovers(const struct scan *scan, struct kpackx_error *why)
{
	for (size_t i = 0; i < scan->n_entries; i++) {
		const struct scan_entry *e = &scan->entries[i];

		if (e->leftover && below_unlink(e->path) < 0 && errno != ENOENT)
			return kp_fail_errno(why, errno, "%s: cannot remove", e->path);
	}
	return KPACK_SUCCESS;
}

kpack_error_t output_write(const struct converter *c, const char *root,
			   struct kpackx_error *why)
{
	if (c->output)
		return write_output(c, root, why);
	KP_TRY(remove_leftovers(c->scan, why));
	KP_TRY(converter_run(c, why));
	return databases_remove(c->scan, c->dispositions, why);
}
