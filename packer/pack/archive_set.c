/* SPDX-License-Identifier: MIT */
#include "archive_set.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/archive/archive.h"
#include "existing_archives.h"
#include "inherited_archives.h"
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "core/base/scheme.h"
#include "core/target/target.h"
#include "core/base/text.h"
#include "packer/archives/content.h"
#include "packer/archives/merge.h"
#include "core/archive/naming.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/files/staging.h"
#include "packer/files/target.h"

/* One archive that is written. */
struct volume {
	unsigned number;
	char *file;            /* name in the directory */
	struct kp_store store; /* without a writer: its last entry goes */
	bool again; /* it is compressed for the moment, and once more at the end */
};

/* The archives of an architecture or a family. */
struct slot {
	char *stem;         /* what follows the group: "_gfx942", "-gfx110X" */
	const char *family; /* gfx_arch_family */
	struct volume *volumes;
	size_t n_volumes;
	/* "KEY ARCH" of the entries that other parts of the run store, sorted when all are known */
	char **expected;
	size_t n_expected, expected_cap;
	/* the most that it gets in the volume that is being filled, and of the next binary */
	uint64_t bytes, more_bytes;
	uint32_t frames, more_frames;
};

struct archive_set {
	struct archive_set_options options;
	pthread_mutex_t lock; /* of the volumes: archive_set_shared is called any time */
	unsigned volume;      /* the one that archive_set_place fills, from 1 */
	int dir_fd;           /* of the directory, locked against other runs */
	struct existing there;
	struct slot *slots;
	size_t n_slots;
	struct archive_stats stats;
	const char **written;
	size_t n_written;
};

/* --- slots and volumes --------------------------------------------------------------- */

/* Whether STEM follows the group in the names of PLACE's archives. */
static bool is_stem(const struct archive_set *set, const char *place, const char *stem)
{
	const struct family *family = families_find(set->options.families, place);

	return stem[0] == (family ? '-' : '_') &&
	       strcmp(stem + 1, family ? family->name : place) == 0;
}

static struct slot *find_slot(const struct archive_set *set, const char *place)
{
	for (size_t i = 0; i < set->n_slots; i++)
		if (is_stem(set, place, set->slots[i].stem))
			return &set->slots[i];
	return NULL;
}

/* Takes over STEM. */
static struct slot *add_slot(struct archive_set *set, char *stem)
{
	struct slot *s;

	set->slots = xrealloc(set->slots, (set->n_slots + 1) * sizeof(*s));
	s = &set->slots[set->n_slots++];
	*s = (struct slot){.stem = stem, .family = stem + 1};
	return s;
}

static void volume_fini(struct volume *v)
{
	kp_store_fini(&v->store);
	free(v->file);
}

static bool has_entries(const struct volume *v)
{
	return v->store.writer && kp_writer_entry_count(v->store.writer);
}

static kpack_error_t open_volume(struct archive_set *set, const struct slot *s,
				 struct volume *v, struct kpackx_error *why)
{
	struct kp_writer_options options = {
		.scheme = set->options.scheme,
		.group = set->options.group,
		.family = s->family,
		.level = set->options.level,
		.effort = set->options.effort,
		.jobs = set->options.jobs,
		.unnamed = set->options.unnamed,
	};
	const struct existing_archive *there;

	v->file = kp_archive_file_name(set->options.group, v->number, s->stem);
	if (!v->file)
		xalloc_fail(0);
	if (!kp_component_ok(kp_span_str(v->file)))
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "architecture %s gives no file name", s->family);
	there = existing_find(&set->there, v->file);
	if (there && there->foreign)
		return kp_fail(
			why, KPACK_ERROR_INVALID_ARGUMENT,
			"%s/%s: is an archive of another group: give another --group",
			set->options.dir, v->file);
	if (there && there->frames && !set->options.force) { /* with what stays of it */
		options.level = 1;
		options.effort = 0;
		v->again = true;
	}
	return below_writer_open(set->options.dir, v->file, &options, &v->store.writer,
				 why);
}

