/* SPDX-License-Identifier: MIT */
#include "walk.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "core/base/file.h"
#include "core/base/text.h"
#include "packer/base/xalloc.h"
#include "packer/split/tree_name.h"

/* --- the manifest ------------------------------------------------------------------ */

static kpack_error_t add_prefix(struct shard_tree *t, struct kp_span line,
				struct kpackx_error *why)
{
	const char *fault = kp_path_fault(line);
	char text[80];

	if (fault)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "%s/" ARTIFACT_MANIFEST ": prefix '%s': %s", t->path,
			       kp_text_escape(line, text, sizeof(text)), fault);
	t->prefixes = xrealloc(t->prefixes, (t->n_prefixes + 1) * sizeof(*t->prefixes));
	t->prefixes[t->n_prefixes++] = xstrndup((const char *)line.data, line.size);
	return KPACK_SUCCESS;
}

static bool is_blank(uint8_t c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '/';
}

static kpack_error_t parse_manifest(struct shard_tree *t, struct kp_span text,
				    struct kpackx_error *why)
{
	while (text.size) {
		const uint8_t *end = memchr(text.data, '\n', text.size);
		struct kp_span line =
			kp_span_head(text, end ? (size_t)(end - text.data) : text.size);

		text = kp_span_tail(text, line.size + (end != NULL));
		while (line.size && is_blank(line.data[line.size - 1]))
			line.size--;
		while (line.size && (line.data[0] == ' ' || line.data[0] == '\t'))
			line = kp_span_tail(line, 1);
		if (line.size)
			KP_TRY(add_prefix(t, line, why));
	}
	return KPACK_SUCCESS;
}

static kpack_error_t read_manifest(struct shard_tree *t, struct kpackx_error *why)
{
	char *path = xasprintf("%s/" ARTIFACT_MANIFEST, t->path);
	struct stat st;
	uint8_t *text = NULL;
	int fd;
	kpack_error_t err = kp_file_open(path, &fd, &st, why);

	if (err)
		kp_fail_prefix(why, err, "%s", path);
	free(path);
	if (err)
		return err;
	t->has_manifest = true;
	if (st.st_size <= SHARD_MANIFEST_MAX) {
		text = xmalloc((size_t)st.st_size);
		err = kp_file_pread(fd, 0, text, (size_t)st.st_size, why);
	} else {
		err = kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			      "%s/" ARTIFACT_MANIFEST ": has %lld bytes, at most %d",
			      t->path, (long long)st.st_size, SHARD_MANIFEST_MAX);
	}
	if (!err)
		err = parse_manifest(t, (struct kp_span){text, (size_t)st.st_size}, why);
	close(fd);
	free(text);
	return err;
}

/* --- files ------------------------------------------------------------------------- */

struct walk {
	struct shard_tree *tree;
	size_t cap;
	unsigned depth;
};

static kpack_error_t walk_directory(struct walk *w, int parent, const char *name,
				    const char *path, struct kpackx_error *why);

static void add_file(struct walk *w, const char *path, const struct stat *st)
{
	struct shard_tree *t = w->tree;

	xgrow(&t->files, t->n_files, &w->cap, sizeof(*t->files));
	t->files[t->n_files++] = (struct shard_file){
		.path = xstrdup(path),
		.mode = st->st_mode,
		.linked = S_ISREG(st->st_mode) && st->st_nlink > 1,
		.dev = st->st_dev,
		.ino = st->st_ino,
		.size = S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0,
	};
}

static kpack_error_t walk_entry(struct walk *w, int dir, const char *name,
				const char *path, struct kpackx_error *why)
{
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return kp_fail_errno(why, errno, "%s/%s: cannot stat", w->tree->path,
				     path);
	if (S_ISDIR(st.st_mode))
		return walk_directory(w, dir, name, path, why);
	if (strcmp(path, ARTIFACT_MANIFEST) == 0 && S_ISREG(st.st_mode))
		return read_manifest(w->tree, why);
	add_file(w, path, &st);
	return KPACK_SUCCESS;
}

static kpack_error_t walk_entries(struct walk *w, DIR *d, const char *path,
				  struct kpackx_error *why)
{
	struct dirent *entry;

	while (errno = 0, (entry = readdir(d))) {
		kpack_error_t err;
		char *inner;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		inner = xasprintf("%s%s%s", path, *path ? "/" : "", entry->d_name);
		err = walk_entry(w, dirfd(d), entry->d_name, inner, why);
		free(inner);
		if (err)
			return err;
	}
	return errno ? kp_fail_errno(why, errno, "%s/%s: cannot list it", w->tree->path,
				     path)
		     : KPACK_SUCCESS;
}

static kpack_error_t walk_directory(struct walk *w, int parent, const char *name,
				    const char *path, struct kpackx_error *why)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	size_t before = w->tree->n_files;
	kpack_error_t err;
	struct stat st;

	if (!d || fstat(fd, &st) < 0) {
		err = kp_fail_errno(why, errno, "%s/%s: cannot open the directory",
				    w->tree->path, path);
		if (d)
			closedir(d);
		else if (fd >= 0)
			close(fd);
		return err;
	}
	if (w->depth++ == SHARD_DEPTH_MAX)
		err = kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			      "%s: directories are nested more than %d deep",
			      w->tree->path, SHARD_DEPTH_MAX);
	else
		err = walk_entries(w, d, path, why);
	w->depth--;
	if (!err && *path && w->tree->n_files == before)
		add_file(w, path, &st);
	closedir(d);
	return err;
}

static int by_path(const void *a, const void *b)
{
	const struct shard_file *x = a, *y = b;

	return strcmp(x->path, y->path);
}

kpack_error_t shard_walk(struct shard_tree *tree, struct kpackx_error *why)
{
	struct walk w = {.tree = tree};

	KP_TRY(walk_directory(&w, AT_FDCWD, tree->path, "", why));
	if (tree->n_files)
		qsort(tree->files, tree->n_files, sizeof(*tree->files), by_path);
	return KPACK_SUCCESS;
}
