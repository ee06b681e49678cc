/* SPDX-License-Identifier: MIT */
#include "toc_index.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "text.h"

static int cmp_string(const void *a, const void *b, void *arg)
{
	const struct kp_toc *toc = arg;

	return kp_span_cmp(toc->strings[*(const uint16_t *)a],
			   toc->strings[*(const uint16_t *)b]);
}

/* rank[n] is string n's place in bytewise order: entries compare by one number. */
static uint16_t *string_ranks(struct kp_toc *toc)
{
	size_t n = toc->n_strings;
	uint16_t *order = malloc((n + 1) * sizeof(*order));
	uint16_t *rank = malloc((n + 1) * sizeof(*rank));

	if (!order || !rank) {
		free(order);
		free(rank);
		return NULL;
	}
	for (size_t i = 0; i < n; i++)
		order[i] = (uint16_t)i;
	qsort_r(order, n, sizeof(*order), cmp_string, toc);
	for (size_t i = 0; i < n; i++)
		rank[order[i]] = (uint16_t)i;
	free(order);
	return rank;
}

static bool keys_ascend(const struct kp_toc *toc)
{
	for (size_t i = 1; i < toc->n_binaries; i++)
		if (kp_span_cmp(kp_toc_key(toc, i - 1), kp_toc_key(toc, i)) >= 0)
			return false;
	return true;
}

static bool arches_ascend(const struct kp_toc *toc, const uint16_t *rank)
{
	const struct kp_toc_entry *e = toc->entries;

	for (size_t i = 1; i < toc->n_entries; i++)
		if (e[i - 1].binary == e[i].binary && rank[e[i - 1].arch] >= rank[e[i].arch])
			return false;
	return true;
}

static int cmp_binary(const void *a, const void *b, void *arg)
{
	const struct kp_toc *toc = arg;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int c = kp_span_cmp(kp_toc_key(toc, x), kp_toc_key(toc, y));

	return c ? c : (x > y) - (x < y);
}

/* Sort the binaries, merge equal keys, and renumber the entries accordingly. */
static bool sort_binaries(struct kp_toc *toc)
{
	size_t n = toc->n_binaries, kept = 0;
	uint32_t *order = malloc((n + 1) * sizeof(*order));
	uint32_t *place = malloc((n + 1) * sizeof(*place));
	struct kp_toc_binary *sorted = malloc((n + 1) * sizeof(*sorted));

	if (!order || !place || !sorted)
		goto out;
	for (uint32_t i = 0; i < n; i++)
		order[i] = i;
	qsort_r(order, n, sizeof(*order), cmp_binary, toc);
	for (size_t i = 0; i < n; i++) {
		struct kp_span key = kp_toc_key(toc, order[i]);

		if (i && kp_span_eq(kp_toc_key(toc, order[i - 1]), key)) {
			char text[512];
			kp_faults_add(&toc->faults, false, "toc: %s: key twice, merged",
				      kp_text_escape(key, text, sizeof(text)));
			kept--;
		}
		sorted[kept] = toc->binaries[order[i]];
		place[order[i]] = (uint32_t)kept++;
	}
	for (size_t i = 0; i < toc->n_entries; i++)
		toc->entries[i].binary = place[toc->entries[i].binary];
	free(toc->binaries);
	toc->binaries = sorted;
	toc->n_binaries = kept;
	sorted = NULL;
out:
	free(order);
	free(place);
	free(sorted);
	return !sorted;
}

/* What a sort of entries compares; POSITION keeps it stable. */
struct entry_key {
	uint32_t binary;
	uint32_t rank;
	uint32_t position;
};

static int cmp_entry(const void *a, const void *b)
{
	const struct entry_key *x = a, *y = b;

	if (x->binary != y->binary)
		return x->binary < y->binary ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return (x->position > y->position) - (x->position < y->position);
}