static kpack_error_t add_volume(struct archive_set *set, struct slot *s, unsigned number,
				struct volume **out, struct kpackx_error *why)
{
	struct volume v = {.number = number, .store.scheme = set->options.scheme};
	kpack_error_t err = open_volume(set, s, &v, why);

	if (err) {
		volume_fini(&v);
		return err;
	}
	s->volumes = xrealloc(s->volumes, (s->n_volumes + 1) * sizeof(v));
	s->volumes[s->n_volumes] = v;
	*out = &s->volumes[s->n_volumes++];
	return KPACK_SUCCESS;
}

static struct volume *find_volume(const struct slot *s, unsigned number)
{
	for (size_t i = 0; i < s->n_volumes; i++)
		if (s->volumes[i].number == number)
			return &s->volumes[i];
	return NULL;
}

static struct slot *slot_of(struct archive_set *set, const char *place)
{
	struct slot *s = find_slot(set, place);

	return s ? s : add_slot(set, families_stem(set->options.families, place));
}

/* Get the archive of PLACE that is volume NUMBER; it is begun if missing. */
static kpack_error_t get_volume(struct archive_set *set, const char *place,
				unsigned number, struct slot **slot,
				struct volume **volume, struct kpackx_error *why)
{
	*slot = slot_of(set, place);
	*volume = find_volume(*slot, number);
	return *volume ? KPACK_SUCCESS : add_volume(set, *slot, number, volume, why);
}

/* --- opening ------------------------------------------------------------------------- */

/* Whether an entry of an existing archive is of a file that the run replaces. */
static bool is_entry_obsolete(const void *arg, const struct kpack_archive *a,
			      size_t entry)
{
	const struct archive_set_options *o = &((const struct archive_set *)arg)->options;
	struct kp_entry_info info;
	struct kp_meta meta;

	if (!o->obsolete)
		return false;
	kp_archive_entry(a, entry, &info);
	kp_archive_meta(a, entry, &meta);
	return o->obsolete(o->obsolete_arg, info.key, meta.path);
}

static enum existing_fate fate_of(const void *arg, const struct existing_archive *archive,
				  const struct kpack_archive *opened, size_t entry)
{
	const struct archive_set *set = arg;
	struct kp_entry_info info;
	const char *place = NULL;
	bool stored, obsolete = is_entry_obsolete(set, opened, entry);

	kp_archive_entry(opened, entry, &info);
	stored = set->options.stores(set->options.stores_arg, info.key, info.arch,
				     archive->number, &place);
	if (stored && is_stem(set, place, archive->stem))
		return ENTRY_REPLACED;
	if (obsolete)
		return ENTRY_OBSOLETE;
	return stored ? ENTRY_MOVED : ENTRY_STAYS;
}

/*
 * Check that no entry moves to another archive: two archives with one key would
 * contradict each other.
 */
static kpack_error_t check_moved(const struct archive_set *set, struct kpackx_error *why)
{
	for (size_t i = 0; i < set->there.count && !set->options.force; i++) {
		const struct existing_archive *a = &set->there.items[i];

		if (a->moved)
			return kp_fail(
				why, KPACK_ERROR_INVALID_ARGUMENT,
				"%s/%s: has %s, which would now go to another archive: "
				"give the same --family, or replace it with --force",
				set->options.dir, a->file, a->moved);
	}
	return KPACK_SUCCESS;
}

/* Wait for other runs in this directory. */
static kpack_error_t lock_dir(struct archive_set *set, struct kpackx_error *why)
{
	struct below_target dir;

	/* a link in OUTPUT too is followed only where no other user can exchange it */
	if (below_target_open(&dir, set->options.dir) < 0)
		return below_fail(why, "%s", set->options.dir);
	set->dir_fd = below_target_reopen(&dir, O_RDONLY | O_DIRECTORY);
	below_target_close(&dir);
	if (set->dir_fd < 0)
		return below_fail(why, "%s", set->options.dir);
	lock_wait(set->dir_fd, set->options.dir);
	/* what is locked is also what is written to */
	return below_adopt_root(set->options.dir, set->dir_fd, why);
}

