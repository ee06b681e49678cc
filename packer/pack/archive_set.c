/* SPDX-License-Identifier: MIT */
/*
 * A set of archives has a slot for each architecture or family, and a slot its volumes.  A
 * volume is the archive that exists, the one that this run writes, or both.
 *
 *	GROUP_gfx942.kpack, GROUP.2_gfx942.kpack	slot "_gfx942", volumes 1 and 2
 *	GROUP-all.kpack					slot "-all", the family of that name
 *
 * open		the directory is locked, and existing archives are weighed: how much stays of each when
 *		this run replaces its entries
 * place	each binary gets its volume, by sizes before compression
 * store, entry	a volume has only what this run stores
 * publish	what stays of the existing archive joins it (complete_volume); then all get their
 *		names, and archives that lost their last entry go
 *
 * To archives of other groups nothing is added, and one that cannot be read counts with its whole
 * size; a run that would have to add to one of these fails.
 *
 * The lock is for archive_set_shared, which threads call while the others store.  Everything else
 * is called by one thread at a time.
 */
#include "archive_set.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include "core/archive/archive.h"
#include "core/archive/naming.h"
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "core/base/order.h"
#include "core/base/scheme.h"
#include "core/base/text.h"
#include "packer/archives/merge.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/files/staging.h"
#include "packer/files/target.h"

struct volume {
	size_t slot;
	unsigned number; /* from 1 */
	char *file;      /* name in the directory */

	bool written;          /* this run writes it */
	struct kp_store store; /* without a writer: its last entry goes */
	bool again; /* it is compressed for the moment, and once more at the end */

	/* of the archive that exists: */
	bool exists;
	bool foreign;    /* it is of another group, whose name begins alike */
	bool obsolete;   /* it has entries that are replaced by nothing */
	uint64_t bytes;  /* stored bytes that stay, with their length words */
	uint32_t frames; /* objects that stay */
	char *moved;     /* text: an entry that the run stores in another archive */
};

/* The archives of an architecture or a family. */
struct slot {
	char *stem; /* what follows the group in their names: "_gfx942", "-gfx110X" */
	bool used;  /* this run stores something here, or takes something away */
	/* the most that it gets in the volume that is being filled, and of the next binary */
	uint64_t bytes, more_bytes;
	uint32_t frames, more_frames;
};

struct archive_set {
	struct archive_set_options options;
	pthread_mutex_t lock; /* of the volumes: archive_set_shared is called any time */
	unsigned volume;      /* the one that archive_set_place fills, from 1 */
	int dir_fd;           /* of the directory, locked against other runs */
	struct slot *slots;
	size_t n_slots;
	struct volume *volumes;
	size_t n_volumes;
	struct arch_stats *stats;
	size_t n_stats;
	const char **names; /* of the archives that were written */
	size_t n_names;
};

/* --- slots and volumes --------------------------------------------------------------- */

/* Whether STEM follows the group in the names of PLACE's archives. */
static bool is_stem(const struct archive_set *set, const char *place, const char *stem)
{
	const struct family *family = families_find(set->options.families, place);

	return stem[0] == (family ? '-' : '_') &&
	       strcmp(stem + 1, family ? family->name : place) == 0;
}

/* Takes over STEM. */
static struct slot *add_slot(struct archive_set *set, char *stem)
{
	set->slots = xrealloc(set->slots, (set->n_slots + 1) * sizeof(*set->slots));
	set->slots[set->n_slots] = (struct slot){.stem = stem};
	return &set->slots[set->n_slots++];
}

/* The slot of PLACE; NULL: the run has stored nothing there. */
static struct slot *find_slot(const struct archive_set *set, const char *place)
{
	for (size_t i = 0; i < set->n_slots; i++)
		if (is_stem(set, place, set->slots[i].stem))
			return &set->slots[i];
	return NULL;
}

static struct slot *use_slot(struct archive_set *set, const char *place)
{
	struct slot *s = find_slot(set, place);

	if (!s)
		s = add_slot(set, families_stem(set->options.families, place));
	s->used = true;
	return s;
}

