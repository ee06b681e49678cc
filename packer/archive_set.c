/* SPDX-License-Identifier: MIT */
#include "archive_set.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>
#include "archive.h"
#include "content_table.h"
#include "existing.h"
#include "limits.h"
#include "target.h"
#include "text.h"

/* One archive being written. */
struct volume {
	unsigned number;
	char *file; /* name in the directory */
	struct kp_writer *writer;
	struct content_table contents; /* what its frames hold */
};

/* An architecture's, or a family's, archives. */
struct slot {
	char *stem; /* "_gfx942", "-gfx110X": what stands behind the group */
	const char *family; /* gfx_arch_family */
	struct volume *volumes;
	size_t n_volumes;
	char **names; /* "key\0arch" of every entry added, sorted when publishing */
	size_t n_names, names_cap;
};

struct archive_set {
	struct archive_set_options options;
	pthread_mutex_t lock; /* over the volumes: archive_set_shared comes any time */
	unsigned volume;      /* at hand, from 1 */
	int dir_fd;           /* of the directory, locked against other runs */
	struct existing there;
	struct slot *slots;
	size_t n_slots;
	struct archive_stats *stats;
	size_t n_stats;
	const char **written;
	size_t n_written;
};

/* --- slots and volumes --------------------------------------------------------------- */

static const struct family *family_of(const struct archive_set *set, const char *arch)
{
	for (size_t i = 0; i < set->options.n_families; i++) {
		const struct family *f = &set->options.families[i];
		for (size_t k = 0; k < f->n_arches; k++)
			if (strcmp(f->arches[k], arch) == 0)
				return f;
	}
	return NULL;
}

static char *volume_file(const struct archive_set *set, const char *stem, unsigned number)
{
	char part[16] = "", *file;

	if (number > 1)
		snprintf(part, sizeof(part), ".%u", number);
	if (asprintf(&file, "%s%s%s.kpack", set->options.group, part, stem) < 0)
		return NULL;
	return file;
}

/* Does STEM stand behind the group in the names of ARCH's archives? */
static bool is_stem(const struct archive_set *set, const char *arch, const char *stem)
{
	const struct family *family = family_of(set, arch);

	return stem[0] == (family ? '-' : '_') &&
	       strcmp(stem + 1, family ? family->name : arch) == 0;
}

static struct slot *find_slot(const struct archive_set *set, const char *arch)
{
	for (size_t i = 0; i < set->n_slots; i++)
		if (is_stem(set, arch, set->slots[i].stem))
			return &set->slots[i];
	return NULL;
}

static kpack_error_t new_slot(struct archive_set *set, const char *arch, struct slot **out,
			      struct kpackx_error *why)
{
	const struct family *family = family_of(set, arch);
	struct slot *bigger = realloc(set->slots, (set->n_slots + 1) * sizeof(*bigger));
	struct slot *s;

	if (!bigger)
		return kp_fail_memory(why, sizeof(*bigger), "an archive");
	set->slots = bigger;
	s = &bigger[set->n_slots];
	*s = (struct slot){0};
	if (asprintf(&s->stem, "%c%s", family ? '-' : '_', family ? family->name : arch) < 0)
		return kp_fail_memory(why, strlen(arch), "an archive");
	s->family = s->stem + 1;
	set->n_slots++;
	*out = s;
	return KPACK_SUCCESS;
}

static kpack_error_t open_volume(struct archive_set *set, struct slot *s, struct volume *v,
				 struct kpackx_error *why)
{
	struct kp_writer_options options = {
		.scheme = set->options.scheme,
		.group = set->options.group,
		.family = s->family,
	};
	const struct existing_archive *there;

	v->file = volume_file(set, s->stem, v->number);
	if (!v->file)
		return kp_fail_memory(why, strlen(s->stem), "a name");
	if (!kp_component_ok(kp_span_str(v->file)))
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "architecture %s gives no file name", s->family);
	there = existing_find(&set->there, v->file);
	if (there && there->foreign)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "%s/%s: is an archive of another group: give another --group",
			       set->options.dir, v->file);
	return kp_writer_open(set->options.dir, v->file, &options, &v->writer, why);
}

