/* SPDX-License-Identifier: MIT */
/*
 * Carry out the plan of a merge: find the objects that are stored with equal bytes; then write the
 * objects in one of three ways, and the entries.
 *
 *	merge_plan_write	zstd-per-kernel and none: stored bytes as they are, in long runs
 *	write_all_shared	zstd-shared: the blocks of the source that has most of them, as far
 *				as all of their bytes stay; other objects are compressed again
 *	encode_objects		another scheme, or a level: decode everything and store it anew
 *
 * What is copied is not decoded here, so that merging costs little more than reading and writing;
 * check_items has looked at it before.  Progress is in stored bytes of the sources in each way.
 */
#include <errno.h>
#include <stdlib.h>
#include "core/archive/shared.h"
#include "core/base/alloc.h"
#include "core/base/msgpack_read.h"
#include "core/base/scheme.h"
#include "core/writer/encode.h"
#include "core/writer/store.h"
#include "content.h"
#include "merge_internal.h"
#include "packer/cli/options.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"

/* Stored bytes that are copied before progress is reported. */
#define SLICE (UINT64_C(32) << 20)

/*
 * Copying from a source into the new archive failed with ERR: put the source's path in front
 * of the message, unless there is no room for the new archive.
 */
static kpack_error_t fail_copy(const struct merge_plan *p, size_t source,
			       kpack_error_t err, struct kpackx_error *why)
{
	if (why->sys_errno == ENOSPC || why->sys_errno == EDQUOT)
		return err;
	return kp_fail_prefix(why, err, "%s", merge_source_name(p, source));
}

/* --- objects with equal stored bytes: one place in a file, several ordinals (scheme none) ---- */

static int by_place(const void *a, const void *b, void *arg)
{
	const struct merge_object *o = arg, *x = &o[*(const uint32_t *)a],
				  *y = &o[*(const uint32_t *)b];
	int c = KP_ORDER(x->source, y->source);

	if (!c)
		c = KP_ORDER(x->stored.offset, y->stored.offset);
	if (!c)
		c = KP_ORDER(x->stored.size, y->stored.size);
	return c ? c : KP_ORDER(x->position, y->position);
}

/*
 * --- other objects with equal stored bytes ---
 *
 * Equal sizes make candidates.  If all candidates state the hash of their content, it is trusted
 * to distinguish different ones; otherwise their stored bytes are hashed.  Objects are shared only
 * after their bytes were compared.
 */

static int cmp_sizes(const struct merge_object *x, const struct merge_object *y)
{
	int c = KP_ORDER(x->stored.size, y->stored.size);

	if (!c)
		c = KP_ORDER(x->size, y->size);
	return c ? c : KP_ORDER(x->chunk, y->chunk);
}

static int by_sizes(const void *a, const void *b, void *arg)
{
	const struct merge_object *o = arg;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int c = cmp_sizes(&o[x], &o[y]);

	return c ? c : KP_ORDER(o[x].position, o[y].position);
}

static int by_hash(const void *a, const void *b, void *arg)
{
	const struct merge_object *o = arg;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int c = memcmp(o[x].hash, o[y].hash, sizeof(o[x].hash));

	return c ? c : KP_ORDER(o[x].position, o[y].position);
}

/* Share equal objects in LIST, which all have the same sizes. */
static kpack_error_t share_list(struct merge_plan *p, uint32_t *list, size_t n,
				struct kpackx_error *why)
{
	size_t first = 0;
	bool hashed = true;

	if (n < 2)
		return KPACK_SUCCESS;
	for (size_t i = 0; i < n; i++)
		hashed &= p->objects[list[i]].hashed;
	for (size_t i = 0; i < n && !hashed; i++) {
		struct merge_object *o = &p->objects[list[i]];
		struct kp_hash hash;
		kpack_error_t err = content_hash_source(&o->stored, &hash, why);

		if (err)
			return kp_fail_prefix(why, err, "%s",
					      merge_source_name(p, o->source));
		memcpy(o->hash, hash.bytes, sizeof(o->hash));
	}
	qsort_r(list, n, sizeof(*list), by_hash, p->objects);
	for (size_t i = 1; i < n; i++) {
		struct merge_object *a = &p->objects[list[first]],
				    *b = &p->objects[list[i]];
		bool same;

		if (memcmp(a->hash, b->hash, sizeof(a->hash)) != 0) {
			first = i;
			continue;
		}
		KP_TRY(kp_source_compare(&a->stored, &b->stored, &same, why));
		if (same)
			b->same = list[first];
	}
	return KPACK_SUCCESS;
}

