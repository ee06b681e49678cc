/* SPDX-License-Identifier: MIT */
#include "toc_index.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/base/alloc.h"
#include "core/base/text.h"
#include "toc_unknown.h"

static int cmp_string(const void *a, const void *b, void *arg)
{
	const struct kp_toc *toc = arg;

	return kp_span_cmp(toc->strings[*(const uint16_t *)a],
			   toc->strings[*(const uint16_t *)b]);
}

/*
 * rank[n] is the position of string n in bytewise order, so that entries compare by it.
 */
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

/*
 * Keys are long and have common prefixes, so string comparisons would cause many cache
 * misses.  Instead the sort takes eight bytes at a time: it skips the prefix that all
 * keys of a run share, compares the next eight bytes as one number, and sorts keys with
 * equal numbers by the bytes that follow.
 */
struct sort_key {
	uint64_t bytes; /* eight bytes of the key, big-endian, zeros after its end */
	uint32_t binary;
	bool repeats; /* the previous key is the same */
};

/* With fewer keys, counting for a radix sort costs more than it saves. */
enum { RADIX_MIN = 256 };

static int cmp_bytes(const void *a, const void *b)
{
	const struct sort_key *x = a, *y = b;

	if (x->bytes != y->bytes)
		return KP_ORDER(x->bytes, y->bytes);
	return KP_ORDER(x->binary, y->binary);
}

/* Count how often each value of each byte occurs. */
static void count_bytes(const struct sort_key *run, size_t n, uint32_t counts[8][256])
{
	memset(counts, 0, 8 * 256 * sizeof(uint32_t));
	for (size_t i = 0; i < n; i++)
		for (int byte = 0; byte < 8; byte++)
			counts[byte][run[i].bytes >> (8 * byte) & 0xff]++;
}

/* Sort FROM into TO by byte BYTE, stably. */
static void radix_pass(const struct sort_key *from, struct sort_key *to, size_t n,
		       int byte, const uint32_t counts[256])
{
	uint32_t place[256], at = 0;

	for (int v = 0; v < 256; v++) {
		place[v] = at;
		at += counts[v];
	}
	for (size_t i = 0; i < n; i++)
		to[place[from[i].bytes >> (8 * byte) & 0xff]++] = from[i];
}

/* Sort by the eight bytes, stably; SPARE has room for N. */
static void sort_bytes(struct sort_key *run, struct sort_key *spare, size_t n)
{
	uint32_t counts[8][256];
	struct sort_key *from = run, *to = spare;

	if (n < RADIX_MIN) {
		qsort(run, n, sizeof(*run), cmp_bytes);
		return;
	}
	count_bytes(run, n, counts);
	for (int byte = 0; byte < 8; byte++) {
		struct sort_key *sorted = to;

		if (counts[byte][run[0].bytes >> (8 * byte) & 0xff] == n)
			continue; /* all keys have the same byte */
		radix_pass(from, to, n, byte, counts[byte]);
		to = from;
		from = sorted;
	}
	if (from != run)
		memcpy(run, from, n * sizeof(*run));
}

static uint64_t eight_bytes(struct kp_span key, size_t at)
{
	uint8_t buf[8] = {0};
	size_t n = key.size > at ? key.size - at : 0;

	memcpy(buf, key.data + (n ? at : 0), n < 8 ? n : 8);
	return __builtin_bswap64(kp_le64(buf));
}

/* Keys and entries are spread over memory: prefetch this many ahead. */
enum { AHEAD = 12 };

static void fetch_key(const struct kp_toc *toc, const struct sort_key *run, size_t n,
		      size_t i, size_t at)
{
	if (i < n)
		__builtin_prefetch(kp_toc_key(toc, run[i].binary).data + at);
}

/* Offset, AT or later, up to which all keys of the run are equal. */
static size_t shared_bytes(const struct kp_toc *toc, const struct sort_key *run, size_t n,
			   size_t at)
{
	struct kp_span first = kp_toc_key(toc, run[0].binary);
	size_t shared = first.size;

	for (size_t i = 1; i < n && shared > at; i++) {
		struct kp_span key = kp_toc_key(toc, run[i].binary);
		size_t k = at;

		fetch_key(toc, run, n, i + AHEAD, at);

		if (key.size < shared)
			shared = key.size;
		while (k + 8 <= shared &&
		       kp_le64(key.data + k) == kp_le64(first.data + k))
			k += 8;
		while (k < shared && key.data[k] == first.data[k])
			k++;
		shared = k;
	}
	return shared < at ? at : shared;
}

