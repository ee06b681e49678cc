/* SPDX-License-Identifier: MIT */
/*
 * Extraction is a walk (inspect.h) whose threads write each leaf as a file.  A name must
 * not depend on which thread comes first: images that are plain in the file are named before
 * the walk, those of a compressed container by the one thread that decodes it.  Faults are
 * kept per image and reported in the order of the file for the same reason.
 *
 * Names come from the file, which anybody may have made: of an architecture only harmless bytes stay, no
 * name begins with a dot, and none has a slash.  All images of a name are counted, also those that are
 * not selected, so that an image has the same name whatever is selected.
 *
 * An existing file is that image's fault, and the others are still written.  Any other failure is the
 * disk's: then no thread begins another file.
 */
#include <errno.h>
#include <pthread.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/format/format.h"
#include "core/base/order.h"
#include "inspect.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/cli/report.h"

/* Room for the architecture, the type and the two numbers. */
#define NAME_SIZE (KP_TARGET_TEXT_MAX + 64)

/*
 * Report at most this many unwritten files one by one: for a second run all files may
 * exist already.
 */
#define REPORTED_MAX 20

/* A name, and how many images of one container have it. */
struct used {
	char name[NAME_SIZE];
	size_t count;
};

struct extract {
	struct inspect_extract *x;
	struct inspect_file *file;
	pthread_mutex_t lock; /* guards stop, and the filter and count of X */
	char **names;         /* per image; NULL: not selected */
	bool *named;          /* per image: NAMES is decided */
	void **used; /* per container: a tree of struct used, one thread's at a time */
	struct kpackx_error **faults; /* per image; NULL: none */
	bool stop;                    /* no further file can be written */
};

/* ---- names of images ---- */

static int compare_used(const void *a, const void *b)
{
	return strcmp(((const struct used *)a)->name, ((const struct used *)b)->name);
}

/*
 * Give IMAGE a name if it has bytes and is selected.  The architecture in the name of PTX is
 * compute_NN, whatever its container says; bytecode that states none suits all GPUs.  An image
 * has a number if its container had such an image before.
 */
static kpack_error_t name_image(struct extract *e, size_t image,
				const struct kp_source *src, struct kpackx_error *why)
{
	const struct kp_image *img = &e->file->list.images[image];
	uint8_t bytes[KP_HEAD_SIZE];
	struct kp_span head;
	char arch[KP_TARGET_TEXT_MAX];
	static const char *const neutral[] = {"bc", "spv", "tileirbc"};
	static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789_:+-.";
	struct used *own, **before;
	struct kp_object object = {0};
	size_t number = e->file->numbers[img->container];
	char of[24] = "", at[24] = "";
	const char *type, *found;
	bool chosen;

	e->named[image] = true;
	if (!src->size)
		return KPACK_SUCCESS;
	KP_TRY(kp_source_head(src, 0, bytes, sizeof(bytes), &head, why));
	type = kp_image_type(img, head);
	/* if the container states the architecture, the object need not be read */
	if (!img->host && !img->arch[0])
		kp_object_describe(src, &object, NULL);
	found = img->host ? "host" : inspect_arch(&e->file->list, img, object.arch);
	for (size_t i = 0; i < KP_COUNT(neutral); i++)
		if (!*found && strcmp(type, neutral[i]) == 0)
			found = "generic";
	if (strcmp(type, "ptx") == 0 && strncmp(found, "sm_", 3) == 0)
		snprintf(arch, sizeof(arch), "compute_%.50s", found + 3);
	else
		snprintf(arch, sizeof(arch), "%s", *found ? found : "unknown");
	kp_object_fini(&object);
	pthread_mutex_lock(&e->lock);
	chosen = arch_filter_match(&e->x->filter, kp_span_str(arch));
	/* PTX of sm_90 is compute_90 by name, and is chosen as either */
	if (!chosen && img->arch[0] && !img->host)
		chosen = arch_filter_match(&e->x->filter, kp_span_str(img->arch));
	pthread_mutex_unlock(&e->lock);
	/* only bytes that target IDs and types consist of are kept */
	for (char *p = arch; *p; p++)
		if (!strchr(good, *p) || (*p == '.' && p == arch))
			*p = '_';
	/* count unselected images too: names do not depend on the selection */
	own = xcalloc(1, sizeof(*own));
	snprintf(own->name, sizeof(own->name), "%s.%s", arch, type);
	before = tsearch(own, &e->used[img->container], compare_used);
	if (!before)
		xalloc_fail(0);
	if (*before != own)
		free(own);
	if ((*before)->count)
		snprintf(of, sizeof(of), "~%zu", (*before)->count);
	(*before)->count++;
	if (number > 0)
		snprintf(at, sizeof(at), "#%zu", number);
	if (chosen)
		e->names[image] = xasprintf("%s%s%s.%s", arch, of, at, type);
	return KPACK_SUCCESS;
}

