/* SPDX-License-Identifier: MIT */
/*
 * An input is opened twice: when it is scanned, and when its images are read, on any thread.  In
 * between it is closed, because a tree has more files than a process can have open.
 *
 * A compressed container is decoded by the first thread that needs an image of it, while others
 * wait:
 *
 *	EMPTY -> LOADING -> LOADED, or FAILED with its reason, which everybody else gets, too
 *
 * It stays decoded until its last image was read: `expected` counts down from what input_expect
 * announced, and a container inside another counts as one image of that.  So a container is
 * decoded once, and memory is bounded by the containers that are being read.  A peek, before any
 * image is read, is outside of this count: input_end_peek makes its containers EMPTY again.
 *
 * The lock guards states, counters and the descriptor, but not the decoding, which takes long.
 * The file is closed when it has no users.
 */
#include "input.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/files/identity.h"

enum payload_state { EMPTY, LOADING, LOADED, FAILED };

struct input_payload {
	enum payload_state state;
	unsigned expected; /* images to be read, plus inner containers with such images */
	unsigned images;   /* to be read in all, including inner containers */
	struct kp_payload payload;
	kpack_error_t err;
	struct kpackx_error why;
};

static void close_file(struct input *in)
{
	if (in->fd >= 0)
		close(in->fd);
	in->fd = -1;
}

static void make_tables(struct input *in)
{
	in->payloads = xcalloc(in->fat.containers.count, sizeof(*in->payloads));
	in->xxh3 = xcalloc(in->n_images, sizeof(*in->xxh3));
	in->known = xcalloc(in->n_images, sizeof(*in->known));
	in->packed = xcalloc(in->n_images, sizeof(*in->packed));
}

static void begin_input(struct input *out, const char *path, const char *key)
{
	*out = (struct input){.path = xstrdup(path), .key = xstrdup(key), .fd = -1};
	out->shown = out->path;
	pthread_mutex_init(&out->lock, NULL);
	pthread_cond_init(&out->loaded, NULL);
}

kpack_error_t input_open(const char *path, const char *key, const struct input_look *look,
			 struct input *out, struct kpackx_error *why)
{
	struct kp_fatbin *fat = &out->fat;
	kpack_error_t err;
	bool any = false;

	begin_input(out, path, key);
	err = look->guarded   ? below_file_open_guarded(path, &out->fd, &out->st, why)
	      : look->in_tree ? below_file_open_nofollow(path, &out->fd, &out->st, why)
			      : below_file_open(path, &out->fd, &out->st, why);
	if (!err)
		err = kp_fatbin_nest(out->fd, (uint64_t)out->st.st_size, look->sections,
				     fat, why);
	if (err)
		goto out;
	out->kind = fat->kind == KP_FATBIN_HOST || fat->kind == KP_FATBIN_CONVERTED
			    ? INPUT_HOST
			    : INPUT_BARE;
	out->images = fat->containers.images;
	out->n_images = fat->containers.n_images;
	make_tables(out);
	if (fat->containers.count == 0 || fat->kind == KP_FATBIN_CONVERTED)
		goto out;
	err = device_code_settle(fat, path, look->in_tree, out->packed, why);
	for (size_t i = 0; i < out->n_images; i++)
		any |= out->packed[i];
	/* a file with containers, but without code to pack, is as any other file */
	if (!any && (fat->kind == KP_FATBIN_NESTED ||
		     (fat->kind == KP_FATBIN_BARE && look->in_tree)))
		fat->kind = KP_FATBIN_NONE;
out:
	close_file(out);
	if (err)
		input_fini(out);
	return err;
}

kpack_error_t input_open_database(const char *path, const char *key,
				  const struct library_object *objects, size_t n,
				  struct input *out, struct kpackx_error *why)
{
	kpack_error_t err;
	uint64_t size;

