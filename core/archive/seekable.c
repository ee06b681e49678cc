/* SPDX-License-Identifier: MIT */
#include "seekable.h"
#include <stdlib.h>

static const uint32_t SKIPPABLE = 0x184d2a5e, SEEKABLE = 0x8f92eab1;
static const uint8_t HAS_CHECKSUMS = 0x80, RESERVED = 0x7c;
enum { HEAD = 8, FOOT = 9 };

void kp_seek_table_write(const struct kp_seek_row *rows, uint32_t n, uint8_t *out)
{
	kp_put_le32(out, SKIPPABLE);
	kp_put_le32(out + 4, (uint32_t)(KP_SEEK_TABLE_SIZE(n) - HEAD));
	out += HEAD;
	for (uint32_t i = 0; i < n; i++, out += 12) {
		kp_put_le32(out, rows[i].stored);
		kp_put_le32(out + 4, rows[i].size);
		kp_put_le32(out + 8, rows[i].checksum);
	}
	kp_put_le32(out, n);
	out[4] = HAS_CHECKSUMS;
	kp_put_le32(out + 5, SEEKABLE);
}

struct table {
	uint32_t n;
	uint32_t row_size;
	uint64_t offset, size; /* of the skippable frame in the stored bytes */
};

static kpack_error_t find_table(const struct kp_source *stored, struct table *t,
				struct kpackx_error *why)
{
	uint8_t foot[FOOT], head[HEAD];

	if (stored->size < HEAD + FOOT)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "seek table: missing in %llu bytes",
			       (unsigned long long)stored->size);
	KP_TRY(kp_source_read(stored, stored->size - FOOT, foot, FOOT, why));
	if (kp_le32(foot + 5) != SEEKABLE || foot[4] & RESERVED)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "seek table: missing");
	t->n = kp_le32(foot);
	t->row_size = foot[4] & HAS_CHECKSUMS ? 12 : 8;
	t->size = HEAD + (uint64_t)t->n * t->row_size + FOOT;
	if (t->size > stored->size)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "seek table: %u rows in %llu bytes", t->n,
			       (unsigned long long)stored->size);
	t->offset = stored->size - t->size;
	KP_TRY(kp_source_read(stored, t->offset, head, HEAD, why));
	if (kp_le32(head) != SKIPPABLE || kp_le32(head + 4) != t->size - HEAD)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "seek table: %u rows do not fit its frame", t->n);
	return KPACK_SUCCESS;
}

static kpack_error_t read_rows(const struct kp_source *stored, const struct table *t,
			       uint8_t *bytes, struct kp_seek_row *rows,
			       struct kpackx_error *why)
{
	size_t size = (size_t)t->n * t->row_size;
	uint64_t sum = 0;

	KP_TRY(kp_source_read(stored, t->offset + HEAD, bytes, size, why));
	for (uint32_t i = 0; i < t->n; i++) {
		const uint8_t *p = bytes + (size_t)i * t->row_size;

		rows[i] = (struct kp_seek_row){
			.stored = kp_le32(p),
			.size = kp_le32(p + 4),
			.checksum = t->row_size == 12 ? kp_le32(p + 8) : 0,
			.checked = t->row_size == 12,
		};
		sum += rows[i].stored;
	}
	if (sum != t->offset)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "seek table: rows add up to %llu of %llu bytes",
			       (unsigned long long)sum, (unsigned long long)t->offset);
	return KPACK_SUCCESS;
}

kpack_error_t kp_seek_table_read(const struct kp_source *stored,
				 struct kp_seek_row **rows, uint32_t *n,
				 struct kpackx_error *why)
{
	struct kp_seek_row *table = NULL;
	uint8_t *bytes = NULL;
	struct table t = {0};
	kpack_error_t err;

	KP_TRY(find_table(stored, &t, why));
	bytes = malloc((size_t)t.n * t.row_size + 1);
	table = malloc((size_t)t.n * sizeof(*table) + 1);
	err = bytes && table ? read_rows(stored, &t, bytes, table, why)
			     : kp_fail_memory(why, t.size, "seek table");
	free(bytes);
	if (err) {
		free(table);
		return err;
	}
	*rows = table;
	*n = t.n;
	return KPACK_SUCCESS;
}