/* ---- files ---- */

static kpack_error_t fail_exists(struct kpackx_error *why, const char *name)
{
	kp_fail_errno(why, EEXIST, "%s", name);
	return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
		       "%s: already exists (--force replaces it)", name);
}

static kpack_error_t extract_leaf(void *arg, struct inspect_thread *thread, size_t image,
				  const struct kp_source *src, struct kpackx_error *why)
{
	struct extract *e = arg;
	KP_AUTO_FREE char *path = NULL;
	struct kpackx_error fault = {0};
	struct kp_outfile out;
	const char *name;
	struct stat st;
	kpack_error_t err;
	bool stop;

	(void)thread;
	pthread_mutex_lock(&e->lock);
	stop = e->stop;
	pthread_mutex_unlock(&e->lock);
	if (stop)
		return KPACK_SUCCESS;
	if (!e->named[image])
		KP_TRY(name_image(e, image, src, why));
	name = e->names[image];
	if (!name)
		return KPACK_SUCCESS;
	path = xasprintf("%s/%s", e->x->dir, name);
	err = below_outfile_open(&out, path, 0666, &fault);
	if (!err) {
		out.lazy = true;
		out.keep = !e->x->force;
		/* check before copying, which is work */
		if (out.keep && below_lstat(path, &st) == 0)
			err = fail_exists(&fault, name);
		else if (src->fd >= 0)
			err = kp_outfile_copy(&out, 0, src->fd, src->offset, src->size,
					      &fault);
		else
			err = kp_outfile_pwrite(&out, 0, src->mem, (size_t)src->size,
						&fault);
		if (!err)
			err = kp_outfile_publish(&out, &fault);
		if (err && fault.sys_errno == EEXIST)
			err = fail_exists(&fault, name);
		kp_outfile_close(&out);
	}
	if (err) {
		e->faults[image] = xmalloc(sizeof(fault));
		*e->faults[image] = fault;
	}
	pthread_mutex_lock(&e->lock);
	e->x->written += !err;
	/* an existing file concerns one image; any other error the disk or the input */
	e->stop |= err && err != KPACK_ERROR_INVALID_ARGUMENT;
	pthread_mutex_unlock(&e->lock);
	return KPACK_SUCCESS;
}

/* ---- the whole file ---- */

kpack_error_t inspect_extract_run(struct inspect_extract *x, struct inspect_file *file,
				  struct kpackx_error *why)
{
	const struct kp_containers *list = &file->list;
	struct extract e = {
		.x = x,
		.file = file,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.names = xcalloc(list->n_images, sizeof(*e.names)),
		.named = xcalloc(list->n_images, sizeof(*e.named)),
		.used = xcalloc(list->count, sizeof(*e.used)),
		.faults = xcalloc(list->n_images, sizeof(*e.faults)),
	};
	const struct inspect_walk walk = {
		.file = file, .progress = "extracting", .arg = &e, .leaf = extract_leaf};
	kpack_error_t err = below_make_root(x->dir, 0777, why);
	size_t failed = 0;

