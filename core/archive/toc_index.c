/* SPDX-License-Identifier: MIT */
/*
 * Sorting a parsed table of contents, looking up in it, and dropping what readers of entries
 * do not need.  Tables have up to a million keys and are mostly sorted: that is looked at first.
 *
 * Afterwards binaries ascend by key, each key once, and the entries of a binary are one run that
 * ascends by architecture, each once; everything that looks up relies on that.  Of equal
 * architectures the last in the file stays, as in AMD's reader, so that all sorting is stable.
 * Unknown pairs were noted by the offset of their key and become those of a numbered binary.
 */
#include <stdlib.h>
#include "core/base/alloc.h"
#include "core/base/msgpack_read.h"
#include "core/base/order.h"
#include "core/base/text.h"
#include "toc.h"

/* --- sorting keys -------------------------------------------------------------------- */

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

/* Keys and entries are spread over memory: prefetch this many ahead. */
enum { AHEAD = 12 };

static int cmp_bytes(const void *a, const void *b)
{
	const struct sort_key *x = a, *y = b;

	if (x->bytes != y->bytes)
		return KP_ORDER(x->bytes, y->bytes);
	return KP_ORDER(x->binary, y->binary);
}

/*
 * Sort by the eight bytes, stably; SPARE has room for N.  Byte by byte, from the last to the first,
 * as qsort would make opening a table of 100,000 unsorted keys take a third longer.
 */
