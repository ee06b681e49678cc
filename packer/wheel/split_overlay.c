/* SPDX-License-Identifier: MIT */
#include "split_overlay.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/scan/scan.h"
#include "core/base/text.h"
#include "core/target/target.h"

struct overlay {
	const struct wheel_in *wheel;
	const char *tree, *moved;
	const struct library_set *libraries;
};

/* The size of PATH's first component in bytes. */
static size_t top_size(const char *path)
{
	return strcspn(path, "/");
}

static bool ends_with(const char *path, size_t n, const char *text)
{
	size_t size = strlen(text);

	return n >= size && memcmp(path + n - size, text, size) == 0;
}

/* True for *.data, whose files go elsewhere when the wheel is installed. */
static bool is_data(const char *path)
{
	return ends_with(path, top_size(path), ".data");
}

static bool is_special(const char *path)
{
	return is_data(path) || ends_with(path, top_size(path), ".dist-info");
}

/* True if entry I goes into a device wheel or is converted. */
static bool is_device(const struct scan *scan, const size_t *objects, size_t i)
{
	const struct scan_entry *e = &scan->entries[i];
	const struct library_object *o;

	if (e->input && !e->database)
		return true;
	if (!e->database || objects[i] == SIZE_MAX)
		return false;
	o = scan->found.objects[objects[i]];
	return o && strcmp(o->arches[0], KP_ARCH_GENERIC) != 0;
}

/* Per entry of SCAN the index of its file, or SIZE_MAX; the caller frees it. */
static size_t *number_files(const struct scan *scan)
{
	size_t *files = xmalloc(scan->n_entries * sizeof(*files));

	for (size_t i = 0; i < scan->n_entries; i++)
		files[i] = SIZE_MAX;
	for (size_t i = 0; scan->found.objects && i < scan->files.count; i++)
		files[scan->file_entries[i]] = i;
	return files;
}

typedef kpack_error_t take_device(void *arg, const char *path, struct kpackx_error *why);

/* Call TAKE with every path in the tree that has device code. */
static kpack_error_t visit_device_files(const struct overlay *o, take_device *take,
					void *arg, struct kpackx_error *why)
{
	struct scan scan = {0};
	size_t *files = NULL;
	kpack_error_t err =
		scan_open(o->tree, "", SCAN_CONVERTIBLE, o->libraries, false, &scan, why);

	if (!err)
		files = number_files(&scan);
	for (size_t i = 0; !err && i < scan.n_entries; i++)
		if (is_device(&scan, files, i))
			err = take(arg, scan.entries[i].relative, why);
	free(files);
	scan_close(&scan);
	return err;
}

/* --- a given overlay --------------------------------------------------------------- */

static kpack_error_t move_overlay(const struct overlay *o, const char *overlay, bool back,
				  struct kpackx_error *why)
{
	char *inside = xasprintf("%s/%s", o->tree, overlay);
	kpack_error_t err = KPACK_SUCCESS;

	if (below_rename(back ? o->moved : inside, back ? inside : o->moved, 0) < 0)
		err = below_fail(why, "%s: cannot be moved", inside);
	free(inside);
	return err;
}

static kpack_error_t refuse_outside(void *arg, const char *path, struct kpackx_error *why)
{
	return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
		       "%s: its device code is outside of the overlay root %s", path,
		       (const char *)arg);
}

static bool has_directory(const struct wheel_in *w, const char *dir)
{
	size_t count, n = strlen(dir);
	const struct wheel_member *members = wheel_in_members(w, &count);

	for (size_t i = 0; i < count; i++)
		if (strncmp(members[i].path, dir, n) == 0 && members[i].path[n] == '/')
			return true;
	return false;
}

static kpack_error_t take_given(const struct overlay *o, const char *given,
				char **overlay, struct kpackx_error *why)
{
	*overlay = xstrdup(strcmp(given, ".") == 0 ? "" : given);
	while (**overlay && (*overlay)[strlen(*overlay) - 1] == '/')
		(*overlay)[strlen(*overlay) - 1] = '\0';
	if (!**overlay && strcmp(given, ".") == 0)
		return KPACK_SUCCESS;
	if (!kp_path_ok(kp_span_str(*overlay)) || !has_directory(o->wheel, *overlay))
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "Overlay root '%s' is not a directory of the wheel",
			       given);
	if (is_special(*overlay))
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "Overlay root '%s' is a directory that installers move",
			       given);
	KP_TRY(move_overlay(o, *overlay, false, why));
	return visit_device_files(o, refuse_outside, *overlay, why);
}

/* --- finding the overlay ----------------------------------------------------------- */

/*
 * The top-level directory with the most bytes; "" if there is none.  The caller frees it.
 */
static char *find_biggest(const struct wheel_in *w)
{
	const char *best = "", *at = "";
	uint64_t most = 0, bytes = 0;
	size_t count;
	const struct wheel_member *members = wheel_in_members(w, &count);

	for (size_t i = 0; i < count; i++) {
		const char *path = members[i].path;
		size_t n = top_size(path);

		if (path[n] != '/' || is_special(path))
			continue;
		if (strncmp(path, at, n + 1) != 0) {
			at = path;
			bytes = 0;
		}
		bytes += members[i].size + 1;
		if (bytes > most) {
			most = bytes;
			best = at;
		}
	}
	return xstrndup(best, top_size(best));
}

static kpack_error_t count_outside(void *arg, const char *path, struct kpackx_error *why)
{
	size_t *count = arg;

	(void)path, (void)why;
	++*count;
	return KPACK_SUCCESS;
}

/* Top-level directories with device code: the only one, or "" for several. */
struct tops {
	char *only;
};

static kpack_error_t add_top(void *arg, const char *path, struct kpackx_error *why)
{
	struct tops *tops = arg;
	size_t n = path[top_size(path)] ? top_size(path) : 0;

	if (is_special(path))
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "%s: device code in a directory that installers move",
			       path);
	if (!tops->only)
		tops->only = xstrndup(path, n);
	else if (strlen(tops->only) != n || strncmp(tops->only, path, n) != 0)
		tops->only[0] = '\0';
	return KPACK_SUCCESS;
}

static kpack_error_t find_tops(const struct overlay *o, char **overlay,
			       struct kpackx_error *why)
{
	struct tops tops = {0};
	kpack_error_t err = visit_device_files(o, add_top, &tops, why);

	*overlay = tops.only ? tops.only : xstrdup("");
	return err;
}

/*
 * Try the biggest directory first: usually it has all device code, and one scan is
 * enough.
 */
static kpack_error_t find_overlay(const struct overlay *o, char **overlay,
				  struct kpackx_error *why)
{
	size_t outside = 0;

	*overlay = find_biggest(o->wheel);
	if (**overlay) {
		KP_TRY(move_overlay(o, *overlay, false, why));
		KP_TRY(visit_device_files(o, count_outside, &outside, why));
		if (outside == 0)
			return KPACK_SUCCESS;
		KP_TRY(move_overlay(o, *overlay, true, why));
	}
	free(*overlay);
	*overlay = NULL;
	KP_TRY(find_tops(o, overlay, why));
	return **overlay ? move_overlay(o, *overlay, false, why) : KPACK_SUCCESS;
}

kpack_error_t wheel_overlay_find(const struct wheel_in *w, const char *tree,
				 const char *given, const struct library_set *libraries,
				 const char *moved, char **overlay,
				 struct kpackx_error *why)
{
	const struct overlay o = {w, tree, moved, libraries};

	*overlay = NULL;
	return given ? take_given(&o, given, overlay, why)
		     : find_overlay(&o, overlay, why);
}
