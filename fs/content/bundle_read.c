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
	atomic_uint left; /* answers to come, and 1 while the parts are being asked for */
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

static struct gather *gather_new(uint32_t parts, size_t len)
{
	struct gather *g = calloc(1, sizeof(*g) + parts * sizeof(*g->slices));

	if (!g)
		return NULL;
	g->left = 1;
	g->len = len;
	g->bytes = calloc(len, 1);
	if (g->bytes)
		return g;
	free(g);
	return NULL;
}

/* The number of parts that end at or before OFF. */
static uint32_t parts_before(const struct bundle *b, uint64_t off)
{
	uint32_t low = 0, high = b->count;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (b->parts[mid].offset + b->parts[mid].size <= off)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Ask for those bytes of PART that are in [OFF, END). */
static void ask_part(struct content *c, struct gather *g, struct slice *s,
		     const struct bundle_part *part, uint64_t off, uint64_t end)
{
	uint64_t begin = part->offset > off ? part->offset : off;
	uint64_t stop = part->offset + part->size;

	stop = stop < end ? stop : end;
	*s = (struct slice){g, (size_t)(begin - off)};
	atomic_fetch_add(&g->left, 1);
	content_read_to(c, part->what, begin - part->offset, (size_t)(stop - begin),
			take_slice, s);
}

static void gather_parts(struct content *c, struct gather *g, const struct bundle *b,
			 uint64_t off, uint32_t first, uint32_t count)
{
	uint64_t end = off + g->len;

	if (off < b->header.size) {
		uint64_t n = b->header.size - off;

		memcpy(g->bytes, b->header.data + off, n < g->len ? (size_t)n : g->len);
	}
	for (uint32_t i = 0; i < count; i++)
		ask_part(c, g, &g->slices[i], &b->parts[first + i], off, end);
	gather_put(g);
}

void content_read_bundle(struct content *c, const struct bundle *b, uint64_t off,
			 size_t len, content_answer *answer, void *token)
{
	struct kpackx_error why = {0};
	const struct bundle_part *part;
	uint32_t first, end;
	struct gather *g;

	if (off >= b->size || len == 0) {
		answer(token, NULL, 0, NULL);
		return;
	}
	len = len < b->size - off ? len : (size_t)(b->size - off);
	first = parts_before(b, off);
	part = &b->parts[first];
	if (off >= part->offset && part->offset + part->size - off >= len) {
		content_read_to(c, part->what, off - part->offset, len, answer, token);
		return;
	}
	for (end = first; end < b->count && b->parts[end].offset < off + len; end++)
		;
	g = gather_new(end - first, len);
	if (!g) {
		kp_fail_memory(&why, len, "a read");
		answer(token, NULL, 0, &why);
		return;
	}
	g->answer = answer;
	g->token = token;
	gather_parts(c, g, b, off, first, end - first);
}
