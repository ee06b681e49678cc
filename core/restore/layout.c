/* SPDX-License-Identifier: MIT */
#include <msgpack.h>
#include <stdlib.h>
#include <zstd.h>
#include "layout_internal.h"
#include "core/base/bounds.h"
#include "core/base/alloc.h"

/* Most bytes for which a slow level of zstd is still fast enough. */
#define SLOW_MAX (1 << 20)

kpack_error_t kp_layout_begin(struct kp_layout *layout, struct kpackx_error *why)
{
	struct kp_layout_heap *heap = calloc(1, sizeof(*heap));

	layout->heap = heap;
	/* lists are never NULL, since pointers into empty lists are computed, too */
	if (!heap ||
	    !kp_grow(&layout->images, 0, &heap->images_cap, sizeof(*layout->images)) ||
	    !kp_grow(&heap->pieces, 0, &heap->pieces_cap, sizeof(*heap->pieces)))
		return kp_fail_memory(why, sizeof(*heap), "a layout");
	return KPACK_SUCCESS;
}

void kp_layout_fini(struct kp_layout *layout)
{
	struct kp_layout_heap *heap = layout->heap;

	if (heap) {
		for (size_t i = 0; i < heap->n_targets; i++)
			free(heap->targets[i].id);
		free(heap->targets);
		free(heap->pieces);
		free(heap->bytes);
		free(heap->kept);
		free(heap);
	}
	free(layout->containers);
	free(layout->images);
	free(layout->wrapper_container);
	*layout = (struct kp_layout){0};
}

bool kp_layout_is_too_much(const struct kp_containers *list)
{
	uint64_t decoded = 0, meant = 0;

	for (size_t i = 0; i < list->count && decoded <= KP_LAYOUT_SECTION_MAX; i++)
		decoded += list->items[i].payload_size;
	for (size_t i = 0; i < list->n_images && meant <= KP_LAYOUT_SECTION_MAX; i++)
		meant += list->images[i].size;
	return decoded > KP_LAYOUT_SECTION_MAX || meant > KP_LAYOUT_SECTION_MAX;
}

struct kp_layout_container *kp_layout_add_container(struct kp_layout *layout)
{
	struct kp_layout_container *c;

	if (!kp_grow(&layout->containers, layout->n_containers,
		     &layout->heap->containers_cap, sizeof(*c)))
		return NULL;
	c = &layout->containers[layout->n_containers++];
	*c = (struct kp_layout_container){
		.first_image = layout->n_images,
		.first_piece = layout->heap->n_pieces,
	};
	return c;
}

struct kp_layout_image *kp_layout_add_image(struct kp_layout *layout)
{
	struct kp_layout_image *image;

	if (!kp_grow(&layout->images, layout->n_images, &layout->heap->images_cap,
		     sizeof(*image)))
		return NULL;
	image = &layout->images[layout->n_images++];
	*image = (struct kp_layout_image){0};
	return image;
}

struct kp_layout_piece *kp_layout_add_piece(struct kp_layout *layout)
{
	struct kp_layout_heap *heap = layout->heap;

	if (!kp_grow(&heap->pieces, heap->n_pieces, &heap->pieces_cap,
		     sizeof(*heap->pieces)))
		return NULL;
	return &heap->pieces[heap->n_pieces++];
}

uint64_t kp_layout_header_size(const struct kp_layout *layout,
			       const struct kp_layout_container *c)
{
	uint64_t size = KP_BUNDLE_HEADER_MIN;

	if (c->format == &kp_format_code_object)
		return 0;
	for (size_t i = 0; i < c->n_images; i++)
		size += KP_BUNDLE_ROW_SIZE +
			strlen(layout->images[c->first_image + i].id);
	return size;
}

void kp_layout_number(struct kp_layout *layout)
{
	uint32_t next = (uint32_t)layout->n_wrappers;

	for (size_t c = 0; c < layout->n_containers; c++)
		layout->containers[c].index = UINT32_MAX;
	for (size_t w = layout->n_wrappers; w-- > 0;)
		layout->containers[layout->wrapper_container[w]].index = (uint32_t)w;
	for (size_t c = 0; c < layout->n_containers; c++) {
		if (layout->containers[c].index == UINT32_MAX)
			layout->containers[c].index = next++;
	}
}

uint32_t kp_layout_index(const struct kp_layout *layout, uint32_t container)
{
	return layout->containers[container].index;
}

/* ---- encoding ---- */

struct encoder {
	const struct kp_layout *layout;
	uint32_t *target; /* per image */
	const struct kp_layout_image **targets;
	size_t n_targets;
	msgpack_sbuffer buf;
	msgpack_packer pk;
	bool failed;
};

static void put_uint(struct encoder *e, uint64_t n)
{
	e->failed |= msgpack_pack_uint64(&e->pk, n) != 0;
}

static void put_array(struct encoder *e, size_t n)
{
	e->failed |= msgpack_pack_array(&e->pk, n) != 0;
}