static void close_volume(struct volume *v)
{
	kp_writer_close(v->writer);
	content_table_fini(&v->contents);
	free(v->file);
}

static kpack_error_t add_volume(struct archive_set *set, struct slot *s, unsigned number,
				struct volume **out, struct kpackx_error *why)
{
	struct volume *bigger = realloc(s->volumes, (s->n_volumes + 1) * sizeof(*bigger));
	struct volume v = {.number = number};
	kpack_error_t err;

	if (!bigger)
		return kp_fail_memory(why, sizeof(*bigger), "an archive");
	s->volumes = bigger;
	err = open_volume(set, s, &v, why);
	if (err) {
		close_volume(&v);
		return err;
	}
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

/* The archive at hand for ARCH, begun when it is not there. */
static kpack_error_t current_volume(struct archive_set *set, const char *arch,
				    struct slot **slot, struct volume **volume,
				    struct kpackx_error *why)
{
	*slot = find_slot(set, arch);
	if (!*slot)
		KP_TRY(new_slot(set, arch, slot, why));
	*volume = find_volume(*slot, set->volume);
	return *volume ? KPACK_SUCCESS : add_volume(set, *slot, set->volume, volume, why);
}

/* --- opening ------------------------------------------------------------------------- */

static enum existing_fate fate_of(const void *arg, const struct existing_archive *archive,
				  struct kp_span key, struct kp_span arch)
{
	const struct archive_set *set = arg;
	char text[KP_TARGET_TEXT_MAX];

	if (arch.size >= sizeof(text) ||
	    !set->options.stores(set->options.stores_arg, key, arch))
		return ENTRY_STAYS;
	memcpy(text, arch.data, arch.size);
	text[arch.size] = 0;
	return is_stem(set, text, archive->stem) ? ENTRY_REPLACED : ENTRY_MOVED;
}

/* Two archives with one key would contradict each other. */
static kpack_error_t check_moved(const struct archive_set *set, struct kpackx_error *why)
{
	for (size_t i = 0; i < set->there.count && !set->options.force; i++) {
		const struct existing_archive *a = &set->there.items[i];

		if (a->moved)
			return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				       "%s/%s: has %s, which would now go to another archive: "
				       "give --family as then, or replace it with --force",
				       set->options.dir, a->file, a->moved);
	}
	return KPACK_SUCCESS;
}