	begin_input(out, path, key);
	out->kind = INPUT_DATABASE;
	out->objects = objects;
	err = below_file_open(path, &out->fd, &out->st, why);
	close_file(out);
	if (err)
		goto fail;
	size = (uint64_t)out->st.st_size;
	out->images = xcalloc(n, sizeof(*out->images));
	out->n_images = n;
	for (size_t i = 0; i < n; i++) {
		const struct library_object *o = &objects[i];
		struct kp_image *img = &out->images[i];

		img->container = img->inside = KP_NOWHERE;
		img->offset = o->offset;
		img->size = o->size;
		snprintf(img->arch, sizeof(img->arch), "%s",
			 *o->family ? o->family : o->arches[0]);
		if (img->size > size || img->offset > size - img->size) {
			err = kp_fail(why, KPACK_ERROR_IO_ERROR,
				      "the file changed while it was looked at");
			goto fail;
		}
	}
	make_tables(out);
	memset(out->packed, true, n * sizeof(*out->packed));
	return KPACK_SUCCESS;
fail:
	input_fini(out);
	return err;
}

void input_fini(struct input *in)
{
	for (size_t i = 0; in->payloads && i < in->fat.containers.count; i++)
		kp_payload_fini(&in->payloads[i].payload);
	free(in->payloads);
	free(in->xxh3);
	free(in->known);
	free(in->packed);
	if (in->kind == INPUT_DATABASE)
		free(in->images);
	kp_fatbin_fini(&in->fat);
	close_file(in);
	free(in->path);
	free(in->key);
	pthread_cond_destroy(&in->loaded);
	pthread_mutex_destroy(&in->lock);
	*in = (struct input){.fd = -1};
}

/*
 * Reopen the file for packing; it must still be the one that was scanned.  Called locked.
 */
static kpack_error_t reopen_file(struct input *in, struct kpackx_error *why)
{
	const struct file_identity was = file_identity_of(&in->st);
	struct stat st;

	if (in->fd >= 0)
		return KPACK_SUCCESS;
	KP_TRY(below_file_open(in->path, &in->fd, &st, why));
	in->fat.source.fd = in->fd;
	if (file_identity_is(&was, &st))
		return KPACK_SUCCESS;
	close_file(in);
	return kp_fail(why, KPACK_ERROR_IO_ERROR, "the file changed while it was packed");
}

/* Returns the container around CONTAINER, or KP_NOWHERE. */
static size_t container_around(const struct input *in, size_t container)
{
	const struct kp_containers *list = &in->fat.containers;
	size_t inside = list->items[container].inside;

	return inside == KP_NOWHERE ? KP_NOWHERE : list->images[inside].container;
}

/* The source of an image, whose container is loaded. */
static kpack_error_t image_source(const struct kp_source *payload,
				  const struct kp_image *img, struct kp_source *out,
				  struct kpackx_error *why)
{
	return kp_source_sub(payload, img->offset, img->size, out)
		       ? KPACK_SUCCESS
		       : kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				 "an object passes the end of its container");
}

/*
 * Decode the container if no other thread has.  Called locked, and unlocked while
 * decoding.
 */
static kpack_error_t load_container(struct input *in, size_t container,
				    struct kpackx_error *why)
{
	const struct kp_containers *list = &in->fat.containers;
	struct input_payload *p = &in->payloads[container];
	size_t outer = container_around(in, container);
	struct kp_source source = in->fat.source;

	while (p->state == LOADING)
		pthread_cond_wait(&in->loaded, &in->lock);
	if (p->state == EMPTY) {
		p->state = LOADING;
		p->err = outer == KP_NOWHERE ? KPACK_SUCCESS
					     : load_container(in, outer, &p->why);
		pthread_mutex_unlock(&in->lock);
		if (!p->err && outer != KP_NOWHERE)
			p->err =
				image_source(&in->payloads[outer].payload.source,
					     &list->images[list->items[container].inside],
					     &source, &p->why);
		if (!p->err)
			p->err = kp_container_load(&source, &list->items[container],
						   &p->payload, &p->why);
		pthread_mutex_lock(&in->lock);
		p->state = p->err ? FAILED : LOADED;
		pthread_cond_broadcast(&in->loaded);
	}
	if (p->err && why)
		*why = p->why;
	return p->err;
}