static void put_map(struct encoder *e, size_t n)
{
	e->failed |= msgpack_pack_map(&e->pk, n) != 0;
}

static void put_text(struct encoder *e, const char *text)
{
	size_t n = strlen(text);

	e->failed |=
		msgpack_pack_str(&e->pk, n) || msgpack_pack_str_body(&e->pk, text, n);
}

static void put_bin(struct encoder *e, const void *data, size_t size)
{
	e->failed |= msgpack_pack_bin(&e->pk, size) ||
		     msgpack_pack_bin_body(&e->pk, data, size);
}

static void put_nil(struct encoder *e)
{
	e->failed |= msgpack_pack_nil(&e->pk) != 0;
}

static void put_bool(struct encoder *e, bool b)
{
	e->failed |= (b ? msgpack_pack_true(&e->pk) : msgpack_pack_false(&e->pk)) != 0;
}

static int cmp_target(const struct kp_layout_image *a, const struct kp_layout_image *b)
{
	int c = strcmp(a->id ? a->id : "", b->id ? b->id : "");

	if (c == 0)
		c = (a->id != NULL) - (b->id != NULL);
	if (c == 0)
		c = strcmp(a->arch, b->arch);
	return c ? c : a->host - b->host;
}

static int by_target(const void *a, const void *b)
{
	return cmp_target(*(const struct kp_layout_image *const *)a,
			  *(const struct kp_layout_image *const *)b);
}

/* Number the distinct targets of entries. */
static kpack_error_t number_targets(struct encoder *e, struct kpackx_error *why)
{
	const struct kp_layout *l = e->layout;
	size_t n = l->n_images;

	e->targets = calloc(n + 1, sizeof(*e->targets));
	e->target = calloc(n + 1, sizeof(*e->target));
	if (!e->targets || !e->target)
		return kp_fail_memory(why, n * sizeof(*e->targets), "a layout");
	for (size_t i = 0; i < n; i++)
		e->targets[i] = &l->images[i];
	qsort(e->targets, n, sizeof(*e->targets), by_target);
	for (size_t i = 0; i < n; i++) {
		if (i == 0 ||
		    cmp_target(e->targets[e->n_targets - 1], e->targets[i]) != 0)
			e->targets[e->n_targets++] = e->targets[i];
		e->target[e->targets[i] - l->images] = (uint32_t)e->n_targets - 1;
	}
	return KPACK_SUCCESS;
}

static void put_targets(struct encoder *e)
{
	put_text(e, "targets");
	put_array(e, e->n_targets);
	for (size_t i = 0; i < e->n_targets; i++) {
		put_array(e, 3);
		if (e->targets[i]->id)
			put_text(e, e->targets[i]->id);
		else
			put_nil(e);
		put_text(e, e->targets[i]->arch);
		put_bool(e, e->targets[i]->host);
	}
}

static void put_wrappers(struct encoder *e)
{
	put_text(e, "wrappers");
	put_array(e, e->layout->n_wrappers);
	for (size_t i = 0; i < e->layout->n_wrappers; i++)
		put_uint(e, e->layout->wrapper_container[i]);
}

static void put_content(struct encoder *e, const struct kp_layout_image *image)
{
	if (image->bytes)
		put_bin(e, image->bytes, (size_t)image->size);
	else if (image->has_xxh3)
		put_bool(e, true);
	else
		put_nil(e);
}

static void put_gap(struct encoder *e, uint64_t gap)
{
	e->failed |= msgpack_pack_int64(&e->pk, (int64_t)gap) != 0;
}

/* Returns the end of the last entry. */
static uint64_t put_entries(struct encoder *e, const struct kp_layout_container *c)
{
	uint64_t end = kp_layout_header_size(e->layout, c);

	put_text(e, "entries");
	put_array(e, c->n_images);
	for (size_t i = c->first_image; i < c->first_image + c->n_images; i++) {
		const struct kp_layout_image *image = &e->layout->images[i];

		put_array(e, 4);
		put_uint(e, e->target[i]);
		put_gap(e, image->offset - kp_layout_expected(end));
		put_uint(e, image->size);
		put_content(e, image);
		end = image->offset + image->size;
	}
	return end;
}

static void put_pieces(struct encoder *e, const struct kp_layout_container *c)
{
	const struct kp_layout_piece *piece = e->layout->heap->pieces + c->first_piece;

	put_text(e, "bytes");
	put_array(e, c->n_pieces);
	for (size_t i = 0; i < c->n_pieces; i++, piece++) {
		put_array(e, 2);
		put_uint(e, piece->offset);
		put_bin(e, piece->bytes.data, piece->bytes.size);
	}
}

/* What a parsed layout keeps of containers stays in its section. */
static bool has_kept(const struct encoder *e, const struct kp_layout_container *c)
{
	return c->kept && e->layout->heap->kept;
}

