/* SPDX-License-Identifier: MIT */
/*
 * Plan the merge of archives (merge.h):
 *
 *	choose_header	can they be joined?  scheme, group and family of the new archive
 *	gather_source	items, the entries that are taken, and objects, the stored bytes they name
 *	settle_fields	unknown fields of the tables, each once
 *	settle_names	of items with one key and architecture, which stays
 *	order_objects	by their first key, whatever order the sources have
 *	merge_share	objects with equal stored bytes are written once (merge_write.c)
 *	check_room	counts and sizes that one archive can have
 *	check_items	is what will be copied right?  Last, because it decodes everything
 *
 * Items and objects refer to each other by number, and are in the order of source and ordinal:
 * millions of entries are possible, so that what an item says is read from its archive again
 * (merge_item_entry) instead of being kept.
 */
#include "merge.h"
#include <stdlib.h>
#include "content.h"
#include "core/archive/toc.h"
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "core/base/hash.h"
#include "core/base/msgpack_read.h"
#include "core/base/order.h"
#include "core/base/scheme.h"
#include "core/base/slots.h"
#include "core/base/text.h"
#include "core/writer/writer.h"
#include "merge_internal.h"
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

struct kp_span merge_item_map(const struct merge_plan *p, const struct merge_item *item)
{
	return kp_archive_meta_raw(p->sources[item->source].archive, item->entry);
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
			report_error(path, "and %zu fault%s more", counted - kept,
				     plural(counted - kept));
		faulty = counted ? path : faulty;
	}
	if (!faulty || skip)
		return KPACK_SUCCESS;
	return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
		       "%s: has faults: not everything in it could be taken over",
		       faulty);
}

static kpack_error_t fail_mismatch(const struct merge_plan *p, const char *what,
				   struct kp_span first, size_t i, struct kp_span its,
				   struct kpackx_error *why)
{
	char texts[2][160];

	return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
		       "%s: its %s is \"%s\", that of %s is \"%s\"",
		       merge_source_name(p, i), what,
		       kp_text_escape(its, texts[0], sizeof(texts[0])),
		       merge_source_name(p, 0),
		       kp_text_escape(first, texts[1], sizeof(texts[1])));
}

/*
 * Check the versions of the sources, and choose the scheme, the group and the family of the new
 * archive.  What cannot be parsed cannot be rewritten.
 */
static kpack_error_t choose_header(struct merge_plan *p, struct kpackx_error *why)
{
	const struct kpack_archive *first = p->sources[0].archive;
	struct kp_span scheme = kp_span_str(kp_archive_scheme(first));
	struct kp_span group = kp_archive_group(first),
		       family = kp_archive_toc(first)->family;

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
	p->encodes = p->options.level != 0;
	if (p->options.recode)
		p->scheme = p->options.scheme;
	else
		kp_scheme_find(scheme, &p->scheme);
	for (size_t i = 0; i < p->n_sources; i++) {
		const char *its = kp_archive_scheme(p->sources[i].archive);

		if (strcmp(its, kp_scheme_name(p->scheme)) == 0)
			continue;
		if (!p->options.recode)
			return fail_mismatch(p, "scheme", scheme, i, kp_span_str(its),
					     why);
		p->encodes = true;
	}
	for (size_t i = 1; i < p->n_sources && !p->options.group; i++) {
		struct kp_span its = kp_archive_group(p->sources[i].archive);

		if (!kp_span_eq(group, its))
			return fail_mismatch(p, "group", group, i, its, why);
	}
	if (p->options.group)
		group = kp_span_str(p->options.group);
	if (group.size == 0)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "no archive has a group_name: one must be given");
	p->group = xstrndup((const char *)group.data, group.size);
	if (p->options.family_of_first && family.size)
		p->family = xstrndup((const char *)family.data, family.size);
	else if (p->options.family)
		p->family = xstrdup(p->options.family);
	return KPACK_SUCCESS;
}

/* --- what is taken ---------------------------------------------------------------------- */