static kpack_error_t look_at_dir(struct archive_set *set, struct kpackx_error *why)
{
	const struct archive_set_options *o = &set->options;

	KP_TRY(lock_dir(set, why));
	if (o->inherit)
		KP_TRY(inherit_archives(o->inherit, o->dir, why));
	KP_TRY(existing_open(o->dir, o->group, fate_of, set, &set->there, why));
	return check_moved(set, why);
}

kpack_error_t archive_set_open(const struct archive_set_options *options,
			       struct archive_set **out, struct kpackx_error *why)
{
	struct archive_set *set = xcalloc(1, sizeof(*set));
	kpack_error_t err = KPACK_SUCCESS;

	set->options = *options;
	pthread_mutex_init(&set->lock, NULL);
	set->volume = 1;
	set->dir_fd = -1;
	if (!options->unnamed)
		err = look_at_dir(set, why);
	if (err)
		archive_set_close(set);
	else
		*out = set;
	return err;
}

static void close_slot(struct slot *s)
{
	for (size_t i = 0; i < s->n_volumes; i++)
		volume_fini(&s->volumes[i]);
	for (size_t i = 0; i < s->n_expected; i++)
		free(s->expected[i]);
	free(s->expected);
	free(s->volumes);
	free(s->stem);
}

void archive_set_close(struct archive_set *set)
{
	if (!set)
		return;
	for (size_t i = 0; i < set->n_slots; i++)
		close_slot(&set->slots[i]);
	archive_stats_fini(&set->stats);
	free(set->slots);
	free(set->written);
	existing_close(&set->there);
	lock_close(set->dir_fd); /* the root has the same open directory, and keeps it */
	pthread_mutex_destroy(&set->lock);
	free(set);
}

/* --- objects ------------------------------------------------------------------------- */

/* The existing archive that is volume NUMBER of S; NULL: none, or it is replaced. */
static const struct existing_archive *existing_of(const struct archive_set *set,
						  const struct slot *s, unsigned number)
{
	for (size_t i = 0; i < set->there.count && !set->options.force; i++) {
		const struct existing_archive *a = &set->there.items[i];

		if (!a->foreign && a->number == number && strcmp(s->stem, a->stem) == 0)
			return a;
	}
	return NULL;
}

/* Whether what S is to get could pass the bound of its archive.  An empty one takes anything. */
static bool passes_bound(const struct archive_set *set, const struct slot *s)
{
	const struct existing_archive *there = existing_of(set, s, set->volume);
	uint64_t used = s->bytes + (there ? there->bytes : 0);
	uint64_t frames = s->frames + (there ? there->frames : 0);

	if (s->more_frames == 0 || (used == 0 && frames == 0))
		return false;
	if (set->options.scheme == KPACK_COMPRESSION_ZSTD_PER_KERNEL &&
	    frames + s->more_frames > KP_FRAMES_MAX)
		return true;
	return used >= set->options.volume_size ||
	       s->more_bytes > set->options.volume_size - used;
}

static bool any_passes(const struct archive_set *set)
{
	for (size_t i = 0; i < set->n_slots; i++)
		if (passes_bound(set, &set->slots[i]))
			return true;
	return false;
}

static void begin_volume(struct archive_set *set, unsigned number)
{
	set->volume = number;
	for (size_t i = 0; i < set->n_slots; i++)
		set->slots[i].bytes = set->slots[i].frames = 0;
}

