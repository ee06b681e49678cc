/* SPDX-License-Identifier: MIT */
#include "passes.h"
#include <stdlib.h>

/* Bytes that a decoder holds besides its window: temporary blocks, tables. */
#define DECODER (512 << 10)

uint64_t pass_cost(uint64_t window)
{
	return window + DECODER;
}

struct pass *passes_nearest(const struct passes *ps, uint64_t entry, uint64_t number,
			    bool busy)
{
	struct pass *best = NULL;

	for (struct pass *p = ps->first; p; p = p->next)
		if (p->entry == entry && p->busy == busy && !p->ended &&
		    p->at <= number && (!best || p->at > best->at))
			best = p;
	return best;
}

bool passes_have(const struct passes *ps, uint64_t entry)
{
	for (const struct pass *p = ps->first; p; p = p->next)
		if (p->entry == entry)
			return true;
	return false;
}

static bool had_pass(const struct passes *ps, uint64_t entry)
{
	if (passes_have(ps, entry))
		return true;
	for (unsigned i = 0; i < PASSES_DROPPED; i++)
		if (ps->dropped[i] == entry)
			return true;
	return false;
}

struct pass *passes_add(struct passes *ps, uint64_t entry, struct origin *o,
			uint64_t window)
{
	struct pass *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	ps->begun++;
	ps->restarts += had_pass(ps, entry);
	p->entry = entry;
	p->origin = origin_ref(o);
	p->window = window;
	p->busy = true;
	p->next = ps->first;
	ps->first = p;
	ps->bytes += pass_cost(window);
	return p;
}

struct pass *passes_oldest(const struct passes *ps, const struct pass *except)
{
	struct pass *oldest = NULL;

	for (struct pass *p = ps->first; p; p = p->next)
		if (!p->busy && p != except)
			oldest = p;
	return oldest;
}

static void unlink_pass(struct passes *ps, struct pass *pass)
{
	struct pass **at = &ps->first;

	while (*at != pass)
		at = &(*at)->next;
	*at = pass->next;
}

void passes_rest(struct passes *ps, struct pass *pass, time_t now)
{
	unlink_pass(ps, pass);
	pass->next = ps->first;
	ps->first = pass;
	pass->busy = false;
	pass->used = now;
}

void passes_remove(struct passes *ps, struct pass *pass)
{
	unlink_pass(ps, pass);
	ps->bytes -= pass_cost(pass->window);
	if (!pass->ended)
		ps->dropped[ps->n_dropped++ % PASSES_DROPPED] = pass->entry;
}

void pass_free(struct pass *pass, struct decoders *decoders)
{
	decoders_close(decoders, pass->decoder);
	origin_unref(pass->origin);
	free(pass);
}
