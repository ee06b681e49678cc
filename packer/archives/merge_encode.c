/* SPDX-License-Identifier: MIT */
/* Decode the objects of all sources, and store them anew. */
#include <stdlib.h>
#include "core/base/msgpack_read.h"
#include "core/base/scheme.h"
#include "core/archive/codec.h"
#include "core/writer/store.h"
#include "packer/cli/xalloc.h"
#include "merge_internal.h"

/* The zstd level of the scheme zstd-per-kernel, if none is given, as of kpack pack. */
enum { LEVEL = 3 };

struct encoding {
	struct merge_plan *plan;
	struct kp_store store;      /* its writer is borrowed */
	struct kp_encoder *encoder; /* scheme zstd-per-kernel */
};

/*
 * Decode the entry of O; the caller frees *BYTES.  In a faulty archive,
 * an entry that was dropped may have given O another size.
 */
static kpack_error_t decode_object(const struct merge_plan *p,
				   const struct merge_object *o, uint8_t **bytes,
				   size_t *size, struct kpackx_error *why)
{
	const struct kpack_archive *a = p->sources[o->source].archive;
	size_t entry = p->items[o->item].entry;
	struct kp_entry_info info;
	kpack_error_t err;

	KP_TRY(kp_archive_check_size(a, entry, why));
	kp_archive_entry(a, entry, &info);
	*size = (size_t)info.size;
	*bytes = malloc(*size + 1);
	if (!*bytes)
		return kp_fail_memory(why, info.size, "an object");
	err = kp_archive_read(a, entry, *bytes, why);
	if (err)
		free(*bytes);
	return err;
}

/* Store DATA of O, compressed if the scheme says so. */
static kpack_error_t store_object(struct encoding *e, struct merge_object *o,
				  struct kp_span data, struct kpackx_error *why)
{
	uint64_t chunk = e->encoder ? o->chunk : 0;
	struct kp_content content = kp_content_of(data, chunk);
	struct kp_span stored = data;
	uint8_t *frame = NULL;
	kpack_error_t err = KPACK_SUCCESS;
	bool shared;

	if (e->encoder) {
		size_t cap = kp_encode_bound(data.size, chunk);

		frame = malloc(cap);
		if (!frame)
			return kp_fail_memory(why, cap, "a frame");
		stored.data = frame;
		err = kp_encode(e->encoder, data, chunk, frame, cap, &stored.size, why);
	}
	if (!err)
		err = kp_store_add(&e->store, &content, stored, &o->written, &shared,
				   why);
	free(frame);
	if (!err)
		e->plan->stats.shared += shared;
	return err;
}

static kpack_error_t encode_object(struct encoding *e, struct merge_object *o,
				   struct kpackx_error *why)
{
	uint8_t *bytes;
	size_t size;
	kpack_error_t err = decode_object(e->plan, o, &bytes, &size, why);

	if (err)
		return err;
	err = store_object(e, o, (struct kp_span){bytes, size}, why);
	free(bytes);
	merge_progress(e->plan, o->stored.size);
	return err;
}

static kpack_error_t encode_all(struct encoding *e, struct kpackx_error *why)
{
	struct merge_plan *p = e->plan;

	for (size_t i = 0; i < p->n_order; i++) {
		struct merge_object *o = &p->objects[p->order[i]];
		kpack_error_t err = encode_object(e, o, why);

		if (err)
			return merge_copy_fail(p, o->source, err, why);
	}
	return KPACK_SUCCESS;
}

/* --- metadata --------------------------------------------------------------------------- */

/* Get a pair of a map; *IS_CHUNK: it is named so.  false: it is not MessagePack. */
static bool get_pair(struct kp_mp *c, bool *is_chunk)
{
	struct kp_span name = {0};

	if (kp_mp_peek(c) == KP_MP_STR ? !kp_mp_str(c, &name) : !kp_mp_skip(c))
		return false;
	*is_chunk = kp_span_is(name, "chunk");
	return kp_mp_skip(c);
}

/* Copy the pairs of MAP but `chunk` to OUT; returns the end, or NULL: there is none. */
static uint8_t *copy_pairs(struct kp_span map, uint8_t *out)
{
	uint8_t *head = out;
	struct kp_mp c = kp_mp_over(map);
	uint32_t pairs, kept = 0;
	bool is_chunk;

	if (!kp_mp_map(&c, &pairs))
		return NULL;
	out += 5;
	for (uint32_t i = 0; i < pairs; i++) {
		const uint8_t *begin = c.pos;

		if (!get_pair(&c, &is_chunk))
			return NULL;
		if (is_chunk)
			continue;
		memcpy(out, begin, (size_t)(c.pos - begin));
		out += c.pos - begin;
		kept++;
	}
	head[0] = 0xdf; /* a map whose number of pairs has 32 bits */
	for (int i = 0; i < 4; i++)
		head[1 + i] = (uint8_t)(kept >> (24 - 8 * i));
	return kept < pairs ? out : NULL;
}

struct kp_span merge_item_metadata(const struct merge_plan *p,
				   const struct merge_item *item, uint8_t **owned)
{
	struct kp_span map =
		kp_archive_meta_raw(p->sources[item->source].archive, item->entry);
	uint8_t *end = NULL;

	*owned = NULL;
	if (!p->encodes || !map.size)
		return map;
	if (p->scheme == KPACK_COMPRESSION_ZSTD_PER_KERNEL &&
	    p->objects[item->object].chunk)
		return map;
	*owned = xmalloc(map.size + 5);
	end = copy_pairs(map, *owned);
	return end ? (struct kp_span){*owned, (size_t)(end - *owned)} : map;
}

/* ------------------------------------------------------------------------------------------ */

kpack_error_t merge_encode(struct merge_plan *p, struct kp_writer *w,
			   struct kpackx_error *why)
{
	struct encoding e = {.plan = p, .store = {.writer = w, .scheme = p->scheme}};
	kpack_error_t err = KPACK_SUCCESS;

	p->stats.shared = 0;
	if (p->scheme == KPACK_COMPRESSION_ZSTD_PER_KERNEL)
		err = kp_encoder_new(p->options.level ? p->options.level : LEVEL,
				     &e.encoder, why);
	if (!err)
		err = encode_all(&e, why);
	kp_encoder_free(e.encoder);
	kp_content_table_fini(&e.store.contents);
	p->stats.frames = kp_writer_frame_count(w);
	return err;
}
