/* SPDX-License-Identifier: MIT */
/*
 * Plan the merge of archives (merge.h), in these steps: can they be joined; the entries that are
 * taken, and the objects that they name; of entries in several sources, which stays; unknown
 * fields; the order of objects; is there room; is what will be copied right?
 */
#include "merge.h"
#include <stdlib.h>
#include "content.h"
#include "core/archive/toc.h"
#include "core/base/bounds.h"
#include "core/base/hash.h"
#include "core/base/msgpack_read.h"
#include "core/base/scheme.h"
#include "core/base/slots.h"
#include "core/base/text.h"
#include "core/writer/entry_list.h"
#include "merge_internal.h"
#include "operands.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"

const char *merge_source_name(const struct merge_plan *p, size_t source)
{
	return kp_archive_path(p->sources[source].archive);
}

void merge_item_entry(const struct merge_plan *p, const struct merge_item *item,
		      struct kp_entry_info *info, struct kp_meta *meta)
{
	const struct kpack_archive *a = p->sources[item->source].archive;

	kp_archive_entry(a, item->entry, info);
	if (meta)
		kp_archive_meta(a, item->entry, meta);
}

struct kp_more merge_item_more(const struct merge_plan *p, const struct merge_item *item)
{
	const struct kp_toc *toc = kp_archive_toc(p->sources[item->source].archive);

	return kp_toc_entry_more(toc, &toc->entries[item->entry]);
}

/* --- can they be joined? -------------------------------------------------------------- */

kpack_error_t merge_check_faults(const struct merge_source *sources, size_t n, bool skip,
				 struct kpackx_error *why)
{
	const char *faulty = NULL;

	for (size_t i = 0; i < n; i++) {
		size_t kept, counted;
		const struct kp_fault *faults =
			kp_archive_faults(sources[i].archive, &kept, &counted);
		const char *path = kp_archive_path(sources[i].archive);

		for (size_t k = 0; k < kept; k++)
			report_error(path, "%s", faults[k].text);
		if (counted > kept)
			report_error(path, "and %zu faults more", counted - kept);
		faulty = counted ? path : faulty;
	}
	if (!faulty || skip)
		return KPACK_SUCCESS;
	return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
		       "%s: has faults: not everything in it could be taken over",
		       faulty);
}

/* We cannot rewrite what we cannot parse. */
static kpack_error_t check_known(const struct merge_plan *p, struct kpackx_error *why)
{
	for (size_t i = 0; i < p->n_sources; i++) {
		const struct kpack_archive *a = p->sources[i].archive;
		uint64_t version = kp_archive_toc(a)->format_version;
		unsigned known = kp_archive_shared(a) ? 2 : 1;

		if (version > known)
			return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
				       "%s: format_version %llu is not known, only %u",
				       kp_archive_path(a), (unsigned long long)version,
				       known);
		if (kp_archive_toc(a)->blobs_more)
			return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
				       "%s: its blobs have fields that are not known and "
				       "could not be carried over",
				       kp_archive_path(a));
	}
	return KPACK_SUCCESS;
}

static kpack_error_t fail_mismatch(const struct merge_plan *p, const char *what,
				   size_t second, struct kp_span has,
				   struct kp_span other, struct kpackx_error *why)
{
	char texts[2][160];

	return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
		       "%s: its %s is \"%s\", that of %s is \"%s\"",
		       merge_source_name(p, second), what,
		       kp_text_escape(other, texts[0], sizeof(texts[0])),
		       merge_source_name(p, 0),
		       kp_text_escape(has, texts[1], sizeof(texts[1])));
}

/* Find the scheme of the archive, and whether everything has to be stored anew for it. */
static kpack_error_t choose_scheme(struct merge_plan *p, struct kpackx_error *why)
{
	struct kp_span first = kp_span_str(kp_archive_scheme(p->sources[0].archive));

	p->encodes = p->options.level != 0;
	if (p->options.recode)
		p->scheme = p->options.scheme;
	else
		kp_scheme_find(first, &p->scheme);
	for (size_t i = 0; i < p->n_sources; i++) {
		const char *scheme = kp_archive_scheme(p->sources[i].archive);

		if (strcmp(scheme, kp_scheme_name(p->scheme)) == 0)
			continue;
		if (!p->options.recode)
			return fail_mismatch(p, "scheme", i, first, kp_span_str(scheme),
					     why);
		p->encodes = true;
	}
	return KPACK_SUCCESS;
}