static void put_ccob(struct encoder *e, const struct kp_layout_container *c)
{
	put_text(e, "ccob");
	put_map(e, (c->form.level ? 7 : 5) + has_kept(e, c));
	put_text(e, "version");
	put_uint(e, c->form.version);
	put_text(e, "method");
	put_uint(e, c->form.method);
	put_text(e, "hash");
	put_uint(e, c->form.hash);
	put_text(e, "payload");
	put_uint(e, c->payload_size);
	put_text(e, "level");
	put_uint(e, (uint64_t)c->form.level);
	if (has_kept(e, c)) {
		put_text(e, "kept");
		put_uint(e, c->kept);
	}
	if (!c->form.level)
		return;
	put_text(e, "long");
	put_bool(e, c->form.long_range);
	put_text(e, "xxh3");
	put_bin(e, c->xxh3, sizeof(c->xxh3));
}

static void put_container(struct encoder *e, const struct kp_layout_container *c,
			  uint64_t expected)
{
	bool compressed = c->format == &kp_format_ccob;
	uint64_t end;

	put_map(e, 4 + compressed + (c->n_pieces > 0));
	put_text(e, "format");
	put_text(e, c->format->name);
	put_text(e, "offset");
	put_gap(e, c->offset - expected);
	end = put_entries(e, c);
	put_text(e, "size");
	put_gap(e, compressed ? c->size : c->size - end);
	if (c->n_pieces)
		put_pieces(e, c);
	if (compressed)
		put_ccob(e, c);
}

static void put_containers(struct encoder *e)
{
	uint64_t end = 0;

	put_text(e, "containers");
	put_array(e, e->layout->n_containers);
	for (size_t i = 0; i < e->layout->n_containers; i++) {
		const struct kp_layout_container *c = &e->layout->containers[i];

		put_container(e, c, kp_layout_expected(end));
		end = c->offset + c->size;
	}
}

/* All hashes together, and last, because they do not compress. */
static void put_hashes(struct encoder *e)
{
	const struct kp_layout *l = e->layout;
	size_t n = 0;

	for (size_t i = 0; i < l->n_images; i++)
		n += l->images[i].has_xxh3;
	put_text(e, "xxh3");
	e->failed |= msgpack_pack_bin(&e->pk, n * KP_LAYOUT_HASH) != 0;
	for (size_t i = 0; i < l->n_images; i++)
		if (l->images[i].has_xxh3)
			e->failed |= msgpack_pack_bin_body(&e->pk, l->images[i].xxh3,
							   KP_LAYOUT_HASH) != 0;
}

static void put_layout(struct encoder *e)
{
	put_map(e, 6);
	put_text(e, "version");
	put_uint(e, KP_LAYOUT_VERSION);
	put_text(e, "size");
	put_uint(e, e->layout->size);
	put_targets(e);
	put_wrappers(e);
	put_containers(e);
	put_hashes(e);
}

/* Compress the layout: the section is seldom read and often copied. */
static kpack_error_t compress_layout(const struct encoder *e, struct kp_layout_bytes *out,
				     struct kpackx_error *why)
{
	const struct kp_layout_heap *heap = e->layout->heap;
	size_t room = ZSTD_compressBound(e->buf.size), size;
	uint8_t *data = malloc(room + heap->n_kept);

	if (!data)
		return kp_fail_memory(why, room + heap->n_kept, "a layout");
	size = ZSTD_compress(data, room, e->buf.data, e->buf.size,
			     e->buf.size > SLOW_MAX ? 3 : 19);
	if (ZSTD_isError(size)) {
		free(data);
		return kp_fail(why, KPACK_ERROR_OUT_OF_MEMORY, "%s",
			       ZSTD_getErrorName(size));
	}
	if (heap->n_kept)
		memcpy(data + size, heap->kept, heap->n_kept);
	*out = (struct kp_layout_bytes){.data = data, .size = size + heap->n_kept};
	return KPACK_SUCCESS;
}

static kpack_error_t finish_layout(struct encoder *e, struct kp_layout_bytes *out,
				   struct kpackx_error *why)
{
	if (e->failed)
		return kp_fail_memory(why, e->buf.size, "a layout");
	if (e->buf.size > KP_LAYOUT_MAX)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "%zu bytes, at most %llu", e->buf.size,
			       (unsigned long long)KP_LAYOUT_MAX);
	return compress_layout(e, out, why);
}

kpack_error_t kp_layout_encode(const struct kp_layout *layout,
			       struct kp_layout_bytes *out, struct kpackx_error *why)
{
	struct encoder e = {.layout = layout};
	kpack_error_t err = number_targets(&e, why);

	msgpack_sbuffer_init(&e.buf);
	msgpack_packer_init(&e.pk, &e.buf, msgpack_sbuffer_write);
	if (!err) {
		put_layout(&e);
		err = finish_layout(&e, out, why);
	}
	msgpack_sbuffer_destroy(&e.buf);
	free(e.targets);
	free(e.target);
	return err;
}
