/* SPDX-License-Identifier: MIT */
#include "split_earlier.h"
#include <stdlib.h>
#include <string.h>
#include "core/base/text.h"
#include "packer/cli/xalloc.h"
#include "packer/cli/report.h"
#include "packer/files/below.h"
#include "packer/files/tree_list.h"
#include "wheel_in.h"
#include "metadata_text.h"

/*
 * What only a file of that kind that was written here has: the host wheel's extra, which
 * a fat wheel may not have, or the name of the program.
 */
static const struct {
	const char *file, *text;
} marks[] = {
	[WHEEL_FILE_DEVICE] = {"WHEEL", "\nGenerator: kpack "},
	[WHEEL_FILE_HOST_VARIANT] = {"METADATA", "\nProvides-Extra: device-all"},
	[WHEEL_FILE_HOST] = {"METADATA", "\nProvides-Extra: device-all"},
};

struct looker {
	enum wheel_file_kind kind;
	const struct wheel_in *now; /* NULL: not written yet */
	char *marked;               /* the path in OLD of the file with the mark */
	char *strange;              /* the first path that NOW has not */
};

static void look_at(struct looker *l, const char *path)
{
	const char *slash = strchr(path, '/');
	struct kp_span top = {(const uint8_t *)path, slash ? (size_t)(slash - path) : 0};
	size_t member;

	if (!l->marked && kp_span_ends(top, ".dist-info") &&
	    strcmp(slash + 1, marks[l->kind].file) == 0)
		l->marked = xstrdup(path);
	if (l->now && !l->strange && !wheel_in_find(l->now, path, &member))
		l->strange = xstrdup(path);
}

/* Look at the members of the wheel OLD, and read the file with the mark. */
static kpack_error_t look_into_file(struct looker *l, const char *old, char **text,
				    struct kpackx_error *why)
{
	struct wheel_reader *reader = NULL;
	struct wheel_in *in = NULL;
	kpack_error_t err = wheel_in_open(old, &in, why);
	const struct wheel_member *members;
	size_t n, member, size;

	if (err)
		return err;
	members = wheel_in_members(in, &n);
	for (size_t i = 0; i < n; i++)
		if (!members[i].directory)
			look_at(l, members[i].path);
	if (l->marked && wheel_in_find(in, l->marked, &member)) {
		err = wheel_reader_new(in, &reader, why);
		if (!err)
			err = wheel_reader_text(reader, member, METADATA_TEXT_MAX, text,
						&size, why);
	}
	wheel_reader_free(reader);
	wheel_in_close(in);
	return err;
}

static kpack_error_t load_text(const char *path, char **text, struct kpackx_error *why)
{
	uint8_t *data;
	size_t size;

	KP_TRY(below_file_load(path, METADATA_TEXT_MAX, "the file", &data, &size, why));
	*text = xstrndup((const char *)data, size);
	free(data);
	return KPACK_SUCCESS;
}

/* As look_into_file, for an unpacked wheel. */
static kpack_error_t look_into_directory(struct looker *l, const char *old, char **text,
					 struct kpackx_error *why)
{
	struct tree_list *list = tree_list_open(old);
	kpack_error_t err = KPACK_SUCCESS;
	struct tree_item e;
	char *path;

	while (tree_list_next(list, &e))
		if (e.kind == TREE_OTHER || e.kind == TREE_FAULT)
			look_at(l, e.rest);
	tree_list_close(list);
	if (!l->marked)
		return KPACK_SUCCESS;
	path = xasprintf("%s/%s", old, l->marked);
	err = load_text(path, text, why);
	free(path);
	return err;
}

kpack_error_t wheel_earlier_check(const char *old, enum wheel_file_kind kind,
				  const char *now, struct kpackx_error *why)
{
	struct looker l = {.kind = kind};
	struct wheel_in *in = NULL;
	char *text = NULL;
	kpack_error_t err = KPACK_SUCCESS;
	struct stat st;

	if (now)
		KP_TRY(wheel_in_open(now, &in, why));
	l.now = in;
	if (below_lstat(old, &st) == 0 && S_ISDIR(st.st_mode))
		err = look_into_directory(&l, old, &text, NULL);
	else
		err = look_into_file(&l, old, &text, NULL);
	if (err || !text || !strstr(text, marks[kind].text))
		err = kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			      "%s: already exists, and is no output of split-wheel; "
			      "--force replaces it",
			      old);
	else if (l.strange)
		err = kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			      "%s: already exists, and %s in it is not from this input; "
			      "--force replaces it",
			      old, l.strange);
	wheel_in_close(in);
	free(l.marked);
	free(l.strange);
	free(text);
	return err;
}

/* --- other targets ----------------------------------------------------------------- */

/* Whether NAME, with or without suffix, is a device wheel's of the host wheel of W. */
static bool is_device_wheel(const struct wheel_write *w, const char *name)
{
	char file[WHEEL_NAME_MAX + 1], dist[WHEEL_NAME_MAX + 1], stem[WHEEL_NAME_MAX + 1];
	const struct device_wheels *d = w->devices;
	char *stems[] = {d->prefix ? xstrdup(d->prefix)
				   : xasprintf("amd-%s-device", d->host),
			 xasprintf("%s-device", d->host)};
	struct wheel_name parts;
	bool yes = false;

	if (snprintf(file, sizeof(file), "%s%s", name,
		     kp_span_ends(kp_span_str(name), ".whl") ? "" : ".whl") <
		    (int)sizeof(file) &&
	    !wheel_name_parse(file, &parts, NULL) &&
	    strcmp(parts.version, w->host->name.version) == 0 &&
	    dist_name_normal(parts.dist, '-', dist))
		for (size_t i = 0; i < KP_COUNT(stems); i++)
			yes |= dist_name_normal(stems[i], '-', stem) &&
			       strncmp(dist, stem, strlen(stem)) == 0 &&
			       dist[strlen(stem)] == '-';
	for (size_t i = 0; i < KP_COUNT(stems); i++)
		free(stems[i]);
	return yes;
}

void wheel_earlier_report(const char *dir, const struct wheel_write *w,
			  const struct wheel_files *files)
{
	struct dirent **names;
	int count = below_scandir(dir, &names, NULL);

	for (int i = 0; i < count; i++) {
		const char *name = names[i]->d_name;
		bool made = false;

		for (size_t k = 0; k < files->count; k++)
			made |= strncmp(files->items[k].name, name, strlen(name)) == 0;
		if (!made && is_device_wheel(w, name)) {
			char *path = xasprintf("%s/%s", dir, name);

			report_error(path, "note: is not from this run; it stays");
			free(path);
		}
		free(names[i]);
	}
	if (count >= 0)
		free(names);
}
