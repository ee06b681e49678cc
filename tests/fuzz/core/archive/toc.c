/* SPDX-License-Identifier: MIT */
/* A TOC alone: its entries are sorted, can be found, and can be dropped. */
#include "core/archive/toc.h"
#include <assert.h>
#include <stdlib.h>
#include "core/base/msgpack_read.h"
#include "core/archive/toc.h"
#include "tests/fuzz/table_hash.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool drop_odd(struct kp_toc *toc, struct kp_toc_entry *e, void *arg)
{
	(void)arg;
	if (e->ordinal & 1)
		kp_toc_entry_fault(toc, e, true, "ordinal %u", e->ordinal);
	return e->ordinal & 1;
}

/* Check that each run of unknown fields is whole pairs within this TOC. */
static void check_more(const struct kp_toc *toc, const struct kp_more *more)
{
	for (size_t i = 0; i < more->n_runs; i++) {
		struct kp_mp c = kp_mp_over(kp_more_run(more, i));

		assert(more->runs[i].at <= toc->used &&
		       more->runs[i].size <= toc->used - more->runs[i].at);
		for (uint32_t k = 0; k < more->runs[i].count; k++)
			assert(kp_mp_skip(&c) && kp_mp_skip(&c));
		assert(c.pos == c.end);
	}
}

/* What decoding needs is in the metadata. */
static void check_facts(const struct kp_toc *toc, const struct kp_toc_entry *e)
{
	struct kp_decoding_facts facts = kp_toc_decoding_facts(toc, e);
	const uint8_t *map = toc->bytes + e->meta.at, *end = toc->bytes + toc->used;

	assert(e->meta.at || (!e->meta.has_chunk && !e->meta.has_xxh3));
	assert(!facts.xxh3 || (facts.xxh3 > map && end - facts.xxh3 >= 16));
	assert(toc->scheme == KPACK_COMPRESSION_NOOP || !e->meta.has_chunk ||
	       facts.chunk);
}

static void check(const struct kp_toc *toc)
{
	for (size_t i = 0; i < toc->n_entries; i++) {
		const struct kp_toc_entry *e = &toc->entries[i], *last = e - (i > 0);
		struct kp_span key = kp_toc_key(toc, e->binary);
		struct kp_more more = kp_toc_entry_more(toc, e);
		size_t found;

		check_more(toc, &more);
		assert(key.data[key.size] == 0 && !memchr(key.data, 0, key.size));
		assert(e->arch < toc->n_strings && e->type < toc->n_strings);
		assert(toc->strings[e->arch].data[toc->strings[e->arch].size] == 0);
		assert(toc->strings[e->type].data[toc->strings[e->type].size] == 0);
		assert(e->meta.at < toc->used);
		check_facts(toc, e);
		assert(i == 0 || last->binary < e->binary ||
		       (last->binary == e->binary &&
			kp_span_cmp(toc->strings[last->arch], toc->strings[e->arch]) <
				0));
		assert(kp_toc_find(toc, key, toc->strings[e->arch], &found) &&
		       found == i);
	}
	check_more(toc, &(struct kp_more){toc->bytes, toc->more.runs, toc->more.n});
	for (size_t b = 1; b < toc->n_binaries; b++)
		assert(kp_span_cmp(kp_toc_key(toc, b - 1), kp_toc_key(toc, b)) < 0);
	for (size_t i = 0; i < toc->n_arches; i++)
		assert(strlen((const char *)toc->arches[i].data) == toc->arches[i].size);
	assert(!toc->group.data || toc->group.data[toc->group.size] == 0);
	assert(!toc->family.data || toc->family.data[toc->family.size] == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size + 1);
	struct kpackx_error why = {0};
	struct kp_toc toc;

	assert(copy);
	if (size)
		memcpy(copy, data, size);
	mend_table_hash(copy, size);
	if (kp_toc_parse(copy, size, 1000, &toc, &why) != KPACK_SUCCESS) {
		assert(why.code != KPACK_SUCCESS && why.text[0]);
		return 0;
	}
	check(&toc);
	kp_toc_filter(&toc, drop_odd, NULL);
	check(&toc);
	kp_toc_fini(&toc);
	return 0;
}
