/* SPDX-License-Identifier: MIT */
#include "scan.h"
#include <elf.h>
#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include "memory.h"
#include "report.h"
#include "text.h"

/* A regular file of the tree. */
struct found {
	char *path;           /* to open it */
	const char *relative; /* inside path */
	dev_t dev;
	ino_t ino;
	nlink_t nlink;
	bool linked_before; /* another link of it comes first */
};

struct walk {
	struct found *files;
	size_t n, cap;
	bool failed;
};

static int by_path(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	return strcmp(x->relative, y->relative);
}

static kpack_error_t add_file(struct walk *w, const FTSENT *e, size_t root_size,
			      struct kpackx_error *why)
{
	struct found *f;

	if (!kp_grow(&w->files, w->n, &w->cap, sizeof(*w->files)))
		return kp_fail_memory(why, w->n * sizeof(*w->files), "files");
	f = &w->files[w->n];
	f->path = strdup(e->fts_path);
	if (!f->path)
		return kp_fail_memory(why, e->fts_pathlen, "a path");
	f->relative = f->path + root_size;
	while (*f->relative == '/')
		f->relative++;
	f->dev = e->fts_statp->st_dev;
	f->ino = e->fts_statp->st_ino;
	f->nlink = e->fts_statp->st_nlink;
	f->linked_before = false;
	w->n++;
	return KPACK_SUCCESS;
}

static kpack_error_t visit(struct walk *w, const FTSENT *e, size_t root_size,
			   struct kpackx_error *why)
{
	switch (e->fts_info) {
	case FTS_F:
		return S_ISREG(e->fts_statp->st_mode) ? add_file(w, e, root_size, why)
						      : KPACK_SUCCESS;
	case FTS_DNR:
	case FTS_ERR:
	case FTS_NS:
		report_error(e->fts_path, "%s", strerror(e->fts_errno));
		w->failed = true;
		return KPACK_SUCCESS;
	default:
		return KPACK_SUCCESS;
	}
}

static kpack_error_t walk_tree(const char *root, struct walk *w, struct kpackx_error *why)
{
	char *const roots[] = {(char *)root, NULL};
	FTS *fts = fts_open(roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, NULL);
	kpack_error_t err = KPACK_SUCCESS;
	FTSENT *e;

	if (!fts)
		return kp_fail_errno(why, errno, "cannot walk it");
	while (!err && (errno = 0, e = fts_read(fts)))
		err = visit(w, e, strlen(root), why);
	if (!err && errno)
		err = kp_fail_errno(why, errno, "cannot walk it");
	fts_close(fts);
	if (!err && w->n)
		qsort(w->files, w->n, sizeof(*w->files), by_path);
	return err;
}

/* By device and inode, then by path. */
static int by_inode(const void *a, const void *b)
{
	const struct found *x = *(struct found *const *)a, *y = *(struct found *const *)b;

	if (x->dev != y->dev)
		return x->dev < y->dev ? -1 : 1;
	if (x->ino != y->ino)
		return x->ino < y->ino ? -1 : 1;
	return strcmp(x->relative, y->relative);
}

/* Mark all but the first path of each file with several links. */
static kpack_error_t mark_links(struct walk *w, struct kpackx_error *why)
{
	struct found **linked = malloc((w->n + 1) * sizeof(struct found *));
	size_t n = 0;

	if (!linked)
		return kp_fail_memory(why, w->n, "hard links");
	for (size_t i = 0; i < w->n; i++)
		if (w->files[i].nlink > 1)
			linked[n++] = &w->files[i];
	qsort(linked, n, sizeof(struct found *), by_inode);
	for (size_t i = 1; i < n; i++)
		linked[i]->linked_before = linked[i]->dev == linked[i - 1]->dev &&
					   linked[i]->ino == linked[i - 1]->ino;
	free(linked);
	return KPACK_SUCCESS;
}

/* Why a file that has to do with device code is left alone; NULL: it is packed. */
static const char *left_alone(const struct input *in, bool alone)
{
	const struct kp_fatbin *fat = &in->fat;

	if (fat->kind == KP_FATBIN_CONVERTED)
		return "is converted already";
	if (fat->kind == KP_FATBIN_BARE && !alone)
		return "a bare container in a tree is not packed";
	if (fat->kind == KP_FATBIN_ELF && fat->elf.type == ET_REL)
		return "a relocatable object is not packed";
	if (fat->containers.count == 0)
		return "its .hip_fatbin is empty";
	return NULL;
}

