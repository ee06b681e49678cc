/* SPDX-License-Identifier: MIT */
#include "merge.h"
#include <errno.h>
#include <stdlib.h>
#include "check_content.h"
#include "core/writer/entry_list.h"
#include "core/base/bounds.h"
#include "core/base/scheme.h"
#include "core/archive/shared.h"
#include "packer/cli/options.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "merge_internal.h"

/* Stored bytes that are copied before progress is reported. */
#define SLICE (UINT64_C(32) << 20)

const char *merge_source_name(const struct merge_plan *p, size_t source)
{
	return kp_archive_path(p->sources[source].archive);
}

kpack_error_t merge_copy_fail(const struct merge_plan *p, size_t source,
			      kpack_error_t err, struct kpackx_error *why)
{
	if (why->sys_errno == ENOSPC || why->sys_errno == EDQUOT)
		return err;
	return kp_fail_prefix(why, err, "%s", merge_source_name(p, source));
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
	return kp_archive_entry_more(p->sources[item->source].archive, item->entry);
}

/* --- can they be joined? -------------------------------------------------------------- */

static kpack_error_t check_faults(const struct merge_plan *p, struct kpackx_error *why)
{
	size_t faulty = 0, last = 0, kept, counted;

	for (size_t i = 0; i < p->n_sources; i++) {
		kp_archive_faults(p->sources[i].archive, &kept, &counted);
		if (counted == 0)
			continue;
		if (p->options.faulty)
			p->options.faulty(p->options.arg, p->sources[i].archive);
		last = i;
		faulty++;
	}
	if (faulty == 0 || p->options.skip_faulty)
		return KPACK_SUCCESS;
	return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
		       "%s: has faults: not everything in it could be taken over",
		       merge_source_name(p, last));
}

/* We cannot rewrite what we cannot parse. */
static kpack_error_t check_known(const struct merge_plan *p, struct kpackx_error *why)
{
	for (size_t i = 0; i < p->n_sources; i++) {
		const struct kpack_archive *a = p->sources[i].archive;
		uint64_t version = kp_archive_format_version(a);
		unsigned known = kp_archive_shared(a) ? 2 : 1;

		if (version > known)
			return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
				       "%s: format_version %llu is not known, only %u",
				       kp_archive_path(a), (unsigned long long)version,
				       known);
		if (kp_archive_blobs_more(a))
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
	struct merge_mismatch m = {what, merge_source_name(p, 0),
				   merge_source_name(p, second), has, other};

	if (p->options.mismatch)
		p->options.mismatch(p->options.arg, &m);
	return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT, "the archives' %ss differ",
		       what);
}

/* The archive gets the scheme that was asked for. */
static void set_scheme(struct merge_plan *p)
{
	p->scheme = p->options.scheme;
	p->encodes = p->options.level != 0;
	for (size_t i = 0; i < p->n_sources && !p->encodes; i++)
		p->encodes = strcmp(kp_archive_scheme(p->sources[i].archive),
				    kp_scheme_name(p->scheme)) != 0;
}

static kpack_error_t check_schemes(struct merge_plan *p, struct kpackx_error *why)
{
	struct kp_span first = kp_span_str(kp_archive_scheme(p->sources[0].archive));

	if (p->options.recode) {
		set_scheme(p);
		return KPACK_SUCCESS;
	}
	p->encodes = p->options.level != 0;

	for (size_t i = 1; i < p->n_sources; i++) {
		const char *other = kp_archive_scheme(p->sources[i].archive);

		if (!kp_span_is(first, other))
			return fail_mismatch(p, "scheme", i, first, kp_span_str(other),
					     why);
	}
	kp_scheme_find(first, &p->scheme);
	return KPACK_SUCCESS;
}

static kpack_error_t check_groups(const struct merge_plan *p, struct kp_span first,
				  struct kpackx_error *why)
{
	for (size_t i = 1; i < p->n_sources; i++) {
		struct kp_span other = kp_archive_group(p->sources[i].archive);

		if (!kp_span_eq(first, other))
			return fail_mismatch(p, "group", i, first, other, why);
	}
	if (first.size == 0)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "no archive has a group_name: one must be given");
	return KPACK_SUCCESS;
}