/* Wait for other runs on this directory; where files cannot be locked, go on without. */
static kpack_error_t lock_dir(struct archive_set *set, struct kpackx_error *why)
{
	set->dir_fd = open(set->options.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (set->dir_fd < 0)
		return kp_fail_errno(why, errno, "%s", set->options.dir);
	while (flock(set->dir_fd, LOCK_EX) < 0 && errno == EINTR)
		;
	return KPACK_SUCCESS;
}

kpack_error_t archive_set_open(const struct archive_set_options *options,
			       struct archive_set **out, struct kpackx_error *why)
{
	struct archive_set *set = calloc(1, sizeof(*set));
	kpack_error_t err;

	if (!set)
		return kp_fail_memory(why, sizeof(*set), "archives");
	set->options = *options;
	pthread_mutex_init(&set->lock, NULL);
	set->volume = 1;
	err = lock_dir(set, why);
	if (!err)
		err = existing_open(options->dir, options->group, fate_of, set, &set->there,
				    why);
	if (!err)
		err = check_moved(set, why);
	if (err)
		archive_set_close(set);
	else
		*out = set;
	return err;
}

static void close_slot(struct slot *s)
{
	for (size_t i = 0; i < s->n_volumes; i++)
		close_volume(&s->volumes[i]);
	for (size_t i = 0; i < s->n_names; i++)
		free(s->names[i]);
	free(s->volumes);
	free(s->names);
	free(s->stem);
}

void archive_set_close(struct archive_set *set)
{
	if (!set)
		return;
	for (size_t i = 0; i < set->n_slots; i++)
		close_slot(&set->slots[i]);
	for (size_t i = 0; i < set->n_stats; i++)
		free(set->stats[i].arch);
	free(set->slots);
	free(set->stats);
	free(set->written);
	existing_close(&set->there);
	if (set->dir_fd >= 0)
		close(set->dir_fd);
	pthread_mutex_destroy(&set->lock);
	free(set);
}

/* --- objects ------------------------------------------------------------------------- */

/* What stands under the name of ARCH's archive at hand, and will be taken over; or NULL. */
static const struct existing_archive *there_for(const struct archive_set *set,
						const char *arch)
{
	const struct existing_archive *a;

	for (size_t i = 0; i < set->there.count && !set->options.force; i++) {
		a = &set->there.items[i];
		if (!a->foreign && a->number == set->volume && is_stem(set, arch, a->stem))
			return a;
	}
	return NULL;
}

/* Could this need make the archive at hand pass its bound?  An empty one never does. */
static bool passes(const struct archive_set *set, const struct archive_need *need)
{
	const struct existing_archive *there = there_for(set, need->arch);
	const struct slot *s = find_slot(set, need->arch);
	const struct volume *v = s ? find_volume(s, set->volume) : NULL;
	uint64_t used = there ? there->bytes : 0, frames = there ? there->frames : 0;

	if (v)
		frames += kp_writer_frame_count(v->writer);
	if (frames == 0 && used == 0)
		return false;
	used += v ? kp_writer_blob_size(v->writer) : 0;
	if (set->options.scheme == KPACK_COMPRESSION_ZSTD_PER_KERNEL &&
	    frames + need->frames > KP_FRAMES_MAX)
		return true;
	return used >= set->options.volume_size ||
	       need->bytes > set->options.volume_size - used;
}

static bool same_archive(const struct archive_set *set, const char *a, const char *b)
{
	const struct family *family = family_of(set, a);

	return strcmp(a, b) == 0 || (family && family == family_of(set, b));
}

/* The architectures of a family need their archive together. */
static bool any_passes(const struct archive_set *set, const struct archive_need *needs,
		       size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct archive_need sum = needs[i];

		for (size_t k = 0; k < n; k++) {
			if (k == i || !same_archive(set, needs[i].arch, needs[k].arch))
				continue;
			sum.bytes += needs[k].bytes;
			sum.frames += needs[k].frames;
		}
		if (passes(set, &sum))
			return true;
	}
	return false;
}

void archive_set_begin_binary(struct archive_set *set, const struct archive_need *needs,
			      size_t n)
{
	pthread_mutex_lock(&set->lock);
	while (any_passes(set, needs, n))
		set->volume++;
	pthread_mutex_unlock(&set->lock);
}

static kpack_error_t scratch_reserve(uint8_t **buf, size_t *cap, uint64_t size,
				     struct kpackx_error *why)
{
	uint8_t *bigger;

	if (size <= *cap && *buf)
		return KPACK_SUCCESS;
	bigger = realloc(*buf, (size_t)size + 1);
	if (!bigger)
		return kp_fail_memory(why, size, "comparing objects");
	*buf = bigger;
	*cap = (size_t)size;
	return KPACK_SUCCESS;
}

void archive_scratch_fini(struct archive_scratch *s)
{
	free(s->stored);
	free(s->decoded);
	*s = (struct archive_scratch){0};
}

/* The stored bytes of an ordinal into the scratch.  Locked. */
static kpack_error_t read_stored(struct volume *v, uint32_t ordinal,
				 struct archive_scratch *scratch, struct kp_span *out,
				 struct kpackx_error *why)
{
	uint64_t size = kp_writer_stored_size(v->writer, ordinal);

	KP_TRY(scratch_reserve(&scratch->stored, &scratch->stored_cap, size, why));
	KP_TRY(kp_writer_read_stored(v->writer, ordinal, scratch->stored, why));
	*out = (struct kp_span){scratch->stored, (size_t)size};
	return KPACK_SUCCESS;
}