/* Sort the entries by binary, then arch; of equal ones the last in the file stays. */
static bool sort_entries(struct kp_toc *toc, const uint16_t *rank)
{
	size_t n = toc->n_entries, kept = 0;
	struct entry_key *keys = malloc((n + 1) * sizeof(*keys));
	struct kp_toc_entry *sorted = malloc((n + 1) * sizeof(*sorted));

	if (!keys || !sorted)
		goto out;
	for (size_t i = 0; i < n; i++)
		keys[i] = (struct entry_key){toc->entries[i].binary,
					     rank[toc->entries[i].arch], (uint32_t)i};
	qsort(keys, n, sizeof(*keys), cmp_entry);
	for (size_t i = 0; i < n; i++) {
		const struct kp_toc_entry *e = &toc->entries[keys[i].position];

		if (kept && sorted[kept - 1].binary == e->binary &&
		    sorted[kept - 1].arch == e->arch) {
			kp_toc_entry_fault(toc, e, false, "twice, the last counts");
			kept--;
		}
		sorted[kept++] = *e;
	}
	free(toc->entries);
	toc->entries = sorted;
	toc->n_entries = kept;
	sorted = NULL;
out:
	free(keys);
	free(sorted);
	return !sorted;
}

/* Where each binary's entries begin; entries are in order. */
static void set_firsts(struct kp_toc *toc)
{
	size_t at = 0;

	for (size_t b = 0; b <= toc->n_binaries; b++) {
		while (at < toc->n_entries && toc->entries[at].binary < b)
			at++;
		toc->binaries[b].first = (uint32_t)at;
	}
}

kpack_error_t kp_toc_index(struct kp_toc *toc, struct kpackx_error *why)
{
	uint16_t *rank = string_ranks(toc);
	bool sorted = true, ok = rank != NULL;

	if (!toc->binaries) { /* room for the sentinel of an empty table */
		toc->binaries = calloc(1, sizeof(*toc->binaries));
		ok = ok && toc->binaries;
	}
	if (ok && !keys_ascend(toc)) {
		sorted = false;
		ok = sort_binaries(toc);
	}
	if (ok && (!sorted || !arches_ascend(toc, rank)))
		ok = sort_entries(toc, rank);
	if (ok)
		set_firsts(toc);
	free(rank);
	return ok ? KPACK_SUCCESS : kp_fail_memory(why, toc->size, "sorting the table");
}

bool kp_toc_find(const struct kp_toc *toc, struct kp_span key, struct kp_span arch,
		 size_t *entry)
{
	size_t low = 0, high = toc->n_binaries;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int c = kp_span_cmp(kp_toc_key(toc, mid), key);

		if (c == 0) {
			low = mid;
			break;
		}
		if (c < 0)
			low = mid + 1;
		else
			high = mid;
	}
	if (low >= high)
		return false;
	high = toc->binaries[low + 1].first;
	low = toc->binaries[low].first;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int c = kp_span_cmp(toc->strings[toc->entries[mid].arch], arch);

		if (c == 0) {
			*entry = mid;
			return true;
		}
		if (c < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return false;
}

void kp_toc_entry_fault(struct kp_toc *toc, const struct kp_toc_entry *e, bool refused,
			const char *fmt, ...)
{
	char key[512], arch[128], text[200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	kp_faults_add(&toc->faults, refused, "toc: %s %s: %s",
		      kp_text_escape(kp_toc_key(toc, e->binary), key, sizeof(key)),
		      kp_text_escape(toc->strings[e->arch], arch, sizeof(arch)), text);
}

void kp_toc_filter(struct kp_toc *toc,
		   bool (*drop)(struct kp_toc *toc, struct kp_toc_entry *e, void *arg),
		   void *arg)
{
	size_t kept = 0;

	for (size_t i = 0; i < toc->n_entries; i++) {
		if (drop(toc, &toc->entries[i], arg))
			continue;
		if (kept != i)
			toc->entries[kept] = toc->entries[i];
		kept++;
	}
	if (kept == toc->n_entries)
		return;
	toc->n_entries = kept;
	set_firsts(toc);
}