/* Keep the objects of LIST that still stand for themselves; returns how many. */
static size_t keep_own(const struct merge_plan *p, uint32_t *list, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		if (p->objects[list[i]].same == list[i])
			list[kept++] = list[i];
	return kept;
}

kpack_error_t merge_share(struct merge_plan *p, struct kpackx_error *why)
{
	KP_AUTO_FREE uint32_t *list = xmalloc((p->n_order + 1) * sizeof(*list));
	const struct merge_object *last = NULL;
	uint64_t sum = 0;
	size_t n = 0;

	for (size_t i = 0; i < p->n_order; i++) {
		const struct merge_object *o = &p->objects[p->order[i]];
		const char *scheme = kp_archive_scheme(p->sources[o->source].archive);

		if (strcmp(scheme, kp_scheme_name(KPACK_COMPRESSION_NOOP)) == 0)
			list[n++] = p->order[i];
	}
	/*
	 * Objects that are one place in a file are one.  Overlapping blobs are copied once for each:
	 * an archive of a few bytes could grow without bound, so refuse those that have more bytes
	 * in all than their file.
	 */
	qsort_r(list, n, sizeof(*list), by_place, p->objects);
	for (size_t i = 0; i < n; i++) {
		struct merge_object *o = &p->objects[list[i]];
		const struct kpack_archive *a = p->sources[o->source].archive;

		if (!last || o->source != last->source)
			sum = 0;
		else if (o->stored.offset == last->stored.offset &&
			 o->stored.size == last->stored.size)
			o->same = last->same;
		last = o;
		if (o->same != list[i])
			continue;
		sum += o->stored.size;
		if (sum > (uint64_t)kp_archive_stat(a)->st_size)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "%s: blobs: overlap, and have more bytes in all "
				       "than the file",
				       kp_archive_path(a));
	}
	/*
	 * Sort by sizes, so that candidates stand together: what is alone with its size is never
	 * read.  Of what is stored anew or shared, the writer finds what is equal.
	 */
	if (!p->encodes && p->scheme != KP_COMPRESSION_ZSTD_SHARED && p->n_order) {
		memcpy(list, p->order, p->n_order * sizeof(*list));
		n = keep_own(p, list, p->n_order);
		qsort_r(list, n, sizeof(*list), by_sizes, p->objects);
		for (size_t i = 0, run; i < n; i += run) {
			for (run = 1;
			     i + run < n && cmp_sizes(&p->objects[list[i]],
						      &p->objects[list[i + run]]) == 0;)
				run++;
			KP_TRY(share_list(p, list + i, run, why));
		}
	}
	n = keep_own(p, p->order, p->n_order);
	if (!p->encodes)
		p->stats.shared = p->n_order - n;
	p->n_order = n;
	/* a place may stand for another whose content is stored elsewhere */
	for (size_t i = 0; i < p->n_objects; i++)
		p->objects[i].same = p->objects[p->objects[i].same].same;
	return KPACK_SUCCESS;
}

/* --- storing anew ---------------------------------------------------------------------------- */

/* The zstd level of the scheme zstd-per-kernel, if none is given, as of kpack pack. */
enum { LEVEL = 3 };

/*
 * Decode each object, and store it: compressed, unless the scheme is none.  In a faulty archive,
 * an entry that was dropped may have given an object another size.
 */
static kpack_error_t encode_objects(struct merge_plan *p, struct kp_writer *w,
				    struct kpackx_error *why)
{
	struct kp_store store = {.writer = w, .scheme = p->scheme}; /* borrows it */
	struct kp_encoder *encoder = NULL;
	kpack_error_t err = KPACK_SUCCESS;