/* Does STORED decode to DATA? */
static kpack_error_t compare(const struct archive_set *set, struct kp_span stored,
			     struct kp_span data, struct archive_scratch *scratch,
			     bool *equal, struct kpackx_error *why)
{
	if (set->options.scheme == KPACK_COMPRESSION_NOOP) {
		*equal = kp_span_eq(stored, data);
		return KPACK_SUCCESS;
	}
	KP_TRY(scratch_reserve(&scratch->decoded, &scratch->decoded_cap, data.size, why));
	KP_TRY(kp_zstd_decode(stored, scratch->decoded, data.size, why));
	*equal = kp_span_eq((struct kp_span){scratch->decoded, data.size}, data);
	return KPACK_SUCCESS;
}

static struct content content_of(const struct archive_object *o)
{
	struct content c = {.size = o->size, .chunk = o->chunk};

	memcpy(c.hash, o->hash, sizeof(c.hash));
	return c;
}

kpack_error_t archive_set_shared(struct archive_set *set, struct archive_object *object,
				 const void *data, struct archive_scratch *scratch,
				 bool *shared, struct kpackx_error *why)
{
	struct content want = content_of(object);
	struct kp_span stored = {0};
	kpack_error_t err = KPACK_SUCCESS;
	struct volume *v;
	struct slot *s;
	bool known;

	*shared = false;
	pthread_mutex_lock(&set->lock);
	s = find_slot(set, object->arch);
	v = s ? find_volume(s, set->volume) : NULL;
	known = v && content_table_find(&v->contents, &want, &object->ordinal);
	if (known) {
		object->volume = v->number;
		err = read_stored(v, object->ordinal, scratch, &stored, why);
	}
	pthread_mutex_unlock(&set->lock);
	if (!known || err)
		return err;
	return compare(set, stored, (struct kp_span){data, (size_t)object->size}, scratch,
		       shared, why);
}

static kpack_error_t stats_of(struct archive_set *set, const char *arch,
			      struct archive_stats **out, struct kpackx_error *why)
{
	struct archive_stats *bigger;

	for (size_t i = 0; i < set->n_stats; i++)
		if (strcmp(set->stats[i].arch, arch) == 0) {
			*out = &set->stats[i];
			return KPACK_SUCCESS;
		}
	bigger = realloc(set->stats, (set->n_stats + 1) * sizeof(*bigger));
	if (!bigger)
		return kp_fail_memory(why, sizeof(*bigger), "statistics");
	set->stats = bigger;
	*out = &bigger[set->n_stats];
	**out = (struct archive_stats){.arch = strdup(arch)};
	if (!(*out)->arch)
		return kp_fail_memory(why, strlen(arch), "statistics");
	set->n_stats++;
	return KPACK_SUCCESS;
}

/*
 * Store bytes unless the same are there.  The encoder gives the same frame for the
 * same bytes, so frames are compared as they are.  Locked.
 */
static kpack_error_t store(struct volume *v, struct archive_object *o, bool *shared,
			   struct kpackx_error *why)
{
	struct archive_scratch scratch = {0};
	struct content want = content_of(o);
	kpack_error_t err = KPACK_SUCCESS;
	uint32_t ordinal;

	*shared = false;
	if (content_table_find(&v->contents, &want, &ordinal) &&
	    kp_writer_stored_size(v->writer, ordinal) == o->stored.size) {
		struct kp_span there;

		err = read_stored(v, ordinal, &scratch, &there, why);
		*shared = !err && kp_span_eq(there, o->stored);
	}
	if (!err && *shared)
		o->ordinal = ordinal;
	else if (!err)
		err = kp_writer_add_stored(v->writer, o->stored, &o->ordinal, why);
	if (!err && !*shared && !content_table_add(&v->contents, &want, o->ordinal))
		err = kp_fail_memory(why, sizeof(want), "a table of contents");
	archive_scratch_fini(&scratch);
	return err;
}

/* Found in a volume that was left meanwhile: bring its frame along. */
static kpack_error_t bring_along(struct slot *s, struct archive_object *o,
				 struct archive_scratch *scratch, struct kpackx_error *why)
{
	struct volume *old = find_volume(s, o->volume);

	return read_stored(old, o->ordinal, scratch, &o->stored, why);
}

