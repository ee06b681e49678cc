/* SPDX-License-Identifier: MIT */
#include "logged_conflicts.h"
#include <stdlib.h>
#include <string.h>
#include "core/base/alloc.h"
#include "core/base/hash.h"
#include "core/base/span.h"

static int by_hash(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return KP_ORDER(x, y);
}

/* Without memory the conflict is not noted, and the next edition logs it again. */
bool logged_conflicts_of(struct logged_conflicts *w, uint32_t serial, const char *text)
{
	uint64_t hash = kp_hash64(text, strlen(text), serial);

	if (!w)
		return false;
	if (kp_grow(&w->now, w->n_now, &w->now_cap, sizeof(*w->now)))
		w->now[w->n_now++] = hash;
	return w->n_before &&
	       bsearch(&hash, w->before, w->n_before, sizeof(hash), by_hash);
}

size_t logged_conflicts_turn(struct logged_conflicts *w, size_t more)
{
	size_t fresh;

	if (!w)
		return more;
	fresh = more > w->more ? more - w->more : 0;
	free(w->before);
	if (w->n_now)
		qsort(w->now, w->n_now, sizeof(*w->now), by_hash);
	*w = (struct logged_conflicts){
		.before = w->now, .n_before = w->n_now, .more = more};
	return fresh;
}

void logged_conflicts_fini(struct logged_conflicts *w)
{
	free(w->now);
	free(w->before);
}
