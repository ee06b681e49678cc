/* SPDX-License-Identifier: MIT */
/* Compare the bytes of two entries of different archives. */
#include <stdlib.h>
#include "operands.h"
#include "packer/cli/xalloc.h"
#include "core/base/scheme.h"
#include "merge_internal.h"

/* The decoded bytes of two chunked entries that are compared at a time. */
enum { PIECE = 4 << 20 };

/* An entry, and what its archive says about it. */
struct side {
	const struct kpack_archive *archive;
	size_t entry;
	struct kp_entry_info info;
	struct kp_meta meta;
};

static struct side side_of(const struct merge_plan *p, const struct merge_item *item)
{
	struct side s = {.archive = p->sources[item->source].archive,
			 .entry = item->entry};

	merge_item_entry(p, item, &s.info, &s.meta);
	return s;
}

static kpack_error_t side_failed(const struct side *s, kpack_error_t err,
				 struct kpackx_error *why)
{
	return kp_fail_prefix(why, err, "%s: %.*s %.*s", kp_archive_path(s->archive),
			      (int)s->info.key.size, s->info.key.data,
			      (int)s->info.arch.size, s->info.arch.data);
}

/* --- one of them in memory ----------------------------------------------------------- */

struct comparison {
	const uint8_t *bytes;
	uint64_t at, size;
	bool same;
};

static kpack_error_t compare_data(const void *data, size_t size, void *arg,
				  struct kpackx_error *why)
{
	struct comparison *c = arg;

	(void)why;
	c->same = c->same && kp_range_ok(c->size, c->at, size) &&
		  memcmp(c->bytes + c->at, data, size) == 0;
	c->at += size;
	return KPACK_SUCCESS;
}

/*
 * Compare two entries: HELD is decoded into memory, OTHER is compared while it is
 * decoded.
 */
static kpack_error_t compare_with(const struct side *held, const struct side *other,
				  bool *same, struct kpackx_error *why)
{
	struct comparison c = {.size = held->info.size, .same = true};
	kpack_error_t err = kp_archive_check_size(held->archive, held->entry, why);
	uint8_t *bytes;

	if (err)
		return side_failed(held, err, why);
	bytes = malloc((size_t)held->info.size + 1);
	if (!bytes)
		return kp_fail_memory(why, held->info.size, "an entry");
	c.bytes = bytes;
	err = kp_archive_read(held->archive, held->entry, bytes, why);
	if (err) {
		side_failed(held, err, why);
	} else {
		err = archive_decode(other->archive, other->entry, compare_data, &c, why);
		if (err)
			side_failed(other, err, why);
	}
	free(bytes);
	*same = c.same && c.at == c.size;
	return err;
}

/* --- both in chunks ------------------------------------------------------------------ */

static kpack_error_t read_piece(const struct side *s, uint64_t at, uint8_t *buf,
				size_t *got, struct kpackx_error *why)
{
	kpack_error_t err =
		kp_archive_read_range(s->archive, s->entry, at, buf, PIECE, got, why);

	return err ? side_failed(s, err, why) : KPACK_SUCCESS;
}

static kpack_error_t compare_pieces(const struct side *a, const struct side *b,
				    bool *same, struct kpackx_error *why)
{
	uint8_t *buf = xmalloc(2 * PIECE);
	kpack_error_t err = KPACK_SUCCESS;

	*same = true;
	for (uint64_t at = 0; at < a->info.size && *same && !err; at += PIECE) {
		size_t n = 0, m = 0;

		err = read_piece(a, at, buf, &n, why);
		if (!err)
			err = read_piece(b, at, buf + PIECE, &m, why);
		*same = !err && n == m && memcmp(buf, buf + PIECE, n) == 0;
	}
	free(buf);
	return err;
}

/* ------------------------------------------------------------------------------------- */

kpack_error_t merge_same_bytes(const struct merge_plan *p, const struct merge_item *x,
			       const struct merge_item *y, bool *same,
			       struct kpackx_error *why)
{
	struct side a = side_of(p, x), b = side_of(p, y);
	const struct merge_object *ox = &p->objects[x->object],
				  *oy = &p->objects[y->object];

	*same = false;
	if (a.info.size != b.info.size)
		return KPACK_SUCCESS;
	if (a.meta.has_xxh3 && b.meta.has_xxh3 &&
	    memcmp(a.meta.xxh3, b.meta.xxh3, sizeof(a.meta.xxh3)) != 0)
		return KPACK_SUCCESS;
	if (!p->encodes && p->scheme != KP_COMPRESSION_ZSTD_SHARED)
		KP_TRY(kp_source_compare(&ox->stored, &oy->stored, same, why));
	if (*same || (!p->encodes && p->scheme == KPACK_COMPRESSION_NOOP))
		return KPACK_SUCCESS;
	if (a.meta.chunk && b.meta.chunk)
		return compare_pieces(&a, &b, same, why);
	return a.meta.chunk ? compare_with(&b, &a, same, why)
			    : compare_with(&a, &b, same, why);
}
