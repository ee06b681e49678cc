/* SPDX-License-Identifier: MIT */
/*
 * Plain offload bundle, as clang-offload-bundler writes it:
 *
 *   24 bytes  "__CLANG_OFFLOAD_BUNDLE__"
 *   u64       number of entries
 *   per entry u64 offset from the magic, u64 size, u64 length of the ID, the ID
 *
 * and then the objects.  No field states the bundle's size: it ends with the object that
 * ends last.
 */
#include "bundle.h"
#include <inttypes.h>
#include <stdlib.h>
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "core/base/order.h"

/* Header bytes fetched at first; real headers fit, and the HIP runtime reads no more. */
#define FIRST_FETCH 4096

static const char magic[24] = {'_', '_', 'C', 'L', 'A', 'N', 'G', '_',
			       'O', 'F', 'F', 'L', 'O', 'A', 'D', '_',
			       'B', 'U', 'N', 'D', 'L', 'E', '_', '_'};

bool kp_bundle_probe(struct kp_span head)
{
	return kp_span_starts(head, magic, sizeof(magic));
}

/* A header that is being read, of a bundle of which SIZE bytes exist. */
struct head {
	kp_bundle_more_fn *more;
	void *arg;
	uint8_t *bytes; /* on the heap */
	uint64_t have, size;
};

static void head_fini(struct head *h)
{
	free(h->bytes);
}

/*
 * Have the first WANT bytes, and as many more as make this rare: no field states the header's size, as
 * each row's ID has a length of its own.
 */
static kpack_error_t fetch_header(struct head *h, uint64_t want, struct kpackx_error *why)
{
	uint64_t step = h->have ? 2 * h->have : FIRST_FETCH;
	uint8_t *grown;

	if (want > h->size)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "header of %" PRIu64 " bytes or more passes the end "
			       "at %" PRIu64,
			       want, h->size);
	if (want <= h->have)
		return KPACK_SUCCESS;
	want = step > want ? step : want;
	want = want > h->size ? h->size : want;
	grown = realloc(h->bytes, (size_t)want);
	if (!grown)
		return kp_fail_memory(why, want, "a bundle header");
	h->bytes = grown;
	KP_TRY(h->more(h->arg, h->bytes, (size_t)h->have, (size_t)want, why));
	h->have = want;
	return KPACK_SUCCESS;
}

kpack_error_t kp_bundle_list(kp_bundle_more_fn *more, void *arg, uint64_t size,
			     struct kp_container *c, struct kp_containers *list,
			     uint64_t *end, struct kpackx_error *why)
{
	KP_AUTO(head) h = {.more = more, .arg = arg, .size = size};
	uint64_t header_size = KP_BUNDLE_HEADER_MIN, n;
	const uint8_t *p;

	if (size < KP_BUNDLE_HEADER_MIN)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "%" PRIu64 " bytes are no bundle, the header has %d", size,
			       KP_BUNDLE_HEADER_MIN);
	KP_TRY(fetch_header(&h, header_size, why));
	if (memcmp(h.bytes, magic, sizeof(magic)) != 0)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "not an offload bundle");
	n = kp_le64(h.bytes + sizeof(magic));
	if (n > KP_BUNDLE_ENTRIES_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "%" PRIu64 " entries of at most %d", n,
			       KP_BUNDLE_ENTRIES_MAX);
	if (n > (size - KP_BUNDLE_HEADER_MIN) / KP_BUNDLE_ROW_SIZE)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "%" PRIu64 " entries do not fit into %" PRIu64 " bytes", n,
			       size);
	/* where the header ends is known when the last ID's length is */
	for (uint64_t i = 0; i < n; i++) {
		uint64_t id_len;

		KP_TRY(fetch_header(&h, header_size + (n - i) * KP_BUNDLE_ROW_SIZE, why));
		id_len = kp_le64(h.bytes + header_size + 16);
		if (id_len > KP_ENTRY_ID_MAX)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "entry %" PRIu64 ": ID of %" PRIu64
				       " bytes, at most %d",
				       i, id_len, KP_ENTRY_ID_MAX);
		header_size += KP_BUNDLE_ROW_SIZE + id_len;
	}
	KP_TRY(fetch_header(&h, header_size, why));
	p = h.bytes + KP_BUNDLE_HEADER_MIN;
	*end = header_size;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t offset = kp_le64(p), len = kp_le64(p + 8),
			 id_len = kp_le64(p + 16);
		struct kp_span id = {p + KP_BUNDLE_ROW_SIZE, (size_t)id_len};

		/* an empty entry may state any offset */
		if (len && offset < header_size)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "entry %" PRIu64 ": offset %" PRIu64
				       " is inside the header of %" PRIu64 " bytes",
				       i, offset, header_size);
		if (len && !kp_range_ok(size, offset, len))
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "entry %" PRIu64 ": %" PRIu64
				       " bytes at offset %" PRIu64
				       " pass the end at %" PRIu64,
				       i, len, offset, size);
		KP_TRY(kp_containers_add_image(list, c, id, offset, len, why));
		if (len && offset + len > *end)
			*end = offset + len;
		p += KP_BUNDLE_ROW_SIZE + id_len;
	}
	/* the bundler does not write the gap before an empty last entry */
	for (size_t i = c->first_image; i < list->n_images; i++)
		if (list->images[i].size == 0 && list->images[i].offset > *end)
			list->images[i].offset = 0;
	return KPACK_SUCCESS;
}