unsigned archive_set_place(struct archive_set *set, unsigned least,
			   const struct archive_need *needs, size_t n)
{
	for (size_t i = 0; i < set->n_slots; i++)
		set->slots[i].more_bytes = set->slots[i].more_frames = 0;
	for (size_t i = 0; i < n; i++) { /* a family's architectures go to one archive */
		struct slot *s = slot_of(set, needs[i].place);

		s->more_bytes += needs[i].bytes;
		s->more_frames += needs[i].frames;
	}
	if (!set->options.force && set->volume < least)
		begin_volume(set, least);
	while (any_passes(set))
		begin_volume(set, set->volume + 1);
	for (size_t i = 0; i < set->n_slots; i++) {
		set->slots[i].bytes += set->slots[i].more_bytes;
		set->slots[i].frames += set->slots[i].more_frames;
	}
	return set->volume;
}

void archive_set_expect(struct archive_set *set, const char *place, struct kp_span key,
			const char *arch)
{
	struct slot *s = slot_of(set, place);

	xgrow(&s->expected, s->n_expected, &s->expected_cap, sizeof(char *));
	s->expected[s->n_expected++] =
		xasprintf("%.*s %s", (int)key.size, (const char *)key.data, arch);
}

/* The store that seems to have the content of OBJECT, whose ordinal is set; NULL: none. */
static struct kp_store *find_candidate(struct archive_set *set,
				       struct archive_object *object)
{
	struct slot *s = find_slot(set, object->place);
	struct volume *v = s ? find_volume(s, object->volume) : NULL;

	return v && kp_store_find(&v->store, &object->content, &object->ordinal)
		       ? &v->store
		       : NULL;
}

kpack_error_t archive_set_shared_file(struct archive_set *set,
				      struct archive_object *object,
				      const struct kp_source *data, bool *shared,
				      struct kpackx_error *why)
{
	kpack_error_t err = KPACK_SUCCESS;
	struct kp_source stored;
	struct kp_store *known;

	*shared = false;
	pthread_mutex_lock(&set->lock);
	known = find_candidate(set, object);
	if (known)
		err = kp_writer_stored_source(known->writer, object->ordinal, &stored,
					      why);
	pthread_mutex_unlock(&set->lock);
	if (!known || err)
		return err;
	return kp_store_decodes_to(&stored, data, shared, why);
}

kpack_error_t archive_set_shared(struct archive_set *set, struct archive_object *object,
				 const void *data, struct kp_scratch *scratch,
				 bool *shared, struct kpackx_error *why)
{
	struct kp_span stored = {0};
	kpack_error_t err = KPACK_SUCCESS;
	struct kp_store *known;

	*shared = false;
	pthread_mutex_lock(&set->lock);
	known = find_candidate(set, object);
	if (known)
		err = kp_store_read(known, object->ordinal, scratch, &stored, why);
	pthread_mutex_unlock(&set->lock);
	if (!known || err)
		return err;
	return kp_store_equals(set->options.scheme, stored,
			       (struct kp_span){data, (size_t)object->content.size},
			       scratch, shared, why);
}

kpack_error_t archive_set_store(struct archive_set *set, struct archive_object *o,
				struct kpackx_error *why)
{
	struct arch_stats *stats = archive_stats_of(&set->stats, o->place);
	kpack_error_t err;
	struct volume *v;
	struct slot *s;

	pthread_mutex_lock(&set->lock);
	err = get_volume(set, o->place, o->volume, &s, &v, why);
	o->shared = !o->file && !o->stored.data; /* archive_set_shared found it */
	if (!err && o->file)
		err = kp_store_add_file(&v->store, &o->content, o->file, &o->ordinal,
					&o->shared, why);
	else if (!err && !o->shared)
		err = kp_store_add(&v->store, &o->content, o->stored, &o->ordinal,
				   &o->shared, why);
	pthread_mutex_unlock(&set->lock);
	if (err)
		return err;
	stats->bytes_in += o->content.size;
	if (o->shared)
		stats->deduplicated++;
	else
		stats->bytes_out += o->stored.size;
	return KPACK_SUCCESS;
}

