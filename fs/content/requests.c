/* SPDX-License-Identifier: MIT */
#include "requests.h"
#include <stdlib.h>
#include "core/base/bounds.h"
#include "core/base/alloc.h"

struct request *requests_join(struct request *more, struct request *list)
{
	struct request **end = &more;

	while (*end)
		end = &(*end)->next;
	*end = list;
	return more;
}

static void request_free(struct request *r)
{
	free(r->gathered);
	origin_unref(r->what.origin);
	if (r->parked)
		free(r);
}

void request_fail(struct request *r, const struct kpackx_error *why)
{
	r->answer(r->token, NULL, 0, why);
	request_free(r);
}

void requests_fail(struct request *list, const struct kpackx_error *why)
{
	struct request *next;

	for (; list; list = next) {
		next = list->next;
		request_fail(list, why);
	}
}

uint64_t request_key(const struct request *r)
{
	return (uint64_t)r->what.origin->serial << 32 | r->what.entry;
}

uint64_t request_number(const struct request *r)
{
	return (r->off + r->done) / r->unit;
}

/*
 * The offset in its piece of the next byte of R; next_len: how many bytes R wants there.
 */
static uint64_t next_start(const struct request *r)
{
	return (r->off + r->done) % r->unit;
}

static size_t next_len(const struct request *r, const struct piece *p)
{
	uint64_t left = p->size - next_start(r);

	return left < r->len - r->done ? (size_t)left : r->len - r->done;
}

bool request_fits(const struct piece *p, const struct request *r)
{
	return p->ready >= next_start(r) + next_len(r, p);
}

void request_ready(struct pieces *ps, struct content_stats *s, struct request *r,
		   struct piece *p)
{
	size_t n = next_len(r, p);
	bool last = r->done + n == r->len;

	pieces_pin(ps, p);
	p->served += n;
	r->ready = p;
	s->bytes_served += n;
	s->reads += last;
	s->hits += last && !r->waited;
}

struct request *requests_take(struct pieces *ps, struct content_stats *s, struct piece *p)
{
	struct request *taken = NULL, **at = &p->parked;

	while (*at) {
		struct request *r = *at;

		if (!request_fits(p, r)) {
			at = &r->next;
			continue;
		}
		*at = r->next;
		r->next = taken;
		request_ready(ps, s, r, p);
		taken = r;
	}
	return taken;
}

bool request_give(struct request *r, const struct piece *p)
{
	const uint8_t *from = p->buffer.data + next_start(r);
	size_t n = next_len(r, p);

	if (n == r->len) {
		r->answer(r->token, from, n, NULL);
		request_free(r);
		return false;
	}
	if (!r->gathered)
		r->gathered = malloc(r->len);
	if (!r->gathered) {
		struct kpackx_error why = {0};

		kp_fail_memory(&why, r->len, "a read");
		request_fail(r, &why);
		return false;
	}
	memcpy(r->gathered + r->done, from, n);
	r->done += n;
	if (r->done < r->len)
		return true;
	r->answer(r->token, r->gathered, r->len, NULL);
	request_free(r);
	return false;
}

bool request_park(struct piece *p, struct request *r)
{
	if (!r->parked) {
		struct request *heap = malloc(sizeof(*heap));

		if (!heap)
			return false;
		*heap = *r;
		heap->parked = true;
		r = heap;
	}
	r->next = p->parked;
	p->parked = r;
	return true;
}
