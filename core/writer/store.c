/* SPDX-License-Identifier: MIT */
/*
 * Contents are looked for by hash and size, and what is found is compared byte by byte: a
 * hash can be equal by accident or on purpose, and nobody must get another one's code.
 */
#include "store.h"
#include <stdlib.h>
#include "core/archive/frames.h"
#include "core/base/alloc.h"
#include "internal.h"

struct kp_content kp_content_make(const struct kp_hash *hash, uint64_t size,
				  uint64_t chunk)
{
	struct kp_content c = {.size = size, .chunk = chunk};

	memcpy(c.hash, hash->bytes, sizeof(c.hash));
	return c;
}

struct kp_content kp_content_of(struct kp_span data, uint64_t chunk)
{
	struct kp_hash hash = kp_hash_of(data.data, data.size);

	return kp_content_make(&hash, data.size, chunk);
}

/* --- what is stored ---------------------------------------------------------------------- */

/* The slot of C's row, or the free slot where it belongs; the table has slots. */
static uint32_t *find_slot(const struct kp_store *s, const struct kp_content *c)
{
	uint32_t *slot = kp_slots_first(&s->slots,
					kp_slot_hash(c->hash, sizeof(c->hash), c->size));

	for (; *slot; slot = kp_slots_next(&s->slots, slot)) {
		const struct kp_content *there = &s->rows[*slot - 1].content;

		if (there->size == c->size && there->chunk == c->chunk &&
		    memcmp(there->hash, c->hash, sizeof(c->hash)) == 0)
			break;
	}
	return slot;
}

static uint64_t hash_row(const void *arg, uint32_t row)
{
	const struct kp_store *s = arg;
	const struct kp_content *c = &s->rows[row].content;

	return kp_slot_hash(c->hash, sizeof(c->hash), c->size);
}

bool kp_store_find(const struct kp_store *s, const struct kp_content *content,
		   uint32_t *ordinal)
{
	uint32_t row = s->slots.size ? *find_slot(s, content) : 0;

	if (row)
		*ordinal = s->rows[row - 1].ordinal;
	return row;
}

void kp_store_fini(struct kp_store *s)
{
	kp_writer_close(s->writer);
	free(s->rows);
	free(s->slots.slots);
	*s = (struct kp_store){.scheme = s->scheme};
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

kpack_error_t kp_store_read(struct kp_store *s, uint32_t ordinal,
			    struct kp_scratch *scratch, struct kp_span *out,
			    struct kpackx_error *why)
{
	uint64_t size = s->writer->sizes[ordinal];

	KP_TRY(reserve_scratch(&scratch->stored, &scratch->stored_cap, size, why));
	KP_TRY(kp_writer_read_stored(s->writer, ordinal, scratch->stored, why));
	*out = (struct kp_span){scratch->stored, (size_t)size};
	return KPACK_SUCCESS;
}

kpack_error_t kp_store_equals(kpack_compression_t scheme, struct kp_span stored,
			      struct kp_span data, struct kp_scratch *scratch,
			      bool *equal, struct kpackx_error *why)
{
	if (scheme == KPACK_COMPRESSION_ZSTD_PER_KERNEL) {
		KP_TRY(reserve_scratch(&scratch->decoded, &scratch->decoded_cap,
				       data.size, why));
		KP_TRY(kp_zstd_decode(stored, scratch->decoded, data.size, why));
		stored = (struct kp_span){scratch->decoded, data.size};
	}
	*equal = kp_span_eq(stored, data);
	return KPACK_SUCCESS;
}

kpack_error_t kp_store_decodes_to(const struct kp_source *stored,
				  const struct kp_source *data, bool *equal,
				  struct kpackx_error *why)
{
	enum { PIECE = 256 << 10 };
	KP_AUTO_FREE uint8_t *buf = malloc(2 * PIECE);
	struct kp_frames *frames = NULL;
	kpack_error_t err;

	if (!buf)
		return kp_fail_memory(why, 2 * PIECE, "comparing objects");
	err = kp_frames_open(&frames, stored, KP_FRAMES_PIECES, why);
	*equal = true;
	for (uint64_t at = 0, n, done; !err && *equal && at < data->size; at += n) {
		n = data->size - at < PIECE ? data->size - at : PIECE;
		done = 0;
		err = kp_frames_decode(frames, buf, n, n, &done, why);
		if (!err)
			err = kp_source_read(data, at, buf + PIECE, (size_t)n, why);
		*equal = !err && done == n && memcmp(buf, buf + PIECE, (size_t)n) == 0;
	}
	kp_frames_close(frames);
	return err;
}

/* --- adding ------------------------------------------------------------------------------ */

kpack_error_t kp_store_add_file(struct kp_store *s, const struct kp_content *content,
				const struct kp_source *stored, uint32_t *ordinal,
				bool *shared, struct kpackx_error *why)
{
	struct kp_scratch scratch = {0};
	struct kp_source file;
	struct kp_span there;
	uint32_t at, *slot;
	kpack_error_t err;

	/*
	 * The encoder gives the same frame for the same bytes, so that frames can be compared
	 * without decoding.  Another size means other bytes with the same hash, or another
	 * encoder's frame: both are stored beside what is there.
	 */
	*shared = false;
	if (kp_store_find(s, content, &at) && s->writer->sizes[at] == stored->size) {
		if (stored->fd >= 0) {
			KP_TRY(kp_writer_stored_source(s->writer, at, &file, why));
			KP_TRY(kp_source_compare(&file, stored, shared, why));
		} else {
			err = kp_store_read(s, at, &scratch, &there, why);
			*shared =
				!err &&
				kp_span_eq(there, (struct kp_span){stored->mem,
								   (size_t)stored->size});
			kp_scratch_fini(&scratch);
			if (err)
				return err;
		}
	}
	if (!*shared) {
		KP_TRY(kp_writer_add_source(s->writer, stored, &at, why));
		if (!kp_slots_grow(&s->slots, hash_row, s))
			return kp_fail_memory(why, sizeof(*content), "stored contents");
		KP_TRY(kp_room(&s->rows, s->n, &s->cap, "stored contents", why));
		slot = find_slot(s, content);
		if (!*slot) {
			kp_slots_put(&s->slots, slot, (uint32_t)s->n);
			s->rows[s->n++] = (struct kp_content_row){*content, at};
		}
	}
	*ordinal = at;
	return KPACK_SUCCESS;
}

kpack_error_t kp_store_add(struct kp_store *s, const struct kp_content *content,
			   struct kp_span stored, uint32_t *ordinal, bool *shared,
			   struct kpackx_error *why)
{
	struct kp_source source = kp_source_memory(stored.data, stored.size);

	return kp_store_add_file(s, content, &source, ordinal, shared, why);
}
