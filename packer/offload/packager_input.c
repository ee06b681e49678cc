/* SPDX-License-Identifier: MIT */
#include "packager_input.h"
#include <stdlib.h>
#include <string.h>
#include "core/format/bitcode.h"
#include "core/format/format.h"
#include "packer/cli/xalloc.h"
#include "thin_archive.h"

/* ---- units ---- */

struct scan {
	const struct kp_source *src;
	bool looked_into; /* the source can have binaries in it */
	bool failed;
	struct kpackx_error why; /* the first fault that matters */
};

/* The format that begins at OFFSET; NULL: none, or it cannot be read. */
static const struct kp_format *format_at(const struct kp_source *src, uint64_t offset)
{
	uint8_t bytes[KP_HEAD_SIZE];
	struct kp_span head;

	if (kp_source_head(src, offset, bytes, sizeof(bytes), &head, NULL))
		return NULL;
	return kp_format_probe(head);
}

/*
 * LLVM looks into offload binaries, ELF, bitcode and archives; it ignores any other file.
 */
static bool is_looked_into(const struct kp_source *src)
{
	static const struct kp_format *const others[] = {
		&kp_format_bundle, &kp_format_ccob,   &kp_format_text_bundle,
		&kp_format_fatbin, &kp_format_tileir, &kp_format_spirv,
		&kp_format_ptx,
	};
	const struct kp_format *format = format_at(src, 0);

	for (size_t i = 0; i < KP_COUNT(others); i++)
		if (format == others[i])
			return false;
	return true;
}

/* Whether IMAGE is a member that begins as an offload binary. */
static bool is_binary_member(const struct scan *s, const struct kp_containers *list,
			     size_t image)
{
	const struct kp_image *img = &list->images[image];
	const struct kp_container *c = &list->items[img->container];

	return c->format == &kp_format_archive && c->inside == KP_NOWHERE &&
	       kp_range_ok(s->src->size, c->offset, img->offset) &&
	       format_at(s->src, c->offset + img->offset) == &kp_format_offload_binary;
}

/*
 * Whether IMAGE can hold offload binaries: the whole input, a member, or their section.
 */
static bool is_ours(const struct scan *s, const struct kp_containers *list, size_t image)
{
	if (image == KP_NOWHERE)
		return s->looked_into;
	if (list->images[image].stream)
		return !list->images[image].kind[0];
	return is_binary_member(s, list, image);
}

static void note_fault(void *arg, const struct kp_containers *list, size_t image,
		       const struct kpackx_error *why)
{
	struct scan *s = arg;

	if (!s->failed && is_ours(s, list, image)) {
		s->failed = true;
		s->why = *why;
	}
}

static kpack_error_t scan_unit(struct packager_unit *unit, struct kpackx_error *why)
{
	struct scan s = {.src = &unit->src, .looked_into = is_looked_into(&unit->src)};

	KP_TRY(kp_nest_scan(&unit->src, note_fault, &s, &unit->list, why));
	if (!s.failed)
		return KPACK_SUCCESS;
	*why = s.why;
	return s.why.code ? s.why.code : KPACK_ERROR_INVALID_FORMAT;
}

static kpack_error_t add_unit(struct packager_input *in, struct packager_unit unit,
			      struct kpackx_error *why)
{
	in->units = xrealloc(in->units, (in->n_units + 1) * sizeof(*in->units));
	in->units[in->n_units] = unit;
	return scan_unit(&in->units[in->n_units++], why);
}

/* ---- bitcode ---- */

struct blob {
	uint8_t *data;
	size_t size;
};

/* Append BYTES at the next multiple of 8, as linkers do. */
static kpack_error_t append_blob(void *arg, struct kp_span bytes,
				 struct kpackx_error *why)
{
	struct blob *b = arg;
	size_t size = (b->size + bytes.size + 7) / 8 * 8;
	uint8_t *grown = realloc(b->data, size);

	if (!grown)
		return kp_fail_memory(why, size, "what is embedded in bitcode");
	memset(grown + b->size, 0, size - b->size);
	memcpy(grown + b->size, bytes.data, bytes.size);
	b->data = grown;
	b->size = size;
	return KPACK_SUCCESS;
}

static kpack_error_t find_embedded(const struct kp_source *src, struct blob *out,
				   struct kpackx_error *why)
{
	kpack_error_t err;
	uint8_t *code;

	KP_TRY(kp_source_load(src, UINT64_MAX, "bitcode", &code, why));
	err = kp_bitcode_embedded((struct kp_span){code, (size_t)src->size}, append_blob,
				  out, why);
	free(code);
	return err;
}

static kpack_error_t add_embedded(struct packager_input *in, size_t image,
				  const struct kp_source *src, struct kpackx_error *why)
{
	struct blob blob = {0};
	struct packager_unit unit = {.host = image};
	kpack_error_t err = find_embedded(src, &blob, why);

	if (err || !blob.size) {
		free(blob.data);
		return err;
	}
	unit.heap = blob.data;
	unit.src = kp_source_memory(blob.data, blob.size);
	return add_unit(in, unit, why);
}