static void sort_bytes(struct sort_key *run, struct sort_key *spare, size_t n)
{
	/* with fewer keys, counting for a radix sort costs more than it saves */
	enum { RADIX_MIN = 256 };
	uint32_t counts[8][256];
	struct sort_key *from = run, *to = spare;

	if (n < RADIX_MIN) {
		qsort(run, n, sizeof(*run), cmp_bytes);
		return;
	}
	memset(counts, 0, sizeof(counts));
	for (size_t i = 0; i < n; i++)
		for (int byte = 0; byte < 8; byte++)
			counts[byte][run[i].bytes >> (8 * byte) & 0xff]++;
	for (int byte = 0; byte < 8; byte++) {
		uint32_t place[256], at = 0;
		struct sort_key *sorted = to;

		if (counts[byte][run[0].bytes >> (8 * byte) & 0xff] == n)
			continue; /* all keys have the same byte */
		for (int v = 0; v < 256; v++) {
			place[v] = at;
			at += counts[byte][v];
		}
		for (size_t i = 0; i < n; i++)
			to[place[from[i].bytes >> (8 * byte) & 0xff]++] = from[i];
		to = from;
		from = sorted;
	}
	if (from != run)
		memcpy(run, from, n * sizeof(*run));
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

		if (i + AHEAD < n)
			__builtin_prefetch(kp_toc_key(toc, run[i + AHEAD].binary).data +
					   at);
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
	for (size_t i = 0; i < n; i++) {
		struct kp_span key = kp_toc_key(toc, run[i].binary);
		size_t left = key.size > at ? key.size - at : 0;
		uint8_t buf[8] = {0};

		memcpy(buf, key.data + (left ? at : 0), left < 8 ? left : 8);
		run[i].bytes = __builtin_bswap64(kp_le64(buf));
	}
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

/* Sort binaries, and their entries with them, by key, then by position; merge equal keys. */
static bool sort_binaries(struct kp_toc *toc)
{
	size_t n = toc->n_binaries, kept = 0, at = 0;
	KP_AUTO_FREE struct sort_key *order = kp_large_alloc((n + 1) * sizeof(*order));
	KP_AUTO_FREE struct sort_key *spare = kp_large_alloc((n + 1) * sizeof(*spare));
	struct kp_toc_binary *binaries = kp_large_alloc((n + 1) * sizeof(*binaries));
	struct kp_toc_entry *entries =
		kp_large_alloc((toc->n_entries + 1) * sizeof(*entries));

	if (!order || !spare || !binaries || !entries) {
		free(binaries);
		free(entries);
		return false;
	}
	for (uint32_t i = 0; i < n; i++)
		order[i] = (struct sort_key){.binary = i};
	sort_run(toc, order, spare, n, 0);
	for (size_t i = 0; i < n; i++) {
		const struct kp_toc_binary *from = &toc->binaries[order[i].binary];
		uint32_t end = order[i].binary + 1 < n ? from[1].first
						       : (uint32_t)toc->n_entries;

		if (i + AHEAD < n) {
			uint32_t next = order[i + AHEAD].binary;

			__builtin_prefetch(&toc->entries[toc->binaries[next].first]);
		}
		if (order[i].repeats) {
			struct kp_span key = kp_toc_key(toc, order[i].binary);
			char text[512];

			kp_faults_add(&toc->faults, false, "toc: %s: key twice, merged",
				      kp_text_escape(key, text, sizeof(text)));
			kept--;
		}
		binaries[kept] = *from;
		for (uint32_t e = from->first; e < end; e++) {
			entries[at] = toc->entries[e];
			entries[at++].binary = (uint32_t)kept;
		}
		kept++;
	}
	free(toc->binaries);
	free(toc->entries);
	toc->binaries = binaries;
	toc->n_binaries = kept;
	toc->entries = entries;
	return true;
}

/* --- sorting the entries of a key ------------------------------------------------------ */

static int cmp_string(const void *a, const void *b, void *arg)
{
	const struct kp_toc *toc = arg;

	return kp_span_cmp(toc->strings[*(const uint16_t *)a],
			   toc->strings[*(const uint16_t *)b]);
}

static int cmp_arch(const void *a, const void *b, void *rank)
{
	const struct kp_toc_entry *x = a, *y = b;
	const uint16_t *ranks = rank;

	if (x->arch != y->arch)
		return KP_ORDER(ranks[x->arch], ranks[y->arch]);
	return KP_ORDER(x->binary, y->binary);
}

/* Sort each binary's entries by arch, stably, and close the gaps of dropped entries. */
static void sort_entries(struct kp_toc *toc, uint16_t *rank)
{
	/* with more entries, inserting costs more than it saves */
	enum { INSERT_MAX = 16 };
	size_t begin = 0, to = 0;

	while (begin < toc->n_entries) {
		struct kp_toc_entry *run = toc->entries + begin;
		uint32_t binary = run->binary;
		bool ascends = true;
		size_t n = 1, kept = 0;

		for (; begin + n < toc->n_entries && run[n].binary == binary; n++)
			ascends &= rank[run[n - 1].arch] < rank[run[n].arch];
		/* most keys have a few architectures, for which a call of qsort_r is dear */
		for (size_t i = 1; !ascends && n <= INSERT_MAX && i < n; i++) {
			struct kp_toc_entry e = run[i];
			size_t at = i;

			for (; at && rank[run[at - 1].arch] > rank[e.arch]; at--)
				run[at] = run[at - 1];
			run[at] = e;
		}
		if (!ascends && n > INSERT_MAX) {
			for (size_t i = 0; i < n; i++)
				run[i].binary = (uint32_t)i; /* the position, meanwhile */
			qsort_r(run, n, sizeof(*run), cmp_arch, rank);
			for (size_t i = 0; i < n; i++)
				run[i].binary = binary;
		}
		/* keep the last of equal ones */
		for (size_t i = 0; !ascends && i < n; i++) {
			if (kept && run[i].arch == run[kept - 1].arch) {
				kp_toc_entry_fault(toc, &run[i], false,
						   "twice, the last counts");
				kept--;
			}
			run[kept++] = run[i];
		}
		if (ascends)
			kept = n;
		if (to != begin)
			memmove(toc->entries + to, run, kept * sizeof(*run));
		to += kept;
		begin += n;
	}
	toc->n_entries = to;
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

/* How the runs of unknown pairs are sorted, once their keys are numbers of binaries. */
#define MORE_ORDER                                                                       \
	KP_BY_NUMBER(struct kp_more_run, key), KP_BY_NUMBER(struct kp_more_run, arch),   \
		KP_BY_NUMBER(struct kp_more_run, at)

kpack_error_t kp_toc_index(struct kp_toc *toc, struct kpackx_error *why)
{
	/*
	 * rank[n] is the position of string n in bytewise order, so that entries compare by
	 * numbers: there are a few architectures, and a million entries to sort by them.
	 */
	KP_AUTO_FREE uint16_t *rank = malloc((toc->n_strings + 1) * sizeof(*rank));
	KP_AUTO_FREE uint16_t *order = malloc((toc->n_strings + 1) * sizeof(*order));
	struct kp_toc_more *more = &toc->entries_more;
	uint32_t key = UINT32_MAX, binary = 0;
	size_t sorted = 1;

	if (!toc->binaries) /* an empty table: room for the sentinel */
		KP_TRY(kp_new(&toc->binaries, 1, "sorting the table", why));
	/* our writer sorts its keys, and one pass shows that; others do not */
	while (sorted < toc->n_binaries &&
	       kp_span_cmp(kp_toc_key(toc, sorted - 1), kp_toc_key(toc, sorted)) < 0)
		sorted++;
	if (!rank || !order || (sorted < toc->n_binaries && !sort_binaries(toc)))
		return kp_fail_memory(why, toc->size, "sorting the table");
	for (size_t i = 0; i < toc->n_strings; i++)
		order[i] = (uint16_t)i;
	qsort_r(order, toc->n_strings, sizeof(*order), cmp_string, toc);
	for (size_t i = 0; i < toc->n_strings; i++)
		rank[order[i]] = (uint16_t)i;
	sort_entries(toc, rank);
	set_firsts(toc);
	for (size_t i = 0; i < more->n; i++) {
		struct kp_more_run *run = &more->runs[i];

		if (run->key != key) {
			key = run->key;
			binary = (uint32_t)kp_toc_lower_bound(
				toc, kp_span_str((const char *)toc->bytes + key));
		}
		run->key = binary;
	}
	kp_sort(more->runs, more->n, MORE_ORDER);
	return KPACK_SUCCESS;
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

/* --- looking up ------------------------------------------------------------------------ */

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

struct kp_more kp_toc_entry_more(const struct kp_toc *toc, const struct kp_toc_entry *e)
{
	const struct kp_toc_more *more = &toc->entries_more;
	const struct kp_more_run after = {
		.key = e->binary, .arch = e->arch, .at = UINT32_MAX};
	size_t end = kp_lower_bound(more->runs, more->n, &after, MORE_ORDER), begin = end;

	/* of a repeated entry, the last one counts, and only its pairs */
	while (begin && more->runs[begin - 1].key == e->binary &&
	       more->runs[begin - 1].arch == e->arch &&
	       more->runs[begin - 1].entry == more->runs[end - 1].entry)
		begin--;
	return begin == end
		       ? (struct kp_more){.bytes = toc->bytes}
		       : (struct kp_more){toc->bytes, &more->runs[begin], end - begin};
}

/* --- dropping what is not needed -------------------------------------------------------- */

/*
 * Offset of KEY in its entry's metadata MAP, whose first field is the path; 0: not there.
 */
static uint32_t path_in(struct kp_span map, struct kp_span key)
{
	struct kp_mp c = kp_mp_over(map);
	struct kp_span name, path;
	uint32_t pairs;

	if (!kp_mp_map(&c, &pairs) || pairs == 0 || kp_mp_peek(&c) != KP_MP_STR ||
	    !kp_mp_str(&c, &name) || !kp_span_is(name, "path") ||
	    kp_mp_peek(&c) != KP_MP_STR || !kp_mp_str(&c, &path) ||
	    !kp_span_eq(path, key))
		return 0;
	return (uint32_t)(path.data - map.data);
}

void kp_toc_compact(struct kp_toc *toc)
{
	struct kp_span *const others[] = {&toc->group, &toc->family, &toc->frame_index,
					  &toc->piece_hashes};
	size_t size = 0, at;
	uint8_t *bytes;

	if (toc->faults.counted)
		return;
	/* NULs replace the strings' heads; plus the last NUL and the first byte */
	bytes = kp_large_alloc(toc->used + 2);
	if (!bytes)
		return;
	bytes[size++] = '\0'; /* offset 0 means no map, so no map may begin there */

	/*
	 * The metadata of each binary's entries, and its key unless that is in them: of kernel
	 * databases, which have most entries, the key is the path.
	 */
	for (size_t i = 0; i < toc->n_binaries; i++) {
		struct kp_toc_binary *b = &toc->binaries[i];
		struct kp_span key = kp_toc_key(toc, i);
		uint32_t found = 0;

		for (uint32_t k = b->first; k < b[1].first; k++) {
			struct kp_meta_place *meta = &toc->entries[k].meta;
			size_t notes = 4 * ((size_t)meta->has_chunk + meta->has_xxh3);
			struct kp_span map = kp_toc_meta_map(toc, &toc->entries[k]);
			struct kp_mp c = kp_mp_over(map);
			uint32_t in_map;

			if (!meta->at)
				continue;
			kp_mp_skip(&c); /* cannot fail: the parser has read this map */
			map.size = kp_mp_offset(&c);
			in_map = found ? 0 : path_in(map, key);
			memcpy(bytes + size, map.data - notes, notes + map.size);
			size += notes;
			meta->at = size & KP_META_AT_MAX;
			if (in_map)
				found = (uint32_t)size + in_map;
			size += map.size;
		}
		if (!found) {
			found = (uint32_t)size;
			memcpy(bytes + size, key.data, key.size);
			size += key.size;
			bytes[size++] = '\0';
		}
		b->key = found;
	}

	at = size;
	for (size_t i = 0; i < toc->n_arches; i++) {
		memcpy(bytes + size, toc->arches[i].data, toc->arches[i].size);
		size += toc->arches[i].size;
		bytes[size++] = '\0';
	}
	for (size_t i = 0; i < KP_COUNT(others); i++)
		if (others[i]->data) {
			memcpy(bytes + size, others[i]->data, others[i]->size);
			size += others[i]->size;
			bytes[size++] = '\0';
		}

	free(toc->bytes);
	toc->bytes = kp_large_trim(bytes, size); /* which may have moved */
	toc->size = toc->used = size;
	for (size_t i = 0; i < toc->n_arches; i++) {
		toc->arches[i].data = toc->bytes + at;
		at += toc->arches[i].size + 1;
	}
	for (size_t i = 0; i < KP_COUNT(others); i++)
		if (others[i]->data) {
			others[i]->data = toc->bytes + at;
			at += others[i]->size + 1;
		}
	free(toc->more.runs);
	free(toc->entries_more.runs);
	toc->more = toc->entries_more = (struct kp_toc_more){0};
}