static kpack_error_t store_locked(struct archive_set *set, struct archive_object *o,
				  bool *shared, struct kpackx_error *why)
{
	struct archive_scratch scratch = {0};
	kpack_error_t err = KPACK_SUCCESS;
	struct volume *v;
	struct slot *s;

	*shared = false;
	KP_TRY(current_volume(set, o->arch, &s, &v, why));
	if (!o->stored.data && o->volume == v->number) {
		*shared = true;
		return KPACK_SUCCESS;
	}
	if (!o->stored.data)
		err = bring_along(s, o, &scratch, why);
	if (!err)
		err = store(v, o, shared, why);
	archive_scratch_fini(&scratch);
	return err;
}

kpack_error_t archive_set_store(struct archive_set *set, struct archive_object *object,
				struct kpackx_error *why)
{
	struct archive_stats *stats;
	kpack_error_t err;
	bool shared;

	KP_TRY(stats_of(set, object->arch, &stats, why));
	pthread_mutex_lock(&set->lock);
	err = store_locked(set, object, &shared, why);
	pthread_mutex_unlock(&set->lock);
	if (err)
		return err;
	stats->bytes_in += object->size;
	if (shared)
		stats->deduplicated++;
	else
		stats->bytes_out += object->stored.size;
	return KPACK_SUCCESS;
}

static kpack_error_t remember_name(struct slot *s, struct kp_span key, const char *arch,
				   struct kpackx_error *why)
{
	size_t n = strlen(arch);
	char *name;

	if (s->n_names == s->names_cap) {
		size_t cap = s->names_cap ? 2 * s->names_cap : 256;
		char **bigger = realloc(s->names, cap * sizeof(char *));
		if (!bigger)
			return kp_fail_memory(why, cap * sizeof(char *), "names");
		s->names = bigger;
		s->names_cap = cap;
	}
	name = malloc(key.size + n + 2);
	if (!name)
		return kp_fail_memory(why, key.size, "a name");
	memcpy(name, key.data, key.size);
	name[key.size] = 0;
	memcpy(name + key.size + 1, arch, n + 1);
	s->names[s->n_names++] = name;
	return KPACK_SUCCESS;
}

kpack_error_t archive_set_entry(struct archive_set *set, const char *arch, struct kp_span key,
				const struct kp_writer_entry *entry, struct kpackx_error *why)
{
	struct archive_stats *stats;
	struct volume *v;
	struct slot *s;
	kpack_error_t err;

	KP_TRY(stats_of(set, arch, &stats, why));
	pthread_mutex_lock(&set->lock);
	err = current_volume(set, arch, &s, &v, why);
	if (!err)
		err = kp_writer_add_entry(v->writer, key, kp_span_str(arch), entry, why);
	if (!err)
		err = remember_name(s, key, arch, why);
	pthread_mutex_unlock(&set->lock);
	if (!err)
		stats->objects++;
	return err;
}

/* --- taking over what is there -------------------------------------------------------- */

static int cmp_name(const void *a, const void *b)
{
	const char *x = *(char *const *)a, *y = *(char *const *)b;
	int c = strcmp(x, y);

	return c ? c : strcmp(x + strlen(x) + 1, y + strlen(y) + 1);
}

/* Is this entry of an existing archive replaced by one of this run? */
static bool replaced(const struct slot *s, const struct kp_entry_info *info)
{
	char name[2 * (KP_NAME_MAX + 1)], *p = name;

	memcpy(name, info->key.data, info->key.size);
	name[info->key.size] = 0;
	memcpy(name + info->key.size + 1, info->arch.data, info->arch.size);
	name[info->key.size + 1 + info->arch.size] = 0;
	return bsearch(&p, s->names, s->n_names, sizeof(char *), cmp_name) != NULL;
}

/* Old entries in order of their frames. */
struct old_entry {
	uint32_t ordinal;
	uint32_t entry;
};

static int cmp_old(const void *a, const void *b)
{
	const struct old_entry *x = a, *y = b;

	if (x->ordinal != y->ordinal)
		return x->ordinal < y->ordinal ? -1 : 1;
	return (x->entry > y->entry) - (x->entry < y->entry);
}