static kpack_error_t choose_group(struct merge_plan *p, struct kpackx_error *why)
{
	struct kp_span group = kp_archive_group(p->sources[0].archive);

	if (p->options.group)
		group = kp_span_str(p->options.group);
	for (size_t i = 1; i < p->n_sources && !p->options.group; i++) {
		struct kp_span other = kp_archive_group(p->sources[i].archive);

		if (!kp_span_eq(group, other))
			return fail_mismatch(p, "group", i, group, other, why);
	}
	if (group.size == 0)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "no archive has a group_name: one must be given");
	p->group = xstrndup((const char *)group.data, group.size);
	return KPACK_SUCCESS;
}

/* --- what is taken ---------------------------------------------------------------------- */

/* An entry, to be sorted by its object. */
struct ordered {
	uint32_t ordinal, entry;
};

static int by_ordinal(const void *a, const void *b)
{
	const struct ordered *x = a, *y = b;
	int c = KP_ORDER(x->ordinal, y->ordinal);

	return c ? c : KP_ORDER(x->entry, y->entry);
}

static kpack_error_t add_object(struct merge_plan *p, size_t source, uint32_t ordinal,
				struct kpackx_error *why)
{
	struct merge_object *o;

	xgrow(&p->objects, p->n_objects, &p->objects_cap, sizeof(*p->objects));
	o = &p->objects[p->n_objects];
	*o = (struct merge_object){
		.source = (uint32_t)source,
		.ordinal = ordinal,
		.item = MERGE_NONE,
		.same = (uint32_t)p->n_objects,
	};
	p->n_objects++;
	if (kp_archive_shared(p->sources[source].archive)) {
		o->stored.fd = -1;
		return KPACK_SUCCESS;
	}
	return kp_archive_source(p->sources[source].archive, ordinal, &o->stored, why);
}

static kpack_error_t add_item(struct merge_plan *p, size_t source, uint32_t entry,
			      struct kpackx_error *why)
{
	uint32_t object = (uint32_t)p->n_objects - 1;
	struct merge_object *o = &p->objects[object];
	struct merge_item *last = p->n_items ? &p->items[p->n_items - 1] : NULL;
	bool first = !last || last->object != object;
	struct kp_entry_info info;
	struct kp_meta meta;

	if (p->n_items >= UINT32_MAX / 2)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "more than %u entries in all", UINT32_MAX / 2);
	xgrow(&p->items, p->n_items, &p->items_cap, sizeof(*p->items));
	p->items[p->n_items] =
		(struct merge_item){(uint32_t)source, entry, object, false};
	/* the entries of one object agree if they are right */
	merge_item_entry(p, &p->items[p->n_items++], &info, &meta);
	if (first && o->stored.fd < 0)
		o->stored.size = info.stored;
	if (first) {
		o->size = info.size;
		o->chunk = meta.chunk;
	}
	if (!o->hashed && meta.has_xxh3) {
		memcpy(o->hash, meta.xxh3, sizeof(o->hash));
		o->hashed = true;
	}
	return KPACK_SUCCESS;
}

/* Make the items and objects of a source. */
static kpack_error_t gather_source(struct merge_plan *p, size_t source,
				   struct kpackx_error *why)
{
	const struct kpack_archive *a = p->sources[source].archive;
	size_t n = kp_archive_entry_count(a);
	struct ordered *list = xmalloc(n * sizeof(*list));
	kpack_error_t err = KPACK_SUCCESS;
	uint32_t named = 0, taken = MERGE_NONE; /* the ordinal that was taken last */
	struct kp_entry_info info;