	p->stats.shared = 0;
	if (p->scheme == KPACK_COMPRESSION_ZSTD_PER_KERNEL)
		err = kp_encoder_new(p->options.level ? p->options.level : LEVEL,
				     &encoder, why);
	for (size_t i = 0; i < p->n_order && !err; i++) {
		struct merge_object *o = &p->objects[p->order[i]];
		uint64_t chunk = encoder ? o->chunk : 0;
		KP_AUTO_FREE uint8_t *bytes = NULL, *frame = NULL;
		struct kp_span data, stored;
		struct kp_content content;
		bool shared = false;

		err = content_load(p->sources[o->source].archive, p->items[o->item].entry,
				   &bytes, &data, why);
		if (!err) {
			stored = data;
			content = kp_content_of(data, chunk);
		}
		if (!err && encoder) {
			size_t cap = kp_encode_bound(data.size, chunk);

			stored.data = frame = malloc(cap);
			err = frame ? kp_encode(encoder, data, chunk, frame, cap,
						&stored.size, why)
				    : kp_fail_memory(why, cap, "a frame");
		}
		if (!err)
			err = kp_store_add(&store, &content, stored, &o->written, &shared,
					   why);
		if (err)
			fail_copy(p, o->source, err, why);
		p->stats.shared += shared;
		progress_add(o->stored.size);
	}
	kp_encoder_free(encoder);
	store.writer = NULL;
	kp_store_fini(&store);
	p->stats.frames = kp_writer_frame_count(w);
	return err;
}

/*
 * The metadata map of ITEM's entry as the new archive has it, borrowed from its source or from
 * *OWNED, which the caller frees: without `chunk` if the object is stored in one piece.
 */
static struct kp_span metadata_of(const struct merge_plan *p,
				  const struct merge_item *item, uint8_t **owned)
{
	struct kp_span map = merge_item_map(p, item);
	struct kp_mp c = kp_mp_over(map);
	uint32_t pairs, kept = 0;
	uint8_t *out;

	if (!p->encodes || !map.size || !kp_mp_map(&c, &pairs) ||
	    (p->scheme == KPACK_COMPRESSION_ZSTD_PER_KERNEL &&
	     p->objects[item->object].chunk))
		return map;
	*owned = xmalloc(map.size + 5);
	out = *owned + 5;
	for (uint32_t i = 0; i < pairs; i++) {
		const uint8_t *begin = c.pos;
		struct kp_span name = {0};

		if ((kp_mp_peek(&c) == KP_MP_STR ? !kp_mp_str(&c, &name)
						 : !kp_mp_skip(&c)) ||
		    !kp_mp_skip(&c))
			return map;
		if (kp_span_is(name, "chunk"))
			continue;
		memcpy(out, begin, (size_t)(c.pos - begin));
		out += c.pos - begin;
		kept++;
	}
	(*owned)[0] = 0xdf; /* a map whose number of pairs has 32 bits */
	for (int i = 0; i < 4; i++)
		(*owned)[1 + i] = (uint8_t)(kept >> (24 - 8 * i));
	return kept < pairs ? (struct kp_span){*owned, (size_t)(out - *owned)} : map;
}

/* --- copying ----------------------------------------------------------------------------------- */

/*
 * Write a shared archive: first the objects of the source that has most blocks, of several the
 * first, with its blocks as far as that is worth it.
 */
static kpack_error_t write_all_shared(struct merge_plan *p, struct kp_writer *w,
				      struct kpackx_error *why)
{
	KP_AUTO_FREE uint32_t *ordinals = xmalloc((p->n_order + 1) * sizeof(*ordinals));
	uint32_t largest = 0, most = 0, n = 0;
	uint64_t others = 0;
	kpack_error_t err;
	bool done;