/* Make the items and objects of a source. */
static kpack_error_t gather_source(struct merge_plan *p, size_t source,
				   struct kpackx_error *why)
{
	const struct kpack_archive *a = p->sources[source].archive;
	size_t n = kp_archive_entry_count(a);
	KP_AUTO_FREE uint64_t *list = xmalloc(n * sizeof(*list)); /* by ordinal, entry */
	uint32_t named = 0, taken = MERGE_NONE; /* the ordinal that was taken last */
	struct merge_object *o = NULL;
	struct kp_entry_info info;
	struct kp_meta meta;

	for (size_t i = 0; i < n; i++) {
		kp_archive_entry(a, i, &info);
		list[i] = (uint64_t)info.ordinal << 32 | i;
	}
	kp_sort(list, n, KP_AS_NUMBER(uint64_t));
	for (size_t i = 0; i < n; i++) {
		uint32_t entry = (uint32_t)list[i], ordinal = (uint32_t)(list[i] >> 32);

		named += i == 0 || ordinal != (uint32_t)(list[i - 1] >> 32);
		kp_archive_entry(a, entry, &info);
		if (p->options.takes &&
		    !p->options.takes(p->options.takes_arg, source, &info))
			continue;
		if (p->n_items >= UINT32_MAX / 2)
			return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				       "%s: more than %u entries in all",
				       merge_source_name(p, source), UINT32_MAX / 2);
		/* the entries of one object agree if they are right */
		kp_archive_meta(a, entry, &meta);
		if (ordinal != taken) {
			xgrow(&p->objects, p->n_objects, &p->objects_cap,
			      sizeof(*p->objects));
			o = &p->objects[p->n_objects];
			*o = (struct merge_object){
				.source = (uint32_t)source,
				.ordinal = ordinal,
				.item = MERGE_NONE,
				.same = (uint32_t)p->n_objects++,
				.size = info.size,
				.chunk = meta.chunk,
				.stored = {.fd = -1, .size = info.stored}};
			if (!kp_archive_shared(a)) {
				kpack_error_t err =
					kp_archive_source(a, ordinal, &o->stored, why);

				if (err)
					return kp_fail_prefix(
						why, err, "%s",
						merge_source_name(p, source));
			}
			taken = ordinal;
		}
		if (!o->hashed && meta.has_xxh3) {
			memcpy(o->hash, meta.xxh3, sizeof(o->hash));
			o->hashed = true;
		}
		xgrow(&p->items, p->n_items, &p->items_cap, sizeof(*p->items));
		p->items[p->n_items++] = (struct merge_item){
			(uint32_t)source, entry, (uint32_t)p->n_objects - 1, false};
	}
	p->stats.unused += kp_archive_ordinal_count(a) - named;
	return KPACK_SUCCESS;
}

/* --- which entry stays of those with one key and architecture -------------------------------- */

/* Returns a measure of how much an entry says besides its bytes. */
static int weigh_facts(const struct merge_plan *p, const struct merge_item *item)
{
	return 2 * (merge_item_more(p, item).n_runs > 0) +
	       (merge_item_map(p, item).size > 0);
}

/*
 * ITEM has the name of the item in *SLOT, whose source is preferred or came before: find out what
 * keeps the two from being one entry, and decide which of them stays.
 */
static kpack_error_t settle_clash(struct merge_plan *p, uint32_t item, uint32_t *slot,
				  struct kpackx_error *why)
{
	struct merge_item *a = &p->items[*slot - 1], *b = &p->items[item];
	struct kp_more ma = merge_item_more(p, a), mb = merge_item_more(p, b);
	bool copies = !p->encodes && p->scheme != KP_COMPRESSION_ZSTD_SHARED;
	bool same = false, differs;
	const char *what = NULL;
	struct kp_entry_info x, y;
	struct kp_meta mx, my;