kpack_error_t archive_set_entry(struct archive_set *set, const struct archive_object *o,
				const char *arch, struct kp_span key,
				const struct kp_writer_entry *entry,
				struct kpackx_error *why)
{
	struct arch_stats *stats = archive_stats_of(&set->stats, o->place);
	struct volume *v;
	struct slot *s;
	kpack_error_t err;

	pthread_mutex_lock(&set->lock);
	err = get_volume(set, o->place, o->volume, &s, &v, why);
	if (!err)
		err = kp_writer_add_entry(v->store.writer, key, kp_span_str(arch), entry,
					  why);
	if (!err)
		stats->objects++;
	pthread_mutex_unlock(&set->lock);
	return err;
}

/* --- completing archives -------------------------------------------------------------- */

/* What decides about the entries of an existing archive. */
struct stays {
	const struct archive_set *set;
	const struct slot *slot;
	const struct kpack_archive *old;
	size_t source; /* of the merge */
};

/* Whether an entry of the existing archive stays, unless the run has stored one of its name. */
static bool stays(const struct stays *s, size_t entry)
{
	struct kp_entry_info info;
	KP_AUTO_FREE char *name = NULL;

	kp_archive_entry(s->old, entry, &info);
	if (is_entry_obsolete(s->set, s->old, entry))
		return false;
	if (!s->slot->n_expected)
		return true;
	name = xasprintf("%.*s %.*s", (int)info.key.size, (const char *)info.key.data,
			 (int)info.arch.size, (const char *)info.arch.data);
	return !bsearch(&name, s->slot->expected, s->slot->n_expected, sizeof(char *),
			kp_order_texts);
}

static bool takes_entry(const void *arg, size_t source, const struct kp_entry_info *info)
{
	const struct stays *s = arg;
	size_t entry;

	return source != s->source ||
	       (kp_archive_find(s->old, info->key, info->arch, &entry) &&
		stays(s, entry));
}

static kpack_error_t check_old(const struct archive_set *set,
			       const struct kpack_archive *old, struct kpackx_error *why)
{
	const char *scheme = kp_scheme_name(set->options.scheme);
	size_t kept, counted;

	if (strcmp(kp_archive_scheme(old), scheme) != 0)
		return kp_fail(
			why, KPACK_ERROR_INVALID_ARGUMENT,
			"its scheme is %s and this run's %s: give the same, or replace "
			"it with --force",
			kp_archive_scheme(old), scheme);
	kp_archive_faults(old, &kept, &counted);
	if (counted)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "it has faults and cannot be added to (kpack verify names "
			       "them); --force replaces it");
	return KPACK_SUCCESS;
}

/* Write V again: what it has, and of OLD, unless that is NULL, what STAYS says. */
static kpack_error_t rewrite_volume(const struct archive_set *set, const struct slot *s,
				    struct volume *v, const struct stays *stays,
				    struct kpackx_error *why)
{
	const struct archive_set_options *o = &set->options;
	bool shared = o->scheme == KP_COMPRESSION_ZSTD_SHARED;
	struct merge_source sources[2];
	struct merge_options options = {
		.group = o->group,
		.family = s->family,
		.level = shared ? o->level : 0,
		.effort = o->effort,
		.takes = takes_entry,
		.takes_arg = stays,
	};
	KP_AUTO_FREE char *path = xasprintf("%s/%s", o->dir, v->file);
	struct kpack_archive *own = NULL;
	struct kp_writer *writer = NULL;
	struct merge_plan *plan = NULL;
	kpack_error_t err = KPACK_SUCCESS;
	size_t n = 0;