	for (uint32_t i = 0; i < p->n_sources; i++) {
		const struct kp_shared *s = kp_archive_shared(p->sources[i].archive);
		uint32_t blocks = s->n_frames - s->first_block;

		largest = blocks > most ? i : largest;
		most = blocks > most ? blocks : most;
	}
	for (size_t i = 0; i < p->n_order; i++)
		if (p->objects[p->order[i]].source == largest)
			ordinals[n++] = p->objects[p->order[i]].ordinal;
	for (size_t i = 0; i < p->n_sources && n < p->n_order; i++)
		if (i != largest)
			others += kp_archive_shared(p->sources[i].archive)->unique_size;
	err = kp_writer_add_blocks(w, kp_archive_shared(p->sources[largest].archive),
				   ordinals, n, others, &done, why);
	if (err)
		return fail_copy(p, largest, err, why);
	n = 0;
	for (size_t i = 0; i < p->n_order && done; i++) {
		struct merge_object *o = &p->objects[p->order[i]];

		if (o->source != largest)
			continue;
		o->written = n++;
		progress_add(o->stored.size);
	}
	for (size_t i = 0; i < p->n_order; i++) {
		struct merge_object *o = &p->objects[p->order[i]];
		const struct kp_shared *s =
			kp_archive_shared(p->sources[o->source].archive);
		uint64_t size = s->objects[o->ordinal].size;
		KP_AUTO_FREE uint8_t *bytes = NULL;

		if (done && o->source == largest)
			continue;
		/* decode the object, and store it again */
		bytes = malloc((size_t)size + 1);
		if (!bytes)
			return kp_fail_memory(why, size, "an object");
		err = kp_shared_read(s, o->ordinal, 0, bytes, size, why);
		if (!err)
			err = kp_writer_add_stored(w,
						   (struct kp_span){bytes, (size_t)size},
						   &o->written, why);
		progress_add(o->stored.size);
		if (err)
			return fail_copy(p, o->source, err, why);
	}
	return KPACK_SUCCESS;
}

kpack_error_t merge_plan_write(struct merge_plan *plan, const char *dir, const char *name,
			       struct kp_writer **out, struct kpackx_error *why)
{
	KP_AUTO_FREE struct kp_span *more = xcalloc(plan->n_fields + 1, sizeof(*more));
	const struct kp_writer_options options = {
		.scheme = plan->scheme,
		.group = plan->group,
		.family = plan->family,
		.level = plan->options.level ? plan->options.level : KP_SHARED_LEVEL,
		.effort = plan->options.effort,
		.jobs = option_jobs(),
		.keep = plan->options.keep,
		.lazy = plan->options.lazy,
		.more = more,
		.n_more = plan->n_fields,
	};
	bool shared = plan->scheme == KP_COMPRESSION_ZSTD_SHARED;
	bool copies = !plan->encodes && !shared;
	struct kp_writer_blocks blocks;
	struct kp_writer *w = NULL;
	kpack_error_t err;

	for (size_t i = 0; i < plan->n_fields; i++)
		more[i] = plan->fields[i].pair;
	KP_TRY(below_writer_open(dir, name, &options, &w, why));
	if (plan->encodes)
		err = encode_objects(plan, w, why);
	else if (shared)
		err = write_all_shared(plan, w, why);
	else
		err = KPACK_SUCCESS;
	/* frames as they are stored: objects that follow one another in their source at once */
	for (size_t i = 0; i < plan->n_order && copies && !err;) {
		const struct merge_object *first = &plan->objects[plan->order[i]];
		uint64_t bytes = first->stored.size, before = kp_writer_blob_size(w);
		uint32_t n = 1, ordinal = 0;

		for (; i + n < plan->n_order && bytes < SLICE; n++) {
			const struct merge_object *o = &plan->objects[plan->order[i + n]];

			if (o->source != first->source ||
			    o->ordinal != first->ordinal + n)
				break;
			bytes += o->stored.size;
		}
		err = kp_writer_add_run(w, plan->sources[first->source].archive,
					first->ordinal, n, &ordinal, why);
		if (err)
			fail_copy(plan, first->source, err, why);
		for (; n; n--, i++)
			plan->objects[plan->order[i]].written = ordinal++;
		progress_add(kp_writer_blob_size(w) - before);
	}
	for (size_t i = 0; i < plan->n_items && !err; i++) {
		const struct merge_item *item = &plan->items[i];
		const struct merge_object *o = &plan->objects[item->object];
		KP_AUTO_FREE uint8_t *owned = NULL;
		struct kp_entry_info info;

		if (item->dropped)
			continue;
		merge_item_entry(plan, item, &info, NULL);
		err = kp_writer_add_entry(
			w, info.key, info.arch,
			&(struct kp_writer_entry){
				info.type, plan->objects[o->same].written, info.size,
				metadata_of(plan, item, &owned),
				merge_item_more(plan, item)},
			why);
	}
	blocks = kp_writer_blocks(w);
	plan->stats.blocks_copied = blocks.copied;
	plan->stats.blocks_encoded = blocks.encoded;
	if (!err)
		err = kp_writer_finish(w, why);
	plan->stats.bytes = kp_writer_blob_size(w);
	if (err)
		kp_writer_close(w);
	else
		*out = w;
	return err;
}