/*
 * If image NUMBER of the file, whose bytes are in PAYLOAD, is bitcode, add its embedded
 * data.
 */
static kpack_error_t look_into(struct packager_input *in, size_t number,
			       const struct kp_payload *payload, struct kpackx_error *why)
{
	const struct kp_image *image = &in->units[0].list.images[number];
	struct kp_source src;
	struct kp_span head;
	uint8_t bytes[4];

	if (image->inside != KP_NOWHERE ||
	    !kp_source_sub(&payload->source, image->offset, image->size, &src))
		return KPACK_SUCCESS;
	KP_TRY(kp_source_head(&src, 0, bytes, sizeof(bytes), &head, why));
	if (!kp_format_bitcode.probe(head))
		return KPACK_SUCCESS;
	return add_embedded(in, number, &src, why);
}

/* Look into bitcode: the whole file, or members of a static library. */
static kpack_error_t look_for_bitcode(struct packager_input *in, struct kpackx_error *why)
{
	kpack_error_t err = KPACK_SUCCESS;

	for (size_t i = 0; i < in->units[0].list.count && !err; i++) {
		/* a copy, because the list of units moves */
		const struct kp_container c = in->units[0].list.items[i];
		struct kp_payload payload;

		if (c.format != &kp_format_archive && c.format != &kp_format_bitcode)
			continue;
		KP_TRY(kp_containers_load(&in->units[0].src, &in->units[0].list, i,
					  &payload, why));
		for (size_t j = 0; j < c.n_images && !err; j++)
			err = look_into(in, c.first_image + j, &payload, why);
		kp_payload_fini(&payload);
	}
	return err;
}

/* ---- images ---- */

static void list_container(struct packager_input *in, size_t unit, size_t number);

/* List the images inside image NUMBER of UNIT. */
static void list_inside(struct packager_input *in, size_t unit, size_t number)
{
	const struct kp_containers *list = &in->units[unit].list;

	for (size_t i = list->images[number].inside; i != KP_NOWHERE;
	     i = list->items[i].next)
		list_container(in, unit, i);
	for (size_t i = 1; i < in->n_units && unit == 0; i++)
		if (in->units[i].host == number)
			for (size_t c = 0; c != KP_NOWHERE && in->units[i].list.count;
			     c = in->units[i].list.items[c].next)
				list_container(in, i, c);
}

static void list_container(struct packager_input *in, size_t unit, size_t number)
{
	const struct kp_container *c = &in->units[unit].list.items[number];

	for (size_t i = c->first_image; i < c->first_image + c->n_images; i++) {
		if (c->format == &kp_format_offload_binary)
			in->images[in->n_images++] = (struct packager_image){unit, i};
		else
			list_inside(in, unit, i);
	}
}

static void list_images(struct packager_input *in)
{
	const struct kp_containers *list = &in->units[0].list;
	size_t n = 0;

	for (size_t i = 0; i < in->n_units; i++)
		n += in->units[i].list.n_images;
	in->images = xcalloc(n, sizeof(*in->images));
	for (size_t i = 0; i != KP_NOWHERE && list->count; i = list->items[i].next)
		list_container(in, 0, i);
}

const char *packager_image_member(const struct packager_input *in,
				  struct packager_image ref)
{
	const struct kp_containers *list = &in->units[0].list;
	size_t number = ref.unit ? in->units[ref.unit].host : ref.number;

	while (number != KP_NOWHERE) {
		const struct kp_container *c =
			&list->items[list->images[number].container];

		if (c->format == &kp_format_archive)
			return list->images[number].id;
		number = c->inside;
	}
	return NULL;
}

/* ---- the whole input ---- */

static kpack_error_t find_all(struct packager_input *in, struct kpackx_error *why)
{
	KP_TRY(add_unit(in, (struct packager_unit){.src = in->in.src}, why));
	KP_TRY(look_for_bitcode(in, why));
	list_images(in);
	return KPACK_SUCCESS;
}

kpack_error_t packager_input_open(struct packager_input *in, const char *path,
				  struct kpackx_error *why)
{
	kpack_error_t err;

	*in = (struct packager_input){.in = {.fd = -1}};
	err = bundler_input_open(&in->in, path, why);
	if (!err)
		err = thin_archive_gather(&in->in, path, why);
	if (!err)
		err = find_all(in, why);
	if (err)
		packager_input_close(in);
	return err;
}

void packager_input_close(struct packager_input *in)
{
	for (size_t i = 0; i < in->n_units; i++) {
		kp_containers_fini(&in->units[i].list);
		free(in->units[i].heap);
	}
	free(in->units);
	free(in->images);
	bundler_input_close(&in->in);
	*in = (struct packager_input){.in = {.fd = -1}};
}