	if (has_entries(v)) {
		err = kp_writer_finish(v->store.writer, why);
		if (!err)
			err = kp_writer_reopen(v->store.writer, path, &own, why);
		sources[n++] = (struct merge_source){own, .prefer = 1, .checked = true};
	}
	/* decoding all of a shared archive checks it */
	if (stays->old)
		sources[n++] = (struct merge_source){stays->old, .checked = shared};
	if (!err)
		err = merge_plan_new(sources, n, &options, &plan, why);
	if (err == KPACK_ERROR_DECOMPRESSION_FAILED)
		err = kp_fail(why, err,
			      "%s: is damaged and cannot be added to; --force "
			      "replaces it",
			      path);
	if (!err)
		err = merge_plan_write(plan, o->dir, v->file, &writer, why);
	merge_plan_free(plan);
	kp_archive_close(own);
	if (err)
		return err;
	kp_writer_close(v->store.writer);
	v->store.writer = writer;
	return KPACK_SUCCESS;
}

/*
 * Complete V, which may be NULL, with what stays of the existing archive THERE, which may be
 * NULL, too.
 *
 * Objects come in the order of the plan, which is that of their keys, but for images of one
 * architecture whose kinds tell them apart, and rows of a database.  The order must not tell
 * which run stored what: then a killed run that is run again gives the same archives, and so do
 * the parts of a run when they are merged.
 */
static kpack_error_t complete_volume(struct archive_set *set, struct slot *s,
				     struct volume *v,
				     const struct existing_archive *there,
				     struct kpackx_error *why)
{
	struct stays stay = {.set = set, .slot = s};
	size_t taken = 0, n = 0;
	struct kpack_archive *old = NULL;
	kpack_error_t err = KPACK_SUCCESS;
	bool ordered = true;

	if (there) {
		KP_AUTO_FREE char *path =
			xasprintf("%s/%s", set->options.dir, there->file);

		err = below_archive_open(path, &old, why);
	}
	stay.old = old;
	stay.source = v && has_entries(v); /* after what the run stored */
	n = old ? kp_archive_entry_count(old) : 0;
	for (size_t i = 0; i < n; i++)
		taken += stays(&stay, i);
	if (!err && !v && taken < n) {
		err = add_volume(set, s, there->number, &v, why);
		if (!err) { /* nothing of this run goes there */
			kp_writer_close(v->store.writer);
			v->store.writer = NULL;
		}
	}
	if (!err && v && old)
		err = check_old(set, old, why);
	if (!err && v && v->store.writer && !set->options.unnamed)
		err = kp_writer_is_ordered(v->store.writer, &ordered, why);
	if (!err && v && has_entries(v) && !taken && ordered && !v->again)
		err = kp_writer_finish(v->store.writer, why);
	if (err)
		kp_fail_prefix(why, err, "%s/%s", set->options.dir,
			       there ? there->file : v->file);
	else if (v && (taken || !ordered || v->again)) /* whose errors name the archive */
		err = rewrite_volume(set, s, v, &stay, why);
	kp_archive_close(old);
	return err;
}

/* The run may store nothing for the architecture of an archive that loses entries. */
static void add_obsolete_slots(struct archive_set *set)
{
	for (size_t i = 0; i < set->there.count; i++) {
		const struct existing_archive *a = &set->there.items[i];
		bool found = !a->obsolete;

		for (size_t k = 0; k < set->n_slots && !found; k++)
			found = strcmp(set->slots[k].stem, a->stem) == 0;
		if (!found)
			add_slot(set, xstrdup(a->stem));
	}
}

static kpack_error_t complete_all(struct archive_set *set, struct kpackx_error *why)
{
	if (!set->options.force)
		add_obsolete_slots(set);
	for (size_t i = 0; i < set->n_slots; i++) {
		struct slot *s = &set->slots[i];

		if (s->n_expected)
			qsort(s->expected, s->n_expected, sizeof(char *), kp_order_texts);
		for (size_t k = 0; k < s->n_volumes; k++)
			KP_TRY(complete_volume(set, s, &s->volumes[k],
					       existing_of(set, s, s->volumes[k].number),
					       why));
		for (size_t k = 0; k < set->there.count && !set->options.force; k++) {
			const struct existing_archive *a = &set->there.items[k];

			if (!a->foreign && strcmp(a->stem, s->stem) == 0 &&
			    !find_volume(s, a->number))
				KP_TRY(complete_volume(set, s, NULL, a, why));
		}
	}
	return KPACK_SUCCESS;
}