	if (p->sources[a->source].prefer > p->sources[b->source].prefer) {
		b->dropped = true;
		p->stats.settled++;
		return KPACK_SUCCESS;
	}
	merge_item_entry(p, a, &x, &mx);
	merge_item_entry(p, b, &y, &my);
	/* sizes and hashes are at hand; stored bytes are compared before decoded ones */
	differs = x.size != y.size || (mx.has_xxh3 && my.has_xxh3 &&
				       memcmp(mx.xxh3, my.xxh3, sizeof(mx.xxh3)) != 0);
	if (!differs && copies)
		KP_TRY(kp_source_compare(&p->objects[a->object].stored,
					 &p->objects[b->object].stored, &same, why));
	if (!differs && !same && !(copies && p->scheme == KPACK_COMPRESSION_NOOP))
		KP_TRY(content_compare(p->sources[a->source].archive, a->entry,
				       p->sources[b->source].archive, b->entry, &same,
				       why));
	if (!same)
		what = "other bytes";
	else if (!kp_span_eq(x.type, y.type))
		what = "another type";
	else if (mx.path.size && my.path.size && !kp_span_eq(mx.path, my.path))
		what = "another path";
	else if (ma.n_runs && mb.n_runs && !kp_more_same(&ma, &mb))
		what = "other fields that are not known";
	p->clashes += what != NULL;
	if (what && p->options.clash)
		p->options.clash(p->options.clash_arg,
				 &(struct merge_clash){
					 x.key, x.arch, merge_source_name(p, a->source),
					 merge_source_name(p, b->source), what});
	p->stats.duplicates++;
	a->dropped = weigh_facts(p, a) < weigh_facts(p, b);
	b->dropped = !a->dropped;
	if (a->dropped)
		*slot = item + 1;
	return KPACK_SUCCESS;
}

/* Find items that share a name by a hash table, which has the one that stays so far. */
static kpack_error_t settle_names(struct merge_plan *p, struct kpackx_error *why)
{
	struct preference {
		unsigned worse; /* than the most preferred that can be */
		size_t source;
	};
	KP_AUTO_FREE struct preference *sources =
		xmalloc(p->n_sources * sizeof(*sources));
	KP_AUTO_FREE uint32_t *hashes = xcalloc(p->n_items + 1, sizeof(*hashes));
	struct kp_slots slots = {0};
	kpack_error_t err = KPACK_SUCCESS;

	for (size_t i = 0; i < p->n_sources; i++)
		sources[i] = (struct preference){~p->sources[i].prefer, i};
	kp_sort(sources, p->n_sources, KP_BY_NUMBER(struct preference, worse),
		KP_BY_NUMBER(struct preference, source));
	if (!kp_slots_reserve(&slots, p->n_items, NULL, NULL))
		err = kp_fail_memory(why, p->n_items * sizeof(uint64_t), "entries");
	for (size_t s = 0; s < p->n_sources && !err; s++) {
		const size_t *first = &p->first_item[sources[s].source];

		for (size_t i = first[0]; i < first[1] && !err; i++) {
			struct kp_entry_info mine, theirs;
			uint32_t *slot;

			if (p->items[i].dropped)
				continue;
			merge_item_entry(p, &p->items[i], &mine, NULL);
			hashes[i] = (uint32_t)kp_slot_hash(
				mine.arch.data, mine.arch.size,
				kp_slot_hash(mine.key.data, mine.key.size, 0));
			slot = kp_slots_first(&slots, hashes[i]);
			for (; *slot; slot = kp_slots_next(&slots, slot)) {
				if (hashes[*slot - 1] != hashes[i])
					continue;
				merge_item_entry(p, &p->items[*slot - 1], &theirs, NULL);
				if (kp_span_eq(mine.key, theirs.key) &&
				    kp_span_eq(mine.arch, theirs.arch))
					break;
			}
			if (*slot)
				err = settle_clash(p, (uint32_t)i, slot, why);
			else
				kp_slots_put(&slots, slot, (uint32_t)i);
		}
	}
	free(slots.slots);
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

/* Returns a name or a value for messages: text as it is, or the bytes of anything else. */
static const char *field_text(struct kp_span stored, char text[80])
{
	struct kp_mp c = kp_mp_over(stored);
	struct kp_span s;

	if (kp_mp_peek(&c) == KP_MP_STR && kp_mp_str(&c, &s))
		stored = s;
	return kp_text_escape(stored, text, 80);
}

/* If another source has a field of this name with another value, the preferred one wins. */
static kpack_error_t add_field(struct merge_plan *p, const struct merge_field *field,
			       struct kpackx_error *why)
{
	struct merge_field *there;
	char texts[3][80];
	size_t i = 0;
	unsigned has, other;

	while (i < p->n_fields && !kp_span_eq(p->fields[i].name, field->name))
		i++;
	if (i == FIELDS_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "%s: more than %d fields that are not known",
			       merge_source_name(p, field->source), FIELDS_MAX);
	if (i == p->n_fields) {
		xgrow(&p->fields, i, &p->fields_cap, sizeof(*p->fields));
		p->fields[p->n_fields++] = *field;
	}
	there = &p->fields[i];
	if (kp_span_eq(there->value, field->value))
		return KPACK_SUCCESS;
	has = p->sources[there->source].prefer;
	other = p->sources[field->source].prefer;
	if (other == has)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "%.150s: its \"%s\" is \"%s\", that of %.150s is \"%s\"",
			       merge_source_name(p, field->source),
			       field_text(field->name, texts[0]),
			       field_text(field->value, texts[1]),
			       merge_source_name(p, there->source),
			       field_text(there->value, texts[2]));
	if (other > has)
		*there = *field;
	return KPACK_SUCCESS;
}