uint64_t kp_bundle_header_size(const struct kp_bundle_row *rows, size_t n)
{
	uint64_t size = KP_BUNDLE_HEADER_MIN;

	for (size_t i = 0; i < n; i++)
		size += KP_BUNDLE_ROW_SIZE + rows[i].id.size;
	return size;
}

/* Offsets are signed in files: INT64_MAX is the largest. */
bool kp_bundle_place(struct kp_bundle_row *rows, size_t n, uint64_t align, uint64_t gap,
		     uint64_t *size)
{
	uint64_t end = kp_bundle_header_size(rows, n);

	for (size_t i = 0; i < n; i++) {
		uint64_t fill;

		if (gap > INT64_MAX - end)
			return false;
		fill = (align - (end + gap) % align) % align;
		if (fill > INT64_MAX - (end + gap))
			return false;
		rows[i].offset = end + gap + fill;
		if (rows[i].size > INT64_MAX - rows[i].offset)
			return false;
		if (rows[i].size)
			end = rows[i].offset + rows[i].size;
	}
	*size = end;
	return true;
}

void kp_bundle_header_write(const struct kp_bundle_row *rows, size_t n, uint8_t *out)
{
	memcpy(out, magic, sizeof(magic));
	kp_put_le64(out + sizeof(magic), n);
	out += KP_BUNDLE_HEADER_MIN;
	for (size_t i = 0; i < n; i++) {
		kp_put_le64(out, rows[i].offset);
		kp_put_le64(out + 8, rows[i].size);
		kp_put_le64(out + 16, rows[i].id.size);
		out += KP_BUNDLE_ROW_SIZE;
		if (rows[i].id.size)
			memcpy(out, rows[i].id.data, rows[i].id.size);
		out += rows[i].id.size;
	}
}

static kpack_error_t more_from_source(void *arg, uint8_t *buf, size_t have, size_t want,
				      struct kpackx_error *why)
{
	return kp_source_read(arg, have, buf + have, want - have, why);
}

static kpack_error_t parse_bundle(const struct kp_source *src, struct kp_container *c,
				  struct kp_containers *list, struct kpackx_error *why)
{
	struct kp_source rest = *src;

	KP_TRY(kp_bundle_list(more_from_source, &rest, src->size, c, list, &c->size,
			      why));
	c->payload_size = c->size;
	return KPACK_SUCCESS;
}

const struct kp_format kp_format_bundle = {
	.name = "bundle",
	.probe = kp_bundle_probe,
	.parse = parse_bundle,
};

/* ---- without some of its entries ---- */

/* A row with bytes, and its offset before. */
struct moved {
	uint64_t offset;
	struct kp_bundle_row *row;
};

/*
 * Overlapping rows move as one run, so that nothing grows: no run begins later than
 * before.  Empty entries get the first object's offset; LLVM stops reading at an offset
 * of 0.
 */
kpack_error_t kp_bundle_move_together(struct kp_bundle_row *rows, size_t n,
				      uint64_t *size, struct kpackx_error *why)
{
	uint64_t pos = kp_bundle_header_size(rows, n), all = 0, align;
	uint64_t run_old = 0, run_new = 0, run_end = 0, first;
	KP_AUTO_FREE struct moved *sorted = NULL;
	size_t m = 0;

	KP_TRY(kp_new(&sorted, n, "a bundle", why));
	for (size_t i = 0; i < n; i++) {
		if (!rows[i].size)
			continue;
		all |= rows[i].offset;
		sorted[m++] = (struct moved){rows[i].offset, &rows[i]};
	}
	kp_sort(sorted, m, KP_BY_NUMBER(struct moved, offset));
	align = kp_bundle_alignment(all);
	for (size_t i = 0; i < m; i++) {
		uint64_t old = sorted[i].offset;

		if (i == 0 || old >= run_end) {
			run_old = run_end = old;
			run_new = (pos + align - 1) & -align;
		}
		sorted[i].row->offset = run_new + (old - run_old);
		if (old + sorted[i].row->size > run_end)
			run_end = old + sorted[i].row->size;
		pos = run_new + (run_end - run_old);
	}
	*size = pos;
	first = m ? sorted[0].row->offset : pos;
	for (size_t i = 0; i < n; i++)
		if (rows[i].size == 0)
			rows[i].offset = first;
	return KPACK_SUCCESS;
}