static kpack_error_t check_old(const struct archive_set *set, const struct kpack_archive *old,
			       struct kpackx_error *why)
{
	const char *scheme =
		set->options.scheme == KPACK_COMPRESSION_NOOP ? "none" : "zstd-per-kernel";
	size_t kept, counted;

	if (strcmp(kp_archive_scheme(old), scheme) != 0)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
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

/* Copy the frame of an old entry, or find that this run stored the same. */
static kpack_error_t carry_object(struct volume *v, const struct kpack_archive *old,
				  size_t entry, uint32_t *ordinal, struct kpackx_error *why)
{
	struct archive_object o = {0};
	struct kp_source stored;
	struct kp_entry_info info;
	struct kp_meta meta;
	kpack_error_t err;
	uint8_t *bytes;
	bool shared;

	kp_archive_entry(old, entry, &info);
	kp_archive_meta(old, entry, &meta);
	KP_TRY(kp_archive_source(old, entry, &stored, why));
	bytes = malloc((size_t)stored.size + 1);
	if (!bytes)
		return kp_fail_memory(why, stored.size, "a frame");
	err = kp_source_read(&stored, 0, bytes, (size_t)stored.size, why);
	o.stored = (struct kp_span){bytes, (size_t)stored.size};
	o.size = info.size;
	o.chunk = meta.chunk;
	memcpy(o.hash, meta.xxh3, sizeof(o.hash));
	if (!err && meta.has_xxh3)
		err = store(v, &o, &shared, why);
	else if (!err)
		err = kp_writer_add_stored(v->writer, o.stored, &o.ordinal, why);
	free(bytes);
	*ordinal = o.ordinal;
	return err;
}

static kpack_error_t carry_entries(const struct slot *s, struct volume *v,
				   const struct kpack_archive *old,
				   const struct old_entry *list, size_t n,
				   struct kpackx_error *why)
{
	uint32_t ordinal = 0;
	bool carried = false;

	for (size_t i = 0; i < n; i++) {
		struct kp_entry_info info;

		if (i == 0 || list[i].ordinal != list[i - 1].ordinal)
			carried = false;
		kp_archive_entry(old, list[i].entry, &info);
		if (replaced(s, &info))
			continue;
		if (!carried)
			KP_TRY(carry_object(v, old, list[i].entry, &ordinal, why));
		carried = true;
		KP_TRY(kp_writer_add_entry(
			v->writer, info.key, info.arch,
			&(struct kp_writer_entry){
				info.type, ordinal, info.size,
				kp_archive_meta_raw(old, list[i].entry)},
			why));
	}
	return KPACK_SUCCESS;
}

static kpack_error_t carry(const struct archive_set *set, const struct slot *s,
			   struct volume *v, const struct kpack_archive *old,
			   struct kpackx_error *why)
{
	size_t n = kp_archive_entry_count(old);
	struct old_entry *list = malloc((n + 1) * sizeof(*list));
	kpack_error_t err;

