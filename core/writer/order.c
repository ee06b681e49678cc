/* SPDX-License-Identifier: MIT */
/*
 * The order of objects in an archive (writer.h): the rank that an entry gives its object, and
 * whether the objects of an archive were added by rank.
 */
#include "core/archive/naming.h"
#include "core/base/alloc.h"
#include "internal.h"

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

struct kp_rank kp_rank_of(struct kp_span key, struct kp_span arch,
			  struct kp_span metadata)
{
	struct kp_key split = kp_key_split(key);
	struct kp_rank r = {.key = key, .named = true};
	struct kp_meta meta = {0};

	kp_meta_texts(metadata, &meta);
	r.path = meta.path;
	if (r.path.size)
		return r;
	r.path = split.binary;
	r.arch = arch;
	r.index = split.index;
	split_kind(&r.path, &r.kind);
	return r;
}

int kp_rank_compare(const struct kp_rank *a, const struct kp_rank *b)
{
	int c = b->named - a->named;

	if (!c)
		c = kp_span_cmp(a->path, b->path);
	if (!c)
		c = KP_ORDER(a->index, b->index);
	if (!c)
		c = kp_span_cmp(a->arch, b->arch);
	if (!c)
		c = kp_span_cmp(a->kind, b->kind);
	return c ? c : kp_span_cmp(a->key, b->key);
}

kpack_error_t kp_writer_is_ordered(const struct kp_writer *w, bool *ordered,
				   struct kpackx_error *why)
{
	KP_AUTO_FREE struct kp_rank *ranks = NULL; /* of each object */

	KP_TRY(kp_new(&ranks, w->n_frames, "objects", why));
	for (size_t i = 0; i < w->entries.n; i++) {
		const struct kp_listed *e = &w->entries.items[i];
		struct kp_rank r = kp_rank_of(kp_span_str(e->key), kp_span_str(e->arch),
					      e->metadata);

		if (kp_rank_compare(&r, &ranks[e->ordinal]) < 0)
			ranks[e->ordinal] = r;
	}
	*ordered = true;
	for (uint32_t i = 1; i < w->n_frames; i++)
		*ordered &= kp_rank_compare(&ranks[i - 1], &ranks[i]) <= 0;
	return KPACK_SUCCESS;
}
