/* SPDX-License-Identifier: MIT */
#include "store.h"
#include <stdlib.h>
#include "core/archive/frames.h"
#include "core/base/alloc.h"

/* --- the contents that are stored -------------------------------------------------------- */

struct kp_content_row {
	struct kp_content content;
	uint32_t ordinal;
};

static bool same_content(const struct kp_content *a, const struct kp_content *b)
{
	return a->size == b->size && a->chunk == b->chunk &&
	       memcmp(a->hash, b->hash, sizeof(a->hash)) == 0;
}

static uint64_t hash_content(const struct kp_content *c)
{
	return kp_slot_hash(c->hash, sizeof(c->hash), c->size);
}

/* The slot of C's row, or the free slot where it belongs; the table has slots. */
static uint32_t *find_slot(const struct kp_content_table *t, const struct kp_content *c)
{
	uint32_t *slot = kp_slots_first(&t->slots, hash_content(c));

	while (*slot && !same_content(&t->rows[*slot - 1].content, c))
		slot = kp_slots_next(&t->slots, slot);
	return slot;
}

static uint64_t hash_row(const void *arg, uint32_t row)
{
	const struct kp_content_table *t = arg;

	return hash_content(&t->rows[row].content);
}

bool kp_content_table_find(const struct kp_content_table *t, const struct kp_content *c,
			   uint32_t *ordinal)
{
	uint32_t row = t->slots.size ? *find_slot(t, c) : 0;

	if (row)
		*ordinal = t->rows[row - 1].ordinal;
	return row;
}

bool kp_content_table_add(struct kp_content_table *t, const struct kp_content *c,
			  uint32_t ordinal)
{
	uint32_t *slot;

	if (!kp_slots_grow(&t->slots, hash_row, t) ||
	    !kp_grow(&t->rows, t->n, &t->cap, sizeof(*t->rows)))
		return false;
	slot = find_slot(t, c);
	if (!*slot) {
		kp_slots_put(&t->slots, slot, (uint32_t)t->n);
		t->rows[t->n++] = (struct kp_content_row){*c, ordinal};
	}
	return true;
}

void kp_content_table_fini(struct kp_content_table *t)
{
	free(t->rows);
	free(t->slots.slots);
	*t = (struct kp_content_table){0};
}

/* --- comparing --------------------------------------------------------------------------- */

static kpack_error_t reserve_scratch(uint8_t **buf, size_t *cap, uint64_t size,
				     struct kpackx_error *why)
{
	uint8_t *bigger;

	if (size <= *cap && *buf)
		return KPACK_SUCCESS;
	bigger = realloc(*buf, (size_t)size + 1);
	if (!bigger)
		return kp_fail_memory(why, size, "comparing objects");
	*buf = bigger;
	*cap = (size_t)size;
	return KPACK_SUCCESS;
}

void kp_scratch_fini(struct kp_scratch *s)
{
	free(s->stored);
	free(s->decoded);
	*s = (struct kp_scratch){0};
}

struct kp_content kp_content_of(struct kp_span data, uint64_t chunk)
{
	struct kp_hash hash = kp_hash_of(data.data, data.size);

	return kp_content_make(&hash, data.size, chunk);
}

struct kp_content kp_content_make(const struct kp_hash *hash, uint64_t size,
				  uint64_t chunk)
{
	struct kp_content c = {.size = size, .chunk = chunk};

	memcpy(c.hash, hash->bytes, sizeof(c.hash));
	return c;
}

void kp_store_fini(struct kp_store *s)
{
	kp_writer_close(s->writer);
	kp_content_table_fini(&s->contents);
	s->writer = NULL;
}

bool kp_store_find(const struct kp_store *s, const struct kp_content *content,
		   uint32_t *ordinal)
{
	return kp_content_table_find(&s->contents, content, ordinal);
}

kpack_error_t kp_store_read(struct kp_store *s, uint32_t ordinal,
			    struct kp_scratch *scratch, struct kp_span *out,
			    struct kpackx_error *why)
{
	uint64_t size = kp_writer_stored_size(s->writer, ordinal);

	KP_TRY(reserve_scratch(&scratch->stored, &scratch->stored_cap, size, why));
	KP_TRY(kp_writer_read_stored(s->writer, ordinal, scratch->stored, why));
	*out = (struct kp_span){scratch->stored, (size_t)size};
	return KPACK_SUCCESS;
}