	for (size_t i = 0; i < n; i++) {
		kp_archive_entry(a, i, &info);
		list[i] = (struct ordered){info.ordinal, (uint32_t)i};
	}
	if (n)
		qsort(list, n, sizeof(*list), by_ordinal);
	for (size_t i = 0; i < n && !err; i++) {
		named += i == 0 || list[i].ordinal != list[i - 1].ordinal;
		kp_archive_entry(a, list[i].entry, &info);
		if (p->options.takes &&
		    !p->options.takes(p->options.takes_arg, source, &info))
			continue;
		if (list[i].ordinal != taken)
			err = add_object(p, source, list[i].ordinal, why);
		taken = list[i].ordinal;
		if (!err)
			err = add_item(p, source, list[i].entry, why);
	}
	p->stats.unused += kp_archive_ordinal_count(a) - named;
	free(list);
	return err ? kp_fail_prefix(why, err, "%s", merge_source_name(p, source)) : err;
}

/* --- have two entries the same bytes? ------------------------------------------------------ */

static kpack_error_t same_bytes(const struct merge_plan *p, const struct merge_item *x,
				const struct merge_item *y, bool *same,
				struct kpackx_error *why)
{
	struct kp_entry_info a, b;
	struct kp_meta of_a, of_b;

	*same = false;
	merge_item_entry(p, x, &a, &of_a);
	merge_item_entry(p, y, &b, &of_b);
	if (a.size != b.size || (of_a.has_xxh3 && of_b.has_xxh3 &&
				 memcmp(of_a.xxh3, of_b.xxh3, sizeof(of_a.xxh3)) != 0))
		return KPACK_SUCCESS;
	if (!p->encodes && p->scheme != KP_COMPRESSION_ZSTD_SHARED)
		KP_TRY(kp_source_compare(&p->objects[x->object].stored,
					 &p->objects[y->object].stored, same, why));
	if (*same || (!p->encodes && p->scheme == KPACK_COMPRESSION_NOOP))
		return KPACK_SUCCESS;
	return content_compare(p->sources[x->source].archive, x->entry,
			       p->sources[y->source].archive, y->entry, same, why);
}

/* --- which entry stays of those with one key and architecture -------------------------------- */

/* Items by the hash of their names: per name the one that stays so far. */
struct names {
	struct kp_slots slots;
	uint32_t *hashes; /* per item */
};

/* Returns the slot of the item's name, or the free one where it would go. */
static uint32_t *find_name(const struct merge_plan *p, struct names *names, uint32_t item)
{
	struct kp_entry_info mine, theirs;
	uint32_t *slot;
	uint64_t seed;

	merge_item_entry(p, &p->items[item], &mine, NULL);
	seed = kp_slot_hash(mine.key.data, mine.key.size, 0);
	names->hashes[item] =
		(uint32_t)kp_slot_hash(mine.arch.data, mine.arch.size, seed);
	slot = kp_slots_first(&names->slots, names->hashes[item]);
	for (; *slot; slot = kp_slots_next(&names->slots, slot)) {
		uint32_t other = *slot - 1;

		if (names->hashes[other] != names->hashes[item])
			continue;
		merge_item_entry(p, &p->items[other], &theirs, NULL);
		if (kp_span_eq(mine.key, theirs.key) &&
		    kp_span_eq(mine.arch, theirs.arch))
			break;
	}
	return slot;
}

/* Set *WHAT to what keeps the two from being one entry; NULL: nothing. */
static kpack_error_t find_difference(const struct merge_plan *p,
				     const struct merge_item *a,
				     const struct merge_item *b, const char **what,
				     struct kpackx_error *why)
{
	struct kp_more ma = merge_item_more(p, a), mb = merge_item_more(p, b);
	struct kp_entry_info x, y;
	struct kp_meta mx, my;
	bool same = false;

	*what = NULL;
	merge_item_entry(p, a, &x, &mx);
	merge_item_entry(p, b, &y, &my);
	KP_TRY(same_bytes(p, a, b, &same, why));
	if (!same)
		*what = "other bytes";
	else if (!kp_span_eq(x.type, y.type))
		*what = "another type";
	else if (mx.path.size && my.path.size && !kp_span_eq(mx.path, my.path))
		*what = "another path";
	else if (ma.n_runs && mb.n_runs && !kp_more_same(&ma, &mb))
		*what = "other fields that are not known";
	return KPACK_SUCCESS;
}