static kpack_error_t settle_fields(struct merge_plan *p, struct kpackx_error *why)
{
	for (size_t i = 0; i < p->n_sources; i++) {
		const struct kp_toc *toc = kp_archive_toc(p->sources[i].archive);
		struct kp_more more = {toc->bytes, toc->more.runs, toc->more.n};

		if (p->options.takes && p->first_item[i] == p->first_item[i + 1])
			continue; /* no entry of it is taken */
		for (size_t run = 0; run < more.n_runs; run++) {
			struct kp_mp c = kp_mp_over(kp_more_run(&more, run));

			while (c.pos < c.end) {
				struct merge_field f = {.source = i};

				f.pair.data = f.name.data = c.pos;
				if (kp_mp_skip(&c))
					f.value.data = c.pos;
				if (!f.value.data || !kp_mp_skip(&c))
					return kp_mp_fail(&c, "toc", why);
				f.name.size = (size_t)(f.value.data - f.name.data);
				f.value.size = (size_t)(c.pos - f.value.data);
				f.pair.size = f.name.size + f.value.size;
				KP_TRY(add_field(p, &f, why));
			}
		}
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

/*
 * The order of writing depends on keys alone, so that the same entries give the same archive,
 * whoever packed them and in whatever order the sources are named.  An object stands where the
 * first of its keys does.
 */
static void order_objects(struct merge_plan *p)
{
	KP_AUTO_FREE struct kp_rank *ranks = xcalloc(p->n_objects + 1, sizeof(*ranks));

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
		r = kp_rank_of(info.key, info.arch, merge_item_map(p, item));
		if (kp_rank_compare(&r, &ranks[item->object]) < 0)
			ranks[item->object] = r;
	}
	p->order = xcalloc(p->n_objects + 1, sizeof(*p->order));
	for (size_t i = 0; i < p->n_objects; i++)
		if (ranks[i].named)
			p->order[p->n_order++] = (uint32_t)i;
	qsort_r(p->order, p->n_order, sizeof(*p->order), by_rank, ranks);
	for (size_t i = 0; i < p->n_order; i++)
		p->objects[p->order[i]].position = (uint32_t)i;
}

/* --- is there room, and is it right? -------------------------------------------------------- */

/*
 * Check that one archive can have all of it.  The writer would refuse it, too, but only after it
 * has copied gigabytes, and then the archives that a caller wrote before would be there alone.
 */
static kpack_error_t check_room(struct merge_plan *p, struct kpackx_error *why)
{
	bool framed = p->scheme == KPACK_COMPRESSION_ZSTD_PER_KERNEL;
	uint64_t toc;

	p->stats.frames = p->n_order;
	p->stats.bytes = framed ? 4 : 0;
	for (size_t i = 0; i < p->n_order; i++)
		p->stats.bytes += (framed ? 4 : 0) + p->objects[p->order[i]].stored.size;
	if (framed && !p->encodes && p->stats.frames > KP_FRAMES_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "%llu frames in all, one archive has at most %u",
			       (unsigned long long)p->stats.frames, KP_FRAMES_MAX);
	if (framed && !p->encodes && p->stats.bytes > KP_ZSTD_BLOB_MAX)
		return kp_fail(
			why, KPACK_ERROR_INVALID_ARGUMENT,
			"%llu bytes of frames in all, one archive has at most 4 GiB",
			(unsigned long long)p->stats.bytes);
	toc = 64 * (p->stats.frames + 1) + 4 * KP_NAME_MAX;
	for (size_t i = 0; i < p->n_fields; i++)
		toc += p->fields[i].pair.size;
	for (size_t i = 0; i < p->n_items; i++) {
		const struct merge_item *item = &p->items[i];
		struct kp_entry_info info;

		if (item->dropped)
			continue;
		merge_item_entry(p, item, &info, NULL);
		toc += kp_writer_entry_bytes(
			info.key, info.arch,
			&(struct kp_writer_entry){.type = info.type,
						  .metadata = merge_item_map(p, item),
						  .more = merge_item_more(p, item)});
	}
	if (toc > KP_TOC_SIZE_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "the table of contents could have %llu bytes, limit %llu",
			       (unsigned long long)toc,
			       (unsigned long long)KP_TOC_SIZE_MAX);
	return KPACK_SUCCESS;
}

/*
 * Decode what is not dropped: frames are copied as they are, and what is damaged must not
 * come into a new archive.  With `skip_faulty` it is dropped.
 */
static kpack_error_t check_items(struct merge_plan *p, struct kpackx_error *why)
{
	for (size_t i = 0; i < p->n_sources; i++) {
		const struct kpack_archive *a = p->sources[i].archive;
		KP_AUTO_FREE bool *entries = NULL;
		bool fine;

		if (p->sources[i].checked)
			continue;
		entries = xcalloc(kp_archive_entry_count(a) + 1, sizeof(*entries));
		for (size_t k = p->first_item[i]; k < p->first_item[i + 1]; k++)
			entries[p->items[k].entry] = !p->items[k].dropped;
		fine = check_content(a, entries, CHECK_BYTES, 0);
		for (size_t k = p->first_item[i]; k < p->first_item[i + 1]; k++)
			p->items[k].dropped |= entries[p->items[k].entry];
		if (!fine && !p->options.skip_faulty)
			return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
				       "%s: is damaged: nothing was written",
				       kp_archive_path(a));
	}
	return KPACK_SUCCESS;
}

