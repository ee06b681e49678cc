/* SPDX-License-Identifier: MIT */
/*
 * Lists of containers, their images, and what images and objects say about themselves
 * (format.h has the terms).  This is the part that librocm_kpack has too: of all formats
 * it knows only those of .hip_fatbin.
 */
#include "format.h"
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "core/base/file.h"

/*
 * Bytes at the beginning of a container in .hip_fatbin that suffice to recognise it: a
 * section may have thousands of containers.
 */
#define HEAD_SIZE 64

/* Padding is read in growing steps: most of it ends within a page. */
#define PAD_STEP_MIN 4096
#define PAD_STEP_MAX 65536

static const struct kp_format *const hip_formats[] = {&kp_format_bundle, &kp_format_ccob,
						      &kp_format_code_object};

const struct kp_format *kp_format_probe_hip(struct kp_span head)
{
	for (size_t i = 0; i < KP_COUNT(hip_formats); i++)
		if (hip_formats[i]->probe(head))
			return hip_formats[i];
	return NULL;
}

bool kp_format_is_hip(const struct kp_format *format)
{
	for (size_t i = 0; i < KP_COUNT(hip_formats); i++)
		if (hip_formats[i] == format)
			return true;
	return false;
}

/* ---- pairs ---- */

static char *copy_bytes(struct kp_span bytes)
{
	char *out = malloc(bytes.size + 1);

	if (!out)
		return NULL;
	if (bytes.size)
		memcpy(out, bytes.data, bytes.size);
	out[bytes.size] = '\0';
	return out;
}

/* An image has a handful of pairs: one more realloc for each costs nothing. */
kpack_error_t kp_pairs_add(struct kp_pairs *pairs, struct kp_span name,
			   struct kp_span value, struct kpackx_error *why)
{
	struct kp_pair pair = {copy_bytes(name), copy_bytes(value), value.size};
	struct kp_pair *grown =
		realloc(pairs->items, (pairs->count + 1) * sizeof(*grown));

	if (grown)
		pairs->items = grown;
	if (!grown || !pair.name || !pair.value) {
		free(pair.name);
		free(pair.value);
		return kp_fail_memory(why, name.size + value.size, "a pair");
	}
	pairs->items[pairs->count++] = pair;
	return KPACK_SUCCESS;
}

kpack_error_t kp_pairs_print(struct kp_pairs *pairs, struct kpackx_error *why,
			     const char *name, const char *fmt, ...)
{
	kpack_error_t err;
	va_list ap;
	char *text;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		return kp_fail_memory(why, 0, "a value");
	err = kp_pairs_add(pairs, kp_span_str(name), kp_span_str(text), why);
	free(text);
	return err;
}

const char *kp_pairs_find(const struct kp_pairs *pairs, const char *name)
{
	for (size_t i = 0; i < pairs->count; i++)
		if (strcmp(pairs->items[i].name, name) == 0)
			return pairs->items[i].value;
	return NULL;
}

void kp_pairs_fini(struct kp_pairs *pairs)
{
	for (size_t i = 0; i < pairs->count; i++) {
		free(pairs->items[i].name);
		free(pairs->items[i].value);
	}
	free(pairs->items);
	*pairs = (struct kp_pairs){0};
}

/* ---- objects ---- */

/* After failures too an object has a type, that of unknown bytes. */
void kp_object_fini(struct kp_object *object)
{
	for (size_t i = 0; i < object->n_kernels; i++) {
		free(object->kernels[i].name);
		free(object->kernels[i].symbol);
	}
	free(object->kernels);
	kp_pairs_fini(&object->facts);
	*object = (struct kp_object){.type = "co"};
}

kpack_error_t kp_object_add_kernel(struct kp_object *object, struct kp_span name,
				   struct kp_kernel **out, struct kpackx_error *why)
{
	/* no number is stated */
	struct kp_kernel k = {NULL, NULL, -1, -1, -1, -1, -1, -1, -1, -1};

	if (object->n_kernels >= KP_KERNELS_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "more than %d kernels",
			       KP_KERNELS_MAX);
	KP_TRY(kp_room(&object->kernels, object->n_kernels, &object->kernels_cap,
		       "kernels", why));
	k.name = strndup((const char *)name.data, name.size);
	if (!k.name)
		return kp_fail_memory(why, name.size, "a kernel's name");
	object->kernels[object->n_kernels] = k;
	*out = &object->kernels[object->n_kernels++];
	return KPACK_SUCCESS;
}

/* ---- images ---- */

/*
 * All lists of one source are bounded by KP_IMAGES_MAX and KP_IDS_MAX together, however
 * many containers state them.
 */
kpack_error_t kp_containers_add_named(struct kp_containers *list, struct kp_container *c,
				      struct kp_span name, uint64_t offset, uint64_t size,
				      struct kp_image **image, struct kpackx_error *why)
{
	struct kp_image new = {.container = list->count,
			       .offset = offset,
			       .size = size,
			       .inside = KP_NOWHERE};

	if (list->n_images >= KP_IMAGES_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "more than %d entries in all", KP_IMAGES_MAX);
	if (!list->images_cap) {
		KP_TRY(kp_new(&list->images, 1, "the list of images", why));
		list->images_cap = 1;
	}
	KP_TRY(kp_room(&list->images, list->n_images, &list->images_cap,
		       "the list of images", why));
	if (name.data) {
		if (name.size >= KP_IDS_MAX - list->id_bytes)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "entry IDs and names of more than %d bytes in all",
				       KP_IDS_MAX);
		if (memchr(name.data, '\0', name.size))
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "entry ID of %zu bytes contains a NUL byte",
				       name.size);
		new.id = copy_bytes(name);
		if (!new.id)
			return kp_fail_memory(why, name.size + 1, "an entry ID");
		list->id_bytes += name.size + 1;
	}
	*image = &list->images[list->n_images++];
	**image = new;
	c->n_images++;
	return KPACK_SUCCESS;
}