/* Returns a measure of how much an entry says besides its bytes. */
static int weigh_facts(const struct merge_plan *p, const struct merge_item *item)
{
	const struct kpack_archive *a = p->sources[item->source].archive;

	return 2 * (merge_item_more(p, item).n_runs > 0) +
	       (kp_archive_meta_raw(a, item->entry).size > 0);
}

/*
 * ITEM has the name of the item in *SLOT, whose source is preferred or came before:
 * decide which of them stays.
 */
static kpack_error_t settle_clash(struct merge_plan *p, uint32_t item, uint32_t *slot,
				  struct kpackx_error *why)
{
	struct merge_item *a = &p->items[*slot - 1], *b = &p->items[item];
	const char *what;

	if (p->sources[a->source].prefer > p->sources[b->source].prefer) {
		b->dropped = true;
		p->stats.settled++;
		return KPACK_SUCCESS;
	}
	KP_TRY(find_difference(p, a, b, &what, why));
	if (what) {
		struct kp_entry_info info;

		p->clashes++;
		merge_item_entry(p, a, &info, NULL);
		if (p->options.clash)
			p->options.clash(p->options.clash_arg,
					 &(struct merge_clash){
						 info.key, info.arch,
						 merge_source_name(p, a->source),
						 merge_source_name(p, b->source), what});
	}
	p->stats.duplicates++;
	a->dropped = weigh_facts(p, a) < weigh_facts(p, b);
	b->dropped = !a->dropped;
	if (a->dropped)
		*slot = item + 1;
	return KPACK_SUCCESS;
}

static int by_preference(const void *a, const void *b, void *arg)
{
	const struct merge_plan *p = arg;
	size_t x = *(const size_t *)a, y = *(const size_t *)b;
	int c = KP_ORDER(p->sources[y].prefer, p->sources[x].prefer);

	return c ? c : KP_ORDER(x, y);
}

static kpack_error_t settle_names(struct merge_plan *p, struct kpackx_error *why)
{
	size_t *sources = xmalloc(p->n_sources * sizeof(*sources));
	struct names names = {.hashes = xcalloc(p->n_items, sizeof(*names.hashes))};
	kpack_error_t err = KPACK_SUCCESS;

	for (size_t i = 0; i < p->n_sources; i++)
		sources[i] = i;
	qsort_r(sources, p->n_sources, sizeof(*sources), by_preference, p);
	if (!kp_slots_reserve(&names.slots, p->n_items, NULL, NULL))
		err = kp_fail_memory(why, p->n_items * sizeof(uint64_t), "entries");
	for (size_t s = 0; s < p->n_sources && !err; s++) {
		size_t end = p->first_item[sources[s] + 1];

		for (size_t i = p->first_item[sources[s]]; i < end && !err; i++) {
			uint32_t *slot;

			if (p->items[i].dropped)
				continue;
			slot = find_name(p, &names, (uint32_t)i);
			if (*slot)
				err = settle_clash(p, (uint32_t)i, slot, why);
			else
				kp_slots_put(&names.slots, slot, (uint32_t)i);
		}
	}
	free(sources);
	free(names.slots.slots);
	free(names.hashes);
	if (!err && p->clashes)
		err = kp_fail(
			why, KPACK_ERROR_INVALID_ARGUMENT, "%zu %s between archives%s",
			p->clashes, p->clashes == 1 ? "entry differs" : "entries differ",
			p->options.has_prefer ? "; --prefer settles which is taken" : "");
	return err;
}

/* --- unknown fields at the top of tables of contents: each field of all sources, once -------- */

/*
 * The maximum number of unknown fields.  A real table has a few, and each is compared
 * with all others.
 */
enum { FIELDS_MAX = 1000 };

/* The name and the value of a PAIR, as they are stored. */
static struct kp_span name_of(struct kp_span pair)
{
	struct kp_mp c = kp_mp_over(pair);