kpack_error_t kp_store_equals(kpack_compression_t scheme, struct kp_span stored,
			      struct kp_span data, struct kp_scratch *scratch,
			      bool *equal, struct kpackx_error *why)
{
	if (scheme != KPACK_COMPRESSION_ZSTD_PER_KERNEL) {
		*equal = kp_span_eq(stored, data);
		return KPACK_SUCCESS;
	}
	KP_TRY(reserve_scratch(&scratch->decoded, &scratch->decoded_cap, data.size, why));
	KP_TRY(kp_zstd_decode(stored, scratch->decoded, data.size, why));
	*equal = kp_span_eq((struct kp_span){scratch->decoded, data.size}, data);
	return KPACK_SUCCESS;
}

/* BUF has room for two pieces of PIECE bytes. */
enum { PIECE = 256 << 10 };

static kpack_error_t compare_pieces(struct kp_frames *frames,
				    const struct kp_source *data, uint8_t *buf,
				    bool *equal, struct kpackx_error *why)
{
	uint64_t left = data->size, n = PIECE, done;

	for (*equal = true; *equal && left; left -= n) {
		n = left < PIECE ? left : PIECE;
		done = 0;
		KP_TRY(kp_frames_decode(frames, buf, n, n, &done, why));
		KP_TRY(kp_source_read(data, data->size - left, buf + PIECE, (size_t)n,
				      why));
		*equal = done == n && memcmp(buf, buf + PIECE, (size_t)n) == 0;
	}
	return KPACK_SUCCESS;
}

kpack_error_t kp_store_decodes_to(const struct kp_source *stored,
				  const struct kp_source *data, bool *equal,
				  struct kpackx_error *why)
{
	uint8_t *buf = malloc(2 * PIECE);
	struct kp_frames *frames = NULL;
	kpack_error_t err = buf ? kp_frames_open(stored, KP_FRAMES_PIECES, &frames, why)
				: kp_fail_memory(why, 2 * PIECE, "comparing objects");

	if (!err)
		err = compare_pieces(frames, data, buf, equal, why);
	kp_frames_close(frames);
	free(buf);
	return err;
}

/* Whether ORDINAL has the same STORED bytes. */
static kpack_error_t compare_stored(struct kp_store *s, uint32_t ordinal,
				    const struct kp_source *stored, bool *same,
				    struct kpackx_error *why)
{
	struct kp_scratch scratch = {0};
	struct kp_source file;
	struct kp_span there;
	kpack_error_t err;

	if (stored->fd >= 0) {
		KP_TRY(kp_writer_stored_source(s->writer, ordinal, &file, why));
		return kp_source_compare(&file, stored, same, why);
	}
	err = kp_store_read(s, ordinal, &scratch, &there, why);
	*same = !err &&
		kp_span_eq(there, (struct kp_span){stored->mem, (size_t)stored->size});
	kp_scratch_fini(&scratch);
	return err;
}

/*
 * Find the same STORED bytes.  The encoder gives the same frame for the same bytes, so
 * that frames can be compared without decoding.
 */
static kpack_error_t find_same(struct kp_store *s, const struct kp_content *content,
			       const struct kp_source *stored, uint32_t *ordinal,
			       bool *same, struct kpackx_error *why)
{
	*same = false;
	if (!kp_store_find(s, content, ordinal) ||
	    kp_writer_stored_size(s->writer, *ordinal) != stored->size)
		return KPACK_SUCCESS;
	return compare_stored(s, *ordinal, stored, same, why);
}

kpack_error_t kp_store_add(struct kp_store *s, const struct kp_content *content,
			   struct kp_span stored, uint32_t *ordinal, bool *shared,
			   struct kpackx_error *why)
{
	struct kp_source source = kp_source_memory(stored.data, stored.size);

	return kp_store_add_file(s, content, &source, ordinal, shared, why);
}

kpack_error_t kp_store_add_file(struct kp_store *s, const struct kp_content *content,
				const struct kp_source *stored, uint32_t *ordinal,
				bool *shared, struct kpackx_error *why)
{
	uint32_t at;

	KP_TRY(find_same(s, content, stored, &at, shared, why));
	if (!*shared) {
		KP_TRY(kp_writer_add_source(s->writer, stored, &at, why));
		if (!kp_content_table_add(&s->contents, content, at))
			return kp_fail_memory(why, sizeof(*content), "stored contents");
	}
	*ordinal = at;
	return KPACK_SUCCESS;
}