static struct volume *find_volume(const struct archive_set *set, const struct slot *s,
				  unsigned number)
{
	for (size_t i = 0; i < set->n_volumes; i++)
		if (&set->slots[set->volumes[i].slot] == s &&
		    set->volumes[i].number == number)
			return &set->volumes[i];
	return NULL;
}

static struct volume *add_volume(struct archive_set *set, const struct slot *s,
				 unsigned number)
{
	struct volume v = {
		.slot = (size_t)(s - set->slots),
		.number = number,
		.file = kp_archive_file_name(set->options.group, number, s->stem),
		.store.scheme = set->options.scheme,
	};

	if (!v.file)
		xalloc_fail(0);
	set->volumes = xrealloc(set->volumes, (set->n_volumes + 1) * sizeof(v));
	set->volumes[set->n_volumes] = v;
	return &set->volumes[set->n_volumes++];
}

/* The part of V's name after the group. */
static const char *stem_of(const struct archive_set *set, const struct volume *v)
{
	return set->slots[v->slot].stem;
}

/* Whether V's existing archive is added to. */
static bool is_kept(const struct archive_set *set, const struct volume *v)
{
	return v->exists && !v->foreign && !set->options.force;
}

static bool has_entries(const struct volume *v)
{
	return v->store.writer && kp_writer_entry_count(v->store.writer);
}

/* Get the archive of OBJECT's place that is its volume; it is begun if need be. */
static kpack_error_t volume_of(struct archive_set *set,
			       const struct archive_object *object, struct volume **out,
			       struct kpackx_error *why)
{
	const struct archive_set_options *o = &set->options;
	struct slot *s = use_slot(set, object->place);
	struct volume *v = find_volume(set, s, object->volume);
	struct kp_writer_options options = {
		.scheme = o->scheme,
		.group = o->group,
		.family = s->stem + 1,
		.level = o->level,
		.effort = o->effort,
		.jobs = o->jobs,
		.unnamed = o->unnamed,
	};

	if (!v)
		v = add_volume(set, s, object->volume);
	*out = v;
	if (v->written)
		return KPACK_SUCCESS;
	if (!kp_component_ok(kp_span_str(v->file)))
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "architecture %s gives no file name", options.family);
	if (v->foreign)
		return kp_fail(
			why, KPACK_ERROR_INVALID_ARGUMENT,
			"%s/%s: is an archive of another group: give another --group",
			o->dir, v->file);
	if (is_kept(set, v) && v->frames) { /* with what stays of it */
		options.level = 1;
		options.effort = 0;
		v->again = true;
	}
	KP_TRY(below_writer_open(o->dir, v->file, &options, &v->store.writer, why));
	v->written = true;
	return KPACK_SUCCESS;
}

static struct arch_stats *stats_of(struct archive_set *set, const char *arch)
{
	for (size_t i = 0; i < set->n_stats; i++)
		if (strcmp(set->stats[i].arch, arch) == 0)
			return &set->stats[i];
	set->stats = xrealloc(set->stats, (set->n_stats + 1) * sizeof(*set->stats));
	set->stats[set->n_stats] = (struct arch_stats){.arch = xstrdup(arch)};
	return &set->stats[set->n_stats++];
}

/* --- what exists --------------------------------------------------------------------- */

/* What becomes of an existing entry. */
enum entry_fate {
	ENTRY_STAYS,
	ENTRY_REPLACED,
	ENTRY_OBSOLETE, /* not stored by the run, and goes */
	ENTRY_MOVED,    /* stored by the run, but in another archive */
};

static enum entry_fate fate_of_entry(const struct archive_set *set,
				     const struct volume *v,
				     const struct kpack_archive *a, size_t entry)
{
	const struct archive_set_options *o = &set->options;
	const char *place = NULL;
	struct kp_entry_info info;
	struct kp_meta meta;
	bool stored;

	kp_archive_entry(a, entry, &info);
	stored = o->stores(o->arg, info.key, info.arch, v->number, &place);
	if (stored && is_stem(set, place, stem_of(set, v)))
		return ENTRY_REPLACED;
	kp_archive_meta(a, entry, &meta);
	if (o->obsolete && o->obsolete(o->arg, info.key, meta.path))
		return ENTRY_OBSOLETE;
	return stored ? ENTRY_MOVED : ENTRY_STAYS;
}

