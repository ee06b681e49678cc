/* SPDX-License-Identifier: MIT */
/* Make the rows, the jobs and the numbers of a file's containers. */
#include <stdlib.h>
#include "internal.h"
#include "packer/cli/xalloc.h"

static void add_row(struct inspect_file *f, struct inspect_row row)
{
	xgrow(&f->rows, f->n_rows, &f->rows_cap, sizeof(row));
	f->rows[f->n_rows++] = row;
	/* archives, and host ELF in them, may have no device code */
	f->device |=
		row.kind != INSPECT_CONTAINER || f->numbers[row.container] != KP_NOWHERE;
	if (row.depth > f->depth)
		f->depth = row.depth;
}

static void add_job(struct inspect_file *f, struct inspect_job job)
{
	xgrow(&f->jobs, f->n_jobs, &f->jobs_cap, sizeof(job));
	f->jobs[f->n_jobs++] = job;
}

/* Bytes that are plain in the file; NULL: they come out of a decoder. */
typedef const struct kp_source place_source;

static void add_place(struct inspect_file *f, size_t first, place_source *src,
		      unsigned depth);
static void add_container(struct inspect_file *f, size_t number, size_t image,
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

static void add_leaf(struct inspect_file *f, size_t image, place_source *payload,
		     unsigned depth)
{
	struct inspect_job job = {.container = KP_NOWHERE, .image = image};
	size_t container = f->list.images[image].container;

	f->n_leaves++;
	if (f->numbers[container] == KP_NOWHERE)
		f->numbers[container] = f->n_numbered++;
	add_row(f, (struct inspect_row){INSPECT_IMAGE, depth, container, image});
	job.end_row = f->n_rows;
	/* an image that passes the end was reported when it was found */
	if (payload && inspect_image_source(&f->list.images[image], payload, &job.src))
		add_job(f, job);
}

static void add_image(struct inspect_file *f, size_t image, place_source *payload,
		      unsigned depth)
{
	const struct kp_containers *list = &f->list;
	const struct kp_image *img = &list->images[image];
	struct kp_source src;
	place_source *own =
		payload && inspect_image_source(img, payload, &src) ? &src : NULL;

	if (inspect_leaf(img)) {
		if (may_be_code(list, img, own))
			add_leaf(f, image, payload, depth);
	} else if (!img->stream && list->items[img->inside].next == KP_NOWHERE) {
		/* a container that is all of the image has no line of its own */
		add_container(f, img->inside, image, own, depth);
	} else {
		add_row(f, (struct inspect_row){INSPECT_PLACE, depth, img->container,
						image});
		add_place(f, img->inside, own, depth + 1);
	}
}

/*
 * Add all images of CONTAINER, the .hip_fatbin first; PAYLOAD is the container's in the
 * file.
 */
static void add_images(struct inspect_file *f, size_t container, place_source *payload,
		       unsigned depth)
{
	const struct kp_container *c = &f->list.items[container];

	for (int round = 0; round < 2; round++) {
		for (size_t i = c->first_image; i < c->first_image + c->n_images; i++)
			if (inspect_is_fatbin(&f->list, i) == (round == 0))
				add_image(f, i, payload, depth);
	}
}

/* Add CONTAINER, which a job of its own decodes. */
static void add_decoded(struct inspect_file *f, size_t container, place_source *around,
			unsigned depth)
{
	size_t number = f->n_jobs;

	add_job(f, (struct inspect_job){
			   .src = *around, .container = container, .image = KP_NOWHERE});
	add_images(f, container, NULL, depth);
	f->jobs[number].end_row = f->n_rows;
}

static void add_container(struct inspect_file *f, size_t number, size_t image,
			  place_source *around, unsigned depth)
{
	const struct kp_container *c = &f->list.items[number];
	struct kp_source payload;
	bool host = kp_format_is_host(c->format);
	/*
	 * these have no row of their own: an object is its image, and the head line shows
	 * a file's host ELF
	 */
	bool plain = c->format->type ||
		     (host && (c->inside == KP_NOWHERE || c->n_images == 0));

	if (!host && c->format != &kp_format_archive)
		f->numbers[number] = f->n_numbered++;
	if (!plain) {
		add_row(f, (struct inspect_row){INSPECT_CONTAINER, depth, number, image});
		depth++;
	}
	if (around && c->format->load)
		add_decoded(f, number, around, depth);
	else if (around && kp_source_sub(around, c->offset, c->size, &payload))
		add_images(f, number, &payload, depth);
	else
		add_images(f, number, NULL, depth);
}

/* Add the containers from FIRST on, which are in SRC. */
static void add_place(struct inspect_file *f, size_t first, place_source *src,
		      unsigned depth)
{
	for (size_t c = first; c != KP_NOWHERE; c = f->list.items[c].next)
		add_container(f, c, KP_NOWHERE, src, depth);
}

void inspect_tree_build(struct inspect_file *f)
{
	size_t n = f->list.count;

	f->numbers = xmalloc(n * sizeof(*f->numbers));
	for (size_t i = 0; i < n; i++)
		f->numbers[i] = KP_NOWHERE;
	if (n)
		add_place(f, 0, &f->source, 0);
}