/* --- publishing ---------------------------------------------------------------------- */

static bool is_written(const struct archive_set *set, const char *name)
{
	for (size_t i = 0; i < set->n_written; i++)
		if (strcmp(set->written[i], name) == 0)
			return true;
	return false;
}

/* Whether an existing archive contradicts what was written, or lost its last entry. */
static bool is_obsolete(const struct archive_set *set, const struct existing_archive *a)
{
	if (a->foreign || is_written(set, a->file))
		return false;
	if (set->options.force && a->moved)
		return true;
	for (size_t i = 0; i < set->n_slots; i++) {
		const struct slot *s = &set->slots[i];

		if (strcmp(s->stem, a->stem) == 0)
			return set->options.force || find_volume(s, a->number);
	}
	return false;
}

static kpack_error_t remove_obsolete(const struct archive_set *set,
				     struct kpackx_error *why)
{
	for (size_t i = 0; i < set->there.count; i++) {
		const struct existing_archive *a = &set->there.items[i];
		int status = 0;
		char *path;

		if (!is_obsolete(set, a))
			continue;
		path = xasprintf("%s/%s", set->options.dir, a->file);
		status = below_unlink(path);
		free(path);
		if (status < 0 && errno != ENOENT)
			return below_fail(why, "%s/%s: cannot remove", set->options.dir,
					  a->file);
	}
	return KPACK_SUCCESS;
}

static void list_written(struct archive_set *set)
{
	size_t n = 0;

	for (size_t i = 0; i < set->n_slots; i++)
		n += set->slots[i].n_volumes;
	set->written = xmalloc(n * sizeof(char *));
	for (size_t i = 0; i < set->n_slots; i++)
		for (size_t k = 0; k < set->slots[i].n_volumes; k++)
			if (has_entries(&set->slots[i].volumes[k]))
				set->written[set->n_written++] =
					set->slots[i].volumes[k].file;
	qsort(set->written, set->n_written, sizeof(char *), kp_order_texts);
	archive_stats_sort(&set->stats);
}

static kpack_error_t publish_all(struct archive_set *set, struct kpackx_error *why)
{
	for (size_t i = 0; i < set->n_slots; i++)
		for (size_t k = 0; k < set->slots[i].n_volumes; k++) {
			struct volume *v = &set->slots[i].volumes[k];
			kpack_error_t err;

			if (!has_entries(v))
				continue;
			err = kp_writer_publish(v->store.writer, why);
			if (err)
				return kp_fail_prefix(why, err, "%s/%s", set->options.dir,
						      v->file);
		}
	return KPACK_SUCCESS;
}

kpack_error_t archive_set_publish(struct archive_set *set, struct kpackx_error *why)
{
	KP_TRY(complete_all(set, why));
	list_written(set);
	if (set->options.unnamed)
		return KPACK_SUCCESS;
	KP_TRY(publish_all(set, why));
	return remove_obsolete(set, why);
}

kpack_error_t archive_set_reopen(const struct archive_set *set, const char *name,
				 struct kpack_archive **out, struct kpackx_error *why)
{
	for (size_t i = 0; i < set->n_slots; i++)
		for (size_t k = 0; k < set->slots[i].n_volumes; k++) {
			const struct volume *v = &set->slots[i].volumes[k];

			if (strcmp(v->file, name) == 0 && has_entries(v))
				return kp_writer_reopen(v->store.writer, name, out, why);
		}
	return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT, "%s: was not written", name);
}

const struct archive_stats *archive_set_stats(const struct archive_set *set)
{
	return &set->stats;
}

const char *const *archive_set_names(const struct archive_set *set, size_t *count)
{
	*count = set->n_written;
	return set->written;
}
