/* SPDX-License-Identifier: MIT */
#include "write_tree.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "core/base/path.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "tree_databases.h"
#include "inherited_archives.h"
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
	return strcmp(dir, "/") == 0 || kp_path_within(kp_span_str(path), dir);
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
	char *to = xasprintf("%s/%s", output, kp_path_name(input));
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
static bool is_inherited(const struct scan_entry *e)
{
	if (!e->archive || S_ISDIR(e->mode))
		return false;
	return *e->archive == '\0' ||
	       (!strchr(e->archive, '/') && kp_is_archive_name(e->archive));
}

static kpack_error_t copy_entry(struct tree_write *w, const struct scan_entry *e,
				struct disposition *o, struct kpackx_error *why)
{
	char *left;

	KP_TRY(tree_write_file(w, e->relative, e->path, &e->id, &left, why));
	if (left)
		disposition_set(o, FATE_LEFT_OUT, left);
	free(left);
	return KPACK_SUCCESS;
}

static kpack_error_t write_entry(const struct converter *c, size_t entry,
				 struct tree_write *w, struct kpackx_error *why)
{
	const struct scan_entry *e = &c->scan->entries[entry];
	struct disposition *o = &c->dispositions->items[entry];

	switch (o->fate) {
	case FATE_COPIED:
	case FATE_ALREADY_CONVERTED:
	case FATE_REFUSED:
	case FATE_LEFT_ALONE:
	case FATE_KEPT:
	case FATE_SYMLINK:
	case FATE_SPECIAL:
		return copy_entry(w, e, o, why);
	case FATE_PACKED:
	case FATE_REMOVED:
		return tree_write_remove(w, e->relative, why);
	default:
		return KPACK_SUCCESS;
	}
}

static bool is_left_out(enum fate fate)
{
	return fate == FATE_LEFT_OUT || fate == FATE_NOT_WANTED;
}

static kpack_error_t write_link(const struct converter *c, size_t entry,
				struct tree_write *w, struct kpackx_error *why)
{
	const struct scan_entry *e = &c->scan->entries[entry];
	const struct disposition *first = &c->dispositions->items[e->first];
	struct disposition *o = &c->dispositions->items[entry];

	if (o->fate != FATE_LINKED)
		return KPACK_SUCCESS;
	if (is_left_out(first->fate)) {
		disposition_set(o, first->fate, first->reason);
		return KPACK_SUCCESS;
	}
	return tree_write_link(w, e->relative, c->scan->entries[e->first].relative,
			       first->fate == FATE_CONVERTED ? NULL : e->path, &e->id,
			       why);
}

static kpack_error_t write_directory(const struct converter *c, size_t entry,
				     struct tree_write *w, struct kpackx_error *why)
{
	const struct scan_entry *e = &c->scan->entries[entry];

	return S_ISDIR(e->mode) ? tree_write_directory(w, e->relative, e->path, why)
				: KPACK_SUCCESS;
}

typedef kpack_error_t write_fn(const struct converter *c, size_t entry,
			       struct tree_write *w, struct kpackx_error *why);

static kpack_error_t for_each_entry(const struct converter *c, write_fn *fn,
				    struct tree_write *w, struct kpackx_error *why)
{
	for (size_t i = 0; i < c->scan->n_entries; i++)
		if (!is_inherited(&c->scan->entries[i]))
			KP_TRY(fn(c, i, w, why));
	return KPACK_SUCCESS;
}

/* If INPUT is a file, OUTPUT is any directory and keeps its attributes. */
static kpack_error_t write_root(const char *root, struct tree_write *w,
				struct kpackx_error *why)
{
	struct stat st;

	if (below_stat(root, &st) < 0)
		return below_fail(why, "%s: cannot look at it", root);
	if (!S_ISDIR(st.st_mode))
		return below_make_root(w->root, 0777, why);
	KP_TRY(tree_write_root(w, why));
	return tree_write_directory(w, "", root, why);
}

static kpack_error_t write_output(const struct converter *c, const char *root,
				  struct tree_write *w, struct kpackx_error *why)
{
	KP_TRY(write_root(root, w, why));
	if (!w->staged && w->lock < 0)
		KP_TRY(tree_write_lock(w, why));
	KP_TRY(for_each_entry(c, write_directory, w, why));
	KP_TRY(converter_run(c, why));
	KP_TRY(for_each_entry(c, write_entry, w, why));
	return for_each_entry(c, write_link, w, why);
}

/* --- in place ------------------------------------------------------------------------ */

/* A path of a file, another path of which is a leftover; SIZE_MAX: none that is unchanged. */
static size_t find_link(const struct scan *scan, const struct scan_entry *leftover)
{
	struct stat st;

	for (size_t i = 0; i < scan->n_entries && leftover->id.nlink > 1; i++) {
		const struct scan_entry *e = &scan->entries[i];

		if (!e->leftover && S_ISREG(e->mode) && e->id.ino == leftover->id.ino &&
		    e->id.dev == leftover->id.dev && below_lstat(e->path, &st) == 0 &&
		    file_identity_is(&e->id, &st))
			return i;
	}
	return SIZE_MAX;
}

/* The file with the path LINK lost a link, which changes its ctime: it is still the same. */
static void accept_unlinked(struct scan *scan, size_t link)
{
	struct scan_entry *entries = scan->entries;
	struct stat st;

	if (link == SIZE_MAX || below_lstat(entries[link].path, &st) < 0 ||
	    !file_identity_is_named(&entries[link].id, &st))
		return;
	for (size_t i = 0; i < scan->n_entries; i++) {
		if (entries[i].id.ino != st.st_ino || entries[i].id.dev != st.st_dev)
			continue;
		entries[i].id.ctime = st.st_ctim;
		entries[i].id.nlink = st.st_nlink;
		if (entries[i].input)
			entries[i].input->st = st;
	}
}

static kpack_error_t remove_leftovers(struct scan *scan, struct kpackx_error *why)
{
	for (size_t i = 0; i < scan->n_entries; i++) {
		const struct scan_entry *e = &scan->entries[i];
		size_t link;

		if (!e->leftover)
			continue;
		link = find_link(scan, e);
		if (below_unlink(e->path) < 0 && errno != ENOENT)
			return below_fail(why, "%s: cannot remove", e->path);
		accept_unlinked(scan, link);
	}
	return KPACK_SUCCESS;
}

kpack_error_t output_write(const struct converter *c, const char *root,
			   struct tree_write *w, struct kpackx_error *why)
{
	if (c->output)
		return write_output(c, root, w, why);
	KP_TRY(remove_leftovers(c->scan, why));
	/* first what makes room */
	KP_TRY(databases_remove(c->scan, c->dispositions, why));
	return converter_run(c, why);
}
