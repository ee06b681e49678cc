/* SPDX-License-Identifier: MIT */
#include "format.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core/base/bounds.h"
#include "core/base/spill.h"

/* Bytes at the beginning of a container in .hip_fatbin that suffice to recognise it. */
#define HEAD_SIZE 64

/* Padding is read in growing steps: most of it ends within a page. */
#define PAD_STEP_MIN 4096
#define PAD_STEP_MAX 65536

static const struct kp_format *const hip_formats[] = {&kp_format_bundle, &kp_format_ccob,
						      &kp_format_code_object};
#define HIP_FORMATS KP_COUNT(hip_formats)

const struct kp_format *kp_format_probe_hip(struct kp_span head)
{
	for (size_t i = 0; i < HIP_FORMATS; i++) {
		if (hip_formats[i]->probe(head))
			return hip_formats[i];
	}
	return NULL;
}

bool kp_format_is_hip(const struct kp_format *format)
{
	for (size_t i = 0; i < HIP_FORMATS; i++) {
		if (hip_formats[i] == format)
			return true;
	}
	return false;
}

/*
 * Make room for one more item.  Capacities are powers of two, so the count alone gives
 * the capacity.
 */
static kpack_error_t grow_items(void **items, size_t count, size_t size, const char *what,
				struct kpackx_error *why)
{
	size_t room = count ? 2 * count : 1;
	void *grown;

	if (count & (count - 1))
		return KPACK_SUCCESS;
	grown = room > SIZE_MAX / size ? NULL : realloc(*items, room * size);
	if (!grown)
		return kp_fail_memory(why, (uint64_t)room * size, what);
	*items = grown;
	return KPACK_SUCCESS;
}

static kpack_error_t copy_id(struct kp_containers *list, struct kp_image *image,
			     struct kp_span id, struct kpackx_error *why)
{
	if (id.size >= KP_IDS_MAX - list->id_bytes)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "entry IDs and names of more than %d bytes in all",
			       KP_IDS_MAX);
	if (memchr(id.data, '\0', id.size))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "entry ID of %zu bytes contains a NUL byte", id.size);
	image->id = malloc(id.size + 1);
	if (!image->id)
		return kp_fail_memory(why, id.size + 1, "an entry ID");
	memcpy(image->id, id.data, id.size);
	image->id[id.size] = '\0';
	list->id_bytes += id.size + 1;
	return KPACK_SUCCESS;
}

/* Set kind, arch and host from the ID, unless the ID cannot be split. */
static void interpret_id(struct kp_image *image, struct kp_span id)
{
	struct kp_entry_id parts;

	if (!kp_entry_id_parse(id, &parts))
		return;
	snprintf(image->kind, sizeof(image->kind), "%.*s", (int)parts.kind.size,
		 (const char *)parts.kind.data);
	image->host = kp_entry_id_is_host(&parts);
	if (!image->host && parts.target.size)
		kp_target_canonical(parts.target, image->arch);
}

kpack_error_t kp_containers_add_image(struct kp_containers *list, struct kp_container *c,
				      struct kp_span id, uint64_t offset, uint64_t size,
				      struct kpackx_error *why)
{
	struct kp_image image = {.container = list->count,
				 .offset = offset,
				 .size = size,
				 .inside = KP_NOWHERE};
	void *items = list->images;

	if (list->n_images >= KP_IMAGES_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "more than %d entries in all", KP_IMAGES_MAX);
	KP_TRY(grow_items(&items, list->n_images, sizeof(image), "the list of images",
			  why));
	list->images = items;
	if (id.data) {
		KP_TRY(copy_id(list, &image, id, why));
		interpret_id(&image, id);
	}
	list->images[list->n_images++] = image;
	c->n_images++;
	return KPACK_SUCCESS;
}

static bool all_zero(const uint8_t *p, size_t n)
{
	return n == 0 || (p[0] == 0 && memcmp(p, p + 1, n - 1) == 0);
}

/* Move *POS to the next nonzero byte, or to the end. */
kpack_error_t kp_skip_zeros(const struct kp_source *src, uint64_t *pos,
			    struct kpackx_error *why)
{
	uint8_t buf[PAD_STEP_MAX];
	size_t step = PAD_STEP_MIN, n, i = 0;

