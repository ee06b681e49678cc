/* SPDX-License-Identifier: MIT */
#include "toc_unknown.h"
#include <stdlib.h>
#include "core/base/alloc.h"

bool kp_toc_more_add(struct kp_toc_parser *p, struct kp_toc_more *list,
		     struct kp_more_run run, size_t start)
{
	struct kp_more_run *last = list->n ? &list->runs[list->n - 1] : NULL;

	run.at = (uint32_t)start;
	run.size = (uint32_t)(kp_mp_offset(&p->c) - start);
	run.count = 1;
	if (last && last->at + last->size == run.at) {
		last->size += run.size;
		last->count++;
		return true;
	}
	if (!kp_grow(&list->runs, list->n, &list->cap, sizeof(*list->runs))) {
		p->no_memory = true;
		return false;
	}
	list->runs[list->n++] = run;
	return true;
}

/* Runs are sorted by key, arch and offset. */
static int compare_run(const struct kp_more_run *run, uint32_t key, uint16_t arch,
		       uint32_t at)
{
	if (run->key != key)
		return KP_ORDER(run->key, key);
	if (run->arch != arch)
		return KP_ORDER(run->arch, arch);
	return KP_ORDER(run->at, at);
}

static int cmp_run(const void *a, const void *b)
{
	const struct kp_more_run *y = b;

	return compare_run(a, y->key, y->arch, y->at);
}

/* The number of the binary whose key is at offset KEY; equal keys have been merged. */
static uint32_t binary_at(const struct kp_toc *toc, uint32_t key)
{
	const char *text = (const char *)toc->bytes + key;

	return (uint32_t)kp_toc_lower_bound(toc, kp_span_str(text));
}

void kp_toc_more_index(struct kp_toc *toc)
{
	struct kp_toc_more *more = &toc->entries_more;
	uint32_t key = UINT32_MAX, binary = 0;

	for (size_t i = 0; i < more->n; i++) {
		if (more->runs[i].key != key) {
			key = more->runs[i].key;
			binary = binary_at(toc, key);
		}
		more->runs[i].key = binary;
	}
	if (more->n)
		qsort(more->runs, more->n, sizeof(*more->runs), cmp_run);
}

/* The number of the first run after those of KEY and ARCH. */
static size_t end_of(const struct kp_toc_more *more, uint32_t key, uint16_t arch)
{
	size_t low = 0, high = more->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (compare_run(&more->runs[mid], key, arch, UINT32_MAX) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

struct kp_more kp_toc_entry_more(const struct kp_toc *toc, const struct kp_toc_entry *e)
{
	const struct kp_toc_more *more = &toc->entries_more;
	struct kp_more found = {.bytes = toc->bytes};
	size_t end = end_of(more, e->binary, e->arch), begin = end;

	/* of a repeated entry, the last one counts, and only its pairs */
	while (begin && more->runs[begin - 1].key == e->binary &&
	       more->runs[begin - 1].arch == e->arch &&
	       more->runs[begin - 1].entry == more->runs[end - 1].entry)
		begin--;
	if (begin < end) {
		found.runs = &more->runs[begin];
		found.n_runs = end - begin;
	}
	return found;
}
