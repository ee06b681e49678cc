/* SPDX-License-Identifier: MIT */
#include "look.h"
#include <stdio.h>
#include <stdlib.h>
#include "walk.h"
#include "packer/cli/xalloc.h"

/*
 * Images up to this size are held in memory and read once; larger ones are partly reread.
 */
#define HOLD_MAX (64 << 20)
#define PIECE (1 << 20)

void inspect_seen_drop(struct inspect_seen *seen)
{
	if (seen->object)
		kp_object_fini(seen->object);
	free(seen->object);
	seen->object = NULL;
}

/* Compute the SHA-256 of SRC, which is too long to hold in memory. */
static kpack_error_t hash_pieces(struct inspect_thread *thread,
				 const struct kp_source *src, char out[DIGEST_TEXT],
				 struct kpackx_error *why)
{
	uint8_t *buf = inspect_thread_room(thread, PIECE);

	if (!buf)
		return kp_fail_memory(why, PIECE, "reading");
	digest_begin(&thread->hash, DIGEST_SHA256);
	for (uint64_t at = 0; at < src->size; at += PIECE) {
		uint64_t left = src->size - at;
		size_t n = (size_t)(left < PIECE ? left : PIECE);

		KP_TRY(kp_source_read(src, at, buf, n, why));
		digest_add(&thread->hash, (struct kp_span){buf, n});
	}
	return digest_end_text(&thread->hash, out, why);
}

/* Read SRC into memory and compute its SHA-256. */
static kpack_error_t hash_whole(struct inspect_thread *thread, struct kp_source *src,
				char out[DIGEST_TEXT], struct kpackx_error *why)
{
	size_t size = (size_t)src->size;

	if (src->fd >= 0) {
		uint8_t *buf = inspect_thread_room(thread, size + 1);

		if (!buf)
			return kp_fail_memory(why, size, "an image");
		KP_TRY(kp_source_read(src, 0, buf, size, why));
		*src = kp_source_memory(buf, size);
	}
	return digest_text((struct kp_span){src->mem, size}, out, why);
}

static kpack_error_t describe_image(const struct kp_source *src,
				    struct inspect_seen *seen, struct kpackx_error *why)
{
	seen->object = xcalloc(1, sizeof(*seen->object));
	KP_TRY(kp_object_describe(src, seen->object, why));
	seen->n_kernels = seen->object->n_kernels;
	return KPACK_SUCCESS;
}

/* Find the type by the first bytes, so that undescribable objects have one, too. */
static kpack_error_t find_type(const struct kp_image *image, const struct kp_source *src,
			       struct inspect_seen *seen, struct kpackx_error *why)
{
	uint8_t bytes[KP_HEAD_SIZE];
	struct kp_span head;

	KP_TRY(kp_source_head(src, 0, bytes, sizeof(bytes), &head, why));
	seen->type = kp_image_type(image, head);
	return KPACK_SUCCESS;
}

static kpack_error_t look_at(struct inspect_look *look, struct inspect_thread *thread,
			     size_t image, const struct kp_source *src,
			     struct kpackx_error *why)
{
	const struct kp_image *img = &look->file->list.images[image];
	struct inspect_seen *seen = &look->seen[image];
	struct kp_source own = *src;

	seen->in_file = src->fd >= 0;
	seen->offset = src->offset;
	if (src->size <= HOLD_MAX || src->fd < 0)
		KP_TRY(hash_whole(thread, &own, seen->sha256, why));
	else
		KP_TRY(hash_pieces(thread, src, seen->sha256, why));
	KP_TRY(find_type(img, &own, seen, why));
	KP_TRY(describe_image(&own, seen, why));
	snprintf(seen->arch, sizeof(seen->arch), "%s",
		 inspect_arch(&look->file->list, img, seen->object->arch));
	return KPACK_SUCCESS;
}

static kpack_error_t look_at_leaf(void *arg, struct inspect_thread *thread, size_t image,
				  const struct kp_source *src, struct kpackx_error *why)
{
	struct inspect_look *look = arg;
	kpack_error_t err = look_at(look, thread, image, src, why);

	look->finish(look, image);
	return err;
}

static kpack_error_t read_packed(void *arg, size_t container, const struct kp_source *src,
				 const struct kp_payload *payload,
				 struct kpackx_error *why)
{
	struct inspect_look *look = arg;

	return inspect_packed_read(src, &look->file->list.items[container], payload,
				   &look->packed[container], why);
}

static void job_done(void *arg, const struct inspect_job *job)
{
	struct inspect_look *look = arg;

	look->done(look, job);
}

kpack_error_t inspect_look_run(struct inspect_look *look, struct kpackx_error *why)
{
	const struct inspect_walk walk = {.file = look->file,
					  .arg = look,
					  .leaf = look_at_leaf,
					  .decoded = read_packed,
					  .done = job_done};
	const struct kp_containers *list = &look->file->list;

	look->seen = xcalloc(list->n_images, sizeof(*look->seen));
	look->packed = xcalloc(list->count, sizeof(*look->packed));
	/* the default until an image is read */
	for (size_t i = 0; i < list->n_images; i++)
		memcpy(look->seen[i].arch, list->images[i].arch,
		       sizeof(look->seen[i].arch));
	return inspect_walk_run(&walk, why);
}

void inspect_look_fini(struct inspect_look *look)
{
	for (size_t i = 0; look->seen && i < look->file->list.n_images; i++) {
		inspect_seen_drop(&look->seen[i]);
		free(look->seen[i].text);
	}
	free(look->seen);
	free(look->packed);
}
