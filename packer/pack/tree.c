/* SPDX-License-Identifier: MIT */
/*
 * Writing a tree: where it may be, and what is copied, linked and removed beside the files that
 * are written anew (converter.c).
 *
 * In another tree: directories first, for everything needs them; the converted files; then the
 * others; then further links, which are what became of their first path; the attributes of
 * directories last, because writing into one changes its time (tree_write_finish).
 *
 * In place: first what killed runs left, then files of databases, which makes room; converted
 * files last.  Only here something of the user's goes, so each file is looked at once more before:
 * what was changed since the scan is in no archive, and is a fault.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include "core/archive/naming.h"
#include "core/base/alloc.h"
#include "core/base/path.h"
#include "packer/cli/process.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "run.h"

/* --- where --------------------------------------------------------------------------- */

/* Resolve PATH, of which the end may not exist. */
static char *resolve_path(const char *path)
{
	char *real = below_real(path), *slash;
	KP_AUTO_FREE char *copy = NULL, *parent = NULL;
	const char *name, *end;

	if (real || errno != ENOENT || strcmp(path, ".") == 0)
		return real ? real : xstrdup(path);
	copy = xstrdup(path);
	while ((slash = strrchr(copy, '/')) && slash > copy && !slash[1])
		*slash = 0; /* "a/b/" */
	name = slash ? slash + 1 : copy;
	if (slash)
		*slash = 0;
	parent = resolve_path(!slash ? "." : slash == copy ? "/" : copy);
	end = strrchr(parent, '/');
	/* a relative parent could not be resolved, and nothing can be made in it */
	if (!end || strcmp(name, ".") == 0)
		return xstrdup(parent);
	/* a missing component will be a directory, not a link */
	if (strcmp(name, "..") == 0)
		return end > parent ? xstrndup(parent, (size_t)(end - parent))
				    : xstrdup("/");
	return xasprintf("%s/%s", end[1] ? parent : "", name);
}

/* Whether PATH is the directory DIR or in it. */
static bool is_inside(const char *path, const char *dir)
{
	return strcmp(dir, "/") == 0 || kp_path_within(kp_span_str(path), dir);
}

kpack_error_t output_check(const char *input, const char *output,
			   struct kpackx_error *why)
{
	KP_AUTO_FREE char *in = NULL, *out = NULL;
	const char *text = NULL;
	struct stat st, there;

	if (below_stat(input, &st) < 0)
		return below_fail(why, "cannot look at it");
	if (S_ISDIR(st.st_mode)) {
		in = resolve_path(input);
		out = resolve_path(output);
		if (strcmp(in, out) == 0)
			text = "INPUT and OUTPUT are the same: --in-place converts a "
			       "tree itself";
		else if (is_inside(out, in))
			text = "OUTPUT is inside INPUT";
		else if (is_inside(in, out))
			text = "INPUT is inside OUTPUT";
	} else { /* a file goes to OUTPUT under its own name */
		out = xasprintf("%s/%s", output, kp_path_name(input));
		if (below_stat(out, &there) == 0 && there.st_dev == st.st_dev &&
		    there.st_ino == st.st_ino)
			text = "OUTPUT holds INPUT, which would be replaced";
	}
	return text ? kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT, "%s", text)
		    : KPACK_SUCCESS;
}

kpack_error_t output_check_beside(const char *input, const char *output,
				  struct kpackx_error *why)
{
	KP_AUTO_FREE char *in = resolve_path(input), *out = resolve_path(output);

	return is_inside(out, in)
		       ? kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT, "OUTPUT is %s INPUT",
				 strcmp(in, out) == 0 ? "the same as" : "inside")
		       : KPACK_SUCCESS;
}