	for (; *pos < src->size; *pos += n) {
		n = src->size - *pos < step ? (size_t)(src->size - *pos) : step;
		KP_TRY(kp_source_read(src, *pos, buf, n, why));
		if (!all_zero(buf, n)) {
			while (buf[i] == 0)
				i++;
			*pos += i;
			return KPACK_SUCCESS;
		}
		step = step < PAD_STEP_MAX ? 2 * step : PAD_STEP_MAX;
	}
	return KPACK_SUCCESS;
}

/* Remove the images from FIRST on. */
static void drop_images(struct kp_containers *list, size_t first)
{
	for (size_t i = first; i < list->n_images; i++) {
		if (list->images[i].id)
			list->id_bytes -= strlen(list->images[i].id) + 1;
		free(list->images[i].id);
		kp_pairs_fini(&list->images[i].pairs);
	}
	list->n_images = first;
}

static kpack_error_t fail_unknown(struct kp_span head, uint64_t off,
				  struct kpackx_error *why)
{
	char hex[3 * 8 + 1] = "";

	for (size_t i = 0; i < head.size && i < 8; i++)
		snprintf(hex + 3 * i, 4, " %02x", head.data[i]);
	return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
		       "offset %" PRIu64 ": no container begins with%s", off, hex);
}

static kpack_error_t append_container(const struct kp_source *src, uint64_t off,
				      const struct kp_format *format, kp_parse_fn *parse,
				      size_t inside, struct kp_containers *list,
				      struct kpackx_error *why)
{
	struct kp_container c = {.format = format,
				 .inside = inside,
				 .next = KP_NOWHERE,
				 .offset = off,
				 .first_image = list->n_images};
	void *items = list->items;
	kpack_error_t err;

	if (list->count >= KP_IMAGES_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "more than %d containers in all", KP_IMAGES_MAX);
	KP_TRY(grow_items(&items, list->count, sizeof(c), "the list of containers", why));
	list->items = items;
	err = parse(src, off, &c, list, why);
	if (!err && (c.size == 0 || !kp_range_ok(src->size, off, c.size)))
		err = kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			      "impossible size of %" PRIu64 " bytes", c.size);
	if (err != KPACK_SUCCESS) {
		drop_images(list, c.first_image);
		return kp_fail_prefix(why, err, "%s at offset %" PRIu64, format->name,
				      off);
	}
	list->items[list->count++] = c;
	return KPACK_SUCCESS;
}

kpack_error_t kp_containers_add(const struct kp_source *src, uint64_t off,
				const struct kp_format *format, size_t inside,
				struct kp_containers *list, struct kpackx_error *why)
{
	return append_container(src, off, format, format->parse, inside, list, why);
}

kpack_error_t kp_containers_salvage(const struct kp_source *src, uint64_t off,
				    const struct kp_format *format, size_t inside,
				    struct kp_containers *list, struct kpackx_error *why)
{
	if (!format->salvage)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "a damaged %s is not read in part", format->name);
	return append_container(src, off, format, format->salvage, inside, list, why);
}

/* Read the container at OFF, whose format may occur in .hip_fatbin, and append it. */
static kpack_error_t add_container(const struct kp_source *src, uint64_t off,
				   struct kp_containers *list, struct kpackx_error *why)
{
	uint8_t bytes[HEAD_SIZE];
	const struct kp_format *format;
	struct kp_span head;

	KP_TRY(kp_source_head(src, off, bytes, sizeof(bytes), &head, why));
	format = kp_format_probe_hip(head);
	if (!format)
		return fail_unknown(head, off, why);
	KP_TRY(kp_containers_add(src, off, format, KP_NOWHERE, list, why));
	if (list->count > 1)
		list->items[list->count - 2].next = list->count - 1;
	return KPACK_SUCCESS;
}

kpack_error_t kp_containers_scan(const struct kp_source *src, struct kp_containers *out,
				 struct kpackx_error *why)
{
	kpack_error_t err = KPACK_SUCCESS;
	uint64_t pos = 0;

