/* SPDX-License-Identifier: MIT */
/* Make the rows, the jobs and the numbers of a file's containers. */
#include <stdlib.h>
#include "internal.h"
#include "core/base/alloc.h"

struct tree {
	struct inspect_file *file;
	struct kpackx_error *why;
};

static kpack_error_t add_row(struct tree *t, struct inspect_row row)
{
	struct inspect_file *f = t->file;

	if (!kp_grow(&f->rows, f->n_rows, &f->rows_cap, sizeof(row)))
		return kp_fail_memory(t->why, f->n_rows * sizeof(row), "rows");
	f->rows[f->n_rows++] = row;
	/* archives, and host ELF in them, may have no device code */
	f->device |=
		row.kind != INSPECT_CONTAINER || f->numbers[row.container] != KP_NOWHERE;
	if (row.depth > f->depth)
		f->depth = row.depth;
	return KPACK_SUCCESS;
}

static kpack_error_t add_job(struct tree *t, struct inspect_job job)
{
	struct inspect_file *f = t->file;

	if (!kp_grow(&f->jobs, f->n_jobs, &f->jobs_cap, sizeof(job)))
		return kp_fail_memory(t->why, f->n_jobs * sizeof(job), "jobs");
	f->jobs[f->n_jobs++] = job;
	return KPACK_SUCCESS;
}

/* Bytes that are plain in the file; NULL: they come out of a decoder. */
typedef const struct kp_source place_source;

static kpack_error_t add_place(struct tree *t, size_t first, place_source *src,
			       unsigned depth);
static kpack_error_t add_container(struct tree *t, size_t number, size_t image,
				   place_source *around, unsigned depth);

/* An empty image may state any offset. */
bool inspect_image_source(const struct kp_image *image, const struct kp_source *payload,
			  struct kp_source *out)
{
	if (kp_source_sub(payload, image->offset, image->size, out))
		return true;
	*out = kp_source_memory(NULL, 0);
	return image->size == 0;
}

const char *inspect_arch(const struct kp_containers *list, const struct kp_image *image,
			 const char *says)
{
	size_t inside = list->items[image->container].inside;

	if (image->host || image->arch[0])
		return image->arch;
	if (*says)
		return says;
	for (; inside != KP_NOWHERE;
	     inside = list->items[list->images[inside].container].inside)
		if (list->images[inside].arch[0])
			return list->images[inside].arch;
	return "";
}

/* Whether IMAGE may be device code: an archive's member can be anything. */
static bool may_be_code(const struct kp_containers *list, const struct kp_image *image,
			place_source *src)
{
	uint8_t bytes[KP_HEAD_SIZE];
	struct kp_span head;

	if (list->items[image->container].format != &kp_format_archive || !src)
		return true;
	return kp_source_head(src, 0, bytes, sizeof(bytes), &head, NULL) !=
		       KPACK_SUCCESS ||
	       kp_format_probe(head) != NULL;
}

static kpack_error_t add_leaf(struct tree *t, size_t image, place_source *payload,
			      unsigned depth)
{
	struct inspect_file *f = t->file;
	struct inspect_job job = {.container = KP_NOWHERE, .image = image};
	size_t container = f->list.images[image].container;

	f->n_leaves++;
	if (f->numbers[container] == KP_NOWHERE)
		f->numbers[container] = f->n_numbered++;
	KP_TRY(add_row(t, (struct inspect_row){INSPECT_IMAGE, depth, container, image}));
	job.end_row = f->n_rows;
	/* an image that passes the end was reported when it was found */
	if (!payload || !inspect_image_source(&f->list.images[image], payload, &job.src))
		return KPACK_SUCCESS;
	return add_job(t, job);
}

static kpack_error_t add_image(struct tree *t, size_t image, place_source *payload,
			       unsigned depth)
{
	const struct kp_containers *list = &t->file->list;
	const struct kp_image *img = &list->images[image];
	struct kp_source src;
	place_source *own =
		payload && inspect_image_source(img, payload, &src) ? &src : NULL;

	if (inspect_leaf(img))
		return may_be_code(list, img, own) ? add_leaf(t, image, payload, depth)
						   : KPACK_SUCCESS;
	/* a container that is all of the image has no line of its own */
	if (!img->stream && list->items[img->inside].next == KP_NOWHERE)
		return add_container(t, img->inside, image, own, depth);
	KP_TRY(add_row(
		t, (struct inspect_row){INSPECT_PLACE, depth, img->container, image}));
	return add_place(t, img->inside, own, depth + 1);
}

/*
 * Add all images of CONTAINER, the .hip_fatbin first; PAYLOAD is the container's in the
 * file.
 */
static kpack_error_t add_images(struct tree *t, size_t container, place_source *payload,
				unsigned depth)
{
	const struct kp_container *c = &t->file->list.items[container];

	for (int round = 0; round < 2; round++) {
		for (size_t i = c->first_image; i < c->first_image + c->n_images; i++)
			if (inspect_is_fatbin(&t->file->list, i) == (round == 0))
				KP_TRY(add_image(t, i, payload, depth));
	}
	return KPACK_SUCCESS;
}

/* Add CONTAINER, which a job of its own decodes. */
static kpack_error_t add_decoded(struct tree *t, size_t container, place_source *around,
				 unsigned depth)
{
	size_t number = t->file->n_jobs;

	KP_TRY(add_job(t, (struct inspect_job){.src = *around,
					       .container = container,
					       .image = KP_NOWHERE}));
	KP_TRY(add_images(t, container, NULL, depth));
	t->file->jobs[number].end_row = t->file->n_rows;
	return KPACK_SUCCESS;
}

static kpack_error_t add_container(struct tree *t, size_t number, size_t image,
				   place_source *around, unsigned depth)
{
	struct inspect_file *f = t->file;
	const struct kp_container *c = &f->list.items[number];
	struct kp_source payload;
	bool host = c->format == &kp_format_host_elf;
	/*
	 * these have no row of their own: an object is its image, and the head line shows
	 * a file's host ELF
	 */
	bool plain = c->format->type ||
		     (host && (c->inside == KP_NOWHERE || c->n_images == 0));

	if (!host && c->format != &kp_format_archive)
		f->numbers[number] = f->n_numbered++;
	if (!plain) {
		KP_TRY(add_row(t, (struct inspect_row){INSPECT_CONTAINER, depth, number,
						       image}));
		depth++;
	}
	if (around && c->format->load)
		return add_decoded(t, number, around, depth);
	if (around && kp_source_sub(around, c->offset, c->size, &payload))
		return add_images(t, number, &payload, depth);
	return add_images(t, number, NULL, depth);
}

/* Add the containers from FIRST on, which are in SRC. */
static kpack_error_t add_place(struct tree *t, size_t first, place_source *src,
			       unsigned depth)
{
	for (size_t c = first; c != KP_NOWHERE; c = t->file->list.items[c].next)
		KP_TRY(add_container(t, c, KP_NOWHERE, src, depth));
	return KPACK_SUCCESS;
}

kpack_error_t inspect_tree_build(struct inspect_file *f, struct kpackx_error *why)
{
	struct tree t = {f, why};
	size_t n = f->list.count;

	f->numbers = malloc((n + 1) * sizeof(*f->numbers));
	if (!f->numbers)
		return kp_fail_memory(why, n * sizeof(*f->numbers), "containers");
	for (size_t i = 0; i < n; i++)
		f->numbers[i] = KP_NOWHERE;
	return n ? add_place(&t, 0, &f->source, 0) : KPACK_SUCCESS;
}