	for (size_t i = 0; x->names && i < list->n_images; i++) {
		e.names[i] = x->names[i] ? xstrdup(x->names[i]) : NULL;
		e.named[i] = true;
	}
	for (size_t i = 0; i < file->n_jobs && !err; i++) {
		const struct inspect_job *job = &file->jobs[i];

		if (job->image != KP_NOWHERE && !e.named[job->image])
			err = name_image(&e, job->image, &job->src, why);
	}
	if (err)
		goto out;
	err = inspect_walk_run(&walk, why);
	/* in the order of the images, whatever that of the threads was */
	for (size_t i = 0; i < list->n_images; i++)
		if (e.faults[i] && ++failed <= REPORTED_MAX)
			report_why(x->dir, e.faults[i]);
	if (failed > REPORTED_MAX)
		report_error(x->dir, "and %zu file%s more", failed - REPORTED_MAX,
			     plural(failed - REPORTED_MAX));
	if (err)
		goto out;
	arch_filter_unmatched(&x->filter, "image");
	if (failed)
		err = kp_fail(why, KPACK_ERROR_IO_ERROR, "not everything was written");
out:
	for (size_t i = 0; i < list->n_images; i++) {
		free(e.names[i]);
		free(e.faults[i]);
	}
	for (size_t i = 0; i < list->count; i++)
		tdestroy(e.used[i], free);
	free(e.names);
	free(e.faults);
	free(e.named);
	free(e.used);
	pthread_mutex_destroy(&e.lock);
	return err;
}

/* ---- names of bulk-unbundle ---- */

kpack_error_t unbundle_names_make(const struct inspect_file *file, const char *arch,
				  struct unbundle_names *out, struct kpackx_error *why)
{
	bool numbered = false; /* an ID is there twice */
	KP_AUTO_FREE const char **ids = NULL;
	size_t cap = 0;

	*out = (struct unbundle_names){
		.items = xcalloc(file->list.n_images, sizeof(*out->items))};
	for (size_t i = 0; i < file->n_rows; i++) {
		const struct inspect_row *row = &file->rows[i];
		const struct kp_image *img;
		const struct kp_format *format;
		const char *last = NULL;

		if (row->kind != INSPECT_IMAGE)
			continue;
		/* device code in a bundle; with ARCH, behind the last "--", for that processor */
		img = &file->list.images[row->image];
		format = file->list.items[img->container].format;
		if ((format != &kp_format_bundle && format != &kp_format_ccob) ||
		    !img->id || !img->size || img->host || !inspect_leaf(img))
			continue;
		for (const char *at = img->id; (at = strstr(at, "--")); at++)
			last = at + 2;
		if (arch && (!last || strlen(arch) != strcspn(last, ":") ||
			     strncmp(last, arch, strlen(arch)) != 0))
			continue;
		xgrow(&out->images, out->count, &cap, sizeof(*out->images));
		out->images[out->count++] = row->image;
	}
	if (out->count == 0)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       arch ? "no device code for %s in its bundles"
				    : "no device code in bundles",
			       arch);
	ids = xmalloc(out->count * sizeof(*ids));
	for (size_t i = 0; i < out->count; i++)
		ids[i] = file->list.images[out->images[i]].id;
	kp_sort(ids, out->count, KP_AS_TEXT);
	for (size_t i = 1; i < out->count; i++)
		numbered |= strcmp(ids[i - 1], ids[i]) == 0;
	for (size_t i = 0; i < out->count; i++) {
		const char *id = file->list.images[out->images[i]].id;
		const char *type = strncmp(id, "hip", 3) == 0 ? "hsaco" : "elf";
		char *name = numbered ? xasprintf("%s_%zu.%s", id, i, type)
				      : xasprintf("%s.%s", id, type);

		/* a slash in its ID would lead elsewhere */
		for (char *c = name; *c; c++)
			if (*c == '/' || (*c == '.' && c == name))
				*c = '_';
		out->items[out->images[i]] = name;
	}
	return KPACK_SUCCESS;
}

void unbundle_names_fini(struct unbundle_names *names, size_t n_images)
{
	for (size_t i = 0; names->items && i < n_images; i++)
		free(names->items[i]);
	free(names->items);
	free(names->images);
	*names = (struct unbundle_names){0};
}