kpack_error_t kp_containers_add_image(struct kp_containers *list, struct kp_container *c,
				      struct kp_span id, uint64_t offset, uint64_t size,
				      struct kpackx_error *why)
{
	struct kp_image *image;
	struct kp_entry_id parts;

	KP_TRY(kp_containers_add_named(list, c, id, offset, size, &image, why));
	if (!id.data || !kp_entry_id_parse(id, &parts))
		return KPACK_SUCCESS;
	snprintf(image->kind, sizeof(image->kind), "%.*s", (int)parts.kind.size,
		 (const char *)parts.kind.data);
	image->host = kp_span_is(parts.kind, "host");
	if (!image->host && parts.target.size)
		kp_target_canonical(parts.target, image->arch);
	return KPACK_SUCCESS;
}

kpack_error_t kp_containers_add_object(struct kp_containers *list, struct kp_container *c,
				       uint64_t size, struct kp_image **image,
				       struct kpackx_error *why)
{
	c->size = c->payload_size = size;
	return kp_containers_add_named(list, c, (struct kp_span){0}, 0, size, image, why);
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

/* ---- containers ---- */

/*
 * A parser appends images while it reads; those of a container that turns out to be damaged
 * are removed again.  A parser that states a size of 0 would be called for ever.
 */
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
	struct kp_source rest;
	kpack_error_t err;

	if (list->count >= KP_IMAGES_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "more than %d containers in all", KP_IMAGES_MAX);
	/* many lists have one container, and plans keep the lists of all files */
	if (!list->cap) {
		KP_TRY(kp_new(&list->items, 1, "the list of containers", why));
		list->cap = 1;
	}
	KP_TRY(kp_room(&list->items, list->count, &list->cap, "the list of containers",
		       why));
	if (!kp_source_sub(src, off, src->size - off, &rest))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "%s at offset %" PRIu64 ": begins after the end",
			       format->name, off);
	err = parse(&rest, &c, list, why);
	if (!err && (c.size == 0 || c.size > rest.size))
		err = kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			      "impossible size of %" PRIu64 " bytes", c.size);
	if (err) {
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

/* Gaps between containers reach from bytes to megabytes, where sections are padded. */
kpack_error_t kp_skip_zeros(const struct kp_source *src, uint64_t *pos,
			    struct kpackx_error *why)
{
	uint8_t buf[PAD_STEP_MAX];
	size_t step = PAD_STEP_MIN, n, i = 0;

	for (; *pos < src->size; *pos += n) {
		n = src->size - *pos < step ? (size_t)(src->size - *pos) : step;
		KP_TRY(kp_source_read(src, *pos, buf, n, why));
		/* equal to itself one byte on: all bytes are as the first */
		if (buf[0] || memcmp(buf, buf + 1, n - 1) != 0) {
			while (buf[i] == 0)
				i++;
			*pos += i;
			return KPACK_SUCCESS;
		}
		step = step < PAD_STEP_MAX ? 2 * step : PAD_STEP_MAX;
	}
	return KPACK_SUCCESS;
}

kpack_error_t kp_containers_scan(const struct kp_source *src, struct kp_containers *out,
				 struct kpackx_error *why)
{
	kpack_error_t err;
	uint64_t pos = 0;

	*out = (struct kp_containers){0};
	while (!(err = kp_skip_zeros(src, &pos, why)) && pos < src->size) {
		uint8_t bytes[HEAD_SIZE];
		const struct kp_format *format;
		struct kp_span head;

		err = kp_source_head(src, pos, bytes, sizeof(bytes), &head, why);
		if (err)
			break;
		format = kp_format_probe_hip(head);
		if (!format) {
			char hex[3 * 8 + 1] = "";

			for (size_t i = 0; i < head.size && i < 8; i++)
				snprintf(hex + 3 * i, 4, " %02x", head.data[i]);
			err = kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				      "offset %" PRIu64 ": no container begins with%s",
				      pos, hex);
			break;
		}
		err = kp_containers_add(src, pos, format, KP_NOWHERE, out, why);
		if (err)
			break;
		if (out->count > 1)
			out->items[out->count - 2].next = out->count - 1;
		pos += out->items[out->count - 1].size;
	}
	if (err)
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

/* ---- payloads ---- */

kpack_error_t kp_container_load(const struct kp_source *src, const struct kp_container *c,
				struct kp_payload *out, struct kpackx_error *why)
{
	return kp_container_load_most(src, c, NULL, NULL, out, why);
}

/* The source may have become shorter since it was scanned. */
kpack_error_t kp_container_load_most(const struct kp_source *src,
				     const struct kp_container *c, kp_image_fault *fault,
				     void *arg, struct kp_payload *out,
				     struct kpackx_error *why)
{
	kpack_error_t err = KPACK_SUCCESS;
	struct kp_source own;

	*out = (struct kp_payload){.source = {.fd = -1}};
	if (!kp_source_sub(src, c->offset, c->size, &own))
		err = kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			      "%" PRIu64 " bytes pass the end at %" PRIu64, c->size,
			      src->size);
	else if (c->format->load)
		err = c->format->load(&own, c, fault, arg, out, why);
	else
		out->source = own;
	return err ? kp_fail_prefix(why, err, "%s at offset %" PRIu64, c->format->name,
				    c->offset)
		   : KPACK_SUCCESS;
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

/* A spilled payload is mapped: it was spilled because memory is to stay free. */
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