/* Get what the offsets of the images in CONTAINER refer to.  Called locked. */
static kpack_error_t open_payload(struct input *in, size_t container,
				  struct kp_source *out, struct kpackx_error *why)
{
	KP_TRY(reopen_file(in, why));
	if (container == KP_NOWHERE) {
		*out = kp_source_fd(in->fd, 0, (uint64_t)in->st.st_size);
		return KPACK_SUCCESS;
	}
	KP_TRY(load_container(in, container, why));
	*out = in->payloads[container].payload.source;
	return KPACK_SUCCESS;
}

void input_close_image(struct input *in, size_t image)
{
	pthread_mutex_lock(&in->lock);
	for (size_t c = in->images[image].container; c != KP_NOWHERE;
	     c = container_around(in, c)) {
		struct input_payload *p = &in->payloads[c];

		if (--p->expected)
			break;
		kp_payload_fini(&p->payload);
	}
	if (--in->users == 0)
		close_file(in);
	pthread_mutex_unlock(&in->lock);
}

kpack_error_t input_open_image(struct input *in, size_t image, struct kp_source *out,
			       struct kpackx_error *why)
{
	const struct kp_image *img = &in->images[image];
	struct kp_source payload;
	kpack_error_t err;

	pthread_mutex_lock(&in->lock);
	err = open_payload(in, img->container, &payload, why);
	if (!err)
		err = image_source(&payload, img, out, why);
	pthread_mutex_unlock(&in->lock);
	if (err)
		input_close_image(in, image);
	return err;
}

bool input_image_spilled(const struct input *in, size_t image)
{
	size_t container = in->images[image].container;

	return container != KP_NOWHERE && in->payloads[container].payload.spilled;
}

void input_end_peek(struct input *in, size_t image, size_t next)
{
	pthread_mutex_lock(&in->lock);
	for (size_t c = in->images[image].container; c != KP_NOWHERE;
	     c = container_around(in, c)) {
		size_t needed =
			next == KP_NOWHERE ? KP_NOWHERE : in->images[next].container;

		/* it stays if NEXT is in it, and so does what is around it */
		while (needed != KP_NOWHERE && needed != c)
			needed = container_around(in, needed);
		if (needed == c)
			break;
		kp_payload_fini(&in->payloads[c].payload);
		in->payloads[c].state = EMPTY;
	}
	if (next == KP_NOWHERE)
		close_file(in);
	pthread_mutex_unlock(&in->lock);
}

kpack_error_t input_peek(struct input *in, size_t image, void *buf, size_t size,
			 size_t *out, struct kpackx_error *why)
{
	const struct kp_image *img = &in->images[image];
	struct kp_source payload, source;
	kpack_error_t err;

	*out = img->size < size ? (size_t)img->size : size;
	pthread_mutex_lock(&in->lock);
	err = open_payload(in, img->container, &payload, why);
	if (!err)
		err = image_source(&payload, img, &source, why);
	if (!err)
		err = kp_source_read(&source, (img->size - *out) / 2, buf, *out, why);
	pthread_mutex_unlock(&in->lock);
	return err;
}

kpack_error_t input_hold(struct input *in, int *fd, struct kpackx_error *why)
{
	kpack_error_t err;

	pthread_mutex_lock(&in->lock);
	err = reopen_file(in, why);
	if (!err)
		in->users++;
	*fd = in->fd;
	pthread_mutex_unlock(&in->lock);
	return err;
}

void input_release(struct input *in)
{
	pthread_mutex_lock(&in->lock);
	if (--in->users == 0)
		close_file(in);
	pthread_mutex_unlock(&in->lock);
}

/* The cost of a compressed payload is shared by the images in it. */
uint64_t input_cost(const struct input *in, size_t image)
{
	uint64_t cost = 0;

	for (size_t c = in->images[image].container; c != KP_NOWHERE;
	     c = container_around(in, c)) {
		if (in->payloads[c].images)
			cost += kp_payload_memory(&in->fat.containers.items[c]) /
				in->payloads[c].images;
	}
	return cost;
}

void input_expect(struct input *in, size_t container, unsigned images)
{
	bool begun = false;

	if (images == 0)
		return;
	in->users += images;
	for (size_t c = container; c != KP_NOWHERE; c = container_around(in, c)) {
		struct input_payload *p = &in->payloads[c];

		p->images += images;
		if (begun)
			continue;
		begun = p->expected;
		p->expected += c == container ? images : 1;
	}
}