static kpack_error_t choose_group(struct merge_plan *p, struct kpackx_error *why)
{
	struct kp_span group = kp_archive_group(p->sources[0].archive);

	if (p->options.group)
		group = kp_span_str(p->options.group);
	else
		KP_TRY(check_groups(p, group, why));
	p->group = xstrndup((const char *)group.data, group.size);
	return KPACK_SUCCESS;
}

/* --- is there room? ------------------------------------------------------------------- */

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

/* --- is it right? --------------------------------------------------------------------- */

/*
 * Decode what is not dropped: frames are copied as they are, and what is damaged must not
 * come into a new archive.  With `skip_faulty` it is dropped.
 */
static kpack_error_t check_items(struct merge_plan *p, struct kpackx_error *why)
{
	for (size_t i = 0; i < p->n_sources && !p->options.checked; i++) {
		const struct kpack_archive *a = p->sources[i].archive;
		bool *entries = xcalloc(kp_archive_entry_count(a) + 1, sizeof(*entries));
		bool fine;

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

void merge_progress(const struct merge_plan *p, uint64_t bytes)
{
	if (p->options.progress)
		p->options.progress(p->options.arg, bytes);
}

/* --- planning ------------------------------------------------------------------------- */

static kpack_error_t make_plan(struct merge_plan *p, struct kpackx_error *why)
{
	if (p->n_sources == 0 || p->n_sources >= MERGE_NONE)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT, "no archives");
	KP_TRY(check_faults(p, why));
	KP_TRY(check_known(p, why));
	KP_TRY(check_schemes(p, why));
	KP_TRY(choose_group(p, why));
	KP_TRY(merge_gather(p, why));
	/* what is left out may be taken from another source */
	if (p->options.skip_faulty)
		KP_TRY(check_items(p, why));
	KP_TRY(merge_more(p, why));
	KP_TRY(merge_names(p, why));
	merge_order(p);
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
	free(plan->first_object);
	free(plan);
}

/* --- writing -------------------------------------------------------------------------- */

/* Returns how many objects from order I on follow one another in their source. */
static uint32_t run_of(const struct merge_plan *p, size_t i)
{
	const struct merge_object *first = &p->objects[p->order[i]];
	uint64_t bytes = first->stored.size;
	uint32_t n = 1;

	while (i + n < p->n_order && bytes < SLICE) {
		const struct merge_object *o = &p->objects[p->order[i + n]];

		if (o->source != first->source || o->ordinal != first->ordinal + n)
			break;
		bytes += o->stored.size;
		n++;
	}
	return n;
}

/* Decode an object of a shared archive, and store it again. */
static kpack_error_t write_shared(struct merge_plan *p, struct merge_object *o,
				  struct kp_writer *w, struct kpackx_error *why)
{
	const struct kp_shared *s = kp_archive_shared(p->sources[o->source].archive);
	uint64_t size = kp_shared_object_size(s, o->ordinal);
	uint8_t *bytes = malloc((size_t)size + 1);
	kpack_error_t err;

	if (!bytes)
		return kp_fail_memory(why, size, "an object");
	err = kp_shared_read(s, o->ordinal, 0, bytes, size, why);
	if (!err)
		err = kp_writer_add_stored(w, (struct kp_span){bytes, (size_t)size},
					   &o->written, why);
	free(bytes);
	merge_progress(p, o->stored.size);
	return err ? merge_copy_fail(p, o->source, err, why) : KPACK_SUCCESS;
}

/* The source that has most blocks; of several, the first. */
static uint32_t largest_source(const struct merge_plan *p)
{
	uint32_t best = 0, most = 0;

	for (size_t i = 0; i < p->n_sources; i++) {
		const struct kp_shared *s = kp_archive_shared(p->sources[i].archive);

		if (kp_shared_block_count(s) <= most)
			continue;
		most = kp_shared_block_count(s);
		best = (uint32_t)i;
	}
	return best;
}

/* Store the objects of SOURCE with its blocks, as far as that is worth it. */
static kpack_error_t write_blocks(struct merge_plan *p, uint32_t source,
				  struct kp_writer *w, bool *done,
				  struct kpackx_error *why)
{
	uint32_t *ordinals = xmalloc(p->n_order * sizeof(*ordinals)), n = 0;
	uint64_t others = 0;
	kpack_error_t err;

	for (size_t i = 0; i < p->n_order; i++)
		if (p->objects[p->order[i]].source == source)
			ordinals[n++] = p->objects[p->order[i]].ordinal;
	for (size_t i = 0; i < p->n_sources && n < p->n_order; i++)
		if (i != source)
			others += kp_shared_unique_size(
				kp_archive_shared(p->sources[i].archive));
	err = kp_writer_add_blocks(w, kp_archive_shared(p->sources[source].archive),
				   ordinals, n, others, done, why);
	free(ordinals);
	n = 0;
	for (size_t i = 0; i < p->n_order && !err && *done; i++) {
		struct merge_object *o = &p->objects[p->order[i]];

		if (o->source != source)
			continue;
		o->written = n++;
		merge_progress(p, o->stored.size);
	}
	return err ? merge_copy_fail(p, source, err, why) : KPACK_SUCCESS;
}

static kpack_error_t write_all_shared(struct merge_plan *p, struct kp_writer *w,
				      struct kpackx_error *why)
{
	uint32_t largest = largest_source(p);
	bool done;

	KP_TRY(write_blocks(p, largest, w, &done, why));
	for (size_t i = 0; i < p->n_order; i++) {
		struct merge_object *o = &p->objects[p->order[i]];

		if (!done || o->source != largest)
			KP_TRY(write_shared(p, o, w, why));
	}
	return KPACK_SUCCESS;
}

static kpack_error_t write_objects(struct merge_plan *p, struct kp_writer *w,
				   struct kpackx_error *why)
{
	if (p->encodes)
		return merge_encode(p, w, why);
	if (p->scheme == KP_COMPRESSION_ZSTD_SHARED)
		return write_all_shared(p, w, why);
	for (size_t i = 0; i < p->n_order;) {
		const struct merge_object *o = &p->objects[p->order[i]];
		uint32_t n = run_of(p, i), ordinal = 0;
		uint64_t before = kp_writer_blob_size(w);
		kpack_error_t err = kp_writer_add_run(w, p->sources[o->source].archive,
						      o->ordinal, n, &ordinal, why);

		if (err)
			return merge_copy_fail(p, o->source, err, why);
		for (; n; n--, i++)
			p->objects[p->order[i]].written = ordinal++;
		merge_progress(p, kp_writer_blob_size(w) - before);
	}
	return KPACK_SUCCESS;
}

static kpack_error_t write_entries(const struct merge_plan *p, struct kp_writer *w,
				   struct kpackx_error *why)
{
	for (size_t i = 0; i < p->n_items; i++) {
		const struct merge_item *item = &p->items[i];
		const struct merge_object *o = &p->objects[item->object];
		struct kp_entry_info info;
		struct kp_span metadata;
		uint8_t *owned;
		kpack_error_t err;

		if (item->dropped)
			continue;
		merge_item_entry(p, item, &info, NULL);
		metadata = merge_item_metadata(p, item, &owned);
		err = kp_writer_add_entry(
			w, info.key, info.arch,
			&(struct kp_writer_entry){info.type, p->objects[o->same].written,
						  info.size, metadata,
						  merge_item_more(p, item)},
			why);
		free(owned);
		if (err)
			return err;
	}
	return KPACK_SUCCESS;
}

static kpack_error_t write_plan(struct merge_plan *plan, struct kp_writer *w,
				struct kpackx_error *why)
{
	struct kp_writer_blocks blocks;

	KP_TRY(write_objects(plan, w, why));
	KP_TRY(write_entries(plan, w, why));
	blocks = kp_writer_blocks(w);
	plan->stats.blocks_copied = blocks.copied;
	plan->stats.blocks_encoded = blocks.encoded;
	KP_TRY(kp_writer_finish(w, why));
	plan->stats.bytes = kp_writer_blob_size(w);
	return KPACK_SUCCESS;
}

kpack_error_t merge_plan_write(struct merge_plan *plan, const char *dir, const char *name,
			       struct kp_writer **out, struct kpackx_error *why)
{
	struct kp_writer_options options = {
		.scheme = plan->scheme,
		.group = plan->group,
		.family = plan->options.family,
		.level = plan->options.level ? plan->options.level : KP_SHARED_LEVEL,
		.jobs = option_jobs(),
		.keep = plan->options.keep,
		.lazy = plan->options.lazy,
		.more = plan->more,
		.n_more = plan->n_more,
	};
	struct kp_writer *w = NULL;
	kpack_error_t err;

	KP_TRY(below_writer_open(dir, name, &options, &w, why));
	err = write_plan(plan, w, why);
	if (err)
		kp_writer_close(w);
	else
		*out = w;
	return err;
}
