/* SPDX-License-Identifier: MIT */
/*
 * Output wheels get their names.  A build repeats its steps, so what an earlier run wrote is
 * replaced: a file or unpacked wheel that is marked as this program's, was there when the run
 * began, and has no member that the new one has not.  Anything else under these names is
 * somebody's, and an error, before any output has a name.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/text.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/files/staging.h"
#include "packer/files/tree_list.h"
#include "split.h"

/*
 * A name is checked before there is anything to lose by it, as soon as it is known: first by the
 * mark alone, then, when the new wheel is there, by members too.  What comes into being between
 * the last check and the renaming is another run's, which the lock keeps out, or was put there by
 * hand at that moment.
 */

/* --- what is there ------------------------------------------------------------------- */

/*
 * What only a wheel that was written here has in a file of its .dist-info: the name of the
 * program, or the host wheel's extra, which a fat wheel may not have.
 */
static const struct {
	const char *file, *text;
} marks[] = {
	[WHEEL_OUTPUT_DEVICE] = {"WHEEL", "\nGenerator: kpack "},
	[WHEEL_OUTPUT_VARIANT] = {"METADATA", "\nProvides-Extra: device-all"},
	[WHEEL_OUTPUT_HOST] = {"METADATA", "\nProvides-Extra: device-all"},
};

/* What is known of a wheel that has the name of an output. */
struct earlier {
	const char *mark;     /* the file with the mark */
	struct wheel_in *now; /* what this run wrote; NULL: not written yet */
	struct wheel_in *old; /* the wheel itself, if it is one */
	char *marked;         /* the path of the file with the mark */
	char *strange;        /* the first path that NOW has not */
};

static void earlier_fini(struct earlier *e)
{
	wheel_in_close(e->now);
	wheel_in_close(e->old);
	free(e->marked);
	free(e->strange);
}

static void note_member(struct earlier *e, const char *path)
{
	struct kp_span top = {(const uint8_t *)path, strcspn(path, "/")};
	size_t member;

	if (!e->marked && path[top.size] && kp_span_ends(top, ".dist-info") &&
	    strcmp(path + top.size + 1, e->mark) == 0)
		e->marked = xstrdup(path);
	if (e->now && !e->strange && !wheel_in_find(e->now, path, &member))
		e->strange = xstrdup(path);
}

/*
 * Check that OLD, a wheel or a directory with an unpacked one, is what an earlier run wrote as an
 * output of KIND, and has no member that the wheel NOW, if it is not NULL, has not.
 */
static kpack_error_t check_earlier(const char *old, const struct stat *st,
				   enum wheel_output_kind kind, const char *now,
				   struct kpackx_error *why)
{
	KP_AUTO(earlier) e = {.mark = marks[kind].file};
	KP_AUTO_FREE char *text = NULL;
	size_t member, size;

	if (now)
		KP_TRY(wheel_in_open(now, &e.now, why));
	if (S_ISDIR(st->st_mode)) {
		struct tree_list *list = tree_list_open(old);
		struct tree_item item;

		while (tree_list_next(list, &item))
			if (item.kind == TREE_OTHER || item.kind == TREE_FAULT)
				note_member(&e, item.rest);
		tree_list_close(list);
		if (e.marked) {
			KP_AUTO_FREE char *path = xasprintf("%s/%s", old, e.marked);

			(void)below_file_load(path, METADATA_TEXT_MAX, "the file",
					      (uint8_t **)&text, &size, NULL);
		}
	} else if (!wheel_in_open(old, &e.old, NULL)) {
		for (size_t i = 0; i < e.old->count; i++)
			if (!e.old->members[i].directory)
				note_member(&e, e.old->members[i].path);
		if (e.marked && wheel_in_find(e.old, e.marked, &member))
			(void)wheel_in_text(e.old, member, METADATA_TEXT_MAX, &text,
					    &size, NULL);
	}
	/* what cannot be read has no mark */
	if (!text || !strstr(text, marks[kind].text))
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "%s: already exists, and is no output of split-wheel; "
			       "--force replaces it",
			       old);
	if (e.strange)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "%s: already exists, and %s in it is not from this input; "
			       "--force replaces it",
			       old, e.strange);
	return KPACK_SUCCESS;
}

kpack_error_t split_check_free(const struct split *s, enum wheel_output_kind kind,
			       const char *name, const char *now,
			       struct kpackx_error *why)
{
	KP_AUTO_FREE char *path = xasprintf("%s/%s", s->args->output, name);
	struct stat st, in;
	bool before = false;