static void sort_run(const struct kp_toc *toc, struct sort_key *run,
		     struct sort_key *spare, size_t n, size_t at)
{
	size_t begin = 0;

	at = shared_bytes(toc, run, n, at);
	for (size_t i = 0; i < n; i++)
		run[i].bytes = eight_bytes(kp_toc_key(toc, run[i].binary), at);
	sort_bytes(run, spare, n);
	for (size_t i = 1; i <= n; i++) {
		if (i < n && run[i].bytes == run[begin].bytes)
			continue;
		/* a zero ends the key, since names have none: the run repeats one key */
		if (i - begin > 1 && (run[begin].bytes & 0xff))
			sort_run(toc, run + begin, spare, i - begin, at + 8);
		else
			for (size_t k = begin + 1; k < i; k++)
				run[k].repeats = true;
		begin = i;
	}
}

/* The binaries, sorted by key, then by position in the file. */
static struct sort_key *order_binaries(const struct kp_toc *toc)
{
	struct sort_key *order = malloc((toc->n_binaries + 1) * sizeof(*order));
	struct sort_key *spare = malloc((toc->n_binaries + 1) * sizeof(*spare));

	for (uint32_t i = 0; order && i < toc->n_binaries; i++)
		order[i] = (struct sort_key){.binary = i};
	if (order && spare && toc->n_binaries)
		sort_run(toc, order, spare, toc->n_binaries, 0);
	if (!spare) {
		free(order);
		order = NULL;
	}
	free(spare);
	return order;
}

static uint32_t entry_end(const struct kp_toc *toc, uint32_t binary)
{
	return binary + 1 < toc->n_binaries ? toc->binaries[binary + 1].first
					    : (uint32_t)toc->n_entries;
}

/* Sort binaries, and their entries with them; merge equal keys. */
static bool sort_binaries(struct kp_toc *toc)
{
	struct sort_key *order = order_binaries(toc);
	struct kp_toc_binary *binaries =
		malloc((toc->n_binaries + 1) * sizeof(*binaries));
	struct kp_toc_entry *entries =
		kp_large_alloc((toc->n_entries + 1) * sizeof(*entries));
	size_t kept = 0, at = 0;
	bool ok = order && binaries && entries;

	for (size_t i = 0; ok && i < toc->n_binaries; i++) {
		uint32_t from = order[i].binary;

		if (i + AHEAD < toc->n_binaries)
			__builtin_prefetch(
				&toc->entries[toc->binaries[order[i + AHEAD].binary]
						      .first]);

		if (order[i].repeats) {
			char text[512];
			kp_faults_add(&toc->faults, false, "toc: %s: key twice, merged",
				      kp_text_escape(kp_toc_key(toc, from), text,
						     sizeof(text)));
			kept--;
		}
		binaries[kept] = toc->binaries[from];
		for (uint32_t e = toc->binaries[from].first; e < entry_end(toc, from);
		     e++) {
			entries[at] = toc->entries[e];
			entries[at++].binary = (uint32_t)kept;
		}
		kept++;
	}
	free(order);
	if (!ok) {
		free(binaries);
		free(entries);
		return false;
	}
	free(toc->binaries);
	free(toc->entries);
	toc->binaries = binaries;
	toc->n_binaries = kept;
	toc->entries = entries;
	return true;
}

/* The sort key of one binary's entries; POSITION makes the sort stable. */
struct entry_key {
	struct kp_toc_entry entry;
	uint32_t rank;
	uint32_t position;
};

static int cmp_entry(const void *a, const void *b)
{
	const struct entry_key *x = a, *y = b;

	if (x->rank != y->rank)
		return KP_ORDER(x->rank, y->rank);
	return KP_ORDER(x->position, y->position);
}