	if (!list)
		return kp_fail_memory(why, n * sizeof(*list), "entries");
	for (size_t i = 0; i < n; i++) {
		struct kp_entry_info info;
		kp_archive_entry(old, i, &info);
		list[i] = (struct old_entry){info.ordinal, (uint32_t)i};
	}
	qsort(list, n, sizeof(*list), cmp_old);
	err = check_old(set, old, why);
	if (!err)
		err = carry_entries(s, v, old, list, n, why);
	free(list);
	return err;
}

static bool any_replaced(const struct slot *s, const struct kpack_archive *old)
{
	struct kp_entry_info info;

	for (size_t i = 0; i < kp_archive_entry_count(old); i++) {
		kp_archive_entry(old, i, &info);
		if (replaced(s, &info))
			return true;
	}
	return false;
}

/* Bring the archive that stands under a volume's name into this run's. */
static kpack_error_t take_over(struct archive_set *set, struct slot *s,
			       const struct existing_archive *there, struct kpackx_error *why)
{
	struct volume *v = find_volume(s, there->number);
	struct kpack_archive *old = NULL;
	kpack_error_t err;
	char *path;

	if (asprintf(&path, "%s/%s", set->options.dir, there->file) < 0)
		return kp_fail_memory(why, strlen(there->file), "a path");
	err = kp_archive_open(path, &old, why);
	if (!err && !v && any_replaced(s, old))
		err = add_volume(set, s, there->number, &v, why);
	if (!err && v)
		err = carry(set, s, v, old, why);
	if (err)
		kp_fail_prefix(why, err, "%s", path);
	kp_archive_close(old);
	free(path);
	return err;
}

static kpack_error_t take_over_all(struct archive_set *set, struct kpackx_error *why)
{
	for (size_t i = 0; i < set->n_slots; i++) {
		struct slot *s = &set->slots[i];

		qsort(s->names, s->n_names, sizeof(char *), cmp_name);
		for (size_t k = 0; k < set->there.count; k++) {
			const struct existing_archive *a = &set->there.items[k];

			if (!a->foreign && strcmp(a->stem, s->stem) == 0)
				KP_TRY(take_over(set, s, a, why));
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

/* Does what stood there contradict what was written, or did it lose its last entry? */
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

static kpack_error_t remove_obsolete(const struct archive_set *set, struct kpackx_error *why)
{
	for (size_t i = 0; i < set->there.count; i++) {
		const struct existing_archive *a = &set->there.items[i];

		if (is_obsolete(set, a) && unlinkat(set->dir_fd, a->file, 0) < 0 &&
		    errno != ENOENT)
			return kp_fail_errno(why, errno, "%s/%s: cannot remove",
					     set->options.dir, a->file);
	}
	return KPACK_SUCCESS;
}

static int cmp_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int cmp_stats(const void *a, const void *b)
{
	const struct archive_stats *x = a, *y = b;

	return strcmp(x->arch, y->arch);
}

static kpack_error_t list_written(struct archive_set *set, struct kpackx_error *why)
{
	size_t n = 0;

	for (size_t i = 0; i < set->n_slots; i++)
		n += set->slots[i].n_volumes;
	set->written = malloc((n + 1) * sizeof(char *));
	if (!set->written)
		return kp_fail_memory(why, n, "names");
	for (size_t i = 0; i < set->n_slots; i++)
		for (size_t k = 0; k < set->slots[i].n_volumes; k++)
			if (kp_writer_entry_count(set->slots[i].volumes[k].writer))
				set->written[set->n_written++] =
					set->slots[i].volumes[k].file;
	qsort(set->written, set->n_written, sizeof(char *), cmp_text);
	if (set->n_stats)
		qsort(set->stats, set->n_stats, sizeof(*set->stats), cmp_stats);
	return KPACK_SUCCESS;
}

static kpack_error_t for_each_volume(struct archive_set *set,
				     kpack_error_t (*fn)(struct kp_writer *w,
							 struct kpackx_error *why),
				     struct kpackx_error *why)
{
	for (size_t i = 0; i < set->n_slots; i++) {
		for (size_t k = 0; k < set->slots[i].n_volumes; k++) {
			struct volume *v = &set->slots[i].volumes[k];
			kpack_error_t err = KPACK_SUCCESS;

			/* one that stood there may have lost its last entry */
			if (kp_writer_entry_count(v->writer))
				err = fn(v->writer, why);
			if (err)
				return kp_fail_prefix(why, err, "%s/%s", set->options.dir,
						      v->file);
		}
	}
	return KPACK_SUCCESS;
}

kpack_error_t archive_set_publish(struct archive_set *set, struct kpackx_error *why)
{
	if (!set->options.force)
		KP_TRY(take_over_all(set, why));
	KP_TRY(for_each_volume(set, kp_writer_finish, why));
	KP_TRY(list_written(set, why));
	KP_TRY(for_each_volume(set, kp_writer_publish, why));
	return remove_obsolete(set, why);
}

const struct archive_stats *archive_set_stats(const struct archive_set *set, size_t *count)
{
	*count = set->n_stats;
	return set->stats;
}

const char *const *archive_set_names(const struct archive_set *set, size_t *count)
{
	*count = set->n_written;
	return set->written;
}