	for (int i = 0; i < s->n_before; i++)
		before |= strcmp(s->before[i]->d_name, name) == 0;
	if (below_lstat(path, &st) == 0 && !s->args->force) {
		if (!before)
			return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				       "%s: already exists, made by another run "
				       "meanwhile; --force replaces it",
				       path);
		KP_TRY(check_earlier(path, &st, kind, now, why));
	}
	if (below_stat(path, &st) < 0)
		return KPACK_SUCCESS;
	for (size_t i = 0; i < s->n_sources; i++)
		if (below_stat(s->sources[i].path, &in) == 0 && st.st_ino == in.st_ino &&
		    st.st_dev == in.st_dev)
			return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				       "%s: is an input; it is not replaced", path);
	return KPACK_SUCCESS;
}

/* --- publishing ---------------------------------------------------------------------- */

/* Check all names before any is given, then give them, and make that durable. */
static kpack_error_t publish_all(const struct split *s, int dir, struct kpackx_error *why)
{
	for (size_t i = 0; i < s->n_outputs; i++) {
		const struct wheel_output *output = &s->outputs[i];
		KP_AUTO_FREE char *now = xasprintf("%s/%s", s->dir, output->name);

		KP_TRY(split_check_free(s, output->kind, output->final, now, why));
	}
	for (size_t i = 0; i < s->n_outputs; i++) {
		const char *name = s->outputs[i].final;
		KP_AUTO_FREE char *from = xasprintf("%s/%s", s->dir, name);
		KP_AUTO_FREE char *to = xasprintf("%s/%s", s->args->output, name);
		KP_AUTO_FREE char *old = xasprintf("%s/old-%zu", s->staging.path, i);
		struct stat st;

		/* a directory with the name goes to the staging directory */
		if (below_lstat(to, &st) == 0 && S_ISDIR(st.st_mode) &&
		    below_rename(to, old, 0) < 0)
			return below_fail(why, "%s: cannot be replaced", to);
		if (below_rename(from, to, 0) < 0)
			return below_fail(why, "%s: cannot rename the output to this",
					  to);
	}
	return kp_flush_dir(dir) < 0
		       ? kp_fail_errno(why, errno, "%s: cannot flush", s->args->output)
		       : KPACK_SUCCESS;
}

kpack_error_t split_publish(const struct split *s, struct kpackx_error *why)
{
	kpack_error_t err;
	int fd;

	for (size_t i = 0; s->args->directory && i < s->n_outputs; i++) {
		const struct wheel_output *output = &s->outputs[i];
		KP_AUTO_FREE char *from = xasprintf("%s/%s", s->dir, output->name);
		KP_AUTO_FREE char *to = xasprintf("%s/%s", s->dir, output->final);

		KP_TRY(wheel_unpack_file(from, to, s->args->jobs, why));
	}
	/*
	 * Names are checked again and given in one go: lock out other runs into the same
	 * directory, if the file system has locks.
	 */
	fd = below_open_following(s->args->output, O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		return below_fail(why, "%s: cannot open", s->args->output);
	lock_wait(fd, s->args->output);
	err = publish_all(s, fd, why);
	lock_close(fd);
	return err;
}

/* --- other targets ------------------------------------------------------------------- */

/*
 * Device wheels for targets that this run does not have may be another build's, or what is left of
 * an earlier run with more targets.  They are not removed, because nothing tells which.
 */

/* Whether FILE, with or without suffix, is a device wheel's of this host wheel. */
static bool is_device_wheel(const struct split *s, const char *file)
{
	const struct device_wheels *d = &s->devices;
	KP_AUTO_FREE char *name = xasprintf(
		"%s%s", file, kp_span_ends(kp_span_str(file), ".whl") ? "" : ".whl");
	KP_AUTO_FREE char *family = xasprintf("%s-device", d->host);
	KP_AUTO_FREE char *target =
		d->prefix ? xstrdup(d->prefix) : xasprintf("amd-%s-device", d->host);
	char dist[WHEEL_NAME_MAX + 1], stem[WHEEL_NAME_MAX + 1];
	struct wheel_name parts;

	if (wheel_name_parse(name, &parts, NULL) ||
	    strcmp(parts.version, s->host->name.version) != 0 ||
	    !dist_name_normal(parts.dist, '-', dist))
		return false;
	for (int i = 0; i < 2; i++)
		if (dist_name_normal(i ? family : target, '-', stem) &&
		    strncmp(dist, stem, strlen(stem)) == 0 && dist[strlen(stem)] == '-')
			return true;
	return false;
}

void split_report_others(const struct split *s)
{
	struct dirent **names;
	int count = below_scandir(s->args->output, &names, NULL);

	for (int i = 0; i < count; i++) {
		const char *name = names[i]->d_name;
		bool ours = false;

		for (size_t k = 0; k < s->n_outputs; k++)
			ours |= strncmp(s->outputs[k].name, name, strlen(name)) == 0;
		if (!ours && is_device_wheel(s, name)) {
			KP_AUTO_FREE char *path =
				xasprintf("%s/%s", s->args->output, name);

			report_error(path, "note: is not from this run; it stays");
		}
		free(names[i]);
	}
	if (count >= 0)
		free(names);
}
