/* SPDX-License-Identifier: MIT */
/* Reads of bundles, each of whose parts is read as its entry. */
#include "content.h"
#include <stdlib.h>
#include <string.h>

struct gather;

/* The place of one part's bytes. */
struct slice {
	struct gather *gather;
	size_t at;
};

/* A read of several parts, or of bytes of none.  The last answer ends it. */
struct gather {
	content_answer *answer;
	void *token;
	atomic_uint left; /* answers to come, and 1 while the parts are asked for */
	atomic_bool failed;
	struct kpackx_error why; /* of the part that failed first */
	size_t len;
	uint8_t *bytes;
	struct slice slices[];
};

static void gather_put(struct gather *g)
{
	if (atomic_fetch_sub(&g->left, 1) > 1)
		return;
	if (atomic_load(&g->failed))
		g->answer(g->token, NULL, 0, &g->why);
	else
		g->answer(g->token, g->bytes, g->len, NULL);
	free(g->bytes);
	free(g);
}

/* The answer to the read of a part. */
static void take_slice(void *token, const void *data, size_t size,
		       const struct kpackx_error *why)
{
	struct slice *s = token;
	struct gather *g = s->gather;

	if (!why)
		memcpy(g->bytes + s->at, data, size);
	else if (!atomic_exchange(&g->failed, true))
		g->why = *why;
	gather_put(g);
}

void content_read_bundle(struct content *c, const struct bundle *b, uint64_t off,
			 size_t len, content_answer *answer, void *token)
{
	struct kpackx_error why = {0};
	uint32_t first = 0, count = 0, high = b->count;
	const struct bundle_part *part;
	struct gather *g;

	if (off >= b->size || len == 0) {
		answer(token, NULL, 0, NULL);
		return;
	}
	len = len < b->size - off ? len : (size_t)(b->size - off);
	while (first < high) { /* the first part that does not end at or before OFF */
		uint32_t mid = first + (high - first) / 2;

		if (b->parts[mid].offset + b->parts[mid].size <= off)
			first = mid + 1;
		else
			high = mid;
	}
	part = &b->parts[first];
	if (first < b->count && off >= part->offset &&
	    part->offset + part->size - off >= len) {
		content_read(c, part->what, off - part->offset, len, answer, token);
		return;
	}
	while (first + count < b->count && part[count].offset < off + len)
		count++;
	g = calloc(1, sizeof(*g) + count * sizeof(*g->slices));
	if (g)
		g->bytes = calloc(len, 1);
	if (!g || !g->bytes) {
		free(g);
		kp_fail_memory(&why, len, "a read");
		answer(token, NULL, 0, &why);
		return;
	}
	g->answer = answer;
	g->token = token;
	g->len = len;
	g->left = count + 1;
	if (off < b->header.size) {
		uint64_t n = b->header.size - off;

		memcpy(g->bytes, b->header.data + off, n < len ? (size_t)n : len);
	}
	for (uint32_t i = 0; i < count; i++, part++) {
		uint64_t begin = part->offset > off ? part->offset : off;
		uint64_t end = part->offset + part->size;

		end = end < off + len ? end : off + len;
		g->slices[i] = (struct slice){g, (size_t)(begin - off)};
		content_read(c, part->what, begin - part->offset, (size_t)(end - begin),
			     take_slice, &g->slices[i]);
	}
	gather_put(g);
}