/* With more entries, inserting costs more than it saves. */
enum { INSERT_MAX = 16 };

/* Sort by rank, stably, by inserting each entry among the ones before it. */
static void insert_arches(struct kp_toc_entry *run, size_t n, const uint16_t *rank)
{
	for (size_t i = 1; i < n; i++) {
		struct kp_toc_entry e = run[i];
		size_t at = i;

		for (; at && rank[run[at - 1].arch] > rank[e.arch]; at--)
			run[at] = run[at - 1];
		run[at] = e;
	}
}

static bool sort_many_arches(struct kp_toc_entry *run, size_t n, const uint16_t *rank)
{
	struct entry_key *keys = malloc(n * sizeof(*keys));

	if (!keys)
		return false;
	for (size_t i = 0; i < n; i++)
		keys[i] = (struct entry_key){run[i], rank[run[i].arch], (uint32_t)i};
	qsort(keys, n, sizeof(*keys), cmp_entry);
	for (size_t i = 0; i < n; i++)
		run[i] = keys[i].entry;
	free(keys);
	return true;
}

/* Sort N entries of one binary by arch, in place; keep the last of equal ones. */
static bool sort_arches(struct kp_toc *toc, struct kp_toc_entry *run, size_t n,
			const uint16_t *rank, size_t *kept)
{
	if (n <= INSERT_MAX)
		insert_arches(run, n, rank);
	else if (!sort_many_arches(run, n, rank))
		return false;
	*kept = 0;
	for (size_t i = 0; i < n; i++) {
		if (*kept && run[i].arch == run[*kept - 1].arch) {
			kp_toc_entry_fault(toc, &run[i], false, "twice, the last counts");
			--*kept;
		}
		run[(*kept)++] = run[i];
	}
	return true;
}

static bool run_ascends(const struct kp_toc_entry *run, size_t n, const uint16_t *rank)
{
	for (size_t i = 1; i < n; i++)
		if (rank[run[i - 1].arch] >= rank[run[i].arch])
			return false;
	return true;
}

/* Sort each binary's entries, and close the gaps of dropped entries. */
static bool sort_entries(struct kp_toc *toc, const uint16_t *rank)
{
	size_t begin = 0, to = 0;

	while (begin < toc->n_entries) {
		struct kp_toc_entry *run = toc->entries + begin;
		size_t n = 1, kept;

		while (begin + n < toc->n_entries && run[n].binary == run->binary)
			n++;
		kept = n;
		if (!run_ascends(run, n, rank) && !sort_arches(toc, run, n, rank, &kept))
			return false;
		if (to != begin)
			memmove(toc->entries + to, run, kept * sizeof(*run));
		to += kept;
		begin += n;
	}
	toc->n_entries = to;
	return true;
}

/* Set where each binary's entries begin; entries are sorted. */
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
	bool ok = rank != NULL;

	if (!toc->binaries) { /* an empty table: room for the sentinel */
		toc->binaries = calloc(1, sizeof(*toc->binaries));
		ok = ok && toc->binaries;
	}
	if (ok && !keys_ascend(toc))
		ok = sort_binaries(toc);
	if (ok)
		ok = sort_entries(toc, rank);
	if (ok) {
		set_firsts(toc);
		kp_toc_more_index(toc);
	}
	free(rank);
	return ok ? KPACK_SUCCESS : kp_fail_memory(why, toc->size, "sorting the table");
}

size_t kp_toc_lower_bound(const struct kp_toc *toc, struct kp_span key)
{
	size_t low = 0, high = toc->n_binaries;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (kp_span_cmp(kp_toc_key(toc, mid), key) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

bool kp_toc_find(const struct kp_toc *toc, struct kp_span key, struct kp_span arch,
		 size_t *entry)
{
	size_t binary = kp_toc_lower_bound(toc, key), low, high;

	if (binary == toc->n_binaries || !kp_span_eq(kp_toc_key(toc, binary), key))
		return false;
	high = toc->binaries[binary + 1].first;
	low = toc->binaries[binary].first;
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
	char text[200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	kp_faults_add_entry(&toc->faults, kp_toc_key(toc, e->binary),
			    toc->strings[e->arch], refused, text);
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