/* Find out what stays of an existing archive.  One that cannot be read stays as a whole. */
static kpack_error_t weigh_volume(const struct archive_set *set, struct volume *v,
				  struct kpackx_error *why)
{
	KP_AUTO_FREE char *path = xasprintf("%s/%s", set->options.dir, v->file);
	KP_AUTO_FREE bool *stays = NULL; /* per ordinal */
	struct kpack_archive *a = NULL;
	struct kp_entry_info info;
	struct stat st;
	kpack_error_t err;

	if (below_archive_open(path, &a, NULL)) {
		if (below_stat(path, &st) == 0)
			v->bytes = (uint64_t)st.st_size;
		return KPACK_SUCCESS;
	}
	v->foreign = kp_archive_group(a).size &&
		     !kp_span_is(kp_archive_group(a), set->options.group);
	err = kp_new(&stays, (size_t)kp_archive_ordinal_count(a) + 1, "objects", why);
	for (size_t i = 0; i < kp_archive_entry_count(a) && !v->foreign && !err; i++) {
		enum entry_fate fate = fate_of_entry(set, v, a, i);

		kp_archive_entry(a, i, &info);
		if (fate == ENTRY_MOVED && !v->moved)
			v->moved =
				xasprintf("%.*s %.*s", (int)info.key.size, info.key.data,
					  (int)info.arch.size, info.arch.data);
		v->obsolete |= fate == ENTRY_OBSOLETE;
		if (fate == ENTRY_REPLACED || fate == ENTRY_OBSOLETE ||
		    info.ordinal >= kp_archive_ordinal_count(a) || stays[info.ordinal])
			continue;
		stays[info.ordinal] = true;
		v->bytes += 4 + info.stored;
		v->frames++;
	}
	kp_archive_close(a);
	return err;
}

/* Wait for other runs in this directory, and look at its archives. */
static kpack_error_t look_at_dir(struct archive_set *set, struct kpackx_error *why)
{
	const struct archive_set_options *o = &set->options;
	struct below_target at;
	struct dirent *d;
	DIR *dir;
	int error;

	/* a link in OUTPUT too is followed only where no other user can exchange it */
	if (below_target_open(&at, o->dir) < 0)
		return below_fail(why, "%s", o->dir);
	set->dir_fd = below_target_reopen(&at, O_RDONLY | O_DIRECTORY);
	below_target_close(&at);
	if (set->dir_fd < 0)
		return below_fail(why, "%s", o->dir);
	lock_wait(set->dir_fd, o->dir);
	/* what is locked is also what is written to */
	KP_TRY(below_adopt_root(o->dir, set->dir_fd, why));
	if (o->inherit)
		KP_TRY(inherit_archives(o->inherit, o->dir, why));
	dir = below_opendir(o->dir);
	if (!dir)
		return below_fail(why, "%s", o->dir);
	while ((errno = 0, d = readdir(dir))) {
		struct slot *s = NULL;
		struct kp_span stem;
		unsigned number;

		if (!kp_archive_name_split(d->d_name, o->group, &number, &stem))
			continue;
		for (size_t i = 0; i < set->n_slots && !s; i++)
			if (kp_span_is(stem, set->slots[i].stem))
				s = &set->slots[i];
		if (!s)
			s = add_slot(set, xstrndup((const char *)stem.data, stem.size));
		add_volume(set, s, number)->exists = true;
	}
	error = errno;
	closedir(dir);
	/* an archive that is not seen would be replaced, and not added to */
	if (error)
		return kp_fail_errno(why, error, "%s", o->dir);
	kp_sort(set->volumes, set->n_volumes, KP_BY_TEXT(struct volume, file));
	for (size_t i = 0; i < set->n_volumes; i++) {
		struct volume *v = &set->volumes[i];

		KP_TRY(weigh_volume(set, v, why));
		/* two archives with one key would contradict each other */
		if (v->moved && !o->force)
			return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				       "%s/%s: has %s, which would now go to another "
				       "archive: give the same --family, or replace it "
				       "with --force",
				       o->dir, v->file, v->moved);
		set->slots[v->slot].used |= v->obsolete && !o->force;
	}
	return KPACK_SUCCESS;
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

