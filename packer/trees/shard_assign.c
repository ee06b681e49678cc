/* SPDX-License-Identifier: MIT */
#include "shard_assign.h"
#include <stdlib.h>
#include "packer/cli/xalloc.h"

/* --- spreading ----------------------------------------------------------------------- */

static int by_cost(const void *a, const void *b, void *arg)
{
	const uint64_t *costs = arg;
	size_t x = *(const size_t *)a, y = *(const size_t *)b;

	if (costs[x] != costs[y])
		return KP_ORDER(costs[y], costs[x]);
	return KP_ORDER(x, y);
}

/* The shards as a heap, the least loaded on top. */
struct load {
	uint64_t cost;
	unsigned index;
};

static bool is_less(const struct load *a, const struct load *b)
{
	return a->cost != b->cost ? a->cost < b->cost : a->index < b->index;
}

/* Restore the heap after the load on top has grown. */
static void sink_top(struct load *heap, unsigned count)
{
	unsigned at = 0;

	for (;;) {
		unsigned child = 2 * at + 1;
		struct load moved = heap[at];

		if (child + 1 < count && is_less(&heap[child + 1], &heap[child]))
			child++;
		if (child >= count || !is_less(&heap[child], &heap[at]))
			return;
		heap[at] = heap[child];
		heap[child] = moved;
		at = child;
	}
}

void shard_spread(const uint64_t *costs, size_t n, unsigned count, unsigned *owner)
{
	size_t *order = xmalloc(n * sizeof(*order));
	struct load *heap = xmalloc(count * sizeof(*heap));

	for (unsigned i = 0; i < count; i++)
		heap[i] = (struct load){0, i + 1};
	for (size_t i = 0; i < n; i++)
		order[i] = i;
	qsort_r(order, n, sizeof(*order), by_cost, (void *)costs);
	for (size_t i = 0; i < n; i++) {
		owner[order[i]] = heap[0].index;
		heap[0].cost += costs[order[i]];
		sink_top(heap, count);
	}
	free(order);
	free(heap);
}

/* --- assigning ----------------------------------------------------------------------- */

/* The cost of making a file, however small, so that no shard gets all empty ones. */
static const uint64_t FILE_COST = 4096;

static void add_costs(const struct scan *scan, const struct plan *plan,
		      bool archives_only, uint64_t *costs)
{
	for (size_t i = 0; i < scan->n_entries && !archives_only; i++) {
		const struct scan_entry *e = &scan->entries[i];

		if (!S_ISDIR(e->mode))
			costs[e->first] += FILE_COST;
		if (S_ISREG(e->mode) && e->first == i)
			costs[i] += e->id.size;
	}
	for (size_t i = 0; i < plan->n_objects; i++) {
		const struct plan_object *o = &plan->objects[i];

		costs[scan->entries[o->input->entry].first] +=
			o->input->images[o->image].size;
	}
}

bool *shard_assign(const struct scan *scan, const struct plan *plan, bool archives_only,
		   const struct shard *shard)
{
	size_t n = scan->n_entries;
	uint64_t *costs = xcalloc(n, sizeof(*costs));
	unsigned *owner = xcalloc(n, sizeof(*owner));
	bool *mine = xcalloc(n, sizeof(*mine));

	add_costs(scan, plan, archives_only, costs);
	shard_spread(costs, n, shard->count, owner);
	for (size_t i = 0; i < n; i++)
		mine[i] = !S_ISDIR(scan->entries[i].mode) &&
			  owner[scan->entries[i].first] == shard->index;
	free(costs);
	free(owner);
	return mine;
}