void output_check_mounts(const struct scan *scan, const char *output, size_t *faults)
{
	for (size_t i = 0; i < scan->n_entries; i++) {
		KP_AUTO_FREE char *to = NULL;

		if (!S_ISDIR(scan->entries[i].mode))
			continue;
		to = xasprintf("%s/%s", output, scan->entries[i].relative);
		if (below_access(to, W_OK) < 0 && errno == EROFS) {
			KP_AUTO_FREE char *tree = shell_word(output);

			report_error(to,
				     "is read-only (a mount?): unmount it first, a "
				     "kpackfs with: kpackfs --in-place --undo %s",
				     tree);
			++*faults;
			break;
		}
	}
}

/* --- in the output ------------------------------------------------------------------- */

/* The archives of the root were copied before entries were added to them. */
static bool is_inherited(const struct scan_entry *e)
{
	return e->archive && !S_ISDIR(e->mode) &&
	       (!*e->archive ||
		(!strchr(e->archive, '/') && kp_is_archive_name(e->archive)));
}

/* --- in place ------------------------------------------------------------------------ */

static bool is_to_remove(const struct disposition *o)
{
	return o->fate == FATE_PACKED || o->fate == FATE_REMOVED;
}

static bool same_directory(const char *a, const char *b)
{
	size_t n = (size_t)(kp_path_name(a) - a);

	return n == (size_t)(kp_path_name(b) - b) && strncmp(a, b, n) == 0;
}

void databases_check(const struct scan *scan, const struct dispositions *dispositions,
		     size_t *faults)
{
	uid_t self = geteuid();
	const char *last = NULL;
	bool removable = false;
	struct stat dir = {0}, st;

	for (size_t i = 0; i < scan->n_entries; i++) {
		const char *path = scan->entries[i].path;
		struct kpackx_error fault = {0};

		if (!is_to_remove(&dispositions->items[i]))
			continue;
		if (!last || !same_directory(last, path)) {
			KP_AUTO_FREE char *name = directory_of(path);

			removable = below_access(name, W_OK | X_OK) == 0 &&
				    below_lstat(name, &dir) == 0;
			if (!removable)
				below_fail(
					&fault, "cannot be removed from its directory%s",
					errno == EROFS ? ", which is read-only (a mount?)"
						       : "");
		}
		last = path;
		/* from a sticky directory only the owner of either may remove the file */
		if (removable && below_lstat(path, &st) == 0 && dir.st_mode & S_ISVTX &&
		    self != 0 && self != dir.st_uid && self != st.st_uid)
			kp_fail(&fault, KPACK_ERROR_IO_ERROR,
				"belongs to user %u: only that user can remove it",
				(unsigned)st.st_uid);
		if (fault.code) {
			report_why(path, &fault);
			++*faults;
		}
	}
}

static kpack_error_t flush_directory(const char *file, struct kpackx_error *why)
{
	KP_AUTO_FREE char *dir = directory_of(file);
	KP_AUTO_CLOSE int fd = below_open(dir, O_RDONLY | O_DIRECTORY, 0);

	return fd < 0 || kp_flush_dir(fd) ? below_fail(why, "%s: cannot flush", dir)
					  : KPACK_SUCCESS;
}