void archive_set_close(struct archive_set *set)
{
	if (!set)
		return;
	for (size_t i = 0; i < set->n_volumes; i++) {
		kp_store_fini(&set->volumes[i].store);
		free(set->volumes[i].file);
		free(set->volumes[i].moved);
	}
	for (size_t i = 0; i < set->n_slots; i++)
		free(set->slots[i].stem);
	free(set->volumes);
	for (size_t i = 0; i < set->n_stats; i++)
		free((char *)set->stats[i].arch);
	free(set->stats);
	free(set->slots);
	free(set->names);
	lock_close(set->dir_fd); /* the root has the same open directory, and keeps it */
	pthread_mutex_destroy(&set->lock);
	free(set);
}

/* --- objects ------------------------------------------------------------------------- */

unsigned archive_set_place(struct archive_set *set, unsigned least,
			   const struct archive_need *needs, size_t n)
{
	const struct archive_set_options *o = &set->options;
	unsigned number = o->force || set->volume > least ? set->volume : least;
	bool passes;

	for (size_t i = 0; i < set->n_slots; i++)
		set->slots[i].more_bytes = set->slots[i].more_frames = 0;
	for (size_t i = 0; i < n; i++) { /* a family's architectures go to one archive */
		struct slot *s = use_slot(set, needs[i].place);

		s->more_bytes += needs[i].bytes;
		s->more_frames += needs[i].frames;
	}
	do {
		if (number != set->volume)
			for (size_t i = 0; i < set->n_slots; i++)
				set->slots[i].bytes = set->slots[i].frames = 0;
		set->volume = number;
		passes = false;
		for (size_t i = 0; i < set->n_slots && !passes; i++) {
			const struct slot *s = &set->slots[i];
			const struct volume *v = find_volume(set, s, number);
			bool kept = v && is_kept(set, v);
			uint64_t used = s->bytes + (kept ? v->bytes : 0);
			uint64_t frames = s->frames + (kept ? v->frames : 0);

			/*
			 * An empty archive takes anything: a binary that is larger than a volume has
			 * to be somewhere.
			 */
			if (s->more_frames == 0 || (used == 0 && frames == 0))
				continue;
			passes = used >= o->volume_size ||
				 s->more_bytes > o->volume_size - used ||
				 (o->scheme == KPACK_COMPRESSION_ZSTD_PER_KERNEL &&
				  frames + s->more_frames > KP_FRAMES_MAX);
		}
		number += passes;
	} while (passes);
	for (size_t i = 0; i < set->n_slots; i++) {
		set->slots[i].bytes += set->slots[i].more_bytes;
		set->slots[i].frames += set->slots[i].more_frames;
	}
	return set->volume;
}

kpack_error_t archive_set_shared(struct archive_set *set, struct archive_object *object,
				 const struct kp_source *data, struct kp_scratch *scratch,
				 bool *shared, struct kpackx_error *why)
{
	struct kp_source source;
	struct kp_span stored = {0};
	kpack_error_t err = KPACK_SUCCESS;
	bool known = false; /* a candidate, whose bytes are compared without the lock */
	struct volume *v = NULL;
	struct slot *s;

	*shared = false;
	pthread_mutex_lock(&set->lock);
	s = find_slot(set, object->place);
	if (s)
		v = find_volume(set, s, object->volume);
	if (v)
		known = kp_store_find(&v->store, &object->content, &object->ordinal);
	if (known)
		err = scratch ? kp_store_read(&v->store, object->ordinal, scratch,
					      &stored, why)
			      : kp_writer_stored_source(v->store.writer, object->ordinal,
							&source, why);
	pthread_mutex_unlock(&set->lock);
	if (!known || err)
		return err;
	return scratch ? kp_store_equals(set->options.scheme, stored,
					 (struct kp_span){data->mem, (size_t)data->size},
					 scratch, shared, why)
		       : kp_store_decodes_to(&source, data, shared, why);
}

