/* SPDX-License-Identifier: MIT */
/*
 * Unknown pairs of MessagePack maps, which a later version wrote for an entry or for an
 * archive.  We do not use them, but preserve them when rewriting an archive.
 */
#ifndef KP_CORE_TOC_UNKNOWN_FIELDS_H
#define KP_CORE_TOC_UNKNOWN_FIELDS_H

#include "core/base/span.h"

/* Adjacent unknown pairs of one map. */
struct kp_more_run {
	uint32_t at, size; /* offset and size in the table's bytes */
	uint32_t count;    /* pairs */
	/* owner of the pairs in a table, see kp_toc_entry_more */
	uint32_t key, entry;
	uint16_t arch;
};

/* All unknown pairs of one map.  Borrowed; all zero: none. */
struct kp_more {
	const uint8_t *bytes;
	const struct kp_more_run *runs;
	size_t n_runs;
};

static inline struct kp_span kp_more_run(const struct kp_more *p, size_t run)
{
	return (struct kp_span){p->bytes + p->runs[run].at, p->runs[run].size};
}

static inline uint32_t kp_more_count(const struct kp_more *p)
{
	uint32_t count = 0;

	for (size_t i = 0; i < p->n_runs; i++)
		count += p->runs[i].count;
	return count;
}

static inline size_t kp_more_size(const struct kp_more *p)
{
	size_t size = 0;

	for (size_t i = 0; i < p->n_runs; i++)
		size += p->runs[i].size;
	return size;
}

/* Whether A and B have the same bytes, even in different runs. */
static inline bool kp_more_same(const struct kp_more *a, const struct kp_more *b)
{
	struct kp_span x = {0}, y = {0};
	size_t i = 0, k = 0, n;

	do {
		if (x.size == 0 && i < a->n_runs)
			x = kp_more_run(a, i++);
		if (y.size == 0 && k < b->n_runs)
			y = kp_more_run(b, k++);
		n = x.size < y.size ? x.size : y.size;
		if (n && memcmp(x.data, y.data, n) != 0)
			return false;
		x = (struct kp_span){x.data + n, x.size - n};
		y = (struct kp_span){y.data + n, y.size - n};
	} while (n);
	return x.size == y.size;
}

/* Copy the pairs to TO, which has room for kp_more_size bytes. */
static inline void kp_more_copy(const struct kp_more *p, uint8_t *to)
{
	for (size_t i = 0; i < p->n_runs; i++) {
		struct kp_span run = kp_more_run(p, i);

		memcpy(to, run.data, run.size);
		to += run.size;
	}
}

#endif
