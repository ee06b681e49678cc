/* SPDX-License-Identifier: MIT */
#include "amdgpu_tails.h"
#include <stdlib.h>
#include <string.h>
#include "core/base/alloc.h"
#include "core/base/bounds.h"

#define NAMES_MAX (2 * KP_SYMBOL_NAMES_MAX)

kpack_error_t kp_tails_add(struct kp_tails *t, const char *text, size_t *number,
			   struct kpackx_error *why)
{
	size_t size = strlen(text);

	if (size >= NAMES_MAX - t->all)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "more than %d bytes of names", NAMES_MAX);
	if (!kp_grow(&t->items, t->n, &t->cap, sizeof(*t->items)))
		return kp_fail_memory(why, t->n * sizeof(*t->items), "names");
	*number = t->n;
	t->all += size + 1;
	t->items[t->n++] = (struct kp_tail){.text = text, .size = (uint32_t)size};
	return KPACK_SUCCESS;
}

/* The character DEPTH before the end; -1 before the first one. */
static int from_end(const struct kp_tail *s, uint32_t depth)
{
	return depth < s->size ? (uint8_t)s->text[s->size - 1 - depth] : -1;
}

static void swap_tails(struct kp_tail **a, struct kp_tail **b)
{
	struct kp_tail *x = *a;

	*a = *b;
	*b = x;
}

/* A run of strings with the same last DEPTH characters. */
struct run {
	struct kp_tail **items;
	size_t n;
	uint32_t depth;
};

/* Split R into the strings whose next character is greater than a pivot, equal, less. */
static void split_run(const struct run *r, struct run parts[3])
{
	size_t begin = 0, i = 0, end = r->n;
	int pivot = from_end(r->items[r->n / 2], r->depth);

	while (i < end) {
		int c = from_end(r->items[i], r->depth);

		if (c > pivot)
			swap_tails(&r->items[begin++], &r->items[i++]);
		else if (c < pivot)
			swap_tails(&r->items[--end], &r->items[i]);
		else
			i++;
	}
	parts[0] = (struct run){r->items, begin, r->depth};
	parts[1] = (struct run){r->items + begin, end - begin, r->depth + 1};
	parts[2] = (struct run){r->items + end, r->n - end, r->depth};
	if (pivot < 0)
		parts[1].n = 0; /* equal strings */
}

/* Sort from the ends, descending, so that a string follows those that it ends. */
static void sort_run(struct run r)
{
	while (r.n > 1) {
		struct run parts[3];
		int most = 0;

		split_run(&r, parts);
		for (int i = 1; i < 3; i++)
			if (parts[i].n > parts[most].n)
				most = i;
		/* calls are nested as deep as halving allows */
		for (int i = 0; i < 3; i++)
			if (i != most)
				sort_run(parts[i]);
		r = parts[most];
	}
}

static bool ends_with(const struct kp_tail *s, const struct kp_tail *end)
{
	return s && s->size >= end->size &&
	       memcmp(s->text + s->size - end->size, end->text, end->size) == 0;
}

/* The table begins with a NUL, which is the empty string. */
static void place_sorted(struct kp_tails *t, struct kp_tail *const *sorted)
{
	const struct kp_tail *last = NULL;

	t->size = 1;
	for (size_t i = 0; i < t->n; i++) {
		struct kp_tail *s = sorted[i];

		if (s->size == 0)
			continue;
		if (ends_with(last, s)) {
			s->at = last->at + (last->size - s->size);
			continue;
		}
		s->at = (uint32_t)t->size;
		t->size += s->size + UINT64_C(1);
		last = s;
	}
}

kpack_error_t kp_tails_place(struct kp_tails *t, struct kpackx_error *why)
{
	struct kp_tail **sorted = malloc((t->n + 1) * sizeof(*sorted));

	if (!sorted)
		return kp_fail_memory(why, t->n * sizeof(*sorted), "names");
	for (size_t i = 0; i < t->n; i++)
		sorted[i] = &t->items[i];
	sort_run((struct run){sorted, t->n, 0});
	place_sorted(t, sorted);
	free(sorted);
	return KPACK_SUCCESS;
}

void kp_tails_write(const struct kp_tails *t, uint8_t *out)
{
	memset(out, 0, (size_t)t->size);
	for (size_t i = 0; i < t->n; i++)
		memcpy(out + t->items[i].at, t->items[i].text, t->items[i].size);
}

void kp_tails_fini(struct kp_tails *t)
{
	free(t->items);
	*t = (struct kp_tails){0};
}