kpack_error_t archive_set_store(struct archive_set *set, struct archive_object *o,
				struct kpackx_error *why)
{
	struct arch_stats *stats = stats_of(set, o->place);
	kpack_error_t err;
	struct volume *v;

	pthread_mutex_lock(&set->lock);
	err = volume_of(set, o, &v, why);
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
	struct volume *v;
	kpack_error_t err;

	pthread_mutex_lock(&set->lock);
	err = volume_of(set, o, &v, why);
	if (!err)
		err = kp_writer_add_entry(v->store.writer, key, kp_span_str(arch), entry,
					  why);
	pthread_mutex_unlock(&set->lock);
	stats_of(set, o->place)->objects += !err;
	return err;
}

/* --- completing archives -------------------------------------------------------------- */

/* What stays of an existing archive. */
struct stays {
	const struct kpack_archive *old;
	size_t source; /* of the merge */
	bool *entries; /* per entry of OLD: whether it stays */
};

static bool takes_entry(const void *arg, size_t source, const struct kp_entry_info *info)
{
	const struct stays *s = arg;
	size_t entry;

	return source != s->source ||
	       (kp_archive_find(s->old, info->key, info->arch, &entry) &&
		s->entries[entry]);
}

/*
 * Complete V with what stays of the existing archive.
 *
 * Objects come in the order of the plan, which is that of their keys, but for images of one
 * architecture whose kinds tell them apart, and rows of a database.  The order must not tell
 * which run stored what: then a killed run that is run again gives the same archives, and so do
 * the parts of a run when they are merged.
 */
static kpack_error_t complete_volume(struct archive_set *set, struct volume *v,
				     struct kpackx_error *why)
{
	const struct archive_set_options *o = &set->options;
	bool shared = o->scheme == KP_COMPRESSION_ZSTD_SHARED, ordered = true, again;
	KP_AUTO_FREE char *path = xasprintf("%s/%s", o->dir, v->file);
	KP_AUTO_FREE bool *entries = NULL;
	struct stays stays = {0};
	const struct merge_options options = {
		.group = o->group,
		.family = stem_of(set, v) + 1,
		.level = shared ? o->level : 0,
		.effort = o->effort,
		.takes = takes_entry,
		.takes_arg = &stays,
	};
	struct kpack_archive *old = NULL, *own = NULL;
	struct merge_source sources[2];
	struct merge_plan *plan = NULL;
	struct kp_writer *writer = NULL;
	kpack_error_t err = KPACK_SUCCESS;
	size_t taken = 0, n = 0, n_sources = 0, kept, faults = 0;