	kp_mp_skip(&c);
	return (struct kp_span){pair.data, kp_mp_offset(&c)};
}

static struct kp_span value_of(struct kp_span pair)
{
	size_t name = name_of(pair).size;

	return (struct kp_span){pair.data + name, pair.size - name};
}

/* Returns a value for messages: text as it is, or the bytes of anything else. */
static const char *value_text(struct kp_span stored, char text[80])
{
	struct kp_mp c = kp_mp_over(stored);
	struct kp_span s;

	if (kp_mp_peek(&c) == KP_MP_STR && kp_mp_str(&c, &s))
		stored = s;
	return kp_text_escape(stored, text, 80);
}

/* PAIR of SOURCE: if another source has its name with another value, the preferred one wins. */
static kpack_error_t add_field(struct merge_plan *p, size_t source, struct kp_span pair,
			       struct kpackx_error *why)
{
	char texts[3][80];
	size_t i = 0;
	unsigned has, other;

	while (i < p->n_more && !kp_span_eq(name_of(p->more[i]), name_of(pair)))
		i++;
	if (i == FIELDS_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "%s: more than %d fields that are not known",
			       merge_source_name(p, source), FIELDS_MAX);
	if (i == p->n_more) {
		xgrow(&p->more, i, &p->more_cap, sizeof(*p->more));
		xgrow(&p->more_sources, i, &p->more_sources_cap,
		      sizeof(*p->more_sources));
		p->more[i] = pair;
		p->more_sources[i] = source;
		p->n_more++;
	}
	if (kp_span_eq(p->more[i], pair))
		return KPACK_SUCCESS;
	has = p->sources[p->more_sources[i]].prefer;
	other = p->sources[source].prefer;
	if (other == has)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "%.150s: its \"%s\" is \"%s\", that of %.150s is \"%s\"",
			       merge_source_name(p, source),
			       value_text(name_of(pair), texts[0]),
			       value_text(value_of(pair), texts[1]),
			       merge_source_name(p, p->more_sources[i]),
			       value_text(value_of(p->more[i]), texts[2]));
	if (other > has) {
		p->more[i] = pair;
		p->more_sources[i] = source;
	}
	return KPACK_SUCCESS;
}

static kpack_error_t add_fields(struct merge_plan *p, size_t source, struct kp_span run,
				struct kpackx_error *why)
{
	struct kp_mp c = kp_mp_over(run);

	while (c.pos < c.end) {
		const uint8_t *start = c.pos;

		if (!kp_mp_skip(&c) || !kp_mp_skip(&c))
			return kp_mp_fail(&c, "toc", why);
		KP_TRY(add_field(p, source,
				 (struct kp_span){start, (size_t)(c.pos - start)}, why));
	}
	return KPACK_SUCCESS;
}

static kpack_error_t settle_fields(struct merge_plan *p, struct kpackx_error *why)
{
	for (size_t i = 0; i < p->n_sources; i++) {
		struct kp_more more = kp_archive_more(p->sources[i].archive);

		if (p->options.takes && p->first_item[i] == p->first_item[i + 1])
			continue; /* no entry of it is taken */
		for (size_t run = 0; run < more.n_runs; run++)
			KP_TRY(add_fields(p, i, kp_more_run(&more, run), why));
	}
	return KPACK_SUCCESS;
}

/* --- the order ------------------------------------------------------------------------------ */

static int by_rank(const void *a, const void *b, void *arg)
{
	const struct kp_rank *ranks = arg;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int c = kp_rank_compare(&ranks[x], &ranks[y]);

	return c ? c : KP_ORDER(x, y);
}