/* In place: remove what killed runs left, then files of databases, which makes room. */
static kpack_error_t make_room(const struct converter *c, struct kpackx_error *why)
{
	struct scan_entry *entries = c->scan->entries;
	size_t n = c->scan->n_entries;
	const char *last = NULL;
	struct stat st;

	for (const struct scan_entry *left = entries; left < entries + n; left++) {
		struct scan_entry *link = NULL;

		if (!left->leftover)
			continue;
		/* if it is a further link of a file of the tree, that one changes, and is still the same */
		for (size_t i = 0; i < n && left->id.nlink > 1 && !link; i++)
			if (!entries[i].leftover && S_ISREG(entries[i].mode) &&
			    entries[i].id.ino == left->id.ino &&
			    entries[i].id.dev == left->id.dev &&
			    below_lstat(entries[i].path, &st) == 0 &&
			    file_identity_is(&entries[i].id, &st))
				link = &entries[i];
		if (below_unlink(left->path) < 0 && errno != ENOENT)
			return below_fail(why, "%s: cannot remove", left->path);
		if (!link || below_lstat(link->path, &st) < 0 ||
		    !file_identity_is_named(&link->id, &st))
			continue;
		for (size_t i = 0; i < n; i++) {
			if (entries[i].id.ino != st.st_ino ||
			    entries[i].id.dev != st.st_dev)
				continue;
			entries[i].id.ctime = st.st_ctim;
			entries[i].id.nlink = st.st_nlink;
			if (entries[i].input)
				entries[i].input->st = st;
		}
	}
	for (size_t i = 0; i < n; i++) {
		const struct scan_entry *e = &entries[i];

		if (!is_to_remove(&c->dispositions->items[i]))
			continue;
		if (last && !same_directory(last, e->path))
			KP_TRY(flush_directory(last, why));
		last = e->path;
		if (below_lstat(e->path, &st) < 0)
			return kp_fail_prefix(why, below_fail(why, "cannot stat"), "%s",
					      e->path);
		/* no archive has what was changed since the scan */
		if (!file_identity_is_named(&e->id, &st))
			return kp_fail(why, KPACK_ERROR_IO_ERROR,
				       "%s: was changed meanwhile", e->path);
		if (below_unlink(e->path) < 0)
			return kp_fail_prefix(why, below_fail(why, "cannot remove"), "%s",
					      e->path);
	}
	return last ? flush_directory(last, why) : KPACK_SUCCESS;
}

kpack_error_t output_write(const struct converter *c, const char *root,
			   struct tree_write *w, struct kpackx_error *why)
{
	const struct scan_entry *entries = c->scan->entries;
	struct disposition *items = c->dispositions->items;
	size_t n = c->scan->n_entries;
	struct stat st;
	char *left;

	if (!c->output) {
		KP_TRY(make_room(c, why));
		return converter_run(c, why);
	}
	if (below_stat(root, &st) < 0)
		return below_fail(why, "%s: cannot look at it", root);
	if (S_ISDIR(st.st_mode)) {
		KP_TRY(tree_write_root(w, why));
		KP_TRY(tree_write_directory(w, "", root, why));
	} else { /* OUTPUT is any directory and keeps its attributes */
		KP_TRY(below_make_root(w->root, 0777, why));
	}
	if (!w->staged && w->lock < 0)
		KP_TRY(leftovers_lock(w->root, &w->lock, why));
	for (size_t i = 0; i < n; i++)
		if (S_ISDIR(entries[i].mode))
			KP_TRY(tree_write_directory(w, entries[i].relative,
						    entries[i].path, why));
	KP_TRY(converter_run(c, why));
	for (size_t i = 0; i < n; i++) {
		const struct scan_entry *e = &entries[i];

		if (is_inherited(e))
			continue;
		switch (items[i].fate) {
		case FATE_COPIED:
		case FATE_ALREADY_CONVERTED:
		case FATE_REFUSED:
		case FATE_LEFT_ALONE:
		case FATE_KEPT:
		case FATE_SYMLINK:
		case FATE_SPECIAL:
			KP_TRY(tree_write_file(w, e->relative, e->path, &e->id, &left,
					       why));
			if (left)
				disposition_set(&items[i], FATE_LEFT_OUT, left);
			free(left);
			break;
		case FATE_PACKED: /* an earlier run may have copied it */
		case FATE_REMOVED:
			KP_TRY(tree_write_remove(w, e->relative, why));
			break;
		default:
			break;
		}
	}
	/* a further path is what became of the first one */
	for (size_t i = 0; i < n; i++) {
		const struct scan_entry *e = &entries[i];
		const struct disposition *first = &items[e->first];

		if (is_inherited(e) || items[i].fate != FATE_LINKED)
			continue;
		if (first->fate == FATE_LEFT_OUT || first->fate == FATE_NOT_WANTED)
			disposition_set(&items[i], first->fate, first->reason);
		else
			KP_TRY(tree_write_link(w, e->relative, entries[e->first].relative,
					       first->fate == FATE_CONVERTED ? NULL
									     : e->path,
					       &e->id, why));
	}
	return KPACK_SUCCESS;
}