static kpack_error_t add_note(struct scan *scan, const char *path, const char *text,
			      struct kpackx_error *why)
{
	struct scan_note *bigger =
		realloc(scan->notes, (scan->n_notes + 1) * sizeof(*bigger));

	if (!bigger)
		return kp_fail_memory(why, sizeof(*bigger), "a note");
	scan->notes = bigger;
	bigger[scan->n_notes] = (struct scan_note){strdup(path), text};
	if (!bigger[scan->n_notes].path)
		return kp_fail_memory(why, strlen(path), "a path");
	scan->n_notes++;
	return KPACK_SUCCESS;
}

static kpack_error_t keep_input(struct scan *scan, struct input *in,
				struct kpackx_error *why)
{
	if (!kp_grow(&scan->inputs, scan->n_inputs, &scan->inputs_cap,
		     sizeof(struct input *)))
		return kp_fail_memory(why, scan->n_inputs, "inputs");
	scan->inputs[scan->n_inputs++] = in;
	return KPACK_SUCCESS;
}

static char *make_key(const char *prefix, const char *relative)
{
	char *key;

	if (asprintf(&key, "%s%s%s", prefix, *prefix ? "/" : "", relative) < 0)
		return NULL;
	return key;
}

/* Look into one file and keep it when it has device code to pack. */
static kpack_error_t classify(struct scan *scan, const char *path, const char *key,
			      bool alone, struct kpackx_error *why)
{
	struct input *in = malloc(sizeof(*in));
	struct kpackx_error fault = {0};
	const char *note;
	kpack_error_t err;

	if (!in)
		return kp_fail_memory(why, sizeof(*in), "an input");
	scan->n_files++;
	err = input_open(path, key, in, &fault);
	if (err) {
		report_why(path, &fault);
		scan->n_faults++;
		free(in);
		return KPACK_SUCCESS;
	}
	if (in->fat.kind != KP_FATBIN_NONE) {
		note = left_alone(in, alone);
		if (!note && !kp_path_ok(kp_span_str(key))) {
			report_error(path, "its path cannot be a key");
			scan->n_faults++;
		} else if (!note) {
			return keep_input(scan, in, why);
		} else {
			err = add_note(scan, path, note, why);
		}
	}
	input_fini(in);
	free(in);
	return err;
}

static kpack_error_t classify_all(struct scan *scan, struct walk *w, const char *prefix,
				  struct kpackx_error *why)
{
	kpack_error_t err = mark_links(w, why);

	for (size_t i = 0; i < w->n && !err; i++) {
		char *key;

		if (w->files[i].linked_before)
			continue;
		key = make_key(prefix, w->files[i].relative);
		err = key ? classify(scan, w->files[i].path, key, false, why)
			  : kp_fail_memory(why, 0, "a key");
		free(key);
	}
	return err;
}

static kpack_error_t scan_tree(struct scan *scan, const char *root, const char *prefix,
			       struct kpackx_error *why)
{
	struct walk w = {0};
	kpack_error_t err = walk_tree(root, &w, why);

	if (!err)
		err = classify_all(scan, &w, prefix, why);
	if (w.failed)
		scan->n_faults++;
	for (size_t i = 0; i < w.n; i++)
		free(w.files[i].path);
	free(w.files);
	return err;
}

static kpack_error_t scan_file(struct scan *scan, const char *path, const char *prefix,
			       struct kpackx_error *why)
{
	const char *name = strrchr(path, '/');
	char *key = make_key(prefix, name ? name + 1 : path);
	kpack_error_t err;

	err = key ? classify(scan, path, key, true, why)
		  : kp_fail_memory(why, 0, "a key");
	free(key);
	return err;
}

kpack_error_t scan_open(const char *root, const char *prefix, struct scan *out,
			struct kpackx_error *why)
{
	struct stat st;
	kpack_error_t err;

	*out = (struct scan){0};
	if (stat(root, &st) < 0)
		return kp_fail_errno(why, errno, "cannot look at it");
	err = S_ISDIR(st.st_mode) ? scan_tree(out, root, prefix, why)
				  : scan_file(out, root, prefix, why);
	if (err)
		scan_close(out);
	return err;
}

void scan_close(struct scan *scan)
{
	for (size_t i = 0; i < scan->n_inputs; i++) {
		input_fini(scan->inputs[i]);
		free(scan->inputs[i]);
	}
	for (size_t i = 0; i < scan->n_notes; i++)
		free(scan->notes[i].path);
	free(scan->inputs);
	free(scan->notes);
	*scan = (struct scan){0};
}