static void order_objects(struct merge_plan *p)
{
	struct kp_rank *ranks = xcalloc(p->n_objects, sizeof(*ranks));

	for (size_t i = 0; i < p->n_items; i++) {
		const struct merge_item *item = &p->items[i];
		struct merge_object *o = &p->objects[item->object];
		struct kp_entry_info info;
		struct kp_rank r;

		if (item->dropped)
			continue;
		p->stats.entries++;
		if (o->item == MERGE_NONE)
			o->item = (uint32_t)i;
		merge_item_entry(p, item, &info, NULL);
		r = kp_rank_of(info.key, info.arch,
			       kp_archive_meta_raw(p->sources[item->source].archive,
						   item->entry));
		if (kp_rank_compare(&r, &ranks[item->object]) < 0)
			ranks[item->object] = r;
	}
	p->order = xcalloc(p->n_objects, sizeof(*p->order));
	for (size_t i = 0; i < p->n_objects; i++)
		if (ranks[i].named)
			p->order[p->n_order++] = (uint32_t)i;
	if (p->n_order)
		qsort_r(p->order, p->n_order, sizeof(*p->order), by_rank, ranks);
	for (size_t i = 0; i < p->n_order; i++)
		p->objects[p->order[i]].position = (uint32_t)i;
	free(ranks);
}

/* --- is there room? ------------------------------------------------------------------------- */

static kpack_error_t check_blob(struct merge_plan *p, struct kpackx_error *why)
{
	bool none = p->scheme != KPACK_COMPRESSION_ZSTD_PER_KERNEL;

	p->stats.frames = p->n_order;
	p->stats.bytes = none ? 0 : 4;
	for (size_t i = 0; i < p->n_order; i++)
		p->stats.bytes += (none ? 0 : 4) + p->objects[p->order[i]].stored.size;
	if (none || p->encodes)
		return KPACK_SUCCESS;
	if (p->stats.frames > KP_FRAMES_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "%llu frames in all, one archive has at most %u",
			       (unsigned long long)p->stats.frames, KP_FRAMES_MAX);
	if (p->stats.bytes > KP_ZSTD_BLOB_MAX)
		return kp_fail(
			why, KPACK_ERROR_INVALID_ARGUMENT,
			"%llu bytes of frames in all, one archive has at most 4 GiB",
			(unsigned long long)p->stats.bytes);
	return KPACK_SUCCESS;
}

static kpack_error_t check_toc(const struct merge_plan *p, struct kpackx_error *why)
{
	uint64_t bytes = 64 * (p->stats.frames + 1) + 4 * KP_NAME_MAX;

	for (size_t i = 0; i < p->n_more; i++)
		bytes += p->more[i].size;
	for (size_t i = 0; i < p->n_items; i++) {
		const struct merge_item *item = &p->items[i];
		struct kp_writer_entry entry = {0};
		struct kp_entry_info info;

		if (item->dropped)
			continue;
		merge_item_entry(p, item, &info, NULL);
		entry.type = info.type;
		entry.metadata = kp_archive_meta_raw(p->sources[item->source].archive,
						     item->entry);
		entry.more = merge_item_more(p, item);
		bytes += kp_entry_list_bytes(info.key, info.arch, &entry);
	}
	if (bytes > KP_TOC_SIZE_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "the table of contents could have %llu bytes, limit %llu",
			       (unsigned long long)bytes,
			       (unsigned long long)KP_TOC_SIZE_MAX);
	return KPACK_SUCCESS;
}

/* --- is it right? ------------------------------------------------------------------------- */

/*
 * Decode what is not dropped: frames are copied as they are, and what is damaged must not
 * come into a new archive.  With `skip_faulty` it is dropped.
 */
static kpack_error_t check_items(struct merge_plan *p, struct kpackx_error *why)
{
	for (size_t i = 0; i < p->n_sources; i++) {
		const struct kpack_archive *a = p->sources[i].archive;
		bool *entries = xcalloc(kp_archive_entry_count(a) + 1, sizeof(*entries));
		bool fine;

		if (p->sources[i].checked) {
			free(entries);
			continue;
		}
		for (size_t k = p->first_item[i]; k < p->first_item[i + 1]; k++)
			entries[p->items[k].entry] = !p->items[k].dropped;
		fine = check_content(a, entries, CHECK_BYTES, 0);
		for (size_t k = p->first_item[i]; k < p->first_item[i + 1]; k++)
			p->items[k].dropped |= entries[p->items[k].entry];
		free(entries);
		if (!fine && !p->options.skip_faulty)
			return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
				       "%s: is damaged: nothing was written",
				       kp_archive_path(a));
	}
	return KPACK_SUCCESS;
}