	if (is_kept(set, v))
		err = below_archive_open(path, &old, why);
	n = old ? kp_archive_entry_count(old) : 0;
	entries = xcalloc(n, sizeof(*entries));
	for (size_t i = 0; i < n; i++) {
		enum entry_fate fate = fate_of_entry(set, v, old, i);

		entries[i] = fate == ENTRY_STAYS || fate == ENTRY_MOVED;
		taken += entries[i];
	}
	/* nothing of this run goes there, but it loses entries */
	v->written |= taken < n;
	if (!err && v->written && old) {
		kp_archive_faults(old, &kept, &faults);
		if (strcmp(kp_archive_scheme(old), kp_scheme_name(o->scheme)) != 0)
			err = kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				      "its scheme is %s and this run's %s: give the "
				      "same, or replace it with --force",
				      kp_archive_scheme(old), kp_scheme_name(o->scheme));
		else if (faults)
			err = kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				      "it has faults and cannot be added to (kpack "
				      "verify names them); --force replaces it");
	}
	if (!err && v->store.writer && !o->unnamed)
		err = kp_writer_is_ordered(v->store.writer, &ordered, why);
	again = taken || !ordered || v->again;
	if (!err && has_entries(v) && !again)
		err = kp_writer_finish(v->store.writer, why);
	if (err)
		kp_fail_prefix(why, err, "%s", path);
	if (err || !v->written || !again)
		goto out;

	/*
	 * Write it again: what it has, which wins and was checked when it was stored, and what stays.
	 * Errors name the archive.
	 */
	if (has_entries(v)) {
		err = kp_writer_finish(v->store.writer, why);
		if (!err)
			err = kp_writer_reopen(v->store.writer, path, &own, why);
		sources[n_sources++] =
			(struct merge_source){own, .prefer = 1, .checked = true};
	}
	/* decoding all of a shared archive checks it */
	stays = (struct stays){.old = old, .source = n_sources, .entries = entries};
	if (old)
		sources[n_sources++] = (struct merge_source){old, .checked = shared};
	if (!err)
		err = merge_plan_new(sources, n_sources, &options, &plan, why);
	if (err == KPACK_ERROR_DECOMPRESSION_FAILED)
		err = kp_fail(why, err,
			      "%s: is damaged and cannot be added to; --force "
			      "replaces it",
			      path);
	if (!err)
		err = merge_plan_write(plan, o->dir, v->file, &writer, why);
	merge_plan_free(plan);
	kp_archive_close(own);
	if (!err) {
		kp_writer_close(v->store.writer);
		v->store.writer = writer;
	}
out:
	kp_archive_close(old);
	return err;
}

/* --- publishing ---------------------------------------------------------------------- */

kpack_error_t archive_set_publish(struct archive_set *set, struct kpackx_error *why)
{
	const struct archive_set_options *o = &set->options;

	for (size_t i = 0; i < set->n_volumes; i++) {
		struct volume *v = &set->volumes[i];

		if (v->written || (is_kept(set, v) && set->slots[v->slot].used))
			KP_TRY(complete_volume(set, v, why));
	}
	set->names = xmalloc(set->n_volumes * sizeof(char *));
	for (size_t i = 0; i < set->n_volumes; i++)
		if (has_entries(&set->volumes[i]))
			set->names[set->n_names++] = set->volumes[i].file;
	kp_sort(set->names, set->n_names, KP_AS_TEXT);
	kp_sort(set->stats, set->n_stats, KP_BY_TEXT(struct arch_stats, arch));
	for (size_t i = 0; i < set->n_volumes && !o->unnamed; i++) {
		struct volume *v = &set->volumes[i];
		kpack_error_t err = has_entries(v)
					    ? kp_writer_publish(v->store.writer, why)
					    : KPACK_SUCCESS;

		if (err)
			return kp_fail_prefix(why, err, "%s/%s", o->dir, v->file);
	}
	/* what contradicts what was written, or lost its last entry */
	for (size_t i = 0; i < set->n_volumes; i++) {
		const struct volume *v = &set->volumes[i];
		KP_AUTO_FREE char *path = NULL;

		if (!v->exists || v->foreign || has_entries(v) ||
		    !(v->written || (o->force && (v->moved || set->slots[v->slot].used))))
			continue;
		path = xasprintf("%s/%s", o->dir, v->file);
		if (below_unlink(path) < 0 && errno != ENOENT)
			return below_fail(why, "%s: cannot remove", path);
	}
	return KPACK_SUCCESS;
}

kpack_error_t archive_set_reopen(const struct archive_set *set, const char *name,
				 struct kpack_archive **out, struct kpackx_error *why)
{
	for (size_t i = 0; i < set->n_volumes; i++)
		if (strcmp(set->volumes[i].file, name) == 0)
			return kp_writer_reopen(set->volumes[i].store.writer, name, out,
						why);
	return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT, "%s: was not written", name);
}

const struct arch_stats *archive_set_stats(const struct archive_set *set, size_t *count)
{
	*count = set ? set->n_stats : 0;
	return set ? set->stats : NULL;
}

const char *const *archive_set_names(const struct archive_set *set, size_t *count)
{
	*count = set ? set->n_names : 0;
	return set ? set->names : NULL;
}
