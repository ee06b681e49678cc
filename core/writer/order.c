/* SPDX-License-Identifier: MIT */
/*
 * The order of objects in an archive, which depends on its keys alone, not on who wrote
 * which object first: by the path of the file or binary, then for code by index,
 * architecture and kind; an object that several entries share is where the first of them is.
 */
#include <stdlib.h>
#include "core/archive/naming.h"
#include "core/base/msgpack_read.h"
#include "internal.h"

/* The place of an object. */
struct rank {
	struct kp_span path, kind;
	const char *arch; /* NULL: no entry names the object */
	uint32_t index, ordinal;
};

/* The "path" of a map of metadata; empty: it has none. */
static struct kp_span path_in(struct kp_span map)
{
	struct kp_span none = {0}, name, path;
	struct kp_mp c = kp_mp_over(map);
	uint32_t pairs;

	if (!map.size || !kp_mp_map(&c, &pairs))
		return none;
	for (; pairs; pairs--) {
		if (kp_mp_peek(&c) != KP_MP_STR || !kp_mp_str(&c, &name))
			return none;
		if (kp_span_is(name, "path") && kp_mp_peek(&c) == KP_MP_STR)
			return kp_mp_str(&c, &path) ? path : none;
		if (!kp_mp_skip(&c))
			return none;
	}
	return none;
}

/* Move the "@kind" or "@kind.2" of a binary's key from the end of PATH to KIND. */
static void split_kind(struct kp_span *path, struct kp_span *kind)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		"0123456789_+-",
			  digits[] = "0123456789";
	const uint8_t *at = memrchr(path->data, '@', path->size);
	size_t n = at ? path->size - (size_t)(at - path->data) : 0, i = 1;

	while (i < n && memchr(letters, at[i], sizeof(letters) - 1))
		i++;
	if (i > 1 && i + 1 < n && at[i] == '.')
		for (i++; i < n && memchr(digits, at[i], sizeof(digits) - 1);)
			i++;
	if (n < 2 || i < n)
		return;
	*kind = (struct kp_span){at, n};
	path->size -= n;
}

static struct rank rank_of(const struct kp_listed *e)
{
	struct kp_key key = kp_key_split(kp_span_str(e->key));
	struct rank r = {
		.path = path_in((struct kp_span){e->metadata, e->metadata_size}),
		.arch = "",
		.ordinal = e->ordinal,
	};

	if (r.path.size)
		return r;
	r.path = key.binary;
	r.arch = e->arch;
	r.index = key.index;
	split_kind(&r.path, &r.kind);
	return r;
}

static int cmp_place(const struct rank *x, const struct rank *y)
{
	int c;

	if (!x->arch || !y->arch)
		return (x->arch == NULL) - (y->arch == NULL);
	c = kp_span_cmp(x->path, y->path);
	if (!c)
		c = KP_ORDER(x->index, y->index);
	if (!c)
		c = strcmp(x->arch, y->arch);
	return c ? c : kp_span_cmp(x->kind, y->kind);
}

/* What has the same place stays in the order in which it came. */
static int by_place(const void *a, const void *b)
{
	const struct rank *x = a, *y = b;
	int c = cmp_place(x, y);

	return c ? c : KP_ORDER(x->ordinal, y->ordinal);
}

static kpack_error_t copy_object(struct kp_writer *from, uint32_t ordinal,
				 struct kp_writer *to, uint32_t *out,
				 struct kpackx_error *why)
{
	uint64_t size = kp_writer_stored_size(from, ordinal);
	struct kp_source stored;
	uint8_t *bytes;
	kpack_error_t err;

	if (!from->share) {
		KP_TRY(kp_writer_stored_source(from, ordinal, &stored, why));
		return kp_writer_add_source(to, &stored, out, why);
	}
	bytes = malloc((size_t)size + 1);
	if (!bytes)
		return kp_fail_memory(why, size, "an object");
	err = kp_writer_read_stored(from, ordinal, bytes, why);
	if (!err)
		err = kp_writer_add_stored(to, (struct kp_span){bytes, (size_t)size}, out,
					   why);
	free(bytes);
	return err;
}

/* The objects of W in their order; the caller frees *OUT. */
static kpack_error_t list_ranks(const struct kp_writer *w, struct rank **out,
				struct kpackx_error *why)
{
	struct rank *ranks = calloc((size_t)w->n_frames + 1, sizeof(*ranks));

	if (!ranks)
		return kp_fail_memory(why, w->n_frames * sizeof(*ranks), "objects");
	for (uint32_t i = 0; i < w->n_frames; i++)
		ranks[i].ordinal = i;
	for (size_t i = 0; i < w->entries.n; i++) {
		struct rank r = rank_of(&w->entries.items[i]);

		if (cmp_place(&r, &ranks[r.ordinal]) < 0)
			ranks[r.ordinal] = r;
	}
	qsort(ranks, w->n_frames, sizeof(*ranks), by_place);
	*out = ranks;
	return KPACK_SUCCESS;
}

kpack_error_t kp_writer_is_ordered(const struct kp_writer *w, bool *ordered,
				   struct kpackx_error *why)
{
	struct rank *ranks;

	KP_TRY(list_ranks(w, &ranks, why));
	*ordered = true;
	for (uint32_t i = 0; i < w->n_frames; i++)
		*ordered &= ranks[i].ordinal == i;
	free(ranks);
	return KPACK_SUCCESS;
}

kpack_error_t kp_writer_move_ordered(struct kp_writer *from, struct kp_writer *to,
				     struct kpackx_error *why)
{
	uint32_t *moved = calloc((size_t)from->n_frames + 1, sizeof(*moved));
	struct rank *ranks = NULL;
	kpack_error_t err = moved ? list_ranks(from, &ranks, why)
				  : kp_fail_memory(why, from->n_frames, "objects");

	for (uint32_t i = 0; i < from->n_frames && !err; i++)
		err = copy_object(from, ranks[i].ordinal, to, &moved[ranks[i].ordinal],
				  why);
	if (!err) {
		to->entries = from->entries;
		from->entries = (struct kp_entry_list){0};
		for (size_t i = 0; i < to->entries.n; i++)
			to->entries.items[i].ordinal =
				moved[to->entries.items[i].ordinal];
	}
	free(ranks);
	free(moved);
	return err;
}