	*out = (struct kp_containers){0};
	for (;;) {
		err = kp_skip_zeros(src, &pos, why);
		if (err != KPACK_SUCCESS || pos == src->size)
			break;
		err = add_container(src, pos, out, why);
		if (err != KPACK_SUCCESS)
			break;
		pos += out->items[out->count - 1].size;
	}
	if (err != KPACK_SUCCESS)
		kp_containers_fini(out);
	return err;
}

void kp_containers_fini(struct kp_containers *list)
{
	drop_images(list, 0);
	free(list->images);
	free(list->items);
	*list = (struct kp_containers){0};
}

kpack_error_t kp_container_load(const struct kp_source *src, const struct kp_container *c,
				struct kp_payload *out, struct kpackx_error *why)
{
	return kp_container_load_most(src, c, NULL, NULL, out, why);
}

kpack_error_t kp_container_load_most(const struct kp_source *src,
				     const struct kp_container *c, kp_image_fault *fault,
				     void *arg, struct kp_payload *out,
				     struct kpackx_error *why)
{
	kpack_error_t err;

	*out = (struct kp_payload){.source = {.fd = -1}};
	if (c->format->load) {
		err = fault && c->format->load_most
			      ? c->format->load_most(src, c, fault, arg, out, why)
			      : c->format->load(src, c, out, why);
		if (err != KPACK_SUCCESS)
			return kp_fail_prefix(why, err, "%s at offset %" PRIu64,
					      c->format->name, c->offset);
		return KPACK_SUCCESS;
	}
	if (!kp_source_sub(src, c->offset, c->size, &out->source))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "%s at offset %" PRIu64 ": %" PRIu64
			       " bytes pass the end at %" PRIu64,
			       c->format->name, c->offset, c->size, src->size);
	return KPACK_SUCCESS;
}

kpack_error_t kp_containers_load(const struct kp_source *src,
				 const struct kp_containers *list, size_t number,
				 struct kp_payload *out, struct kpackx_error *why)
{
	const struct kp_container *c = &list->items[number];
	struct kp_payload around = {.source = *src};
	struct kp_source image;
	kpack_error_t err = KPACK_SUCCESS;

	*out = (struct kp_payload){.source = {.fd = -1}};
	if (c->inside == KP_NOWHERE)
		return kp_container_load(src, c, out, why);
	KP_TRY(kp_containers_load(src, list, list->images[c->inside].container, &around,
				  why));
	if (!kp_source_sub(&around.source, list->images[c->inside].offset,
			   list->images[c->inside].size, &image))
		err = kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			      "an image passes the end of its container");
	if (!err)
		err = kp_container_load(&image, c, out, why);
	if (!err && !out->heap && !out->spilled) {
		/* OUT refers to the payload around it */
		out->heap = around.heap;
		out->spilled = around.spilled;
		around.heap = NULL;
		around.spilled = false;
	}
	kp_payload_fini(&around);
	return err;
}

void kp_payload_fini(struct kp_payload *payload)
{
	if (payload->map)
		munmap(payload->map, (size_t)payload->source.size);
	if (payload->spilled)
		close(payload->source.fd);
	free(payload->heap);
	*payload = (struct kp_payload){.source = {.fd = -1}};
}

kpack_error_t kp_payload_map(struct kp_payload *payload, struct kp_span *out,
			     struct kpackx_error *why)
{
	size_t size = (size_t)payload->source.size;
	void *map = payload->map;

	if (payload->spilled && !map) {
		map = mmap(NULL, size, PROT_READ, MAP_SHARED, payload->source.fd, 0);
		if (map == MAP_FAILED)
			return kp_fail_errno(why, errno, "cannot map a temporary file");
		payload->map = map;
	}
	*out = (struct kp_span){map ? map : payload->heap, size};
	return KPACK_SUCCESS;
}

uint64_t kp_payload_memory(const struct kp_container *c)
{
	bool spilled = c->format == &kp_format_ccob && kp_spills(c->payload_size);

	return c->format->load && !spilled ? c->payload_size : 0;
}
