/* SPDX-License-Identifier: MIT */
#include "input.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum payload_state { EMPTY, LOADING, LOADED, FAILED };

struct input_payload {
	enum payload_state state;
	unsigned expected; /* images still to be read */
	struct kp_payload payload;
	kpack_error_t err;
	struct kpackx_error why;
};

static kpack_error_t look(struct input *in, struct kpackx_error *why)
{
	int fd;

	KP_TRY(kp_file_open(in->path, &fd, &in->st, why));
	in->fd = fd;
	return kp_fatbin_open(fd, (uint64_t)in->st.st_size, &in->fat, why);
}

static void close_file(struct input *in)
{
	if (in->fd >= 0)
		close(in->fd);
	in->fd = -1;
}

static kpack_error_t make_tables(struct input *in, struct kpackx_error *why)
{
	const struct kp_containers *list = &in->fat.containers;

	if (list->count == 0)
		return KPACK_SUCCESS;
	in->payloads = calloc(list->count, sizeof(*in->payloads));
	in->xxh3 = calloc(list->n_images + 1, sizeof(*in->xxh3));
	in->known = calloc(list->n_images + 1, sizeof(*in->known));
	return in->payloads && in->xxh3 && in->known
		       ? KPACK_SUCCESS
		       : kp_fail_memory(why, list->count, "containers");
}

/* What a file of a database is made of: itself. */
static const struct kp_format whole_file = {.name = "file"};

const char *input_place(const struct library_object *object)
{
	return *object->family ? object->family : object->arches[0];
}

/* One container, the file, with an image for each object. */
static kpack_error_t list_objects(struct input *in, const struct library_object *objects,
				  size_t n, struct kpackx_error *why)
{
	struct kp_containers *list = &in->fat.containers;
	uint64_t size = (uint64_t)in->st.st_size;

	in->objects = objects;
	list->items = malloc(sizeof(*list->items));
	list->images = calloc(n, sizeof(*list->images));
	if (!list->items || !list->images)
		return kp_fail_memory(why, n * sizeof(*list->images), "objects");
	list->items[0] = (struct kp_container){
		.format = &whole_file, .size = size, .payload_size = size, .n_images = n};
	list->count = 1;
	list->n_images = n;
	for (size_t i = 0; i < n; i++) {
		struct kp_image *img = &list->images[i];

		img->offset = objects[i].offset;
		img->size = objects[i].size;
		snprintf(img->arch, sizeof(img->arch), "%s", input_place(&objects[i]));
		if (img->size > size || img->offset > size - img->size)
			return kp_fail(why, KPACK_ERROR_IO_ERROR,
				       "the file changed while it was looked at");
	}
	return KPACK_SUCCESS;
}

static kpack_error_t look_at_database(struct input *in,
				      const struct library_object *objects, size_t n,
				      struct kpackx_error *why)
{
	int fd;

	KP_TRY(kp_file_open(in->path, &fd, &in->st, why));
	in->fd = fd;
	in->fat.source = kp_source_fd(fd, 0, (uint64_t)in->st.st_size);
	return list_objects(in, objects, n, why);
}

/* OBJECTS NULL: a binary. */
static kpack_error_t open_any(const char *path, const char *key,
			      const struct library_object *objects, size_t n,
			      struct input *out, struct kpackx_error *why)
{
	kpack_error_t err;

	*out = (struct input){.path = strdup(path), .key = strdup(key), .fd = -1};
	out->shown = out->path;
	pthread_mutex_init(&out->lock, NULL);
	pthread_cond_init(&out->loaded, NULL);
	if (!out->path || !out->key)
		err = kp_fail_memory(why, strlen(path), "a path");
	else
		err = objects ? look_at_database(out, objects, n, why) : look(out, why);
	close_file(out);
	if (!err)
		err = make_tables(out, why);
	if (err)
		input_fini(out);
	return err;
}

kpack_error_t input_open(const char *path, const char *key, struct input *out,
			 struct kpackx_error *why)
{
	return open_any(path, key, NULL, 0, out, why);
}

kpack_error_t input_open_database(const char *path, const char *key,
				  const struct library_object *objects, size_t n,
				  struct input *out, struct kpackx_error *why)
{
	return open_any(path, key, objects, n, out, why);
}

void input_fini(struct input *in)
{
	for (size_t i = 0; in->payloads && i < in->fat.containers.count; i++)
		kp_payload_fini(&in->payloads[i].payload);
	free(in->payloads);
	free(in->xxh3);
	free(in->known);
	kp_fatbin_fini(&in->fat);
	close_file(in);
	free(in->path);
	free(in->key);
	pthread_cond_destroy(&in->loaded);
	pthread_mutex_destroy(&in->lock);
	*in = (struct input){.fd = -1};
}