/* --- all ------------------------------------------------------------------------------------ */

static kpack_error_t make_plan(struct merge_plan *p, struct kpackx_error *why)
{
	if (p->n_sources == 0 || p->n_sources >= MERGE_NONE)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT, "no archives");
	if (!p->options.faults_known)
		KP_TRY(merge_check_faults(p->sources, p->n_sources,
					  p->options.skip_faulty, why));
	KP_TRY(check_known(p, why));
	KP_TRY(choose_scheme(p, why));
	KP_TRY(choose_group(p, why));
	p->first_item = xcalloc(p->n_sources + 1, sizeof(*p->first_item));
	for (size_t i = 0; i < p->n_sources; i++) {
		KP_TRY(gather_source(p, i, why));
		p->first_item[i + 1] = p->n_items;
	}
	/* what is left out may be taken from another source */
	if (p->options.skip_faulty)
		KP_TRY(check_items(p, why));
	KP_TRY(settle_fields(p, why));
	KP_TRY(settle_names(p, why));
	order_objects(p);
	KP_TRY(merge_share(p, why));
	KP_TRY(check_blob(p, why));
	KP_TRY(check_toc(p, why));
	return p->options.skip_faulty ? KPACK_SUCCESS : check_items(p, why);
}

kpack_error_t merge_plan_new(const struct merge_source *sources, size_t n,
			     const struct merge_options *options, struct merge_plan **out,
			     struct kpackx_error *why)
{
	struct merge_plan *p = xcalloc(1, sizeof(*p));
	kpack_error_t err;

	p->sources = sources;
	p->n_sources = n;
	p->options = *options;
	err = make_plan(p, why);
	if (err)
		merge_plan_free(p);
	else
		*out = p;
	return err;
}

void merge_plan_stats(const struct merge_plan *plan, struct merge_stats *out)
{
	*out = plan->stats;
}

void merge_plan_free(struct merge_plan *plan)
{
	if (!plan)
		return;
	free(plan->group);
	free(plan->more);
	free(plan->more_sources);
	free(plan->items);
	free(plan->objects);
	free(plan->order);
	free(plan->first_item);
	free(plan);
}

/* --- messages --------------------------------------------------------------------------------- */

/* The number of clashes that are reported one by one; the rest is counted. */
enum { CLASHES_REPORTED = 100 };

void merge_report_clash(void *report, const struct merge_clash *clash)
{
	struct merge_report *r = report;
	char key[512], arch[160];

	if (r->clashes++ >= CLASHES_REPORTED)
		return;
	report_error(clash->second, "%s %s: %s than in %s",
		     kp_text_escape(clash->key, key, sizeof(key)),
		     kp_text_escape(clash->arch, arch, sizeof(arch)), clash->what,
		     clash->first);
	if (r->list)
		json_array_append_new(r->list,
				      json_pack("{s:o, s:o, s:s, s:o, s:o}", "key",
						report_json_span(clash->key), "arch",
						report_json_span(clash->arch),
						"difference", clash->what, "first",
						report_json_text(clash->first), "second",
						report_json_text(clash->second)));
}

void merge_report_end(const struct merge_report *r)
{
	if (r->clashes > CLASHES_REPORTED)
		report_error(NULL, "and %zu entries more that differ",
			     r->clashes - CLASHES_REPORTED);
}

void merge_stats_json(const struct merge_stats *stats, json_t *object)
{
	const struct {
		const char *name;
		uint64_t value;
	} rows[] = {
		{"entries", stats->entries},
		{"frames", stats->frames},
		{"bytes", stats->bytes},
		{"duplicates", stats->duplicates},
		{"settled", stats->settled},
		{"shared", stats->shared},
		{"unused", stats->unused},
		{"blocks_copied", stats->blocks_copied},
		{"blocks_encoded", stats->blocks_encoded},
	};

	for (size_t i = 0; i < KP_COUNT(rows); i++)
		if (json_object_set_new(object, rows[i].name,
					json_integer((json_int_t)rows[i].value)))
			xalloc_fail(0);
}
