/* SPDX-License-Identifier: MIT */
/*
 * Objects with equal stored bytes, of which one is stored.  Equal sizes make candidates.
 * If all candidates state the hash of their content, it is trusted to distinguish
 * different ones; otherwise their stored bytes are hashed.  Objects are shared only after
 * their bytes were compared.
 */
#include <stdlib.h>
#include "merge_internal.h"
#include "core/base/hash.h"
#include "core/base/scheme.h"
#include "packer/cli/xalloc.h"

/* --- one place in a file, several ordinals (scheme none) ------------------------------ */

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
 * Overlapping blobs are copied once for each: an archive of a few bytes could grow
 * without bound, so refuse those that have more bytes in all than their file.  LIST is
 * sorted by place.
 */
static kpack_error_t check_sum(const struct merge_plan *p, const uint32_t *list, size_t n,
			       struct kpackx_error *why)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++) {
		const struct merge_object *o = &p->objects[list[i]];
		const struct kpack_archive *a = p->sources[o->source].archive;

		if (i == 0 || o->source != p->objects[list[i - 1]].source)
			sum = 0;
		if (o->same != list[i])
			continue;
		sum += o->stored.size;
		if (sum > (uint64_t)kp_archive_stat(a)->st_size)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "%s: blobs: overlap, and have more bytes in all "
				       "than the file",
				       kp_archive_path(a));
	}
	return KPACK_SUCCESS;
}

static kpack_error_t share_places(struct merge_plan *p, uint32_t *list, size_t n,
				  struct kpackx_error *why)
{
	qsort_r(list, n, sizeof(*list), by_place, p->objects);
	for (size_t i = 1; i < n; i++) {
		struct merge_object *a = &p->objects[list[i - 1]],
				    *b = &p->objects[list[i]];

		if (a->source == b->source && a->stored.offset == b->stored.offset &&
		    a->stored.size == b->stored.size)
			b->same = a->same;
	}
	return check_sum(p, list, n, why);
}

/* --- equal bytes ---------------------------------------------------------------------- */

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

static kpack_error_t hash_stored(struct merge_object *o, struct kp_hasher *hasher,
				 struct kpackx_error *why)
{
	struct kp_hash hash;
	uint8_t buf[65536];
	size_t n = sizeof(buf);

	kp_hasher_reset(hasher);
	for (uint64_t at = 0; at < o->stored.size; at += n) {
		if (n > o->stored.size - at)
			n = (size_t)(o->stored.size - at);
		KP_TRY(kp_source_read(&o->stored, at, buf, n, why));
		kp_hasher_add(hasher, buf, n);
	}
	hash = kp_hasher_value(hasher);
	memcpy(o->hash, hash.bytes, sizeof(o->hash));
	return KPACK_SUCCESS;
}

/* Give all objects of LIST hashes of the same kind. */
static kpack_error_t hash_alike(struct merge_plan *p, const uint32_t *list, size_t n,
				struct kp_hasher *hasher, struct kpackx_error *why)
{
	bool all = true;

	for (size_t i = 0; i < n; i++)
		all = all && p->objects[list[i]].hashed;
	for (size_t i = 0; i < n && !all; i++) {
		struct merge_object *o = &p->objects[list[i]];
		kpack_error_t err = hash_stored(o, hasher, why);

		if (err)
			return kp_fail_prefix(why, err, "%s",
					      merge_source_name(p, o->source));
	}
	return KPACK_SUCCESS;
}

/* Share equal objects in LIST, which all have the same sizes. */
static kpack_error_t share_list(struct merge_plan *p, uint32_t *list, size_t n,
				struct kp_hasher *hasher, struct kpackx_error *why)
{
	size_t first = 0;

	if (n < 2)
		return KPACK_SUCCESS;
	KP_TRY(hash_alike(p, list, n, hasher, why));
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

static kpack_error_t share_contents(struct merge_plan *p, uint32_t *list, size_t n,
				    struct kpackx_error *why)
{
	struct kp_hasher *hasher = kp_hasher_new();
	kpack_error_t err = KPACK_SUCCESS;

	if (!hasher)
		xalloc_fail(0);
	qsort_r(list, n, sizeof(*list), by_sizes, p->objects);
	for (size_t i = 0, run; i < n && !err; i += run) {
		for (run = 1; i + run < n && cmp_sizes(&p->objects[list[i]],
						       &p->objects[list[i + run]]) == 0;)
			run++;
		err = share_list(p, list + i, run, hasher, why);
	}
	kp_hasher_free(hasher);
	return err;
}

/* ------------------------------------------------------------------------------------- */

/* Keep the objects of LIST that still stand for themselves; returns how many. */
static size_t keep_own(const struct merge_plan *p, uint32_t *list, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		if (p->objects[list[i]].same == list[i])
			list[kept++] = list[i];
	return kept;
}

static bool is_plain(const struct merge_plan *p, uint32_t source)
{
	return strcmp(kp_archive_scheme(p->sources[source].archive),
		      kp_scheme_name(KPACK_COMPRESSION_NOOP)) == 0;
}

/* When everything is stored anew: only look at the objects that may overlap. */
static kpack_error_t share_plain(struct merge_plan *p, uint32_t *list,
				 struct kpackx_error *why)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n_order; i++)
		if (is_plain(p, p->objects[p->order[i]].source))
			list[n++] = p->order[i];
	if (n)
		KP_TRY(share_places(p, list, n, why));
	p->n_order = keep_own(p, p->order, p->n_order);
	return KPACK_SUCCESS;
}

static kpack_error_t share_all(struct merge_plan *p, uint32_t *list,
			       struct kpackx_error *why)
{
	size_t n = p->n_order;

	if (p->encodes)
		return share_plain(p, list, why);
	if (p->scheme == KP_COMPRESSION_ZSTD_SHARED)
		return KPACK_SUCCESS; /* the writer finds what is equal */
	if (p->scheme == KPACK_COMPRESSION_NOOP) {
		KP_TRY(share_places(p, list, n, why));
		n = keep_own(p, list, n);
	}
	KP_TRY(share_contents(p, list, n, why));
	n = keep_own(p, p->order, p->n_order);
	p->stats.shared = p->n_order - n;
	p->n_order = n;
	/* a place may stand for another whose content is stored elsewhere */
	for (size_t i = 0; i < p->n_objects; i++)
		p->objects[i].same = p->objects[p->objects[i].same].same;
	return KPACK_SUCCESS;
}

kpack_error_t merge_share(struct merge_plan *p, struct kpackx_error *why)
{
	uint32_t *list = xmalloc(p->n_order * sizeof(*list));
	kpack_error_t err;

	memcpy(list, p->order, p->n_order * sizeof(*list));
	err = share_all(p, list, why);
	free(list);
	return err;
}