/* --- all ------------------------------------------------------------------------------------ */

kpack_error_t merge_plan_new(const struct merge_source *sources, size_t n,
			     const struct merge_options *options, struct merge_plan **out,
			     struct kpackx_error *why)
{
	struct merge_plan *p = *out = xcalloc(1, sizeof(*p));

	p->sources = sources;
	p->n_sources = n;
	p->options = *options;
	if (n == 0 || n >= MERGE_NONE)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT, "no archives");
	if (!options->faults_known)
		KP_TRY(merge_check_faults(sources, n, options->skip_faulty, why));
	KP_TRY(choose_header(p, why));
	p->first_item = xcalloc(n + 1, sizeof(*p->first_item));
	for (size_t i = 0; i < n; i++) {
		KP_TRY(gather_source(p, i, why));
		p->first_item[i + 1] = p->n_items;
	}
	/* what is left out may be taken from another source */
	if (options->skip_faulty)
		KP_TRY(check_items(p, why));
	KP_TRY(settle_fields(p, why));
	KP_TRY(settle_names(p, why));
	order_objects(p);
	KP_TRY(merge_share(p, why));
	KP_TRY(check_room(p, why));
	return options->skip_faulty ? KPACK_SUCCESS : check_items(p, why);
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
	free(plan->family);
	free(plan->fields);
	free(plan->items);
	free(plan->objects);
	free(plan->order);
	free(plan->first_item);
	free(plan);
}

kpack_error_t merge_write(const struct merge_source *sources, size_t n,
			  const struct merge_options *options, const char *dir,
			  const char *name, struct kpackx_error *why)
{
	struct merge_plan *plan = NULL;
	struct kp_writer *writer = NULL;
	kpack_error_t err = merge_plan_new(sources, n, options, &plan, why);

	if (!err)
		err = merge_plan_write(plan, dir, name, &writer, why);
	if (!err)
		err = kp_writer_publish(writer, why);
	kp_writer_close(writer);
	merge_plan_free(plan);
	return err;
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
		report_error(NULL, "and %zu more that differ",
			     r->clashes - CLASHES_REPORTED);
}