/* Open it again for packing; it must still be the file that was scanned.  Locked. */
static kpack_error_t reopen(struct input *in, struct kpackx_error *why)
{
	struct stat st;

	if (in->fd >= 0)
		return KPACK_SUCCESS;
	KP_TRY(kp_file_open(in->path, &in->fd, &st, why));
	in->fat.source.fd = in->fd;
	if (st.st_ino == in->st.st_ino && st.st_dev == in->st.st_dev &&
	    st.st_size == in->st.st_size && st.st_mtim.tv_sec == in->st.st_mtim.tv_sec &&
	    st.st_mtim.tv_nsec == in->st.st_mtim.tv_nsec)
		return KPACK_SUCCESS;
	close_file(in);
	return kp_fail(why, KPACK_ERROR_IO_ERROR, "the file changed while it was packed");
}

/* Decode the container once, whoever comes first.  Locked, and unlocked while decoding. */
static kpack_error_t load(struct input *in, size_t container, struct kpackx_error *why)
{
	struct input_payload *p = &in->payloads[container];

	while (p->state == LOADING)
		pthread_cond_wait(&in->loaded, &in->lock);
	if (p->state == EMPTY) {
		p->state = LOADING;
		pthread_mutex_unlock(&in->lock);
		p->err = kp_container_load(&in->fat.source,
					   &in->fat.containers.items[container],
					   &p->payload, &p->why);
		pthread_mutex_lock(&in->lock);
		p->state = p->err ? FAILED : LOADED;
		pthread_cond_broadcast(&in->loaded);
	}
	if (p->err && why)
		*why = p->why;
	return p->err;
}

/* One image less to come; let go of what nobody needs any more.  Locked. */
static void done_with(struct input *in, size_t container)
{
	struct input_payload *p = &in->payloads[container];

	if (--p->expected == 0) {
		kp_payload_fini(&p->payload);
		p->payload = (struct kp_payload){0};
	}
	if (--in->users == 0)
		close_file(in);
}

void input_close_image(struct input *in, size_t image)
{
	pthread_mutex_lock(&in->lock);
	done_with(in, in->fat.containers.images[image].container);
	pthread_mutex_unlock(&in->lock);
}

kpack_error_t input_open_image(struct input *in, size_t image, struct kp_source *out,
			       struct kpackx_error *why)
{
	const struct kp_image *img = &in->fat.containers.images[image];
	const struct kp_source *payload;
	kpack_error_t err;

	pthread_mutex_lock(&in->lock);
	err = reopen(in, why);
	if (!err)
		err = load(in, img->container, why);
	payload = &in->payloads[img->container].payload.source;
	if (!err && !kp_source_sub(payload, img->offset, img->size, out))
		err = kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			      "an object passes the end of its container");
	pthread_mutex_unlock(&in->lock);
	if (err)
		input_close_image(in, image);
	return err;
}

kpack_error_t input_read(struct input *in, size_t image, void *buf,
			 struct kpackx_error *why)
{
	struct kp_source source;
	kpack_error_t err;

	KP_TRY(input_open_image(in, image, &source, why));
	err = kp_source_read(&source, 0, buf, (size_t)source.size, why);
	input_close_image(in, image);
	return err;
}

kpack_error_t input_peek(struct input *in, size_t image, void *buf, size_t size,
			 struct kpackx_error *why)
{
	const struct kp_image *img = &in->fat.containers.images[image];
	struct kp_payload payload = {0};
	kpack_error_t err = reopen(in, why);

	if (!err)
		err = kp_container_load(&in->fat.source,
					&in->fat.containers.items[img->container],
					&payload, why);
	if (!err)
		err = kp_source_read(&payload.source, img->offset, buf, size, why);
	kp_payload_fini(&payload);
	close_file(in);
	return err;
}

kpack_error_t input_hold(struct input *in, int *fd, struct kpackx_error *why)
{
	kpack_error_t err;

	pthread_mutex_lock(&in->lock);
	err = reopen(in, why);
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

uint64_t input_cost(const struct input *in, size_t image)
{
	const struct kp_image *img = &in->fat.containers.images[image];
	const struct kp_container *c = &in->fat.containers.items[img->container];

	/* a compressed payload is shared by its images */
	return c->format->load && c->n_images ? c->payload_size / c->n_images : 0;
}

void input_expect(struct input *in, size_t container, unsigned images)
{
	in->payloads[container].expected += images;
	in->users += images;
}
